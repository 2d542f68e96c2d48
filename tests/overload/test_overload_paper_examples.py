"""The worked examples of the JAQPOT paper.

The figures themselves give more than the text that survives; what the text does not fix (rates that
no sentence names) is chosen here such that no stream is a limit.
"""

from __future__ import annotations

import pytest

from penstock.errors import PlanError
from penstock.overload import HalfWayJoin, PathModel, allocate, observed_model, path_table
from penstock.overload.grepp import grepp
from penstock.overload.jda import jda
from penstock.overload.jdam import jdam
from penstock.overload.knapsack import Item, fill_knapsack, knapsack
from penstock.plan import StreamSet, read

A, B, C = (StreamSet.of(name) for name in "ABC")
AB = A | B


def half(origin: StreamSet, target: StreamSet) -> HalfWayJoin:
    return HalfWayJoin(origin, target, origin)


def figure_4a() -> PathModel:
    matches = {(A, B): 0.005 * 500, (B, A): 0.001 * 5000}
    return observed_model(read("(A B)"), {"A": 500, "B": 700}, matches, {A: 5000, B: 500})


def figure_4b() -> PathModel:
    matches = {(A, B): 2.5, (B, A): 5.0, (AB, C): 5.0, (C, AB): 2.0}
    return observed_model(read("((A B) C)"), {"A": 500, "B": 700, "C": 400}, matches)


def figure_7() -> PathModel:
    matches = {(A, B): 4 / 11, (B, A): 5 / 11, (AB, C): 1.0, (C, AB): 0.1}
    return observed_model(read("((A B) C)"), {"A": 22, "B": 22, "C": 20}, matches)


UNITS = {"A": 11.0, "B": 11.0, "C": 10.0}


def test_jda_gives_all_to_the_more_productive_half_way_join() -> None:
    found = jda(figure_4a(), 300)
    assert found.throughput == pytest.approx(1500)
    assert found.probes == {half(A, B): 0, half(B, A): 300}


def test_jda_gives_the_rest_to_the_other() -> None:
    found = jda(figure_4a(), 1000)
    assert found.probes == {half(A, B): 300, half(B, A): 700}
    assert found.throughput == pytest.approx(700 * 5 + 300 * 2.5)


def test_jda_is_for_one_join() -> None:
    with pytest.raises(PlanError, match="JDAM"):
        jda(figure_4b(), 300)


def test_jdam_wastes_what_the_next_join_cannot_take() -> None:
    found = jdam(figure_4b(), 300)
    assert found.probes[half(B, A)] == pytest.approx(150)
    assert found.probes[half(AB, C)] == pytest.approx(150)
    assert found.throughput == pytest.approx(750)


def test_a_path_is_divided_so_that_producers_match_consumers() -> None:
    path_b = next(path for path in figure_4b().paths if path.stream == "B")
    assert path_b.division(600) == pytest.approx((100, 500))
    assert path_b.division(600)[1] * 5.0 == pytest.approx(600 * path_b.productivity)


def test_paths_give_more_than_jdam() -> None:
    found = grepp(figure_4b(), 300)
    assert found.probes[half(B, A)] == pytest.approx(50)
    assert found.probes[half(AB, C)] == pytest.approx(250)
    assert found.throughput == pytest.approx(1250)


@pytest.mark.parametrize(
    ("stream", "resources", "output", "productivity"),
    [("A", 15, 4, 0.266), ("B", 16, 5, 0.312), ("C", 10, 1, 0.1)],
)
def test_path_productivity_table(
    stream: str, resources: float, output: float, productivity: float
) -> None:
    path = next(path for path in figure_7().paths if path.stream == stream)
    assert UNITS[stream] * path.cost == pytest.approx(resources)
    assert UNITS[stream] * path.output == pytest.approx(output)
    assert path.productivity == pytest.approx(productivity, abs=0.001)


def test_the_table_as_text() -> None:
    assert path_table(figure_7()).splitlines() == [
        "path  half-way joins  probes/s  results/s  results/probe",
        "B     B ⋉ A, A B ⋉ C     32.00      10.00          0.312",
        "A     A ⋉ B, A B ⋉ C     30.00       8.00          0.267",
        "C     C ⋉ A B            20.00       2.00            0.1",
        "all                      82.00      20.00",
    ]


def test_whole_tuples_make_greedy_miss_the_optimum() -> None:
    """Greedy takes B once and C once for 6 results; A twice gives 8."""
    table = [Item(15, 4.0, 2), Item(16, 5.0, 2), Item(10, 1.0, 2)]
    assert fill_knapsack(table, 30) == [2, 0, 0]
    found = knapsack(figure_7(), 30, UNITS)
    assert found.throughput == pytest.approx(8)
    assert found.resources == pytest.approx(30)


def test_grepp_beats_whole_tuples() -> None:
    found = grepp(figure_7(), 30)
    assert found.probes[half(B, A)] == pytest.approx(20.62, abs=0.01)
    assert found.probes[half(AB, C)] == pytest.approx(9.38, abs=0.01)
    assert found.throughput == pytest.approx(9.38, abs=0.01)


def test_grepp_cannot_probe_with_tuples_that_do_not_arrive() -> None:
    """The paper gives the best path everything; equation 2 caps it by the rate of its stream."""
    found = grepp(figure_7(), 50)
    assert found.probes[half(B, A)] == pytest.approx(22)
    assert found.throughput == pytest.approx(10 + 18 * 4 / 15)


@pytest.mark.parametrize("allocator", ["tree-greedy", "jaqpot"])
def test_without_freshness_both_forms_are_grepp(allocator: str) -> None:
    for budget in (0, 30, 50, 82, 100):
        expected = grepp(figure_7(), budget)
        found = allocate(figure_7(), budget, allocator=allocator)
        assert found.throughput == pytest.approx(expected.throughput)
        assert found.probes == pytest.approx(expected.probes)
