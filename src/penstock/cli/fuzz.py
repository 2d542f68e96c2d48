"""``penstock fuzz``: random queries and runs, compiled against reference against oracle."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path
from typing import Any

from penstock.errors import OptionError


def add_parser(commands: Any) -> None:
    fuzz = commands.add_parser(
        "fuzz",
        help="random queries: the compiled push against the reference against an oracle",
        description="Random queries, rows and pushes, with changes of plan, feedback, budgets that "
        "are short or not, failing pushes and restarts. The compiled push, the reference and a "
        "brute-force oracle must agree in every push. A difference prints the seed and the case.",
        epilog="example: penstock fuzz --cases 100000 --campaign cases.json --seconds 600",
    )
    fuzz.add_argument("--cases", type=int, default=200, metavar="N", help="cases (default: 200)")
    fuzz.add_argument("--seed", type=int, default=0, metavar="N", help="the first seed (default 0)")
    fuzz.add_argument(
        "--large-every",
        type=int,
        default=50,
        metavar="N",
        help="every N-th case has thousands of rows per stream (default: 50; 0: none)",
    )
    fuzz.add_argument(
        "--campaign",
        metavar="FILE",
        help="keep in FILE what is done, and go on from there: --cases are those of all runs",
    )
    fuzz.add_argument(
        "--seconds", type=float, metavar="N", help="with --campaign: stop after so many seconds"
    )
    fuzz.set_defaults(run=run_fuzz)


def run_fuzz(options: argparse.Namespace) -> int:
    from penstock.testing.fuzz import fuzz

    if options.campaign is not None:
        return _go_on(options)
    if options.seconds is not None:
        raise OptionError(
            "--seconds is how long a campaign goes on: give --campaign FILE beside it"
        )
    ways: Counter[str] = Counter()
    began, done = time.monotonic(), 0
    try:
        for seed, found in fuzz(options.cases, options.seed, options.large_every):
            ways.update(found)
            done += 1
            if done % 500 == 0:
                print(f"{done:,} cases, up to seed {seed}, {time.monotonic() - began:.0f} s")
    except AssertionError as difference:
        print(difference)
        print(f"\nThe case of seed {options.seed + done} differs.")
        return 1
    print(f"{done:,} cases, no difference, {time.monotonic() - began:.0f} s")
    for way, pushes in ways.most_common():
        print(f"{pushes:>10,} pushes  {way}")
    return 0


def _go_on(options: argparse.Namespace) -> int:
    """Run the next cases of a campaign."""
    from penstock.testing.campaign import Campaign

    path = Path(options.campaign)
    campaign = Campaign.read(path, options.seed, options.large_every)
    code = 0
    try:
        campaign.go_on(path, options.cases, options.seconds)
    except AssertionError as difference:
        print(difference)
        print(f"\nThe case of seed {campaign.next} differs.")
        code = 1
    done = f"{campaign.cases:,} of {options.cases:,} cases"
    print(f"{done}, no difference before seed {campaign.next}, {campaign.seconds:.0f} s in all")
    return code
