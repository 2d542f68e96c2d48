"""``penstock bench recovery``: how soon a cell that was lost gives results again.

Two streams fill a window of so many rows, batch by batch, in one cell that reads its files itself.
Then the engine is thrown away, as with its worker, and the next batch is done: once with the
snapshot that the cache has, and once without, by reading the files of the window again. Time is
told from the call to the results of that batch, which must be the same. Spark itself does not run:
starting it and its workers comes on top, the same in both.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from penstock.errors import InvariantBroken
from penstock.sources.ledger import Entry, Position
from penstock.spark.data_source import cell_snapshots, engine_cache
from penstock.spark.data_source.lane import Lane
from penstock.spark.data_source.options import lane_of
from penstock.spark.data_source.sourced_cell import SourcedCell

_BATCHES = 20
_QUERY = (
    "SELECT A.id AS a, B.id AS b, A.v AS v FROM A [RANGE 1 HOUR], B [RANGE 1 HOUR] WHERE A.x = B.x"
)
_COLUMNS = "id BIGINT, ts TIMESTAMP, x BIGINT, v DOUBLE"
FORMATS = ("parquet", "json", "csv")


def recovery(rows: int, kind: str) -> dict[str, Any]:
    """Seconds to the results of the first batch after a loss, for a window of ``rows`` rows."""
    with tempfile.TemporaryDirectory(prefix="penstock-recovery-") as folder:
        before = os.environ.get("XDG_CACHE_HOME")
        os.environ["XDG_CACHE_HOME"] = folder
        try:
            return _recovery(Path(folder), rows, kind)
        finally:
            engine_cache.clear()
            os.environ.pop("XDG_CACHE_HOME")
            if before is not None:
                os.environ["XDG_CACHE_HOME"] = before


def _recovery(folder: Path, rows: int, kind: str) -> dict[str, Any]:
    chance = np.random.default_rng(1)
    for batch in range(_BATCHES + 1):
        for name in "AB":
            _write(folder / name / f"{batch:03}.{kind}", _rows(chance, rows, batch), kind)
    options = {"query": _QUERY, "watermark": "1 SECOND", "maxFilesPerTrigger": "1"}
    options |= {"format": kind, "checkpointLocation": str(folder / "checkpoint")}
    for name in "AB":
        options |= {f"{name}.path": str(folder / name), f"{name}.schema": _COLUMNS}
        if kind == "csv":
            options[f"{name}.header"] = "true"
    lane = lane_of(options)
    positions = _entries(lane)
    silent = replace(lane, cache_bytes=0)
    began = _times()
    for number in range(_BATCHES):
        taken = SourcedCell(silent, 0).take(positions[number], positions[number + 1])
    found: dict[str, Any] = {"rows": rows, "format": kind, "batches": _BATCHES}
    found["live"] = _spent(began)
    found["state_bytes"] = taken.report.state_bytes
    live = engine_cache.take(lane.fingerprint, 0)
    if live is None:
        raise InvariantBroken("the engine of the last batch is not in memory")
    began = _times()
    cell_snapshots.CellSnapshots(lane, 0).write(live)
    found["snapshot"] = _spent(began)
    (file,) = folder.rglob("*.snapshot")
    found["snapshot_bytes"] = file.stat().st_size
    answers = {}
    del live
    for way, used in (("with a snapshot", lane), ("without", silent)):
        engine_cache.clear()
        began = _times()
        taken = SourcedCell(used, 0).take(positions[-2], positions[-1])
        found[way] = _spent(began)
        answers[way] = len(taken.results)
    if len(set(answers.values())) != 1:
        raise InvariantBroken(f"the answers differ: {answers}")
    found["results"] = answers["without"]
    return found


def _rows(chance: np.random.Generator, rows: int, batch: int) -> pa.Table:
    """A batch of one stream: a twentieth of half the window, a minute of event time."""
    count = max(1, rows // 2 // _BATCHES)
    minute = 60_000_000
    times = np.sort(chance.integers(batch * minute, (batch + 1) * minute, count))
    return pa.table(
        {
            "id": np.arange(count) + batch * count,
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "x": chance.integers(0, rows, count),
            "v": chance.random(count),
        }
    )


def _write(file: Path, table: pa.Table, kind: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if kind == "parquet":
        pq.write_table(table, file)
    elif kind == "csv":
        pa_csv.write_csv(table, file)
    else:
        table.to_pandas().to_json(file, orient="records", lines=True, date_format="iso")
    os.utime(file, (1_700_000_000 + int(file.stem),) * 2)


def _entries(lane: Lane) -> list[Position]:
    assert lane.ledger is not None
    positions = [Position()]
    progress = {name: lane.sources[name].progress() for name in lane.moving}
    for _ in range(_BATCHES + 1):
        portions = {}
        for name in lane.moving:
            source = lane.sources[name]
            portions[name] = source.next_portion(progress[name], source.admission)
            progress[name].add(portions[name])
        positions.append(lane.ledger.add(Entry(positions[-1], portions)))
    return positions


def _times() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _spent(began: tuple[float, float]) -> Mapping[str, float]:
    now = _times()
    return {"seconds": round(now[0] - began[0], 3), "cpu_seconds": round(now[1] - began[1], 3)}
