"""Rows whose partner has died go back to sleep: their combinations are forgotten with them.

A row that was let in stays in as long as it lives, also when the partner for whose sake it came has
long died; whatever it meets from then on is made for nobody. JIT suspends it when the next of its
combinations finds no partner, and has it remember what it has met. Here it is taken out *as if it
had never come in*: a row of an input X that waits again for a partner in O leaves X, and everything
that was made of it on the way to the join with O is forgotten. So there is nothing to remember, the
state gives its memory back, and the compiled push knows nothing of it: a row that wakes is let in
like any other, and makes everything anew. It is done between two pushes, for all rows of a guard.

**Why nothing is lost.** The row has no partner in O, so it is where a guard would have put it; the
argument of :mod:`penstock.engine.feedback.edge` is about any rows that wait and have no partner.

**Why nothing is made twice.** Take a result r that was made, and the first time after that when a
part of r goes back to sleep, for want of a partner in O. When r was made its part over O was in.
Nobody had gone back to sleep since, so it has left O because it died; it does not come back, and
without it r is not made. The same holds for a combination q that is in a state or waits: if O is
one of its parts, q is dead as well; if not, the join with O is above, and q is forgotten here.

Partners are looked for among all rows that O holds, those included that probes skip for now
(:mod:`penstock.engine.tree.hidden_rows`): what is hidden may be seen again. A filter, or a state
that still has combinations of dead rows, says too often that there is a partner, never too seldom.

Whether it pays is for :mod:`penstock.engine.feedback.feedback_policy` to say: whoever wakes again
costs all that was forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from penstock.engine.feedback.edge import Edge
from penstock.engine.feedback.guard import Guard
from penstock.engine.feedback.waiting import Waiting
from penstock.engine.state.composite_state import CompositeState
from penstock.engine.state.leaf_window import LeafWindow

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]
Ids = Mapping[str, Int64s]

_LARGEST_CODE = 1 << 62
"""Combinations that can be told apart by one number."""
_SHARE_WORTH_PACKING = 0.25
"""The share of a state that has been forgotten from which on it is looked at for packing."""


def may_go_back(edge: Edge, guard: Guard) -> bool:
    """Whether rows of ``edge`` may wait at ``guard`` again: partners in O die, and nobody is on the
    way out of the guard."""
    return (
        guard.is_on
        and not guard.is_final
        and not edge.is_leaving
        and isinstance(edge.input, CompositeState)
    )


def put_back(edge: Edge, guard: Guard, edges: Sequence[Edge]) -> int:
    """Let the rows of ``edge`` that have lost their partner wait at ``guard`` again; how many.

    ``edges`` are those of the tree. All inputs are complete, and no probe is owed. If there is no
    memory for it, nothing has changed.
    """
    state, leaves = edge.input, edge.leaves
    assert isinstance(state, CompositeState)
    rows = state.whole_rows()
    ids = state.resolve(rows)
    lonely = np.flatnonzero(~guard.partners(ids))
    if len(lonely) == 0:
        return 0
    ids = {alias: each[lonely] for alias, each in ids.items()}
    held = [
        each
        for above in edges
        if edge.streams < above.streams <= guard.within
        for each in _held_by(above)
    ]
    parts = _Parts(ids, held, leaves)
    guard.suspend_again(ids)  # The last that may want memory; it comes as a whole, or not at all.
    state.forget(rows[lonely])
    counts = [len(lonely), *parts.forget()]
    with suppress(MemoryError):
        for each, count in zip([state, *held], counts, strict=True):
            if count > _SHARE_WORTH_PACKING * len(each.rows):
                each.pack_forgotten()
    return len(lonely)


def _held_by(edge: Edge) -> Iterator[CompositeState]:
    """What has come along ``edge``: rows that were let in, and rows that wait."""
    assert isinstance(edge.input, CompositeState)
    yield edge.input
    for guard in edge.guards:
        if isinstance(guard.waiting, Waiting) and len(guard.waiting.rows):
            yield guard.waiting


class _Parts:
    """What is made of rows ``ids`` in the states ``held``: looked up, and forgotten later."""

    def __init__(
        self, ids: Ids, held: list[CompositeState], leaves: Mapping[str, LeafWindow]
    ) -> None:
        self._held = held
        self._alias = next(iter(ids))
        self._marked: NDArray[np.uint8] | None = None
        """The rows of a leaf, if ``ids`` are such, by their place in its ring."""
        self._found: list[Int64s] = []
        if len(ids) == 1:
            mask = leaves[self._alias].rows.mask
            self._marked = np.zeros(mask + 1, np.uint8)
            self._marked[ids[self._alias] & mask] = 1
            return
        for state in held:
            rows = state.whole_rows()
            self._found.append(rows[_are_made_of(state.resolve(rows), ids, leaves)])

    def forget(self) -> Iterator[int]:
        """Forget them; how many in each state. No memory is needed."""
        if self._marked is not None:
            for state in self._held:
                yield state.forget_made_of(self._alias, self._marked)
            return
        for state, rows in zip(self._held, self._found, strict=True):
            state.forget(rows)
            yield len(rows)


def _are_made_of(ids: Ids, parts: Ids, leaves: Mapping[str, LeafWindow]) -> Bools:
    """Which of the combinations ``ids`` have one of ``parts`` for a part. None is gone."""
    count = len(next(iter(ids.values())))
    codes, size = np.zeros(count + len(next(iter(parts.values()))), np.int64), 1
    for alias, rows in parts.items():
        own = leaves[alias].rows
        span = own.head - own.tail
        if size * span > _LARGEST_CODE:
            known, codes = np.unique(codes, return_inverse=True)
            size = len(known)
        codes = codes * span + (np.concatenate([ids[alias], rows]) - own.tail)
        size *= span
    return np.isin(codes[:count], codes[count:])
