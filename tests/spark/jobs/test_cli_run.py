"""`penstock run`, `explain` and `demo`: what is shown, exit codes, Ctrl-C and going on after it."""

from __future__ import annotations

import argparse
import io
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from urllib.request import urlopen

import pyarrow as pa
import pytest
from job_case import QUERY, SCHEMA, JobCase, some_rows, write_rows
from pyspark.sql import SparkSession
from rich.console import Console

import penstock
from penstock.cli import main as cli
from penstock.cli.explain import explained
from penstock.cli.live_page import opened_page
from penstock.cli.run.run_job import FAILED, USER_ERROR, run_job
from penstock.errors import CheckpointError
from penstock.spark.jobs.prepared_job import prepare
from penstock.telemetry import Batch, Restart, Stop
from penstock.ui.model import Seen

pytestmark = pytest.mark.xdist_group("spark")

KINDS = dict.fromkeys("ABC", "parquet")
WITH_PAGE = argparse.Namespace(ui=True, ui_host="127.0.0.1", ui_port=0, ui_stay=0.1)


def delivered(case: JobCase, seed: int = 1) -> JobCase:
    for number, name in enumerate(KINDS):
        case.deliver(name, "parquet", seed + number)
    return case


@pytest.mark.parametrize(("lane", "live"), [("dataframes", False), ("source", True)])
def test_a_run_shows_what_it_did(
    lane: str, live: bool, shared: SparkSession, tmp_path: Path
) -> None:
    top = f'lane = "{lane}"\ntrigger = "available-now"\ncells = 2'
    case = delivered(JobCase(tmp_path, shared).write(KINDS, top))
    written = io.StringIO()
    console = Console(file=written, force_terminal=live, width=100, height=60)
    with opened_page(WITH_PAGE, console) as page:
        assert page is not None
        assert run_job(case.job(), console=console, page=page) == 0
        with urlopen(f"http://127.0.0.1:{page.server.port}/metrics") as answer:
            numbers = dict(line.rpartition(" ")[::2] for line in answer.read().decode().split("\n"))
    shown = written.getvalue()
    for text in ("job", "120", "behind the watermark", "events"):
        assert text in shown
    assert ("\x1b" in shown) == live
    if live:
        assert "sources" in shown
        assert "summary" in shown
    else:
        assert "job: started, in 2 cells" in shown
        assert "batch     0:       120 rows in " in shown
        assert "; state " in shown
        assert f"events      {case.job().event_log}" in shown
    (batch,) = [event for event in case.log() if isinstance(event, Batch)]
    for name, value in {
        'penstock_status{status="stopped"}': 1,
        "penstock_batches_total": 1,
        "penstock_results_total": case.expected().total(),
        "penstock_state_bytes": batch.state_bytes,
        **{f'penstock_rows_total{{source="{source}"}}': 40 for source in KINDS},
    }.items():
        assert float(numbers[name]) == value, name


