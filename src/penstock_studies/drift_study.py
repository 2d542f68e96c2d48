"""Drifting workloads in numbers: the controller against every fixed plan, by phase and seed."""

from __future__ import annotations

import argparse
from dataclasses import replace

from penstock.errors import OptionError
from penstock_studies.drift import WORKLOADS, Drift, Workload, drift
from penstock_studies.text_table import Cell, heading, text_table

ABOUT = "selectivities that swap: the controller against every fixed plan"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workload", choices=tuple(WORKLOADS), default="star", help="default: star"
    )
    parser.add_argument("--feedback", default="jit", help="off, jit or bloom (default: jit)")
    parser.add_argument("--rate", type=int, help="tuples per second and stream")
    parser.add_argument("--phases", type=int, help="how often selectivities swap")
    parser.add_argument("--rounds", type=int, default=1, help="runs; the least CPU counts (1)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1, help="so many, from --seed on (1)")


def run(options: argparse.Namespace) -> None:
    workload = workload_of(options)
    print(heading("drift", options.seed))
    print(f"{options.workload}, feedback {options.feedback}")
    found = []
    for seed in range(options.seed, options.seed + options.seeds):
        each = drift(replace(workload, seed=seed), feedback=options.feedback, rounds=options.rounds)
        found.append(each)
        print(f"\nseed {seed}\n{_table(each)}")
        for change in each.adaptive.history:
            print(f"  {change}", flush=True)
    print()
    print(
        text_table(
            [
                "seed",
                "controller / best of each phase",
                "worst fixed / controller",
                "worst / best",
                "changes priced at, ms",
                "and cost, ms",
            ],
            [
                [
                    each.workload.seed,
                    round(each.against_best, 2),
                    round(each.against_worst, 2),
                    round(each.against_best * each.against_worst, 2),
                    round(1000 * each.adaptive.priced, 2),
                    round(1000 * each.adaptive.cost, 2),
                ]
                for each in found
            ],
        )
    )
    print("aims: 1.15 at most, 2 at least; worst / best is the most that could be had")


def workload_of(options: argparse.Namespace) -> Workload:
    """The workload of that name, as large as was asked for."""
    given = {name: getattr(options, name) for name in ("rate", "phases")}
    for name, value in {**given, "rounds": options.rounds, "seeds": options.seeds}.items():
        if value is not None and value < 1:
            raise OptionError(f"--{name} must be 1 or more, not {value}")
    return replace(WORKLOADS[options.workload], **{k: v for k, v in given.items() if v is not None})


def _table(found: Drift) -> str:
    phases = [f"phase {number + 1}" for number in range(found.workload.phases)]
    rows: list[list[Cell]] = [
        [run.plan, *(round(each, 2) for each in run.phases), round(run.cpu, 2)]
        for run in (found.adaptive, *sorted(found.fixed, key=lambda run: run.cpu))
    ]
    return text_table(["plan", *phases, "CPU s"], rows)
