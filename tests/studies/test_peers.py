"""The comparison with peers: bounds, verdicts, what is kept, and that nothing is hidden."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock
from penstock.cli import main as cli
from penstock.spark.start import process_tree
from penstock_studies.peers import environment, peer, peers_bench
from penstock_studies.peers.bounded_run import (
    DONE,
    FAILED,
    TOO_LARGE,
    TOO_LONG,
    Bounds,
    Outcome,
    run_bounded,
)
from penstock_studies.peers.cases import CASES, Case
from penstock_studies.peers.input_files import write_files
from penstock_studies.peers.peer import PEERS, Peer
from penstock_studies.peers.peers_bench import Line, PeersBench, Settings
from penstock_studies.peers.plot import plot
from penstock_studies.peers.result_store import ResultStore, key_of
from penstock_studies.peers.table import table

pytestmark = pytest.mark.skipif(not process_tree.is_known(), reason="there is no /proc")

SCRIPTS = Path(peer.__file__).parent / "scripts"
AMPLE = Bounds(seconds=60, memory=4_000_000_000)
ANSWER = {"results": 7, "sums": {"A": 70, "B": 7}}
FAKES = {
    "good": f"return {ANSWER}",
    "failing": "raise ValueError('no such\\n  table')",
    "dying": "print('the last words', file=sys.stderr); sys.stderr.flush(); os._exit(3)",
    "noisy": f"print('nothing'); os.write(1, b'no answer'); return {ANSWER}",
    "wrong-count": "return {'results': 6, 'sums': {'A': 70, 'B': 7}}",
    "wrong-sums": "return {'results': 7, 'sums': {'A': 71, 'B': 7}}",
    "large": f"held = b'x' * 400_000_000; time.sleep(600); return {ANSWER}",
}


@pytest.fixture
def fake(tmp_path: Path) -> Callable[[str], Peer]:
    """A peer whose join is one of ``FAKES``; each join leaves a line in ``joins``."""

    def make(name: str) -> Peer:
        script = tmp_path / f"run_{name}.py"
        script.write_text(
            textwrap.dedent(f"""
                import os, subprocess, sys, time
                sys.path.insert(0, {str(SCRIPTS)!r})
                from hand_over import serve

                def join(order):
                    with open({str(tmp_path / "joins")!r}, "a") as joins:
                        joins.write("{name}\\n")
                    {FAKES[name]}

                serve(join)
            """)
        )
        return Peer(name, name.title(), script, ("written",), None)

    return make


def joins(folder: Path) -> int:
    file = folder / "joins"
    return len(file.read_text().splitlines()) if file.exists() else 0


def run_fake(fake: Peer, folder: Path, bounds: Bounds = AMPLE) -> Outcome:
    orders = {"rehearsal": {"work": "rehearsal"}, "job": {"work": "job"}}
    command = [sys.executable, str(fake.script)]
    return run_bounded(command, orders, bounds, dict(os.environ), folder / "log")


def tiny(name: str = "pair") -> Case:
    return CASES[name].rehearsal()


def settings(folder: Path, *peers: Peer, bounds: Bounds = AMPLE, rounds: int = 1) -> Settings:
    return Settings((tiny(),), peers, rounds, 1, bounds, folder / "cache")


def test_a_run_is_measured_from_outside(fake: Callable[[str], Peer], tmp_path: Path) -> None:
    outcome = run_fake(fake("good"), tmp_path)
    assert (outcome.status, outcome.reason, outcome.told) == (DONE, "", ANSWER)
    assert outcome.start_cpu > 0
    assert outcome.cpu >= 0
    assert outcome.wall > 0
    assert outcome.peak_bytes > 5_000_000
    assert joins(tmp_path) == 2  # The rehearsal and the join.


def test_what_a_peer_prints_is_not_its_answer(fake: Callable[[str], Peer], tmp_path: Path) -> None:
    assert run_fake(fake("noisy"), tmp_path).told == ANSWER
    assert "no answer" in (tmp_path / "log").read_text()


def test_a_failure_has_its_reason(fake: Callable[[str], Peer], tmp_path: Path) -> None:
    outcome = run_fake(fake("failing"), tmp_path)
    assert (outcome.status, outcome.reason) == (FAILED, "ValueError: no such table")


def test_a_death_has_its_last_words(fake: Callable[[str], Peer], tmp_path: Path) -> None:
    outcome = run_fake(fake("dying"), tmp_path)
    assert (outcome.status, outcome.reason) == (FAILED, "the last words")


def test_an_interpreter_that_cannot_start_is_a_failure(tmp_path: Path) -> None:
    nothing = Peer("none", "None", tmp_path / "missing.py", ("written",), None)
    outcome = run_fake(nothing, tmp_path)
    assert outcome.status == FAILED
    assert "missing.py" in outcome.reason


def test_a_run_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    script = tmp_path / "run_hanging.py"
    script.write_text(
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(tmp_path / 'child')!r}, 'w').write(str(child.pid))\n"
        "time.sleep(600)\n"
    )
    hanging = Peer("hanging", "Hanging", script, ("written",), None)
    outcome = run_fake(hanging, tmp_path, Bounds(seconds=4, memory=AMPLE.memory))
    assert (outcome.status, outcome.reason) == (TOO_LONG, "more than 4 s")
    child = int((tmp_path / "child").read_text())
    assert _ends(child)


def test_orphans_of_a_script_are_ended(tmp_path: Path) -> None:
    script = tmp_path / "run_orphan.py"
    script.write_text(
        "import os, subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(tmp_path / 'child')!r}, 'w').write(str(child.pid))\n"
        "time.sleep(1.5)\n"
        "os._exit(1)\n"
    )
    orphan = Peer("orphan", "Orphan", script, ("written",), None)
    assert run_fake(orphan, tmp_path, Bounds(seconds=20, memory=AMPLE.memory)).status != DONE
    assert _ends(int((tmp_path / "child").read_text()))


def _ends(pid: int) -> bool:
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_a_run_that_takes_too_much_memory_is_ended(
    fake: Callable[[str], Peer], tmp_path: Path
) -> None:
    outcome = run_fake(fake("large"), tmp_path, Bounds(seconds=60, memory=200_000_000))
    assert (outcome.status, outcome.reason) == (TOO_LARGE, "more than 0.2 GB of memory")
    assert outcome.peak_bytes > 200_000_000


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("good", ""),
        ("wrong-count", "6 results instead of 7"),
        ("wrong-sums", "other results, though as many (7)"),
    ],
)
def test_answers_are_compared_with_the_reference(
    fake: Callable[[str], Peer], tmp_path: Path, name: str, verdict: str
) -> None:
    good, other = fake("good"), replace(fake(name), name="other")
    lines = PeersBench(settings(tmp_path, good, other), reference=good).run()
    assert [line.wrong for line in lines] == ["", verdict]
    assert all(line.checked for line in lines)
    assert ("≠" in table(lines)) == bool(verdict)


def test_the_reference_answers_even_if_it_is_not_measured(
    fake: Callable[[str], Peer], tmp_path: Path
) -> None:
    lines = PeersBench(settings(tmp_path, fake("wrong-count")), reference=fake("good")).run()
    assert [line.wrong for line in lines] == ["6 results instead of 7"]


def test_without_a_reference_nothing_is_called_right(
    fake: Callable[[str], Peer], tmp_path: Path
) -> None:
    lines = PeersBench(settings(tmp_path, fake("good")), reference=fake("failing")).run()
    assert not lines[0].checked
    assert "| 7 ? |" in table(lines)


def test_what_fails_is_in_the_table_and_the_others_go_on(
    fake: Callable[[str], Peer], tmp_path: Path
) -> None:
    good = fake("good")
    lines = PeersBench(settings(tmp_path, fake("failing"), good), reference=good).run()
    text = table(lines)
    assert "ValueError: no such table" in text
    assert "| 7 |" in text


def test_what_was_measured_is_kept(
    fake: Callable[[str], Peer], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = fake("good")
    first = PeersBench(settings(tmp_path, good), reference=good).run()
    assert joins(tmp_path) == 2
    again = PeersBench(settings(tmp_path, good), reference=good).run()
    assert joins(tmp_path) == 2
    assert "(kept)" in capsys.readouterr().err
    assert [line.rounds for line in again] == [line.rounds for line in first]
    fresh = replace(settings(tmp_path, good), fresh=True)
    PeersBench(fresh, reference=good).run()
    assert joins(tmp_path) == 4
    PeersBench(settings(tmp_path, good, rounds=2), reference=good).run()
    assert joins(tmp_path) == 6  # The second round is new.


def test_a_failure_is_tried_again(fake: Callable[[str], Peer], tmp_path: Path) -> None:
    failing = fake("failing")
    for runs in (1, 2):
        PeersBench(settings(tmp_path, failing), reference=fake("good")).run()
        assert (tmp_path / "joins").read_text().count("failing") == runs


def test_what_a_bound_stopped_counts_under_that_bound_only(tmp_path: Path) -> None:
    stopped = Outcome(status=TOO_LONG, reason="more than 60 s")
    ResultStore(tmp_path, AMPLE).keep("key", stopped)
    assert ResultStore(tmp_path, AMPLE).find("key") == stopped
    assert ResultStore(tmp_path, replace(AMPLE, seconds=120)).find("key") is None


def test_a_torn_file_is_not_a_result(tmp_path: Path) -> None:
    (tmp_path / "key.json").write_text('{"outcome": {"status"')
    assert ResultStore(tmp_path, AMPLE).find("key") is None


def test_a_result_belongs_to_its_size_version_and_script(
    fake: Callable[[str], Peer], tmp_path: Path
) -> None:
    good, case = fake("good"), tiny()
    pins = tmp_path / "pins.txt"
    pins.write_text("good==1.0")
    pinned = replace(good, requirements=pins)
    keys = [key_of(case, good, "written", 1, 0), key_of(case, pinned, "written", 1, 0)]
    keys.append(key_of(case.smaller(2), good, "written", 1, 0))
    keys.append(key_of(case, good, "written", 2, 0))
    pins.write_text("good==1.1")
    keys.append(key_of(case, pinned, "written", 1, 0))
    good.script.write_text("other")
    keys.append(key_of(case, good, "written", 1, 0))
    assert len(set(keys)) == len(keys)


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that would make an environment; installing fails for ``absent``."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        if "venv" in command:
            Path(command[-1]).mkdir(parents=True)
        failed = "install" in command and "absent" in command[-1]
        errors = "Collecting absent\nERROR: No matching distribution found for absent\n"
        return subprocess.CompletedProcess(command, int(failed), "", errors if failed else "")

    monkeypatch.setattr("penstock_studies.peers.environment.subprocess.run", run)
    return commands


def test_a_peer_that_cannot_be_installed_is_reported_once(
    fake: Callable[[str], Peer], tmp_path: Path, pip: list[list[str]]
) -> None:
    pins = tmp_path / "absent.txt"
    pins.write_text("absent==1.0")
    absent = replace(fake("good"), name="absent", requirements=pins, variants=("written", "b"))
    lines = PeersBench(settings(tmp_path, absent), reference=fake("failing")).run()
    reason = "not installed: No matching distribution found for absent"
    assert [line.rounds[0].reason for line in lines] == [reason, reason]
    assert reason in table(lines)
    assert len(pip) == 2  # One environment, one try to install.


def test_an_environment_is_made_once(tmp_path: Path, pip: list[list[str]]) -> None:
    pins = tmp_path / "good.txt"
    pins.write_text("good==1.0")
    good = Peer("good", "Good", tmp_path / "x.py", ("written",), pins)
    python = environment.interpreter(good, tmp_path / "environments")
    assert environment.interpreter(good, tmp_path / "environments") == python
    assert [command[-1] for command in pip] == [str(python.parents[1]), str(pins)]
    (python.parents[1] / "installed").unlink()  # As if it had been interrupted.
    assert environment.interpreter(good, tmp_path / "environments") == python
    assert len(pip) == 4
    pins.write_text("good==1.1")
    assert environment.interpreter(good, tmp_path / "environments") != python


def test_penstock_runs_where_it_is(tmp_path: Path) -> None:
    assert environment.interpreter(PEERS["penstock"], tmp_path) == Path(sys.executable)


@pytest.mark.parametrize("each", PEERS.values(), ids=list(PEERS))
def test_every_peer_has_a_script_and_pins(each: Peer) -> None:
    assert each.script.is_file()
    compile(each.script.read_text(), str(each.script), "exec")
    if each.requirements is not None:
        for line in each.requirements.read_text().splitlines():
            assert re.fullmatch(r"[a-z0-9-]+==[0-9.]+", line)


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_cases_have_orders_and_plans_that_fit(case: Case) -> None:
    assert sorted(case.better) == sorted(case.written)
    for order in (case.written, case.better):
        for number, stream in enumerate(order[1:], start=1):  # No cross product on the way.
            linked = {frozenset(pair[:2]) for pair in case.workload.pairs}
            assert any(frozenset((stream, other)) in linked for other in order[:number])
    tables = case.rehearsal().workload.tables()
    schemas = {stream: batch.schema for stream, batch in tables.items()}
    query = penstock.parse(case.workload.query, schemas=schemas)
    assert penstock.Engine(query, plan=case.better_plan)


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_a_smaller_case_has_the_same_work_per_tuple(case: Case) -> None:
    work = [_matches(case.smaller(factor)) for factor in (20, 40)]
    assert work[1] == pytest.approx(work[0], rel=0.25)


def _matches(case: Case) -> float:
    """Matches of all joins, in the better plan, per tuple."""
    tables = case.workload.tables()
    schemas = {stream: batch.schema for stream, batch in tables.items()}
    query = penstock.parse(case.workload.query, schemas=schemas)
    engine = penstock.Engine(query, plan=case.better_plan, feedback="off")
    engine.push(tables)
    return float(sum(join["matches"] for join in engine.metrics()["joins"]) / case.tuples)


def test_orders_that_are_the_same_are_measured_once(tmp_path: Path) -> None:
    chosen = Settings.of(tmp_path, cases=["W1", "W2", "pair"], peers=["penstock", "flink"])
    variants: dict[tuple[str, str], list[str]] = {}
    for line in PeersBench(chosen).lines:
        variants.setdefault((line.case.name, line.peer.name), []).append(line.variant)
    assert variants == {
        ("W1", "penstock"): ["written", "better"],
        ("W1", "flink"): ["written", "better", "multi-join"],
        ("W2", "penstock"): ["written", "better"],  # The same order, another plan.
        ("W2", "flink"): ["written", "multi-join"],
        ("pair", "penstock"): ["written"],
        ("pair", "flink"): ["written", "multi-join"],
    }


def test_hot_values_are_as_hot_as_they_say() -> None:
    workload = CASES["skew"].smaller(5).workload
    x = workload.tables()["B"].column("x").to_numpy()
    assert np.mean(x < 0) == pytest.approx(0.02, rel=0.1)
    assert len(np.unique(x[x < 0])) == 10
    assert workload.tables()["B"].equals(workload.tables()["B"])


def test_files_have_the_same_rows_in_every_format(tmp_path: Path) -> None:
    workload = tiny().workload
    first = {}
    for form in ("csv", "csv-bare", "csv-tuple-id"):
        paths = write_files(workload, form, tmp_path / form)
        first[form] = Path(paths["A"]).read_text().splitlines()
    assert first["csv"][0] == "id,ts,x"
    assert first["csv-tuple-id"][0] == "tuple_id,ts,x"
    assert first["csv"][1:] == first["csv-tuple-id"][1:] == first["csv-bare"]
    assert len(first["csv-bare"]) == workload.rows


def test_penstock_and_duckdb_agree(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    here = replace(PEERS["duckdb"], requirements=None)
    own = replace(PEERS["penstock"], variants=("better",))
    chosen = replace(settings(tmp_path, here, own), cases=(tiny("skew"),))
    lines = PeersBench(chosen, reference=here).run()
    assert [line.wrong for line in lines] == ["", ""]
    assert all(line.ended is None and line.checked for line in lines)
    assert lines[0].told("results") > 0
    assert lines[1].told("state_bytes") > 0


def test_the_command_writes_table_numbers_and_plot(
    fake: Callable[[str], Peer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    good, wrong = fake("good"), fake("wrong-count")
    known = {"duckdb": replace(good, name="duckdb"), "other": replace(wrong, name="other")}
    monkeypatch.setattr(peer, "PEERS", known)
    monkeypatch.setattr(peers_bench.PeersBench.__init__, "__defaults__", (known["duckdb"],))
    where = ["--cache", str(tmp_path / "cache"), "--output", str(tmp_path / "out")]
    code = cli.main(["bench", "peers", "--cases", "pair", "--shrink", "100", *where])
    told = capsys.readouterr()
    assert code == 1
    assert "wrong answer: pair, Wrong-Count, written: 6 results instead of 7" in told.err
    assert told.out == (tmp_path / "out" / "peers.md").read_text()
    kept = json.loads((tmp_path / "out" / "peers.json").read_text())
    assert [line["peer"] for line in kept] == ["duckdb", "other"]
    assert (tmp_path / "out" / "peers.png").stat().st_size > 5_000


def test_a_plot_has_room_for_everything_that_can_happen(tmp_path: Path) -> None:
    done = Outcome(DONE, "", 1.0, 2.0, 3.0, 10, ANSWER)
    stopped = Outcome(TOO_LONG, "more than 60 s", 1.0, 50.0, 60.0, 10)
    failed = Outcome(FAILED, "no reason")
    lines = [
        Line(tiny(name), each, variant, [outcome])
        for name in ("pair", "W1")
        for each, outcome in zip(list(PEERS.values())[:3], (done, stopped, failed), strict=True)
        for variant in each.variants
    ]
    plot(lines, tmp_path / "plot.svg")
    assert "DuckDB" in (tmp_path / "plot.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--peers", "flnk"], "no peer 'flnk'; choose from: duckdb"),
        (["--cases", "W9"], "no case 'W9'; choose from: W1"),
        (["--rounds", "0"], "--rounds is 1 or more"),
        (["--seconds", "0"], "--seconds is more than 0"),
        (["--shrink", "0.5"], "--shrink is 1 or more"),
    ],
)
def test_mistakes_are_told(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", "peers", "--cache", str(tmp_path), *arguments]) == cli.USER_ERROR
    assert message in capsys.readouterr().err


def test_help_names_every_case_and_peer(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["bench", "peers", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    for name in (*CASES, *PEERS):
        assert name in shown
