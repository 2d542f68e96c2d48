"""``penstock fuzz``: random queries and runs, compiled against reference against oracle."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import Any


def add_parser(commands: Any) -> None:
    fuzz = commands.add_parser(
        "fuzz",
        help="random queries: the compiled push against the reference against an oracle",
        description="Random queries, rows and pushes, with changes of plan, feedback, budgets that "
        "are short or not, failing pushes and restarts. The compiled push, the reference and a "
        "brute-force oracle must agree in every push. A difference prints the seed and the case.",
        epilog="example: penstock fuzz --cases 1000 --seed 7",
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
    fuzz.set_defaults(run=run_fuzz)


def run_fuzz(options: argparse.Namespace) -> int:
    from penstock.testing.fuzz import fuzz

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
