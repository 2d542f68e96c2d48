"""``penstock bench spark``: Penstock on Spark against Spark's own chained joins.

Every configuration runs in a process of its own on the same files, and this process watches its
whole tree (Python, JVM, Python workers). Each rehearses first: the same query, as many micro-
batches with a few thousand rows each. Then two figures are told, each with its ratio: the CPU
seconds of the query alone, from its plan to its last commit, which is what a query that runs for
months pays; and those with the start, from the start of the process on, the rehearsal included;
``--rehearsal 0`` leaves it out. Memory is the most at once in all this time, what processes share
counted once. Results are counted, and must be as many everywhere.

Both sides are measured in more than one way, and the best of each counts: Spark's own joins with
both of its state stores, Penstock with one cell and with as many as cores. A cell joins millions of
tuples per second, and each costs Spark a fixed time per micro-batch, so where Spark is the
bottleneck fewer cells are cheaper. The other stages use all cores in any case.

Spark's own joins keep their state as Java objects, and how many CPU seconds they need depends on
how much memory they are given: with Spark's default of 1 GB, about twice as many as with 6 GB. So
they get ``--heap``, by default a quarter of the machine's memory: what makes them fast. With
several sizes they run once with each, and it can be seen what memory buys. All else is as
:func:`penstock.spark.session` sets it, except Java's compiler and collector, where they get what
suits them (:mod:`penstock.spark.bench.bench_run`). The archive of Java's classes, which both use,
is made before anything is measured.

With ``--broker``, the streams are topics of JSON values, and results go to a topic, for all of them
alike (:mod:`penstock.spark.bench.bench_topics`): Kafka to Kafka.

The fixed cost of a micro-batch is measured on batches of a few rows, against a stateful Python
query that does nothing: CPU time and wall time per batch, without the first batches.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock.errors import OptionError, PenstockError

_SMALL_ROWS = 10
_SMALL_BATCHES = 25
_REHEARSAL_ROWS = 5_000
"""Of each stream in a micro-batch of the rehearsal."""
_LOOK = 0.5
"""Seconds between two looks at memory."""
_SPARKS = {
    "spark hdfs": "Spark, default store",
    "spark rocksdb": "Spark, RocksDB",
    "spark rocksdb-4": "Spark, RocksDB, format 4",
}
"""With both of Spark's state stores, and with the newest format of the state of joins."""
_LANES = {"penstock": "Penstock, DataFrames", "source": "Penstock, data source"}
"""The two ways of Penstock into Spark."""
_NAMES = ("penstock", "source", *_SPARKS, "empty")


def add_parser(names: Any) -> None:
    bench = names.add_parser(
        "spark",
        help="Penstock on Spark against Spark's own chained stream-stream joins",
        description="The join W1 on Penstock and on Spark's own chained joins with both of its "
        "state stores and the newest format of state: same files, same machine, one after another. "
        "CPU seconds and memory are those of the whole process tree, of the query alone in a "
        "session that has run it before on a few rows, and with the start of everything. The "
        "number of results is checked.",
        epilog="example: penstock bench spark --quick",
    )
    bench.add_argument("--rows", type=int, metavar="N", help="tuples per stream (default: 1000000)")
    bench.add_argument("--batches", type=int, metavar="N", help="micro-batches (default: 20)")
    bench.add_argument("--cores", type=int, metavar="N", help="cores for Spark (default: 2)")
    bench.add_argument(
        "--cells",
        metavar="N,…",
        help="cells for Penstock; with several numbers such as 1,2 it runs with each "
        "(default: 1 and as many as cores)",
    )
    bench.add_argument(
        "--heap",
        metavar="SIZE,…",
        help="Java's memory for Spark's own joins, such as 1g; with several sizes such as 2g,6g "
        "they run with each (default: a quarter of all)",
    )
    bench.add_argument(
        "--rehearsal",
        type=int,
        metavar="N",
        help="micro-batches that a session has run before it is measured; 0 for none "
        "(default: as many as are measured)",
    )
    bench.add_argument("--quick", action="store_true", help="50,000 tuples per stream, 5 batches")
    bench.add_argument(
        "--only", metavar="NAME,…", help=f"some of {', '.join(_NAMES)} (default: all)"
    )
    bench.add_argument(
        "--broker",
        metavar="HOST:PORT",
        help="from topics of this Kafka broker to a topic, instead of files",
    )
    bench.add_argument("--json", metavar="FILE", help="write all measurements to FILE")
    bench.set_defaults(run=run)


