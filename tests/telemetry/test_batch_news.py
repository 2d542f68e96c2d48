"""News in batches: cells that run short and recover, waves of rows that fall asleep or wake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

import penstock
from penstock.telemetry import (
    Batch,
    BatchNews,
    CellBatch,
    OperatorBatch,
    OverloadChange,
    Warned,
    Wave,
)
from penstock.telemetry.batch_news import FACTOR, LEAST_ROWS
from penstock.telemetry.operator_batch import operator_batches

BATCH = Batch("t", "r", 0, 0.1, {}, 0, {}, 0, 0, 0.0)
CELL = CellBatch(0, {}, 0, {}, 0, 0, 0.0, 0.0, "live", "(A B)")


def short(*numbers: int, now: bool, cell: int = 0) -> Batch:
    """A batch of a cell with changes of these numbers, odd ones being shortages."""
    events = [
        {"number": n, "event": "short", "at": 7, "policy": "shed", "needed": 90, "allowed": 30}
        if n % 2
        else {"number": n, "event": "recovered", "at": 9, "policy": "shed", "skipped": 60}
        for n in numbers
    ]
    overload = {"short": now, "budget": "30 probes/s", "events": events}
    return replace(BATCH, cells=(replace(CELL, cell=cell, overload=overload),))


def test_a_change_of_a_cell_is_told_once() -> None:
    news = BatchNews()
    assert news.of(BATCH) == []
    (found,) = news.of(short(1, now=True))
    numbers = {"needed": 90, "allowed": 30}
    wanted = OverloadChange("t", "r", 0, 0, "short", "shed", "30 probes/s", numbers)
    assert found == wanted
    assert news.of(short(1, now=True)) == []
    told = [each for each in news.of(short(1, 2, 3, now=True)) if isinstance(each, OverloadChange)]
    assert [(each.action, each.numbers) for each in told] == [
        ("recovered", {"skipped": 60}),
        ("short", numbers),
    ]
    (other,) = news.of(short(1, now=True, cell=1))
    assert isinstance(other, OverloadChange)
    assert other.cell == 1


def test_after_a_restart_what_was_told_before_is_not_told_again() -> None:
    assert BatchNews(fresh=False).of(short(1, 2, now=False)) == []
    (still,) = BatchNews(fresh=False).of(short(1, 2, 3, now=True))
    assert isinstance(still, OverloadChange)
    assert still.action == "short"


def waves(news: BatchNews, slept: Mapping[str, int], resumed: Mapping[str, int]) -> list[Any]:
    streams = {*slept, *resumed}
    operators = tuple(
        OperatorBatch(
            "(A B)", each, slept=slept.get(each, 0), resumed=resumed.get(each, 0), asleep=5
        )
        for each in sorted(streams)
    )
    return news.of(replace(BATCH, operators=operators))


def test_a_wave_is_far_more_than_usual() -> None:
    news = BatchNews()
    assert waves(news, {"{A}": LEAST_ROWS - 1}, {}) == []
    for _ in range(40):
        assert waves(news, {"{A}": LEAST_ROWS - 1}, {}) == []
    many = int(FACTOR * LEAST_ROWS)
    assert waves(news, {"{A}": many - 10}, {}) == []
    (wave,) = waves(news, {"{A}": 5 * many, "{B}": LEAST_ROWS - 1}, {"{B}": 30})
    assert isinstance(wave, Wave)
    assert (wave.action, wave.rows, wave.by_streams) == ("suspend", 5 * many, {"{A}": 5 * many})
    assert (wave.asleep, wave.usual) == (10, many - 10)
    assert waves(news, {"{A}": 5 * many}, {"{B}": 30}) == []
    (wave,) = waves(news, {}, {"{A}": LEAST_ROWS, "{B}": 2 * LEAST_ROWS})
    assert (wave.action, wave.rows, wave.usual) == ("resume", 3 * LEAST_ROWS, 30.0)


def test_the_first_tuple_of_a_silent_stream_wakes_a_window() -> None:
    """Rows of A and B sleep as long as there is no C at all; the first C wakes its partners."""
    schema = pa.schema([("id", pa.int64()), ("x", pa.int64()), ("ts", pa.int64())])
    query = penstock.parse(
        "SELECT A.id FROM A [RANGE 1 HOUR], B [RANGE 1 HOUR], C [RANGE 1 HOUR] "
        "WHERE A.x = B.x AND A.x = C.x",
        schemas=dict.fromkeys("ABC", schema),
    )
    feedback = penstock.Feedback(adaptive=False)
    engine = penstock.Engine(query, plan="((A B) C)", feedback=feedback)
    news = BatchNews()
    told = []
    for step in range(4):
        rows = pa.table({"id": [step] * 200, "x": [1] * 200, "ts": [step * 1000] * 200})
        before = engine.metrics()
        batches = {"A": rows, "B": rows.slice(0, 2)}
        engine.push(batches if step < 3 else {**batches, "C": rows.slice(0, 1)})
        operators = operator_batches(str(engine.plan), before, engine.metrics())
        told.append(news.of(replace(BATCH, operators=operators)))
    first, last = told[0], told[-1]
    assert [each.action for each in first if isinstance(each, Wave)] == ["suspend"]
    assert told[1:3] == [[], []]
    (woken,) = [each for each in last if isinstance(each, Wave) and each.action == "resume"]
    assert woken.rows >= 600
    assert set(woken.by_streams) <= {"{A}", "{B}", "{A, B}"}


def test_files_that_are_left_out_are_told_by_name_once() -> None:
    news = BatchNews()
    files = {f"{n}.json": "corrupt" for n in range(7)}
    (first,) = news.of(replace(BATCH, skipped={"A": files}))
    assert isinstance(first, Warned)
    assert (first.about, first.sources) == ("skipped", ("A",))
    assert first.text.startswith("A: 7 left out of its files: 0.json (corrupt), 1.json")
    assert first.text.endswith("4.json (corrupt), …")
    more = {"6.json": "corrupt", "7.json": "missing"}
    (second,) = news.of(replace(BATCH, skipped={"A": more}))
    assert isinstance(second, Warned)
    assert second.text == "A: 1 left out of its files: 7.json (missing)"
    assert news.of(replace(BATCH, skipped={})) == []
