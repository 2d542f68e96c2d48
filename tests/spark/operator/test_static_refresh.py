"""Static relations that are read again: versions, and the answer that each batch has by its own."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from case_deliveries import spark_oracle
from pyspark.sql import SparkSession
from spark_case import SparkCase, cases, in_spark_types

import penstock.spark
from penstock.cells.delivery import to_chunk
from penstock.cells.placement import place
from penstock.cli import main as cli
from penstock.engine.overload.overload import Overload
from penstock.errors import CheckpointError, OptionError, PenstockWarning
from penstock.job import read_job
from penstock.spark.jobs.job_run import JobRun
from penstock.spark.jobs.prepared_job import prepare
from penstock.spark.operator.version_stream import NewVersions, Versioned, VersionReader
from penstock.spark.state import static_versions
from penstock.spark.state.checkpoint_files import CheckpointFiles
from penstock.spark.state.static_refresh import StaticRefresh, check_begun, intervals, running
from penstock.spark.state.static_versions import StaticVersions
from penstock.telemetry import Batch, Event, Idle, Order, Start
from penstock.testing import Case

NO_LIMIT: Any = None


def table(*numbers: int) -> pa.Table:
    return pa.table({"x": list(numbers)})


def fixed_of(case: Case) -> list[str]:
    """The static relations of ``case``."""
    return [s.source for block in case.graph().blocks for s in block.streams if s.is_static]


def versions_in(folder: Path) -> StaticVersions:
    return StaticVersions(CheckpointFiles(str(folder)))


def test_versions_are_numbered_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static_versions, "KEPT", 3)
    versions = versions_in(tmp_path)
    assert versions.newest() == {}
    assert versions.add("S", table(1), 0) == 1
    assert versions.add("S", table(1), 1) == 1
    for number in range(2, 6):
        assert versions.add("S", table(number), number - 1) == number
    assert versions.add("a/b-1", table(7), 0) == 1
    assert versions.newest() == {"S": 5, "a/b-1": 1}
    assert versions.read("S", 3).equals(table(3))
    assert versions.read("a/b-1", 1).equals(table(7))
    with pytest.raises(CheckpointError, match="version 2 of the static relation S"):
        versions.read("S", 2)


def test_a_batch_has_the_version_that_its_offset_says(tmp_path: Path) -> None:
    """Offsets name versions; the first rows are written only when somebody asks for offsets."""
    versions = versions_in(tmp_path / "checkpoint")
    chunk = to_chunk(table(1))

    def reader(rows: bytes) -> VersionReader:
        return VersionReader(Versioned(versions, {"S": 2}, (40, 41), {"S": rows}))

    one = reader(chunk)
    assert versions.newest() == {}
    assert one.latestOffset(one.initialOffset(), NO_LIMIT) == {"S": 1}
    versions.add("S", table(2), 1)
    assert one.latestOffset({"S": 1}, NO_LIMIT) == {"S": 2}
    assert one.partitions({"S": 1}, {"S": 1}) == []
    (part,) = one.partitions({"S": 0}, {"S": 2})
    assert part == NewVersions({"S": 2})
    rows = [row for batch in one.read(part) for row in batch.to_pylist()]
    assert [(r["cell"], r["source"], r["sequence"]) for r in rows] == [(40, 2, 2), (41, 2, 2)]
    again = reader(to_chunk(table(2)))
    assert again.latestOffset({"S": 2}, NO_LIMIT) == {"S": 2}
    again = reader(to_chunk(table(3)))
    assert again.latestOffset({"S": 2}, NO_LIMIT) == {"S": 3}
    assert versions.read("S", 3).equals(table(3))


def test_relations_are_read_when_due_or_asked_for(tmp_path: Path) -> None:
    versions = versions_in(tmp_path)
    now = [table(1)]
    keeper = StaticRefresh(
        versions, {"S": lambda: now[0], "T": lambda: now[0]}, {"S": 60.0, "T": None}
    )
    keeper.begin(1_000.0)
    assert keeper.look(1_059.0) == []
    assert keeper.look(1_060.0) == ["S"]
    assert keeper.look(1_061.0) == []
    penstock.spark.refresh(str(tmp_path), None, "S", at=5.0)
    assert keeper.look(1_062.0) == ["S"]
    assert keeper.look(1_063.0) == []
    with pytest.raises(OptionError, match=r"no static relation 'T'.*it refreshes: S"):
        penstock.spark.refresh(str(tmp_path), None, "T")
    versions.add("T", table(1), 0)
    penstock.spark.refresh(str(tmp_path), at=6.0)
    assert keeper.look(1_064.0) == ["S", "T"]
    assert versions.newest() == {"S": 1, "T": 1}
    now[0] = table(2)
    assert keeper.look(1_200.0) == ["S"]
    assert versions.newest() == {"S": 2, "T": 1}


def test_a_relation_that_cannot_be_read_keeps_its_rows(tmp_path: Path) -> None:
    def broken() -> pa.Table:
        raise OSError("the database is away\nand more")

    keeper = StaticRefresh(versions_in(tmp_path), {"S": broken}, {"S": 1.0})
    keeper.begin(0.0)
    with pytest.warns(PenstockWarning, match="S could not be read again.*the database is away$"):
        keeper.look(2.0)
    keeper.is_heard = True
    keeper.look(4.0)
    assert len(keeper.problems) == 1


def test_what_cannot_be_refreshed_is_refused() -> None:
    schema = pa.schema([("ts", pa.int64()), ("x", pa.int64())])
    static = pa.schema([("x", pa.int64())])
    text = "SELECT A.x FROM A [RANGE 1 SECOND], S WHERE A.x = S.x"
    query = penstock.parse(text, {"A": schema, "S": static}, {"A": "ts", "S": None})
    assert intervals(query, {"S": "2 MINUTES"}, {}) == {"S": 120.0}
    assert intervals(query, {"S": "asked"}, {}) == {"S": None}
    with pytest.raises(OptionError, match=r"'A'.*they are: S"):
        intervals(query, {"A": "1 MINUTE"}, {})
    with pytest.raises(OptionError, match="above 0"):
        intervals(query, {"S": 0}, {})
    with pytest.raises(OptionError, match="not a duration"):
        intervals(query, {"S": "often"}, {})
    for deferred in ("defer", Overload("defer", probes=1), {"policy": "defer"}):
        with pytest.raises(OptionError, match="defer"):
            intervals(query, {"S": "asked"}, {"overload": deferred})
    assert intervals(query, {"S": "asked"}, {"overload": Overload("shed")}) == {"S": None}


def test_refresh_belongs_to_a_checkpoint_from_its_beginning(tmp_path: Path) -> None:
    files = CheckpointFiles(str(tmp_path))
    check_begun(files, {})
    check_begun(files, {"S": 60.0})
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").touch()
    check_begun(files, {})
    with pytest.raises(CheckpointError, match="has begun without refresh"):
        check_begun(files, {"S": 60.0})
    versions_in(tmp_path).add("S", table(1), 0)
    check_begun(files, {"S": 60.0})
    with pytest.raises(CheckpointError, match="has begun with refresh of S"):
        check_begun(files, {})


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize(
    ("features", "cells"), [(("static", "splits"), 3), (("static", "rows"), 1)]
)
def test_each_batch_has_the_answer_of_its_version(
    features: tuple[str, ...], cells: int, spark: SparkSession, tmp_path: Path
) -> None:
    """Version 1 for the first batch, version 2 by a refresh in the run, version 3 by a restart."""
    found = (
        c
        for c in cases(*features, start=40, pushes=5)
        if len(c.pushes) >= 4
        and not c.graph().minus
        and c.graph().emission != "rstream"  # It would leave in the batch of a refresh, too.
        and all(len(c.pushes[0][name]) > 2 for name in fixed_of(c))
        and (cells == 1 or place(c.graph(), cells).cells > 1)
    )
    case = SparkCase(next(found), tmp_path, spark)
    fixed = fixed_of(case.case)
    full = {name: case.case.pushes[0][name] for name in fixed}
    parts = [{n: t.slice(k % 2, max(1, len(t) - k)) for n, t in full.items()} for k in range(3)]
    expected = []
    cuts = [0, 1, 3, len(case.case.pushes)]
    for version, (first, after) in zip(parts, itertools.pairwise(cuts), strict=True):
        pushes = [{**case.case.pushes[0], **version}, *case.case.pushes[1:]]
        oracle = spark_oracle(replace(case.case, pushes=tuple(pushes)), case.graph)
        answers = [oracle.push(push) for push in pushes]
        expected += [row for answer in answers[first:after] for row in answer]

    def put(number: int) -> None:
        for name in fixed:
            shutil.rmtree(tmp_path / name, ignore_errors=True)
            (tmp_path / name).mkdir()
            pq.write_table(
                in_spark_types(parts[number][name]), tmp_path / name / f"{number}.parquet"
            )

    case.write(1)
    put(0)
    checkpoint = str(tmp_path / "checkpoint")
    options: dict[str, Any] = {"checkpoint": checkpoint, "refresh": dict.fromkeys(fixed, "asked")}
    query = (
        case.join(cells, **options)
        .writeStream.option("checkpointLocation", checkpoint)
        .start(str(tmp_path / "results"), format="parquet")
    )
    query.processAllAvailable()
    put(1)
    keeper = running(checkpoint)
    assert keeper is not None
    for name in fixed:
        keeper.versions.add(name, keeper.read[name](), 1)
    query.processAllAvailable()
    _write_streams(case, 2, fixed)
    query.processAllAvailable()
    query.stop()
    put(2)
    _write_streams(case, len(case.case.pushes), fixed)
    case.run(cells, **options)
    case.check(case.results(), expected)
    assert set(keeper.versions.newest().values()) == {3}


def _write_streams(case: SparkCase, count: int, fixed: list[str]) -> None:
    """Write the next pushes; static relations are where they are."""
    later = [
        {name: rows for name, rows in push.items() if name not in fixed}
        for push in case.case.pushes[1:]
    ]
    case.case = replace(case.case, pushes=(case.case.pushes[0], *later))
    case.write(count)


JOB = (
    """
