"""Where the oracle is too slow: plans and ways against each other, and against DuckDB."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.testing.compare import difference_in_counts, rows_of
from penstock.testing.duckdb_oracle import duckdb_answer
from penstock.testing.python_values import canonical

N = 6_000
SPAN = N // 2
"""Milliseconds of event time of all streams."""
QUERIES = {
    "clique": """SELECT A.id AS a, B.id AS b, C.id AS c, D.id AS d, A.s AS s
        FROM A [RANGE 1 SECOND], B [RANGE 300 MILLISECONDS], C [RANGE 1 SECOND],
             D [RANGE 700 MILLISECONDS]
        WHERE A.k = B.k AND A.l = C.l AND B.l = D.l AND C.k = D.k
          AND A.s = D.s AND B.id % 7 < C.id % 5""",
    "chain": """SELECT A.id AS a, B.x AS b, C.id AS c FROM A [RANGE 40 MILLISECONDS],
        B [RANGE 2 SECONDS], C [NOW] WHERE A.m = B.m AND B.k = C.k AND A.x = C.x""",
    "star": """SELECT B.id AS b, C.id AS c, D.s AS d FROM A [RANGE 200 MILLISECONDS],
        B [RANGE 200 MILLISECONDS], C [UNBOUNDED], D [RANGE 300 MILLISECONDS]
        WHERE A.m = B.m AND A.k = C.n AND A.m = D.n AND A.x = 3""",
    "inequality": """SELECT A.id AS a, B.id AS b, C.id AS c FROM A [RANGE 200 MILLISECONDS],
        B [RANGE 300 MILLISECONDS], C [RANGE 100 MILLISECONDS]
        WHERE A.k = B.k AND A.l = B.l AND B.id < C.id AND C.id <= B.id + 20""",
    "self-join": """SELECT p.id AS p, q.id AS q, B.s AS s FROM A [RANGE 400 MILLISECONDS] AS p,
        A [RANGE 200 MILLISECONDS] AS q, B [RANGE 1 SECOND]
        WHERE p.k = q.l AND q.m = B.m AND p.id < q.id AND B.x = p.x AND p.x = q.x""",
    "DSTREAM": """SELECT DSTREAM A.id AS a, B.id AS b FROM A [RANGE 400 MILLISECONDS],
        B [RANGE 200 MILLISECONDS] WHERE A.k = B.k AND A.s = B.s""",
}
PLANS = {
    "clique": ["((A B) (C D))", "(A B C D)", "((A B C) D)", "(((D C) B) A)", "((A C) B D)"],
    "chain": ["((A B) C)", "(A B C)", "(A (B C))"],
    "star": ["(((A B) C) D)", "((A D) B C)", "(A B C D)"],
    "inequality": ["((A B) C)", "(A B C)"],
    "self-join": ["((p q) B)", "(p (q B))", "(p q B)"],
    "DSTREAM": ["(A B)"],
}
ROWS_PER_PUSH = [1_000, N, 333, 500, 2_000]
"""Rows of each stream in a push, for one plan after another."""


@functools.cache
def stream(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    ts = np.sort(rng.integers(0, SPAN, N))
    keys = {name: rng.integers(0, 60 if name in "kl" else 600, N) for name in "klmn"}
    x = rng.integers(0, 5, N)
    return pa.table({"ts": ts, "id": np.arange(N), **keys, "x": x, "s": [f"s{k}" for k in ts % 97]})


def pushes(sources: tuple[str, ...], rows: int) -> list[dict[str, pa.Table]]:
    return [
        {name: stream(ord(name)).slice(start, rows) for name in sources}
        for start in range(0, N, rows)
    ]


def run(query: Any, plan: str, rows: int, way: Literal["auto", "reference"]) -> Counter[Any]:
    engine = penstock.Engine(query, plan=plan, execution=way)
    answers = [engine.push(each) for each in pushes(query.sources, rows)]
    return Counter(map(canonical, rows_of(pa.concat_tables([*answers, engine.finish()]))))


@pytest.mark.parametrize("name", QUERIES)
def test_plans_and_sizes_of_pushes_agree_with_each_other_and_with_duckdb(name: str) -> None:
    pytest.importorskip("duckdb")
    query = penstock.parse(QUERIES[name], dict.fromkeys("ABCD", stream(0).schema))
    expected = duckdb_answer(query, pushes(query.sources, N))
    assert expected.total() > 1_000
    for plan, rows in zip(PLANS[name], ROWS_PER_PUSH, strict=False):
        found = difference_in_counts(run(query, plan, rows, "auto"), expected)
        assert found is None, f"{plan}, pushes of {rows}\n{found}"
    found = difference_in_counts(run(query, PLANS[name][0], 1_500, "reference"), expected)
    assert found is None, f"reference, {PLANS[name][0]}\n{found}"