@dataclass(frozen=True)
class Settings:
    """What to measure."""

    rows: int
    batches: int
    cores: int
    cells: tuple[int, ...]
    rehearsal: int
    only: tuple[str, ...]
    heaps: tuple[str, ...]
    broker: str | None = None
    """Address of the Kafka broker that has the streams; None for files."""

    @classmethod
    def of(cls, options: argparse.Namespace) -> Settings:
        """Check every choice, and say what exists."""
        only = tuple(n.strip() for n in options.only.split(",")) if options.only else _NAMES
        for name in only:
            if name not in _NAMES:
                raise OptionError(f"nothing is called {name!r}; choose from: {', '.join(_NAMES)}")
        for number in (options.rows, options.batches, options.cores):
            if number is not None and number < 1:
                raise OptionError(f"rows, batches and cores are 1 or more, not {number}")
        if options.rehearsal is not None and options.rehearsal < 0:
            raise OptionError(f"rehearsal is 0 or more, not {options.rehearsal}")
        given = options.heap or f"{max(1 << 10, _machine_memory() >> 22)}m"
        heaps = tuple(dict.fromkeys(size.strip() for size in given.split(",")))
        for heap in heaps:
            if not re.fullmatch(r"[1-9]\d*[mg]", heap):
                raise OptionError(f"heap is a size such as 512m or 6g, not {heap!r}")
        cores = options.cores or 2
        cells = (options.cells or f"1,{cores}").split(",")
        for number in cells:
            if not re.fullmatch(r"\s*[1-9]\d*\s*", number):
                raise OptionError(f"cells are numbers such as 1 or 1,2, not {number!r}")
        batches = options.batches or (5 if options.quick else 20)
        return cls(
            heaps=heaps,
            rows=options.rows or (50_000 if options.quick else 1_000_000),
            batches=batches,
            rehearsal=batches if options.rehearsal is None else options.rehearsal,
            cores=cores,
            cells=tuple(dict.fromkeys(map(int, cells))),
            only=only,
            broker=options.broker,
        )


def run(options: argparse.Namespace) -> int:
    settings = Settings.of(options)
    target = None if options.json is None else Path(options.json)
    check_system(target)
    if settings.broker is not None and importlib.util.find_spec("confluent_kafka") is None:
        raise PenstockError("Kafka's client is not installed: pip install 'penstock[kafka]'")
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        measured = _measure(settings, Path(folder))
    if target is not None:
        target.write_text(json.dumps({"settings": settings.__dict__, **measured}, indent=1) + "\n")
    _print(settings, measured)
    counts = {m["results"] for name, m in measured.items() if not name.startswith("small")}
    if len(counts) > 1:
        print(f"penstock: wrong answer: results differ: {sorted(counts)}", file=sys.stderr)
        return 1
    return 0


def check_system(target: Path | None) -> None:
    """What would fail after minutes is found at once."""
    try:
        from penstock.spark.start import process_tree
    except ImportError:
        raise PenstockError("Spark is not installed: pip install 'penstock[spark]'") from None
    if not process_tree.is_known():
        raise PenstockError("this benchmark reads CPU seconds from /proc, which is not here")
    if target is not None:
        try:
            target.touch()
        except OSError as error:
            raise OptionError(f"cannot write {target}: {error.strerror}") from None


