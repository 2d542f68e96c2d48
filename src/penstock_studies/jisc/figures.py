"""Figures 7 to 12 of the JISC paper: what is measured for one point of each.

CPU seconds are of this engine, columnar and in batches, where the paper's were of Java, tuple at a
time; so the claims are about ratios, and not all of them need carry over. Where the paper ran 10
million tuples, a few windows are run: between transitions nothing changes from window to window.
What is made of the rows is in :mod:`penstock_studies.figures.jisc`. That the plan which is timed is
the plan that runs is checked after every push.

Departures: parallel track shares the windows with the old plan here and knows duplicates by their
row numbers, and CACQ routes whole batches; both are much cheaper than what the paper compares with.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

import penstock
from penstock_studies.jisc.contest import Spent, contest, least, must_run, ordinary
from penstock_studies.jisc.setting import (
    Setting,
    left_deep,
    worst_case,
)

Case = Callable[[Sequence[str]], tuple[str, ...]]
Seconds = dict[str, float]
"""CPU seconds by strategy."""

_FEW_JOINS, _FEW_TUPLES, _FEW_VALUES = 3, 200, 0.25
"""Joins, tuples per window and values per tuple of the transition before one is timed: there are
four partners in each stream, so that there is a result."""


def migration_stage(setting: Setting, case: Case, seed: int, rounds: int = 1) -> Seconds:
    """Figures 7 and 8: from a transition until parallel track discards the old plan, one window.

    ``unchanged`` is the old plan with no transition: what the others take beyond that is the price
    of the change.
    """
    return least([_migration_stage(setting, case, seed, turn) for turn in range(rounds)])


def _migration_stage(setting: Setting, case: Case, seed: int, turn: int) -> Spent:
    old, new = left_deep(setting.streams), left_deep(case(setting.streams))
    plans = {"jisc": new, "parallel-track": new, "cacq": None, "unchanged": old}
    engines = {name: setting.engine("cacq" if name == "cacq" else old) for name in plans}
    contest(engines, setting.batches(1.5, seed))
    for name in ("jisc", "parallel-track"):
        engines[name].migrate(new, name)
    pushes = setting.batches(1.1, seed + 1, start=1.5)
    return contest(engines, pushes, seed=turn, wanted=lambda name, _: plans[name])


def normal_operation(setting: Setting, seed: int, rounds: int = 1) -> Seconds:
    """Figure 9: a plan that was migrated to and is complete, the same plan from the start (pure
    symmetric hash joins), and CACQ; three windows of ordinary pushes."""
    return ordinary([_normal_operation(setting, seed, turn) for turn in range(rounds)], "jisc")


def _normal_operation(setting: Setting, seed: int, turn: int) -> Spent:
    plan = left_deep(worst_case(setting.streams))
    engines = {
        "jisc": setting.engine(left_deep(setting.streams)),
        "symmetric hash join": setting.engine(plan),
        "cacq": setting.engine("cacq"),
    }
    contest(engines, setting.batches(0.5, seed))
    engines["jisc"].migrate(plan, "jisc")
    contest(engines, setting.batches(1.2, seed + 1, start=0.5))
    pushes = setting.batches(3.0, seed + 2, start=1.7)
    return contest(
        engines, pushes, seed=turn, wanted=lambda name, _: None if name == "cacq" else plan
    )


def latency(setting: Setting, strategy: str, seed: int, rounds: int = 1) -> float:
    """Figure 10: from the transition until the first result after it has left; the median.

    What a process loads for its first transition is loaded before, by a small one.
    """
    few = replace(setting, joins=_FEW_JOINS, window=_FEW_TUPLES, batch=20, domain=_FEW_VALUES)
    _latency(few, strategy, seed)
    return median(_latency(setting, strategy, seed + turn) for turn in range(rounds))


def _latency(setting: Setting, strategy: str, seed: int) -> float:
    engine = setting.engine(left_deep(setting.streams))
    plan = left_deep(worst_case(setting.streams))
    for batches in setting.batches(1.0, seed):
        engine.push(batches)
    pushes = list(setting.batches(1.0, seed + 1, start=1.0))
    started = time.process_time()
    engine.migrate(plan, strategy)
    for batches in pushes:
        if engine.push(batches).num_rows:
            took = time.process_time() - started
            must_run(plan, strategy, engine)
            return took
    raise penstock.PenstockError("no result within a window: the setting is too small")


def frequency(
    setting: Setting, case: Case, every: float, windows: float, seed: int, rounds: int = 1
) -> Seconds:
    """Figures 11 and 12: ``windows`` windows with a transition after each ``every`` of a window."""
    turns = range(rounds)
    return least([_frequency(setting, case, every, windows, seed, turn) for turn in turns])


def _frequency(
    setting: Setting, case: Case, every: float, windows: float, seed: int, turn: int
) -> Spent:
    plans = [left_deep(setting.streams), left_deep(case(setting.streams))]
    names = ("jisc", "parallel-track", "cacq")
    engines = {n: setting.engine("cacq" if n == "cacq" else plans[0]) for n in names}
    contest(engines, setting.batches(1.0, seed))
    period = max(1, round(every * setting.window / setting.batch))

    def plan(name: str, number: int) -> str | None:
        return None if name == "cacq" else plans[(number // period + 1) % 2]

    def between(name: str, engine: penstock.Engine, number: int) -> None:
        wanted = plan(name, number)
        if wanted is not None and number % period == 0:
            engine.migrate(wanted, name)

    pushes = setting.batches(windows, seed + 1, start=1.0)
    return contest(engines, pushes, between, turn, wanted=plan)
