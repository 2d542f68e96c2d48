"""Where the oracle is too slow: plans against each other, and against DuckDB."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import penstock

N = 4_000
WINDOW = 1_000
PLANS = ["((A B) (C D))", "(A B C D)", "((A B C) D)", "(((D C) B) A)", "((A C) B D)"]


def stream(seed: int, columns: list[str], domain: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    ts = np.sort(rng.integers(0, N // 2, N))
    keys = {name: rng.integers(0, domain, N) for name in columns}
    return pa.table({"ts": ts, "id": np.arange(N), **keys, "s": [f"s{k}" for k in ts % 97]})


def clique() -> tuple[str, dict[str, pa.Table]]:
    """Every pair of streams is linked, one of them by strings, one by an inequality."""
    tables = {
        "A": stream(1, ["ab", "ac"], 40),
        "B": stream(2, ["ab", "bd"], 40),
        "C": stream(3, ["ac", "cd"], 40),
        "D": stream(4, ["bd", "cd"], 40),
    }
    window = f"[RANGE {WINDOW} MILLISECONDS]"
    text = f"""SELECT A.id AS a, B.id AS b, C.id AS c, D.id AS d, A.s AS s
        FROM A {window}, B [RANGE 300 MILLISECONDS], C {window}, D [RANGE 700 MILLISECONDS]
        WHERE A.ab = B.ab AND A.ac = C.ac AND B.bd = D.bd AND C.cd = D.cd
          AND A.s = D.s AND B.id % 7 < C.id % 5"""
    return text, tables


def run(text: str, tables: dict[str, pa.Table], plan: str, batch: int) -> pa.Table:
    graph = penstock.parse(text, {name: table.schema for name, table in tables.items()})
    engine = penstock.Engine(graph, plan=plan)
    parts = [
        engine.push({name: table.slice(start, batch) for name, table in tables.items()})
        for start in range(0, N, batch)
    ]
    columns = [(name, "ascending") for name in ("a", "b", "c", "d")]
    return pa.concat_tables(parts).combine_chunks().sort_by(columns)


def test_plans_and_batch_sizes_agree_with_each_other_and_with_duckdb() -> None:
    duckdb = pytest.importorskip("duckdb")
    text, tables = clique()
    answers = [
        run(text, tables, plan, batch)
        for plan, batch in zip(PLANS, [1_000, 4_000, 333, 500, 2_000], strict=True)
    ]
    connection = duckdb.connect()
    for name, table in tables.items():
        connection.register(name, table)
    expected = connection.sql(
        f"""SELECT A.id AS a, B.id AS b, C.id AS c, D.id AS d, A.s AS s FROM A, B, C, D
        WHERE A.ab = B.ab AND A.ac = C.ac AND B.bd = D.bd AND C.cd = D.cd
          AND A.s = D.s AND B.id % 7 < C.id % 5
          AND greatest(A.ts, B.ts, C.ts, D.ts)
              <= least(A.ts + {WINDOW}, B.ts + 300, C.ts + {WINDOW}, D.ts + 700)
        ORDER BY a, b, c, d"""
    ).to_arrow_table()
    assert expected.num_rows > 1_000
    for answer in answers:
        assert answer.cast(expected.schema).equals(expected.combine_chunks())
