"""The drifting workload in numbers: the controller against every fixed plan, phase by phase."""

from __future__ import annotations

import argparse

from penstock.experiments.drift import Workload, drift
from penstock.experiments.text_table import Cell, heading, text_table

ABOUT = "selectivities that swap: the controller against every fixed plan"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--feedback", default="off", help="off, jit or bloom (default: off)")
    parser.add_argument("--others", type=int, default=2, help="streams that A is joined with")
    parser.add_argument("--rate", type=int, default=100_000, help="tuples per second and stream")
    parser.add_argument("--phases", type=int, default=6, help="how often selectivities swap")
    parser.add_argument("--seed", type=int, default=1)


def run(options: argparse.Namespace) -> None:
    workload = Workload(
        others=options.others, rate=options.rate, phases=options.phases, seed=options.seed
    )
    found = drift(workload, feedback=options.feedback)
    print(heading("drift", options.seed))
    phases = [f"phase {number + 1}" for number in range(workload.phases)]
    rows: list[list[Cell]] = [
        [run.plan, *(round(each, 2) for each in run.phases), round(run.cpu, 2)]
        for run in (found.adaptive, *sorted(found.fixed, key=lambda run: run.cpu))
    ]
    print(text_table(["plan", *phases, "CPU s"], rows))
    for change in found.adaptive.history:
        print(f"  {change}")
    print(f"controller / best plan of each phase: {found.against_best:.2f} (aim: 1.3 at most)")
    print(f"worst fixed plan / controller:        {found.against_worst:.2f} (aim: 2 at least)")
