"""Jobs on Spark: every format, restarts, stops, failures, and what the event log says of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from job_case import SCHEMA, JobCase, rows_of
from pyspark.sql import SparkSession

import penstock
from penstock.errors import PenstockError
from penstock.job.job import LANES
from penstock.job.read import read_job
from penstock.spark.jobs.job_run import JobRun
from penstock.spark.jobs.prepared_job import prepare
from penstock.spark.session import PARTITIONS
from penstock.telemetry import Batch, Event, Failure, Restart, Start, Stop, Warned

pytestmark = pytest.mark.xdist_group("spark")

FORMATS = {"A": "parquet", "B": "json", "C": "csv"}


@pytest.mark.parametrize("lane", LANES)
def test_files_of_three_formats_across_a_restart(
    lane: str, spark: SparkSession, tmp_path: Path
) -> None:
    top = f'lane = "{lane}"\ntrigger = "available-now"\ncells = 2'
    case = JobCase(tmp_path, spark).write(FORMATS, top)
    for number, (name, kind) in enumerate(FORMATS.items()):
        case.deliver(name, kind, 1 + number)
    first = case.run()
    after_first = case.results()
    assert after_first == case.expected()
    for number, (name, kind) in enumerate(FORMATS.items()):
        case.deliver(name, kind, 11 + number)
    second = case.run()
    assert case.results() == case.expected()
    assert case.results().total() > 1_000

    assert case.log() == first + second
    assert [type(event) for event in case.log()] == [Start, Batch, Stop, Restart, Batch, Stop]
    start, batch, stop = first
    assert isinstance(start, Start)
    assert start.sources == FORMATS
    assert isinstance(batch, Batch)
    assert batch.rows == {"A": 40, "B": 40, "C": 40}
    assert batch.late == {"A": 0, "B": 0, "C": 0}
    assert batch.results == after_first.total()
    assert sum(cell.results for cell in batch.cells) == batch.results
    assert [cell.cell for cell in batch.cells] == [0, 1]
    assert batch.state_bytes > 0
    assert 0 < batch.engine_seconds <= sum(cell.total_seconds for cell in batch.cells)
    assert batch.seconds > 0
    assert isinstance(stop, Stop)
    assert (stop.reason, stop.batches, stop.rows) == ("finished", 1, 120)
    assert stop.results == batch.results
    again = second[0]
    assert isinstance(again, Restart)
    assert again.after == 0
    assert again.run != start.run


@pytest.mark.parametrize("lane", LANES)
def test_schemas_are_inferred_and_static_relations_read(
    lane: str, spark: SparkSession, tmp_path: Path
) -> None:
    kinds = dict.fromkeys("ABC", "parquet")
    top = f'lane = "{lane}"\ntrigger = "available-now"'
    case = JobCase(tmp_path, spark)
    for number, name in enumerate(kinds):
        case.deliver(name, "parquet", 1 + number)
    case.write(kinds, top, schema=False)
    expected = case.expected()
    case.run()
    assert case.results() == expected

    query = (
        "SELECT A.id AS a, B.id AS b, C.id AS c, A.x AS x "
        "FROM A [RANGE 1 HOUR], B [RANGE 1 HOUR], C WHERE A.x = B.x AND B.x = C.x"
    )
    case.write(kinds, top, schema=False, query=query)
    text = case.file.read_text().replace(
        'path = "C"\n\nwatermark = "5 MINUTES"', 'path = "C"\nstatic = true'
    )
    case.file.write_text(text.replace("state/", "other/").replace("results", "more"))
    case.run()
    found = spark.read.parquet(str(tmp_path / "more")).count()
    keys = [[row["x"] for row in case.written[name][0].to_pylist()] for name in "ABC"]
    values = set(keys[0]) - {None}
    assert found == sum(keys[0].count(x) * keys[1].count(x) * keys[2].count(x) for x in values)


@pytest.mark.parametrize("lane", LANES)
def test_event_times_that_are_texts(lane: str, spark: SparkSession, tmp_path: Path) -> None:
    """Two ways to write them; what is no time is counted with its source."""
    texts = {
        "A": ["2026-03-01T12:00:00Z", "soon"],
        "B": ["01.03.2026 12:00:01", "31.02.2026 00:00:00"],
    }
    for name, values in texts.items():
        (tmp_path / name).mkdir()
        lines = [f'{{"id": {n}, "at": "{value}"}}' for n, value in enumerate(values)]
        (tmp_path / name / "rows.json").write_text("\n".join(lines))
    formats = {"A": "iso", "B": "dd.MM.yyyy HH:mm:ss"}
    (tmp_path / "job.toml").write_text(
        f"""
        query = "SELECT A.id FROM A [RANGE 1 MINUTE], B [RANGE 1 MINUTE] WHERE A.id = B.id"
        lane = "{lane}"
        checkpoint = "state"
        trigger = "available-now"
        event_time = "at"
        """
        + "".join(
            f'''
        [sources.{name}]
        format = "json"
        path = "{name}"
        schema = "id BIGINT, at STRING"
        event_time_format = "{format_}"
        watermark = "1 SECOND"
        '''
            for name, format_ in formats.items()
        )
        + """
        [sink]
        format = "parquet"
        path = "results"
        """
    )
    with JobRun(prepare(read_job(tmp_path / "job.toml"), spark)) as run:
        run.start()
        events: list[Event] = []
        while not run.ended:
            events += run.poll(0.2)
    assert run.failure is None
    assert [row.id for row in spark.read.parquet(str(tmp_path / "results")).collect()] == [0]
    (batch,) = (event for event in events if isinstance(event, Batch))
    assert batch.dropped == {name: {"no event time": 1} for name in texts}


@pytest.mark.parametrize("lane", LANES)
def test_rate_is_stopped_after_a_batch_and_goes_on(
    lane: str, spark: SparkSession, tmp_path: Path
) -> None:
    """Every row meets itself, so no number may be missing or there twice after the stops."""
    (tmp_path / "job.toml").write_text(
        f"""
        lane = "{lane}"
        query = '''
        SELECT A.value AS n FROM A [RANGE 1 MINUTE], B [RANGE 1 MINUTE] WHERE A.value = B.value
        '''
        checkpoint = "state"
        trigger = "200 MILLISECONDS"
        event_time = "timestamp"
        [sources.A]
        format = "rate"
        options.rowsPerSecond = 50
        [sources.B]
        format = "rate"
        options.rowsPerSecond = 50
        [sink]
        format = "parquet"
        path = "results"
        """
    )

    def stop_at_the_first_rows(run: JobRun, event: Event) -> None:
        if isinstance(event, Batch) and any(event.rows.values()):
            run.stop("enough")

    case = JobCase(tmp_path, spark)
    runs = [case.run(stop_at_the_first_rows) for _ in range(2)]
    for events in runs:
        assert isinstance(events[-1], Stop)
        assert events[-1].reason == "enough"
        assert rows_of(events) == events[-1].rows
        assert events[-1].rows > 0
    assert isinstance(runs[1][0], Restart)
    numbers = sorted(row[0] for row in spark.read.parquet(str(tmp_path / "results")).collect())
    assert numbers == list(range(len(numbers)))
    assert numbers


@pytest.mark.parametrize("lane", LANES)
def test_a_partitioned_json_sink_and_hot_values(
    lane: str, spark: SparkSession, tmp_path: Path
) -> None:
    kinds = dict.fromkeys("ABC", "parquet")
    case = JobCase(tmp_path, spark)
    for number, name in enumerate(kinds):
        case.deliver(name, "parquet", 1 + number)
    top = f'lane = "{lane}"\ncells = 2\ntrigger = "available-now"\nhot = {{ "A.x" = ["k"] }}'
    sink = 'format = "json"\npath = "results"\npartition_by = ["x"]'
    case.write(kinds, top, sink=sink).run()
    found = spark.read.schema("a BIGINT, b BIGINT, c BIGINT, x STRING").json(
        str(tmp_path / "results")
    )
    assert (tmp_path / "results" / "x=k").is_dir()
    assert sorted(map(tuple, found.collect())) == sorted(case.expected().elements())


def test_a_table_of_a_database(spark: SparkSession, tmp_path: Path) -> None:
    """Spark has no stream into JDBC, so batches are appended, over a restart too."""
    jvm: Any = spark._jvm
    jvm.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    url = f"jdbc:derby:{tmp_path / 'database'};create=true"
    table = f'format = "jdbc"\noptions.url = "{url}"\noptions.dbtable = "answer"'
    case = JobCase(tmp_path, spark).write(dict.fromkeys("ABC", "parquet"), sink=table)
    for number, name in enumerate("ABCA"):
        if number == 3:
            case.run()
        case.deliver(name, "parquet", 1 + number)
    assert isinstance(case.run()[-1], Stop)
    rows = spark.read.format("jdbc").options(url=url, dbtable="answer").load()
    assert Counter(map(tuple, rows.select("a", "b", "c", "x").collect())) == case.expected()


@pytest.mark.parametrize("lane", LANES)
def test_a_failed_job_says_why_and_goes_on(lane: str, spark: SparkSession, tmp_path: Path) -> None:
    kinds = dict.fromkeys("ABC", "parquet")
    case = JobCase(tmp_path, spark).write(kinds, f'lane = "{lane}"\ntrigger = "available-now"')
    for number, name in enumerate(kinds):
        case.deliver(name, "parquet", 1 + number)
    poison = tmp_path / "A" / "9.parquet"
    poison.write_bytes(b"this is no parquet file")
    events = case.run()
    assert isinstance(events[-1], Failure)
    assert "\n" not in events[-1].reason
    assert "9.parquet" in events[-1].reason + events[-1].details
    poison.write_bytes((tmp_path / "A" / "1.parquet").read_bytes())
    case.written["A"].append(case.written["A"][0])
    again = case.run()
    assert isinstance(again[0], Restart)
    assert again[0].after == -1
    assert isinstance(again[-1], Stop)
    assert case.results() == case.expected()


def test_a_job_does_not_run_twice_at_once(spark: SparkSession, tmp_path: Path) -> None:
    case = JobCase(tmp_path, spark).write(dict.fromkeys("ABC", "parquet"))
    prepared = prepare(case.job(), spark)
    with JobRun(prepared), pytest.raises(PenstockError, match="runs already"):
        JobRun(prepared).__enter__()


def test_a_full_disk_ends_the_log_and_not_the_job(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("penstock.telemetry.event_log.EventLog.write", full)
    case = JobCase(tmp_path, spark).write(dict.fromkeys("ABC", "parquet"))
    with JobRun(prepare(case.job(), spark)) as run:
        run.start()
        while not run.ended:
            run.poll(0.1)
    assert run.failure is None
    assert run.log_problem == f"{case.job().event_log}: No space left on device"


@pytest.mark.parametrize(("settings", "partitions"), [("", 1), ('"{}" = 2\n', 2)])
def test_one_cell_is_one_partition(
    settings: str, partitions: int, spark: SparkSession, tmp_path: Path
) -> None:
    """Unless the job says otherwise; other queries of the session have as many as ever."""
    usual = spark.conf.get(PARTITIONS)
    case = JobCase(tmp_path, spark)
    top = 'lane = "dataframes"\ncells = 1\ntrigger = "available-now"'
    case.write(dict.fromkeys("ABC", "parquet"), top)
    if settings:
        text = case.file.read_text()
        case.file.write_text(f"{text}[spark]\n{settings.format(PARTITIONS)}")
    for number, name in enumerate("ABC"):
        case.deliver(name, "parquet", 1 + number)
    case.run()
    assert case.results() == case.expected()
    state = tmp_path / "state" / "checkpoint" / "state" / "0"
    assert sorted(p.name for p in state.iterdir() if p.name.isdigit()) == ["0", "1"][:partitions]
    assert spark.conf.get(PARTITIONS) == usual


@pytest.mark.parametrize("lane", LANES)
def test_other_cells_go_on_with_the_windows(lane: str, spark: SparkSession, tmp_path: Path) -> None:
    """They are laid out anew where they are kept, and read again where the source is the state."""
    kinds = dict.fromkeys("ABC", "parquet")
    now = f'lane = "{lane}"\ntrigger = "available-now"'
    case = JobCase(tmp_path, spark).write(kinds, f"cells = 3\n{now}")
    case.run()
    case.write(kinds, f"cells = 2\n{now}")
    for number, name in enumerate("ABC"):
        case.deliver(name, "parquet", 1 + number)
    case.run()
    for number, name in enumerate("ABC"):
        case.deliver(name, "parquet", 4 + number)
    case.write(kinds, f"cells = 3\n{now}")
    told = [each.text for each in case.run() if isinstance(each, Warned)]
    laid_out = any("are kept and laid out anew: 2 cells" in text for text in told)
    assert laid_out == (lane == "dataframes")
    assert case.results() == case.expected()
    assert prepare(case.write(kinds).job(), spark).cells == (3 if lane == "dataframes" else 1)


@pytest.mark.parametrize("lane", LANES)
def test_a_run_that_ends_says_what_it_leaves(
    lane: str, spark: SparkSession, tmp_path: Path
) -> None:
    """GROUP BY waits for the watermark: eight rows in and none out is no fault."""
    kinds, now = dict.fromkeys("AB", "parquet"), 'trigger = "available-now"'
    joined = "FROM A [NOW], B [NOW] WHERE A.x = B.x"
    grouped = f"SELECT A.x, COUNT(*) AS n {joined} GROUP BY A.x"
    for query, told in ((f"SELECT A.x {joined}", 0), (grouped, 1)):
        case = JobCase(tmp_path, spark).write(kinds, f'lane = "{lane}"\n{now}', query)
        warned = [w for w in prepare(case.job(), spark).warnings if w.startswith("GROUP BY")]
        assert len(warned) == told


def test_runs_that_end_and_flush_leave_nothing(spark: SparkSession, tmp_path: Path) -> None:
    kinds = dict.fromkeys("AB", "parquet")
    top = 'trigger = "available-now"\nflush = true'
    query = """SELECT COUNT(*) AS a, MAX(A.id) AS b, MIN(B.id) AS c, A.x AS x
        FROM A [RANGE 20 SECONDS], B [RANGE 20 SECONDS] WHERE A.x = B.x GROUP BY A.x"""
    case = JobCase(tmp_path, spark).write(kinds, top, query)
    parsed = penstock.parse(query, schemas=dict.fromkeys("AB", SCHEMA))
    engine = penstock.Engine(parsed, lateness="5 MINUTES")
    expected: Counter[tuple[Any, ...]] = Counter()
    for run in range(2):
        for seed, name in enumerate("AB"):
            case.deliver(name, "parquet", 1 + 2 * run + seed)
        told = [each.text for each in case.run() if isinstance(each, Warned)]
        assert not any(text.startswith("GROUP BY") for text in told)
        given = {name: tables[-1] for name, tables in case.written.items()}
        newest = max(pc.max(rows["ts"]).value for rows in given.values())
        expected.update(_tuples(engine.push(given)))
        expected.update(_tuples(engine.push({}, watermark=newest // 1000 + 1)))
        assert case.results() == expected
    assert expected.total() > 20
    batches = [each for each in case.log() if isinstance(each, Batch)]
    assert [sum(each.rows.values()) for each in batches] == [80, 0, 80, 0]
    late = [sum(each.late.values()) for each in batches]
    filtered = [sum(each.filtered.values()) for each in batches]
    # What the second run brings is as old as the first, nearly all of it; rows with a NULL for a
    # key can be in no result, late or not.
    assert late[:2] == [0, 0]
    assert sum(late) > 60
    nulls = sum(rows["x"].null_count for tables in case.written.values() for rows in tables)
    assert sum(filtered) == nulls
    assert sum(late) + filtered[2] == engine.metrics()["late"]


def _tuples(answer: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in answer.to_pylist()]
