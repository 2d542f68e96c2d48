"""Bytes of text keys and answers of groups: the model against an engine that has them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.planning.problem import Problem
from penstock.planning.statistics import Statistics
from penstock.planning.unit_costs import UnitCosts

RATE, WINDOW, SECONDS = 400.0, 5, 20
SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.string()), ("g", pa.int64())])
FROM = f"FROM A [RANGE {WINDOW} SECONDS], B [RANGE {WINDOW} SECONDS] WHERE A.k = B.k"
NOTHING = dict.fromkeys(UnitCosts().to_json(), 0.0)


def query(select: str) -> penstock.JoinGraph:
    return penstock.parse(f"SELECT {select}", dict.fromkeys("AB", SCHEMA))


def batches(values: int, groups: int) -> list[dict[str, pa.Table]]:
    chance = np.random.default_rng(values)
    rows = int(RATE)
    found = []
    for second in range(SECONDS):
        tables = {}
        for name in "AB":
            keys = [f"k{number}" for number in chance.integers(0, values, rows)]
            times = 1000 * second + np.sort(chance.integers(0, 1000, rows))
            tables[name] = pa.table([times, keys, chance.integers(0, groups, rows)], schema=SCHEMA)
        found.append(tables)
    return found


def statistics(values: int, groups: int) -> Statistics:
    distinct = {("A", "k"): float(values), ("B", "k"): float(values), ("A", "g"): float(groups)}
    return Statistics(dict.fromkeys("AB", RATE), {("A", "B"): 1 / values}, distinct=distinct)


@pytest.mark.parametrize("values", [50, 2_000, 200_000])
def test_bytes_of_text_keys(values: int) -> None:
    graph = query(f"A.g AS g {FROM}")
    engine = penstock.Engine(graph, plan="(A B)", feedback="off")
    most = 0
    for tables in batches(values, 10):
        engine.push(tables)
        most = max(most, engine.metrics()["state"]["bytes"])
    modelled = Problem(graph, statistics(values, 10)).price(engine.plan).memory
    assert 1 / 1.5 < most / modelled < 1.5


@pytest.mark.parametrize(("values", "groups"), [(4_000, 5), (200, 5), (200, 400)])
def test_answers_of_groups(values: int, groups: int) -> None:
    """Where each answer costs a second and nothing else does."""
    graph = query(f"A.g AS g, COUNT(*) AS n {FROM} GROUP BY A.g")
    engine = penstock.Engine(graph, plan="(A B)", feedback="off")
    told = [engine.push(tables).num_rows for tables in batches(values, groups)]
    costs = UnitCosts(**NOTHING | {"answer": 1.0})
    modelled = Problem(graph, statistics(values, groups), costs).price(engine.plan).cpu
    assert 1 / 1.5 < np.mean(told[2 * WINDOW :]) / modelled < 1.5
