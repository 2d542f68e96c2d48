"""The experiments of the JISC paper: that they measure what they say, and judge what they measured.

Nothing here asserts a time.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import penstock
from penstock_studies.jisc import figures
from penstock_studies.jisc.contest import contest, least, ordinary
from penstock_studies.jisc.propositions import (
    expected_complete,
    simulated_complete,
    variance_complete,
)
from penstock_studies.jisc.setting import (
    Setting,
    best_case,
    complete_states,
    left_deep,
    worst_case,
)
from penstock_studies.jisc.strategies import HOW, one_round, purge_check

SMALL = Setting(joins=3, window=60, batch=20)


def test_best_and_worst_case_are_what_they_are_called() -> None:
    """Of n states, the root's included, one is incomplete, or all but the root's."""
    order = tuple("ABCDEF")
    assert left_deep(best_case("ABCD")) == "(((A B) D) C)"
    assert complete_states(order, order) == 5
    assert complete_states(order, best_case(order)) == 4
    assert complete_states(order, worst_case(order)) == 1


@pytest.mark.parametrize("case", [best_case, worst_case])
def test_a_migration_stage_times_each_strategy(case: figures.Case) -> None:
    spent = figures.migration_stage(SMALL, case, seed=1)
    assert spent.keys() == {"jisc", "parallel-track", "cacq", "unchanged"}
    assert min(spent.values()) > 0


def test_every_strategy_makes_the_change_that_is_timed() -> None:
    setting = Setting(joins=3, window=60, batch=20, domain=1.5)
    memory: dict[str, int] = {}
    spent = one_round(setting, worst_case, 1, 0, memory)
    assert spent.keys() == HOW.keys() == memory.keys()
    assert {len(each) for each in spent.values()} == {4}


def test_a_plan_that_does_not_run_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(penstock.Engine, "migrate", lambda *_: None)
    for measure in (
        lambda: one_round(SMALL, worst_case, 1, 0, {}),
        lambda: figures.migration_stage(SMALL, worst_case, 1),
        lambda: figures.normal_operation(SMALL, 1),
        lambda: figures.latency(SMALL, "jisc", 1),
        lambda: figures.frequency(SMALL, worst_case, 0.5, 1.0, 1),
    ):
        with pytest.raises(penstock.PenstockError, match="and not"):
            measure()


def test_comparisons_leave_a_tuple_as_many_partners_as_equal_values() -> None:
    for domain in (0.5, 1.0, 10.0):
        setting = Setting(1, 4_000, 4_000, "theta", domain)
        (batches,) = setting.batches(1.0, seed=1)
        engine = setting.engine("(S0 S1)")
        assert 0.7 < engine.push(batches).num_rows * domain / 4_000 < 1.3


def test_the_purge_checks_of_the_paper_end_with_the_old_plan() -> None:
    engine = SMALL.engine(left_deep(SMALL.streams))
    for batches in SMALL.batches(1.5, seed=1):
        engine.push(batches)
    assert not purge_check(engine)
    engine.migrate(left_deep(worst_case(SMALL.streams)), "parallel-track")
    assert purge_check(engine)
    for batches in SMALL.batches(2.0, seed=2, start=1.5):
        engine.push(batches)
    assert not purge_check(engine)


def test_values_are_as_many_as_a_setting_says() -> None:
    for domain in (0.5, 1.0, 10.0):
        setting = Setting(1, 1_000, 1_000, domain=domain)
        (batches,) = setting.batches(1.0, seed=1)
        largest = max(table["k"].to_numpy().max() for table in batches.values())
        assert 0.9 * domain * 1_000 < largest < domain * 1_000


def test_frequent_transitions_and_latency_run() -> None:
    spent = figures.frequency(SMALL, worst_case, every=0.5, windows=1.0, seed=1)
    assert spent["jisc"] > 0
    for join in ("hash", "nested-loops", "theta"):
        setting = Setting(3, 200, 20, join)
        assert figures.latency(setting, "moving-state", seed=1) > 0


def test_normal_operation_runs() -> None:
    spent = figures.normal_operation(SMALL, seed=1, rounds=2)
    assert list(spent) == ["jisc", "symmetric hash join", "cacq"]


def test_a_contest_with_a_wrong_answer_is_none() -> None:
    engines = {
        "one": SMALL.engine(left_deep(SMALL.streams)),
        "two": SMALL.engine(left_deep(SMALL.streams)),
    }
    pushes = list(SMALL.batches(1.0, seed=1))
    engines["one"].push(pushes[0])
    with pytest.raises(penstock.PenstockError, match="engines disagree"):
        contest(engines, pushes[1:])


def test_of_several_rounds_the_least_of_each_push_counts() -> None:
    rounds = [{"a": np.array([1.0, 5.0])}, {"a": np.array([3.0, 2.0])}]
    assert least(rounds) == {"a": 3.0}


def test_ordinary_pushes_are_compared_round_by_round() -> None:
    rounds = [
        {"a": np.array([1.0, 1.0, 9.0]), "b": np.array([2.0, 8.0, 2.0])},
        {"a": np.array([4.0, 4.0, 4.0]), "b": np.array([8.0, 8.0, 8.0])},
        {"a": np.array([2.0, 9.0, 2.0]), "b": np.array([9.0, 9.0, 9.0])},
    ]
    assert ordinary(rounds, "a") == {"a": 6.0, "b": 12.0}


def test_engines_take_turns_in_another_order_each_time() -> None:
    engines = {name: SMALL.engine(left_deep(SMALL.streams)) for name in "abc"}
    seen: list[str] = []
    contest(engines, SMALL.batches(3.0, seed=1), lambda name, *_: seen.append(name))
    turns = ["".join(seen[start : start + 3]) for start in range(0, len(seen), 3)]
    assert {"".join(sorted(turn)) for turn in turns} == {"abc"}
    followed = {first + second for first, second in pairwise(seen) if first != second}
    assert len(followed) == 6


def test_proposition_1_against_all_exchanges() -> None:
    """The formulas against the definition, with every pair of positions and its probability."""
    for n in (2, 5, 12):
        plan = tuple(range(n + 1))
        counts, weights = [], []
        for i in range(1, n + 1):
            for j in range(i + 1, n + 1):
                changed = list(plan)
                changed[i], changed[j] = changed[j], changed[i]
                counts.append(complete_states(list(map(str, plan)), list(map(str, changed))))
                weights.append(1 / (j - i))
        mean = np.average(counts, weights=weights)
        variance = np.average((np.array(counts) - mean) ** 2, weights=weights)
        assert expected_complete(n) == pytest.approx(mean)
        assert variance_complete(n) == pytest.approx(variance, abs=1e-9)


def test_the_simulation_agrees_with_the_propositions() -> None:
    found = simulated_complete(10, 500, np.random.default_rng(3))
    assert found.min() >= 1
    assert found.max() <= 9  # At least one state is incomplete.
