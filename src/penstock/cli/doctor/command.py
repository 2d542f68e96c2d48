"""``penstock doctor``: look at the machine, and at a job if one is given."""

from __future__ import annotations

import argparse
from typing import Any

UNWELL = 1
_MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "problem": ("✗", "red")}


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "doctor",
        help="check Java, Spark, memory and folders, and say how to mend what is wrong",
        description="Check what Penstock needs: Python packages, Java, memory, folders that can be "
        "written, disk space; then start Spark and run a small query. With a job file, its "
        "folders are checked too.",
        epilog="example: penstock doctor --quick job.toml. Exit codes: 0 all is well or there are "
        "only warnings, 1 there is a problem.",
    )
    parser.add_argument("job", metavar="JOB", nargs="?", help="a job file")
    parser.add_argument("--quick", action="store_true", help="do not start Spark")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.text import Text

    from penstock.cli.doctor.checks import job_checks, machine_checks, spark_checks

    console = Console(highlight=False)
    found = list(machine_checks())
    if options.job is not None:
        found += job_checks(options.job)
    is_well = not any(check.status == "problem" for check in found)
    if is_well and not options.quick:
        found += spark_checks(Console(stderr=True, highlight=False))
    width = max(len(check.name) for check in found)
    for check in found:
        mark, style = _MARKS[check.status]
        line = Text.assemble((mark, style), f" {check.name:<{width}}  {check.found}")
        console.print(line, soft_wrap=True)
        if check.mend:
            console.print(Text(f"  {'':<{width}}  → {check.mend}"), soft_wrap=True)
    problems = sum(check.status == "problem" for check in found)
    warnings = sum(check.status == "warning" for check in found)
    if problems or warnings:
        console.print(f"\n{_count(problems, 'problem')}, {_count(warnings, 'warning')}")
    else:
        console.print("\nall is well")
    return UNWELL if problems else 0


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
