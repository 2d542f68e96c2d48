"""A probe order as a table of addresses and places, for the compiled push.

Step by step, a probe order costs some twenty calls into compiled code and as many arrays, however
few rows there are. Here the order is written down once (:mod:`penstock.kernels.probe_order`), anew
whenever a ring has moved, and a push fills in what has changed: where rows begin and end. Answers
and what is counted are those of the steps. Residual predicates on numbers and times are part of the
table; at others the call ends, their columns are tested by Arrow's kernels, and it goes on with
what is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.engine.join.join_step import Input, JoinStep
from penstock.engine.state.address import address_of
from penstock.engine.state.composite_state import CompositeState
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.payload import RingColumn
from penstock.errors import InvariantBroken
from penstock.kernels import probe_order as kernel
from penstock.query.expression import Column
from penstock.values.wiring import Condition, KeyColumn

Int64s = NDArray[np.int64]


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

    def test(self, rest: Int64s, work: NDArray[np.int64]) -> None:
        """The order has come to a target that lacks rows: complete what candidates will look for.
        Or to a residual predicate: keep those candidates for which it holds.

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

    def table(self, dates: Mapping[str, tuple[int, ...]]) -> list[int]:
        """The order as numbers; ``dates`` are the :func:`dates_of` windows."""
        lists = [number for stream in self.slots for number in dates[stream]]
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

    def _place_of(self, column: Column) -> tuple[int, int, int, int]:
        """Address of a column of a predicate, and the slot of its stream."""
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


def dates_of(leaf: LeafWindow) -> tuple[int, ...]:
    """Addresses of births and deaths of a window, and the span of its rows if that is known."""
    rows, span = leaf.rows, leaf.fixed_span
    return address_of(rows.births), address_of(rows.deaths), -1 if span is None else span, rows.mask


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
