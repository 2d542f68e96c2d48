"""The policies of section 3.3 against all qualified plans."""

from __future__ import annotations

import random

import pytest
from planning_graphs import join_query, random_problem

import penstock
from penstock.errors import NoQualifiedPlan, OptionError
from penstock.planning.choice_policy import POLICIES
from penstock.planning.jtree_finder import jtree_finder
from penstock.planning.limits import Limits
from penstock.planning.planner import decide_by
from penstock.planning.problem import Candidate, Problem
from penstock.planning.statistics import Statistics
from penstock.planning.verdict import Choice, Refusal, is_qualified


def _qualified(problem: Problem, chance: random.Random) -> tuple[Limits, list[Candidate]]:
    """Limits that some plans meet, and these."""
    everything = jtree_finder(problem, Limits(), keep="all")
    middle = chance.choice(everything).cost
    limits = Limits(cpu=middle.cpu * 1.01, memory=int(middle.memory * 1.01) + 1)
    return limits, [each for each in everything if is_qualified(each.cost, limits)]


@pytest.mark.parametrize("planner", ["two-layer", "jtree-finder"])
@pytest.mark.parametrize("seed", range(10))
def test_each_policy_takes_what_it_says(seed: int, planner: str) -> None:
    chance = random.Random(seed)
    problem = random_problem(chance, 3 + seed % 3)
    limits, plans = _qualified(problem, chance)
    taken = {}
    for policy in POLICIES:
        verdict = decide_by(policy, problem, limits, planner)
        assert isinstance(verdict, Choice)
        taken[policy] = verdict.candidate.cost
        assert is_qualified(taken[policy], limits)
    assert taken["least-cpu"].cpu == pytest.approx(min(each.cost.cpu for each in plans))
    assert taken["least-memory"].memory == pytest.approx(min(each.cost.memory for each in plans))
    cpu, memory = taken["not-dominated"]
    slack = 1 - 1e-9
    assert not any(
        (each.cost.cpu < cpu * slack and each.cost.memory <= memory)
        or (each.cost.cpu <= cpu and each.cost.memory < memory * slack)
        for each in plans
    )


def test_random_reaches_every_qualified_plan() -> None:
    problem = random_problem(random.Random(3), 4)
    limits, plans = _qualified(problem, random.Random(1))
    assert len(plans) > 2
    taken = set()
    for seed in range(30 * len(plans)):
        verdict = decide_by("random", problem, limits, seed=seed)
        assert isinstance(verdict, Choice)
        taken.add(verdict.candidate.shapes)
    assert taken == {each.shapes for each in plans}


@pytest.mark.parametrize("policy", POLICIES)
def test_many_streams(policy: str) -> None:
    problem = random_problem(random.Random(5), 10)
    verdict = decide_by(policy, problem, Limits(memory="1TB"))
    assert isinstance(verdict, Choice)
    problem.plan_of(verdict.candidate).check(problem.query)


def test_the_public_function() -> None:
    query = join_query("ABC", [("A", "B"), ("B", "C")])
    statistics = Statistics({"A": 20, "B": 20, "C": 20}, {("A", "B"): 0.05, ("B", "C"): 0.5})
    smallest = penstock.plan(query, statistics, choice="least-memory")
    assert str(smallest).startswith("(A B C")
    by_seed = {str(penstock.plan(query, statistics, choice="random", seed=s)) for s in range(20)}
    assert len(by_seed) > 1
    with pytest.raises(OptionError, match="choice='best' does not exist; choose from: 'least-cpu'"):
        penstock.plan(query, statistics, choice="best")
    with pytest.raises(OptionError, match="use planner='two-layer' or planner='jtree-finder'"):
        penstock.plan(query, statistics, planner="mjoin", choice="random")
    with pytest.raises(NoQualifiedPlan):
        penstock.plan(query, statistics, Limits(memory=100), choice="least-cpu")
    assert isinstance(decide_by("random", Problem(query, statistics), Limits(memory=1)), Refusal)
