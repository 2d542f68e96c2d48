"""A push whose work runs away is taken back, looked at, and made once more: one transaction."""

from __future__ import annotations

import itertools
import math
import os
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.control import controller, runaway
from penstock.engine.control.runaway import Pushes, RunawayPush, Watch, bound_of
from penstock.testing.case import Case
from penstock.testing.checks import Runs, check_case
from penstock.testing.generators import generate
from penstock.testing.knobs import Knobs

CASES = int(os.environ.get("PENSTOCK_CASES", "20"))
ROWS = 4000
SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "x", "y")])
QUERY = penstock.parse(
    """SELECT A.id AS a, B.id AS b, C.id AS c
       FROM A [RANGE 2 SECONDS], B [RANGE 2 SECONDS], C [RANGE 2 SECONDS]
       WHERE A.x = B.x AND A.y = C.y""",
    schemas=dict.fromkeys("ABC", SCHEMA),
)


def batch(second: int, explodes: bool = False, meets: int = 0) -> dict[str, pa.Table]:
    """B has few partners, C some. If it ``explodes``, all of the second half of A and B meet each
    other, and in C ``meets`` rows."""
    chance = np.random.default_rng(second)
    times = 1000 * second + np.arange(ROWS) * 1000 // ROWS
    found = {}
    for name in "ABC":
        x, y = chance.integers(0, 40 * ROWS, ROWS), chance.integers(0, ROWS // 2, ROWS)
        if explodes:
            x[ROWS // 2 :] = -1
            y[ROWS // 2 :] = -1 if name == "A" else -2
            y[ROWS - meets :] = -1
        found[name] = pa.table([times, times, x, y], schema=SCHEMA)
    return found


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A push is taken back the first time that anybody looks."""
    monkeypatch.setattr(controller, "bound_of", lambda *_: -1.0)
    monkeypatch.setattr("penstock.planning.migration_cost.CHANGE", 1e-9)


def rows(table: pa.Table) -> list[tuple[int, ...]]:
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


def joined(engine: penstock.Engine) -> int:
    return sum(each["matches"] for each in engine.metrics()["joins"])


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("execution", ["auto", "reference"])
def test_a_push_whose_second_half_explodes_is_cut(execution: str) -> None:
    made, answers = {}, {}
    for adapt in ("auto", "off"):
        plan = "auto" if adapt == "auto" else "(A B C | A:B,C B:A,C C:A,B)"
        engine = penstock.Engine(
            QUERY, plan, feedback="off", adapt=adapt, execution=execution, max_halt=0
        )
        for second in range(3):
            engine.push(batch(second))
        before = joined(engine)
        answers[adapt] = engine.push(batch(3, explodes=True))
        made[adapt] = joined(engine) - before
        after = engine.push(batch(4))
        answers[adapt] = pa.concat_tables([answers[adapt], after])
        assert (engine.metrics()["control"]["taken_back"] > 0) == (adapt == "auto")
        if adapt == "auto":
            assert any(each.reason.startswith("a push ran") for each in engine.drain_events())
            assert "the push that comes says so" in [each.reason for each in engine.history]
    assert rows(answers["auto"]) == rows(answers["off"])
    assert rows(answers["auto"])
    # What was taken back is not among them: one portion of some million combinations at most.
    assert made["off"] > (ROWS // 2) ** 2
    assert made["auto"] < made["off"] / 10


@pytest.mark.usefixtures("impatient")
def test_if_it_fails_then_nothing_has_changed() -> None:
    engine = penstock.Engine(QUERY, feedback="off", max_results=100_000)
    untouched = penstock.Engine(QUERY, feedback="off", max_results=100_000)
    for second in range(3):
        engine.push(batch(second))
        untouched.push(batch(second))
    with pytest.raises(penstock.TooManyResults, match="max_results"):
        engine.push(batch(3, explodes=True, meets=200))
    assert engine.rows == untouched.rows
    for second in (3, 4):
        assert rows(engine.push(batch(second))) == rows(untouched.push(batch(second)))


def test_a_push_within_its_bound_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "bound_of", lambda *_: 1e9)
    engine = penstock.Engine(QUERY, feedback="off")
    for second in range(3):
        engine.push(batch(second))
    engine.push(batch(3, explodes=True))
    assert not any(each.reason == "the push that comes says so" for each in engine.history)


@pytest.mark.parametrize("start", range(0, CASES, 10))
def test_random_queries(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every push is taken back at some point of its joins, and the plan changed for any gain."""
    monkeypatch.setattr(controller, "FIRST_ROWS", 1)
    monkeypatch.setattr("penstock.planning.adaptation.WORTHWHILE", 0.0)
    monkeypatch.setattr("penstock.planning.adaptation.change_cost", lambda *_: 0.0)
    taken_back = itertools.count()
    left = itertools.cycle((0, 2, 1, 4))

    class Moody:
        """A watch that raises after some portions."""

        def __init__(self, *_: Any) -> None:
            self.left = next(left)

        def __call__(self) -> None:
            self.left -= 1
            if self.left < 0:
                next(taken_back)
                raise RunawayPush

    monkeypatch.setattr(controller, "Watch", Moody)
    monkeypatch.setattr(controller, "bound_of", lambda *_: 0.0)
    events = []
    for seed in range(start, start + 10):

        def between(engine: Runs, number: int) -> Runs:
            assert isinstance(engine, penstock.Engine)
            events.extend(engine.drain_events())
            return engine

        def begin(graph: Any, case: Case) -> penstock.Engine:
            return penstock.Engine(
                graph, case.plan, lateness=case.lateness, adapt="on", execution="reference"
            )

        check_case(generate(seed, Knobs()), begin, between)
    assert next(taken_back) > 5
    assert not any(event.action == "fail" for event in events)


def test_a_bound_is_several_times_what_is_normal_and_several_looks() -> None:
    assert bound_of(None, 1.0) == math.inf
    assert bound_of(0.0, 1.0) == runaway.LOOKS
    assert bound_of(10.0, 1.0) == 10 * runaway.BEYOND
    pushes = Pushes()
    assert pushes.cost_of(10) is None
    for _ in range(100):
        pushes.note(50, 0.5)
    assert pushes.cost_of(10) == pytest.approx(0.1)
    assert pushes.largest == 50
    pushes.note(0, 0.0)
    assert pushes.largest < 50


def test_a_watch_is_by_its_own_clock() -> None:
    now = [7.0]
    watch = Watch(2.0, lambda: now[0])
    watch()
    now[0] = 9.0
    watch()
    now[0] = 9.1
    with pytest.raises(RunawayPush):
        watch()
