"""Demand feedback off, by default and always on: partial results, CPU seconds and bytes of state.

Every case of :mod:`penstock_studies.feedback_cases` runs in all these ways on the same pushes, in
turn, and the least CPU of several rounds counts. The answers must be the same number of results.
Beside them run the other plans that a case names, and the published algorithm where a case asks for
it.

The *best fixed* set of guards is looked for beforehand (``--best``): among all sets of a few
guards, else by adding to the empty set whichever guard saves most. It knows the streams before they
come, so it is what a policy can be measured by.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import chain, combinations

import pyarrow as pa

import penstock
from penstock.errors import OptionError
from penstock_studies.feedback_cases import CASES, FeedbackCase, Pushes
from penstock_studies.jit.form import Form
from penstock_studies.jit.literal import LiteralJit
from penstock_studies.text_table import Cell, heading, text_table

ABOUT = "demand feedback: off, by default and always on, in many kinds of plans"

WAYS: dict[str, penstock.Feedback | str] = {
    "off": "off",
    "default": "jit",
    "bloom": "bloom",
    "always": penstock.Feedback(adaptive=False),
}
"""The values of the option ``feedback`` by the name of their column."""


@dataclass(frozen=True)
class Before:
    """What ``feedback="jit"`` did before guards were priced."""

    partial: int
    """Partial results."""
    cpu: float
    """CPU as a share of that without feedback, beside others' work."""


BEFORE = {
    "clique, left-deep": Before(222_235, 1.03),
    "clique, bushy": Before(234_880, 0.98),
    "triangle": Before(2_875_617, 0.90),
    "bushy, fertile first": Before(2_932_740, 1.12),
    "bushy, fertile last": Before(118_568, 0.47),
    "turning": Before(3_279_096, 0.88),
    "perfect": Before(27_364, 0.18),
    "pointless": Before(2_875_617, 1.02),
    "dying": Before(123_401, 1.05),
    "jointly": Before(40_329, 1.00),
    "band": Before(1_300_611, 0.98),
    "nested loops": Before(219_575, 0.99),
    "W1": Before(147_546, 0.52),
    "W2s": Before(1_019_664, 1.20),
    "W2j": Before(1_019_672, 1.12),
}
"""By case, as measured at the time; seed 1."""

_LOOKED_AT = 8
"""Pushes from one look at the bytes of state to the next."""
_WARMING = 12
"""Pushes of a run beforehand, in which kernels are loaded."""
_FEW_GUARDS = 4
"""Guards of which all sets are tried."""
_WORTH = 0.98
"""The share of the CPU below which one guard more is better."""
BEST = "best fixed"
LITERAL = {"literal, level 1": Form(level=1), "literal, all of the lattice": Form()}

Guards = tuple[str, ...]


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
    engine = _engine(case, query, feedback)
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


def _engine(
    case: FeedbackCase, query: penstock.JoinGraph, feedback: penstock.Feedback | str
) -> penstock.Engine:
    return penstock.Engine(query, plan=case.plan, feedback=feedback, **(case.options or {}))


Way = tuple[FeedbackCase, penstock.Feedback | str]
"""A case, with its own plan or another, and the option."""


def best_of(
    rounds: int, ways: dict[str, Way], query: penstock.JoinGraph, pushes: Pushes
) -> dict[str, Measured]:
    """The run of each way that took the least CPU, in turn."""
    best: dict[str, Measured] = {}
    for case, feedback in ways.values():
        measure(case, query, pushes[:_WARMING], feedback)
    for _ in range(rounds):
        for name, (case, feedback) in ways.items():
            gc.collect()
            found = measure(case, query, pushes, feedback)
            if name not in best or found.cpu < best[name].cpu:
                best[name] = found
    return best


def fixed(guards: Iterable[str]) -> penstock.Feedback:
    """Feedback by these guards alone, always on."""
    return penstock.Feedback(adaptive=False, guards=tuple(guards))


