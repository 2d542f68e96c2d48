"""``penstock bench session``: what each trick of the session that Penstock starts is worth.

The join W1 on Spark, with all tricks (:mod:`penstock.spark.start.tuning`) and with all but one, in
turn: with all, without the first, with all, without the second, and so on, round after round. Every
run is a process of its own, which rehearses the query once; a run without a trick is compared with
the two that it stands between. Told are ratios, without over with, in the middle of all rounds and
with the least and the greatest: CPU seconds of the query, CPU seconds with the start of everything,
and the wall clock of the query. 1.05 means that without it 5 % more is needed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.cli.bench_spark import check_system, keep_classes, watched
from penstock.errors import OptionError

FIGURES = {
    "query_cpu_seconds": "CPU",
    "cpu_seconds": "CPU with start",
    "query_wall_seconds": "wall clock",
}
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
    bench.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds (default: 3)")
    bench.add_argument(
        "--rows", type=int, default=500_000, metavar="N", help="tuples per stream (default: 500000)"
    )
    bench.add_argument(
        "--batches", type=int, default=20, metavar="N", help="micro-batches (default: 20)"
    )
    bench.add_argument(
        "--side-by-side",
        action="store_true",
        help="two runs at a time, so that both have the same neighbours on a machine that is not "
        "quiet; then only CPU seconds can be compared",
    )
    bench.add_argument("--json", metavar="FILE", help="write all measurements to FILE")
    bench.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    for number in (options.rounds, options.rows, options.batches):
        if number < 1:
            raise OptionError(f"rounds, rows and batches are 1 or more, not {number}")
    target = None if options.json is None else Path(options.json)
    check_system(target)
    from penstock.spark.start.tuning import TRICKS

    about = {each.name: each.about for each in TRICKS}
    names = [n.strip() for n in options.only.split(",")] if options.only else list(about)
    for name in names:
        if name not in about:
            raise OptionError(f"nothing is called {name!r}; choose from: {', '.join(about)}")
    runs = []
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        order = _order(Path(folder), options.rows, options.batches)
        turns = [each for _ in range(options.rounds) for name in names for each in ("", name)]
        turns += [] if options.side_by_side else [""]
        at_once = 2 if options.side_by_side else 1
        for turn in range(0, len(turns), at_once):
            orders = [
                {**order, "without": [each], "work": str(Path(folder) / f"{turn}-{each}")}
                for each in turns[turn : turn + at_once]
            ]
            with ThreadPoolExecutor(at_once) as pool:
                for each, measured in zip(orders, pool.map(watched, orders), strict=True):
                    runs.append({"without": each["without"][0], **measured})
            said = f"{len(runs)} of {len(turns)}: without {runs[-1]['without'] or 'nothing'}"
            cpu = runs[-1]["query_cpu_seconds"]
            print(f"penstock: {said}: {cpu:.1f} CPU seconds", file=sys.stderr, flush=True)
            if target is not None:
                target.write_text(json.dumps(runs, indent=1) + "\n")
    _print(about, names, runs, options.side_by_side)
    return 0


def _order(folder: Path, rows: int, batches: int) -> dict[str, Any]:
    """What all runs have in common, with their files in ``folder``."""
    from penstock.cli.bench.workloads import WORKLOADS
    from penstock.spark.bench.bench_run import write_streams

    keep_classes()
    workload = replace(WORKLOADS["W1"], rows=rows)
    columns = write_streams(workload.tables(), folder / "rows", batches)
    often, few = _REHEARSAL
    write_streams(replace(workload, rows=often * few).tables(), folder / "few", often)
    return {
        "kind": "penstock",
        "store": "rocksdb",
        "master": "local[2,4]",
        "partitions": 2,
        "columns": columns,
        "query": workload.query,
        "by_batch": False,
        "rehearsal": str(folder / "few"),
        "folder": str(folder / "rows"),
    }


def ratios(name: str, runs: list[dict[str, Any]], figure: str, side_by_side: bool) -> list[float]:
    """What each run without ``name`` needs of ``figure``, by the runs with all beside it."""
    found = []
    for place, each in enumerate(runs):
        if each["without"] == name:
            beside = runs[place - 1 : place] if side_by_side else runs[place - 1 : place + 2 : 2]
            found.append(float(each[figure]) / statistics.mean(b[figure] for b in beside))
    return found


def _print(
    about: dict[str, str], names: list[str], runs: list[dict[str, Any]], side_by_side: bool
) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("without", *FIGURES.values()):
        table.add_column(heading)
    table.add_column("what it does", ratio=1)
    for name in names:
        found = [ratios(name, runs, figure, side_by_side) for figure in FIGURES]
        told = [f"{statistics.median(f):.2f} ({min(f):.2f}–{max(f):.2f})" for f in found]
        table.add_row(name, *told, about[name])
    Console(highlight=False).print(table)
    for figure, title in FIGURES.items():
        base = [float(each[figure]) for each in runs if not each["without"]]
        print(
            f"{title}, with all: {statistics.median(base):.1f} s ({min(base):.1f}–{max(base):.1f})"
        )
