"""The burst on Spark: its answer computed another way is the answer, and its verdict can fail."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.spark.cells.trigger_budget import seconds_until_due
from penstock_studies.burst_streams import PLAN, BurstStreams, codes, truth
from penstock_studies.spark_burst import Row, verdict


@pytest.mark.parametrize("seed", [1, 2])
def test_the_truth_is_what_the_exact_engine_finds(seed: int) -> None:
    streams = BurstStreams(2.0, 60, 3.0, keys=2, phases=(3, 3, 6), seed=seed)
    intervals = list(streams.intervals())
    engine = penstock.Engine(streams.query, PLAN)
    found = codes(pa.concat_tables([engine.push(each) for each in intervals]))
    assert len(found) > 100
    assert np.array_equal(truth(intervals), found)


def row(**fields: object) -> Row:
    usual: Row = {
        "rows": 75,
        "seconds": 3.0,
        "owed": 0,
        "lost": 0,
        "state MiB": 2.0,
        "memory MiB": 700,
    }
    return usual | fields


STREAMS = BurstStreams(5.0, 5, 5.0, phases=(1, 2, 1))
ANSWER = np.arange(10)


def test_shed_may_miss_results_and_nothing_else() -> None:
    rows = [row(seconds=30.0), row(rows=375), row(rows=375), row()]
    assert all(holds for holds, _ in verdict("shed", rows, STREAMS, ANSWER[:4], ANSWER))
    for found in (np.array([3, 3]), np.array([3, 11])):
        assert not verdict("shed", rows, STREAMS, found, ANSWER)[0][0]
    late = [*rows[:3], row(seconds=5.1)]
    assert not verdict("shed", late, STREAMS, ANSWER, ANSWER)[1][0]
    growing = [rows[0], rows[1], row(rows=375, **{"memory MiB": 900}), row()]
    assert not verdict("shed", growing, STREAMS, ANSWER, ANSWER)[3][0]


def test_defer_must_have_all_results_and_pay_all_debts() -> None:
    rows = [row(), row(owed=9), row()]
    assert all(holds for holds, _ in verdict("defer", rows, STREAMS, ANSWER, ANSWER))
    assert not verdict("defer", rows, STREAMS, ANSWER[1:], ANSWER)[0][0]
    assert not verdict("defer", rows[:2], STREAMS, ANSWER, ANSWER)[1][0]
    swollen = [*rows, row(**{"state MiB": 5.0})]
    assert not verdict("defer", swollen, STREAMS, ANSWER, ANSWER)[2][0]


def test_a_cell_that_is_called_late_has_less_time_but_always_some() -> None:
    assert seconds_until_due(10.0, 5.0, now=1000.5) == 5.0
    assert seconds_until_due(10.0, 5.0, now=1006.0) == pytest.approx(2.5)
    assert seconds_until_due(10.0, 5.0, now=1009.9) == pytest.approx(1.25)