query = """
    + '"""'
    + """
SELECT A.id AS id, S.name AS name FROM A [RANGE 1 HOUR], S WHERE A.x = S.x"""
    + '"""'
    + """
checkpoint = "checkpoint"
[sources.A]
format = "parquet"
path = "A"
schema = "id BIGINT, ts TIMESTAMP, x BIGINT"
watermark = "1 MINUTE"
[sources.S]
format = "parquet"
path = "S"
static = true
refresh = "asked"
[sink]
format = "parquet"
path = "results"
[alerts]
command = "true"
"""
)


@pytest.mark.xdist_group("spark")
def test_a_job_reads_a_relation_again_when_asked_to(spark: SparkSession, tmp_path: Path) -> None:
    """By an order of the page and from the command line; every batch says what is new in it."""

    def deliver(number: int) -> None:
        row = {"id": [number], "ts": [datetime(2026, 1, 1, 12, number, tzinfo=UTC)], "x": [1]}
        schema = pa.schema(
            [("id", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("x", pa.int64())]
        )
        draft = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table(row, schema=schema), draft)
        draft.rename(tmp_path / "A" / draft.name)

    def name_it(name: str) -> None:
        draft = tmp_path / "S.parquet"
        pq.write_table(pa.table({"x": [1], "name": [name]}), draft)
        draft.rename(tmp_path / "S" / "0.parquet")

    (tmp_path / "A").mkdir()
    (tmp_path / "S").mkdir()
    file = tmp_path / "job.toml"
    file.write_text(JOB)
    name_it("first")
    deliver(0)
    events: list[Event] = []
    with JobRun(prepare(read_job(file), spark)) as run:
        start = run.start()
        assert isinstance(start, Start)
        assert (start.refreshes, start.accepts[-1]) == (("S",), "refresh")
        assert start.streams == {"A": "A", "S": "S"}
        refused = run.order({"command": "refresh", "source": "A"})
        assert isinstance(refused, Order)
        assert "'A' is no static relation that the job refreshes; there are: S" in refused.refused

        def wait_for(wanted: Callable[[Event], bool]) -> None:
            while not any(map(wanted, events)):
                events.extend(run.poll(0.1))
                assert run.failure is None

        def has(version: int) -> Callable[[Event], bool]:
            return lambda event: isinstance(event, Batch) and event.refreshed == {"S": version}

        def results(count: int) -> Callable[[Event], bool]:
            return lambda _: (
                sum(each.results for each in events if isinstance(each, Batch)) == count
            )

        wait_for(has(1))
        wait_for(results(1))
        name_it("second")
        ordered = run.order({"command": "refresh", "source": "S"})
        assert isinstance(ordered, Order)
        assert (ordered.refused, ordered.source) == ("", "S")
        wait_for(has(2))
        deliver(1)
        wait_for(results(2))
        name_it("third")
        assert cli.main(["refresh", str(file)]) == 0
        wait_for(has(3))
        deliver(2)
        wait_for(results(3))
        wait_for(lambda event: isinstance(event, Idle))
        (last,) = [e for e in events if isinstance(e, Batch) and e.rows.get("A") and e.newest][-1:]
        assert last.watermark == last.newest["A"] - 60_000
    found = spark.read.parquet(str(tmp_path / "results")).orderBy("id").collect()
    assert [(row.id, row.name) for row in found] == [(0, "first"), (1, "second"), (2, "third")]
