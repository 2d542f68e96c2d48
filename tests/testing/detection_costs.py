"""What it costs to find out whether a row has a partner: by a hash index, or by a Bloom filter.

The kernels that guards use, on keys of one input of so many rows, in nanoseconds per key: the test
of keys that have no partner and of keys that have one, and the entry of a new key. A filter is
filled twice for each key, when it comes and when the filter is made anew. Rounds of all of them
take turns, and the least of many counts. :mod:`penstock.engine.feedback.feedback_policy` has the
figures as its prices.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from penstock.engine.state.probing import exists
from penstock.engine.state.rows import Rows
from penstock.kernels import demand
from penstock_studies.text_table import Cell, heading, text_table

Int64s = NDArray[np.int64]
_TESTED = 4096
"""Keys of a call."""
_WORDS_PER_ROW = 0.5
"""Of 64 bits, in a filter of twice as many rows: as the engine makes it."""


def kernels(rows: int, seed: int) -> dict[str, Callable[[], object]]:
    """One call for each kind of work, on an input of so many ``rows``."""
    random = np.random.default_rng(seed)
    held = random.permutation(2 * rows)[:rows].astype(np.int64)
    ring = Rows(dated=False)
    index = ring.add_index()
    ring.reserve(rows + _TESTED)
    ring.head = rows
    ring.insert(index, 0, held)
    table = np.zeros(1 << (int(_WORDS_PER_ROW * rows) - 1).bit_length(), np.uint64)
    demand.add(table, held)
    there = held[random.integers(0, rows, _TESTED)]
    lacking = there + 2 * rows
    found = np.empty(_TESTED, np.bool_)
    fresh = random.integers(0, 2 * rows, _TESTED)

    def enter() -> None:
        ring.insert(index, rows, fresh)

    return {
        "index, no partner": lambda: exists(lacking, ring, index, found),
        "filter, no partner": lambda: demand.may_contain(table, lacking, found),
        "index, partner": lambda: exists(there, ring, index, found),
        "filter, partner": lambda: demand.may_contain(table, there, found),
        "index, new key": enter,
        "filter, new key": lambda: demand.add(table, fresh),
    }


def measure(rows: int, rounds: int, seed: int) -> dict[str, float]:
    """Nanoseconds per key of each kind of work."""
    calls = kernels(rows, seed)
    least = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter_ns()
            call()
            least[name] = min(least[name], (time.perf_counter_ns() - start) / _TESTED)
    return least


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rows", nargs="+", type=int, default=[1_000, 10_000, 100_000, 1_000_000], help="held"
    )
    parser.add_argument("--rounds", type=int, default=200, help="of which the least counts (200)")
    parser.add_argument("--seed", type=int, default=1)


def run(options: argparse.Namespace) -> bool:
    """Measure and print."""
    print(heading("detection", options.seed))
    found = {rows: measure(rows, options.rounds, options.seed) for rows in options.rows}
    names = next(iter(found.values()))
    table: list[list[Cell]] = [
        [name, *(round(found[rows][name], 1) for rows in options.rows)] for name in names
    ]
    print(text_table(["ns per key", *(f"{rows:,} rows" for rows in options.rows)], table))
    return True


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    run(parser.parse_args())
