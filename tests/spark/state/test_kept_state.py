"""What Spark users do with checkpoints: unite joins, copy, roll back, do a batch twice."""

from __future__ import annotations

import importlib
import os
import shutil
from collections import Counter
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from roll_back import roll_back

import penstock
import penstock.spark
from penstock.errors import CheckpointError
from penstock.query.join_graph import JoinGraph
from penstock.spark.cells.cell_report import cell_reports
from penstock.spark.operator.cell_processor import CellProcessor
from penstock.testing import Oracle

pytestmark = pytest.mark.xdist_group("spark")

BATCHES = 21
MORE = 24
EVERY = 1 if "PENSTOCK_LONG" in os.environ else 5
"""Batches between two to which a checkpoint is rolled back."""
ROWS = 60
"""Of a stream in a batch."""
SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "x", "y")])
TEXT = """SELECT A.id AS a, B.id AS b FROM A [RANGE 300 MILLISECONDS], B [RANGE 300 MILLISECONDS]
          WHERE A.x = B.x AND A.y <> B.y"""
QUERY = penstock.parse(TEXT, schemas=dict.fromkeys("AB", SCHEMA))


join_module = importlib.import_module("penstock.spark.join")  # The package has the function.


def frugal() -> type[CellProcessor]:
    """Cells that write a base every few batches, small as their windows are."""

    class Frugal(CellProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            history: Any = importlib.import_module("penstock.spark.state.cell_history")
            history.SMALLEST = 1
            super().init(handle)

    return Frugal


def batch_of(number: int) -> dict[str, pa.Table]:
    chance = np.random.default_rng(number)
    times = 100 * number + np.sort(chance.integers(0, 100, ROWS))
    return {
        name: pa.table(
            [np.arange(ROWS) + ROWS * number, times, *chance.integers(0, 12, (2, ROWS))], SCHEMA
        )
        for name in "AB"
    }


@pytest.fixture(scope="module")
def expected() -> list[Counter[Any]]:
    """The answer of each batch."""
    oracle = Oracle(QUERY, 0)
    return [Counter(oracle.push(batch_of(number))) for number in range(MORE)]


class Stream:
    """Files that become visible batch by batch, and queries on them."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        for name in "AB":
            (folder / name).mkdir()

    def write(self, batches: range) -> None:
        for number in batches:
            for name, table in batch_of(number).items():
                file = self.folder / name / f"{number:04}.parquet"
                pq.write_table(table, file)
                os.utime(file, (1_700_000_000 + 10 * number,) * 2)

    def join(self, query: JoinGraph = QUERY, cells: int = 2, **options: Any) -> DataFrame:
        columns = ", ".join(f"{name} BIGINT" for name in SCHEMA.names)
        frames = {
            name: self.spark.readStream.schema(columns)
            .option("maxFilesPerTrigger", 1)
            .parquet(str(self.folder / name))
            for name in "AB"
        }
        return penstock.spark.join(query, frames, cells, **{"lateness": 0} | options)

    def run(
        self, folder: Path, united: int = 1, actions: int = 1, **options: Any
    ) -> dict[int, Counter[Any]]:
        """The answer of each batch that was run; ``actions`` say how often each is computed."""
        found: dict[int, Counter[Any]] = {}
        self.origins: list[str] = []

        def keep(rows: DataFrame, batch: int) -> None:
            for _ in range(actions):
                found[batch] = Counter(map(tuple, rows.collect()))

        results = self.join(**options)
        for _ in range(united - 1):
            results = results.unionAll(self.join(**options))
        query = (
            results.writeStream.option("checkpointLocation", str(folder))
            .trigger(availableNow=True)
            .foreachBatch(keep)
            .start()
        )
        query.awaitTermination()
        for progress in query.recentProgress:
            self.origins += [each.origin for each in cell_reports(progress.observedMetrics)]
        return found


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stream:
    monkeypatch.setattr(join_module, "CellProcessor", frugal())
    return Stream(spark, tmp_path)


def total(answers: Iterable[Counter[Any]]) -> Counter[Any]:
    return sum(answers, Counter())


def test_copies_and_rollbacks_to_each_batch(stream: Stream, expected: list[Counter[Any]]) -> None:
    """A copy goes back to each batch in turn and runs on; then the original does."""
    stream.write(range(BATCHES))
    checkpoint, copy = stream.folder / "checkpoint", stream.folder / "copy"
    found = stream.run(checkpoint)
    assert [found[batch] for batch in range(BATCHES)] == expected[:BATCHES]
    shutil.copytree(checkpoint, copy)
    for batch in reversed(range(0, BATCHES - 1, EVERY)):
        roll_back(copy, batch)
        again = stream.run(copy)
        assert total(again.values()) == total(expected[batch + 1 : BATCHES]), batch
    stream.write(range(BATCHES, MORE))
    for each in (checkpoint, copy):
        assert total(stream.run(each).values()) == total(expected[BATCHES:]), each


def test_two_joins_in_one_query(stream: Stream, expected: list[Counter[Any]]) -> None:
    checkpoint = stream.folder / "checkpoint"
    for start in (0, 6):
        stream.write(range(start, start + 6))
        found = stream.run(checkpoint, united=2)
        for batch in range(start, start + 6):
            assert found[batch] == expected[batch] + expected[batch]


def test_a_batch_that_is_computed_twice_keeps_its_engines(
    stream: Stream, expected: list[Counter[Any]]
) -> None:
    stream.write(range(8))
    found = stream.run(stream.folder / "checkpoint", actions=2)
    assert [found[batch] for batch in range(8)] == expected[:8]
    assert "live" in stream.origins  # A worker that gets a cell for the first time restores it.


def test_other_cells_another_lateness_a_changed_query_and_back(
    stream: Stream, expected: list[Counter[Any]]
) -> None:
    """Windows go with the query wherever it goes on, and a rollback goes back before that."""
    checkpoint = stream.folder / "checkpoint"
    ways: list[dict[str, Any]] = [
        {"cells": 2},
        {"cells": 5},
        {"cells": 1},
        {"cells": 5, "lateness": 400},
    ]
    for number, way in enumerate(ways):
        batches = range(3 * number, 3 * number + 3)
        stream.write(batches)
        with pytest.warns(UserWarning, match="laid out anew") if number else nullcontext():
            found = stream.run(checkpoint, checkpoint=checkpoint, **way)
        assert [found[batch] for batch in batches] == [expected[batch] for batch in batches], way
    found = stream.run(checkpoint, checkpoint=checkpoint, **ways[-1])
    assert not found, "the same again, and nothing to do"
    other = penstock.parse(
        TEXT.replace("A.id AS a", "B.ts AS b_ts, A.id AS a").replace("A.y <> B.y", "A.y < B.y"),
        schemas=dict.fromkeys("AB", SCHEMA),
    )
    oracle = Oracle(other, 0)
    wanted = [Counter(oracle.push(batch_of(number))) for number in range(15)]
    stream.write(range(12, 15))
    with pytest.warns(UserWarning, match="laid out anew"):
        found = stream.run(checkpoint, checkpoint=checkpoint, query=other, cells=3)
    assert [found[batch] for batch in range(12, 15)] == wanted[12:]
    longer = penstock.parse(TEXT.replace("300", "400"), schemas=dict.fromkeys("AB", SCHEMA))
    with pytest.raises(CheckpointError, match="the window of A was shorter before; name another"):
        stream.run(checkpoint, checkpoint=checkpoint, query=longer)
    roll_back(checkpoint, 4)
    with pytest.warns(UserWarning, match="laid out anew"):
        found = stream.run(checkpoint, checkpoint=checkpoint, cells=3)
    assert total(found.values()) == total(expected[5:15])
