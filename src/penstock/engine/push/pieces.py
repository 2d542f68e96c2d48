"""A push whose answer leaves in pieces, for callers who take an iterator.

A frequent key makes more results than there is memory for, and a push that would is refused
(:mod:`penstock.engine.state.working_memory`). But answers do not depend on how rows are divided
into pushes. So whoever takes the answer bit by bit can have all of it: the rows are pushed at once,
and if that is refused, it has changed nothing, and half of them are pushed first, in the order of
event time over all streams, so that no row of the second half is late because of the first. What is
refused has made no more than a piece, so that all attempts together cost about one push more.

Rows of one instant are divided as they come, which is right where results are final as soon as they
are made. Answers that *do* depend on where a push ends (RSTREAM, groups, ROWS windows, and a budget
per push) are made in one push and cut into pieces afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.push.intake import Batch, Intake, as_batch
from penstock.engine.state.working_memory import WORKING
from penstock.errors import TooManyResults
from penstock.kernels.held_signals import uninterrupted

Int64s = NDArray[np.int64]
Push = Callable[[Mapping[str, Batch], bool], pa.Table]
"""Pushes some rows; whether they are the last ones of the push that was asked for."""

RESULTS_OF_A_PIECE = 1 << 17
"""Results that leave at once, unless somebody asks for more or less: some megabytes."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows that are pushed at once, if that is possible."""

    batches: Mapping[str, Batch]
    is_last: bool
    is_divisible: bool = True


class Pieces(Iterator[pa.Table]):
    """The results of a push, ``rows`` at a time.

    Rows are taken in as the pieces are asked for. If asking for one fails or is interrupted, it has
    changed nothing and can be asked for again.
    """

    def __init__(
        self,
        batches: Mapping[str, Any],
        rows: int,
        push: Push,
        intake: Intake,
        divides: bool,
        divides_instants: bool,
    ) -> None:
        self._rows = rows
        self._push = push
        self._intake = intake
        self._divides_instants = divides_instants
        self._parts = [_Part(batches, True, divides)]
        """Batches that are not pushed yet, the first rows last."""
        self._table: pa.Table | None = None
        """Results that have not left yet."""

    def __iter__(self) -> Pieces:
        return self

    def __next__(self) -> pa.Table:
        while self._table is None:
            if not self._parts:
                raise StopIteration
            self._go_on()
        return self._take()

    def _take(self) -> pa.Table:
        assert self._table is not None
        piece, rest = self._table.slice(0, self._rows), self._table.slice(self._rows)
        self._table = rest if len(rest) else None
        return piece

    @uninterrupted
    def _go_on(self) -> None:
        """Push the next rows, or divide them."""
        part = self._parts[-1]
        WORKING.at_once = self._rows if part.is_divisible else 0
        try:
            table = self._push(part.batches, part.is_last)
        except TooManyResults:
            if not part.is_divisible:
                raise
            self._parts[-1:] = self._halves(part) or [replace(part, is_divisible=False)]
            return
        finally:
            WORKING.at_once = 0
        self._parts.pop()
        self._table = table if len(table) else None

    def _halves(self, part: _Part) -> list[_Part]:
        """The later and the earlier half of ``part``; nothing if it cannot be divided."""
        moving = {
            name: self._intake.event_times(name, batch)
            for name, batch in part.batches.items()
            if not self._intake.sources[name].is_static
        }
        times = np.concatenate([*moving.values(), np.empty(0, np.int64)])
        if len(times) < 2:
            return []
        earliest, middle = times.min(), np.partition(times, len(times) // 2)[len(times) // 2]
        if middle > earliest:
            are_first = {name: each < middle for name, each in moving.items()}
        elif times.max() > earliest:
            are_first = {name: each == earliest for name, each in moving.items()}
        elif self._divides_instants:
            are_first = _half_of_all(moving)
        else:
            return []
        return self._divided(part, are_first)

    def _divided(self, part: _Part, are_first: Mapping[str, NDArray[np.bool_]]) -> list[_Part]:
        """Static relations are in the first half."""
        first, second = dict(part.batches), {}
        for name, chosen in are_first.items():
            batch = as_batch(name, part.batches[name])
            first[name] = batch.filter(pa.array(chosen))
            second[name] = batch.filter(pa.array(~chosen))
        return [_Part(second, part.is_last), _Part(first, False)]


def _half_of_all(moving: Mapping[str, Int64s]) -> dict[str, NDArray[np.bool_]]:
    """The first half of all rows, stream by stream."""
    left = sum(map(len, moving.values())) // 2
    chosen = {}
    for name, each in moving.items():
        chosen[name] = np.arange(len(each)) < left
        left -= min(left, len(each))
    return chosen
