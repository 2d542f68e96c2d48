"""Random join graphs as in JTree section 6, and data that follows them.

Rates are uniform in [1, 100] tuples/s, a random tree with random further edges links the streams,
selectivities are uniform in (0, 1). The paper does not give its windows. With selectivities that
large it matters: at five seconds, twenty streams would give more results per second than there are
atoms. So the window is the one with which the query gives ``results`` per second.
"""

from __future__ import annotations

import math
import random
import string
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

import penstock
from penstock.planning.statistics import Statistics

Pair = tuple[str, str]


@dataclass(frozen=True)
class RandomGraph:
    """Streams, links and their statistics; every window has the same length."""

    rates: Mapping[str, float]
    shares: Mapping[Pair, float]
    window: float
    """In seconds."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.rates)

    @property
    def query(self) -> penstock.JoinGraph:
        return chain_query(self.names, tuple(self.shares), self.window)

    @property
    def statistics(self) -> Statistics:
        return Statistics(self.rates, self.shares)


def chain_query(
    names: tuple[str, ...], pairs: tuple[Pair, ...], seconds: float
) -> penstock.JoinGraph:
    """Each pair is joined on a column of its own; the answer is all the ids."""
    columns = {pair: f"{pair[0]}_{pair[1]}".lower() for pair in pairs}
    schemas = {
        name: pa.schema(
            [("ts", pa.int64()), ("id", pa.int64())]
            + [(column, pa.int64()) for pair, column in columns.items() if name in pair]
        )
        for name in names
    }
    window = f"RANGE {max(1, round(1000 * seconds))} MILLISECONDS"
    text = (
        f"SELECT {', '.join(f'{name}.id AS {name.lower()}' for name in names)} "
        f"FROM {', '.join(f'{name} [{window}]' for name in names)} WHERE "
        + " AND ".join(f"{a}.{column} = {b}.{column}" for (a, b), column in columns.items())
    )
    return penstock.parse(text, schemas=schemas)


def random_links(chance: random.Random, names: tuple[str, ...], more: float = 0.2) -> list[Pair]:
    """A random tree, and each further pair with the chance ``more``."""
    pairs = [(names[chance.randrange(j)], names[j]) for j in range(1, len(names))]
    for j in range(len(names)):
        for i in range(j):
            if (names[i], names[j]) not in pairs and chance.random() < more:
                pairs.append((names[i], names[j]))
    return pairs


def random_graph(chance: random.Random, count: int, per_row: float | None = None) -> RandomGraph:
    """A graph of section 6 with ``count`` streams; with ``per_row``, so many results for each row
    that arrives."""
    names = tuple(string.ascii_uppercase[:count])
    rates = {name: chance.uniform(1, 100) for name in names}
    shares = {pair: max(1e-6, chance.random()) for pair in random_links(chance, names)}
    results = 10 ** chance.uniform(0, 3)
    if per_row is not None:
        results = per_row * sum(rates.values())
    # results = n · Π rates · Π shares · W^(n - 1)
    product = math.log(count) + sum(map(math.log, [*rates.values(), *shares.values()]))
    window = math.exp((math.log(results) - product) / (count - 1))
    return RandomGraph(rates, shares, max(0.001, round(window, 3)))
