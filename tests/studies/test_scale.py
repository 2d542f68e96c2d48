"""Scale: windows, streams and cells in tiny runs, and the arithmetic of the cluster."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.cells import place
from penstock.cells.placement import Placement
from penstock.errors import OptionError
from penstock_studies import cluster_study
from penstock_studies.figures import cluster as cluster_figure
from penstock_studies.figures import scale
from penstock_studies.figures.registry import EXPERIMENTS, find
from penstock_studies.lab.drawing import draw
from penstock_studies.lab.experiment import Row
from penstock_studies.scale.cache_sizes import cache_sizes
from penstock_studies.scale.cell_query import QUERIES, zipf
from penstock_studies.scale.cells_point import measure_cells, measure_engine
from penstock_studies.scale.cluster import (
    Cluster,
    Demand,
    Growth,
    capacity,
    cpu,
    network,
    rows_held,
)
from penstock_studies.scale.demand import demands_of, growth_of
from penstock_studies.scale.packing_cost import packing_cost
from penstock_studies.scale.power_law import exponent
from penstock_studies.scale.spread import Spread, spread
from penstock_studies.scale.steady_state import PARTS, steady_state
from penstock_studies.scale.streams_point import FORMS, ManyStreams, measure_streams
from penstock_studies.scale.window_point import JOINS, measure_window

BY_NAME = {each.name: each for each in EXPERIMENTS}


def test_a_group_of_experiments_has_a_name() -> None:
    assert [each.name for each in find("scale")] == [
        "scale-window", "scale-streams", "scale-cells", "scale-cluster",
    ]  # fmt: skip
    windows = {point.parameters["window"] for point in scale.window_points("quick")}
    assert {10_000, 10_000_000} <= windows
    streams = {point.parameters["streams"] for point in scale.stream_points("full")}
    assert {2, 20} <= streams
    for each in scale.CELLS.values():
        cells = set(each.split())
        assert {"1", "1000", str(Cluster().workers)} <= cells


def test_what_is_not_measured_does_not_cost() -> None:
    """A clock that moves by one at each look: every push takes one second."""
    looks = iter(range(10_000))
    join = JOINS["pair"]
    engine = penstock.Engine(join.query(100), plan=join.plan)
    made: list[int] = []

    def batches(start: int, count: int) -> dict[str, pa.RecordBatch]:
        made.append(count)
        return join.batches(100, 1)(start, count)

    found = steady_state(engine, batches, 100, 10, 3, lambda: float(next(looks)))
    assert found.nanoseconds == pytest.approx(1e9 / 20)
    assert found.held == 2 * 101  # Both ends of a window are in it.
    filling = len(made) - (1 + PARTS) * 3
    assert sum(made[:filling]) >= 110
    assert set(made[filling:]) == {10}


def test_partners_do_not_depend_on_the_window(tmp_path: Path) -> None:
    rows: list[Row] = []
    for join in JOINS:
        for window in (500, 4_000):
            rows += measure_window(
                {"join": join, "window": window, "batch": 300, "tuples": 30_000}, 1
            )
    for join, expected in {"pair": 1.0, "three": 0.125}.items():
        found = [row["results_per_tuple"] for row in rows if row["join"] == join]
        assert found == pytest.approx([expected, expected], rel=0.15)
    draw(BY_NAME["scale-window"].chart(rows), tmp_path / "windows.svg")
    assert "pair: " in BY_NAME["scale-window"].judge(rows).measured


def _window(join: str, window: int, ns: float, size: float = 60.0) -> Row:
    return {"join": join, "window": window, "ns": ns, "bytes_per_row": size, "bytes": 1}


def test_verdicts_on_windows_go_both_ways() -> None:
    def judged(last: float, size: float) -> str:
        return scale.window_verdict(
            [
                row
                for join in JOINS
                for row in (_window(join, 10_000, 100.0), _window(join, 10**7, last, size))
            ]
        ).standing

    assert judged(200, 80) == "holds"
    assert judged(900, 80) == "holds in part"
    assert judged(900, 600) == "does not hold"
    assert scale.window_verdict([_window("pair", 10, 1.0)]).standing == "not measured"


@pytest.mark.parametrize("shape", ["chain", "star"])
def test_each_tuple_is_in_one_result_however_many_streams(shape: str) -> None:
    rows = measure_streams(
        {"shape": shape, "streams": 5, "window": 200, "batch": 100, "tuples": 4_000}, 1
    )
    assert {row["form"] for row in rows} == {"planned", "planned, feedback", "mjoin"}
    for row in rows:
        # A window holds one tuple more than there are values: both ends are in it.
        assert row["results_per_tuple"] == pytest.approx(1.0, abs=0.05)
    many = ManyStreams("star", 4, 10)
    assert many.predicates == [("S1", "S2", "k1"), ("S1", "S3", "k2"), ("S1", "S4", "k3")]


def test_verdicts_on_streams_go_both_ways(tmp_path: Path) -> None:
    def rows(last: float) -> list[Row]:
        return [
            {"shape": shape, "form": form, "streams": n, "ns": ns, "bytes_per_row": 90.0}
            for shape in ("chain", "star")
            for form in FORMS
            for n, ns in ((2, 10.0), (20, last))
        ]

    assert scale.stream_verdict(rows(100)).standing == "holds"
    assert scale.stream_verdict(rows(400)).standing == "holds in part"
    assert scale.stream_verdict(rows(4_000)).standing == "does not hold"
    draw(scale.stream_chart(rows(100)), tmp_path / "streams.svg")


@pytest.mark.parametrize("name", [each.name for each in QUERIES.values() if each.hot is None])
def test_copies_are_those_of_the_placement(name: str) -> None:
    chosen = QUERIES[name]
    query = chosen.query(1_000)
    tables = chosen.batch(0, 500, 5_000, 1)
    for cells in (1, 2, 7, 30):
        placement = place(query, cells)
        found = spread(query, placement, tables)
        for source in tables:
            assert found.copies_of(source) == placement.replicas[source]
        assert found.loads(cells).sum() == found.copies * sum(found.rows.values())


def test_copies_grow_as_the_packing_says() -> None:
    """Fewer than p^(1 - 1/τ) on any grid, and that power of it in the long run."""
    for chosen in QUERIES.values():
        query = chosen.query(1_000)
        counts = (64, 512, 4_096)
        placed = [place(query, cells) for cells in counts]
        copies = [sum(each.replicas.values()) / len(each.replicas) for each in placed]
        assert exponent(counts, copies) == pytest.approx(1 - 1 / chosen.packing, abs=0.05)


def test_skew_is_of_workers() -> None:
    found = Spread({"A": 4, "B": 2}, {"A": np.array([4, 0, 0]), "B": np.array([0, 1, 1])})
    assert found.loads(3).tolist() == [4, 1, 1]
    assert found.skew(3) == pytest.approx(2.0)
    # Cells 0 and 2 are of one worker.
    assert found.loads(2).tolist() == [5, 1]
    assert found.copies == 1.0


def test_zipf_has_a_first_value_and_a_tail() -> None:
    drawn = zipf(np.random.default_rng(1), 1_000, 20_000)
    weights = np.arange(1, 1_001) ** -1.2
    expected = weights / weights.sum()
    counts = np.bincount(drawn, minlength=1_000) / 20_000
    assert counts[:3] == pytest.approx(expected[:3], rel=0.1)
    assert drawn.max() < 1_000


def test_a_hot_value_fills_a_worker_unless_it_has_cells_of_its_own(tmp_path: Path) -> None:
    rows: list[Row] = []
    for name in QUERIES:
        rows += measure_cells({"query": name, "cells": "1 8 64", "rows": 5_000, "batch": 500}, 1)
    last = {str(row["query"]): row for row in rows if row["cells"] == 64}
    assert last["zipf"]["skew"] > 5  # type: ignore[operator]
    assert last["hot"]["skew"] < 2  # type: ignore[operator]
    assert last["hot"]["placed"] > 64  # type: ignore[operator]
    # Told how hot, it needs no more cells than were asked for and next to no copies.
    assert last["sized"]["skew"] < 2  # type: ignore[operator]
    assert last["sized"]["placed"] <= 64  # type: ignore[operator]
    assert last["sized"]["copies"] < 1.2 < last["hot"]["copies"]  # type: ignore[operator]
    assert last["chain"]["copies"] == pytest.approx((1 + 2 * 8) / 3)
    for row in rows:
        assert row["copy_bytes"] >= 24  # type: ignore[operator]
    draw(BY_NAME["scale-cells"].chart(rows), tmp_path / "cells.svg")
    assert "hot" in BY_NAME["scale-cells"].judge(rows).measured


def test_verdicts_on_cells_go_both_ways() -> None:
    def judged(copies: float, skew: float) -> str:
        return scale.cell_verdict(
            [
                {"query": name, "cells": cells, "copies": copies, "skew": skew}
                for name in QUERIES
                for cells in (1, 1_000)
            ]
        ).standing

    assert judged(1.0, 1.1) == "holds"
    assert judged(1.0, 3.0) == "holds in part"
    assert judged(200.0, 3.0) == "does not hold"


def test_packing_is_paid_for_each_row_and_each_chunk() -> None:
    chosen = QUERIES["key"]
    query = chosen.query(1_000)
    tables = chosen.batch(0, 400, 4_000, 1)
    looks = iter(range(1_000))
    cost = packing_cost(query, place(query, 4), tables, lambda: float(next(looks)))
    # Three streams, each packed and unpacked in one tick of the clock.
    assert cost.pack_ns == pytest.approx(1e9 * 3 / 1_200)
    assert cost.unpack_ns == pytest.approx(1e9 * 3 / 1_200)
    assert cost.read_bytes == 24
    assert cost.copy_bytes > 24
    more = packing_cost(query, place(query, 40), tables)
    assert more.copy_bytes > cost.copy_bytes


def test_caches_are_read_where_they_are_told(tmp_path: Path) -> None:
    for number, (level, size) in enumerate([("1", "32K"), ("2", "512K"), ("3", "8M"), ("3", "")]):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        (folder / "level").write_text(f"{level}\n")
        (folder / "size").write_text(f"{size}\n")
    assert cache_sizes(tmp_path) == {"L2": 512 * 1024, "L3": 8 * 2**20}
    assert cache_sizes(tmp_path / "nowhere") == {}


SMALL = Cluster(
    machines=10, cores=2, gigabits=8.0, gibibytes=1.0, window=10.0, trigger=1.0, busy=0.5,
    memory_share=0.5, headroom=2.0, host_ns=1_000.0, byte_ns=2.0, batch_seconds=0.1,
)  # fmt: skip
ASKED = Demand(
    streams=2, copies=4.0, share=0.4, engine_ns=100.0, compare_ns=0.0, pack_ns=500.0,
    unpack_ns=50.0, read_bytes=30.0, copy_bytes=25.0, state_bytes=64.0, results=1.0,
)  # fmt: skip
STEADY = Growth((1.0,), (1.0,))


def test_the_arithmetic_of_the_cluster() -> None:
    # Copies 4 and skew 2 on 20 workers: the fullest gets 0.4 of the input.
    parts = cpu(SMALL, ASKED, STEADY, 1e6)
    assert parts == pytest.approx(
        {
            "batches": 0.1,
            "reading": 1e6 * 1e-6 / 20,
            "packing": 1e6 * 0.5e-6 / 20,
            "copies": 1e6 * 0.4 * (2 * 25 + 50) * 1e-9,
            "engine": 1e6 * 0.4 * 100e-9,
        }
    )
    found = capacity(SMALL, ASKED, STEADY)
    assert found.cpu == pytest.approx((0.5 - 0.1) / (0.075e-6 + 0.08e-6), rel=1e-6)
    into, out = network(SMALL, ASKED)
    assert into == pytest.approx(30 / 10 + 0.4 * 2 * 25 * 0.9)
    assert out == pytest.approx(4 * 25 / 10 * 0.9 + 0.4 * 2 * 25 + 16 / 10)
    assert found.network == pytest.approx(0.5 * 1e9 / out)
    assert found.memory == pytest.approx(0.5 * 2**30 / (0.4 * 10 * 2 * 64 * 2))
    assert found.tuples == found.memory
    assert found.binds == "memory"
    assert rows_held(SMALL, ASKED, 1_000.0) == pytest.approx(1_000 * 0.4 * 10 / 2)
    assert capacity(replace(SMALL, gibibytes=1e6), ASKED, STEADY).binds == "CPU"
    thin = replace(SMALL, gibibytes=1e6, gigabits=0.001)
    assert capacity(thin, ASKED, STEADY).binds == "network"
    assert capacity(replace(SMALL, batch_seconds=1.0), ASKED, STEADY).cpu == 0


def test_a_theta_join_is_quadratic() -> None:
    theta = replace(ASKED, compare_ns=5.0)
    bare = replace(SMALL, host_ns=0.0, byte_ns=0.0, batch_seconds=0.0)
    only = replace(theta, pack_ns=0.0, unpack_ns=0.0)
    rate = capacity(bare, only, STEADY).cpu
    assert 5e-9 * (0.4 * rate) * (rate * 0.4 * 10 / 2) == pytest.approx(0.5, rel=1e-6)
    twice = capacity(replace(bare, window=20.0), only, STEADY).cpu
    assert rate / twice == pytest.approx(math.sqrt(2), rel=1e-6)


def test_growth_is_read_between_what_was_measured() -> None:
    growth = Growth((1e4, 1e6), (1.0, 3.0))
    assert [growth.at(each) for each in (1.0, 1e4, 1e5, 1e6, 1e9)] == pytest.approx([1, 1, 2, 3, 3])
    rows = [
        _window("pair", 10_000, 50.0), _window("pair", 1_000_000, 100.0),
        _window("three", 10_000, 60.0), _window("three", 1_000_000, 66.0),
    ]  # fmt: skip
    # One at the window where engines were measured, of the join that grows most.
    found = growth_of(rows, 100_000)
    assert found.at(100_000) == pytest.approx(1.0)
    assert found.at(1e6) == pytest.approx(100 / 75)
    assert growth_of([], 5.0).at(1e9) == 1.0


def _measured(cells: str) -> list[Row]:
    rows: list[Row] = []
    for name in QUERIES:
        rows += measure_cells({"query": name, "cells": cells, "rows": 2_000, "batch": 200}, 1)
        window = 50 if QUERIES[name].is_theta else 500
        rows += measure_engine({"query": name, "window": window, "push": 100, "tuples": 1_000}, 1)
    return [*rows, _window("pair", 500, 80.0), _window("pair", 5_000, 120.0)]


def test_the_cluster_from_tiny_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = Cluster(machines=8, cores=2)
    monkeypatch.setattr(cluster_figure, "CLUSTER", few)
    rows = _measured("2 16")
    assert set(demands_of(rows, 16)) == set(QUERIES)
    assert demands_of(rows, 16)["theta"].compare_ns > 0
    assert [each.machines for each in cluster_figure.sizes(rows, few)] == [1, 8]
    table = {str(line["query"]): line for line in cluster_figure.cluster_table(rows)}
    assert set(table) == set(QUERIES)
    for line in table.values():
        assert line["tuples/s"] == min(
            line["by CPU"],
            line["by network"],
            line["by memory"],  # type: ignore[type-var]
        )
    # 16 workers at 1.6 µs for reading alone.
    assert 0 < table["key"]["by CPU"] < 16 * 0.7 / 1.6e-6  # type: ignore[operator]
    assert cluster_figure.cluster_verdict(rows).measured.startswith("extrapolated")
    draw(cluster_figure.cluster_chart(rows), tmp_path / "cluster.svg")


def _options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    cluster_study.add_arguments(parser)
    return parser.parse_args(arguments)


def test_a_cluster_of_your_own() -> None:
    assert cluster_study.cluster_of(_options()) == Cluster()
    own = cluster_study.cluster_of(_options("--machines", "3", "--memory-share", "0.4"))
    assert own == replace(Cluster(), machines=3, memory_share=0.4)
    with pytest.raises(OptionError, match="--machines must be more than 0"):
        cluster_study.cluster_of(_options("--machines", "0"))
    with pytest.raises(OptionError, match="--busy is at most 1"):
        cluster_study.cluster_of(_options("--busy", "70"))
    usual = cluster_study.experiment(Cluster()).points("quick")
    assert usual == cluster_figure.cluster_points("quick")
    points = cluster_study.experiment(own).points("quick")
    assert [p.parameters["cells"] for p in points if "cells" in p.parameters] == ["24"] * len(
        QUERIES
    )
    assert len(points) == len(usual)


def test_placement_of_one_cell_has_no_skew() -> None:
    chosen = QUERIES["star"]
    query = chosen.query(1_000)
    found = spread(query, Placement((), {}), chosen.batch(0, 10, 10, 1))
    assert found.skew(1) == 1.0
    assert found.copies == 1.0
