"""``penstock bench session``: what each trick of the session that Penstock starts is worth.

The join W1 on Spark, with all tricks (:mod:`penstock.spark.start.tuning`) and with all but one. The
runs are in one line: with all, without some of them one by one, with all again, and so on; every
second round goes the other way round. Every run is a process of its own, which rehearses the query
once; a run without a trick is compared with the mean of the nearest runs with all before and after
it. A first run, which fills the caches of the machine, is not counted. Told are ratios, without
over with, in the middle of all rounds and with the least and the greatest: CPU seconds of the
query, CPU seconds with the start of everything, and the wall clock of the query. 1.05 means that
without it 5 % more is needed. How far runs with all differ among themselves is told as well: what
is within that, is nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.cli.bench_spark import check_system, keep_classes, watched
from penstock.errors import OptionError
from penstock.job.job import LANES

FIGURES = {
    "query_cpu_seconds": "CPU",
    "cpu_seconds": "CPU with start",
    "query_wall_seconds": "wall clock",
}
_APART = 4
"""Runs without something between two runs with all."""
_REHEARSAL = 10, 2_000
"""Micro-batches of the rehearsal, and rows of each stream in one."""


def add_parser(names: Any) -> None:
    bench = names.add_parser(
        "session",
        help="what each trick of the session that Penstock starts is worth",
        description="The join W1 on Spark with all that a session of Penstock's sets for speed, "
        "and with all but one thing, in turn. Ratios, without over with, of CPU seconds and wall "
        "clock: the median of all rounds, the least and the greatest.",
        epilog="example: penstock bench session --only compiler,daemon --rounds 5",
    )
    bench.add_argument("--only", metavar="NAME,…", help="some of the tricks (default: all)")
    bench.add_argument(
        "--lane",
        choices=LANES,
        default="dataframes",
        help="who reads the files (default: %(default)s)",
    )
    bench.add_argument("--rounds", type=int, default=2, metavar="N", help="rounds (default: 2)")
    bench.add_argument(
        "--rows", type=int, default=200_000, metavar="N", help="tuples per stream (default: 200000)"
    )
    bench.add_argument(
        "--batches", type=int, default=10, metavar="N", help="micro-batches (default: 10)"
    )
    bench.add_argument("--json", metavar="FILE", help="write all measurements to FILE")
    bench.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    for number in (options.rounds, options.rows, options.batches):
        if number < 1:
            raise OptionError(f"rounds, rows and batches are 1 or more, not {number}")
    target = None if options.json is None else Path(options.json)
    check_system(target)
    from penstock.spark.start.tuning import tricks_of

    about = {each.name: each.about for each in tricks_of(options.lane)}
    names = [n.strip() for n in options.only.split(",")] if options.only else list(about)
    for name in names:
        if name not in about:
            raise OptionError(f"nothing is called {name!r}; choose from: {', '.join(about)}")
    runs = []
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        order = _order(Path(folder), options.rows, options.batches, options.lane)
        turns = _turns(names, options.rounds)
        for number, without in enumerate(["", *turns]):
            work = str(Path(folder) / f"{number}-{without}")
            measured = watched({**order, "without": [without], "work": work})
            if not number:
                continue
            runs.append({"without": without, **measured})
            said = f"{number} of {len(turns)}: without {without or 'nothing'}"
            cpu = measured["query_cpu_seconds"]
            print(f"penstock: {said}: {cpu:.1f} CPU seconds", file=sys.stderr, flush=True)
            if target is not None:
                target.write_text(json.dumps(runs, indent=1) + "\n")
    _print(about, names, runs)
    return 0


def _turns(names: list[str], rounds: int) -> list[str]:
    """What each run is without."""
    turns = [each for number in range(rounds) for each in names[:: -1 if number % 2 else 1]]
    blocks = [turns[first : first + _APART] for first in range(0, len(turns), _APART)]
    return ["", *(each for block in blocks for each in (*block, ""))]


def _order(folder: Path, rows: int, batches: int, lane: str) -> dict[str, Any]:
    """What all runs have in common, with their files in ``folder``."""
    from penstock.cli.bench.workloads import WORKLOADS
    from penstock.spark.bench.bench_run import write_streams

    keep_classes()
    workload = replace(WORKLOADS["W1"], rows=rows)
    columns = write_streams(workload.tables(), folder / "rows", batches)
    often, few = _REHEARSAL
    write_streams(replace(workload, rows=often * few).tables(), folder / "few", often)
    return {
        "kind": "source" if lane == "source" else "penstock",
        "store": "rocksdb",
        "master": "local[2,4]",
        "partitions": 2,
        "columns": columns,
        "query": workload.query,
        "by_batch": False,
        "rehearsal": str(folder / "few"),
        "folder": str(folder / "rows"),
    }


def ratios(name: str, runs: list[dict[str, Any]], figure: str) -> list[float]:
    """What each run without ``name`` needs of ``figure``, by the nearest runs with all."""
    found = []
    for place, each in enumerate(runs):
        if each["without"] == name:
            before = next(b for b in reversed(runs[:place]) if not b["without"])
            after = next(b for b in runs[place:] if not b["without"])
            found.append(2 * float(each[figure]) / (before[figure] + after[figure]))
    return found


def _print(about: dict[str, str], names: list[str], runs: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("without", *FIGURES.values()):
        table.add_column(heading)
    table.add_column("what it does", ratio=1)
    for name in names:
        found = [ratios(name, runs, figure) for figure in FIGURES]
        told = [f"{statistics.median(f):.2f} ({min(f):.2f}–{max(f):.2f})" for f in found]
        table.add_row(name, *told, about[name])
    Console(highlight=False).print(table)
    for figure, title in FIGURES.items():
        base = [float(each[figure]) for each in runs if not each["without"]]
        print(
            f"{title}, with all: {statistics.median(base):.1f} s ({min(base):.1f}–{max(base):.1f})"
        )
