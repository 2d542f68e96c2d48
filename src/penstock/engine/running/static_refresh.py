"""Static relations that are replaced while the query runs.

The windows of the relations get the new rows, and everything that is made of windows is made anew,
as after a restart. What has left stays as it left. So what leaves from then on is what an engine
would give that had the new rows from the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.engine.running.plan_changes import PlanChanges
from penstock.engine.running.running_join import RunningJoin
from penstock.errors import InputError, OptionError


def refresh(join: RunningJoin, changes: PlanChanges, relations: Mapping[str, Any]) -> None:
    """Replace all rows of ``relations``; the plan stays, and a change that is prepared is not."""
    _check(join, relations)
    taken = join.intake.take(relations, join.clock, join.place, statics_open=True)
    join.expiry.catch_up()
    (leaves,) = join.leaves
    arrivals = {
        alias: leaf.prepare(taken.rows[leaf.stream.source])
        for alias, leaf in leaves.items()
        if leaf.stream.source in taken.rows
    }
    changes.give_up_preparing()
    join.is_broken = True
    for alias, arrival in arrivals.items():
        leaves[alias].undo(leaves[alias].rows.tail)
        leaves[alias].append(arrival)
    join.begin_anew(changes.plan)
    for source, count in taken.seen.items():
        join.counters.rows[source] += count
    join.is_broken = False


def _check(join: RunningJoin, relations: Mapping[str, Any]) -> None:
    """Raise if ``relations`` cannot be replaced, or not now."""
    sources = join.intake.sources
    statics = [name for name, each in sources.items() if each.is_static]
    for name in relations:
        if name in sources and name not in statics:
            raise InputError(
                f"{name} is a stream, and only static relations are refreshed; "
                + (f"they are: {', '.join(statics)}" if statics else "the query has none")
            )
    if join.query.minus:
        raise OptionError(
            "a query with EXCEPT keeps the static relations that it began with: what it has "
            "removed so far cannot be decided anew"
        )
    if join.owes:
        raise OptionError(
            "probes are owed (overload='defer') that have to meet the rows of before; refresh "
            "static relations with overload='exact' or 'shed'"
        )
