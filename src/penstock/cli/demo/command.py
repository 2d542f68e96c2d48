"""``penstock demo``: bids, auctions and people, joined as fast as the engine goes."""

from __future__ import annotations

import argparse
from typing import Any

SECONDS = 12.0


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "demo",
        help="a live three-way join on generated streams",
        description="Join three generated streams of an auction house, live, and end with a "
        "summary. Events arrive out of order, and a few too late.",
        epilog="example: penstock demo --seconds 5 --plan '((bids auctions) persons)'",
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--seconds", type=float, metavar="N", help=f"how long to run (default: {SECONDS:g})"
    )
    length.add_argument("--rows", type=int, metavar="N", help="stop after N tuples instead")
    parser.add_argument(
        "--plan", default="auto", metavar="PLAN", help="a plan in the notation (default: auto)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="another run of events")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from penstock.cli.demo.run import run_demo
    from penstock.errors import OptionError

    for name in ("seconds", "rows"):
        value = getattr(options, name)
        if value is not None and not value > 0:
            raise OptionError(f"--{name} must be more than 0, not {value}")
    if options.seed < 0:
        raise OptionError(f"--seed must be 0 or more, not {options.seed}")
    seconds = options.seconds
    if seconds is None and options.rows is None:
        seconds = SECONDS
    run_demo(plan=options.plan, seed=options.seed, seconds=seconds, rows=options.rows)
    return 0
