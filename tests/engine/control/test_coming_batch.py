"""A batch is looked at before it is joined: the first that has a row of every stream, and large
ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.control import controller
from penstock.plan.stream_set import StreamSet

COLUMNS = ("ts", "ab", "bc", "cd", "da")
SCHEMA = pa.schema([(name, pa.int64()) for name in COLUMNS])
CYCLE = penstock.parse(
    f"""SELECT A.ts FROM {", ".join(f"{name} [RANGE 10 SECONDS]" for name in "ABCD")}
        WHERE A.ab = B.ab AND B.bc = C.bc AND C.cd = D.cd AND A.da = D.da""",
    schemas=dict.fromkeys("ABCD", SCHEMA),
)
FAN_OUT_FIRST = (2, 3, 1000, 1000)
FAN_OUT_LAST = (1000, 1000, 2, 3)


def batch(second: int, rows: int, values: tuple[int, ...] = FAN_OUT_FIRST) -> dict[str, pa.Table]:
    """``rows`` of each stream; the columns have so many ``values``."""
    chance = np.random.default_rng(second)
    times = 1000 * second + np.arange(rows, dtype=np.int64) * 1000 // rows
    return {
        name: pa.table([times, *(chance.integers(0, each, rows) for each in values)], schema=SCHEMA)
        for name in "ABCD"
    }


def matches_of(engine: penstock.Engine) -> int:
    return sum(each["matches"] for each in engine.metrics()["joins"])


Batches = Mapping[str, pa.Table]


def _few(first: Batches) -> list[Batches]:
    return [{name: each.slice(0, 20) for name, each in first.items()}]


def _without_d(first: Batches) -> list[Batches]:
    return [{name: each for name, each in first.items() if name != "D"}]


def _one_by_one(first: Batches) -> list[Batches]:
    return [{name: each.slice(0, 200)} for name, each in list(first.items())[:3]]


@pytest.mark.parametrize("before", [_few, _without_d, _one_by_one])
def test_pushes_that_say_nothing_do_not_forfeit_the_look(before: object) -> None:
    assert callable(before)
    answers: dict[str, list[Any]] = {}
    for adapt in ("auto", "off"):
        engine = penstock.Engine(CYCLE, feedback="off", adapt=adapt)
        answers[adapt] = []
        for push in [*before(batch(0, 300)), batch(1, 500)]:
            answers[adapt] += engine.push(push)["ts"].to_pylist()
        if adapt == "auto":
            assert engine.history[0].reason == "the first batch says so"
            made = matches_of(engine)
    assert sorted(answers["auto"]) == sorted(answers["off"])
    assert made < matches_of(engine) / 5


def test_rows_in_windows_count() -> None:
    """D comes alone: what it meets lies in the windows."""
    engine = penstock.Engine(CYCLE, feedback="off")
    first = batch(0, 500)
    engine.push({name: first[name] for name in "ABC"})
    found = engine._changes.coming_statistics({"D": batch(1, 500)["D"]})
    assert found is not None
    shares = found.statistics.selectivities
    assert shares[StreamSet.of("A", "B")] == pytest.approx(1 / 2, rel=0.1)
    assert shares[StreamSet.of("B", "C")] == pytest.approx(1 / 3, rel=0.1)
    assert shares[StreamSet.of("C", "D")] == pytest.approx(1 / 1000, rel=0.5)
    assert found.seconds == pytest.approx(1.0, abs=0.01)


def test_old_and_new_rows_have_their_weight() -> None:
    """Nine of ten rows lie in the window, more than are sampled, and none of them matches."""
    engine = penstock.Engine(CYCLE, feedback="off", adapt="off")
    old = batch(0, 18_000, (1, 1, 1, 1))
    apart = {"A": 7, "B": 8, "C": 9, "D": 10}
    for name, value in apart.items():
        ones = pa.array(np.full(18_000, value))
        engine.push({name: pa.table([old[name]["ts"], *[ones] * 4], schema=SCHEMA)})
    found = engine._changes.coming_statistics(batch(1, 2_000, (1, 1, 1, 1)))
    assert found is not None
    # Recent rows are the new ones: each meets all new rows of the other, a tenth of its window.
    share = found.statistics.selectivities[StreamSet.of("A", "B")]
    assert 0.02 < share < 0.11
    assert found.statistics.rates["A"] == pytest.approx(2_000, rel=0.05)


def test_texts_are_numbered_as_in_the_windows() -> None:
    schema = pa.schema([("ts", pa.int64()), ("x", pa.string())])
    query = penstock.parse(
        "SELECT A.ts AS a FROM A [RANGE 9 SECONDS], B [RANGE 9 SECONDS] WHERE A.x = B.x",
        schemas=dict.fromkeys("AB", schema),
    )
    engine = penstock.Engine(query)
    keys = [f"key {number % 5}" for number in range(300)]
    engine.push({"A": pa.table([range(300), keys], schema=schema)})
    found = engine._changes.coming_statistics(
        {"B": pa.table([range(300, 600), keys[::-1]], schema=schema)}
    )
    assert found is not None
    assert found.statistics.selectivities[StreamSet.of("A", "B")] == pytest.approx(0.2)


def test_a_push_much_larger_than_the_latest_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its fan-out is another one than that of the pushes before it."""
    monkeypatch.setattr(controller, "LOOKS", 0.0)
    monkeypatch.setattr("penstock.planning.migration_cost.CHANGE", 1e-9)
    made, answers = {}, {}
    for adapt in ("auto", "off"):
        engine = penstock.Engine(CYCLE, feedback="off", adapt=adapt)
        for second in range(3):
            engine.push(batch(second, 300, FAN_OUT_LAST))
        before = matches_of(engine)
        monkeypatch.setattr(controller, "SHARE", 1e-9)  # After a push there is no look.
        answers[adapt] = sorted(engine.push(batch(3, 1500)).column("ts").to_pylist())
        made[adapt] = matches_of(engine) - before
        if adapt == "auto":
            assert "the push that comes says so" in [each.reason for each in engine.history]
    assert answers["auto"] == answers["off"]
    assert made["auto"] < made["off"] / 3


def test_pushes_like_those_before_them_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = penstock.Engine(CYCLE, feedback="off")
    looks: list[Any] = []
    look = engine._changes.coming_statistics

    def counted(given: Batches) -> Any:
        looks.append(given)
        return look(given)

    monkeypatch.setattr(engine._changes, "coming_statistics", counted)
    monkeypatch.setattr(controller, "LOOKS", 0.0)
    monkeypatch.setattr(controller, "bound_of", lambda *_: math.inf)
    for second in range(6):
        engine.push(batch(second, 300 + second, FAN_OUT_LAST))
    assert len(looks) == 1
