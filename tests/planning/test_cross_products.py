"""Cross products: looked at where nothing else qualifies, and before a refusal is called proven."""

from __future__ import annotations

import random

import pytest
from brute_force import World, all_trees, cost
from planning_graphs import NAMES, join_query, random_problem

import penstock
from penstock.plan import read
from penstock.planning.cost_model import least_cpu, least_memory
from penstock.planning.jtree_finder import jtree_finder
from penstock.planning.limits import Limits
from penstock.planning.planner import decide
from penstock.planning.problem import Problem
from penstock.planning.statistics import Statistics
from penstock.planning.storage import TUPLES
from penstock.planning.two_layer import two_layer
from penstock.planning.unit_costs import UnitCosts
from penstock.planning.verdict import Choice, is_qualified
from penstock.planning.written_cost import written_cost

COSTS = UnitCosts(insert=3, delete=1, join=5, probe=2, compare=0.5, index=1, arrival=0, result=0)


def _uneven(chance: random.Random, count: int, costs: UnitCosts = COSTS) -> Problem:
    """A tree of links over streams of very different rates: crossing the small ones may pay."""
    names = NAMES[:count]
    pairs = [(names[chance.randrange(j)], names[j]) for j in range(1, count)]
    rates = {name: 10 ** chance.uniform(-1, 2) for name in names}
    shares = {pair: 10 ** chance.uniform(-2, 0) for pair in pairs}
    query = join_query(names, pairs, "RANGE 1 SECONDS")
    return Problem(query, Statistics(rates, shares), costs, TUPLES)


def _all_plans(problem: Problem, cross_products: bool) -> list[tuple[float, float]]:
    """CPU and tuples of every jtree, by brute force."""
    shares = {frozenset(pair): share for pair, share in problem.statistics.selectivities.items()}
    rates = dict(problem.statistics.rates)
    world = World(rates, dict.fromkeys(rates, 1.0), shares, problem.costs, cross_products)
    return [cost(tree, world) for tree in all_trees(sorted(rates), world)]


def _meets(point: tuple[float, float], limits: Limits) -> bool:
    assert limits.cpu is not None
    assert limits.memory is not None
    return point[0] <= limits.cpu and point[1] <= limits.memory


@pytest.mark.parametrize("planner", ["two-layer", "jtree-finder"])
def test_a_plan_is_found_if_and_only_if_brute_force_has_one(planner: str) -> None:
    crossed = refused = 0
    for seed in range(60):
        chance = random.Random(seed)
        problem = _uneven(chance, 3 + seed % 3)
        plain, everything = (_all_plans(problem, cross) for cross in (False, True))
        front = [
            each
            for each in everything
            if not any(o[0] <= each[0] and o[1] <= each[1] and o != each for o in everything)
        ]
        cpu, memory = chance.choice(front)
        slack = chance.choice([0.9, 1.0001, 1.2])
        limits = Limits(cpu=cpu * slack, memory=max(1, int(memory * slack) + 1))
        verdict = decide(problem, limits, planner)
        assert isinstance(verdict, Choice) == any(_meets(each, limits) for each in everything)
        if not isinstance(verdict, Choice):
            assert verdict.proven
            refused += 1
            continue
        plan = problem.plan_of(verdict.candidate)
        plan.check(problem.query)
        assert is_qualified(verdict.candidate.cost, limits)
        assert written_cost(problem, plan) == pytest.approx(verdict.candidate.cost)
        needed = not any(_meets(each, limits) for each in plain)
        assert verdict.candidate.crosses == problem.crosses(plan) == needed
        crossed += needed
    assert crossed >= 3
    assert refused >= 3


def test_a_refusal_without_cross_products_is_not_called_proven() -> None:
    """The setting in which a refusal was called proven: two small streams at a fast hub."""
    query = join_query("ABC", [("A", "B"), ("A", "C")], "RANGE 1 SECONDS")
    statistics = Statistics({"A": 1000, "B": 1, "C": 1}, {("A", "B"): 0.9, ("A", "C"): 0.9})
    problem = Problem(query, statistics, COSTS, TUPLES)
    crossed = problem.crossing.price(read("((B C) A)"))
    limits = Limits(cpu=crossed.cpu * 1.001, memory=int(crossed.memory) + 2)
    assert jtree_finder(problem, limits) == []
    verdict = decide(problem, limits)
    assert isinstance(verdict, Choice)
    assert problem.outline(verdict.candidate) == "(A (B C))"
    assert "no predicate links" in verdict.why
    assert not isinstance(decide(problem, limits, cross_products=False), Choice)
    plan = penstock.plan(query, statistics, limits, costs=COSTS, storage=TUPLES)
    assert problem.crosses(plan)


@pytest.mark.parametrize("seed", range(4))
def test_beyond_jtree_finder_nothing_is_proven_by_search(seed: int) -> None:
    """Nine streams: limits between the bounds and what is found."""
    problem = _uneven(random.Random(seed), 9)
    found = two_layer(problem, Limits())
    assert isinstance(found, Choice)
    bound = sum(least_cpu(block) for block in problem.blocks)
    limits = Limits(cpu=bound * 1.01, memory=10**12)
    verdict = decide(problem, limits)
    if not isinstance(verdict, Choice):
        assert not verdict.proven
        assert "was found" in verdict.why


def test_bounds_hold_for_tiny_windows_and_cross_products() -> None:
    """A window that is crossed first needs no index, and a product with less than a row is free."""
    for seed in range(20):
        chance = random.Random(seed)
        names = NAMES[:4]
        pairs = [(names[chance.randrange(j)], names[j]) for j in range(1, 4)]
        rates = {name: 10 ** chance.uniform(-6, 3) for name in names}
        shares = {pair: 10 ** chance.uniform(-2, 0) for pair in pairs}
        query = join_query(names, pairs, "RANGE 1 SECONDS")
        problem = Problem(query, Statistics(rates, shares), cross_products=True)
        block = problem.blocks[0]
        for candidate in jtree_finder(problem, Limits(), keep="all"):
            assert candidate.cost.cpu >= problem.fixed.cpu + least_cpu(block)
            assert candidate.cost.memory >= problem.fixed.memory + least_memory(block)


def test_a_clique_has_no_cross_products() -> None:
    clique = Problem(
        join_query("ABC", [("A", "B"), ("A", "C"), ("B", "C")]), Statistics(dict.fromkeys("ABC", 5))
    )
    assert not clique.may_cross
    chain = random_problem(random.Random(1), 3)
    assert chain.may_cross == (len(chain.statistics.selectivities) < 3)
    assert chain.crossing.crossing is chain.crossing
