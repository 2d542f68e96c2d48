"""``penstock demo``: bids, auctions and people, joined on Spark, or by the engine alone."""

from __future__ import annotations

import argparse
from typing import Any

from penstock.cli.run.command import add_run_options

SECONDS = 30.0
EMBEDDED_SECONDS = 12.0
PAGE_SECONDS = 600.0


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "demo",
        help="a live three-way join on generated streams",
        description="Join three generated streams of an auction house on Spark, live, and end "
        "with a summary. Events arrive out of order, and a few too late. Nothing stays behind.",
        epilog="example: penstock demo --ui, or "
        "penstock demo --embedded --overload defer --plan '((bids auctions) persons)'",
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--seconds",
        type=float,
        metavar="N",
        help="how long events come, once Spark is there "
        f"(default: {SECONDS:g}; embedded: {EMBEDDED_SECONDS:g}; with --ui: {PAGE_SECONDS:g})",
    )
    length.add_argument("--rows", type=int, metavar="N", help="stop after N tuples instead")
    parser.add_argument(
        "--plan", default="auto", metavar="PLAN", help="a plan in the notation (default: auto)"
    )
    parser.add_argument(
        "--embedded", action="store_true", help="without Spark: one engine, as fast as it goes"
    )
    parser.add_argument(
        "--overload",
        choices=("exact", "shed", "defer"),
        metavar="POLICY",
        help="let the streams surge beyond a budget now and then, with exact, shed or defer",
    )
    add_run_options(parser)
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="another run of events")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from penstock.errors import OptionError

    for name in ("seconds", "rows"):
        value = getattr(options, name)
        if value is not None and not value > 0:
            raise OptionError(f"--{name} must be more than 0, not {value}")
    if options.seed < 0:
        raise OptionError(f"--seed must be 0 or more, not {options.seed}")
    seconds = options.seconds
    if seconds is None and options.rows is None:
        seconds = EMBEDDED_SECONDS if options.embedded else SECONDS
        seconds = PAGE_SECONDS if options.ui else seconds
    from rich.console import Console

    from penstock.cli.live_page import opened_page

    console = Console(highlight=False)
    with opened_page(options, console) as page:
        if options.embedded:
            from penstock.cli.demo.run import run_demo

            length = (seconds, options.rows)
            run_demo(options.plan, options.seed, *length, console, page, options.overload)
            if page is not None:
                page.stay(console)
            return 0
        from penstock.cli.demo.spark_demo import run_spark_demo

        return run_spark_demo(
            options.plan,
            options.seed,
            seconds,
            options.rows,
            options.plain,
            options.spark_log,
            console,
            page,
            options.overload,
        )
