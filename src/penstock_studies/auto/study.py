"""The table of all workloads: CPU of ``plan="auto"`` against the best plan by hand."""

from __future__ import annotations

import argparse
from dataclasses import replace

from penstock.errors import OptionError
from penstock_studies.auto.contest import AUTO, Contest, contest
from penstock_studies.auto.workloads import WORKLOADS
from penstock_studies.text_table import Cell, heading, text_table

ABOUT = 'plan="auto" on twenty workloads: its CPU against the best plan by hand'
WHOLE, SECOND_HALF, MOST = 1.3, 1.15, 2.0
"""Times the CPU of the best plan by hand: over the run, in its second half, and ever."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workload", action="append", metavar="NAME", help="only this one; may be given again"
    )
    parser.add_argument("--rounds", type=int, default=1, help="runs; the least CPU counts (1)")
    parser.add_argument("--share", type=float, default=1.0, help="of the length of runs (1)")
    parser.add_argument("--plans", action="store_true", help="show every plan, and all changes")
    parser.add_argument("--seed", type=int, default=1)


def run(options: argparse.Namespace) -> bool:
    if options.rounds < 1 or not 0 < options.share <= 1:
        raise OptionError("--rounds is 1 or more, and --share above 0 and at most 1")
    made = [replace(each(), seed=options.seed).shortened(options.share) for each in WORKLOADS]
    known = {each.name: each for each in made}
    for name in options.workload or ():
        if name not in known:
            raise OptionError(f"no workload is called {name!r}; they are: {', '.join(known)}")
    chosen = [known[name] for name in options.workload] if options.workload else made
    print(heading("auto", options.seed))
    found = []
    for workload in chosen:
        each = contest(workload, options.rounds)
        found.append(each)
        if options.plans:
            print(f"\n{workload.name}: {workload.about}\n{_plans(each)}")
            for change in each.changes:
                print(f"  {change}")
        print(_line(each), flush=True)
    print()
    print(_table(found))
    kept = [each for each in found if each.whole <= WHOLE and each.second_half <= SECOND_HALF]
    print(
        f"{len(kept)} of {len(found)} within {WHOLE} over the run and {SECOND_HALF} in its second "
        f"half; {sum(each.whole > MOST for each in found)} over {MOST}"
    )
    return len(kept) == len(found)


def _line(found: Contest) -> str:
    return f"{found.workload.name:15}{found.whole:6.2f}{found.second_half:6.2f}"


def _plans(found: Contest) -> str:
    rows: list[list[Cell]] = [
        [plan, found.cpu.get(plan), found.late.get(plan)] for plan in (AUTO, *found.workload.plans)
    ]
    return text_table(["plan", "CPU s", "second half"], rows)


def _table(found: list[Contest]) -> str:
    rows: list[list[Cell]] = [
        [
            each.workload.name,
            each.workload.about,
            round(each.cpu[each.best], 3),
            round(each.cpu[AUTO], 3),
            round(each.whole, 2),
            round(each.second_half, 2),
            each.looks,
            round(100 * each.looks_cpu / each.cpu[AUTO], 1),
            len(each.changes),
        ]
        for each in found
    ]
    headings = ["workload", "", "best s", "auto s", "whole run", "second half"]
    headings += ["looks", "their % of CPU", "changes"]
    return text_table(headings, rows)
