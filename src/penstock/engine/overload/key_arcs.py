"""Rows chosen by their keys: all results of some keys, instead of some results of all keys.

If a share s of the rows of each of n streams is drawn at random, a result is left with the chance
s^n: its rows have to be drawn together, and nothing sees to that. If rows are chosen by key, it
does not take luck: those that belong together are taken in together, or not at all. Of a class of
equal columns (A.x = B.x = C.x) the keys are taken whose hashes lie in an arc of length p of a
circle. Then p of the rows of these streams are taken in, and p of their results are made, where n
draws would leave p^n. A stream with columns in k classes gives up all but p^k of its rows, and a
query with K classes has p^K of its results. (Universe or correlated sampling: Vengerov, Menck, Zaït
and Chakkappen, *Join size estimation subject to filter conditions*, VLDB 2015; Kandula et al.,
*Quickr*, SIGMOD 2016.)

The arc moves on, a turn in 64 windows, so that every key has its time; rows that come a window
apart then miss each other with the chance (1/64)/p, which is small unless p is. The arcs of all
classes are alike, and so are their hashes on every machine; classes have factors of their own, so
that a row whose columns are equal is not taken for one of both classes or none.

What the results stand for is known exactly (:mod:`penstock.engine.overload.row_weights`): the rows
of a result were all taken in if its keys lie in all their arcs, in that part of the circle which
these have in common.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.plan.stream_set import StreamSet
from penstock.query.equality_classes import equality_classes
from penstock.query.expression import Column
from penstock.query.join_graph import EquiPredicate, JoinGraph
from penstock.values.value_hash import value_hashes

TURN = 64
"""Windows in which the arc goes round."""
LONGEST = 1.0 - 2.0 / TURN
"""The length of an arc from which on all keys are taken: a longer one could meet its own tail from
a window before."""
_CIRCLE = 1 << 64
_FACTORS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)
"""Odd numbers that turn the hashes of each class its own way; more classes use them again."""
_NEARLY = 1e-4


def length_for(part: float, bill: Mapping[int, float]) -> float:
    """The length of the arcs with which this ``part`` of a ``bill`` of work is done: by Newton from
    above, since work is convex in the length."""
    fits = part * sum(bill.values())
    length = 1.0
    while True:
        work = sum([each * length**choices for choices, each in bill.items()])
        slope = sum([each * choices * length ** (choices - 1) for choices, each in bill.items()])
        if work <= fits * (1.0 + _NEARLY) or slope <= 0.0:
            return length
        length = max(0.0, length - (work - fits) / slope)


@dataclass(frozen=True, slots=True)
class Arc:
    """A part of the circle of hashes, in turns."""

    start: float
    """Where it begins, whole turns included."""
    length: float

    @property
    def end(self) -> float:
        return self.start + self.length

    @property
    def on_circle(self) -> tuple[int, int]:
        """Where it begins and how long it is, in parts of 2^64."""
        start = int(self.start % 1.0 * _CIRCLE) % _CIRCLE
        return start, min(int(self.length * _CIRCLE), _CIRCLE - 1)


class KeyArcs:
    """The key columns of ``streams`` by which rows that belong together are found."""

    def __init__(self, graph: JoinGraph, streams: Collection[str]) -> None:
        pairs = [
            (predicate.left, predicate.right)
            for predicate in graph.predicates
            if isinstance(predicate, EquiPredicate)
            and isinstance(predicate.left, Column)
            and isinstance(predicate.right, Column)
        ]
        self.classes: list[dict[str, Column]] = []
        """Of each class that is used, the column of each stream."""
        self._types: dict[Column, pa.DataType] = {}
        for members in equality_classes(pairs):
            found: dict[str, Column] = {}
            for member in members:
                if member.stream in streams:
                    found.setdefault(member.stream, member)
                    schema = graph.stream(member.stream).schema
                    self._types[member] = schema.field(member.name).type
            if len(found) > 1 and len({self._types[column] for column in found.values()}) == 1:
                self.classes.append(found)
        self._columns: dict[str, list[tuple[int, Column]]] = {}
        for number, found in enumerate(self.classes):
            for stream, column in found.items():
                self._columns.setdefault(stream, []).append((number, column))

    def has(self, stream: str) -> bool:
        """Whether rows of ``stream`` are chosen by key."""
        return stream in self._columns

    def columns(self, stream: str) -> list[tuple[str, int]]:
        """The columns by which rows of ``stream`` are chosen, and the factors of their classes."""
        return [
            (column.name, _FACTORS[number % len(_FACTORS)])
            for number, column in self._columns.get(stream, ())
        ]

    def choices(self, streams: Collection[str]) -> int:
        """How many independent choices have to favour rows of all of ``streams``: one for each
        class that they have a key of, and one for each stream that has none."""
        keys = sum([not each.keys().isdisjoint(streams) for each in self.classes])
        return keys + sum([stream not in self._columns for stream in streams])

    def drift(self, longer: float) -> float:
        """How many times as much new rows find once the rows in windows were chosen by arcs so many
        times as long, as they themselves are.

        What a row finds has keys of other classes too, by which it was not chosen; and where the
        arcs were shorter, all keys had to lie in these.
        """
        every = self.choices(self._columns)
        found = [
            longer ** (every if longer > 1 else every - len(own)) for own in self._columns.values()
        ]
        return sum(found) / len(found)

    def bill(self, work: Mapping[StreamSet, float]) -> dict[int, float]:
        """``work``, which is given by the streams whose rows have met for it, by how many choices
        have to favour these; others than those chosen by key are drawn with the same chance."""
        bill: dict[int, float] = {}
        for streams, each in work.items():
            choices = self.choices(streams)
            bill[choices] = bill.get(choices, 0.0) + each
        return bill

    def chosen(
        self, stream: str, rows: pa.Table | pa.RecordBatch, arc: Arc
    ) -> NDArray[np.bool_] | None:
        """Which of the ``rows`` of ``stream`` have all their keys in the ``arc``; None if that
        cannot be told, and the mistake is told where rows are checked."""
        inside: NDArray[np.bool_] | None = None
        start, length = arc.on_circle
        for number, column in self._columns[stream]:
            if column.name not in rows.schema.names:
                return None
            values = rows.column(column.name)
            if isinstance(values, pa.ChunkedArray):
                values = values.combine_chunks()
            try:
                if values.type != self._types[column]:
                    values = values.cast(self._types[column])
                hashes, _ = value_hashes(values)
            except pa.ArrowException:
                return None
            hashes = hashes * np.uint64(_FACTORS[number % len(_FACTORS)]) - np.uint64(start)
            own = hashes < np.uint64(length)
            inside = own if inside is None else inside & own
        return inside
