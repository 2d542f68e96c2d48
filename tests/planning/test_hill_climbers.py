"""The steps that the hill climbers take, worked out beside them; greedy orders under feedback."""

from __future__ import annotations

import random

import pytest
from planning_graphs import NAMES, join_query, random_problem

from penstock.planning.bjtree_ordering import bjtree_ordering
from penstock.planning.limits import Limits
from penstock.planning.mjoin_ordering import mjoin_ordering
from penstock.planning.probe_orders import EXACT, probe_orders
from penstock.planning.problem import Problem
from penstock.planning.shape import join, joins_of, leaf, merge, mjoin
from penstock.planning.state_removal import state_removal
from penstock.planning.state_selection import _edges, state_selection
from penstock.planning.statistics import Statistics
from penstock.planning.storage import TUPLES


@pytest.mark.parametrize("seed", range(12))
def test_state_removal_gives_up_the_cheapest_memory_first(seed: int) -> None:
    problem = random_problem(random.Random(seed), 6, storage=TUPLES)
    start = bjtree_ordering(problem)
    ratios = {}
    for node in joins_of(start.shapes[0]):
        if node is not start.shapes[0]:
            after = problem.evaluate([merge(start.shapes[0], node.mask)])
            size = problem.blocks[0].cardinality.size(node.mask)
            # In tuples, what is saved is the state and nothing else: the paper's |S|.
            assert start.cost.memory - after.cost.memory == pytest.approx(size, rel=1e-6)
            ratios[after.shapes] = (after.cost.cpu - start.cost.cpu) / size
    second = state_removal(problem, Limits(memory=1), start)[1]
    assert ratios[second.shapes] == pytest.approx(min(ratios.values()))


def test_edges_are_counted_once_for_each_order_that_goes_along_them() -> None:
    """A chain: every order from every input goes along every edge once."""
    query = join_query("ABCD", [("A", "B"), ("B", "C"), ("C", "D")], "RANGE 1 SECOND")
    shares = {("A", "B"): 0.1, ("B", "C"): 0.2, ("C", "D"): 0.3}
    problem = Problem(query, Statistics(dict.fromkeys("ABCD", 10), shares))
    edges = _edges(problem.blocks[0], mjoin(0b1111))
    assert list(edges) == [(0, 1), (1, 2), (2, 3)]
    assert [frequency for frequency, _ in edges.values()] == [4, 4, 4]
    assert [weight for _, weight in edges.values()] == pytest.approx([10, 20, 30])


def test_in_a_cycle_an_order_goes_along_the_more_selective_edge() -> None:
    query = join_query("ABC", [("A", "B"), ("B", "C"), ("A", "C")], "RANGE 1 SECOND")
    shares = {("A", "B"): 0.01, ("B", "C"): 0.1, ("A", "C"): 0.2}
    problem = Problem(query, Statistics(dict.fromkeys("ABC", 10), shares))
    edges = _edges(problem.blocks[0], mjoin(0b111))
    # A:B,C and B:A,C go along AB and BC; C begins with B and goes on to A along AB.
    assert {pair: frequency for pair, (frequency, _) in edges.items()} == {
        (0, 1): 3,
        (1, 2): 3,
        (0, 2): 0,
    }


def test_state_selection_stores_the_best_edge_first() -> None:
    """The rarest pair has the largest frequency / weight."""
    query = join_query("ABCD", [("A", "B"), ("B", "C"), ("C", "D")], "RANGE 10 SECONDS")
    shares = {("A", "B"): 0.3, ("B", "C"): 0.2, ("C", "D"): 0.01}
    problem = Problem(query, Statistics(dict.fromkeys("ABCD", 50), shares))
    trail = state_selection(problem, Limits(cpu=1e-12), mjoin_ordering(problem))
    assert trail[1].shapes[0] == join((leaf(0), leaf(1), join((leaf(2), leaf(3)))))


@pytest.mark.parametrize("seed", range(5))
def test_greedy_orders_under_feedback(seed: int) -> None:
    """What is not asked for is not made: the same savings as in the exact program."""
    chance = random.Random(seed)
    base = random_problem(chance, EXACT + 3)
    names = NAMES[: EXACT + 3]
    pair = join(
        (leaf(0), next(leaf(i) for i in range(1, 11) if base.blocks[0].is_linked(1, 1 << i)))
    )
    stored = [names[i] for i in range(EXACT + 3) if pair.mask >> i & 1]
    demand = {tuple(stored): 0.25, tuple(names): 0.5}
    statistics = Statistics(base.statistics.rates, base.statistics.selectivities, demand=demand)
    problem = Problem(base.query, statistics)
    parts = tuple(
        sorted([pair.mask, *(1 << i for i in range(len(names)) if not pair.mask >> i & 1)])
    )
    without, under = (probe_orders(p.blocks[0], parts) for p in (base, problem))
    assert without.orders == under.orders
    cardinality, costs = base.blocks[0].cardinality, base.costs
    results = cardinality.rate(sum(parts)) * costs.join * 0.5
    looks = cardinality.rate(pair.mask) * costs.probe * 0.75
    assert without.cpu - under.cpu == pytest.approx(results + looks, rel=1e-6)
