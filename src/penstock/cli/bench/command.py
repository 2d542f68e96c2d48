"""``penstock bench`` lists the benchmarks; a name behind it (``engine``, ``spark`` …) runs one."""

from __future__ import annotations

import argparse
from typing import Any

from penstock.cli import bench_session, bench_spark
from penstock.cli.bench import peers_command as bench_peers
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
    paths = names.add_parser(
        "paths",
        help="what NULLs, strings, limits, a host's clock and so on cost a push",
        description="W1 in a dozen forms side by side: CPU time of a push against that of a plain "
        "push in the same round, and which way pushes went: compiled, or the reference, and why.",
        epilog="example: penstock bench paths --batch 10000 --only NULL,string",
    )
    paths.add_argument("--batch", metavar="N,…", help="some of 10000, 100, 1 (default: all)")
    paths.add_argument("--rounds", type=int, default=15, metavar="N", help="rounds (default: 15)")
    paths.add_argument("--only", metavar="TEXT,…", help="forms whose name has one of these texts")
    paths.add_argument("--feedback", metavar="F,…", help="off, jit or both (default: both)")
    paths.add_argument(
        "--against",
        metavar="FOLDER",
        help="the plain push alone, in turn with the code of another checkout, and the ratio",
    )
    paths.add_argument("--json", metavar="FILE", help="write all figures to FILE")
    paths.set_defaults(run=run_paths_bench)
    overload = names.add_parser(
        "overload",
        help="what shedding keeps for the CPU that it takes, against dropping rows",
        description="Seven kinds of work with 80, 60, 40 and 20 % of the CPU that they need "
        "(overload=shed, cpu=…) beside the same with all of it, and beside one whose rows are "
        "dropped at random: CPU time and results against those of all, in the same run.",
        epilog="example: penstock bench overload --rows 10000",
    )
    overload.add_argument(
        "--rows",
        type=int,
        default=10_000,
        metavar="N",
        help="of a stream in a push (default: 10000)",
    )
    overload.add_argument("--json", metavar="FILE", help="write all figures to FILE")
    overload.set_defaults(run=run_overload_bench)
    recovery = names.add_parser(
        "recovery",
        help="how soon a killed cell gives results again, with a snapshot and without",
        description="A process with a cell that reads its files itself, and has a window of so "
        "many rows, is killed. Time from the start of another to the results of the next batch, "
        "with the snapshot of the cache and without it, by reading the window again.",
        epilog="example: penstock bench recovery --rows 10000000 --format parquet,json",
    )
    recovery.add_argument(
        "--rows", type=int, default=1_000_000, metavar="N", help="of the window (default: 1000000)"
    )
    recovery.add_argument(
        "--format", metavar="F,…", help="some of parquet, json, csv (default: parquet)"
    )
    recovery.add_argument("--json", metavar="FILE", help="write all figures to FILE")
    recovery.set_defaults(run=run_recovery_bench)
    bench_spark.add_parser(names)
    bench_session.add_parser(names)
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
    console.print("[bold]penstock bench paths[/] — what NULLs, strings, limits, … cost a push")
    console.print("[bold]penstock bench overload[/] — what shedding keeps, and what it costs")
    console.print("[bold]penstock bench recovery[/] — how soon a lost cell gives results again")
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


def run_paths_bench(options: argparse.Namespace) -> int:
    import json
    from pathlib import Path

    from penstock.cli.bench.paths_bench import BATCHES, paths_bench, show

    batches = _numbers(options.batch) or BATCHES
    feedbacks = _names(options.feedback) or ("off", "jit")
    if set(batches) - set(BATCHES) or set(feedbacks) - {"off", "jit"}:
        raise OptionError("--batch takes some of 10000, 100 and 1, --feedback some of off and jit")
    if options.against is None:
        found = paths_bench(batches, options.rounds, feedbacks, _names(options.only))
        show(found)
    elif options.only:
        raise OptionError("--against is about the plain push: leave --only out")
    else:
        from penstock.cli.bench.against_bench import against_bench, show_against

        folder = Path(options.against)
        found = against_bench(folder, batches, options.rounds, feedbacks)
        show_against(folder, found)
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1))
    return 0


def run_overload_bench(options: argparse.Namespace) -> int:
    import json
    from pathlib import Path

    from penstock.cli.bench.overload_bench import WORKLOADS, overload_bench, show

    if options.rows < 1:
        raise OptionError("--rows takes 1 or more")
    found = {name: overload_bench(work, options.rows) for name, work in WORKLOADS.items()}
    show(found)
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1))
    return 0


def run_recovery_bench(options: argparse.Namespace) -> int:
    import json
    from pathlib import Path

    from rich.console import Console
    from rich.table import Table

    from penstock.spark.bench.recovery_bench import FORMATS, recovery

    kinds = _names(options.format) or FORMATS[:1]
    if set(kinds) - set(FORMATS) or options.rows < 1:
        raise OptionError(f"--format takes some of {', '.join(FORMATS)}, --rows 1 or more")
    found = [recovery(options.rows, kind) for kind in kinds]
    table = Table(box=None, pad_edge=False)
    for heading in ("format", "rows", "way", "seconds", "in batch", "CPU s", "MB"):
        table.add_column(heading, justify="left" if heading in ("format", "way") else "right")
    ways = {"with a snapshot": "killed, with a snapshot", "without": "killed, without"}
    ways |= {"snapshot": "writing the snapshot", "live": "taking in the window"}
    for each in found:
        for way, told in ways.items():
            sizes = {"snapshot": each["snapshot_bytes"], "live": each["state_bytes"]}
            size = f"{each[way].get('peak_bytes', sizes.get(way, 0)) / 1e6:,.0f}"
            figures = (each[way].get(f"{name}seconds") for name in ("", "batch_", "cpu_"))
            spent = ("" if figure is None else f"{figure:.2f}" for figure in figures)
            table.add_row(each["format"], f"{each['rows']:,}", told, *spent, size)
    Console(highlight=False).print(table)
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1))
    return 0


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
