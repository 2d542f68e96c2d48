"""Allocation under lifespans: against exhaustive search, and against what it must never do."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from random_model import random_model

from penstock.overload import PathModel, Workload, allocate, path_model
from penstock.overload.flow import flow
from penstock.overload.grepp import grepp
from penstock.overload.lifespan_greedy import _ThinTree
from penstock.plan import read


def best_by_trying(model: PathModel, budget: float, steps: int) -> float:
    """All shares on a grid; the flow of a binary tree in plain formulas, on arrays."""
    grid = np.linspace(0, 1, steps)
    shares = np.stack(
        [each.ravel() for each in np.meshgrid(*[grid] * len(model.directions), indexing="ij")]
    )
    made: dict[object, np.ndarray[tuple[int], np.dtype[np.float64]]] = {}
    full: dict[object, float] = {}
    cost = np.zeros(shares.shape[1])
    for direction, share in zip(model.directions, shares, strict=True):
        origin, target = direction.origin, direction.steps[0].target
        coming = made.get(origin, np.full(len(share), model.rates.get(min(origin), 0.0)))
        at_most = full.get(origin, model.rates[min(origin)])
        cost += share * coming
        there = made[target] / full[target] if target in made else 1.0
        output = direction.productivities[0]
        made[direction.result] = made.get(direction.result, 0.0) + share * coming * output * there
        full[direction.result] = full.get(direction.result, 0.0) + at_most * output
    results = made[model.plan.root.streams]
    return float(results[cost <= budget].max())


def test_against_exhaustive_search() -> None:
    chance = random.Random(31)
    reached = []
    for number in range(40):
        plan, steps = [("((A B) C)", 15), ("((A B) (C D))", 7), ("(((A B) C) D)", 7)][number % 3]
        streams = [letter for letter in plan if letter.isalpha()]
        rates = {stream: chance.uniform(10, 100) for stream in streams}
        workload = Workload(
            rates,
            dict.fromkeys(streams, 10.0),
            {
                pair: chance.uniform(0.2, 3) / (rates[pair[1]] * 10)
                for pair in itertools.pairwise(streams)
            },
        )
        model = path_model(read(plan), workload)
        budget = model.saturation_resources * chance.uniform(0.1, 0.9)
        found = allocate(model, budget, allocator="lifespan-greedy")
        reached.append(found.throughput / best_by_trying(model, budget, steps))
    assert min(reached) > 0.97
    assert np.mean(reached) > 1.0  # The grid is coarse; finding less than it is the exception.


def test_slopes_are_exact_since_everything_is_affine_in_one_share() -> None:
    chance = random.Random(32)
    for _ in range(40):
        model = random_model(chance, most=6)
        tree = _ThinTree(model)
        shares = [chance.random() for _ in model.directions]
        pace = tree.pace(shares)
        found = flow(model, tree.allowances(shares), thin=True)
        assert found.resources == pytest.approx(pace.cost)
        for position in range(len(shares)):
            ends = []
            for end in (0.0, 1.0):
                moved = [*shares[:position], end, *shares[position + 1 :]]
                ends.append(flow(model, tree.allowances(moved), thin=True))
            assert pace.results[position] == pytest.approx(
                ends[1].throughput - ends[0].throughput, rel=1e-6, abs=1e-9
            )
            assert pace.costs[position] == pytest.approx(
                ends[1].resources - ends[0].resources, rel=1e-6
            )


def test_no_join_is_starved_where_grepp_gets_nothing() -> None:
    workload = Workload(
        dict.fromkeys("ABCD", 200.0),
        dict.fromkeys("ABCD", 4.0),
        {("A", "B"): 0.002, ("B", "C"): 0.002, ("C", "D"): 0.002},
    )
    model = path_model(read("((A B) (C D))"), workload)
    budget = 0.4 * model.saturation_resources
    assert flow(model, grepp(model, budget).probes, thin=True).throughput == 0
    found = allocate(model, budget, allocator="lifespan-greedy")
    assert found.throughput > 0.2 * model.saturation_throughput
    assert flow(model, found.probes, thin=True).throughput == pytest.approx(found.throughput)


def test_one_join_is_greedy_by_productivity() -> None:
    chance = random.Random(33)
    for _ in range(30):
        streams = list("ABCD")[: chance.randint(2, 4)]
        rates = {stream: chance.uniform(10, 100) for stream in streams}
        workload = Workload(rates, dict.fromkeys(streams, chance.uniform(1, 9)))
        model = path_model(read(f"({' '.join(streams)})"), workload)
        budget = model.saturation_resources * chance.random()
        found = allocate(model, budget, allocator="lifespan-greedy")
        assert found.throughput == pytest.approx(grepp(model, budget).throughput)


def test_only_a_freshness_below_the_window_is_missed() -> None:
    model = path_model(
        read("((A B) C)"), Workload(dict.fromkeys("ABC", 10.0), dict.fromkeys("ABC", 6.0))
    )
    assert allocate(model, 5, {"A": 6.0}, "lifespan-greedy").feasible
    short = allocate(model, 5, {"A": 5.0, "B": 7.0}, "lifespan-greedy").shortfall
    assert short is not None
    assert [each.stream for each in short.streams] == ["A"]
