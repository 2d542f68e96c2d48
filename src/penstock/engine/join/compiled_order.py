"""A probe order as one compiled call.

Step by step, a probe order costs some twenty calls into compiled code and as many arrays, however
few rows there are. Here the order is written down once as a table of addresses and places
(:mod:`penstock.kernels.probe_order`), anew whenever a ring has moved, and a push fills in
what has changed: where rows begin and end. Answers, their order and what is counted are those of
the steps. Residual predicates on numbers and times are part of the table; at others the call ends,
their columns are tested by Arrow's kernels, and it goes on with what is left.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.engine.join.join_step import Input, JoinStep
from penstock.engine.state.address import address_of
from penstock.engine.state.composite_state import CompositeState
from penstock.engine.state.composites import Composites, concatenate
from penstock.engine.state.held_signals import HELD
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.payload import RingColumn
from penstock.engine.state.probing import ACTIVE, Surplus
from penstock.engine.state.working_memory import IN_PARTS_AND_WHOLE, WORKING
from penstock.errors import InvariantBroken
from penstock.kernels import probe_order as kernel
from penstock.kernels.probe import ENOUGH
from penstock.query.expression import Column
from penstock.values.wiring import Condition, KeyColumn

Int64s = NDArray[np.int64]

_ASKEW = 40
"""Columns that are a power of two apart compete for the same places of a cache."""
_FEWEST = (1 << 12) + _ASKEW
_MOST = 1 << 19
"""Room for more combinations than that is given back at once."""


class _Workspace(threading.local):
    """Room for what an order makes on its way; every thread has its own."""

    def __init__(self) -> None:
        self.room = 0
        self.reserve(_FEWEST)

    def reserve(self, room: int) -> None:
        """Make room for ``room`` combinations."""
        keys, found = np.empty(room, np.int64), np.empty((2, room), np.int64)
        self.room, self.keys, self.found = room, keys, found
        self._work: dict[int, NDArray[np.int64]] = {}

    def make_room(self, needed: int) -> None:
        """Make room for at least ``needed`` combinations."""
        self.reserve((1 << (needed - 1).bit_length()) + _ASKEW)

    def give_back(self) -> None:
        """Whoever needed a lot of room is done."""
        if self.room > _MOST:
            self.reserve(_FEWEST)

    def of(self, width: int) -> NDArray[np.int64]:
        """Two tables of ``width`` numbers for each combination."""
        work = self._work.get(width)
        if work is None:
            work = self._work[width] = np.empty((2, width, self.room), np.int64)
        return work


WORKSPACE = _Workspace()


class CompiledOrder:
    """Combinations over ``streams`` go through ``steps``."""

    def __init__(
        self,
        streams: Sequence[str],
        steps: Sequence[JoinStep],
        leaves: Mapping[str, LeafWindow],
        dated: bool,
    ) -> None:
        """The result is ``dated`` if it leaves the tree."""
        self.steps = steps
        self._dated = dated
        self.given = tuple(streams)
        self.slots = {stream: slot for slot, stream in enumerate(streams)}
        for step in steps:
            for stream in _streams_of(step.target):
                self.slots[stream] = len(self.slots)
        self._leaves = [leaves[stream] for stream in self.slots]
        self._code = np.empty(0, np.int64)
        self._generations: list[int] = []
        # To pack numbers is several times faster than numpy's conversion of a list.
        packing = struct.Struct(f"={kernel.NOW * len(steps) + 2 * len(self.slots)}q")
        self._put_now = packing.pack_into
        self._now_in_bytes = bytearray(packing.size)
        self._now = np.frombuffer(self._now_in_bytes, np.int64)
        self._tally = np.zeros(2 * len(steps), np.int64)
        self._rest = np.zeros(kernel.REST, np.int64)

    def is_whole_for(self, batch: Composites, bounds: Sequence[int]) -> bool:
        """Whether ``batch`` finds all that there is: no target lacks anything.

        What the first one lacks of what ``batch`` asks for is completed. If that was nothing, in
        the whole push so far, it is as good as complete.
        """
        first, *others = self.steps
        if any(step.target.missing is not None for step in others):
            return False
        missing = first.target.missing
        if missing is None:
            return True
        first.complete(batch.ids)
        return missing.gap(bounds[0]) is None

    def run(self, batch: Composites, bounds: Sequence[int]) -> tuple[Composites | None, int]:
        """All combinations of ``batch`` with rows before ``bounds``; how many were the most."""
        now: list[int] = []
        generations = [leaf.rows.generation for leaf in self._leaves]
        for step, bound in zip(self.steps, bounds, strict=True):
            rows, index = step.target.rows, step.index
            generations.append(rows.generation)
            now += (rows.low, rows.head - 1, bound, index is not None and index.narrow, 0, 0)
        now += [leaf.rows.tail for leaf in self._leaves]
        now += [leaf.rows.low for leaf in self._leaves]
        self._put_now(self._now_in_bytes, 0, *now)
        if generations != self._generations:
            self._write_down()
            self._generations = generations
        HELD.give()
        try:
            count, side = self._call(batch)
        except Surplus:
            return self._run_in_halves(batch, bounds)
        tally: list[int] = self._tally.tolist()
        for step, probes, matches in zip(self.steps, tally[::2], tally[1::2], strict=True):
            step.tally(probes, matches)
        most = max(tally)
        made = side[:, :count].copy()
        WORKSPACE.give_back()
        if count == 0:
            return None, most
        found = dict(zip(self.slots, made, strict=False))
        if self._dated:
            return Composites(found, made[-2], made[-1]), most
        return Composites.undated(found), most

    def _run_in_halves(
        self, batch: Composites, bounds: Sequence[int]
    ) -> tuple[Composites | None, int]:
        """:meth:`run` half of ``batch``, and then the other."""
        half = len(batch) // 2
        parts = [
            self.run(each, bounds) for each in (batch.slice(0, half), batch.slice(half, len(batch)))
        ]
        made = [part for part, _ in parts if part is not None]
        WORKING.ask(IN_PARTS_AND_WHOLE * sum(map(len, made)), len(self.slots) + 2)
        most = sum(each for _, each in parts)
        if not made:
            return None, most
        return made[0] if len(made) == 1 else concatenate(made), most

    def _call(self, batch: Composites) -> tuple[int, NDArray[np.int64]]:
        """Run the order, with more room if it turns out to be too little."""
        first, count = batch.first, len(batch)
        space, steps, width = WORKSPACE, len(self.steps), len(self.slots) + 2 * self._dated
        needed = count + 1
        while True:
            if needed > space.room:
                space.make_room(needed)
            work = space.of(width)
            if first < 0 and not self._rest[kernel.REST_STEP]:
                for slot, stream in enumerate(self.given):
                    work[0, slot, :count] = batch.ids[stream]
            made = kernel.run(
                self._code,
                self._now,
                steps,
                first,
                len(self.given),
                count,
                self._dated,
                work,
                space.keys,
                space.found,
                ACTIVE,
                self._tally,
                self._rest,
            )
            if made >= 0:
                return made, work[steps & 1]
            if made >= kernel.FAILED:
                self.test(self._rest, work)
            else:
                needed = kernel.FAILED - made
                if needed > ENOUGH and count > 1:
                    raise Surplus(needed / count)
                WORKING.ask(needed, width + 2)

    def test(self, rest: Int64s, work: NDArray[np.int64]) -> None:
        """The order has come to a target that lacks rows: complete what candidates will ask for. Or
        to a residual predicate: keep those candidates for which it holds.

        If it is tested inside, that has failed for one of them, which is an error.
        """
        number, count, failed, lacking = rest[: kernel.IS_LONG].tolist()
        # If that cannot be computed, the next push begins at the beginning.
        rest[: kernel.IS_LONG] = 0
        if lacking:
            ids = dict(zip(self._known_before(number), work[number & 1], strict=False))
            self.steps[number].complete({stream: rows[:count] for stream, rows in ids.items()})
            rest[kernel.REST_STEP], rest[kernel.REST_COUNT] = number, count
            rest[kernel.REST_LACKS] = -lacking
            return
        step, made = self.steps[number - 1], work[number & 1]
        streams = self._known_before(number)
        if step.program is not None:
            step.holding({s: made[i, failed : failed + 1] for i, s in enumerate(streams)})
            raise InvariantBroken("a predicate failed in a program, but not on columns")
        kept = step.holding({s: made[i, :count] for i, s in enumerate(streams)})
        if len(kept) < count:
            made[: len(streams), : len(kept)] = made[: len(streams), kept]
        rest[kernel.REST_STEP], rest[kernel.REST_COUNT] = number, len(kept)

    def _known_before(self, step: int) -> list[str]:
        """The streams that candidates are of before ``step``, by slot."""
        known = len(self.given) + sum(len(_streams_of(s.target)) for s in self.steps[:step])
        return list(self.slots)[:known]

    @property
    def is_dated(self) -> bool:
        """Whether what comes out has lifespans."""
        return self._dated

    def table(self) -> list[int]:
        """The order as numbers."""
        lists: list[int] = []
        for leaf in self._leaves:
            rows = leaf.rows
            span = -1 if leaf.fixed_span is None else leaf.fixed_span
            lists += (address_of(rows.births), address_of(rows.deaths), span, rows.mask)
        start = kernel.STEP * len(self.steps)
        code: list[int] = []
        for step in self.steps:
            index, mask = step.index, step.target.rows.mask
            if index is None:
                code += (0, 0, 0, mask)
            else:
                code += (address_of(index.heads), address_of(index.entries), index.shift, mask)
            wide = step.wide_checks if index is not None else step.loop
            for part, count in (
                ([n for key in step.left_keys for n in self._key(key)], len(step.left_keys)),
                ([n for c in step.narrow_checks for n in self._check(c)], len(step.narrow_checks)),
                ([n for c in wide for n in self._check(c)], len(wide)),
                (columns := _id_columns(step.target), len(columns)),
            ):
                code += (start + len(lists), count)
                lists += part
            if step.program is None:
                code += (0, kernel.ASKS if step.asks else 0, 0)
            else:
                code += (start + len(lists), len(step.program.parts), step.program.depth)
                lists += step.program.code(self._place_of)
            code += (flags_of(step.target), step.target.missing is not None)
        return [*code, *lists]

    def _write_down(self) -> None:
        """The order as a table of addresses and places."""
        self._code = np.array(self.table(), np.int64)

    def _place_of(self, column: Column) -> tuple[int, int, int, int]:
        """Where a column of a predicate lies, and the slot of its stream."""
        slot = self.slots[column.stream]
        found = self._leaves[slot].payload.columns[column.name]
        assert isinstance(found, RingColumn)
        rows = found.rows
        flags = 0 if found.flags is None else address_of(rows.columns[found.flags])
        return address_of(rows.columns[found.column]), rows.mask, slot, flags

    def _key(self, key: KeyColumn) -> tuple[int, int, int]:
        slot = self.slots[key.stream]
        leaf = self._leaves[slot]
        return address_of(leaf.rows.columns[leaf.key_column(key.position)]), leaf.rows.mask, slot

    def _check(self, check: Condition) -> tuple[int, ...]:
        return (check.operator, *self._key(check.left), *self._key(check.right))


def flags_of(source: Input) -> int:
    """The address of the bytes that tell which rows of a window may be in results; 0: all."""
    flags = source.flags if isinstance(source, LeafWindow) else None
    return 0 if flags is None else address_of(flags)


def _streams_of(target: LeafWindow | CompositeState) -> list[str]:
    if isinstance(target, LeafWindow):
        return [target.stream.alias]
    return list(target.id_columns)


def _id_columns(target: LeafWindow | CompositeState) -> list[int]:
    if isinstance(target, LeafWindow):
        return []
    return [address_of(target.rows.columns[column]) for column in target.id_columns.values()]
