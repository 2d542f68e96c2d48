"""The simulation against what the model predicts, and its own bookkeeping."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.overload import ALLOCATORS, Workload, allocate, observed_model, path_model
from penstock.overload.simulation import Phase, simulate
from penstock.plan import StreamSet, read
from penstock_studies import overload_figures as figures

WORKLOAD = Workload(
    dict.fromkeys("ABCD", 200.0),
    dict.fromkeys("ABCD", 2.0),
    {("A", "B"): 0.004, ("B", "C"): 0.003, ("C", "D"): 0.004},
)


@pytest.mark.parametrize("plan", ["(((A B) C) D)", "((A B) (C D))", "(A B C D)", "((A B) C D)"])
@pytest.mark.parametrize("allocator", [name for name in ALLOCATORS if name != "lifespan-greedy"])
def test_count_windows_give_what_the_path_model_predicts(plan: str, allocator: str) -> None:
    model = path_model(read(plan), WORKLOAD)
    freshness = dict.fromkeys("ABCD", 6.0)
    allocation = allocate(model, 0.5 * model.saturation_resources, freshness, allocator)
    run = simulate([Phase(model, allocation, freshness, 30)], 1).after(6)
    assert run.throughput == pytest.approx(allocation.throughput, rel=0.06)
    assert run.resources == pytest.approx(allocation.resources, rel=0.06)
    assert run.resources <= allocation.budget * 1.02


@pytest.mark.parametrize("plan", ["(((A B) C) D)", "((A B) (C D))", "(A B C D)", "((A B) C D)"])
def test_lifespans_give_what_thin_states_predict(plan: str) -> None:
    model = path_model(read(plan), WORKLOAD)
    allocation = allocate(model, 0.6 * model.saturation_resources, {}, "lifespan-greedy")
    freshness = dict.fromkeys("ABCD", 2.0 + 0.11)
    phase = Phase(model, allocation, freshness, 14)
    run = simulate([phase], 1, states="lifespan", turn=0.05).after(4)
    assert run.throughput == pytest.approx(allocation.throughput, rel=0.1)
    assert run.stale_share == 0


def test_a_starved_state_is_stale_by_count_and_empty_by_lifespan() -> None:
    model = path_model(read("((A B) C)"), WORKLOAD)
    rates = dict(model.rates)
    probes = allocate(model, rates["C"], {}, "grepp")
    only_c = next(step for step in model.half_way_joins if step.origin == StreamSet.of("C"))
    assert probes.probes[only_c] == pytest.approx(rates["C"])
    freshness = {"A": 3.0, "B": 3.0}
    by_count = simulate([Phase(model, probes, freshness, 20)], 2).after(10)
    assert by_count.stale_share == 1
    assert by_count.throughput == pytest.approx(probes.throughput, rel=0.05)
    by_lifespan = simulate([Phase(model, probes, freshness, 20)], 2, states="lifespan").after(10)
    assert by_lifespan.throughput == 0


def test_refreshed_states_keep_results_as_young_as_lemma_1_says() -> None:
    a, b, c = (StreamSet.of(name) for name in "ABC")
    model = observed_model(
        read("((A B) C)"),
        dict.fromkeys("ABC", 100.0),
        {(a, b): 2.0, (b, a): 2.0, (a | b, c): 0.5, (c, a | b): 3.0},
        {a: 500.0, b: 500.0, c: 500.0, a | b: 1000.0},
    )
    freshness = {"A": 15.0, "B": 15.0}
    fresh = allocate(model, 120, freshness)
    assert fresh.feasible
    run = simulate([Phase(model, fresh, {"A": 15.5, "B": 15.5}, 60)], 3).after(20)
    assert run.stale_share < 0.001
    tighter = simulate([Phase(model, fresh, {"A": 13.0, "B": 13.0}, 60)], 3).after(20)
    assert tighter.stale_share > 0.01


def test_a_run_follows_its_seed_and_its_phases() -> None:
    model = path_model(read("(A B)"), WORKLOAD)
    none, full = (allocate(model, share * model.saturation_resources) for share in (0, 2))
    phases = [Phase(model, none, {}, 5), Phase(model, full, {}, 5)]
    run = simulate(phases, 4)
    assert run.results[run.times <= 5].sum() == 0
    assert run.after(5).throughput == pytest.approx(model.saturation_throughput, rel=0.1)
    assert np.array_equal(run.results, simulate(phases, 4).results)
    assert not np.array_equal(run.results, simulate(phases, 5).results)


def test_figure_11_in_a_hurry() -> None:
    rows = figures.fluctuating_selectivities("linear", 1, slower=20.0)
    assert [row["minute"] for row in rows] == list(range(1, 11))
    last = {name: float(value) for name, value in rows[-1].items()}
    assert last["tree-greedy"] > 2 * last["jdam"]
    # The root decides: its selectivity doubles at 7 minutes, the others triple at 3.
    pace = np.diff([0.0, *(float(row["tree-greedy"]) for row in rows)])
    assert pace[8] == pytest.approx(2 * pace[5], rel=0.1)
    assert pace[5] == pytest.approx(pace[1], rel=0.2)


def test_figure_12_in_a_hurry() -> None:
    rows = figures.throughput_by_resources("linear", 1, 1, "figure-10", ("grepp", "jdam"))
    mean, at_40 = figures.ratios(rows, "grepp", "jdam")
    assert 2.5 < mean < 3.5
    assert 2.5 < at_40 < 3.5
    assert float(rows[6]["grepp"]) == pytest.approx(60, abs=5)
    assert figures.table(rows).splitlines()[0].split() == ["resources", "grepp", "jdam"]


def test_figure_13_in_a_hurry() -> None:
    rows = figures.resources_for_freshness("bushy", 1, 5, "figure-10")
    spent = [float(row["jaqpot resources"]) for row in rows]
    assert spent == sorted(spent, reverse=True)
    assert all(
        float(row["tree-greedy resources"]) <= float(row["jaqpot resources"]) for row in rows
    )
