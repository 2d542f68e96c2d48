"""``penstock calibrate``: measure what operations cost here, and keep it for the planners."""

from __future__ import annotations

import argparse
from typing import Any

from penstock.errors import OptionError


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "calibrate",
        help="measure what operations cost on this machine, for the planners",
        description="Measure insertions, deletions, probes, joins, texts, conditions, groups and "
        "results on this machine, some ten seconds, and keep the numbers in the user's cache "
        "folder (XDG_CACHE_HOME). Plans are made with them from then on. Beside each stands how "
        "far repeated measurements lie apart.",
        epilog="example: penstock calibrate",
    )
    parser.add_argument("--rounds", type=int, default=6, metavar="N", help="rounds (default: 6)")
    parser.add_argument("--dry-run", action="store_true", help="print the numbers, keep nothing")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if options.rounds < 1:
        raise OptionError(f"--rounds must be 1 or more, not {options.rounds}")

    from penstock.machine.calibration import calibrate
    from penstock.planning.calibrated import keep_costs

    found = calibrate(rounds=options.rounds)
    for name, seconds in found.costs.to_json().items():
        spread = found.spread.get(name)
        how = "default, scaled" if spread is None else f"± {50 * spread:.0f} %"
        print(f"{name:>9}  {1e9 * seconds:9.2f} ns  {how}")
    if not options.dry_run:
        print(f"kept in {keep_costs(found.costs)}")
    return 0
