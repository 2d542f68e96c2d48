"""Bytewax: binary joins written by hand on its stateful operator, chained in the order given.

Its own ``join`` and ``join_window`` keep one value per side or need windows that are fixed in time:
https://docs.bytewax.io/stable/api/bytewax/bytewax.operators.html, so ``stateful_batch`` does the
work: per key the tuples of both sides, with the earliest and the latest time in each. One source
reads all files in the order of time, in batches. What can match nothing any more is dropped when
its key is seen again, two batches late, since the sides of a later join are not quite in order.
Keys have to be strings. One worker: more of them would only add exchanges on this input.
"""

import itertools
from dataclasses import dataclass

import bytewax.operators as op
import pyarrow.csv
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.operators import StatefulBatchLogic
from bytewax.testing import TestingSink, run_main
from hand_over import columns, conditions, serve

BATCH = 1_000
"""Rows of each stream at once."""


class Partition(StatefulSourcePartition):
    """All streams: batches of rows, each row (stream, row as a tuple)."""

    def __init__(self, order):
        tables = [
            [
                (stream, row)
                for row in zip(*(c.to_pylist() for c in read(order, stream).columns), strict=True)
            ]
            for stream in order["streams"]
        ]
        self._rows = tables
        self._at = 0

    def next_batch(self):
        at, self._at = self._at, self._at + BATCH
        batch = list(itertools.chain.from_iterable(rows[at : at + BATCH] for rows in self._rows))
        if not batch:
            raise StopIteration
        batch.sort(key=lambda item: item[1][1])
        return batch

    def snapshot(self):
        return self._at


class Files(FixedPartitionedSource):
    def __init__(self, order):
        self._order = order

    def list_parts(self):
        return ["all"]

    def build_part(self, step_id, for_part, resume_state):
        return Partition(self._order)


def read(order, stream):
    return pyarrow.csv.read_csv(order["streams"][stream]["file"])


@dataclass
class Pairs(StatefulBatchLogic):
    """The tuples of one key: (earliest, latest, rows) on each side, and the latest time seen."""

    window: int
    sides: tuple = ()
    seen: tuple = ()

    def __post_init__(self):
        self.sides = ([], [])
        self.seen = [-1, -1]

    def on_batch(self, values):
        window, sides, found = self.window, self.sides, []
        for side, entry in values:
            earliest, latest, rows = entry
            for other_earliest, other_latest, other_rows in sides[1 - side]:
                first = earliest if earliest < other_earliest else other_earliest
                last = latest if latest > other_latest else other_latest
                if last - first <= window:
                    found.append(
                        (first, last, rows + other_rows if side == 0 else other_rows + rows)
                    )
            sides[side].append(entry)
            if latest > self.seen[side]:
                self.seen[side] = latest
        for side in (0, 1):
            kept, passed = sides[side], self.seen[1 - side] - window - 2 * BATCH
            if kept and kept[0][0] < passed:
                sides[side][:] = [entry for entry in kept if entry[0] >= passed]
        return found, not (sides[0] or sides[1])

    def snapshot(self):
        return (list(self.sides[0]), list(self.sides[1]))


def join(order):
    flow = Dataflow("join")
    rows = op.input("rows", flow, Files(order))
    places = {
        stream: {column: at for at, column in enumerate(columns(order, stream))}
        for stream in order["streams"]
    }

    def of(stream):
        def single(batch):
            return [(row[1], row[1], (row,)) for name, row in batch if name == stream]

        return op.flat_map_batch(f"only-{stream}", rows, single)

    first, *others = order["sequence"]
    joined, together = of(first), [first]
    for stream in others:
        agree = conditions(order, stream, together)
        left = [(together.index(o), places[o][c]) for o, c in agree]
        right = [(0, places[stream][c]) for _, c in agree]
        sides = [
            op.map(f"key-{side}-{stream}", entries, keyed(side, key))
            for side, entries, key in ((0, joined, left), (1, of(stream), right))
        ]
        merged = op.merge(f"merge-{stream}", *sides)
        matched = op.stateful_batch(f"join-{stream}", merged, lambda resume: Pairs(order["window"]))
        joined = op.map(f"value-{stream}", matched, lambda item: item[1])
        together.append(stream)

    told = {"results": 0, "sums": dict.fromkeys(order["streams"], 0)}

    def count(batch):
        told["results"] += len(batch)
        for at, stream in enumerate(together):
            told["sums"][stream] += sum(entry[2][at][0] for entry in batch)
        return ()

    op.output("out", op.flat_map_batch("count", joined, count), TestingSink([]))
    run_main(flow)
    return told


def keyed(side, key):
    if len(key) == 1:
        ((number, place),) = key
        return lambda entry: (str(entry[2][number][place]), (side, entry))
    return lambda entry: (
        " ".join([str(entry[2][number][place]) for number, place in key]),
        (side, entry),
    )


serve(join)
