"""The first batches after a change of plan in numbers, by size of the pushes."""

from __future__ import annotations

import argparse
from statistics import median

from penstock.errors import OptionError
from penstock_studies.first_batch import Change, Setting, first_batches, wanted_share
from penstock_studies.first_batch_cases import CASES
from penstock_studies.text_table import Cell, heading, text_table

ABOUT = "the first batches after a change of plan, against a normal batch"
PUSHES = (1, 100, 1_000, 10_000)
EVERY = (2, 8, 40)
"""Pushes between two changes of plan, in the second part."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--case", nargs="+", choices=CASES, default=list(CASES), help="default: all"
    )
    parser.add_argument("--window", type=int, default=1_000_000, help="tuples (1,000,000)")
    parser.add_argument(
        "--rows", type=int, nargs="+", default=PUSHES, help="tuples per stream and push"
    )
    parser.add_argument("--changes", type=int, default=4, help="to and fro (4)")
    parser.add_argument(
        "--every", type=int, nargs="*", default=EVERY, help="pushes between changes (2 8 40)"
    )
    parser.add_argument("--seed", type=int, default=1)


def run(options: argparse.Namespace) -> None:
    given = {"window": options.window, "changes": options.changes, "rows": min(options.rows)}
    given["every"] = min(options.every, default=1)
    for name, value in given.items():
        if value < 1:
            raise OptionError(f"--{name} must be 1 or more, not {value}")
    print(heading("first-batch", options.seed))
    print(f"windows of {options.window:,} tuples, fewer where joins are nested loops\n")
    table = []
    for case in options.case:
        for rows in options.rows:
            window = max(min(options.window, CASES[case].most), rows)
            setting = Setting(case, rows, window)
            found = first_batches(setting, options.changes, options.seed)
            shares = [wanted_share(setting, every, seed=options.seed) for every in options.every]
            table.append(_row(setting, found, shares))
    heads = ["case", "push", "normal ms", "call + first", "prepared", "first of new plan"]
    heads += ["worst", "first result", *(f"wanted, every {every}" for every in options.every)]
    print(text_table(heads, table))
    print(
        "in normal batches, the median of all changes and after the stroke the most; prepared: "
        "beside so many pushes; wanted: the share of pushes by the plan that was asked for"
    )


def _row(setting: Setting, found: list[Change], shares: list[float]) -> list[Cell]:
    def both(values: list[float]) -> str:
        return f"{median(values):.1f} / {max(values):.1f}"

    return [
        setting.case,
        f"3 × {setting.rows:,}",
        round(1000 * median([each.normal for each in found]), 2),
        both([each.call_and_first for each in found]),
        both([float(each.prepared) for each in found]),
        both([each.new for each in found]),
        both([each.worst for each in found]),
        both([each.result for each in found]),
        *(f"{share:.0%}" for share in shares),
    ]
