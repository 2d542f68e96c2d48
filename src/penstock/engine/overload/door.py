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

A door needs that a row less means results less and nothing else. So there is none

- for static relations;
- in a query with ROWS windows, where a row that is missing keeps an older one alive;
- where a source is read more than once: after EXCEPT a row that is missing is a result too many,
  and the rows of a self-join are not drawn apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.overload.key_arcs import LONGEST, Arc, KeyArcs
from penstock.query.join_graph import JoinGraph

LEAST = 0.01
"""The least share of rows that is taken in: what is never seen cannot be estimated."""
_ALL = 0.99
"""A share from which on all rows are taken in."""


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
        self.all_left_out: Counter[str] = Counter()
        """The same since the start."""

    @property
    def streams(self) -> frozenset[str]:
        """The aliases of the streams that have a door."""
        return frozenset(alias for alias, _ in self._streams.values())

    def open(self, shares: Mapping[str, float]) -> None:
        """From the next push on, draw these shares of rows."""
        self.length = None
        self.shares = {s: max(LEAST, share) for s, share in shares.items() if share < _ALL}

    def open_by_key(self, length: float) -> None:
        """From the next push on, take in the rows whose keys lie in arcs of this ``length``; where
        streams have no keys in common, as many are drawn."""
        length = max(LEAST, length)
        self.open({each: length ** self.keys.choices((each,)) for each in self.streams})
        self.length = length if length < LONGEST else None

    def by_stream(self) -> dict[str, int]:
        """Rows of the push at hand that were not taken in, by stream."""
        return {self._streams[source][0]: count for source, count in self.left_out.items()}

    def admit(
        self, batches: Mapping[str, Any], seed: Sequence[int], turn: float = 0.0
    ) -> Mapping[str, Any]:
        """What is taken in of ``batches``, if arcs begin at ``turn``."""
        self.left_out, self.weights, self.arcs = {}, {}, {}
        if not self.shares:
            return batches
        taken = dict(batches)
        chance = np.random.default_rng(seed)
        for source, (alias, event_time) in self._streams.items():
            rows = batches.get(source)
            share = self.shares.get(alias, 1.0)
            if share >= 1 or not isinstance(rows, pa.Table | pa.RecordBatch) or not rows.num_rows:
                continue
            if event_time not in rows.schema.names:
                continue  # The mistake is told where rows are checked.
            if self.length is not None and self.keys.has(alias):
                arc = Arc(turn, self.length)
                kept = self.keys.chosen(alias, rows, arc)
                if kept is None:
                    continue
                self.arcs[alias] = arc
            else:
                kept = chance.random(rows.num_rows, np.float32) < share
            kept[_newest(rows.column(event_time))] = True
            taken[source] = rows.filter(pa.array(kept))
            left_out = rows.num_rows - int(np.count_nonzero(kept))
            if left_out:
                self.left_out[source] = left_out
            if left_out and alias not in self.arcs:
                self.weights[alias] = rows.num_rows / (rows.num_rows - left_out)
        return taken


def _newest(times: pa.Array | pa.ChunkedArray) -> int:
    """Where the newest of the ``times`` stands, which are timestamps, numbers, or texts."""
    if times.null_count or not pa.types.is_primitive(times.type):
        return max(0, int(pc.index(times, pc.max(times)).as_py()))
    return int(np.argmax(times.to_numpy().view(np.int64)))
