"""Allocation under lifespans: against exhaustive search, and against what it must never do."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from random_model import random_model

from penstock.overload import PathModel, Workload, allocate, path_model
from penstock.overload.allocation import Allocation
from penstock.overload.flow import flow
from penstock.overload.grepp import grepp
from penstock.overload.lifespan_greedy import _ThinTree, lifespan_greedy
from penstock.overload.path_model import thinned
from penstock.overload.prices import PROBES, Prices
from penstock.plan import read
from penstock.plan.stream_set import StreamSet


def best_by_trying(
    model: PathModel, budget: float, steps: int, prices: Prices = PROBES, doors: str = ""
) -> float:
    """All shares on a grid; the flow of a binary tree in plain formulas, on arrays."""
    grid = np.linspace(0, 1, steps)
    number = len(model.directions) + len(doors)
    shares = np.stack([each.ravel() for each in np.meshgrid(*[grid] * number, indexing="ij")])
    taken = dict(zip(doors, shares[len(model.directions) :], strict=True))
    made: dict[object, np.ndarray[tuple[int], np.dtype[np.float64]]] = {}
    full: dict[object, float] = {}
    cost = np.zeros(shares.shape[1])
    for stream, rate in model.rates.items():
        made[StreamSet.of(stream)] = rate * taken.get(stream, np.ones(shares.shape[1]))
        full[StreamSet.of(stream)] = rate
        cost += prices.row * made[StreamSet.of(stream)]
    for direction, share in zip(model.directions, shares, strict=False):
        target = direction.steps[0].target
        probing = share * made[direction.origin]
        new = probing * direction.productivities[0] * made[target] / full[target]
        is_root = direction.result == model.plan.root.streams
        cost += probing + new * (prices.match + (prices.result if is_root else prices.stored))
        made[direction.result] = made.get(direction.result, 0.0) + new
        most = full[direction.origin] * direction.productivities[0]
        full[direction.result] = full.get(direction.result, 0.0) + most
    results = made[model.plan.root.streams]
    return float(results[cost <= budget].max())


def some_model(chance: random.Random, plan: str) -> PathModel:
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
    return path_model(read(plan), workload)


@pytest.mark.parametrize(("plan", "steps"), [("(A B)", 31), ("((A B) C)", 7)])
def test_work_and_doors_against_exhaustive_search(plan: str, steps: int) -> None:
    """A row costs something, so it may be best to leave it at the door."""
    chance = random.Random(32)
    reached, taken = [], []
    for _ in range(12):
        model = some_model(chance, plan)
        prices = Prices(chance.uniform(0.5, 10), chance.uniform(0, 3), 1.5, chance.uniform(0, 3))
        doors = "".join(sorted(model.rates))
        tree = _ThinTree(model, prices, doors)
        whole = tree.pace([1.0] * tree.shares).cost
        budget = whole * chance.uniform(0.1, 0.9)
        found = lifespan_greedy(model, budget, {}, prices, doors)
        best = best_by_trying(model, budget, steps, prices, doors)
        without = lifespan_greedy(model, budget, {}, prices)
        assert found.throughput >= 0.999 * without.throughput
        reached.append(found.throughput / best)
        taken += [share for _, share in found.admitted]
        assert Allocation.from_json(found.to_json()) == found
    assert min(reached) > 0.95
    assert min(taken) < 0.9
    assert max(taken) == 1.0


def test_against_exhaustive_search() -> None:
    chance = random.Random(31)
    reached = []
    for number in range(40):
        plan, steps = [("((A B) C)", 15), ("((A B) (C D))", 7), ("(((A B) C) D)", 7)][number % 3]
        model = some_model(chance, plan)
        budget = model.saturation_resources * chance.uniform(0.1, 0.9)
        found = allocate(model, budget, allocator="lifespan-greedy")
        reached.append(found.throughput / best_by_trying(model, budget, steps))
    assert min(reached) > 0.97
    assert np.mean(reached) > 1.0  # The grid is coarse; finding less than it is the exception.


def test_slopes_are_exact_since_everything_is_affine_in_one_share() -> None:
    chance = random.Random(32)
    for _ in range(40):
        model = random_model(chance, most=6)
        tree = _ThinTree(model, PROBES, ())
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


def test_so_they_are_of_work_and_doors() -> None:
    chance = random.Random(33)
    for _ in range(40):
        model = random_model(chance, most=6)
        prices = Prices(*(chance.uniform(0, 5) for _ in range(4)))
        doors = [stream for stream in model.rates if chance.random() < 0.6]
        tree = _ThinTree(model, prices, doors)
        shares = [chance.random() for _ in range(tree.shares)]
        pace = tree.pace(shares)
        found = flow(thinned(model, tree.admitted(shares)), tree.allowances(shares), thin=True)
        assert found.throughput == pytest.approx(pace.throughput)
        for position in range(len(shares)):
            none, all_of_it = (
                tree.pace([*shares[:position], end, *shares[position + 1 :]]) for end in (0.0, 1.0)
            )
            gained = all_of_it.throughput - none.throughput
            assert pace.results[position] == pytest.approx(gained, rel=1e-6, abs=1e-9)
            dearer = all_of_it.cost - none.cost
            assert pace.costs[position] == pytest.approx(dearer, rel=1e-6, abs=1e-9)


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
