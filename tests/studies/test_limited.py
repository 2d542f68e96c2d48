"""Processes with a share of a core and a bound on memory, and bounds that are drawn."""

from __future__ import annotations

import random

import pytest

from penstock.planning.block import Cost
from penstock.planning.unit_costs import UnitCosts
from penstock_studies.limited.bounds import TIMES_THE_NEED, WIDENED, draw
from penstock_studies.limited.contest import Entry, contest, over_time
from penstock_studies.limited.graph_point import MOST_ROWS, workload_of
from penstock_studies.limited.limited_process import run_limited
from penstock_studies.limited.workload import Workload
from penstock_studies.random_graph import random_graph

COSTS = {"mjoin": Cost(4.0, 100.0), "bjtree": Cost(1.0, 900.0)}
SMALL = Workload({"A": 40, "B": 40, "C": 40}, {("A", "B"): 20, ("B", "C"): 20}, 2, 6, 4)


def test_bounds_are_drawn_over_the_whole_range_and_by_the_seed_alone() -> None:
    drawn = [
        draw(random.Random(f"{n} {part}"), COSTS, ("cpu", "memory"), part, 4)
        for n in range(20)
        for part in range(4)
    ]
    assert all(1 / WIDENED <= each.cpu <= 4 * WIDENED for each in drawn)
    assert all(int(100 / WIDENED) <= each.memory <= 900 * WIDENED for each in drawn)
    for cost in COSTS.values():
        assert {each.admits(cost) for each in drawn} == {True, False}
    once, again = (draw(random.Random(3), COSTS, ("cpu",), 0, 1) for _ in range(2))
    assert once == again
    assert once.memory == TIMES_THE_NEED * 900


def _request(room: int, rates: float = 40.0, values: int = 20) -> dict[str, object]:
    workload = Workload(dict.fromkeys("ABC", rates), dict.fromkeys(SMALL.values, values), 2, 6, 4)
    return {
        "workload": workload.to_json(), "plan": "((A B) C)", "warm": [], "room": room,
        "limits": {"cpu": 1.0, "memory": 1, "disk": 0}, "speed": 20.0, "seed": 1, "core": 0,
    }  # fmt: skip


def test_a_process_tells_every_second_and_that_it_is_over_its_limit() -> None:
    ended = run_limited(_request(1 << 30), share=0.9)
    assert [row["second"] for row in ended.rows] == [1, 2, 3, 4, 5, 6]
    assert ended.code == 0
    assert ended.end["over"] == ended.end["done"] > 0
    assert ended.end["untold"] == 0
    assert ended.end["plan"] == "((A B) C)"


def test_a_process_without_room_ends() -> None:
    request = _request(1 << 20, rates=20_000.0, values=40_000)
    ended = run_limited({**request, "speed": 0.5}, share=0.9)
    assert ended.end["ended"] == "memory"
    assert ended.end["done"] < 24


def test_a_contest_of_all_plans() -> None:
    entries = contest(SMALL, (), random.Random(1), 0, 1, 1, UnitCosts())
    assert [entry.name for entry in entries] == ["mjoin", "bjtree", "auto"]
    assert all(entry.is_qualified for entry in entries)
    rows = over_time(entries, set="1")
    assert {row["plan"] for row in rows} == {"mjoin", "bjtree", "auto"}
    assert all(row["set"] == "1" for row in rows)
    entry = entries[0]
    entry.ended.end["over"] = 1
    assert not entry.keeps
    silent = Entry("mjoin", 1.0, 1.0, True, type(entry.ended)(code=-9), entry.bounds, 1.0)
    assert not silent.keeps
    assert silent.summary()["ended"] == "code -9"


@pytest.mark.parametrize("streams", [3, 5])
def test_graphs_are_multiplied_and_keep_their_partners(streams: int) -> None:
    graph = random_graph(random.Random(streams), streams, 30.0)
    workload = workload_of(graph)
    assert sum(workload.rates.values()) <= MOST_ROWS + streams
    pair, share = next(iter(graph.shares.items()))
    name = pair[1]
    partners = graph.rates[name] * graph.window * share
    assert workload.rates[name] * workload.window / workload.values[pair] == pytest.approx(
        partners, rel=0.05
    )
    assert Workload.from_json(workload.to_json()) == workload
