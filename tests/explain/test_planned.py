"""Plans in the notation, explained and compared."""

from __future__ import annotations

from penstock.explain.planned import compared, planned
from penstock.planning.limits import Limits
from penstock.planning.problem import Problem
from penstock.planning.statistics import Statistics
from penstock_studies.random_graph import chain_query

QUERY = chain_query(("A", "B", "C"), (("A", "B"), ("A", "C")), 10)
SHARES = {("A", "B"): 1e-3, ("A", "C"): 1e-6}
PROBLEM = Problem(QUERY, Statistics(dict.fromkeys("ABC", 1000.0), SHARES))


def test_auto_is_the_least_cpu_within_the_limits() -> None:
    free = planned(PROBLEM, "auto")
    assert free.plan == "((A C) B)"
    assert free.cost.cpu == min(each.cost.cpu for each in free.front)
    tight = planned(PROBLEM, "auto", Limits(memory=1000))
    assert not tight.qualified
    assert "memory" in tight.why


def test_a_given_plan_is_pinned() -> None:
    assert planned(PROBLEM, "((A B) C)").why == "given by hand; it is pinned"


def test_plans_are_compared() -> None:
    text = compared(PROBLEM, "((A B) C)", "((A C) B)")
    assert "- state {A, B}: 100k rows" in text
    assert "+ state {A, C}: 100 rows" in text
    assert "the change: " in text


def test_eddies_are_explained_with_the_routes_that_they_begin_with() -> None:
    eddy = planned(PROBLEM, "stairs")
    assert eddy.plan == "stairs ((A B) C)"
    assert "changes its routes" in eddy.why
    assert eddy.cost == planned(PROBLEM, "((A B) C)").cost
    assert planned(PROBLEM, "stairs ((A C) B)").cost == planned(PROBLEM, "((A C) B)").cost
    assert "+ state {A, C}: 100 rows" in compared(PROBLEM, "cacq", "stairs ((A C) B)")