def best_guards(
    rounds: int, case: FeedbackCase, query: penstock.JoinGraph, pushes: Pushes
) -> Guards:
    """The set of guards that takes the least CPU."""
    names = guards_of(_engine(case, query, "jit"))

    def cheapest(sets: Iterable[Guards]) -> tuple[float, Guards]:
        agreeing = [each for each in sets if guards_of(_engine(case, query, fixed(each))) == each]
        ways: dict[str, Way] = {"; ".join(each): (case, fixed(each)) for each in agreeing}
        found = best_of(rounds, ways, query, pushes)
        return min((found["; ".join(each)].cpu, each) for each in agreeing)

    if len(names) <= _FEW_GUARDS:
        every = range(len(names) + 1)
        return cheapest(chain.from_iterable(combinations(names, count) for count in every))[1]
    cpu, chosen = cheapest([()])
    while len(chosen) < len(names):
        more = [tuple(n for n in names if n in chosen or n == one) for one in names]
        least, guards = cheapest([each for each in more if each != chosen] + [chosen])
        if guards == chosen or least > _WORTH * cpu:
            break
        cpu, chosen = least, guards
    return chosen


def guards_of(engine: penstock.Engine) -> Guards:
    """The names of all guards, each once (those by ranges are several of one name)."""
    guards = engine.metrics()["feedback"]["guards"]
    return tuple(dict.fromkeys(f"{each['input']} waits for {each['waits_for']}" for each in guards))


def measure_literal(query: penstock.JoinGraph, plan: str, pushes: Pushes, form: Form) -> Measured:
    """The published algorithm, tuple at a time, in the order of event time."""
    run = LiteralJit(query, plan, form)
    rows = [
        (row["ts"], number, alias, row)
        for push in pushes
        for number, (alias, table) in enumerate(push.items())
        for row in table.to_pylist()
    ]
    start = time.process_time()
    for at, _, alias, row in sorted(rows, key=lambda each: each[:2]):
        run.arrive(alias, row, at)
    cpu, ledger = time.process_time() - start, run.ledger
    return Measured(ledger.partial_results, cpu, ledger.peak_bytes, ledger.results)


SIDES = [
    *("case", "off", "before", "default", "always", "default of off"),
    *("CPU before", "CPU default", "CPU always", "MB off", "MB default"),
]
"""The columns of what :func:`side_by_side` gives."""


def side_by_side(name: str, found: dict[str, Measured]) -> list[Cell]:
    """A case before and now, if it was measured before."""
    off, default, always = (found[way] for way in ("off", "default", "always"))
    before = BEFORE.get(name)
    return [
        *(name, off.partial, before.partial if before else "", default.partial, always.partial),
        round(default.partial / max(1, off.partial), 3),
        before.cpu if before else "",
        *(round(each.cpu / off.cpu, 2) for each in (default, always)),
        *(round(each.bytes / 1e6, 2) for each in (off, default)),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--case", action="append", choices=tuple(CASES), help="default: all")
    parser.add_argument("--ways", nargs="+", choices=tuple(WAYS), default=list(WAYS))
    parser.add_argument("--rounds", type=int, default=3, help="runs; the least CPU counts (3)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--best", action="store_true", help="look for the best fixed guards, too")
    parser.add_argument("--plans", action="store_true", help="run other plans and the literal form")


def run(options: argparse.Namespace) -> bool:
    """Measure and print; whether all ways have found the same number of results."""
    if options.rounds < 1:
        raise OptionError(f"--rounds must be 1 or more, not {options.rounds}")
    pa.set_cpu_count(1)
    print(heading("feedback", options.seed))
    rows: list[list[Cell]] = []
    notes: list[str] = []
    sides: list[list[Cell]] = []
    agree = True
    for name in options.case or CASES:
        print(f"{name} …", file=sys.stderr, flush=True)
        case = CASES[name]
        query, pushes = case.made_of(options.seed)
        ways: dict[str, Way] = {way: (case, WAYS[way]) for way in options.ways}
        if options.best:
            guards = best_guards(options.rounds, case, query, pushes)
            ways[BEST] = case, fixed(guards)
            notes.append(f"{name}: the best fixed guards are {'; '.join(guards) or 'none'}")
        if options.plans:
            ways |= {plan: (replace(case, plan=plan), "jit") for plan in case.others}
        found = best_of(options.rounds, ways, query, pushes)
        if options.plans and case.literal:
            for form in LITERAL:
                found[form] = measure_literal(query, case.plan, pushes, LITERAL[form])
        first = next(iter(found.values()))
        agree &= all(each.results == first.results for each in found.values())
        if {"off", "default", "always"} <= found.keys():
            sides.append(side_by_side(name, found))
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
    if sides:
        print("\nBefore guards were priced, and now: partial results, CPU of off, and state MB\n")
        print(text_table(SIDES, sides))
    print("\n".join(notes))
    if not agree:
        print("the ways do not agree on the number of results")
    return agree
