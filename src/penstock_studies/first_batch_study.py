"""The first batches after a change of plan in numbers, by size of the pushes."""

from __future__ import annotations

import argparse

from penstock.errors import OptionError
from penstock_studies.first_batch import Change, Setting, first_batches
from penstock_studies.text_table import Cell, heading, text_table

ABOUT = "the first batches after a change of plan, against a normal batch"
PUSHES = (1, 1_000, 10_000)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--window", type=int, default=1_000_000, help="tuples (1,000,000)")
    parser.add_argument(
        "--rows", type=int, nargs="+", default=PUSHES, help="tuples per stream and push"
    )
    parser.add_argument("--columns", choices=("one", "two"), default="two", help="default: two")
    parser.add_argument("--feedback", default="off", help="off, jit or bloom (default: off)")
    parser.add_argument("--changes", type=int, default=4, help="to and fro (4)")
    parser.add_argument("--seed", type=int, default=1)


def run(options: argparse.Namespace) -> None:
    given = {"window": options.window, "changes": options.changes, "rows": min(options.rows)}
    for name, value in given.items():
        if value < 1:
            raise OptionError(f"--{name} must be 1 or more, not {value}")
    print(heading("first-batch", options.seed))
    print(f"windows of {options.window:,} tuples, {options.columns}, feedback {options.feedback}\n")
    table = [
        _row(rows, each)
        for rows in options.rows
        for each in first_batches(
            Setting(rows, options.window, options.columns, options.feedback),
            options.changes,
            options.seed,
        )
    ]
    heads = ["push", "to", "normal ms", "call", "call + first", "prepared", "slowest", "last"]
    print(text_table([*heads, "first of new plan", "slowest after"], table))
    print("in normal batches; prepared: beside so many pushes. aim: a first batch of 2 at most")


def _row(rows: int, each: Change) -> list[Cell]:
    times = (each.call, each.call_and_first)
    more = (each.preparing, each.switching, each.new, each.following)
    return [
        f"3 × {rows:,}",
        each.plan,
        round(1000 * each.normal, 2),
        *(round(time, 2) for time in times),
        each.prepared,
        *(round(time, 2) for time in more),
    ]
