"""With too little CPU: nothing wrong, nothing twice, nothing stale; deferred is not lost.

Random queries, windows, plans, splits, and budgets that change from push to push, beside the
oracle: ``shed`` gives a part of its rows, ``defer`` all of them once the debt is paid, whatever
happens in between: failed pushes, checkpoints, changes of plan, demand feedback.
"""

from __future__ import annotations

import dataclasses
import os
import random
import re
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from test_exactness import fail_sometimes, migrate, restart, wander

import penstock
from penstock.engine.feedback import feedback_policy, look_budget
from penstock.engine.feedback.feedback import Feedback
from penstock.engine.overload import debts, row_costs
from penstock.engine.overload.overload import Overload
from penstock.engine.rationing.rationing import Rationing
from penstock.engine.state import arrival, earlier_heads
from penstock.engine.state.rows import Rows
from penstock.testing.case import Case
from penstock.testing.compare import rows_of
from penstock.testing.generators import generate
from penstock.testing.knobs import FEATURES, Knobs
from penstock.testing.oracle import Oracle
from penstock.testing.python_values import canonical

CASES = int(os.environ.get("PENSTOCK_CASES", "120")) // 2
BLOCK = 20

JOINS = FEATURES - {"except", "group by", "rstream"}
TIMED = JOINS - {"rows", "partition", "no event time", "arrival"}
Row = tuple[Hashable, ...]
Between = Callable[[penstock.Engine, random.Random, Any], penstock.Engine]


def seeds(first: int) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("start", range(first, first + CASES, BLOCK))


def patient(case: Case) -> Case:
    """The same case with results that are never stale."""
    text = re.sub(r"(\[(?:RANGE \d+ \w+|NOW)\])", r"\1 FRESHNESS 10000 DAYS", case.text)
    return dataclasses.replace(case, text=text)


def counted(rows: Sequence[Any]) -> Counter[Row]:
    return Counter(tuple(canonical(value) for value in row) for row in rows)


def budgets(chance: random.Random) -> float:
    """Mostly nothing or little, sometimes plenty."""
    return chance.choice([0.0, 0.0, 1.0, 3.0, 8.0, float("inf")])


class Run:
    """A case under an overload policy, beside the oracle."""

    def __init__(
        self,
        seed: int,
        case: Case,
        option: Overload,
        budget: Callable[[random.Random], float | None] = budgets,
        **options: Any,
    ) -> None:
        self.case, self.seed, self.budget = case, seed, budget
        self.graph = case.graph()
        self.oracle = Oracle(self.graph, case.lateness)
        self.engine = penstock.Engine(
            self.graph, plan=case.plan, lateness=case.lateness, overload=option, **options
        )
        self.chance = random.Random(seed)
        self.found: list[Counter[Row]] = []
        self.expected: list[Counter[Row]] = []

    def go(self, between: Between | None = None) -> Run:
        for number, batches in enumerate(self.case.pushes):
            if between is not None:
                self.engine = between(self.engine, self.chance, batches)
            watermark = self.case.watermark(number)
            self.note(
                self.engine.push(batches, watermark, probes=self.budget(self.chance)),
                self.oracle.push(batches, watermark),
            )
        if between is not None:
            self.engine = between(self.engine, self.chance, {})
        self.note(self.engine.finish(), self.oracle.finish())
        return self

    def note(self, table: pa.Table, expected: list[Any]) -> None:
        self.found.append(counted(rows_of(table)))
        self.expected.append(counted(expected))

    def check_part(self) -> None:
        """Everything that left is a result, and left once."""
        surplus = _sum(self.found) - _sum(self.expected)
        assert not surplus, f"seed {self.seed}: {surplus}\n{self.case}"

    def check_all(self) -> None:
        """Everything has left."""
        self.check_part()
        missing = _sum(self.expected) - _sum(self.found)
        assert not missing, f"seed {self.seed}: {missing}\n{self.case}"


