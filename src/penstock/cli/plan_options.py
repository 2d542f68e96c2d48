"""Options of the command line that say which plan a job may have: plan, limits, adapt."""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.job import Job


def add_plan_options(parser: argparse.ArgumentParser) -> None:
    """Each of them goes before what the job file says."""
    parser.add_argument(
        "--plan",
        metavar="PLAN",
        help="a plan to pin, such as '((A B) C)', or auto, or an eddy: cacq, stairs, stairs-lazy",
    )
    parser.add_argument(
        "--cpu", type=float, metavar="SHARE", help="limit: share of a core per cell"
    )
    parser.add_argument("--memory", metavar="SIZE", help="limit: bytes per cell, such as 2GiB")


def add_adapt_option(parser: argparse.ArgumentParser) -> None:
    """Whether the controller may change the plan."""
    parser.add_argument(
        "--adapt",
        choices=("auto", "on", "off"),
        help="auto: plans are changed when that pays, unless one was given (the default); "
        "on: also a given one; off: never",
    )


def with_plan_options(job: Job, options: argparse.Namespace) -> Job:
    """``job`` with what the command line says."""
    from penstock.job.job import Limits as JobLimits
    from penstock.planning.limits import Limits

    changes: dict[str, object] = {}
    if options.plan is not None:
        changes["plan"] = options.plan
    if getattr(options, "adapt", None) is not None:
        changes["adapt"] = options.adapt
    if options.cpu is not None or options.memory is not None:
        given = Limits(options.cpu, options.memory)
        limits = job.limits or JobLimits()
        changes["limits"] = JobLimits(
            limits.cpu if given.cpu is None else given.cpu,
            limits.memory if given.memory is None else given.memory,
            limits.probes,
            limits.disk,
        )
    return dataclasses.replace(job, **changes)  # type: ignore[arg-type]
