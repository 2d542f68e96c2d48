"""Processes of a running query are killed; the sink holds the oracle's results, each once.

The long version kills ten times at random moments, workers, drivers and executors, and lets Spark
start copies of slow tasks: ``PENSTOCK_LONG=1 pytest tests/spark/state/test_kills.py``. As many runs
as one likes, with a line for each: ``python tests/spark/killed_query.py --help``.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import kill_run
import pyarrow.parquet as pq
import pytest
from kafka_broker import NoKafka
from killed_query import WAYS, Running, check, kill, killed_run, write_streams
from maven_jars import NoJars
from two_hosts import two_hosts

from penstock.job.job import LANES

pytestmark = pytest.mark.xdist_group("spark")

long = pytest.mark.skipif("PENSTOCK_LONG" not in os.environ, reason="long: set PENSTOCK_LONG=1")


@pytest.mark.parametrize("lane", LANES)
def test_rejected_rows_are_written_once_whoever_is_killed(lane: str, tmp_path: Path) -> None:
    pushes = write_streams(tmp_path, 9, 4, timeless=2)
    first = Running(tmp_path, "local[2,8]", "sides", lane)
    assert first.wait_for(lambda: first.committed >= 3), "the driver ended by itself"
    first.kill_all()
    second = Running(tmp_path, "local[2,8]", "sides", lane)
    assert second.wait_for(lambda: second.committed >= 5 and bool(second.workers()))
    for pid in second.workers():
        kill(pid)
    if second.finish():  # A task whose workers are all gone may cost the query.
        last = Running(tmp_path, "local[2,8]", "sides", lane)
        assert last.finish() == 0, (tmp_path / "driver.log").read_text()[-3_000:]
    check(tmp_path, pushes)
    found = pq.read_table(tmp_path / "rejected").to_pylist()
    told = sorted((row["source"], json.loads(row["value"])["id"]) for row in found)
    assert told == sorted(
        (stream, -1_000 * number - i - 1)
        for stream in kill_run.STREAMS
        for number in range(9)
        for i in range(2)
    )
    assert {row["reason"] for row in found} == {"no event time"}


def test_a_killed_driver_and_a_killed_worker(tmp_path: Path) -> None:
    pushes = write_streams(tmp_path, 9, 1)
    first = Running(tmp_path, "local[2,8]", "dataframes")
    assert first.wait_for(lambda: first.committed >= 3), "the driver ended by itself"
    first.kill_all()
    before = first.committed
    assert before < 9
    second = Running(tmp_path, "local[2,8]", "dataframes")
    assert second.wait_for(lambda: second.committed > before and bool(second.workers()))
    kill(random.Random(1).choice(second.workers()))
    assert second.finish() == 0, (tmp_path / "driver.log").read_text()[-3_000:]
    check(tmp_path, pushes)


@long
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(2))
def test_ten_kills_at_random_moments(seed: int, way: str, tmp_path: Path) -> None:
    try:
        killed_run(tmp_path, way, seed, kills=10, batches=60)
    except (NoJars, NoKafka) as reason:
        pytest.skip(str(reason))


@long
@pytest.mark.parametrize("lane", LANES)
def test_a_killed_executor(lane: str, tmp_path: Path) -> None:
    pushes = write_streams(tmp_path, 20, 3)
    running = Running(tmp_path, "local-cluster[2,1,1024]", lane)
    assert running.wait_for(lambda: running.committed >= 3), (tmp_path / "driver.log").read_text()
    executors = running.pids("CoarseGrainedExecutorBackend")
    assert len(executors) == 2
    kill(executors[0])
    assert running.finish() == 0, (tmp_path / "driver.log").read_text()[-3_000:]
    check(tmp_path, pushes)


@long
@pytest.mark.parametrize("lane", LANES)
def test_copies_of_slow_tasks(lane: str, tmp_path: Path) -> None:
    """Speculation: the first attempt is done but for its end when a copy overtakes it."""
    pushes = write_streams(tmp_path, 9, 4)
    with two_hosts(tmp_path) as address:
        running = Running(tmp_path, address, lane, "speculation")
        assert running.finish() == 0, (tmp_path / "driver.log").read_text()[-3_000:]
    asleep = {file.name.removeprefix("asleep ") for file in tmp_path.glob("asleep *")}
    copies = {file.name.removeprefix("copy ") for file in tmp_path.glob("copy *")}
    assert len(asleep) >= 2
    assert asleep <= copies
    check(tmp_path, pushes)
