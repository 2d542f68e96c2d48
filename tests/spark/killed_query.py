"""A query in a process of its own, killed at random moments until its sink has everything.

``python tests/spark/killed_query.py`` does that as often as one likes, in both lanes and from
Kafka, and prints a line for each run: how often something was killed, how many drivers it took, and
whether the sink holds the oracle's results, each once. It ends with 1 if it does not in some run.

    python tests/spark/killed_query.py --runs 10 --kills 3 --way source,dataframes,kafka
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import kill_run
import one_process
import pyarrow as pa
import pyarrow.parquet as pq
from kafka_broker import broker

from penstock.spark.start import process_tree
from penstock.testing import Oracle, difference

PROGRAM = Path(kill_run.__file__)
WAYS = {
    "dataframes": ("dataframes",),
    "source": ("sides", "source"),
    "kafka": ("sides", "source"),
    "partitions": ("sides", "source"),
}
"""Arguments of the program, by what is killed."""


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
        # On a cluster it is "python3", else what the session chooses.
        python = {} if master.startswith("local[") else {"PYSPARK_PYTHON": sys.executable}
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), str(folder), master, *more],
            stdout=self._log,
            stderr=self._log,
            env=os.environ | python,
        )

    @property
    def committed(self) -> int:
        commits = self._folder / "checkpoint" / "commits"
        return sum(name.isdigit() for name in os.listdir(commits)) if commits.is_dir() else 0

    @property
    def said(self) -> str:
        """The last words of all drivers of the folder, and how this one has ended."""
        log = (self._folder / "driver.log").read_text()[-3_000:]
        return f"exit code {self.process.poll()}, after {self.committed} batches\n{log}"

    def wait_for(self, happened: Callable[[], bool], seconds: float = 300) -> bool:
        """Whether it happened before the driver came to its end."""
        until = time.monotonic() + seconds
        while not happened():
            if self.process.poll() is not None:
                return False
            assert time.monotonic() < until, f"it did not happen in {seconds} s\n{self.said}"
            time.sleep(0.02)
        return True

    def pids(self, part: str) -> list[int]:
        """Processes of the tree whose command line has ``part``."""
        return [
            pid
            for pid in process_tree.processes(self.process.pid)
            if part in one_process.command_line(pid)
        ]

    def workers(self) -> list[int]:
        """Python workers: not the daemons that they were forked from.

        A daemon is forked from the parent of all Pythons, which gives it its name, or was started
        as one, where the parent was not ready: then its command line tells."""
        tree = process_tree.processes(self.process.pid)
        daemons = [
            pid
            for pid in tree
            if one_process.name(pid) == "worker_daemon"
            or "worker_daemon" in one_process.command_line(pid)
        ]
        return [pid for pid in daemons if one_process.parent(pid) in daemons]

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


def check(folder: Path, pushes: list[dict[str, pa.Table]], is_partitioned: bool = False) -> None:
    oracle = Oracle(kill_run.graph(is_partitioned), kill_run.LATENESS)
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
    assert sum(oracle.late.values()) == 0, oracle.late
    assert len(expected) > 300, len(expected)
    differs = difference(rows, expected)
    assert differs is None, differs


def killed_run(folder: Path, way: str, seed: int, kills: int, batches: int) -> int:
    """Run the query in one of the :data:`WAYS`, kill ``kills`` times at random moments, and check
    its results; how many drivers it took."""
    pushes = write_streams(folder, batches, seed)
    with contextlib.ExitStack() as stack:
        more: tuple[str, ...] = WAYS[way]
        if way in ("kafka", "partitions"):
            address = stack.enter_context(broker(folder))
            send(address, pushes, way == "partitions")
            more += (address, way)
        drivers = kill_often(folder, random.Random(seed), more, kills)
    check(folder, pushes, way == "partitions")
    return drivers


def send(address: str, pushes: list[dict[str, pa.Table]], is_partitioned: bool) -> None:
    """The rows of ``pushes`` as messages of a broker, with their keys if topics are partitioned."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    if is_partitioned:
        topics = [NewTopic(stream, kill_run.PARTITIONS, 1) for stream in kill_run.STREAMS]
        admin = AdminClient({"bootstrap.servers": address})
        for each in admin.create_topics(topics).values():
            each.result(60)
    producer = Producer({"bootstrap.servers": address})
    for push in pushes:
        for stream, table in push.items():
            for row in table.to_pylist():
                key = str(row["x"]).encode() if is_partitioned else None
                producer.produce(stream, value=json.dumps(row).encode(), key=key)
    assert producer.flush(60) == 0


def kill_often(folder: Path, chance: random.Random, more: tuple[str, ...], most: int) -> int:
    """Workers and drivers of a query are killed at random moments, ``most`` times, until it is
    done; how many drivers it took."""
    kills = drivers = 0
    while True:
        drivers += 1
        running = Running(folder, "local[2,8]", *more)
        begun = running.committed
        if not running.wait_for(lambda b=begun, r=running: r.committed > b):  # type: ignore[misc]
            assert running.process.returncode == 0, running.said
            break
        while kills < most and running.process.poll() is None:
            time.sleep(chance.uniform(0, 2))
            if running.process.poll() is not None:
                break
            kills += 1
            workers = running.workers()
            if workers and chance.random() < 0.6:
                kill(chance.choice(workers))
            else:
                running.kill_all()
        if running.finish() == 0:
            break
    assert kills == most, f"the query was done after {kills} kills: it needs more batches"
    return drivers


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=10, help="of each way (default: 10)")
    parser.add_argument("--kills", type=int, default=3, help="in a run (default: 3)")
    parser.add_argument("--batches", type=int, default=40, help="of a run (default: 40)")
    parser.add_argument("--seed", type=int, default=0, help="of the first run (default: 0)")
    parser.add_argument("--way", default=",".join(WAYS), help=f"some of {', '.join(WAYS)} (all)")
    options = parser.parse_args()
    wrong = 0
    for seed in range(options.seed, options.seed + options.runs):
        for way in options.way.split(","):
            began = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="penstock-kills-") as folder:
                try:
                    drivers = killed_run(Path(folder), way, seed, options.kills, options.batches)
                    told = f"right after {options.kills} kills, {drivers} drivers"
                except AssertionError as problem:
                    wrong += 1
                    told = f"WRONG: {problem}"
            print(f"{way} {seed}: {told}, {time.monotonic() - began:.0f} s", flush=True)
    print(f"{wrong} of {options.runs * len(options.way.split(','))} runs were wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
