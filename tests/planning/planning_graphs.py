"""Queries and statistics for the tests of planners."""

from __future__ import annotations

import random
import string
from collections.abc import Mapping, Sequence

import pyarrow as pa

import penstock
from penstock.planning.problem import Problem
from penstock.planning.statistics import Statistics
from penstock.planning.storage import TUPLES, Storage
from penstock.planning.unit_costs import UnitCosts

NAMES = string.ascii_uppercase


def join_query(
    names: Sequence[str],
    pairs: Sequence[tuple[str, str]],
    windows: Mapping[str, str] | str = "RANGE 10 SECONDS",
) -> penstock.JoinGraph:
    """An equality on a column of its own for each pair."""
    columns = [f"{a}{b}".lower() for a, b in pairs]
    schema = pa.schema(
        [("ts", pa.int64()), ("id", pa.int64()), *((c, pa.int64()) for c in columns)]
    )
    window = {name: windows if isinstance(windows, str) else windows[name] for name in names}
    linked = {name for pair in pairs for name in pair}
    text = f"SELECT {names[0]}.id FROM " + " CROSS JOIN ".join(
        f"{name} [{window[name]}]" for name in names
    )
    assert linked <= set(names)
    if pairs:
        text += " WHERE " + " AND ".join(
            f"{a}.{c} = {b}.{c}" for (a, b), c in zip(pairs, columns, strict=True)
        )
    return penstock.parse(text, schemas=dict.fromkeys(names, schema))


def paper_example(
    rates: Mapping[str, float],
    ab: float,
    bc: float,
    seconds: int,
    costs: UnitCosts,
    storage: Storage = TUPLES,
) -> Problem:
    """The three streams of section 2: A joins B, B joins C."""
    query = join_query("ABC", [("A", "B"), ("B", "C")], f"RANGE {seconds} SECONDS")
    statistics = Statistics(rates, {("A", "B"): ab, ("C", "B"): bc})
    return Problem(query, statistics, costs, storage)


def random_problem(
    chance: random.Random,
    count: int,
    cross_products: bool = False,
    costs: UnitCosts | None = None,
    storage: Storage | None = None,
    connected: bool = True,
) -> Problem:
    """A random graph with fan-outs around one: some plans are much better than others."""
    names = NAMES[:count]
    pairs = [
        (names[chance.randrange(j)], names[j])
        for j in range(1, count)
        if connected or chance.random() < 0.6
    ]
    for j in range(count):
        for i in range(j):
            if (names[i], names[j]) not in pairs and chance.random() < 0.2:
                pairs.append((names[i], names[j]))
    windows = {name: f"RANGE {chance.randint(1, 20)} SECONDS" for name in names}
    rates = {name: chance.uniform(1, 100) for name in names}
    shares = {pair: min(1.0, 10 ** chance.uniform(-3.5, -1.5)) for pair in pairs}
    return Problem(
        join_query(names, pairs, windows),
        Statistics(rates, shares),
        costs,
        storage,
        cross_products=cross_products,
    )
