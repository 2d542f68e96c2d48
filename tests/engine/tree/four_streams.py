"""Four streams in a chain of joins, for tests of trees: engines, batches, and equal answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import penstock

SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "x", "y")])
STREAMS = "ABCD"


def engine_for(plan: str, span: int, lateness: int | None = None, **more: Any) -> penstock.Engine:
    sources = ", ".join(f"{name} [RANGE {span} MILLISECONDS]" for name in STREAMS)
    query = penstock.parse(
        f"SELECT A.id AS a, B.id AS b, C.id AS c, D.id AS d FROM {sources} "
        "WHERE A.x = B.x AND A.y = C.y AND C.x = D.x",
        dict.fromkeys(STREAMS, SCHEMA),
    )
    return penstock.Engine(query, plan=plan, feedback="off", lateness=lateness, **more)


def batch(chance: np.random.Generator, start: int, rows: int, keys: int) -> dict[str, pa.Table]:
    times = np.arange(start, start + rows)
    return {
        name: pa.table([times, times, *chance.integers(0, keys, (2, rows))], schema=SCHEMA)
        for name in STREAMS
    }


def same(one: pa.Table, other: pa.Table) -> bool:
    order = [(name, "ascending") for name in one.column_names]
    return bool(one.sort_by(order).equals(other.sort_by(order)))
