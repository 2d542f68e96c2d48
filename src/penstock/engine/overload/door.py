"""The door: rows that are not taken in at all, when taking them in is what is too dear.

A row costs something before it probes: it is checked, encoded, put into its window, found by
others, let go. Where that alone fills a budget, or where a row is dear beside what it leads to, the
best use of the CPU is to take in fewer rows (:mod:`penstock.overload.lifespan_greedy` weighs that
against dropping probes). The shares that an allocation has found hold from the next push on, since
when it is made the rows of its own push are in already.

Rows are drawn at random, all with the same chance, so what comes in stands for what does not
(:mod:`penstock.engine.overload.row_weights`). The row with the newest event time is always taken
in: time goes on as if all had been.

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
        self.all_left_out: Counter[str] = Counter()
        """The same since the start."""

    @property
    def streams(self) -> frozenset[str]:
        """The aliases of the streams that have a door."""
        return frozenset(alias for alias, _ in self._streams.values())

    def open(self, shares: Mapping[str, float]) -> None:
        """From the next push on, take in these shares."""
        self.shares = {s: max(LEAST, share) for s, share in shares.items() if share < _ALL}

    def by_stream(self) -> dict[str, int]:
        """Rows of the push at hand that were not taken in, by stream."""
        return {self._streams[source][0]: count for source, count in self.left_out.items()}

    def admit(self, batches: Mapping[str, Any], seed: Sequence[int]) -> Mapping[str, Any]:
        """What is taken in of ``batches``."""
        self.left_out, self.weights = {}, {}
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
            kept = chance.random(rows.num_rows, np.float32) < share
            kept[_newest(rows.column(event_time))] = True
            taken[source] = rows.filter(pa.array(kept))
            left_out = rows.num_rows - int(np.count_nonzero(kept))
            if left_out:
                self.left_out[source] = left_out
                self.weights[alias] = rows.num_rows / (rows.num_rows - left_out)
        return taken


def _newest(times: pa.Array | pa.ChunkedArray) -> int:
    """Where the newest of the ``times`` stands, which are timestamps, numbers, or texts."""
    if times.null_count or not pa.types.is_primitive(times.type):
        return max(0, int(pc.index(times, pc.max(times)).as_py()))
    return int(np.argmax(times.to_numpy().view(np.int64)))
