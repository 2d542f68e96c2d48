"""``penstock explain JOB``: what a job would do: its query, its plan, its cells."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.spark.prepared_job import PreparedJob


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "explain",
        help="show the query, plan and cells of a job file",
        description="Open the sources of a job, check everything, and print its streams and "
        "predicates, the plan, and how tuples are spread over cells. Nothing is run.",
        epilog="example: penstock explain examples/auctions/job.toml",
    )
    parser.add_argument("job", metavar="JOB", help="the job file")
    parser.add_argument("--cells", type=int, metavar="N", help="as if the job asked for N cells")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    import dataclasses

    from rich.console import Console

    from penstock.cli.run.spark_start import sign_of_life, started_spark
    from penstock.errors import OptionError
    from penstock.job import read_job

    job = read_job(options.job)
    if options.cells is not None:
        if options.cells < 1:
            raise OptionError(f"--cells must be 1 or more, not {options.cells}")
        job = dataclasses.replace(job, cells=options.cells)
    console = Console(stderr=True, highlight=False)
    with started_spark(job, console, None) as (spark, _):
        from penstock.spark.prepared_job import prepare

        with sign_of_life(console, "opening the sources"):
            prepared = prepare(job, spark)
            prepared.results()
    print("\n".join(explained(prepared)))
    return 0


def explained(prepared: PreparedJob) -> list[str]:
    """The lines of the explanation."""
    job, query = prepared.job, prepared.query
    lines = [f"job {job.name}", "", "streams"]
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
    lines += ["", "plan", f"  {prepared.plan}", "", "cells"]
    lines += [f"  {line}" for line in prepared.placement.describe().splitlines()]
    return lines


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows as lines with columns below each other."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        ("  " + "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True))).rstrip()
        for row in rows
    ]