def _sum(counters: Sequence[Counter[Row]]) -> Counter[Row]:
    total: Counter[Row] = Counter()
    for each in counters:
        total.update(each)
    return total


def options_of(seed: int) -> dict[str, Any]:
    forms = ["off", "jit", Feedback(adaptive=False), Feedback(adaptive=False, detection="bloom")]
    return {
        "feedback": forms[seed % 4],
        "join": "nested-loops" if seed % 5 == 0 else "hash",
    }


def policy(seed: int, name: Any) -> Overload:
    choices: list[Any] = ["random", "newest", "correlated"]
    return Overload(name, choice=choices[seed % 3], seed=seed)


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards and productivities are looked at again after a few rows; debts are paid in parts, as
    of the time when they were made."""
    monkeypatch.setattr(earlier_heads, "_WALKED_ROWS", 0)
    for name in ("_FIRST_ROWS", "_INTERVAL_ROWS", "_SETTLING_ROWS"):
        monkeypatch.setattr(feedback_policy, name, 3)
    for name, value in (("_MOST_PATIENCE", 1), ("MARGIN", 0.0), ("LOOK", 0.0), ("PUT_BACK", 0.0)):
        monkeypatch.setattr(feedback_policy, name, value)
    monkeypatch.setattr(feedback_policy, "WORTH_A_LOOK", 0.0)
    monkeypatch.setattr(look_budget, "FIRST", float("inf"))
    monkeypatch.setattr(row_costs, "_FIRST_LOOK", 4)
    monkeypatch.setattr(debts, "_AT_ONCE", 3)


@seeds(200_000)
def test_what_is_deferred_is_not_lost(start: int) -> None:
    for seed in range(start, start + BLOCK):
        case = patient(generate(seed, Knobs(features=TIMED)))
        Run(seed, case, policy(seed, "defer"), **options_of(seed)).go().check_all()


@seeds(210_000)
def test_deferred_on_cliques_over_small_domains(start: int) -> None:
    for seed in range(start, start + BLOCK, 2):
        knobs = Knobs(features=TIMED - {"key types"}, streams=(3, 5), domain=2, tuples=10)
        case = patient(generate(seed, knobs))
        Run(seed, case, policy(seed, "defer"), **options_of(seed)).go().check_all()


@seeds(220_000)
def test_deferred_across_restarts(start: int) -> None:
    for seed in range(start, start + BLOCK):
        case = patient(generate(seed, Knobs(features=TIMED)))
        Run(seed, case, policy(seed, "defer"), **options_of(seed)).go(restart).check_all()


@seeds(230_000)
def test_deferred_across_failed_pushes_and_slices(
    start: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrival, "SLICE", 4)
    for seed in range(start, start + BLOCK):
        case = patient(generate(seed, Knobs(features=TIMED - {"tiny pushes"})))
        Run(seed, case, policy(seed, "defer"), **options_of(seed)).go(fail_sometimes).check_all()


@seeds(240_000)
def test_deferred_across_changes_of_plan(start: int) -> None:
    for seed in range(start, start + BLOCK):
        case = patient(generate(seed, Knobs(features=TIMED)))
        between = wander if seed % 3 == 0 else migrate
        Run(seed, case, policy(seed, "defer"), **options_of(seed)).go(between).check_all()


@seeds(245_000)
def test_rows_that_get_new_numbers_while_probes_are_owed(
    start: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows and states are packed whenever anything in them is dead."""

    def pack(rows: Rows, alive: NDArray[np.int64]) -> bool:
        if len(alive) == len(rows):
            return False
        rows.keep_only(alive)
        return True

    monkeypatch.setattr(Rows, "is_worth_a_check", lambda rows: len(rows) > 0)
    monkeypatch.setattr(Rows, "pack", pack)
    for seed in range(start, start + BLOCK):
        features = JOINS if seed % 3 == 0 else TIMED
        case = patient(generate(seed, Knobs(features=features)))
        between = restart if seed % 4 == 0 else None
        run = Run(seed, case, policy(seed, "defer"), **options_of(seed)).go(between)
        if run.graph.by_rows:
            run.check_part()
        else:
            run.check_all()


