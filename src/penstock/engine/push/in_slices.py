"""The reference push of one block: a large push is worked off in slices of time.

To the answer it makes no difference; but a slice finds in the states, besides what it needs, only
little that is younger or was dead before, and what it touches fits the cache. Under a budget slices
may be smaller, and between them it is decided which rows probe.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.engine.state.arrival import SLICE, Arrival, slices_of
from penstock.engine.state.composites import Composites, concatenate
from penstock.engine.state.working_memory import WORKING
from penstock.engine.tree.join_tree import JoinTree
from penstock.kernels.held_signals import HELD

if TYPE_CHECKING:
    from penstock.engine.overload.overload_control import OverloadControl


def push_in_slices(
    tree: JoinTree,
    arrivals: Mapping[str, Arrival],
    watermark: int,
    control: OverloadControl | None,
) -> Composites:
    """The new results of the block of ``tree``, under ``control`` if there is a budget."""
    size = None if control is None else control.join.pace.slice_rows
    cuts = slices_of(list(arrivals.values()), size)
    if len(cuts) <= 2:
        filled = [each.births for each in arrivals.values() if len(each)]
        if filled:
            first, last = min(b[0] for b in filled), max(b[-1] for b in filled)
            tree.begin_slice(int(first), int(last), sum(map(len, filled)), watermark)
        if control is not None:
            control.limit.begin_slice(arrivals)
        results = tree.push(arrivals)
        WORKING.note_results(len(results))
        return results
    parts, made = [], 0
    for first, after in itertools.pairwise(cuts):
        part = {alias: each.between(first, after) for alias, each in arrivals.items()}
        count = SLICE if size is None else sum(map(len, part.values()))
        tree.begin_slice(first, after, count, watermark)
        if control is not None:
            control.limit.begin_slice(part)
        parts.append(tree.push(part))
        made += len(parts[-1])
        WORKING.note_results(len(parts[-1]))
        WORKING.ask(made, len(tree.leaves) + 2)
        HELD.go_on()
        if control is not None:
            control.limit.end_slice(part)
    results = concatenate(parts)
    if any(leaf.by_rows for leaf in tree.leaves.values()):
        tree.shorten(results)  # A later slice may have ended the life of an earlier result.
    return results
