"""The controller: it follows the streams, keeps what was pinned, can be undone, and says why."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.control import controller
from penstock.engine.control.plan_event import PlanEvent
from penstock.engine.control.step_watch import StepWatch
from penstock.engine.join.stopwatch import Stopwatch
from penstock.engine.state.hash_factor import shift_for
from penstock.kernels import agreement

NAMES = ("A", "B", "C")
ROWS, WINDOW = 400, 4
SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "x", "y")])
QUERY = penstock.parse(
    f"""SELECT A.id AS a, B.id AS b, C.id AS c
        FROM A [RANGE {WINDOW} SECONDS], B [RANGE {WINDOW} SECONDS], C [RANGE {WINDOW} SECONDS]
        WHERE A.x = B.x AND A.y = C.y""",
    schemas=dict.fromkeys(NAMES, SCHEMA),
)
MANY, FEW = 10.0, 0.02


def batches(*phases: tuple[float, float], seconds: int = 8) -> Iterator[dict[str, pa.Table]]:
    """A batch per second; in each phase, a tuple of A has so many partners in B and in C."""
    chance = np.random.default_rng(3)
    for second in range(len(phases) * seconds):
        times = 1000 * second + np.arange(ROWS) * 1000 // ROWS
        partners = phases[second // seconds]
        x, y = (max(1, round(ROWS * WINDOW / each)) for each in partners)
        yield {
            name: pa.table(
                [times, times, chance.integers(0, x, ROWS), chance.integers(0, y, ROWS)],
                schema=SCHEMA,
            )
            for name in NAMES
        }


@pytest.fixture
def watchful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look whenever something is new: what a look costs does not matter."""
    monkeypatch.setattr(controller, "SHARE", 1e6)
    monkeypatch.setattr(controller, "GLANCE_WORK", 0.0)
    monkeypatch.setattr(controller, "LEAST_ROWS", 1)
    monkeypatch.setattr("penstock.planning.migration_cost.CHANGE", 1e-6)


def engine_after(*phases: tuple[float, float], **options: Any) -> penstock.Engine:
    engine = penstock.Engine(QUERY, **{"feedback": "off"} | options)
    for batch in batches(*phases):
        engine.push(batch)
    return engine


C_FIRST, B_FIRST = (MANY, FEW), (FEW, MANY)


