"""What only Spark can find wrong with a job: one line with the key, before anything runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from job_case import QUERY, JobCase
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

import penstock
from penstock.errors import CheckpointError, InputError, PenstockError, QueryError
from penstock.job.job import LANES
from penstock.spark.data_source.job_options import job_options
from penstock.spark.data_source.options import lane_of
from penstock.spark.jobs import job_session
from penstock.spark.jobs.job_run import JobRun
from penstock.spark.jobs.prepared_job import engine_options, prepare
from penstock.spark.jobs.spark_mistake import one_line, own_error
from penstock.spark.start.tuning import TRICKS, Trick
from penstock.spark.state.checkpoint_files import CheckpointFiles
from penstock.spark.state.checkpoint_owner import CheckpointOwner

pytestmark = pytest.mark.xdist_group("spark")

KINDS = dict.fromkeys("ABC", "parquet")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('schema = "id BIGINT', 'schema = "id BIGNT', "sources.A: schema: "),
        ('schema = "id BIGINT, ts TIMESTAMP, x STRING"', "", "sources.A: schema: found nothing, "),
        ('format = "parquet"', 'format = "my.own.Format"', "sources.A: format: found \"my.own.For"),
        ("[sources.B]", 'select = ["idd"]\n[sources.B]', "sources.A: select: "),
        ("[sources.B]", 'event_time = "tz"\n[sources.B]', "query: event_time says 'tz' for A, "),
        ("[sources.B]", 'event_time_format = "iso"\n[sources.B]', "sources.A.event_time_format: "),
        ("WHERE A.x", "WHERE A.xx", "query: A has no column xx; it has id, ts, x"),
        ("query =", 'plan = "((A B)"\nquery =', ""),
        ("query =", 'plan = "(A B)"\nquery =', ""),
        ("query =", 'feedback = "jitt"\nquery =', "feedback='jitt' does not exist"),
        ("query =", 'overload = "panic"\nquery =', 'overload: found "panic", expected one'),
        ("[sink]", '[sources.D]\nformat = "rate"\n[sink]', "sources.D: the query does not read "),
        ("[sink]", '[sources.D]\nformat = "parquet"\npath = "A"\n[sink]', "sources.D: the query "),
        ('[sink]\nformat = "parquet"', '[sink]\nformat = "rate"', 'sink: format: found "rate", wh'),
        ('[sink]\nformat = "parquet"', '[sink]\nformat = "jdbc"', "sink: options: found no url, e"),
        ("[sink]", '[sink]\npartition_by = ["y"]', 'sink: partition_by: found "y", expected one '),
        ("[sink]", '[sink]\nencode = "json"\nkey = "y"', 'sink: key: found "y", expected one of '),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else None,
)  # fmt: skip
def test_a_mistake_names_the_file_and_the_key(
    spark: SparkSession, tmp_path: Path, old: str, new: str, message: str
) -> None:
    case = JobCase(tmp_path, spark).write(KINDS)
    text = case.file.read_text()
    assert old in text
    case.file.write_text(text.replace(old, new, 1))
    with pytest.raises(PenstockError) as refused, JobRun(prepare(case.job(), spark)) as run:
        run.start()
    told = str(refused.value)
    assert told.startswith(f"{case.file}: {message}"), told
    if not isinstance(refused.value, QueryError):
        assert "\n" not in told or "plan" in new


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('sink]\nformat = "', 'sink]\nformat = "my.own.', 'format: found "my.own.parquet", which '),
        (
            'sink]\nformat = "parquet',
            'sink]\nformat = "rate',
            'format: found "rate", which Spark re',
        ),
        (
            'sink]\nformat = "parquet',
            'sink]\nformat = "jdbc',
            "options: found no url, expected one",
        ),
        ("[sink]", '[sink]\npartition_by = ["y"]', 'partition_by: found "y", expected one '),
        ("[sink]", '[sink]\nencode = "json"\nkey = "y"', 'key: found "y", expected one of '),
    ],
    ids=["format", "read alone", "jdbc", "partition_by", "key"],
)
def test_explain_finds_what_is_wrong_with_the_sink(
    spark: SparkSession, tmp_path: Path, old: str, new: str, message: str
) -> None:
    case = JobCase(tmp_path, spark).write(KINDS)
    prepare(case.job(), spark).check()
    text = case.file.read_text()
    assert old in text
    case.file.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as refused:
        prepare(case.job(), spark).check()
    assert str(refused.value).startswith(f"{case.file}: sink: {message}")


def test_explain_finds_what_is_wrong_with_a_side_output(
    spark: SparkSession, tmp_path: Path
) -> None:
    case = JobCase(tmp_path, spark).write(KINDS)
    case.file.write_text(case.file.read_text() + '\n[late]\nformat = "my.own.Sink"\n')
    with pytest.raises(InputError, match=r'late: format: found "my\.own\.Sink", which Spark'):
        prepare(case.job(), spark).check()


def test_a_pin_is_checked_when_it_is_given(spark: SparkSession, tmp_path: Path) -> None:
    run = JobRun(prepare(JobCase(tmp_path, spark).write(KINDS).job(), spark))
    run.check_order({"command": "pin", "plan": "((A C) B)"})
    with pytest.raises(PenstockError, match="X"):
        run.check_order({"command": "pin", "plan": "((A X) B)"})


def test_an_unreadable_query_has_a_caret(spark: SparkSession, tmp_path: Path) -> None:
    case = JobCase(tmp_path, spark).write(KINDS, query=QUERY.replace("A.x = B.x", "A.x == = B.x"))
    with pytest.raises(QueryError) as refused:
        prepare(case.job(), spark)
    lines = str(refused.value).splitlines()
    assert lines[0].startswith(f"{case.file}: query: ")
    assert "^" in lines[2]


def test_the_checkpoint_of_another_query(spark: SparkSession, tmp_path: Path) -> None:
    case = JobCase(tmp_path, spark).write(KINDS, 'lane = "dataframes"')
    with JobRun(prepare(case.job(), spark)) as run:
        run.start()
    case.write(KINDS, 'lane = "dataframes"', query=QUERY.replace("20 SECONDS", "30 SECONDS"))
    with pytest.raises(CheckpointError) as refused:
        prepare(case.job(), spark)
    told = str(refused.value)
    assert told.startswith(f"{case.file}: checkpoint: found {tmp_path / 'state' / 'checkpoint'}")
    assert "which belongs to another query (SELECT A.id AS a" in told
    assert "\n" not in told


def test_auto_cells_are_those_of_the_first_run(spark: SparkSession, tmp_path: Path) -> None:
    case = JobCase(tmp_path, spark).write(KINDS, 'lane = "dataframes"')
    prepared = prepare(case.job(), spark)
    assert prepared.cells == 2
    CheckpointOwner.of(prepared.query, 3).write(CheckpointFiles(case.job().checkpoint))
    assert prepare(case.job(), spark).placement.cells == 3


def test_an_error_of_a_cell_comes_out_of_sparks() -> None:
    text = (
        "[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted\n"
        "Traceback (most recent call last):\n"
        '  File "cell.py", line 1, in push\n'
        "penstock.errors.CheckpointError: this folder belongs to another query\n"
        "\n\tat org.apache.spark.api.python.Runner.run(Runner.scala:1)\n"
    )
    found = own_error(RuntimeError(text))
    assert isinstance(found, CheckpointError)
    assert one_line(RuntimeError(text)) == "this folder belongs to another query"


def test_a_worker_without_penstock_is_told_in_one_line() -> None:
    text = "Job aborted\nTraceback\nModuleNotFoundError: No module named 'penstock.cells'\n\tat x"
    found = own_error(RuntimeError(text))
    assert isinstance(found, InputError)
    assert str(found).startswith("Spark's Python workers have no module penstock: install ")


def test_a_bug_in_a_cell_is_not_a_mistake_of_the_user() -> None:
    text = "Job aborted\npenstock.errors.InvariantBroken: value 3 is not there\n\tat x.y(z)"
    assert own_error(RuntimeError(text)) is None
    assert one_line(RuntimeError(text)) == "InvariantBroken: value 3 is not there"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[PATH_NOT_FOUND] Path does not exist: file:/x. SQLSTATE: 42K03", "Path does not exist: "
         "file:/x."),
        ("Job aborted\nCaused by: java.io.IOException: No space left\n\tat x", "IOException: No "
         "space left"),
        ("x\nValueError: 3 is odd\n\n\tat x.y(z)", "ValueError: 3 is odd"),
        ("Worker: Traceback (most recent call last):\n  File x\nEOFError\n\tat x", "EOFError"),
        ("Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent "
         "failure: Lost task 0.3 in stage 1.0 (TID 10) (localhost executor driver): "
         "java.io.IOException: Mkdirs failed to create file:/x (exists=false, cwd=file:/y)\n\tat x",
         "IOException: Mkdirs failed to create file:/x (exists=false, cwd=file:/y)"),
        ("Error while instantiating 'x':\n\nJVM stacktrace:\njava.lang.IllegalArgumentException: "
         "Error while instantiating 'x':\n\tat x\nCaused by: org.SparkException: [INVALID_CONF."
         "TYPE] The value 'x' is invalid. SQLSTATE: 22022\n\tat x", "SparkException: The value 'x' "
         "is invalid."),
        ("", "InputError"),
    ],
)  # fmt: skip
def test_one_line(text: str, line: str) -> None:
    assert one_line(InputError(text)) == line


def test_the_cause_is_told_where_the_text_lacks_it() -> None:
    errors = [
        InputError("[TASK_WRITE_FAILED] Task failed while writing to file:/x. SQLSTATE: 58030"),
        InputError("java.io.IOException: No space left on device"),
    ]
    errors[0]._cause = errors[1]  # type: ignore[attr-defined]
    told = "Task failed while writing to file:/x: IOException: No space left on device"
    assert one_line(errors[0]) == told


def test_a_wrong_setting_of_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = JobCase(tmp_path, spark).write(KINDS)
    told = IllegalArgumentException("The value 'x' in the config \"y\" is invalid.")
    wrong = MagicMock()
    wrong.conf.get.side_effect = told
    monkeypatch.setattr(job_session, "session_with", lambda *_, **__: wrong)
    with pytest.raises(InputError) as refused:
        job_session.job_session(case.job())
    assert str(refused.value) == f"{case.file}: spark: {told}"
    wrong.stop.assert_called_once_with()


@pytest.mark.parametrize("lane", LANES)
def test_a_session_has_what_its_lane_has_a_use_for(
    lane: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where Penstock reads the sources, there is no state store, and Java sends Python no rows."""
    case = JobCase(tmp_path, spark).write(KINDS, f'lane = "{lane}"\ntrigger = "available-now"')
    given: list[str] = []

    def started(tricks: Sequence[Trick], *_: object, **__: object) -> SparkSession:
        given.extend(each.name for each in tricks)
        return spark

    monkeypatch.setattr(job_session, "session_with", started)
    job_session.job_session(case.job())
    unused = {"changelog", "row-count", "arrow-rows", "arrow-bytes"}
    everything = {each.name for each in TRICKS}
    assert set(given) == (everything - unused if lane == "source" else everything)


