"""The model: half-way joins and paths of any plan, productivities, flow."""

from __future__ import annotations

import itertools
import random

import pytest
from random_model import random_model, random_workload

from penstock.errors import OptionError, PlanError
from penstock.overload import Workload, observed_model, path_model
from penstock.overload.flow import flow, matched, saturated
from penstock.plan import StreamSet, read
from penstock.testing.random_plan import random_plan

FOUR = Workload(
    rates={"A": 10, "B": 20, "C": 30, "D": 40},
    windows={"A": 6, "B": 5, "C": 4, "D": 3},
    selectivities={("A", "B"): 0.02, ("B", "C"): 0.03, ("C", "D"): 0.05},
)


def test_paths_of_a_linear_plan() -> None:
    model = path_model(read("(((A B) C) D)"), FOUR)
    path = model.paths[0]
    assert [str(step) for step in path.half_way_joins] == ["A ⋉ B", "A B ⋉ C", "A B C ⋉ D"]
    first, second, third = 0.02 * 100, 0.03 * 120, 0.05 * 120
    assert path.phi == pytest.approx((first, first * second, first * second * third))
    assert path.cost == pytest.approx(1 + first + first * second)
    assert [str(state) for state in model.susceptible] == ["{A, B}", "{A, B, C}"]
    last = model.paths[-1]
    assert [str(step) for step in last.half_way_joins] == ["D ⋉ A B C"]
    assert last.output == pytest.approx(0.05 * (60 * 100 * 120 * 0.02 * 0.03))


def test_paths_of_a_bushy_plan() -> None:
    model = path_model(read("((A B) (C D))"), FOUR)
    path = model.paths[0]
    assert [str(step) for step in path.half_way_joins] == ["A ⋉ B", "A B ⋉ C D"]
    assert path.phi[1] == pytest.approx(0.02 * 100 * 0.03 * (120 * 120 * 0.05))


def test_paths_of_an_mjoin_follow_its_probe_orders() -> None:
    model = path_model(read("(A B C | A:B,C B:C,A C:B,A)"), FOUR)
    assert [[str(s) for s in path.half_way_joins] for path in model.paths] == [
        ["A ⋉ B", "A+B ⋉ C"],
        ["B ⋉ C", "B+C ⋉ A"],
        ["C ⋉ B", "C+B ⋉ A"],
    ]
    assert model.susceptible == ()
    assert model.paths[2].phi == pytest.approx((0.03 * 100, 0.03 * 100 * 0.02 * 60))


def test_an_open_probe_order_visits_linked_inputs_first() -> None:
    model = path_model(read("(A B C D)"), FOUR)
    chain = [step.target for step in model.paths[3].half_way_joins]
    assert chain == [StreamSet.of("C"), StreamSet.of("B"), StreamSet.of("A")]


def test_paths_of_a_jtree() -> None:
    model = path_model(read("((A B) C D)"), FOUR)
    assert [str(s) for s in model.paths[0].half_way_joins] == ["A ⋉ B", "A B ⋉ C", "A B+C ⋉ D"]
    assert [str(s) for s in model.paths[3].half_way_joins] == ["D ⋉ C", "D+C ⋉ A B"]
    assert [str(state) for state in model.susceptible] == ["{A, B}"]


def test_lemma_2_and_its_extension() -> None:
    chance = random.Random(2)
    for _ in range(100):
        model = random_model(chance)
        streams, joins = len(model.rates), len(model.joins)
        assert len(model.susceptible) == joins - 1
        if all(len(directions) == 2 for directions in model.joins.values()):
            assert len(model.susceptible) == max(0, streams - 2)


def test_saturation_throughput_does_not_depend_on_the_plan() -> None:
    """A result is made by its last tuple, so it is the same for all plans, in closed form."""
    chance = random.Random(3)
    for _ in range(100):
        streams = list("ABCDEF")[: chance.randint(2, 6)]
        workload = random_workload(chance, streams)
        share = 1.0
        for selectivity in workload.selectivities.values():
            share *= selectivity
        expected = 0.0
        for last in streams:
            product = workload.rates[last] * share
            for other in streams:
                if other != last:
                    product *= workload.rates[other] * workload.windows[other]
            expected += product
        model = path_model(read(random_plan(chance, streams)), workload)
        assert model.saturation_throughput == pytest.approx(expected)
        assert saturated(model).throughput == pytest.approx(expected)
        assert saturated(model).resources == pytest.approx(model.saturation_resources)