@pytest.mark.parametrize(("lane", "code"), [("source", USER_ERROR), ("dataframes", FAILED)])
def test_a_failure_and_a_mistake_have_codes_of_their_own(
    lane: str, code: int, shared: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that is none is told with what to do about it where Penstock reads it: put right, the
    job goes on. Where Spark does, it has failed, and its log may say more."""
    top = f'lane = "{lane}"\ntrigger = "available-now"'
    case = JobCase(tmp_path, shared).write(KINDS, top)
    (tmp_path / "A" / "9.parquet").write_bytes(b"this is no parquet file")
    os.utime(tmp_path / "A" / "9.parquet", (1_700_000_000,) * 2)  # Nobody is writing it.
    console = Console(file=io.StringIO())
    with opened_page(WITH_PAGE, console) as page:
        assert page is not None
        assert run_job(case.job(), console=console, page=page) == code
        message, _ = page.server.hub.told(Seen())  # The page is still there, with the reason.
        assert message["status"] == "failed"
        assert message["failure"]["reason"]
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("penstock: ")
    assert ("Spark's log: " in said) == (code == FAILED)
    assert "9.parquet" in said


def test_a_checkpoint_of_another_query_is_a_mistake(shared: SparkSession, tmp_path: Path) -> None:
    top = 'lane = "dataframes"\ntrigger = "available-now"'
    case = delivered(JobCase(tmp_path, shared).write(KINDS, top))
    case.run()
    delivered(case, seed=4)
    state = case.folder / "state" / "checkpoint" / "penstock.json"
    state.unlink()  # Now only the state can tell.
    longer = QUERY.replace("20 SECONDS", "30 SECONDS")
    case.write(KINDS, top='cells = 1\ntrigger = "available-now"', query=longer)
    with pytest.raises(CheckpointError, match="the window of A was shorter before; name another"):
        run_job(case.job(), console=Console(file=io.StringIO()))


CHANGED = {
    "another predicate": QUERY.replace("B.x = C.x", "B.x = C.x AND A.id < C.id"),
    "longer windows": QUERY.replace("20 SECONDS", "30 SECONDS"),
}


@pytest.mark.parametrize(
    ("lane", "change"),
    [*(("source", change) for change in CHANGED), ("dataframes", "another predicate")],
)
def test_a_changed_query_goes_on_and_says_what_it_kept(
    lane: str, change: str, shared: SparkSession, tmp_path: Path
) -> None:
    """Where the source is the state, nothing is kept, and windows may be longer, too."""
    top = f'cells = 2\ntrigger = "available-now"\nlane = "{lane}"'
    case = delivered(JobCase(tmp_path, shared).write(KINDS, top))
    case.run()
    delivered(case, seed=4)
    case.write(KINDS, top, query=CHANGED[change])
    written = io.StringIO()
    assert run_job(case.job(), console=Console(file=written, width=2_000)) == 0
    for text in ("are kept and laid out anew: 2 cells: SELECT A.id AS a", " rows of A, "):
        assert (text in written.getvalue()) == (lane == "dataframes")
    schemas = dict.fromkeys("ABC", SCHEMA)
    graphs = [penstock.parse(text, schemas) for text in (QUERY, CHANGED[change])]
    engines = [penstock.Engine(graph, lateness="5 MINUTES") for graph in graphs]
    answers: list[pa.Table] = []
    for push in range(2):
        rows = {name: tables[push] for name, tables in case.written.items()}
        answers.append([engine.push(rows) for engine in engines][push])
    rows_of = [tuple(row.values()) for answer in answers for row in answer.to_pylist()]
    assert case.results() == Counter(rows_of)
    assert not [*Path(case.job().checkpoint).glob("penstock.seed-*")]


def test_explain(spark: SparkSession, tmp_path: Path) -> None:
    case = JobCase(tmp_path, spark).write(KINDS, top='plan = "((A B) C)"\ncells = 2')
    lines = explained(prepare(case.job(), spark))
    assert lines[0] == "job job"
    assert "  A  [RANGE 20 SECONDS]  parquet  event time ts, watermark 300 s" in lines
    assert "  A.x = B.x  A – B" in lines
    assert "  a  int64" in lines
    assert "  2 cells, by A.x = B.x = C.x: each row goes to one of them" in lines
    assert lines[1].startswith("lane source: Penstock reads the sources itself, since")
    assert lines[-2:] == [
        "    each cell reads all of A, B, C: 2 times what there is",
        "    together the cells read 2 times what there is of all streams",
    ]
    (tmp_path / "A" / "x=k").mkdir()
    write_rows(some_rows(1), tmp_path / "A" / "x=k" / "1.parquet", "parquet")
    lines = explained(prepare(case.job(), spark))
    assert lines[-3:-1] == [
        "    each cell reads its own files of A, by folders of x",
        "    each cell reads all of B, C: 2 times what there is",
    ]
    assert lines[-1].startswith("    together the cells read 1.")


def test_ctrl_c_ends_a_run_that_can_go_on(spark: SparkSession, tmp_path: Path) -> None:
    """An endless job in a process of its own; then the rest, here."""
    case = delivered(JobCase(tmp_path, spark).write(KINDS, top='trigger = "100 MILLISECONDS"'))
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock.cli.main", "run", str(case.file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PENSTOCK_MASTER": "local[2,4]"},
    )
    assert process.stdout is not None
    shown = ""
    for line in process.stdout:
        shown += line
        if line.startswith("batch"):
            process.send_signal(signal.SIGINT)
            break
    rest, errors = process.communicate(timeout=1_800)
    shown += rest
    assert process.returncode == cli.INTERRUPTED, errors
    assert errors == ""
    assert "stopping after the running micro-batch" in shown
    assert f"the same command goes on from here: penstock run {case.file}" in shown
    assert case.results() == case.expected()

    delivered(case, seed=4).write(KINDS)
    events = case.run()
    assert isinstance(events[0], Restart)
    assert case.results() == case.expected()
    assert [e.batch for e in case.log() if isinstance(e, Batch)] == [0, 1]
    ends = [event.reason for event in case.log() if isinstance(event, Stop)]
    assert ends == ["interrupted", "finished"]


def test_the_demo_ends_by_itself() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "penstock.cli.main", "demo", "--rows", "60000"],
        capture_output=True,
        text=True,
        timeout=1_800,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for label in ("input", "results", "late", "batches", "state", "a result"):
        assert f"\n{label} " in done.stdout, done.stdout
    assert "\x1b" not in done.stdout