def test_limits_and_policies_are_handed_to_the_engine(spark: SparkSession, tmp_path: Path) -> None:
    policy = "{ policy = 'shed', cpu = 0.4, allocator = 'grepp' }"
    top = f"feedback = 'jit'\noverload = {policy}"
    top += "\nlimits = { cpu = 0.5, memory = '1 GB', disk = 0 }"
    case = JobCase(tmp_path, spark).write(KINDS, top=f"{top}\nspill_folder = '.'")
    job = case.job()
    limits = penstock.Limits(cpu=0.5, memory=10**9, disk=0)
    overload = penstock.Overload("shed", cpu=0.4, allocator="grepp")
    expected = {"feedback": "jit", "overload": overload, "limits": limits}
    assert engine_options(job) == {**expected, "spill_folder": job.spill_folder}
    # In the other lane they are options of a data source: no disk at all is not any disk.
    options = job_options(job)
    assert penstock.Limits.from_json(json.loads(options["limits"])) == limits
    assert lane_of(options).settings.options["overload"] == overload
    assert options["spillFolder"] == job.spill_folder


def test_a_checkpoint_that_cannot_be_written(spark: SparkSession, tmp_path: Path) -> None:
    """As on a disk that is full: found when the log is opened, and when the owner is noted."""
    case = JobCase(tmp_path, spark).write(KINDS)
    prepared = prepare(case.job(), spark)
    log = prepared.job.event_log
    assert log is not None
    log.mkdir(parents=True)
    with pytest.raises(InputError) as refused, JobRun(prepared):
        pass
    told = str(refused.value)
    assert told == f"{case.file}: checkpoint: {log} cannot be written: Is a directory"
