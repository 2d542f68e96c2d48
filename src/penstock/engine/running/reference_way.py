"""The reference push: one operator after another, on arrays that can be looked at.

It is plain and slow; it takes everything, and it is what the compiled push is compared with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from penstock.engine.push.in_slices import push_in_slices
from penstock.engine.push.intake import Batches
from penstock.engine.running.running_join import RunningJoin
from penstock.engine.state.clock import END, START, Clock
from penstock.engine.state.composites import concatenate
from penstock.kernels.held_signals import HELD


def push_by_steps(
    join: RunningJoin,
    batches: Mapping[str, Any],
    promised: int | None,
    newest: Mapping[str, int] | None,
    probes: float | None,
) -> pa.Table:
    """The answer to ``batches``, with the watermark ``promised`` and ``newest`` event times that
    the host knows of, and a budget of ``probes``."""
    if join.overload is not None:
        batches = join.overload.door.admit_rest(batches)
    taken = join.intake.take(batches, join.clock, join.place, not join.has_started)
    seen = dict(join.newest)
    for source, instant in (*taken.newest.items(), *(newest or {}).items()):
        seen[source] = max(instant, seen.get(source, instant))
    clock = join.advanced(seen, taken.places, promised)
    table = _push(join, taken, clock, seen, clock.now, probes)
    join.set_aside.keep(taken.dropped)
    join.latest = sum(taken.seen.values())
    return table


def finish(join: RunningJoin) -> pa.Table:
    """The answer at the end of time: what was waiting for it to pass."""
    nothing = Batches({}, {}, {}, {}, {}, 0)
    join.has_begun = False
    end = Clock(now=END, watermark=END, strict=join.strict)
    HELD.may_undo()
    return _push(join, nothing, end, join.newest, join.clock.now, math.inf)


def _push(
    join: RunningJoin,
    taken: Batches,
    clock: Clock,
    newest: dict[str, int],
    now: int,
    probes: float | None,
) -> pa.Table:
    """Take the rows in; what leaves. Afterwards the join counts as broken until told better: an
    interrupt from here to the return of the answer must not pass for a failed push."""
    arrivals = [
        {
            alias: leaf.prepare(taken.rows[leaf.stream.source])
            for alias, leaf in block.items()
            if leaf.stream.source in taken.rows
        }
        for block in join.leaves
    ]
    control = join.overload
    births = [int(each.births[0]) for each in arrivals[0].values() if len(each)]
    first = min(births, default=START)
    if control is not None and not join.has_begun:
        rows = {alias: len(each) for alias, each in arrivals[0].items()}
        control.begin(rows, first, join.clock.now, now, probes)
    marks = [tree.marks() for tree in join.trees]
    try:
        results = [
            push_in_slices(tree, each, clock.watermark, control if tree is join.trees[0] else None)
            for tree, each in zip(join.trees, arrivals, strict=True)
        ]
        if control is not None:
            results[0] = control.after_joins(results[0])
        if join.owed_results is not None:
            results[0] = concatenate([join.owed_results, results[0]])
        table = join.output.stage(results, clock)
        join.set_aside.warn_of_disorder(taken, join.clock.late)
        filtered = join.set_aside.filtered(
            {name: len(rows) for name, rows in taken.rows.items()},
            {
                alias: len(each) if each.chosen is None else len(each.chosen)
                for block in arrivals
                for alias, each in block.items()
            },
            taken.rows,
            join.clock,
        )
        HELD.give()
    except BaseException:
        HELD.undoable = False
        join.go_back(marks)
        raise
    HELD.undoable = False
    join.is_broken = True
    join.output.commit()
    with join.tearing:
        for tree in join.trees:
            tree.commit()
    if control is not None:
        control.commit(join.clock.now)
    join.owed_results = None
    join.place += taken.places
    join.has_started = join.has_started or any(
        len(taken.rows[name]) for name in join.lateness.sources if name in taken.rows
    )
    join.counters.count(taken, len(table))
    join.counters.count_filtered(filtered)
    count = sum(map(len, taken.rows.values()))
    join.conclude(clock, newest, first, count)
    join.tidy_output(clock.watermark)
    if count == 0 or join.expiry.is_due:
        join.expiry.sweep_if_it_can()
    return table
