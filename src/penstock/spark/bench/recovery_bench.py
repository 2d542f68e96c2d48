"""``penstock bench recovery``: how soon a cell that was killed gives results again.

Two streams fill a window of so many rows, batch by batch, in one cell that reads its files itself,
in a process of its own. When it has written a snapshot it is killed, as the kernel does it when
memory is short. Then another process does the next batch: one with the snapshot that the cache has,
and one without, by reading the files of the window again. Time is told from the start of that
process to the results of the batch, with Python, libraries and kernels on the way, and beside it
the part that the batch took; the results must be as many. Spark itself does not run: to find that a
worker is gone and to start the task once more comes on top, the same in both. Files are in memory
(of the operating system) as far as there is room, as they are where a query has just read them.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
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

from penstock.errors import InvariantBroken, PenstockError
from penstock.sources.ledger import Entry, Ledger, Position
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


_WAYS = {"with a snapshot": True, "without": False}
_POSITIONS = "positions"
"""The name in the ledger of the positions of all batches."""


def recovery(rows: int, kind: str) -> dict[str, Any]:
    """Seconds to the results of the first batch after a kill, for a window of ``rows`` rows."""
    with tempfile.TemporaryDirectory(prefix="penstock-recovery-") as name:
        folder = Path(name)
        chance = np.random.default_rng(1)
        for batch in range(_BATCHES + 1):
            for stream in "AB":
                _write(folder / stream / f"{batch:03}.{kind}", _rows(chance, rows, batch), kind)
        found: dict[str, Any] = {"rows": rows, "format": kind, "batches": _BATCHES}
        found |= _process(folder, kind, "fill")
        answers = {}
        for way in _WAYS:
            began = time.perf_counter()
            found[way] = _process(folder, kind, way)
            found[way]["seconds"] = round(found[way].pop("ended") - began, 3)
            answers[way] = found[way].pop("results")
    if len(set(answers.values())) != 1:
        raise InvariantBroken(f"the answers differ: {answers}")
    return found | {"results": answers["without"]}


def _process(folder: Path, kind: str, role: str) -> dict[str, Any]:
    """What a process says that plays ``role``; it is killed when it has said so."""
    command = [sys.executable, "-m", "penstock.spark.bench.recovery_bench", str(folder), kind, role]
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        ended = time.perf_counter()
        os.kill(process.pid, signal.SIGKILL)
    if not line:
        raise PenstockError(f"the process that should {role} has ended without a word")
    found: dict[str, Any] = json.loads(line)
    return found if role == "fill" else {**found, "ended": ended}


def _play(folder: Path, kind: str, role: str) -> dict[str, Any]:
    """Be the process that fills the window, or the one that goes on."""
    options = {"query": _QUERY, "watermark": "1 SECOND", "maxFilesPerTrigger": "1"}
    options |= {"format": kind, "checkpointLocation": str(folder / "checkpoint")}
    for name in "AB":
        options |= {f"{name}.path": str(folder / name), f"{name}.schema": _COLUMNS}
        if kind == "csv":
            options[f"{name}.header"] = "true"
    lane = lane_of(options)
    if role == "fill":
        return _fill(folder, lane)
    used = lane if _WAYS[role] else replace(lane, cache_bytes=0)
    ledger = _ledger(lane)
    *_, start, end = (Position.of_json(each) for each in ledger.value(_POSITIONS))
    began = time.perf_counter()
    taken = SourcedCell(used, 0).take(start, end)
    return {
        "batch_seconds": round(time.perf_counter() - began, 3),
        "cpu_seconds": round(time.process_time(), 3),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "results": len(taken.results),
    }


def _fill(folder: Path, lane: Lane) -> dict[str, Any]:
    """Take in the window, and write a snapshot of it."""
    positions = _entries(lane)
    _ledger(lane).put_value(_POSITIONS, [each.to_json() for each in positions])
    silent = replace(lane, cache_bytes=0)
    began = _times()
    for number in range(_BATCHES):
        taken = SourcedCell(silent, 0).take(positions[number], positions[number + 1])
    found: dict[str, Any] = {"live": _spent(began), "state_bytes": taken.report.state_bytes}
    live = engine_cache.take(lane.fingerprint, 0)
    if live is None:
        raise InvariantBroken("the engine of the last batch is not in memory")
    began = _times()
    cell_snapshots.CellSnapshots(lane, 0).write(live)
    found["snapshot"] = _spent(began)
    (file,) = folder.rglob("*.snapshot")
    return found | {"snapshot_bytes": file.stat().st_size}


def _ledger(lane: Lane) -> Ledger:
    if lane.ledger is None:
        raise InvariantBroken("a stream without a ledger")
    return lane.ledger


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
    positions = [Position()]
    progress = {name: lane.sources[name].progress() for name in lane.moving}
    for _ in range(_BATCHES + 1):
        portions = {}
        for name in lane.moving:
            source = lane.sources[name]
            portions[name] = source.next_portion(progress[name], source.admission)
            progress[name].add(portions[name])
        positions.append(_ledger(lane).add(Entry(positions[-1], portions)))
    return positions


def _times() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _spent(began: tuple[float, float]) -> Mapping[str, float]:
    now = _times()
    return {"seconds": round(now[0] - began[0], 3), "cpu_seconds": round(now[1] - began[1], 3)}


if __name__ == "__main__":
    print(json.dumps(_play(Path(sys.argv[1]), *sys.argv[2:])), flush=True)
    sys.stdin.read()  # Until it is killed.
