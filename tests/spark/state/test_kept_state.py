"""What Spark users do with checkpoints: unite joins, copy, roll back, do a batch twice."""

from __future__ import annotations

import importlib
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from roll_back import roll_back, uncommit

import penstock
import penstock.spark
from penstock.engine.overload.overload import Overload
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


def forgetful() -> type[CellProcessor]:
    """Cells that are restored in every batch."""

    class Forgetful(CellProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            importlib.import_module("penstock.spark.state.engine_cache").WORKER.clear()
            super().init(handle)

    return Forgetful


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
        self,
        folder: Path,
        queries: Sequence[JoinGraph] = (QUERY,),
        actions: int = 1,
        **options: Any,
    ) -> dict[int, Counter[Any]]:
        """The answer of each batch that was run; ``actions`` say how often each is computed."""
        found: dict[int, Counter[Any]] = {}
        self.origins: list[str] = []

        def keep(rows: DataFrame, batch: int) -> None:
            for _ in range(actions):
                found[batch] = Counter(map(tuple, rows.collect()))

        results = self.join(queries[0], **options)
        for query in queries[1:]:
            results = results.unionAll(self.join(query, **options))
        running = (
            results.writeStream.option("checkpointLocation", str(folder))
            .trigger(availableNow=True)
            .foreachBatch(keep)
            .start()
        )
        running.awaitTermination()
        for progress in running.recentProgress:
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
        found = stream.run(checkpoint, queries=[QUERY, QUERY])
        for batch in range(start, start + 6):
            assert found[batch] == expected[batch] + expected[batch]


def test_a_batch_that_is_computed_twice_keeps_its_engines(
    stream: Stream, expected: list[Counter[Any]]
) -> None:
    stream.write(range(8))
    found = stream.run(stream.folder / "checkpoint", actions=2)
    assert [found[batch] for batch in range(8)] == expected[:8]
    assert "live" in stream.origins  # A worker that gets a cell for the first time restores it.


def test_a_crash_between_the_commits_of_sink_and_spark_with_probes_put_off(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sink has the answer of the batch, which is done again: by other engines, at another
    speed. It is the same answer, and what was put off leaves once."""
    fresh = TEXT.replace("MILLISECONDS]", "MILLISECONDS] FRESHNESS 1 DAY")
    query = penstock.parse(fresh, schemas=dict.fromkeys("AB", SCHEMA))
    short = Overload("defer", seconds=1e-4)
    stream.write(range(5))
    checkpoint = stream.folder / "checkpoint"
    sink = stream.run(checkpoint, queries=[query], overload=short)
    assert total(sink.values()) != total(oracle_of(query, 5)), "nothing was put off"
    for last in (4, 7):
        uncommit(checkpoint, last)
        stream.write(range(last + 1, last + 4))
        with monkeypatch.context() as patched:
            patched.setattr(join_module, "CellProcessor", forgetful())
            again = stream.run(checkpoint, queries=[query], overload=short)
        assert again.pop(last) == sink[last]
        sink |= again
    stream.write(range(11, 12))
    sink |= stream.run(checkpoint, queries=[query], overload=Overload("defer", seconds=1e4))
    assert total(sink.values()) == total(oracle_of(query, 12))


def oracle_of(query: JoinGraph, batches: int) -> list[Counter[Any]]:
    oracle = Oracle(query, 0)
    return [Counter(oracle.push(batch_of(number))) for number in range(batches)]


def cells_in(spark: SparkSession, checkpoint: Path) -> int:
    """Cells that have state."""
    state = spark.read.format("statestore").option("stateVarName", "header").load(str(checkpoint))
    return int(state.select("key.cell").distinct().count())


def test_one_of_two_joins_changes(stream: Stream, expected: list[Counter[Any]]) -> None:
    """Each goes on with the windows that are its own."""
    checkpoint = stream.folder / "checkpoint"
    other, later = (
        penstock.parse(TEXT.replace("A.y <> B.y", each), schemas=dict.fromkeys("AB", SCHEMA))
        for each in ("A.y < B.y", "A.y > B.y")
    )
    stream.write(range(4))
    found = stream.run(checkpoint, queries=[QUERY, other], checkpoint=checkpoint)
    lesser, greater = oracle_of(other, 8), oracle_of(later, 8)
    assert [found[n] for n in range(4)] == [expected[n] + lesser[n] for n in range(4)]
    stream.write(range(4, 8))
    with pytest.warns(UserWarning, match="laid out anew"):
        found = stream.run(checkpoint, queries=[QUERY, later], checkpoint=checkpoint)
    assert [found[n] for n in range(4, 8)] == [expected[n] + greater[n] for n in range(4, 8)]
    with pytest.raises(CheckpointError, match="several joins in this query, and it cannot be told"):
        stream.run(checkpoint, queries=[QUERY, other], checkpoint=checkpoint, cells=3)


def restarts(
    stream: Stream, expected: list[Counter[Any]], ways: Sequence[dict[str, Any]]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Three batches in each of ``ways``, one after the other; answers are those ``expected``."""
    checkpoint = stream.folder / "checkpoint"
    for number, way in enumerate(ways):
        batches = range(3 * number, 3 * number + 3)
        stream.write(batches)
        with pytest.warns(UserWarning, match="laid out anew") if number else nullcontext():
            found = stream.run(checkpoint, checkpoint=checkpoint, **way)
        assert [found[batch] for batch in batches] == [expected[batch] for batch in batches], way
        yield number, way


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
    for number, way in restarts(stream, expected, ways):
        assert cells_in(stream.spark, checkpoint) == way["cells"]
        assert len([*checkpoint.glob("penstock.seed-*")]) == (way["cells"] if number else 0)
    found = stream.run(checkpoint, checkpoint=checkpoint, **ways[-1])
    assert not found, "the same again, and nothing to do"
    assert not [*checkpoint.glob("penstock.seed-*")]
    other = penstock.parse(
        TEXT.replace("A.id AS a", "B.ts AS b_ts, A.id AS a").replace("A.y <> B.y", "A.y < B.y"),
        schemas=dict.fromkeys("AB", SCHEMA),
    )
    oracle = Oracle(other, 0)
    wanted = [Counter(oracle.push(batch_of(number))) for number in range(15)]
    stream.write(range(12, 15))
    with pytest.warns(UserWarning, match="laid out anew"):
        found = stream.run(checkpoint, checkpoint=checkpoint, queries=[other], cells=3)
    assert [found[batch] for batch in range(12, 15)] == wanted[12:]
    longer = penstock.parse(TEXT.replace("300", "400"), schemas=dict.fromkeys("AB", SCHEMA))
    with pytest.raises(CheckpointError, match="the window of A was shorter before; name another"):
        stream.run(checkpoint, checkpoint=checkpoint, queries=[longer])
    roll_back(checkpoint, 4)
    with pytest.warns(UserWarning, match="laid out anew"):
        found = stream.run(checkpoint, checkpoint=checkpoint, cells=3)
    assert total(found.values()) == total(expected[5:15])


def test_other_hot_values_and_rates(stream: Stream, expected: list[Counter[Any]]) -> None:
    """Rows of the windows go to the cells where they would have come now."""
    ways: list[dict[str, Any]] = [
        {"cells": 4},
        {"cells": 4, "hot": {"A.x": [3, 7]}},
        {"cells": 4, "hot": {"A.x": [7]}, "rates": {"A": 1000, "B": 1}},
        {"cells": 4, "rates": {"A": 1, "B": 1000}},
    ]
    assert len([*restarts(stream, expected, ways)]) == len(ways)
