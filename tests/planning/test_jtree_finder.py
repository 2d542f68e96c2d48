"""JTree-Finder against all jtrees by brute force, with and without cross products."""

from __future__ import annotations

import random

import pytest
from brute_force import Tree, World, all_trees, cost
from planning_graphs import random_problem

from penstock.plan import Join, Leaf, Node, read
from penstock.planning.jtree_finder import jtree_finder, not_dominated
from penstock.planning.limits import Limits
from penstock.planning.problem import Candidate, Problem
from penstock.planning.storage import TUPLES
from penstock.planning.unit_costs import UnitCosts
from penstock.query.window import Range

COSTS = UnitCosts(insert=3, delete=1, join=5, probe=2, compare=0.5, index=1, arrival=0, result=0)


def _world(problem: Problem) -> World:
    streams = problem.query.streams
    seconds = {
        s.alias: s.window.milliseconds / 1000 for s in streams if isinstance(s.window, Range)
    }
    shares = {frozenset(pair): share for pair, share in problem.statistics.selectivities.items()}
    return World(
        dict(problem.statistics.rates),
        seconds,
        shares,
        problem.costs,
        problem.blocks[0].cross_products,
    )


def _tree(node: Node) -> Tree:
    return node.stream if isinstance(node, Leaf) else frozenset(_tree(each) for each in node.inputs)


def _by_hand(problem: Problem) -> dict[Tree, tuple[float, float]]:
    world = _world(problem)
    return {tree: cost(tree, world) for tree in all_trees(sorted(world.rates), world)}


def _front(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    return sorted(
        p for p in set(points) if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in points)
    )


def _points(candidates: list[Candidate]) -> list[tuple[float, float]]:
    return sorted((c.cost.cpu, c.cost.memory) for c in candidates)


@pytest.mark.parametrize("cross_products", [False, True])
@pytest.mark.parametrize("connected", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_finds_what_brute_force_finds(seed: int, connected: bool, cross_products: bool) -> None:
    chance = random.Random(seed)
    count = 2 + seed % 4
    problem = random_problem(chance, count, cross_products, COSTS, TUPLES, connected)
    trees = _by_hand(problem)

    everything = jtree_finder(problem, Limits(), keep="all")
    found = {_tree(problem.plan_of(c).root): tuple(c.cost) for c in everything}
    assert found.keys() == trees.keys()
    assert len(everything) == len(trees)
    for tree, expected in trees.items():
        assert found[tree] == pytest.approx(expected), tree

    front = jtree_finder(problem, Limits())
    expected_front = _front([(float(f"{c:.9g}"), float(f"{m:.9g}")) for c, m in trees.values()])
    assert [pytest.approx(p, rel=1e-8) for p in _points(front)] == expected_front
    assert _points(not_dominated(everything)) == _points(front)
    assert front[0].cost.cpu == pytest.approx(min(c for c, _ in trees.values()))
    assert front[-1].cost.memory == pytest.approx(min(m for _, m in trees.values()))


def test_all_jtrees_over_five_streams() -> None:
    """With cross products every tree counts: 4, 26, 236 of them (Schröder's fourth problem)."""
    for count, trees in ((3, 4), (4, 26), (5, 236)):
        problem = random_problem(random.Random(count), count, cross_products=True)
        assert len(jtree_finder(problem, Limits(), keep="all")) == trees


@pytest.mark.parametrize("seed", range(10))
def test_limits_cut_off_exactly_what_exceeds_them(seed: int) -> None:
    problem = random_problem(random.Random(seed), 5, costs=COSTS, storage=TUPLES)
    everything = jtree_finder(problem, Limits(), keep="all")
    middle = everything[len(everything) // 2].cost
    limits = Limits(cpu=middle.cpu, memory=int(middle.memory) + 1)
    assert limits.memory is not None
    expected = [
        c for c in everything if c.cost.cpu <= middle.cpu and c.cost.memory <= limits.memory
    ]
    found = jtree_finder(problem, limits, keep="all")
    # Sums in another order may differ in the last bit, so the plan on the edge may be missing.
    assert {c.shapes for c in found} <= {c.shapes for c in expected}
    assert len(found) >= len(expected) - 1
    least = Limits(cpu=everything[0].cost.cpu * 0.999)
    assert jtree_finder(problem, least) == []


def test_probe_orders_are_part_of_the_plan() -> None:
    problem = random_problem(random.Random(4), 5)
    plan = problem.plan_of(problem.evaluate(problem.shapes_of(read("(A B C D E)"))))
    assert isinstance(plan.root, Join)
    assert len(plan.root.orders) == 5
