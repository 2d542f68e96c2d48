"""Demand feedback off, by default and always on: partial results, CPU seconds and bytes of state.

Every case of :mod:`penstock_studies.feedback_cases` runs in all these ways on the same pushes, in
turn, and the least CPU of several rounds counts. The answers must be the same number of results.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

import penstock
from penstock.errors import OptionError
from penstock_studies.feedback_cases import CASES, FeedbackCase, Pushes
from penstock_studies.text_table import Cell, heading, text_table

ABOUT = "demand feedback: off, by default and always on, in many kinds of plans"

WAYS: dict[str, penstock.Feedback | str] = {
    "off": "off",
    "default": "jit",
    "bloom": "bloom",
    "always": penstock.Feedback(adaptive=False),
}
"""The values of the option ``feedback`` by the name of their column."""

_LOOKED_AT = 8
"""Pushes from one look at the bytes of state to the next."""
_WARMING = 12
"""Pushes of a run beforehand, in which kernels are loaded."""


@dataclass(frozen=True)
class Measured:
    """What a run has made, and what it has cost."""

    partial: int
    """Partial results that were made."""
    cpu: float
    """Seconds in pushes."""
    bytes: int
    """The most bytes of state that were seen, every few pushes."""
    results: int


def measure(
    case: FeedbackCase,
    query: penstock.JoinGraph,
    pushes: Pushes,
    feedback: penstock.Feedback | str,
    clock: Callable[[], float] = time.process_time,
) -> Measured:
    """One run."""
    engine = penstock.Engine(query, plan=case.plan, feedback=feedback, **(case.options or {}))
    cpu, largest = 0.0, 0
    for number, push in enumerate(pushes):
        start = clock()
        engine.push(push)
        cpu += clock() - start
        if number % _LOOKED_AT == 0:
            largest = max(largest, engine.metrics()["state"]["bytes"])
    metrics = engine.metrics()
    made = sum(each["made"] for each in metrics["joins"])
    return Measured(made - metrics["results"], cpu, largest, metrics["results"])


def best_of(rounds: int, case: FeedbackCase, ways: list[str], seed: int) -> dict[str, Measured]:
    """The run of each way that took the least CPU."""
    query, pushes = case.made_of(seed)
    best: dict[str, Measured] = {}
    for way in ways:
        measure(case, query, pushes[:_WARMING], WAYS[way])
    for _ in range(rounds):
        for way in ways:
            gc.collect()
            found = measure(case, query, pushes, WAYS[way])
            if way not in best or found.cpu < best[way].cpu:
                best[way] = found
    return best


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--case", action="append", choices=tuple(CASES), help="default: all")
    parser.add_argument("--ways", nargs="+", choices=tuple(WAYS), default=list(WAYS))
    parser.add_argument("--rounds", type=int, default=3, help="runs; the least CPU counts (3)")
    parser.add_argument("--seed", type=int, default=1)


def run(options: argparse.Namespace) -> bool:
    """Measure and print; whether all ways have found the same number of results."""
    if options.rounds < 1:
        raise OptionError(f"--rounds must be 1 or more, not {options.rounds}")
    pa.set_cpu_count(1)
    print(heading("feedback", options.seed))
    rows: list[list[Cell]] = []
    agree = True
    for name in options.case or CASES:
        print(f"{name} …", file=sys.stderr, flush=True)
        found = best_of(options.rounds, CASES[name], options.ways, options.seed)
        first = next(iter(found.values()))
        agree &= all(each.results == first.results for each in found.values())
        for way, each in found.items():
            rows.append(
                [
                    name,
                    way,
                    each.partial,
                    round(each.partial / max(1, first.partial), 3),
                    round(each.cpu, 3),
                    round(each.cpu / first.cpu, 2),
                    round(each.bytes / 1e6, 2),
                    round(each.bytes / max(1, first.bytes), 2),
                    each.results,
                ]
            )
    against = f"of {options.ways[0]}"
    heads = ["case", "feedback", "partial results", against, "CPU s", against, "state MB"]
    print(text_table([*heads, against, "results"], rows))
    if not agree:
        print("the ways do not agree on the number of results")
    return agree
