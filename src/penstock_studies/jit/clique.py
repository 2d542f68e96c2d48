"""The data of section VI: N streams, an equality between every two of them, uniform values.

Every stream has a column for each of the others. Tuples arrive at random (exponential gaps), with
a rate per stream; values are uniform in 1 to a largest one that may differ from stream to stream.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa

import penstock

Row = dict[str, int]


@dataclass(frozen=True, slots=True)
class Arrival:
    """A tuple that arrives at ``time`` (milliseconds)."""

    stream: str
    row: Row
    time: int


def clique_query(
    count: int, window: int, links: Sequence[tuple[str, str]] | None = None
) -> penstock.JoinGraph:
    """``count`` streams A, B, … with a ``window`` in milliseconds; by default all are linked."""
    names = string.ascii_uppercase[:count]
    links = list(combinations(names, 2)) if links is None else links
    columns = {name: [column(*pair) for pair in links if name in pair] for name in names}
    select = ", ".join(f"{name}.id AS {name.lower()}" for name in names)
    windows = ", ".join(f"{name} [RANGE {window} MILLISECONDS]" for name in names)
    where = " AND ".join(f"{a}.{column(a, b)} = {b}.{column(a, b)}" for a, b in links)
    return penstock.parse(
        f"SELECT {select} FROM {windows} WHERE {where}",
        schemas={
            name: pa.schema([(each, pa.int64()) for each in ("id", "ts", *columns[name])])
            for name in names
        },
        event_time="ts",
    )


def column(one: str, other: str) -> str:
    """The column that links two streams; it has the same name in both."""
    return "".join(sorted((one, other))).lower()


def arrivals(
    query: penstock.JoinGraph, rate: float, seconds: float, largest: Mapping[str, int], seed: int
) -> list[Arrival]:
    """Tuples of all streams for ``seconds``, in order; ``rate`` is per stream and second."""
    chance = np.random.default_rng(seed)
    found = []
    for stream in query.streams:
        names = [n for n in stream.schema.names if n not in ("id", "ts")]
        count = chance.poisson(rate * seconds)
        times = np.sort(chance.integers(0, int(1000 * seconds), count)).tolist()
        values = chance.integers(1, largest[stream.alias] + 1, (count, len(names))).tolist()
        found += [
            Arrival(stream.alias, dict(zip(names, row, strict=True)), time)
            for time, row in zip(times, values, strict=True)
        ]
    return sorted(found, key=lambda each: each.time)


def in_batches(
    query: penstock.JoinGraph, tuples: Sequence[Arrival], milliseconds: int
) -> Iterator[dict[str, pa.Table]]:
    """``tuples`` as pushes of so many ``milliseconds`` each; ids as :class:`LiteralJit` counts."""
    numbers = dict.fromkeys(query.aliases, 0)
    held: dict[str, list[Row]] = {}
    end = milliseconds
    for each in tuples:
        if each.time >= end:
            if held:
                yield _tables(query, held)
            held = {}
            end = (each.time // milliseconds + 1) * milliseconds
        numbers[each.stream] += 1
        row = {**each.row, "id": numbers[each.stream], "ts": each.time}
        held.setdefault(each.stream, []).append(row)
    if held:
        yield _tables(query, held)


def _tables(query: penstock.JoinGraph, held: Mapping[str, list[Row]]) -> dict[str, pa.Table]:
    return {
        name: pa.Table.from_pylist(rows, schema=query.stream(name).schema)
        for name, rows in held.items()
    }
