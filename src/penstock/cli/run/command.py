"""``penstock run JOB``: run a job file on Spark, until it ends or is stopped."""

from __future__ import annotations

import argparse
from typing import Any

from penstock.cli.live_page import add_page_options
from penstock.cli.plan_options import add_adapt_option, add_plan_options, with_plan_options

EPILOG = """\
example: penstock run examples/auctions/job.toml

Ctrl-C ends the run after the running micro-batch; the same command goes on from there. A second
Ctrl-C does not wait. Exit codes: 0 the job has ended by itself, 1 it has failed, 2 there is a
mistake in the job file, 130 stopped by Ctrl-C, 143 stopped by SIGTERM."""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "run",
        help="run a job file on Spark",
        description="Run a job: a TOML file with a query, its sources, a sink and a checkpoint "
        "folder. Shows rates, results and state while it runs, and a summary at the end.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("job", metavar="JOB", help="the job file")
    add_plan_options(parser)
    add_adapt_option(parser)
    add_run_options(parser)
    parser.set_defaults(run=run)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Options of every command that runs a job."""
    parser.add_argument("--plain", action="store_true", help="lines instead of a live view")
    parser.add_argument(
        "--spark-log",
        nargs="?",
        const="info",
        choices=("error", "warn", "info", "debug"),
        help="show Spark's own messages on stderr, from this level on (default: info)",
    )
    add_page_options(parser)


def run(options: argparse.Namespace) -> int:
    from rich.console import Console

    from penstock.cli.live_page import opened_page
    from penstock.cli.run.latest_results import LatestResults
    from penstock.cli.run.run_job import run_job
    from penstock.job import read_job

    job = with_plan_options(read_job(options.job), options)
    console = Console(highlight=False)
    with opened_page(options, console) as page:
        results = LatestResults.of(job.sink) if page else None
        return run_job(job, options.plain, options.spark_log, console, page=page, results=results)
