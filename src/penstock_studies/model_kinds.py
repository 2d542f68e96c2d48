"""Kinds of work that the cost model is checked on, each with random queries that are full of it.

All are random graphs of three to five streams with an equality on a column of its own for each
link, uniform values, and something that is the kind's own: keys that are texts, a comparison or a
band instead of one equality, an expression beside one, keys that exclude each other, groups above
the join, a wide answer, small pushes, demand feedback.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import penstock
from penstock.planning.statistics import Statistics
from penstock_studies.random_graph import Pair, random_links
from penstock_studies.stream_data import Batches, uniform_batches

PUSHES = 4
"""Per second of event time."""
MODULUS = 20
"""One pair in so many passes the expression of the kind called residual."""
PAYLOAD = 6
"""Further columns of the kind called output."""


@dataclass(frozen=True)
class Kind:
    """What the queries of a kind have."""

    name: str
    fastest: float = 4.5
    """The largest rate, as a power of ten: nested loops cannot do many tuples per second."""
    pushes: int = PUSHES
    text: bool = False
    first: str = "{a}.{c} = {b}.{c}"
    """The predicate of the first link, over the streams a and b with the column c."""
    first_share: Callable[[int], float] = lambda values: 1 / values
    """The share of pairs that pass it, by the number of values of the column."""
    select: str | None = None
    group: str = ""
    feedback: str = "off"
    excludes: bool = False
    """Whether rows of a stream with two links have partners on one of them and none on the other:
    pairs of streams match as often as is told, and three never do."""


def _band(values: int) -> float:
    return 3 / values


KINDS = (
    Kind("integers"),
    Kind("strings", text=True),
    Kind("residuals", first="{a}.{c} = {b}.{c} AND ({a}.v + {b}.v) % 20 = 0",
         first_share=lambda values: 1 / (MODULUS * values)),
    Kind("correlated", excludes=True),
    Kind("bands", fastest=3.2, first="{a}.{c} BETWEEN {b}.{c} - 1 AND {b}.{c} + 1",
         first_share=_band),
    Kind("theta", fastest=3.2, first="{a}.{c} * 50 < {b}.{c}", first_share=lambda values: 0.01),
    Kind("aggregates", select="A.g, COUNT(*) AS n, SUM(B.id) AS s", group=" GROUP BY A.g"),
    Kind("output", select=", ".join(f"{s}.p{i} AS {s.lower()}{i}" for s in "ABC"
                                    for i in range(PAYLOAD // 3 + 1))),
    Kind("small pushes", fastest=3.0, pushes=50),
    Kind("feedback", feedback="jit"),
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A random query of a kind, what is known of its streams, and its data."""

    query: penstock.JoinGraph
    statistics: Statistics
    window: int
    """Seconds."""
    batches: Callable[[int], Iterator[Batches]]
    """Batches of so many seconds of event time."""


def random_case(kind: Kind, seed: int, number: int) -> Case:
    """Case ``number`` of ``kind``."""
    chance = random.Random(f"{seed} {kind.name} {number}")
    names = tuple(string.ascii_uppercase[: chance.randint(3, 5)])
    rates = {
        name: float(round(10 ** chance.uniform(kind.fastest - 2, kind.fastest))) for name in names
    }
    window = chance.randint(2, 6)
    values: dict[Pair, int] = {}
    for a, b in random_links(chance, names, more=0.15):
        # Between 0.1 and 10 matches for a tuple of the slower stream.
        matches = 10 ** chance.uniform(-1, 1)
        values[a, b] = max(2, round(max(rates[a], rates[b]) * window / matches))
    first = next(iter(values))
    shares = {pair: 1 / count for pair, count in values.items()}
    shares[first] = min(1.0, kind.first_share(values[first]))
    torn = _torn(tuple(values)) if kind.excludes else None
    if torn is not None:
        for pair in values:
            if _column(pair) in torn[1:]:
                shares[pair] /= 2
    distinct = {
        (stream, _column(pair)): float(count) for pair, count in values.items() for stream in pair
    }
    statistics = Statistics(rates, shares, distinct=distinct, pushes=kind.pushes)

    def batches(seconds: int) -> Iterator[Batches]:
        for batch in uniform_batches(rates, values, seconds, number, kind.pushes):
            if torn is not None:
                batch[torn[0]] = _without_partners(batch[torn[0]], torn[1:])
            yield {name: _with_more(table, kind) for name, table in batch.items()}

    return Case(_query(kind, names, tuple(values), window), statistics, window, batches)


def _torn(pairs: Sequence[Pair]) -> tuple[str, str, str]:
    """A stream with two links, and its columns of these."""
    for stream in sorted({name for pair in pairs for name in pair}):
        columns = [_column(pair) for pair in pairs if stream in pair]
        if len(columns) > 1:
            return stream, columns[0], columns[1]
    raise AssertionError("three streams that are linked have one with two links")


def _without_partners(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """``table`` with a value that no other stream has in one of two columns, in turn."""
    ids = table["id"].to_numpy()
    for turn, name in enumerate(columns):
        values = np.where(ids % 2 == turn, -1 - ids, table[name].to_numpy())
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(values))
    return table


def _column(pair: Pair) -> str:
    return f"{pair[0]}_{pair[1]}".lower()


def _query(
    kind: Kind, names: tuple[str, ...], pairs: tuple[Pair, ...], window: int
) -> penstock.JoinGraph:
    key = pa.string() if kind.text else pa.int64()
    schemas = {
        name: pa.schema(
            [(column, pa.int64()) for column in ("ts", "id", "g", "v")]
            + [(f"p{i}", pa.int64()) for i in range(PAYLOAD)]
            + [(_column(pair), key) for pair in pairs if name in pair]
        )
        for name in names
    }
    links = [
        (kind.first if number == 0 else "{a}.{c} = {b}.{c}").format(
            a=pair[0], b=pair[1], c=_column(pair)
        )
        for number, pair in enumerate(pairs)
    ]
    select = kind.select or ", ".join(f"{name}.id AS {name.lower()}" for name in names[:2])
    sources = ", ".join(f"{name} [RANGE {window} SECONDS]" for name in names)
    text = f"SELECT {select} FROM {sources} WHERE {' AND '.join(links)}{kind.group}"
    return penstock.parse(text, schemas=schemas)


def _with_more(table: pa.Table, kind: Kind) -> pa.Table:
    """``table`` with the columns of the kind."""
    ids = table["id"].to_numpy()
    for name in table.column_names:
        if kind.text and "_" in name:
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, table[name].cast(pa.string()))
    more = {"g": ids % 100, "v": (ids * 7919) % 1000}
    more |= {f"p{i}": ids + i for i in range(PAYLOAD)}
    for name, column in more.items():
        table = table.append_column(name, pa.array(np.asarray(column, np.int64)))
    return table
