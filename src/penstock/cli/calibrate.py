"""``penstock calibrate``: measure what operations cost here, and keep it for the planners."""

from __future__ import annotations

import argparse
from typing import Any

from penstock.errors import OptionError


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "calibrate",
        help="measure what operations cost on this machine, for the planners",
        description="Measure insertions, deletions, probes and joins on this machine, a few "
        "seconds, and keep the numbers in the user's cache folder (XDG_CACHE_HOME). Plans are made "
        "with them from then on.",
        epilog="example: penstock calibrate",
    )
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds (default: 3)")
    parser.add_argument("--dry-run", action="store_true", help="print the numbers, keep nothing")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if options.rounds < 1:
        raise OptionError(f"--rounds must be 1 or more, not {options.rounds}")

    from penstock.machine.calibration import calibrate
    from penstock.planning.calibrated import keep_costs

    costs = calibrate(rounds=options.rounds)
    for name, seconds in costs.to_json().items():
        print(f"{name:>8}  {1e9 * seconds:8.2f} ns")
    if not options.dry_run:
        print(f"kept in {keep_costs(costs)}")
    return 0
