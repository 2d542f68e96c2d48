"""``penstock explain JOB``: what a job would do: its query, its plan, its cells, the costs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.cli.plan_options import add_plan_options

if TYPE_CHECKING:
    from penstock.explain.explanation import Explanation
    from penstock.planning.problem import Problem
    from penstock.planning.statistics import Statistics
    from penstock.spark.jobs.prepared_job import PreparedJob

RATE = 1000.0
"""Tuples per second of a source, and rows of a static relation, if nobody says."""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "explain",
        help="show the query, plan and cells of a job file, and what plans cost",
        description="Open the sources of a job, check everything, and print its streams and "
        "predicates, how tuples are spread over cells, and the plan with what it is estimated to "
        "cost in a cell, beside the limits and other plans. Nothing is run.",
        epilog="example: penstock explain examples/auctions/job.toml --memory 64MiB --front",
    )
    parser.add_argument("job", metavar="JOB", help="the job file")
    parser.add_argument("--cells", type=int, metavar="N", help="as if the job asked for N cells")
    add_plan_options(parser)
    parser.add_argument(
        "--statistics",
        metavar="FILE",
        help="rates and selectivities as JSON, as engine.statistics().to_text() writes them "
        "(default: the rates of the sources, and assumptions)",
    )
    parser.add_argument(
        "--diff", nargs=2, metavar=("PLAN1", "PLAN2"), help="compare two plans instead"
    )
    parser.add_argument("--front", action="store_true", help="draw the front of CPU against memory")
    parser.add_argument("--svg", metavar="FILE", help="write the front as a picture")
    parser.add_argument(
        "--format", choices=("text", "json", "mermaid"), default="text", help="of the plan"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    import dataclasses

    from rich.console import Console

    from penstock.cli.plan_options import with_plan_options
    from penstock.cli.run.spark_start import sign_of_life, started_spark
    from penstock.errors import OptionError
    from penstock.job import read_job

    job = with_plan_options(read_job(options.job), options)
    if options.cells is not None:
        if options.cells < 1:
            raise OptionError(f"--cells must be 1 or more, not {options.cells}")
        job = dataclasses.replace(job, cells=options.cells)
    statistics = None if options.statistics is None else _read_statistics(options.statistics)
    console = Console(stderr=True, highlight=False)
    with started_spark(job, console, None) as (spark, _):
        from penstock.spark.jobs.prepared_job import engine_options, prepare

        with sign_of_life(console, "opening the sources"):
            prepared = prepare(job, spark)
            prepared.check()
    from penstock.explain.planned import compared, planned

    problem, assumed = problem_of(prepared, statistics)
    limits = engine_options(job).get("limits")
    if options.diff is not None:
        before, after = options.diff
        print(compared(problem, before, after, limits))
        return 0
    explanation = planned(problem, job.plan, limits)
    lines = rendered(explanation, options)
    if options.format == "text":
        begins = f"a run begins with {prepared.plan}, and with rates as below goes over to"
        chosen = [begins] if job.plan == "auto" and str(explanation.plan) != prepared.plan else []
        lines = ["in each cell", *chosen, *lines, *(f"  {a}" for a in assumed)]
        lines = [*explained(prepared), "", *lines]
    if options.svg is not None:
        from penstock.explain.front_svg import front_svg

        _write(options.svg, front_svg(explanation))
    print("\n".join(lines))
    return 0


def _write(file: str, content: str) -> None:
    from pathlib import Path

    from penstock.errors import OptionError

    try:
        Path(file).write_text(content, "utf-8")
    except OSError as error:
        raise OptionError(f"--svg {file}: cannot be written: {error}") from None


def _read_statistics(file: str) -> Statistics:
    from pathlib import Path

    from penstock.errors import OptionError
    from penstock.planning.statistics import Statistics

    try:
        return Statistics.from_text(Path(file).read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"--statistics {file}: cannot be read: {error}") from None


def problem_of(
    prepared: PreparedJob, statistics: Statistics | None
) -> tuple[Problem, tuple[str, ...]]:
    """What planners know about a cell of the job, and what is assumed about its rates."""
    from penstock.planning.calibrated import calibrated_costs
    from penstock.planning.problem import Problem
    from penstock.planning.statistics import Statistics

    assumed: list[str] = []
    if statistics is None:
        placement, sources = prepared.placement, prepared.job.sources
        rates: dict[str, float] = {}
        sizes: dict[str, float] = {}
        for stream in (s for block in prepared.query.blocks for s in block.streams):
            rate = sources[stream.source].rate
            if rate is None:
                rate = RATE
                unit = "rows" if stream.is_static else "tuples/s"
                assumed.append(f"{stream.alias} has {RATE:g} {unit}")
            share = placement.replicas.get(stream.alias, 1) / placement.cells
            (sizes if stream.is_static else rates)[stream.alias] = rate * share
        statistics = Statistics(rates, sizes=sizes)
    costs = None if statistics.costs is not None else calibrated_costs()
    return Problem(prepared.query, statistics, costs), tuple(assumed)


def rendered(explanation: Explanation, options: argparse.Namespace) -> list[str]:
    """The plan in the format that was asked for, as lines."""
    import json

    from penstock.explain.as_json import as_json
    from penstock.explain.mermaid import mermaid
    from penstock.explain.text import text

    if options.format == "json":
        return [json.dumps(as_json(explanation), indent=2, ensure_ascii=False)]
    if options.format == "mermaid":
        return [mermaid(explanation)]
    return text(explanation, options.front).splitlines()


def explained(prepared: PreparedJob) -> list[str]:
    """The streams, predicates, answer and cells of a job, as lines."""
    job, query = prepared.job, prepared.query
    lines = [f"job {job.name}", str(prepared.lane), "", "streams"]
    rows = []
    for stream in (s for block in query.blocks for s in block.streams):
        source = job.sources[stream.source]
        facts = [f"event time {stream.event_time}"] if stream.event_time else []
        if source.watermark is not None:
            facts.append(f"watermark {source.watermark / 1000:g} s")
        if stream.alias != stream.source:
            facts.append(f"reads {stream.source}")
        window = "static" if stream.is_static else str(stream.window)
        rows.append((stream.alias, window, source.format, ", ".join(facts)))
    lines += _aligned(rows)
    predicates = [
        (str(predicate), " – ".join(s for s in block.aliases if s in predicate.streams))
        for block in query.blocks
        for predicate in block.predicates
    ]
    if predicates:
        lines += ["", "predicates", *_aligned(predicates)]
    lines += ["", "answer", f"  {query.emission}"]
    lines += _aligned([(field.name, str(field.type)) for field in query.schema])
    lines += ["", "cells"]
    lines += [f"  {line}" for line in prepared.placement.describe().splitlines()]
    lines += [f"    {line}" for line in prepared.reads]
    return lines


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows as lines with columns below each other."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        ("  " + "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True))).rstrip()
        for row in rows
    ]