def _measure(settings: Settings, folder: Path) -> dict[str, Any]:
    from penstock.cli.bench.workloads import WORKLOADS
    from penstock.spark.bench.bench_run import write_streams

    keep_classes()
    workload = replace(WORKLOADS["W1"], rows=settings.rows)
    small = replace(workload, rows=_SMALL_ROWS * _SMALL_BATCHES)
    columns = write_streams(workload.tables(), folder / "large", settings.batches)
    write_streams(small.tables(), folder / "small", _SMALL_BATCHES)
    rehearsal = None
    if settings.rehearsal:
        rehearsal = str(folder / "few")
        few = replace(workload, rows=_REHEARSAL_ROWS * settings.rehearsal)
        write_streams(few.tables(), Path(rehearsal), settings.rehearsal)
    sizes = {"large": -(-settings.rows // settings.batches), "small": _SMALL_ROWS}
    order = {
        "master": f"local[{settings.cores},4]",
        "columns": columns,
        "query": workload.query,
        "pairs": workload.pairs,
        "window": workload.window,
        "broker": settings.broker,
        "per_batch": {**sizes, "few": _REHEARSAL_ROWS},
    }
    cores = settings.cores
    runs = [
        (_own(n, kind), kind, "rocksdb", "large", "", n) for kind in _LANES for n in settings.cells
    ]
    for heap in settings.heaps:
        runs += [(f"{n} {heap}", "spark", n.split()[1], "large", heap, cores) for n in _SPARKS]
    for kind in (*_LANES, "empty"):
        runs.append((f"small {kind}", kind, "rocksdb", "small", "", cores))
    with _topics(settings.broker, folder, columns, [each[0] for each in runs]):
        return _all_measured(settings, order, runs, folder, rehearsal)


@contextmanager
def _topics(
    broker: str | None, folder: Path, columns: dict[str, list[str]], runs: list[str]
) -> Iterator[None]:
    """The topics of all streams and results, if there is a ``broker``."""
    if broker is None:
        yield
        return
    from penstock.spark.bench.bench_topics import made_topics, send_files, topic_name

    inputs = [folder / name for name in ("large", "small", "few") if (folder / name).is_dir()]
    names = [topic_name(stream, str(each)) for each in inputs for stream in columns]
    works = [_work(folder, name) for name in runs]
    places = [each for work in works for each in (work, work / "rehearsal")]
    with made_topics(broker, [*names, *(topic_name("results", str(each)) for each in places)]):
        for each in inputs:
            send_files(broker, each, columns)
        yield


def _work(folder: Path, name: str) -> Path:
    return folder / name.replace(" ", "-")


def _all_measured(
    settings: Settings,
    order: dict[str, Any],
    runs: list[tuple[str, str, str, str, str, int]],
    folder: Path,
    rehearsal: str | None,
) -> dict[str, Any]:
    """What each of ``runs`` takes."""
    measured = {}
    for name, kind, store, data, heap, partitions in runs:
        wanted = "empty" if data == "small" else f"spark {store}" if kind == "spark" else kind
        if wanted not in settings.only:
            continue
        print(f"penstock: measuring {name} …", file=sys.stderr, flush=True)
        work = _work(folder, name)
        measured[name] = watched(
            {
                **order,
                "kind": kind,
                "store": store,
                "heap": heap,
                "partitions": partitions,
                "by_batch": data == "small",
                "rehearsal": rehearsal if data == "large" else None,
                "work": str(work),
                "folder": str(folder / data),
            }
        )
        print(
            f"penstock: {name}: {measured[name]['query_cpu_seconds']:.1f} CPU seconds, "
            f"{measured[name]['cpu_seconds']:.1f} with the start",
            file=sys.stderr,
            flush=True,
        )
    return measured


def _own(cells: int, lane: str) -> str:
    return f"{lane} {cells} {'cell' if cells == 1 else 'cells'}"


def keep_classes() -> None:
    """The archive of Java's classes, for both sides, or none for either."""
    from penstock.spark.start.class_archive import make_archive

    print("penstock: making Java's class archive, once …", file=sys.stderr, flush=True)
    try:
        make_archive()
    except PenstockError as problem:
        print(f"penstock: going on without it: {problem}", file=sys.stderr, flush=True)


def _machine_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def watched(order: dict[str, Any]) -> dict[str, Any]:
    """Carry out ``order`` in a process of its own, and look at its memory meanwhile."""
    from penstock.spark.start import process_tree

    process = subprocess.Popen(
        [sys.executable, "-m", "penstock.spark.bench.bench_run"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(order))
    process.stdin.close()
    process.stdin = None
    peak = 0
    while process.poll() is None:
        peak = max(peak, process_tree.memory(process.pid))
        time.sleep(_LOOK)
    output, errors = process.communicate()
    if process.returncode:
        told = "\n".join(errors.strip().splitlines()[-12:])
        raise PenstockError(f"a measurement failed:\n{told}")
    measured: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
    return {**measured, "peak_bytes": peak}


def _print(settings: Settings, measured: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(
        title=f"W1 on Spark{', Kafka to Kafka' if settings.broker else ''}: "
        f"3 × {settings.rows:,} tuples, {settings.batches} micro-batches, {settings.cores} cores",
        title_justify="left",
        box=None,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    last = ("rows/s",) if settings.broker else ()
    for heading in ("", "CPU s", "×", "with start", "×", "peak MB", "×", "wall s", *last):
        table.add_column(heading, justify="right" if heading else "left")
    names = [_own(cells, lane) for lane in _LANES for cells in settings.cells]
    owns = {name: measured[name] for name in names if name in measured}
    best_own = min(owns, key=lambda n: float(owns[n]["query_cpu_seconds"]), default="")
    own = owns.get(best_own)
    titles = {n: ", ".join([_LANES[n.split()[0]], n.partition(" ")[2]]) for n in owns}
    for heap in settings.heaps:
        titles |= {f"{n} {heap}": f"{title}, {heap}" for n, title in _SPARKS.items()}
    for name, title in titles.items():
        if name in measured:
            m = measured[name]
            table.add_row(
                title,
                f"{m['query_cpu_seconds']:.1f}",
                _times(own, m, "query_cpu_seconds"),
                f"{m['cpu_seconds']:.1f}",
                _times(own, m, "cpu_seconds"),
                f"{m['peak_bytes'] / 1e6:,.0f}",
                _times(own, m, "peak_bytes"),
                f"{m['query_wall_seconds']:.0f}",
                *(f"{3 * settings.rows / m['query_wall_seconds']:,.0f}" for _ in last),
            )
    console.print(table)
    for heap in settings.heaps:
        others = [m for n in _SPARKS if (m := measured.get(f"{n} {heap}")) is not None]
        if own and others:
            best = min(others, key=lambda m: float(m["query_cpu_seconds"]))
            console.print(
                f"\nWith a heap of {heap} for Spark's own joins, and the faster of its state "
                f"stores, {titles[best_own]} needs "
                f"{_times(own, best, 'query_cpu_seconds')} times fewer CPU seconds for the query "
                f"alone, {_times(own, best, 'cpu_seconds')} times fewer with the start of "
                f"everything, and {_times(own, best, 'peak_bytes')} times less memory."
            )
    empty = measured.get("small empty")
    for lane, title in _LANES.items():
        small = measured.get(f"small {lane}")
        if small and empty and small["batch_cpu_ms"] and empty["batch_cpu_ms"]:
            console.print(
                f"Fixed cost per micro-batch, {title}: {small['batch_cpu_ms']:.0f} ms CPU "
                f"({small['batch_ms']:.0f} ms wall); a stateful Python query that does nothing: "
                f"{empty['batch_cpu_ms']:.0f} ms ({empty['batch_ms']:.0f} ms wall); "
                f"{small['batch_cpu_ms'] / empty['batch_cpu_ms']:.2f} times as much."
            )


def _times(own: dict[str, Any] | None, other: dict[str, Any], figure: str) -> str:
    """How many times as much the other needs."""
    return f"{other[figure] / own[figure]:.1f}" if own else ""
