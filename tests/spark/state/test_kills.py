"""Processes of a running query are killed; the sink holds the oracle's results, each once.

The long version kills ten times at random moments, workers, drivers and executors, and lets Spark
start copies of slow tasks: ``PENSTOCK_LONG=1 pytest tests/spark/state/test_kills.py``.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import kill_run
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kafka_broker import NoKafka, broker
from maven_jars import NoJars
from two_hosts import two_hosts

from penstock.job.job import LANES
from penstock.spark.start import process_tree
from penstock.testing import Oracle, difference

pytestmark = pytest.mark.xdist_group("spark")

PROGRAM = Path(kill_run.__file__)
long = pytest.mark.skipif("PENSTOCK_LONG" not in os.environ, reason="long: set PENSTOCK_LONG=1")


def write_streams(
    folder: Path, batches: int, seed: int, timeless: int = 0
) -> list[dict[str, pa.Table]]:
    """Files with events out of order, and so many rows in each that have no event time."""
    chance = random.Random(seed)
    pushes = []
    for number in range(batches):
        push = {}
        for stream in kill_run.STREAMS:
            rows: list[tuple[int | None, ...]] = [
                (
                    1_000 * number + i,
                    200 * number + chance.randint(-250, 200),
                    chance.randint(0, 12),
                    chance.randint(0, 12),
                )
                for i in range(24)
            ]
            rows += [(-1_000 * number - i - 1, None, 1, 1) for i in range(timeless)]
            arrays = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
            push[stream] = pa.table(arrays, schema=kill_run.SCHEMA)
            file = folder / stream / f"{number:04}.parquet"
            file.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(push[stream], file)
            os.utime(file, (1_700_000_000 + 10 * number,) * 2)
        pushes.append(push)
    return pushes


class Running:
    """A driver in a process of its own; what it says goes to a file of ``folder``."""

    def __init__(self, folder: Path, master: str = "local[2,8]", *more: str) -> None:
        self._folder = folder
        self._log = open(folder / "driver.log", "ab")  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), str(folder), master, *more],
            stdout=self._log,
            stderr=self._log,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},  # On a cluster it is "python3".
        )

    @property
    def committed(self) -> int:
        commits = self._folder / "checkpoint" / "commits"
        return sum(name.isdigit() for name in os.listdir(commits)) if commits.is_dir() else 0

    def wait_for(self, happened: Callable[[], bool], seconds: float = 300) -> bool:
        """Whether it happened before the driver came to its end."""
        until = time.monotonic() + seconds
        while not happened():
            if self.process.poll() is not None:
                return False
            assert time.monotonic() < until, (self._folder / "driver.log").read_text()[-3_000:]
            time.sleep(0.02)
        return True

    def pids(self, part: str) -> list[int]:
        """Processes of the tree whose command line has ``part``."""
        return [
            pid
            for pid in process_tree.processes(self.process.pid)
            if part in process_tree.command_line(pid)
        ]

    def workers(self) -> list[int]:
        """Python workers: not the daemons that they were forked from."""
        daemons = self.pids("worker_daemon")
        return [pid for pid in daemons if process_tree.parent(pid) in daemons]

    def kill_all(self) -> None:
        """The JVM and the driver, at once; workers are left to find out."""
        for pid in [*self.pids("java"), self.process.pid]:
            kill(pid)
        self.process.wait()

    def finish(self) -> int:
        return self.process.wait(timeout=1_800)


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def check(folder: Path, pushes: list[dict[str, pa.Table]]) -> None:
    oracle = Oracle(kill_run.graph(), kill_run.LATENESS)
    expected = [row for push in pushes for row in oracle.push(push)]
    log = folder / "results" / "_spark_metadata"
    files = {
        json.loads(line)["path"].rpartition("/")[2]
        for entry in log.iterdir()
        if entry.name.split(".")[0].isdigit()
        for line in entry.read_text().splitlines()[1:]
    }
    found = pa.concat_tables([pq.read_table(folder / "results" / name) for name in files])
    rows = list(zip(*(found.column(name).to_pylist() for name in "abc"), strict=True))
    assert sum(oracle.late.values()) == 0
    assert len(expected) > 300
    assert difference(rows, expected) is None


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
    first = Running(tmp_path)
    assert first.wait_for(lambda: first.committed >= 3), "the driver ended by itself"
    first.kill_all()
    before = first.committed
    assert before < 9
    second = Running(tmp_path)
    assert second.wait_for(lambda: second.committed > before and bool(second.workers()))
    kill(random.Random(1).choice(second.workers()))
    assert second.finish() == 0, (tmp_path / "driver.log").read_text()[-3_000:]
    check(tmp_path, pushes)


@long
@pytest.mark.parametrize("more", [(), ("sides", "source")], ids=["dataframes", "source"])
@pytest.mark.parametrize("seed", range(2))
def test_ten_kills_at_random_moments(seed: int, more: tuple[str, ...], tmp_path: Path) -> None:
    pushes = write_streams(tmp_path, 60, seed)
    kill_ten_times(tmp_path, random.Random(seed), more)
    check(tmp_path, pushes)


@long
def test_ten_kills_while_topics_are_read(tmp_path: Path) -> None:
    """A real broker; the messages are those of the files."""
    kafka = pytest.importorskip("confluent_kafka")
    pushes = write_streams(tmp_path, 60, 5)
    try:
        with broker(tmp_path) as address:
            producer = kafka.Producer({"bootstrap.servers": address})
            for push in pushes:
                for stream, table in push.items():
                    for row in table.to_pylist():
                        producer.produce(stream, value=json.dumps(row).encode())
            assert producer.flush(60) == 0
            kill_ten_times(tmp_path, random.Random(5), ("sides", "source", address))
    except (NoJars, NoKafka) as reason:
        pytest.skip(str(reason))
    check(tmp_path, pushes)


def kill_ten_times(folder: Path, chance: random.Random, more: tuple[str, ...]) -> None:
    """Workers and drivers of a query are killed at random moments, until it is done."""
    kills = 0
    while True:
        running = Running(folder, "local[2,8]", *more)
        begun = running.committed
        if not running.wait_for(lambda b=begun, r=running: r.committed > b):  # type: ignore[misc]
            break
        while kills < 10 and running.process.poll() is None:
            time.sleep(chance.uniform(0, 2))
            kills += 1
            workers = running.workers()
            if workers and chance.random() < 0.6:
                kill(chance.choice(workers))
            else:
                running.kill_all()
        if running.process.poll() is None and running.finish() == 0:
            break
    print(f"{kills} kills")
    assert kills == 10


@long
def test_a_killed_executor(tmp_path: Path) -> None:
    pushes = write_streams(tmp_path, 20, 3)
    running = Running(tmp_path, "local-cluster[2,1,1024]")
    assert running.wait_for(lambda: running.committed >= 3), (tmp_path / "driver.log").read_text()
    executors = running.pids("CoarseGrainedExecutorBackend")
    assert len(executors) == 2
    kill(executors[0])
    assert running.finish() == 0, (tmp_path / "driver.log").read_text()[-3_000:]
    check(tmp_path, pushes)


@long
def test_copies_of_slow_tasks(tmp_path: Path) -> None:
    """Speculation: the first attempt is done but for its end when a copy overtakes it."""
    pushes = write_streams(tmp_path, 9, 4)
    with two_hosts(tmp_path) as address:
        running = Running(tmp_path, address, "speculation")
        assert running.finish() == 0, (tmp_path / "driver.log").read_text()[-3_000:]
    asleep = {file.name.removeprefix("asleep ") for file in tmp_path.glob("asleep *")}
    copies = {file.name.removeprefix("copy ") for file in tmp_path.glob("copy *")}
    assert len(asleep) >= 2
    assert asleep <= copies
    check(tmp_path, pushes)
