"""Setups that cannot work: one line on stderr, an exit code that is not 0, and nothing is lost."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from job_case import JobCase
from pyspark.sql import SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from test_cli_run import KINDS, delivered

from penstock.cli.main import main
from penstock.spark.operator.cell_processor import CellProcessor
from penstock.spark.session import PROVIDER, ROCKSDB

pytestmark = pytest.mark.xdist_group("spark")

join_module = importlib.import_module("penstock.spark.join")  # The package has the function.

HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"


def kept(folder: Path) -> dict[str, bytes]:
    """All files below ``folder``."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def refusal(case: JobCase, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a run of ``case`` is refused with."""
    capsys.readouterr()
    assert main(["run", str(case.file)]) != 0
    said = capsys.readouterr().err
    assert said.count("\n") == 1, said
    assert said.startswith("penstock: ")
    return said


def test_another_state_store(
    shared: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    top = 'lane = "dataframes"\ntrigger = "available-now"'
    case = delivered(JobCase(tmp_path, shared).write(KINDS, top))
    case.run()
    delivered(case, seed=4)
    before = kept(tmp_path / "state" / "checkpoint")
    shared.conf.set(PROVIDER, HDFS)
    try:
        assert "and a streaming join needs RocksDB" in refusal(case, capsys)
    finally:
        shared.conf.set(PROVIDER, ROCKSDB)
    assert kept(tmp_path / "state" / "checkpoint") == before
    case.run()
    assert case.results() == case.expected()


def test_the_checkpoint_of_something_else(
    shared: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a query of Spark's own, which can go on after that as before."""
    case = delivered(JobCase(tmp_path, shared).write(KINDS))
    checkpoint = Path(case.job().checkpoint)

    def count() -> None:
        rows = shared.readStream.schema("id BIGINT, ts TIMESTAMP, x STRING")
        counted = rows.parquet(str(tmp_path / "A")).groupBy("x").count()
        writer = counted.writeStream.outputMode("complete").format("memory").queryName("counted")
        writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        writer.start().awaitTermination()

    count()
    before = {n: c for n, c in kept(checkpoint).items() if n.startswith(("offsets", "commits"))}
    refusal(case, capsys)
    after = kept(checkpoint)
    assert {name: after.get(name) for name in before} == before
    delivered(case, seed=4)
    count()
    found = {row["x"]: row["count"] for row in shared.table("counted").collect()}
    assert sum(found.values()) == sum(map(len, case.written["A"]))


def test_a_folder_that_is_not_there(
    shared: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = JobCase(tmp_path, shared).write(KINDS)
    (tmp_path / "B").rename(tmp_path / "C2")
    assert "sources.B.path" in refusal(case, capsys)
    assert not (tmp_path / "state").exists()


def old_format() -> type[CellProcessor]:
    """Cells as they were before: the header is a value of its own."""

    class Old(CellProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            self._header = handle.getValueState("header", "text STRING")

        def handleInputRows(  # noqa: N802
            self,
            key: Any,
            rows: Iterator[Any],
            timerValues: Any,  # noqa: N803
        ) -> Iterator[Any]:
            for _ in rows:
                pass
            self._header.update(("{}",))
            yield from ()

    return Old


def test_a_checkpoint_of_an_earlier_format(
    shared: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    top = 'lane = "dataframes"\ntrigger = "available-now"'
    case = delivered(JobCase(tmp_path, shared).write(KINDS, top))
    with monkeypatch.context() as patched:
        patched.setattr(join_module, "CellProcessor", old_format())
        case.run()
    delivered(case, seed=4)
    checkpoint = Path(case.job().checkpoint)
    before = {n: c for n, c in kept(checkpoint).items() if n.startswith(("offsets", "commits"))}
    said = refusal(case, capsys)
    assert "was written by an earlier version; name another checkpoint folder" in said
    after = kept(checkpoint)
    assert {n: c for n, c in after.items() if n.startswith(("offsets", "commits"))} == before
