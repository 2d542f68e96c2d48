"""The door: rows that are not taken in at all, when taking them in is what is too dear.

A row costs something before it probes: it is checked, encoded, put into its window, found by
others, let go. Where that alone fills a budget, or where a row is dear beside what it leads to, the
best use of the CPU is to take in fewer rows (:mod:`penstock.overload.lifespan_greedy` weighs that
against dropping probes). The shares that an allocation has found hold from the next push on, since
when it is made the rows of its own push are in already.

Rows are chosen by key where streams have keys in common
(:mod:`penstock.engine.overload.key_arcs`), so that those which make results together are taken in
together; or they are drawn at random, all with the same chance. In both cases what comes in stands
for what does not (:mod:`penstock.engine.overload.row_weights`). The row with the newest event time
is always taken in: time goes on as if all had been.

Where keys are numbers that are compared as they lie, the look of the compiled push chooses
(:mod:`penstock.kernels.door`), and what is left out costs that and nothing else. Other rows are
filtered before the push.

A door needs that a row less means results less and nothing else. So there is none

- for static relations;
- in a query with ROWS windows, where a row that is missing keeps an older one alive;
- where a source is read more than once: after EXCEPT a row that is missing is a result too many,
  and the rows of a self-join are not drawn apart.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.engine.overload.key_arcs import LONGEST, Arc, KeyArcs
from penstock.kernels.door import draw
from penstock.query.join_graph import JoinGraph

LEAST_SHARE_TAKEN = 0.01
"""The least share of rows that is taken in: what is never seen cannot be estimated."""
_ALL = 0.99
"""A share from which on all rows are taken in."""


_WORD = (1 << 64) - 1
_STEP, _OTHER = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03
"""Odd numbers: pushes and sources are drawn apart."""


class Selection(NamedTuple):
    """How rows of a source are chosen."""

    start: int
    """Where the arc of hashes begins, or the seed of draws."""
    limit: int
    """How long the arc is, or the share that is drawn, of 2^64."""
    keys: tuple[tuple[str, int], ...] = ()
    """Columns and the factors of their classes; none if rows are drawn."""


class Door:
    """Takes in a part of the rows of each stream of the first block of ``graph``."""

    def __init__(self, graph: JoinGraph) -> None:
        read = Counter(stream.source for block in graph.blocks for stream in block.streams)
        self._streams = {
            stream.source: (stream.alias, stream.event_time)
            for stream in graph.streams
            if not graph.by_rows
            and not stream.is_static
            and stream.event_time is not None
            and read[stream.source] == 1
        }
        self.shares: dict[str, float] = {}
        """Of the rows of each stream, the share that is taken in; not there if all are."""
        self.left_out: dict[str, int] = {}
        """Rows of the push at hand that were not taken in, by source."""
        self.weights: dict[str, float] = {}
        """The rows of each stream that one which was taken in stands for, in the push at hand; not
        there if all were."""
        self.keys = KeyArcs(graph, self.streams)
        """By which columns rows can be chosen that belong together."""
        self.length: float | None = None
        """Of the keys of each class, the share whose rows are taken in; None if rows are drawn."""
        self.arcs: dict[str, Arc] = {}
        """Where the keys lie of the rows of each stream that were taken in, in the push at hand;
        not there if rows were not chosen by key."""
        self.pending: dict[str, Selection] = {}
        """How rows of the push at hand are to be chosen, of sources that are still whole."""
        self._coming: dict[str, Arc] = {}
        """The arcs of streams in :attr:`pending`."""
        self._others: set[str] = set()
        """Sources from which somebody else can choose."""
        self.all_left_out: Counter[str] = Counter()
        """Rows that were not taken in since the start, by source."""
        self._drawn: dict[str, tuple[int, int]] = {}
        """Rows of streams that were drawn from since the last look, and those left out of them."""

    @property
    def streams(self) -> tuple[str, ...]:
        """The aliases of the streams that have a door, always in the same order: sums over them
        decide how far it opens."""
        return tuple(alias for alias, _ in self._streams.values())

    def kept(self, streams: Collection[str]) -> float:
        """The part of results with rows of all ``streams`` that the door as it is open keeps."""
        if self.length is not None:
            return self.length ** self.keys.choices(streams)
        return math.prod(self.shares.values())

    def open(self, shares: Mapping[str, float]) -> None:
        """From the next push on, draw these shares of rows."""
        self.length = None
        self.shares = {
            s: max(LEAST_SHARE_TAKEN, share) for s, share in shares.items() if share < _ALL
        }

    def open_by_key(self, length: float) -> None:
        """From the next push on, take in the rows whose keys lie in arcs of this ``length``; where
        streams have no keys in common, as many are drawn."""
        length = max(LEAST_SHARE_TAKEN, length)
        self.open({each: length ** self.keys.choices((each,)) for each in self.streams})
        self.length = length if length < LONGEST else None

    def leave_to(self, can_choose: Callable[[str, Sequence[str]], bool]) -> None:
        """From now on, do not filter the rows of sources from which somebody else can choose."""
        for source, (alias, _) in self._streams.items():
            if can_choose(source, [name for name, _ in self.keys.columns(alias)]):
                self._others.add(source)

    def by_stream(self) -> dict[str, int]:
        """Rows of the push at hand that were not taken in, by stream."""
        return {self._streams[source][0]: count for source, count in self.left_out.items()}

    def admit(self, batches: Mapping[str, Any], seed: int, turn: float = 0.0) -> Mapping[str, Any]:
        """What is taken in of ``batches``, if arcs begin at ``turn``; of some sources, somebody
        else is going to choose (:attr:`pending`)."""
        self.left_out, self.weights, self.arcs, self.pending = {}, {}, {}, {}
        if not self.shares:
            return batches
        arc = None if self.length is None else Arc(turn, self.length)
        for number, (source, (alias, _)) in enumerate(self._streams.items()):
            share = self.shares.get(alias, 1.0)
            if share >= 1 or source not in batches:
                continue
            if arc is not None and self.keys.has(alias):
                self.pending[source] = Selection(*arc.on_circle, tuple(self.keys.columns(alias)))
                self._coming[alias] = arc
            else:
                own = _mixed(seed * _STEP + number * _OTHER)
                self.pending[source] = Selection(own, min(_WORD, int(share * (1 << 64))))
        return self._filtered(batches, self.pending.keys() - self._others)

    def forget_drawn(self) -> None:
        """A look begins, or pushes begin to pass."""
        self._drawn = {}

    @property
    def pooled(self) -> dict[str, float]:
        """The weights of rows that were drawn since then."""
        return {s: all_ / (all_ - left) for s, (all_, left) in self._drawn.items() if all_ > left}

    @property
    def coming(self) -> tuple[dict[str, float], dict[str, Arc]]:
        """About the weights of rows of each stream that are drawn in the push at hand, and the arcs
        of those that are chosen by key."""
        drawn = {}
        arcs = {}
        for source, selection in self.pending.items():
            alias, _ = self._streams[source]
            if selection.keys:
                arcs[alias] = self._coming[alias]
            else:
                drawn[alias] = 1.0 / self.shares[alias]
        return drawn, arcs

    def admit_rest(self, batches: Mapping[str, Any]) -> Mapping[str, Any]:
        """The same of sources from which nobody else is going to choose after all."""
        return self._filtered(batches, self.pending.keys()) if self.pending else batches

    def note(self, source: str, count: int, left_out: int) -> None:
        """Of ``count`` rows of ``source`` so many were left out, as :attr:`pending` has it."""
        alias, _ = self._streams[source]
        if left_out:
            self.left_out[source] = left_out
        if self.pending[source].keys:
            self.arcs[alias] = self._coming[alias]
            return
        if left_out:
            self.weights[alias] = count / (count - left_out)
        there, outside = self._drawn.get(alias, (0, 0))
        self._drawn[alias] = there + count, outside + left_out

    def _filtered(self, batches: Mapping[str, Any], sources: Collection[str]) -> Mapping[str, Any]:
        """The ``batches``, of ``sources`` without what is left out."""
        taken = dict(batches)
        for source in sorted(sources):
            rows = batches[source]
            alias, event_time = self._streams[source]
            kept = None
            is_given = isinstance(rows, pa.Table | pa.RecordBatch) and rows.num_rows > 0
            if is_given and event_time in rows.schema.names:
                kept = self._chosen(alias, rows, self.pending[source])
            if kept is not None:
                kept[_newest(rows.column(event_time))] = True
                taken[source] = rows.filter(pa.array(kept))
                self.note(source, rows.num_rows, rows.num_rows - len(taken[source]))
            del self.pending[source]
        return taken

    def _chosen(
        self, alias: str, rows: pa.Table | pa.RecordBatch, selection: Selection
    ) -> NDArray[np.bool_] | None:
        """Which ``rows`` come in; None if that cannot be told."""
        if selection.keys:
            return self.keys.chosen(alias, rows, self._coming[alias])
        drawn = np.empty(rows.num_rows, np.bool_)
        draw(np.uint64(selection.start), np.uint64(selection.limit), drawn)
        return drawn


def _mixed(number: int) -> int:
    """A seed from a ``number``: rows are drawn by sums of seeds and places, so seeds of pushes that
    follow one another must be far apart."""
    h = number & _WORD
    h = ((h ^ h >> 30) * 0xBF58476D1CE4E5B9) & _WORD
    h = ((h ^ h >> 27) * 0x94D049BB133111EB) & _WORD
    return h ^ h >> 31


def _newest(times: pa.Array | pa.ChunkedArray) -> int:
    """Where the newest of the ``times`` stands, which are timestamps, numbers, or texts."""
    if times.null_count or not pa.types.is_primitive(times.type):
        return max(0, int(pc.index(times, pc.max(times)).as_py()))
    return int(np.argmax(times.to_numpy().view(np.int64)))
