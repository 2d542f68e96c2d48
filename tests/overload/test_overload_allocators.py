"""Allocators: within the budget, fresh where they say so, and how near to the exact optimum."""

from __future__ import annotations

import random

import pytest
from exact_optimum import best_by_direction, best_by_path
from random_model import random_model

from penstock.errors import OptionError
from penstock.overload import ALLOCATORS, Allocation, PathModel, allocate, observed_model
from penstock.overload.flow import flow, saturated
from penstock.overload.grepp import grepp
from penstock.overload.jdam import jdam
from penstock.overload.knapsack import knapsack
from penstock.overload.random_shedding import random_shedding
from penstock.overload.refresh_rates import reachable_rates, refresh_rates
from penstock.overload.staleness import staleness
from penstock.plan import StreamSet, read

A, B, C, D = (StreamSet.of(name) for name in "ABCD")

Situation = tuple[PathModel, float, dict[str, float]]


def situation(chance: random.Random) -> Situation:
    """A random model, a budget of 5 to 100 % of saturation, and freshness for most streams."""
    model = random_model(chance)
    freshness = {
        stream: window * chance.choice([1.5, 3, 5])
        for stream, window in model.windows.items()
        if chance.random() < 0.7
    }
    return model, model.saturation_resources * chance.uniform(0.05, 1), freshness


def is_fresh(found: Allocation, freshness: dict[str, float]) -> bool:
    return all(dict(found.staleness)[s] <= f * (1 + 1e-9) for s, f in freshness.items())


@pytest.mark.parametrize("allocator", list(ALLOCATORS))
def test_every_allocator_stays_within_budget_rates_and_the_truth(allocator: str) -> None:
    chance = random.Random(11)
    for _ in range(150):
        model, budget, freshness = situation(chance)
        found = allocate(model, budget, freshness, allocator)
        assert found.resources <= budget * (1 + 1e-9)
        assert found.throughput <= model.saturation_throughput * (1 + 1e-9)
        for path in model.paths:
            assert found.probes[path.half_way_joins[0]] <= path.rate * (1 + 1e-9)
        if allocator != "random-shedding":
            again = flow(model, found.probes, thin=allocator == "lifespan-greedy")
            assert again.throughput == pytest.approx(found.throughput)
            assert again.probes == pytest.approx(found.probes)
            by_count = staleness(model, again.made)
            ages = model.windows if allocator == "lifespan-greedy" else by_count
            assert dict(found.staleness) == pytest.approx(ages)
        if found.feasible and allocator in ("tree-greedy", "jaqpot"):
            assert is_fresh(found, freshness)
        if not found.feasible:
            assert not is_fresh(found, freshness)


@pytest.mark.parametrize("allocator", list(ALLOCATORS))
def test_every_allocator_reaches_saturation(allocator: str) -> None:
    chance = random.Random(12)
    for _ in range(50):
        model = random_model(chance)
        full = allocate(model, model.saturation_resources * 1.001, {}, allocator)
        if allocator not in ("jda", "jdam") or len(model.joins) == 1:
            assert full.throughput == pytest.approx(model.saturation_throughput)
        assert allocate(model, 0, {}, allocator).throughput == 0


def test_the_default_is_the_exact_optimum_over_1000_plans() -> None:
    """And the paper's form is so among whole paths; what whole paths lose is bounded here too."""
    chance = random.Random(1)
    feasible = unseen = 0
    losses = []
    for _ in range(1000):
        model, budget, freshness = situation(chance)
        rates, enough = reachable_rates(model, freshness)
        best = best_by_direction(model, budget, rates) if enough else None
        mine = allocate(model, budget, freshness)
        paper = allocate(model, budget, freshness, "jaqpot")
        assert mine.feasible == (best is not None)
        if best is None:
            continue
        feasible += 1
        assert mine.throughput == pytest.approx(best, rel=1e-6)
        if not paper.feasible:
            assert best_by_path(model, budget, rates) is None
            unseen += 1
            continue
        assert paper.throughput >= 0.99 * (best_by_path(model, budget, rates) or 0.0)
        losses.append(1 - paper.throughput / best)
    assert feasible > 600
    assert 0 < unseen < 0.1 * feasible
    assert max(losses) > 0.1
    assert sum(losses) < 0.01 * len(losses)


def test_refreshing_need_not_probe_any_further() -> None:
    """D finds most; A B C is refreshed for its sake, and its tuples find nothing in D."""
    abc = A | B | C
    model = observed_model(
        read("(((A B) C) D)"),
        dict.fromkeys("ABCD", 100.0),
        {
            (A, B): 1.0, (B, A): 1.0, (A | B, C): 10.0, (C, A | B): 10.0,
            (abc, D): 0.01, (D, abc): 50.0,
        },
        {A | B: 100.0, abc: 1000.0, A: 100.0, B: 100.0, C: 100.0, D: 100.0},
    )  # fmt: skip
    freshness = {"C": 2.0}
    best = allocate(model, 1150, freshness)
    paper = allocate(model, 1150, freshness, "jaqpot")
    assert best.freshness_probes == pytest.approx(100)
    assert paper.freshness_probes == pytest.approx(1100)
    assert best.throughput > 1.9 * paper.throughput
    assert allocate(model, 150, freshness).feasible
    assert not allocate(model, 150, freshness, "jaqpot").feasible