@seeds(250_000)
def test_nothing_wrong_and_nothing_twice(start: int) -> None:
    """On any time line, with results that may get stale, under both policies."""
    for seed in range(start, start + BLOCK):
        name = "shed" if seed % 2 else "defer"
        case = generate(seed, Knobs(features=JOINS))
        between = [None, restart, migrate, fail_sometimes][seed % 4 if seed % 8 < 4 else 0]
        Run(seed, case, policy(seed, name), **options_of(seed)).go(between).check_part()


@seeds(255_000)
def test_freshness_is_the_oracles_in_exact(start: int) -> None:
    """As long as the window, which pushes of much time and streams out of step break."""
    stale = 0
    for seed in range(start, start + BLOCK):
        case = generate(seed, Knobs(features=FEATURES - {"rstream", "group by"}))
        text = re.sub(r"\[RANGE (\d+ \w+)\]", r"[RANGE \1] FRESHNESS \1", case.text)
        case = dataclasses.replace(case, text=text)
        run = Run(seed, case, Overload(), lambda _: None, **options_of(seed)).go()
        assert run.found == run.expected, f"seed {seed}\n{case}"
        stale += run.engine.metrics()["overload"].get("stale", 0)
    assert stale > 0


@seeds(260_000)
def test_with_budget_enough_nothing_is_skipped(start: int) -> None:
    """All rows of the oracle, push by push."""
    for seed in range(start, start + BLOCK, 2):
        case = generate(seed, Knobs(features=FEATURES - {"group by", "rstream"}))
        option = Overload("shed" if seed % 4 else "defer", probes=1e12)
        run = Run(seed, case, option, lambda _: None, **options_of(seed)).go()
        assert run.found == run.expected, f"seed {seed}\n{case}"


@pytest.mark.parametrize("plan", ["((A B) C)", "(A B C)"])
def test_what_is_held_for_a_debt_does_not_grow_while_it_waits(
    plan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A burst that nobody pays for, and then a long calm time: only the burst is held for it."""
    schema = pa.schema([("ts", pa.int64()), ("k", pa.int64())])
    windows = ", ".join(f"{s} [RANGE 100 MILLISECONDS] FRESHNESS 1 DAY" for s in "ABC")
    query = penstock.parse(
        f"SELECT A.ts AS a, B.ts AS b, C.ts AS c FROM {windows} WHERE A.k = B.k AND B.k = C.k",
        schemas=dict.fromkeys("ABC", schema),
    )
    engine = penstock.Engine(query, plan, overload=Overload("defer", probes=1e-6))
    exact = penstock.Engine(query)
    chance = np.random.default_rng(5)

    def push(start: int, count: int, probes: float) -> tuple[Counter[Row], Counter[Row]]:
        times = np.sort(start + chance.integers(0, 50, count))
        batches = {
            s: pa.table([times, chance.integers(0, 20, count)], schema=schema) for s in "ABC"
        }
        found = engine.push(batches, probes=probes)
        return counted(rows_of(found)), counted(rows_of(exact.push(batches)))

    def held() -> int:
        windows: dict[str, Any] = engine.metrics()["state"]["windows"]
        return sum(each["rows"] for each in windows.values())

    told = [push(50 * turn, 60, 0.0) for turn in range(8)]
    with monkeypatch.context() as patched:
        patched.setattr(Rationing, "pay", lambda *_: [])
        told += [push(50 * turn, 6, float("inf")) for turn in range(8, 400)]
    burst = 8 * 3 * 60
    assert engine.metrics()["overload"]["debt"]["probes"] > burst // 2
    assert burst // 2 < held() < 4 * burst
    told += [push(50 * 400, 6, float("inf"))]
    assert engine.metrics()["overload"]["debt"]["probes"] == 0
    assert held() < burst // 2
    assert sum((f for f, _ in told), Counter()) == sum((e for _, e in told), Counter())