@pytest.mark.usefixtures("watchful")
class TestWatchful:
    def test_auto_plans_from_the_first_batches_and_follows_the_streams(self) -> None:
        engine = engine_after(C_FIRST, B_FIRST, C_FIRST)
        history = engine.history
        assert all(each.action == "migrate" for each in history)
        assert (history[0].before, history[0].at) == ("(A B C)", 0.0)
        assert history[0].reason == "the first batch says so"
        # Where A looks first, at the end of each phase.
        ends = [[e.plan for e in history if e.at < end][-1] for end in (8, 16, 24)]
        assert ["((A C) B)" in end or "A:C,B" in end for end in ends] == [True, False, True]
        first = engine.history[0].numbers
        assert first["rival_cpu"] < first["cpu"]
        assert {"cost", "credit", "horizon", "memory", "rival_memory"} <= set(first)
        control = engine.metrics()["control"]
        assert 3 <= control["migrations"] == len(history) <= control["looks"]
        assert json.loads(json.dumps(control)) == control

    def test_a_given_plan_is_kept(self) -> None:
        engine = engine_after(C_FIRST, B_FIRST, plan="((A B) C)")
        assert str(engine.plan) == "((A B) C)"
        assert engine.is_pinned
        assert engine.history == ()
        assert engine.drain_events() == []

    def test_a_given_plan_is_where_it_starts_if_asked_to_adapt(self) -> None:
        engine = engine_after(C_FIRST, plan="((A B) C)", adapt="on")
        assert str(engine.plan) == "((A C) B)"

    def test_off_is_off(self) -> None:
        engine = engine_after(C_FIRST, B_FIRST, adapt="off")
        assert str(engine.plan) == "(A B C)"
        engine.unpin()
        for batch in batches(C_FIRST, seconds=2):
            engine.push(batch)
        assert str(engine.plan) == "(A B C)"

    def test_pinned_plans_stay_until_they_are_let_go(self) -> None:
        engine = penstock.Engine(QUERY, feedback="off")
        engine.pin("((A B) C)")
        stream = batches(C_FIRST, seconds=16)
        for _ in range(8):
            engine.push(next(stream))
        assert str(engine.plan) == "((A B) C)"
        engine.unpin()
        for _ in range(8):
            engine.push(next(stream))
        assert str(engine.plan) == "((A C) B)"
        assert not engine.is_pinned
        events = [
            each for each in engine.drain_events() if each.action not in ("complete", "overtaken")
        ]
        actions = [each.action for each in events]
        assert actions[:3] == ["pin", "unpin", "migrate"]

    def test_pinning_what_runs(self) -> None:
        engine = engine_after(C_FIRST)
        engine.pin()
        for batch in batches(C_FIRST, B_FIRST):
            engine.push(batch, watermark=None)
        assert str(engine.plan) == "((A C) B)"

    def test_a_change_can_be_undone(self) -> None:
        engine = engine_after(C_FIRST)
        assert str(engine.plan) == "((A C) B)"
        engine.undo()
        assert str(engine.plan) == "(A B C)"
        assert engine.is_pinned
        engine.undo()
        assert str(engine.plan) == "((A C) B)"
        assert [each.action for each in engine.history] == ["migrate", "undo", "undo"]

    def test_a_change_by_hand_pins(self) -> None:
        engine = engine_after(C_FIRST)
        engine.migrate("((A B) C)", strategy="jisc")
        for batch in batches(C_FIRST, seconds=4):
            engine.push(batch)
        assert str(engine.plan) == "((A B) C)"
        assert engine.history[-1].action == "set"

    def test_no_plan_within_the_limits_does_not_stop_a_query(self) -> None:
        engine = engine_after(C_FIRST, limits=penstock.Limits(memory=1000))
        control = engine.metrics()["control"]
        assert control["exceeded"] == ["memory"]
        assert any(each.exceeded == ("memory",) for each in engine.drain_events())
        assert engine.metrics()["results"] > 0
        assert "EXCEEDS the limit of" in engine.explain()

    def test_limits_are_kept(self) -> None:
        generous = engine_after((MANY, MANY), plan="((A B) C)", adapt="on")
        needed = generous.metrics()["control"]["latest"]["numbers"]
        assert str(generous.plan) != "(A B C)"
        tight = penstock.Limits(memory=int(0.5 * needed["memory"]))
        engine = engine_after((MANY, MANY), plan="((A B) C)", adapt="on", limits=tight)
        assert str(engine.plan).startswith("(A B C |")

    def test_a_restart_goes_on_with_plan_history_and_pin(self) -> None:
        engine = engine_after(C_FIRST, limits=penstock.Limits(cpu=0.5, memory="1GiB"))
        again = penstock.Engine.restore(QUERY, engine.checkpoint())
        assert again.plan == engine.plan
        assert again.history == engine.history
        assert not again.is_pinned
        assert again.options == engine.options
        assert again._changes.control._memory == engine._changes.control._memory
        for batch in batches(C_FIRST, B_FIRST):
            again.push(batch)
        assert str(again.plan) == "((A B) C)"
        again.pin()
        assert penstock.Engine.restore(QUERY, again.checkpoint()).is_pinned
        assert penstock.Engine.restore(QUERY, engine.checkpoint(), "(A B C)").is_pinned

    def test_a_controller_that_fails_says_so_and_rests(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: Any, **__: Any) -> None:
            raise ZeroDivisionError("a bad day")

        monkeypatch.setattr("penstock.planning.adaptation.first_look", fail)
        engine = engine_after(C_FIRST)
        (event,) = engine.drain_events()
        assert event.action == "fail"
        assert "ZeroDivisionError: a bad day" in event.reason
        assert engine.metrics()["results"] > 0
        assert str(engine.plan) == "(A B C)"

    def test_explain_analyze_tells_cpu_and_history(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ticks = itertools.count()
        monkeypatch.setattr(Stopwatch, "clock", lambda *_: 0.001 * next(ticks))
        engine = engine_after(C_FIRST, B_FIRST, execution="reference")
        metrics = engine.metrics()
        # One look at the clock per operator, push and slice: each takes a tick.
        pushes = round((engine.seconds - engine.history[-1].at) + 1)
        assert metrics["joins"][0]["seconds"] == pytest.approx(0.001 * pushes, abs=0.0011)
        assert metrics["state"]["windows"]["A"]["seconds"] > metrics["joins"][0]["seconds"]
        assert metrics["seconds"] > sum(each["seconds"] for each in metrics["joins"])
        told = engine.explain(analyze=True)
        assert "history       " in told
        assert " → ((A C) B)  the first batch says so, CPU " in told
        assert "  the gain repays the change, CPU " in told
        assert "why  chosen by the controller: the gain repays the change, at " in told
        assert "history" not in engine.explain()

    def test_nothing_is_planned_before_all_streams_have_come(self) -> None:
        engine = penstock.Engine(QUERY)
        for batch in batches(C_FIRST):
            engine.push({"A": batch["A"], "B": batch["B"]})
        assert engine.metrics()["control"]["looks"] == 0


def test_looks_keep_to_their_budget() -> None:
    """At rest, after the first looks, one per four hundred times its cost."""
    engine = penstock.Engine(QUERY, feedback="off")
    for batch in batches((0.5, 0.5), seconds=60):
        engine.push(batch)
    assert 1 <= engine.metrics()["control"]["looks"] <= 3


def test_streams_that_change_all_the_time_cost_no_more_looks_than_the_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each look takes five milliseconds, each push one."""
    engine = penstock.Engine(QUERY, feedback="off")
    for batch in batches((0.5, 0.5), seconds=6):
        engine.push(batch)
    control = engine._changes.control
    before, looks = control.looks_cpu, control.looks
    clock = itertools.count(step=0.005)
    monkeypatch.setattr(control, "clock", lambda: next(clock))
    monkeypatch.setattr(control, "_price", 0.005)
    monkeypatch.setattr(control._watch, "glance", lambda *_: (1.0, True, 0.0))
    for _ in range(20_000):
        control.after_push(engine._changes, 1, 0.001)
    spent = control.looks_cpu - before
    assert spent == pytest.approx(0.005 * (control.looks - looks))
    assert 0.1 < spent <= controller.SHARE * 20.0 + controller.SAVED * 0.005


def test_a_plan_that_has_become_dear_is_looked_at_without_a_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(controller, "SAVED", 0.0)
    monkeypatch.setattr(controller, "GLANCE_WORK", 0.0)
    monkeypatch.setattr("penstock.planning.migration_cost.CHANGE", 1e-6)
    monkeypatch.setattr("penstock.engine.control.step_watch.MATCH", 1e-5)
    engine = engine_after(*[C_FIRST] * 4, plan="((A C) B)", adapt="on")
    # One at the first batch; and while the windows fill, work grows.
    assert engine.metrics()["control"]["looks"] <= 2
    engine = engine_after(C_FIRST, B_FIRST, plan="((A C) B)", adapt="on")
    (change,) = engine.history
    assert change.plan == "((A B) C)" or "A:B,C" in change.plan
    assert 8 < change.at < 14


def test_excess_is_work_beyond_the_normal() -> None:
    engine = penstock.Engine(QUERY, plan="(A B C)", feedback="off")
    watch = StepWatch()
    told = []
    for number, batch in enumerate(batches(C_FIRST, (10 * MANY, FEW), C_FIRST)):
        engine.push(batch)
        if number == 4:
            watch.reset()
        told.append(watch.glance(engine.trees, 3 * ROWS).excess)
    assert told[5:8] == [0.0] * 3
    assert 0 < told[10] < told[12] < told[15]
    assert told[23] < told[16]


def test_given_statistics_plan_the_start() -> None:
    shares = {("A", "B"): 1e-2, ("A", "C"): 1e-6}
    statistics = penstock.Statistics(dict.fromkeys(NAMES, 1000.0), shares)
    assert str(penstock.Engine(QUERY, statistics=statistics).plan) == "((A C) B)"
    assert not penstock.Engine(QUERY, statistics=statistics).is_pinned
    with pytest.raises(penstock.NoQualifiedPlan, match="memory"):
        penstock.Engine(QUERY, statistics=statistics, limits=penstock.Limits(memory=1000))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"adapt": "maybe"}, "adapt='maybe' does not exist; choose from: 'auto', 'on', 'off'"),
        ({"limits": 3}, "limits are penstock.Limits, not int"),
        ({"limits": {"cpus": 3}}, "no limit is called 'cpus'"),
    ],
)
def test_mistakes(options: dict[str, Any], message: str) -> None:
    with pytest.raises(penstock.OptionError, match=message):
        penstock.Engine(QUERY, **options)


def test_there_must_be_something_to_undo() -> None:
    with pytest.raises(penstock.PenstockError, match="nothing to undo"):
        penstock.Engine(QUERY).undo()


def test_events_survive_json() -> None:
    event = PlanEvent("keep", "(A B)", "(A B)", 1.5, 7, "why", "(B A)", ("cpu",), {"cpu": 0.5})
    assert PlanEvent.from_json(json.loads(json.dumps(event.to_json()))) == event


def test_the_watch_tells_change_from_noise() -> None:
    engine = penstock.Engine(QUERY, plan="(A B C)", feedback="off")
    watch = StepWatch()
    told = []
    for number, batch in enumerate(batches(C_FIRST, C_FIRST, (2 * MANY, FEW))):
        engine.push(batch)
        if number == 4:
            watch.reset()
        work, changed, _ = watch.glance(engine.trees, 3 * ROWS)
        assert work > 0
        told.append(changed)
    assert not any(told[4:16])
    assert any(told[16:20])
    watch.reset()
    assert not watch.glance(engine.trees, 0).changed


@pytest.mark.parametrize("domain", [1, 7, 10**6, 2**62])
def test_agreeing_pairs_are_counted(domain: int) -> None:
    """The readable twin: compare everything with everything."""
    chance = np.random.default_rng(domain)
    one, two = chance.integers(-domain, domain, 300), chance.integers(-domain, domain, 200)
    two[:50] = one[:50]
    keys, counts = np.empty(1024, np.int64), np.zeros(1024, np.int64)
    shift = shift_for(1024)
    agreement.tally(one, keys, counts, shift)
    found = agreement.agreeing(two, keys, counts, shift)
    assert found.tolist() == (one[:, None] == two[None, :]).sum(axis=0).tolist()
