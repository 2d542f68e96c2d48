"""The benchmark: its workloads, its measurements, and that it notices a wrong answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.cli import main as cli
from penstock.cli.bench import engine_bench
from penstock.cli.bench.duckdb_run import FORMS, INPUTS, births, run_duckdb
from penstock.cli.bench.engine_bench import Configuration, EngineBench, Settings
from penstock.cli.bench.engine_run import run_engine
from penstock.cli.bench.feedback_gain import feedback_gains
from penstock.cli.bench.measure import carry_out
from penstock.cli.bench.overload_bench import SHARES, kept_at_the_door, overload_bench
from penstock.cli.bench.overload_bench import WORKLOADS as OVERLOADS
from penstock.cli.bench.workloads import WORKLOADS, Workload

SMALL = {
    "W1": replace(WORKLOADS["W1"], rows=3_000, window=1_000, domains={"x": 400, "y": 900}),
    "W2u": replace(
        WORKLOADS["W2u"],
        rows=1_500,
        window=400,
        domains={"ab": 20, "cd": 20, "ac": 9, "ad": 9, "bc": 9, "bd": 9},
        together_every=50,
    ),
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("plan", ["tree", "mjoin"])
@pytest.mark.parametrize("batch", [1, 7, 500, 100_000])
def test_the_engine_has_as_many_results_as_duckdb(name: str, plan: str, batch: int) -> None:
    workload = SMALL[name]
    measured = run_engine(workload, workload.plans[plan], batch)
    assert measured["tuples"] == workload.rows * len(workload.streams)
    assert measured["results"] == births(workload)[-1] > 0
    assert measured["until"] == workload.rows


@pytest.mark.parametrize("batch", [1, 10, 1_000])
def test_a_part_of_the_input_is_checked_as_well(batch: int) -> None:
    workload = SMALL["W1"]
    measured = run_engine(workload, workload.plans["mjoin"], batch, seconds=0.001)
    assert 0 < measured["tuples"] < workload.rows * 3
    assert workload.window < measured["until"] <= workload.rows
    assert measured["results"] == births(workload)[measured["until"]]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("source", INPUTS)
def test_all_forms_of_the_offline_join_agree(form: str, source: str) -> None:
    workload = SMALL["W2u"]
    assert run_duckdb(workload, form, source)["results"] == births(workload)[-1]


def test_w1_is_what_its_description_says() -> None:
    workload = replace(WORKLOADS["W1"], rows=300_000)
    measured = run_engine(workload, workload.plans["tree"], 100_000)
    # In 300,000 rows of a window of 100,000, an A reaches 5/3 windows of B on average.
    assert measured["intermediates_per_tuple"] == pytest.approx(
        5 / 3 * 100_000 / 40_000 / 3, rel=0.05
    )


@pytest.mark.parametrize(
    ("name", "single", "joint"), [("W2s", (0.99, 1), (0.85, 1)), ("W2j", (0.99, 1), (0, 0.1))]
)
def test_w2_is_what_its_description_says(
    name: str, single: tuple[float, float], joint: tuple[float, float]
) -> None:
    """In full windows, which share of the ab has a cd that agrees with a on ac, on ac and ad."""
    import duckdb

    workload = replace(WORKLOADS[name], rows=WORKLOADS[name].window)
    connection = duckdb.connect()
    for stream, batch in workload.tables().items():
        connection.register(stream, pa.Table.from_batches([batch]))
    connection.execute("CREATE TABLE L AS SELECT A.ac, A.ad FROM A, B WHERE A.ab = B.ab")
    connection.execute("CREATE TABLE R AS SELECT C.ac, D.ad FROM C, D WHERE C.cd = D.cd")
    for columns, (low, high) in ((["ac"], single), (["ac", "ad"], joint)):
        agree = " AND ".join(f"L.{column} = R.{column}" for column in columns)
        found = connection.execute(f"SELECT avg((EXISTS (FROM R WHERE {agree}))::INT) FROM L")
        row = found.fetchone()
        assert row is not None
        assert low <= row[0] <= high


def test_a_workload_survives_its_journey() -> None:
    for workload in WORKLOADS.values():
        assert Workload.from_json(json.loads(json.dumps(workload.to_json()))) == workload


def _bench(workload: Workload, batches: tuple[int, ...], rounds: int = 1) -> EngineBench:
    return EngineBench(
        Settings(
            workloads=(workload,),
            batches=batches,
            plans=("tree", "mjoin"),
            extra_plans=(),
            rounds=rounds,
            seconds=0.01,
        )
    )


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[dict[str, Any]], Any]], None]:
    """Measure in this process, which is quicker."""
    monkeypatch.setattr(engine_bench, "measure", carry_out)

    def change(measure: Callable[[dict[str, Any]], Any]) -> None:
        monkeypatch.setattr(engine_bench, "measure", measure)

    return change


@pytest.mark.usefixtures("here")
def test_the_report_has_a_line_for_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "measured.json"
    assert _bench(SMALL["W1"], (1, 10_000), rounds=2).run(str(file)) == 0
    said = capsys.readouterr()
    assert "100 %" in said.err
    assert "DuckDB" in said.out
    measured = json.loads(file.read_text())
    assert [(line["plan"], line["batch"]) for line in measured["engine"]] == [
        ("tree", 1),
        ("tree", 10_000),
        ("mjoin", 1),
        ("mjoin", 10_000),
    ]
    for line in measured["engine"]:
        assert len(line["rounds"]) == 2
        assert line["rate_to_duckdb"] > 0
        assert line["state_bytes"] > 0
        assert line["peak_bytes"] > line["state_bytes"]
    assert measured["libraries"]["duckdb"]


@pytest.mark.usefixtures("here")
def test_what_feedback_gives_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    workload = SMALL["W1"]
    bench = EngineBench(
        Settings((workload,), (10_000,), ("tree", "tree+jit", "mjoin"), (), rounds=2, seconds=0.01)
    )
    assert bench.run(None) == 0
    (line,) = [each for each in capsys.readouterr().out.splitlines() if "tree+jit against" in each]
    assert line.startswith("W1, batches of 10,000: tree+jit against tree: ")
    assert line.endswith("of the state")


def test_how_what_feedback_gives_is_worked_out() -> None:
    def measured(name: str, seconds: list[float], push: float, state: int) -> Configuration:
        rounds = [
            {"tuples": 100, "cpu_seconds": s, "push_p50_us": push, "state_bytes": state}
            for s in seconds
        ]
        return Configuration(SMALL["W1"], name, "((A B) C)", "off", 10, rounds)

    plain, jit = measured("tree", [4, 6, 9], 30, 50), measured("tree+jit", [2, 3, 3], 12, 20)
    assert list(feedback_gains([plain, jit])) == [
        "W1, batches of 10: tree+jit against tree: 2.00 times the speed (rounds: 2.00 to 3.00), "
        "median push 2.50; 0.40 of the state"
    ]
    assert list(feedback_gains([jit])) == []


@pytest.mark.usefixtures("here")
def test_a_table_for_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert _bench(SMALL["W1"], (1, 10_000)).run(None, as_markdown=True) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert len({line.count(" | ") for line in lines}) == 1
    assert "10,000: M tuples/s" in lines[0]


def test_a_wrong_answer_is_noticed(
    here: Callable[[Callable[[dict[str, Any]], Any]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    def loses_one(order: dict[str, Any]) -> dict[str, Any]:
        measured = carry_out(order)
        if order["kind"] == "engine":
            measured["results"] -= 1
        return measured

    here(loses_one)
    assert _bench(SMALL["W1"], (10_000,)).run(None) == 1
    assert "wrong answer: W1 tree" in capsys.readouterr().err


def test_as_a_command_with_processes_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "measured.json"
    command = "bench engine --workload W1 --rows 2000 --rounds 1 --batch 100 --plans mjoin --json"
    assert cli.main([*command.split(), str(file)]) == 0
    assert "W1" in capsys.readouterr().out
    assert json.loads(file.read_text())["engine"][0]["rounds"][0]["tuples"] > 0


def test_the_list_names_every_workload(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in WORKLOADS)


def test_quick_is_shorter() -> None:
    quick, full = Settings.of(quick=True), Settings.of()
    assert len(quick.batches) < len(full.batches)
    assert all(q.rows <= f.rows for q, f in zip(quick.workloads, full.workloads, strict=True))
    assert quick.rounds == 1


def test_shedding_beside_the_door() -> None:
    found = overload_bench(OVERLOADS["chain"], rows=60, pushes=3)
    assert list(found["shed"]) == list(SHARES)
    assert found["results"] > 100
    for seconds, results in (*found["shed"].values(), *found["door"].values()):
        assert seconds > 0
        assert 0 <= results <= 1
    line = {"door": {0.5: (0.5, 0.25)}}
    assert kept_at_the_door(line, 0.75) == pytest.approx(0.625)
