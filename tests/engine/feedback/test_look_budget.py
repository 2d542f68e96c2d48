"""Budget of looks at guards: a share of the work of pushes, also where pushes are tiny."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import penstock
from penstock.engine.feedback import feedback_policy, look_budget
from penstock.engine.feedback.feedback_policy import FeedbackPolicy
from penstock.engine.feedback.look_budget import LookBudget
from penstock_studies.feedback_cases import below, made

TINY = made(
    "A.x = B.x AND B.y = C.y AND A.p = D.p AND C.q = D.q",
    {
        "A": {"x": below(30), "p": below(20)},
        "B": {"x": below(30), "y": below(30)},
        "C": {"y": below(30), "q": below(20)},
        "D": {"p": below(20), "q": below(20)},
    },
    dict.fromkeys("ABCD", 20_000),
    120_000,
    dict.fromkeys("ABCD", 40),
)


def count_looks(monkeypatch: pytest.MonkeyPatch, looks: Counter[str], name: str) -> None:
    look = getattr(FeedbackPolicy, name)

    def counted(policy: FeedbackPolicy, record: Any) -> Any:
        looks[name] += 1
        return look(policy, record)

    monkeypatch.setattr(FeedbackPolicy, name, counted)


def test_looks_are_a_share_of_pushes(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Counter[str]()
    count_looks(monkeypatch, looks, "_promise")
    count_looks(monkeypatch, looks, "_balance")
    query, pushes = TINY(1)
    engine = penstock.Engine(query, plan="(((A B) C) D)")
    for push in pushes:
        engine.push(push)
    made = sum(each["made"] for each in engine.metrics()["joins"])
    rows = sum(table.num_rows for push in pushes for table in push.values())
    taken = look_budget.PUSH * len(pushes) + look_budget.ROW * (rows + made)
    taken += 2.0 * look_budget.PAIR * made
    allowed = look_budget.FIRST + look_budget.SHARE * taken
    assert 1 <= looks.total() <= allowed / feedback_policy.LOOK


def test_a_failure_is_paid_for_before_the_next_look() -> None:
    budget = LookBudget([])
    assert budget.left(0) == look_budget.FIRST
    budget.spend(look_budget.FIRST + 1_000_000.0)
    lacking = -budget.left(10)
    pushes = budget.pushes_until(lacking, 10)
    assert budget.left(10 + pushes - 2) < 0 <= budget.left(10 + pushes)


def test_what_guards_save_counts_as_if_it_had_been_done() -> None:
    budget = LookBudget([])
    budget.earn(1_000_000.0)
    assert budget.left(0) == look_budget.FIRST + look_budget.SHARE * 1_000_000.0