def test_infeasible_freshness_is_explained() -> None:
    model = observed_model(
        read("((A B) C)"),
        {"A": 100.0, "B": 100.0, "C": 100.0},
        {(A, B): 2.0, (B, A): 2.0, (A | B, C): 1.0, (C, A | B): 1.0},
        {A: 1000.0, B: 1000.0, C: 1000.0, A | B: 1000.0},
    )
    freshness = {"A": 15.0, "B": 40.0}
    assert refresh_rates(model, freshness) == {A | B: pytest.approx(200)}
    enough = allocate(model, 100, freshness)
    assert enough.feasible
    assert enough.freshness_probes == pytest.approx(100)
    short = allocate(model, 60, freshness)
    assert short.shortfall is not None
    assert short.shortfall.missing == pytest.approx(40)
    assert [each.stream for each in short.shortfall.streams] == ["A"]
    assert str(short.shortfall) == (
        "freshness needs 100.0 probes/s, the budget is 60.0: 40.0 probes/s are missing\n"
        "  A: FRESHNESS 15 s is asked for, results can be 35 s old"
    )
    never = allocate(model, 1e9, {"B": 11.0})
    assert never.shortfall is not None
    assert str(never.shortfall) == (
        "freshness cannot be had with this plan, whatever the budget\n"
        "  B: FRESHNESS 11 s is asked for, results can be 12.5 s old, "
        "and still 12.5 s if nothing were skipped"
    )


def test_refresh_rates_use_the_whole_slack_of_some_stream() -> None:
    """Lemma 1 holds with these rates, and no state could do with less alone."""
    chance = random.Random(13)
    checked = 0
    for _ in range(200):
        model, _, freshness = situation(chance)
        rates = refresh_rates(model, freshness)
        full = saturated(model).made
        if not rates or any(rate > full[s] for s, rate in rates.items()):
            continue
        made = {**full, **rates}
        ages = staleness(model, made)
        assert all(ages[s] <= f * (1 + 1e-9) for s, f in freshness.items())
        for state in rates:
            slower = staleness(model, made | {state: rates[state] * 0.99})
            assert any(slower[s] > f for s, f in freshness.items())
        checked += 1
    assert checked > 50


def test_a_stream_that_is_fresh_at_saturation_is_never_called_infeasible() -> None:
    chance = random.Random(14)
    for _ in range(200):
        model, _, freshness = situation(chance)
        at_best = staleness(model, saturated(model).made)
        _, enough = reachable_rates(model, freshness)
        assert enough == all(at_best[s] <= f * (1 + 1e-9) for s, f in freshness.items())


def test_the_knapsack_comes_near_to_grepp_as_units_shrink() -> None:
    chance = random.Random(15)
    for _ in range(30):
        model = random_model(chance, most=4)
        budget = min(20_000.0, model.saturation_resources * chance.uniform(0.2, 0.8))
        fluid = grepp(model, budget)
        whole = knapsack(model, budget)
        assert whole.resources <= budget
        assert whole.throughput <= fluid.throughput * (1 + 1e-9)


def test_the_knapsack_is_exact_where_everything_can_be_tried() -> None:
    chance = random.Random(16)
    for _ in range(50):
        model = observed_model(
            read("((A B) C)"),
            {name: chance.randint(1, 4) for name in "ABC"},
            {key: chance.randint(0, 3) for key in [(A, B), (B, A), (A | B, C), (C, A | B)]},
        )
        budget = chance.randint(0, 25)
        best = 0.0
        for a in range(int(model.rates["A"]) + 1):
            for b in range(int(model.rates["B"]) + 1):
                for c in range(int(model.rates["C"]) + 1):
                    tuples = dict(zip("ABC", (a, b, c), strict=True))
                    cost = sum(tuples[p.stream] * p.cost for p in model.paths)
                    if cost <= budget:
                        best = max(best, sum(tuples[p.stream] * p.output for p in model.paths))
        assert knapsack(model, budget).throughput == pytest.approx(best)


def test_random_shedding_keeps_the_same_share_of_everything() -> None:
    chance = random.Random(17)
    for _ in range(50):
        model = random_model(chance)
        budget = model.saturation_resources * chance.uniform(0.05, 0.95)
        found = random_shedding(model, budget)
        assert found.resources == pytest.approx(budget)
        streams = len(model.rates)
        assert found.throughput == pytest.approx(model.saturation_throughput * found.keep**streams)
        assert found.throughput <= grepp(model, budget).throughput * (1 + 1e-9)


def test_unknown_names_are_refused() -> None:
    model = random_model(random.Random(18))
    with pytest.raises(OptionError, match="no allocator 'best'; there are tree-greedy"):
        allocate(model, 1, allocator="best")
    with pytest.raises(OptionError, match="freshness for Z"):
        allocate(model, 1, {"Z": 1.0})
    with pytest.raises(OptionError, match="the budget is -1"):
        allocate(model, -1)


def test_jdam_by_the_letter_wastes_what_its_one_direction_cannot_use() -> None:
    """At the root C finds 40 matches and is slow, A B finds 2 and is fast: all is for C."""
    productivities = {
        (StreamSet("A"), StreamSet("B")): 3.0,
        (StreamSet("B"), StreamSet("A")): 2.0,
        (StreamSet("AB"), StreamSet("C")): 2.0,
        (StreamSet("C"), StreamSet("AB")): 40.0,
    }
    sizes = {StreamSet(each): 100.0 for each in ("A", "B", "C", "AB")}
    rates = {"A": 50.0, "B": 50.0, "C": 10.0}
    model = observed_model(read("((A B) C)"), rates, productivities, sizes)
    by_letter, kinder = jdam(model, 200.0, one_way=True), jdam(model, 200.0)
    assert by_letter.throughput == pytest.approx(10 * 40)
    assert kinder.throughput == pytest.approx(10 * 40 + 90 * 2)
    assert by_letter.resources < kinder.resources <= 200
