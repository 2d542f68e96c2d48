"""``penstock bench``: lists the benchmarks; ``engine``, ``spark`` and ``peers`` run one."""

from __future__ import annotations

import argparse
from typing import Any

from penstock.cli import bench_spark
from penstock.cli.bench.peers import command as bench_peers
from penstock.errors import OptionError


def add_parser(commands: Any) -> None:
    bench = commands.add_parser(
        "bench",
        help="measure the engine on this machine",
        description="Measure on this machine. Without a name, list what can be measured.",
        epilog="example: penstock bench engine --quick",
    )
    bench.set_defaults(run=run_list)
    names = bench.add_subparsers(title="benchmarks", metavar="NAME")
    engine = names.add_parser(
        "engine",
        help="the embedded engine against DuckDB computing the same join offline",
        description="The embedded engine against DuckDB, which computes the same join offline in "
        "one go. One thread each; rates are per CPU second, the median of interleaved rounds; "
        "every configuration runs in a process of its own. The number of results is checked.",
        epilog="example: penstock bench engine --workload W1 --batch 1,10000 --plans tree,mjoin",
    )
    engine.add_argument(
        "--workload", metavar="W,…", help="some of W1, W2s, W2j, W2u (default: all)"
    )
    engine.add_argument(
        "--batch",
        metavar="N,…",
        help="tuples per push, over all streams (default: 1,10,100,1000,10000,100000)",
    )
    engine.add_argument(
        "--plans",
        metavar="P,…",
        help="some of tree, mjoin, tree+jit, which is with demand feedback (default: all, unless "
        "--plan is given)",
    )
    engine.add_argument(
        "--plan",
        action="append",
        metavar="PLAN",
        help="also measure this plan, in the notation, for example '((A C) B)'; repeatable",
    )
    engine.add_argument("--rows", type=int, metavar="N", help="tuples per stream (default: full)")
    engine.add_argument("--rounds", type=int, metavar="N", help="rounds (default: 3)")
    engine.add_argument(
        "--quick", action="store_true", help="fewer rows, one round, batches of 1, 100 and 10,000"
    )
    engine.add_argument("--json", metavar="FILE", help="write all measurements to FILE")
    engine.add_argument("--markdown", action="store_true", help="print a table for a document")
    engine.set_defaults(run=run_engine_bench)
    bench_spark.add_parser(names)
    bench_peers.add_parser(names)


def run_list(options: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.table import Table

    from penstock.cli.bench.workloads import WORKLOADS

    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False, title_justify="left")
    for heading in ("workload", "what it is", "tuples"):
        table.add_column(heading, justify="right" if heading == "tuples" else "left")
    for workload in WORKLOADS.values():
        table.add_row(
            workload.name,
            workload.about,
            f"{len(workload.streams)} × {workload.rows:,}",
        )
    console.print("[bold]penstock bench engine[/] — the embedded engine against DuckDB offline\n")
    console.print(table)
    console.print("\n[bold]penstock bench spark[/] — W1 on Spark, against Spark's own joins")
    console.print("[bold]penstock bench peers[/] — the same joins on other engines")
    console.print("\npenstock bench engine --help shows the options.")
    return 0


def run_engine_bench(options: argparse.Namespace) -> int:
    from penstock.cli.bench.engine_bench import EngineBench, Settings

    settings = Settings.of(
        workloads=_names(options.workload),
        batches=_numbers(options.batch),
        plans=_names(options.plans),
        extra_plans=tuple(options.plan or ()),
        rows=options.rows,
        rounds=options.rounds,
        quick=options.quick,
    )
    return EngineBench(settings).run(options.json, options.markdown)


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(name.strip() for name in text.split(","))


def _numbers(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(int(number.replace("_", "")) for number in text.split(","))
    except ValueError:
        raise OptionError(
            f"--batch {text!r} is not a list of numbers; write for example --batch 1,10000"
        ) from None
