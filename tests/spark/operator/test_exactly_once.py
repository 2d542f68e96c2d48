"""Nothing lost, nothing doubled: killed workers, failing queries, checkpoints of something else."""

from __future__ import annotations

import importlib
import os
import signal
from pathlib import Path

import pytest
from acting_cells import acting
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from spark_case import SparkCase, cases

from penstock.cells.placement import place
from penstock.spark.operator.cell_processor import CellProcessor

pytestmark = pytest.mark.xdist_group("spark")

join_module = importlib.import_module("penstock.spark.join")  # The package has the function.


def dying(folder: Path, deaths: int) -> type[CellProcessor]:
    """A processor whose worker is killed, some times, with state and live engine changed."""

    def act(_: CellProcessor) -> None:
        for number in range(deaths):
            try:
                (folder / f"death {number}").touch(exist_ok=False)
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)

    return acting(act)


def test_a_killed_worker_and_a_task_that_is_tried_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = (c for c in cases("lateness", "splits", start=300) if place(c.graph(), 4).cells == 4)
    case = SparkCase(next(found), tmp_path, spark)
    case.write(1)
    case.run(4)
    monkeypatch.setattr(join_module, "CellProcessor", dying(tmp_path, 2))
    case.write(len(case.case.pushes))
    case.run(4)
    assert (tmp_path / "death 1").exists()
    case.check(case.results(), case.expected())


def test_a_query_that_failed_goes_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More deaths than attempts: the query fails, and is started again."""
    found = (c for c in cases("dstream", "splits", start=400) if place(c.graph(), 3).cells == 3)
    case = SparkCase(next(found), tmp_path, spark)
    case.write(2)
    with monkeypatch.context() as patched:
        patched.setattr(join_module, "CellProcessor", dying(tmp_path, 8))
        with pytest.raises(StreamingQueryException):
            case.run(3)
    case.write(len(case.case.pushes))
    case.run(3)
    case.check(case.results(), case.expected())


def test_another_number_of_cells_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    found = (c for c in cases("splits", start=500) if place(c.graph(), 3).cells == 3)
    case = SparkCase(next(found), tmp_path, spark)
    case.write(1)
    case.run(3)
    case.write(len(case.case.pushes))
    with pytest.raises(StreamingQueryException) as refused:
        case.run(2)
    told = str(refused.value)
    assert "belongs to another query, or to the same one with another number of cells" in told
    assert "it was written with 3 cells" in told
    case.run(3)
    case.check(case.results(), case.expected())
