"""``penstock refresh JOB``: ask a running job to read its static relations again."""

from __future__ import annotations

import argparse
from typing import Any

EPILOG = """\
example: penstock refresh job.toml prices

The job must run, with refresh = "10 MINUTES" or refresh = "asked" for the relation. New rows hold
from the first micro-batch that is planned after they were read; what has left stays as it left."""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "refresh",
        help="ask a running job to read static relations again",
        description="Ask a running job to read static relations again, from another terminal. "
        "The page of the run can ask for it, too.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("job", metavar="JOB", help="the job file")
    parser.add_argument(
        "relations",
        metavar="RELATION",
        nargs="*",
        help="a static relation (default: all that the job refreshes)",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from penstock.cli.run.spark_start import need_spark
    from penstock.errors import OptionError
    from penstock.job import read_job
    from penstock.job.job import local_path

    need_spark()
    from penstock.spark.state.static_refresh import refresh

    job = read_job(options.job)
    have = ", ".join(job.refreshed)
    for name in options.relations:
        if name not in job.refreshed:
            found = f"it refreshes {have}" if have else 'it has none with refresh = "asked"'
            raise OptionError(
                f"{options.job}: sources.{name}: the job does not refresh it; {found}"
            )
    if local_path(job.checkpoint) is None:
        raise OptionError(
            f"{options.job}: checkpoint: {job.checkpoint} is not on this machine; ask on the page "
            "of the run, or with penstock.spark.refresh and a session that reaches it"
        )
    refresh(job.checkpoint, None, *options.relations)
    asked = ", ".join(options.relations) or have
    print(f"asked {job.name} to read {asked} again; its next micro-batches tell when that holds")
    return 0
