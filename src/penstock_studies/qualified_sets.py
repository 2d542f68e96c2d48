"""Experiment Sets 1 to 4 of JTree (Tables 2 and 3, Figures 7 and 8): which plans are qualified.

The model says what the best mjoin, the best binary tree and the best mixed jtree need, with the
costs of Table 3; a run in the engine then shows the order in throughput and memory.

What the paper's numbers say, and what they do not:

- Table 3 with hash joins (C_j for a pair that matches, as in equations 1 to 7) makes *both* plans
  of Set 2 qualified: most of the CPU makes results, which every plan does. With C_j charged for
  every pair that a nested loop looks at, the tree needs 0.62 s and the mjoin 5.4 s per second, and
  the set comes out as the paper reports it. So both ways are shown.
- Set 4 as printed (a window of 50 s) gives 16 million results per second, 35 seconds of CPU at
  2.2 µs each: no plan whatever is qualified. With a window of 15 s and hash joins the set is what
  the paper says: one mjoin needs 1.04 s, and the tree 2.5 times the memory of the jtree. That runs.
- The paper's memory limits are heap sizes of a Java process. With 6 kB of heap per tuple, the limit
  of 30 MB lies between the plans of Set 3 and of Set 4 as reported, and 300 MB never binds.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.planning.bjtree_ordering import bjtree_ordering
from penstock.planning.jtree_finder import jtree_finder
from penstock.planning.limits import Limits
from penstock.planning.mjoin_ordering import mjoin_ordering
from penstock.planning.problem import Candidate, Problem
from penstock.planning.shape import joins_of
from penstock.planning.statistics import Statistics
from penstock.planning.storage import TUPLES
from penstock.planning.unit_costs import PAPER, PAPER_NESTED_LOOPS
from penstock_studies.random_graph import chain_query
from penstock_studies.stream_data import Measured, run_plan, uniform_batches
from penstock_studies.text_table import heading, text_table

ABOUT = "JTree sets 1 to 4: which of mjoin, binary tree and jtree is qualified, and runs of them"


@dataclass(frozen=True)
class Setting:
    """A column of Table 2."""

    name: str
    claim: str
    rates: Mapping[str, float]
    values: Mapping[tuple[str, str], int]
    """1 / selectivity, rounded to whole values."""
    window: int
    megabytes: int
    runs: bool = True

    @property
    def room(self) -> float:
        """The memory limit in tuples."""
        return self.megabytes * 1e6 / TUPLE

    def problem(self, join: str) -> Problem:
        shares = {pair: 1 / count for pair, count in self.values.items()}
        costs = PAPER if join == "hash" else PAPER_NESTED_LOOPS
        query = chain_query(tuple(self.rates), tuple(self.values), self.window)
        return Problem(query, Statistics(self.rates, shares), costs, TUPLES, join=join)


TUPLE = 6_000
"""Bytes of heap per tuple, as explained above."""

_THREE = {("A", "B"): 20, ("B", "C"): 2}
_FOUR = {("A", "B"): 50, ("B", "C"): 5, ("C", "D"): 20}
SETTINGS = (
    Setting("1", "both qualified", {"A": 20, "B": 20, "C": 20}, _THREE, 5, 300),
    Setting(
        "2",
        "tree qualified, mjoin short of CPU",
        {"A": 20, "B": 20, "C": 50},
        {("A", "B"): 50, ("B", "C"): 2},
        15,
        300,
    ),
    Setting(
        "3",
        "mjoin qualified, tree short of memory",
        dict.fromkeys("ABCD", 10),
        {("A", "B"): 10, ("B", "C"): 7, ("C", "D"): 10},
        15,
        30,
    ),
    Setting("4", "jtree alone qualified", dict.fromkeys("ABCD", 20), _FOUR, 50, 30, runs=False),
    Setting("4 at 15 s", "jtree alone qualified", dict.fromkeys("ABCD", 20), _FOUR, 15, 30),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--seconds", type=int, default=30, help="event time after windows fill (30)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="runs of each plan (3)")
    parser.add_argument("--model-only", action="store_true", help="do not run the plans")


def run(options: argparse.Namespace) -> None:
    print(heading("sets", options.seed))
    for join in ("hash", "nested-loops"):
        print(f"\nTable 3 with {join}: CPU seconds per second (limit 1), memory in tuples")
        print(text_table(_HEADINGS, [row for each in SETTINGS for row in model_rows(each, join)]))
    if options.model_only:
        return
    for join in ("hash", "nested-loops"):
        print(f"\nFigures 7 and 8, run with {join}: tuples per CPU second, state in bytes")
        rows = []
        for setting in SETTINGS:
            if setting.runs:
                rows += run_rows(setting, join, options.seconds, options.rounds, options.seed)
        print(text_table(["set", "plan", "notation", "tuples/CPU s", "bytes", "results"], rows))


_HEADINGS = ("set", "the paper", "plan", "notation", "CPU", "tuples", "qualified")


def plans_of(problem: Problem) -> dict[str, Candidate]:
    """The best mjoin, the best binary tree, and the mixed jtree with the least CPU."""
    found = {"mjoin": mjoin_ordering(problem), "bjtree": bjtree_ordering(problem)}
    mixed = [
        candidate
        for candidate in jtree_finder(problem, Limits(), keep="all")
        if any(len(node.inputs) > 2 for node in joins_of(candidate.shapes[0]))
        and len(list(joins_of(candidate.shapes[0]))) > 1
        and candidate.cost.memory < found["bjtree"].cost.memory
    ]
    if mixed:
        found["jtree"] = min(mixed, key=lambda candidate: candidate.cost.cpu)
    return found


def model_rows(setting: Setting, join: str) -> list[list[str | float | int | None]]:
    problem = setting.problem(join)
    rows: list[list[str | float | int | None]] = []
    for name, candidate in plans_of(problem).items():
        cpu, memory = candidate.cost
        short = [
            what for what, over in (("CPU", cpu > 1), ("memory", memory > setting.room)) if over
        ]
        verdict = f"no: {' and '.join(short)}" if short else "yes"
        plan = problem.outline(candidate)
        rows.append([setting.name, setting.claim, name, plan, cpu, round(memory), verdict])
    return rows


def run_rows(
    setting: Setting, join: str, seconds: int, rounds: int, seed: int
) -> list[list[str | float | int | None]]:
    """Interleaved rounds; the least CPU of each plan counts."""
    problem = setting.problem(join)
    plans = plans_of(problem)
    best: dict[str, Measured] = {}
    for _ in range(rounds):
        for name, candidate in plans.items():
            measured = run_plan(
                problem.query,
                str(problem.plan_of(candidate)),
                uniform_batches(setting.rates, setting.values, 2 * setting.window + seconds, seed),
                2 * setting.window,
                join=join,
            )
            if name not in best or measured.cpu < best[name].cpu:
                best[name] = measured
    arriving = sum(setting.rates.values())
    return [
        [
            setting.name,
            name,
            problem.outline(plans[name]),
            arriving / found.cpu,
            found.memory,
            found.results,
        ]
        for name, found in best.items()
    ]
