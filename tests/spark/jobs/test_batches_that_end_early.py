"""A frequent key fails its micro-batch with one line, and nothing else; a stopped one leaves no
trace."""

from __future__ import annotations

import datetime
import importlib
import re
import time
from pathlib import Path

import pyarrow as pa
import pytest
from acting_cells import acting
from job_case import SCHEMA, JobCase, some_rows, write_rows
from pyspark.sql import SparkSession
from spark_case import SparkCase, cases

from penstock.cells.placement import place
from penstock.job.job import LANES
from penstock.spark.operator.cell_processor import CellProcessor
from penstock.telemetry import Failure, Restart, Stop

pytestmark = pytest.mark.xdist_group("spark")

join_module = importlib.import_module("penstock.spark.join")  # The package has the function.

FREQUENT = 3_300
"""Rows with one key in each of two streams: their product takes more than any push may have under
a small limit on memory."""
NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)


def one_key(count: int) -> pa.Table:
    rows = {"id": range(count), "ts": [NOON] * count, "x": ["boom"] * count}
    return pa.table({name: list(values) for name, values in rows.items()}, schema=SCHEMA)


@pytest.mark.parametrize("lane", LANES)
def test_an_explosion_fails_the_batch_and_the_job_goes_on(
    lane: str, spark: SparkSession, tmp_path: Path
) -> None:
    kinds = dict.fromkeys("ABC", "parquet")
    top = f'lane = "{lane}"\ntrigger = "available-now"\nlimits.memory = "1MiB"'
    case = JobCase(tmp_path, spark).write(kinds, top)
    for number, name in enumerate(kinds):
        case.deliver(name, "parquet", 1 + number)
    assert isinstance(case.run()[-1], Stop)
    for name, count in zip(kinds, (FREQUENT, FREQUENT, 1), strict=True):
        write_rows(one_key(count), tmp_path / name / "9.parquet", "parquet")
    failure = case.run()[-1]
    assert isinstance(failure, Failure)
    assert "\n" not in failure.reason
    assert "combinations at once" in failure.reason
    line = rf"in the join [ABC]\.x = [ABC]\.x, {FREQUENT:,} of {FREQUENT:,} rows of [AB] have"
    assert re.search(rf"{line} [AB]\.x = boom", failure.reason)
    for name in kinds:
        usual = some_rows(9)
        case.written[name].append(usual)
        write_rows(usual, tmp_path / name / "9.parquet", "parquet")
    again = case.run()
    assert isinstance(again[0], Restart)
    assert isinstance(again[-1], Stop)
    assert case.results() == case.expected()


def stuck(folder: Path) -> type[CellProcessor]:
    """A processor that changes state and live engine, and does not come back."""

    def act(_: CellProcessor) -> None:
        (folder / "stuck").touch()
        while (folder / "stuck").exists():
            time.sleep(0.01)

    return acting(act)


def test_a_query_that_is_stopped_in_a_batch_goes_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark cancels the tasks; workers that live on have engines of a batch that never was."""
    found = (c for c in cases("lateness", "splits", start=600) if place(c.graph(), 3).cells == 3)
    case = SparkCase(next(found), tmp_path, spark)
    case.write(1)
    case.run(3)
    case.write(1)
    with monkeypatch.context() as patched:
        patched.setattr(join_module, "CellProcessor", stuck(tmp_path))
        query = case.start(3)
        while not (tmp_path / "stuck").exists():
            assert query.isActive, query.exception()
            time.sleep(0.01)
        query.stop()
    (tmp_path / "stuck").unlink()
    case.write(len(case.case.pushes))
    case.run(3)
    case.check(case.results(), case.expected())
