"""Under ``defer``: what is found too late to be fresh is told as lost, within its error.

By default a late result must be as fresh as its windows, so a probe that is put off misses the
partners that have died since. Nobody sees these, so only an estimate can tell of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("k", pa.int64())])
PUSHES, ROWS, DOMAIN, SECOND = 40, 200, 80, 1000


def batches(streams: str) -> list[dict[str, pa.Table]]:
    chance = np.random.default_rng(7)

    def table(number: int) -> pa.Table:
        times = np.sort(chance.integers(number * SECOND, (number + 1) * SECOND, ROWS))
        ids = np.arange(ROWS) + number * ROWS
        keys = chance.integers(0, DOMAIN, ROWS)
        return pa.table({"id": ids, "ts": times, "k": keys}, schema=SCHEMA)

    return [{stream: table(number) for stream in streams} for number in range(PUSHES)]


def run(
    query: Any, streams: str, budgets: list[float | None], **options: Any
) -> tuple[int, dict[str, Any]]:
    """Results, and what is told of the overload."""
    engine = penstock.Engine(query, **options)
    results = sum(
        engine.push(each, probes=budgets[number % len(budgets)]).num_rows
        for number, each in enumerate(batches(streams))
    )
    results += engine.finish().num_rows
    return results, engine.metrics().get("overload") or {}


@pytest.mark.parametrize("execution", ["auto", "reference"])
@pytest.mark.parametrize("budgets", [[0.0] * 3 + [None], [0.0] * 8 + [None], [100.0]])
@pytest.mark.parametrize(
    ("windows", "plan"),
    [
        ({"A": "RANGE 5 SECONDS", "B": "RANGE 5 SECONDS"}, None),
        ({"A": "RANGE 5 SECONDS", "B": "RANGE 2 SECONDS"}, None),
        ({"A": "NOW", "B": "RANGE 5 SECONDS"}, None),
        ({"A": "ROWS 900", "B": "ROWS 400"}, None),
        (dict.fromkeys("ABC", "RANGE 3 SECONDS"), "(A B C)"),
        (dict.fromkeys("ABC", "RANGE 3 SECONDS"), "((A B) C)"),
    ],
)
def test_what_comes_too_late_is_told(
    windows: dict[str, str], plan: str | None, budgets: list[float | None], execution: Any
) -> None:
    streams = "".join(windows)
    sources = ", ".join(f"{stream} [{window}]" for stream, window in windows.items())
    links = " AND ".join(f"A.k = {stream}.k" for stream in streams[1:])
    query = penstock.parse(
        f"SELECT A.id AS a FROM {sources} WHERE {links}", schemas=dict.fromkeys(streams, SCHEMA)
    )
    defer = penstock.Overload("defer", probes=1e12)
    options = {"plan": plan} if plan else {}
    every, _ = run(query, streams, [None], **options)
    found, told = run(query, streams, budgets, overload=defer, execution=execution, **options)
    lost = told["lost"]
    assert found < every
    assert lost["results"] > 0
    assert abs(every - found - lost["results"]) <= 2 * lost["error"], (every - found, lost)


@pytest.mark.parametrize("freshness", ["", "FRESHNESS 20 SECONDS"])
def test_in_a_shortage_that_never_ends_the_loss_is_told_by_what_probes_find(freshness: str) -> None:
    """A quarter of the probes can be made, and what is owed is forgotten in the end: what these
    would have found is known from those that were made."""
    sources = ", ".join(f"{stream} [RANGE 5 SECONDS] {freshness}" for stream in "AB")
    query = penstock.parse(
        f"SELECT A.id AS a FROM {sources} WHERE A.k = B.k", schemas=dict.fromkeys("AB", SCHEMA)
    )
    chance = np.random.default_rng(3)
    limited = penstock.Engine(query, overload=penstock.Overload("defer", probes=100))
    plain = penstock.Engine(query)
    missing = 0
    for number in range(120):
        rows = {}
        for stream in "AB":
            times = np.sort(chance.integers(number * SECOND, (number + 1) * SECOND, ROWS))
            keys = chance.integers(0, 6 * DOMAIN, ROWS)
            rows[stream] = pa.table([np.arange(ROWS), times, keys], schema=SCHEMA)
        missing += plain.push(rows).num_rows - limited.push(rows).num_rows
    missing -= limited.finish().num_rows
    lost = limited.metrics()["overload"]["lost"]
    assert abs(missing - lost["results"]) <= 2 * lost["error"], (missing, lost)
    assert abs(missing - lost["results"]) <= 0.15 * missing, (missing, lost)
    assert lost["error"] <= 0.25 * missing
