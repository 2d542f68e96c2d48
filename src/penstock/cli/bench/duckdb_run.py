"""The same join by DuckDB, offline: the whole input in one query, one thread.

Two ways to write the windows and two ways to hold the input; the bench takes the fastest. As all
windows are of equal length, lifespans share an instant when no two tuples are farther apart than
the window.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.cli.bench import process_memory
from penstock.cli.bench.workloads import Workload

FORMS = ("greatest", "pairwise")
INPUTS = ("native", "arrow")


def run_duckdb(workload: Workload, form: str, source: str) -> dict[str, Any]:
    """CPU seconds and memory of the join, its results fetched as one Arrow table."""
    connection = _connect(workload, source)
    selected = ", ".join(f"{s}.id AS {s.lower()}" for s in workload.streams)
    sql = _sql(workload, form, selected)
    before = process_memory.resident()
    begin = time.process_time()
    results = connection.sql(sql).to_arrow_table().num_rows
    cpu = time.process_time() - begin
    return {
        "tuples": workload.rows * len(workload.streams),
        "cpu_seconds": cpu,
        "resident_before_bytes": before,
        "peak_bytes": process_memory.peak(),
        "results": results,
    }


def births(workload: Workload) -> NDArray[np.int64]:
    """How many results are born before each millisecond: entry t counts births < t."""
    newest = f"greatest({', '.join(f'{s}.ts' for s in workload.streams)})"
    sql = _sql(workload, "greatest", f"{newest} AS birth")
    connection = _connect(workload, "arrow")
    found = connection.execute(
        f"SELECT birth, count(*) AS n FROM ({sql}) GROUP BY birth"
    ).fetchnumpy()
    counts = np.zeros(workload.rows + 1, np.int64)
    counts[np.asarray(found["birth"], np.int64) + 1] = found["n"]
    return np.cumsum(counts)


def _connect(workload: Workload, source: str) -> Any:
    import duckdb
    import pyarrow as pa

    pa.set_cpu_count(1)
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    for name, batch in workload.tables().items():
        table = pa.Table.from_batches([batch])
        if source == "arrow":
            connection.register(name, table)
        else:
            connection.register("incoming", table)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM incoming")
            connection.unregister("incoming")
    return connection


def _sql(workload: Workload, form: str, selected: str) -> str:
    streams = workload.streams
    conditions = [f"{a}.{c} = {b}.{c}" for a, b, c in workload.pairs]
    if form == "greatest":
        times = ", ".join(f"{s}.ts" for s in streams)
        conditions.append(f"greatest({times}) - least({times}) <= {workload.window}")
    else:
        conditions += [
            f"abs({a}.ts - {b}.ts) <= {workload.window}"
            for a, b in itertools.combinations(streams, 2)
        ]
    return f"SELECT {selected} FROM {', '.join(streams)} WHERE {' AND '.join(conditions)}"