def test_probes_and_matches_of_a_real_join() -> None:
    """φ against counting: nested loops over one second of a 3-way join."""
    chance = random.Random(4)
    values = 20
    windows = {
        name: [position % values for position in range(size)]
        for name, size in (("A", 300), ("B", 200), ("C", 100))
    }
    arrivals = [chance.randrange(values) for _ in range(500)]
    pairs = [(a, b) for a, b in itertools.product(arrivals, windows["B"]) if a == b]
    triples = [(a, b, c) for (a, b), c in itertools.product(pairs, windows["C"]) if b == c]
    workload = Workload(
        rates={"A": 500, "B": 200, "C": 100},
        windows={"A": 1, "B": 1, "C": 1},
        selectivities={("A", "B"): 1 / values, ("B", "C"): 1 / values},
    )
    path = path_model(read("((A B) C)"), workload).paths[0]
    assert path.rate * path.phi[0] == pytest.approx(len(pairs))
    assert path.rate * path.phi[1] == pytest.approx(len(triples))


def test_matched_flow_is_the_sum_of_the_paths() -> None:
    chance = random.Random(5)
    for _ in range(100):
        model = random_model(chance)
        probing = {s: rate * chance.random() for s, rate in model.rates.items()}
        found = matched(model, probing)
        assert found.resources == pytest.approx(
            sum(probing[p.stream] * p.cost for p in model.paths)
        )
        assert found.throughput == pytest.approx(
            sum(probing[p.stream] * p.output for p in model.paths)
        )
        for state in model.susceptible:
            fed = sum(probing[p.stream] * dict(p.refreshed).get(state, 0) for p in model.paths)
            assert found.made[state] == pytest.approx(fed)


def test_thin_states_give_the_share_that_was_made() -> None:
    """If a third of the pairs is in the state, a probe finds a third of its partners."""
    model = path_model(read("((A B) C)"), FOUR)
    third = {"A": 10 / 3, "B": 20 / 3, "C": 30.0}
    path_a, path_b, path_c = model.paths
    expected = third["A"] * path_a.output + third["B"] * path_b.output + 30 * path_c.output / 3
    assert matched(model, third, thin=True).throughput == pytest.approx(expected)
    starved = matched(model, {"C": 30.0}, thin=True)
    assert starved.throughput == 0
    assert matched(model, model.rates, thin=True).throughput == pytest.approx(
        model.saturation_throughput
    )


def test_allowances_below_what_comes_are_a_limit() -> None:
    model = path_model(read("((A B) C)"), FOUR)
    steps = {str(step): step for step in model.half_way_joins}
    found = flow(model, {steps["A ⋉ B"]: 5, steps["A B ⋉ C"]: 4})
    assert found.made[StreamSet.of("A", "B")] == pytest.approx(5 * 2)
    assert found.throughput == pytest.approx(4 * 3.6)
    assert found.probes[steps["C ⋉ A B"]] == 0


def test_combined_selectivity_corrects_dependent_predicates() -> None:
    """A.x = B.x = C.x: three pairs, but the third predicate follows from the other two."""
    rates = dict.fromkeys("ABC", 10.0)
    windows = dict.fromkeys("ABC", 10.0)
    pairs = {("A", "B"): 0.1, ("B", "C"): 0.1, ("A", "C"): 0.1}
    together = {StreamSet("ABC"): 0.01}
    model = path_model(read("((A B) C)"), Workload(rates, windows, pairs, together))
    assert model.saturation_throughput == pytest.approx(3 * 10 * 100 * 100 * 0.01)


def test_sizes_that_are_known_take_precedence() -> None:
    static = StreamSet.of("R")
    workload = Workload(
        rates={"A": 10, "R": 0}, windows={"A": 5}, selectivities={("A", "R"): 0.5},
        sizes={static: 8},
    )  # fmt: skip
    model = path_model(read("(A R)"), workload)
    assert model.saturation_throughput == pytest.approx(10 * 0.5 * 8)
    assert model.saturation_resources == pytest.approx(10)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rates": {"A": -1, "B": 1}}, "rate of A is -1"),
        ({"windows": {"A": 0, "B": 1}}, "window of A is 0"),
        ({"selectivities": {("A", "B"): 2}}, "selectivity of A, B is 2"),
        ({"selectivities": {("A", "B"): 0.5, ("B", "A"): 0.4}}, "two different selectivities"),
        ({"windows": {"A": 1}}, "no window for stream B"),
        ({"windows": {"A": 1, "B": float("inf")}}, "window of B has no end"),
    ],
)
def test_workloads_that_are_refused(wrong: dict[str, dict[str, float]], message: str) -> None:
    right: dict[str, dict[str, float]] = {"rates": {"A": 1, "B": 1}, "windows": {"A": 1, "B": 1}}
    with pytest.raises(OptionError, match=message):
        path_model(read("(A B)"), Workload(**(right | wrong)))  # type: ignore[arg-type]


def test_models_that_are_refused() -> None:
    with pytest.raises(PlanError, match="joins nothing"):
        path_model(read("A"), FOUR)
    a, b = StreamSet.of("A"), StreamSet.of("B")
    with pytest.raises(OptionError, match="no productivity for the half-way join B ⋉ A"):
        observed_model(read("(A B)"), {"A": 1, "B": 1}, {(a, b): 1.0})
