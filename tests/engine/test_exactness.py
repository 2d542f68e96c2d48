"""Any way of running a query gives the oracle's answer, push by push.

Random queries, windows, types, plans, batch splits and orders within the lateness; besides that
each way of running below: nested loops, checkpoints and restarts (also with another plan), pushes
that fail half way, demand feedback of every kind, and changes of plan. ``PENSTOCK_CASES`` sets how
many cases each way gets; a failing seed is printed as code, to become a test in
``test_regressions.py``.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.engine.compiled.compiled_push import CompiledPush
from penstock.engine.completion import asked_values, missing
from penstock.engine.control import eddy
from penstock.engine.feedback import feedback_policy, look_budget
from penstock.engine.feedback.feedback import Feedback
from penstock.engine.join import join_step
from penstock.engine.join.join_step import JoinStep
from penstock.engine.migration import preparation
from penstock.engine.migration.change_of_plan import STRATEGIES
from penstock.engine.state import arrival, spare_memory
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.rows import Rows
from penstock.engine.tree import tree_completion
from penstock.plan.plan import EDDIES
from penstock.query.window import Unbounded
from penstock.testing.case import Case
from penstock.testing.compare import assert_same_rows
from penstock.testing.generators import generate
from penstock.testing.knobs import FEATURES, Knobs
from penstock.testing.oracle import Oracle
from penstock.testing.random_plan import random_plan

CASES = int(os.environ.get("PENSTOCK_CASES", "120"))
BLOCK = 20

Pushed = Mapping[str, pa.Table]
BetweenPushes = Callable[[penstock.Engine, random.Random, Pushed], penstock.Engine]


def check(
    seed: int,
    knobs: Knobs | None = None,
    between: BetweenPushes | None = None,
    **options: Any,
) -> None:
    """Run the case of ``seed``; ``between`` may do something to the engine before each push."""
    case = generate(seed, knobs or Knobs())
    graph = case.graph()
    oracle = Oracle(graph, case.lateness)
    chance = random.Random(seed)
    engine = penstock.Engine(graph, plan=case.plan, lateness=case.lateness, **options)
    for number, batches in enumerate(case.pushes):
        if between is not None:
            engine = between(engine, chance, batches)
        answer = engine.push(batches, watermark=case.watermark(number))
        expected = oracle.push(batches, case.watermark(number))
        compare(case, seed, answer, expected, oracle, f"push {number}")
        metrics = engine.metrics()
        assert {s: each["late"] for s, each in metrics["sources"].items()} == oracle.late
        assert {s: each["null_time"] for s, each in metrics["sources"].items()} == oracle.null_time
    if between is not None:
        engine = between(engine, chance, {})
    answer = engine.finish()
    compare(case, seed, answer, oracle.finish(), oracle, "finish")


def compare(
    case: Case, seed: int, answer: pa.Table, expected: list[Any], oracle: Oracle, where: str
) -> None:
    assert_same_rows(
        answer,
        expected,
        oracle.graph,
        instants=oracle.instants,
        context=f"seed {seed}, {where}\n{case}",
    )


def seeds(first: int) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("start", range(first, first + CASES, BLOCK))


def restart(engine: penstock.Engine, chance: random.Random, batches: Pushed) -> penstock.Engine:
    """Now and then, go on from a checkpoint, sometimes with another plan."""
    del batches
    if chance.random() < 0.4:
        plan = None
        if chance.random() < 0.5:
            plan = random_plan(chance, list(engine.query.aliases))
        blob = engine.checkpoint()
        engine = penstock.Engine.restore(engine.query, blob, plan=plan)
        assert engine.checkpoint() is not None
    return engine


class Sabotage(Exception):  # noqa: N818 - what happened
    """Not one of ours: a failure from anywhere."""


def fail_sometimes(
    engine: penstock.Engine, chance: random.Random, batches: Pushed
) -> penstock.Engine:
    """Push the batch that comes next, but let the push fail somewhere; at the latest at its end."""
    if chance.random() < 0.5:
        return engine
    countdown = chance.randrange(1, 8)

    def failing(original: Callable[..., Any], always: bool) -> Callable[..., Any]:
        def wrapper(*arguments: Any) -> Any:
            nonlocal countdown
            countdown -= 1
            if countdown == 0:
                raise Sabotage
            result = original(*arguments)
            if always or countdown == 1:
                raise Sabotage
            return result

        return wrapper

    with pytest.MonkeyPatch.context() as patch:
        for owner, name, always in (
            (LeafWindow, "append", False),
            (JoinStep, "apply", False),
            (CompiledPush, "_push", False),
            (type(engine._join.output), "stage", True),
        ):
            patch.setattr(owner, name, failing(getattr(owner, name), always))
        before = engine.metrics()
        with pytest.raises(Sabotage):
            engine.push(batches)
    after = engine.metrics()
    for key in ("pushes", "rows", "results", "late", "watermark", "now", "sources"):
        assert after[key] == before[key]
    for part in ("windows", "joins"):
        states = [m["state"][part] for m in (before, after)]
        for name, each in states[0].items():
            # What is owed later is owed against complete states: these are completed beforehand.
            if each.get("completion", 1) == states[1][name].get("completion", 1):
                assert each["rows"] == states[1][name]["rows"], name
    return engine


def toggle(engine: penstock.Engine, chance: random.Random, batches: Pushed) -> penstock.Engine:
    """Turn guards on and off at random; now and then let a push fail, or restart."""
    for tree in engine.trees:
        tree.switch_guards(lambda: chance.random() < 0.3, chance.choice(["index", "bloom"]))
    if chance.random() < 0.3:
        engine = fail_sometimes(engine, chance, batches)
    return restart(engine, chance, batches) if chance.random() < 0.2 else engine


def complete_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing is also completed two rows at a time, whatever that costs, in memory that
    was another state's."""
    for name, value in (("_SAMPLE_ROWS", 2), ("LEAN", 1e9)):
        monkeypatch.setattr(missing, name, value)
    monkeypatch.setattr(tree_completion, "_ROWS_WORTH_COMPLETING", 0)
    monkeypatch.setattr(tree_completion, "COMPLETED_PER_ROW", 0)
    monkeypatch.setattr(asked_values, "_FEWEST_PLACES", 2)
    monkeypatch.setattr(spare_memory, "_FEWEST_BYTES", 1)


def possible_strategies(engine: penstock.Engine) -> list[str]:
    """All, but an old plan over windows without an end never ends either."""
    streams = [stream for block in engine.query.blocks for stream in block.streams]
    endless = any(isinstance(stream.window, Unbounded) for stream in streams)
    return [each for each in STRATEGIES if not (endless and each == "parallel-track")]


def migrate(engine: penstock.Engine, chance: random.Random, batches: Pushed) -> penstock.Engine:
    """Go on with another plan; also several times, with failed pushes and restarts in between."""
    while chance.random() < 0.4:
        plan = random_plan(chance, list(engine.query.aliases))
        engine.migrate(plan, strategy=chance.choice(possible_strategies(engine)))
    if chance.random() < 0.2:
        engine = fail_sometimes(engine, chance, batches)
    return restart(engine, chance, batches) if chance.random() < 0.1 else engine


def wander(engine: penstock.Engine, chance: random.Random, batches: Pushed) -> penstock.Engine:
    """Go on with an eddy, or another one, or none, or the routes of before; failed pushes and
    restarts in between."""
    draw = chance.random()
    if engine.routing is None or draw < 0.3:
        tree = random_plan(chance, list(engine.query.aliases))
        plan = chance.choice([*EDDIES, tree, f"stairs {tree}", f"stairs-lazy {tree}"])
        engine.migrate(plan, strategy=chance.choice(possible_strategies(engine)))
    elif draw < 0.4 and engine.history:
        engine.undo()
    elif draw < 0.5:
        engine.pin() if not engine.is_pinned else engine.unpin()
    if chance.random() < 0.2:
        engine = fail_sometimes(engine, chance, batches)
    return restart(engine, chance, batches) if chance.random() < 0.1 else engine


FORMS = {
    "index": Feedback(adaptive=False),
    "bloom": Feedback(adaptive=False, detection="bloom"),
    "level 1": Feedback(adaptive=False, level=1),
    "adaptive": Feedback(),
}
CLIQUES = FEATURES - {"except", "group by", "dstream", "rstream", "key types"}


@seeds(0)
def test_any_query_any_plan_any_split(start: int) -> None:
    for seed in range(start, start + BLOCK):
        check(seed)


@seeds(5_000)
def test_few_candidates_at_once(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_step, "_CANDIDATES", 3)
    for seed in range(start, start + BLOCK):
        check(seed, between=fail_sometimes if seed % 2 else None)


@seeds(10_000)
def test_nested_loops(start: int) -> None:
    for seed in range(start, start + BLOCK):
        check(seed, join="nested-loops")


@seeds(20_000)
def test_restarts_at_any_point(start: int) -> None:
    for seed in range(start, start + BLOCK):
        check(seed, between=restart)


@seeds(30_000)
def test_cliques_over_small_domains(start: int) -> None:
    knobs = Knobs(features=CLIQUES, streams=(4, 6), domain=2, tuples=8)
    for seed in range(start, start + BLOCK):
        check(seed, knobs)


@seeds(40_000)
def test_failed_pushes_change_nothing(start: int) -> None:
    for seed in range(start, start + BLOCK):
        check(seed, between=fail_sometimes)


@seeds(50_000)
def test_large_pushes_are_worked_off_in_slices(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival, "SLICE", 4)
    features = FEATURES - {"tiny pushes"}
    for seed in range(start, start + BLOCK):
        check(seed, Knobs(features=features), between=fail_sometimes if seed % 2 else None)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards are reviewed after every few rows, and come on if they save anything."""
    for name in ("_FIRST_ROWS", "_INTERVAL_ROWS", "_SETTLING_ROWS"):
        monkeypatch.setattr(feedback_policy, name, 3)
    for name, value in (("_MOST_PATIENCE", 1), ("MARGIN", 0.0), ("LOOK", 0.0), ("PUT_BACK", 0.0)):
        monkeypatch.setattr(feedback_policy, name, value)
    monkeypatch.setattr(feedback_policy, "WORTH_A_LOOK", 0.0)
    monkeypatch.setattr(look_budget, "FIRST", float("inf"))


@pytest.mark.parametrize("seed", [87, 145])
def test_feedback_found_wanting_before(seed: int) -> None:
    """87: rows that wake are out of order. 145: what a sleeping static row might match was lost."""
    check(seed, feedback=FORMS["index"])


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("form", FORMS)
@seeds(60_000)
def test_feedback(start: int, form: str) -> None:
    for seed in range(start, start + BLOCK, 4):
        join = "nested-loops" if seed % 5 == 0 else "hash"
        between = fail_sometimes if seed % 3 else restart
        check(seed, between=between, feedback=FORMS[form], join=join)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("form", FORMS)
@seeds(70_000)
def test_feedback_on_cliques(start: int, form: str) -> None:
    for seed in range(start, start + BLOCK, 8):
        knobs = Knobs(features=CLIQUES, streams=(4, 6), domain=2 + seed % 2, tuples=10)
        check(seed, knobs, feedback=FORMS[form])


@seeds(80_000)
def test_guards_that_come_and_go(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival, "SLICE", 4)
    for seed in range(start, start + BLOCK):
        check(seed, between=toggle, feedback=Feedback())


@seeds(85_000)
def test_guards_that_come_and_go_in_cliques(start: int) -> None:
    """Both inputs of a join may wait, one after the other, and the order of the inputs changes."""
    for seed in range(start, start + BLOCK, 4):
        knobs = Knobs(features=CLIQUES, streams=(4, 6), domain=2 + seed % 2, tuples=10)
        check(seed, knobs, between=toggle, feedback=Feedback())


@seeds(90_000)
def test_migrations(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(start, start + BLOCK):
        if seed % 4 == 2:  # Most changes of plan are prepared for a while.
            for name, rows in (("_ROWS_PER_PUSH", 2), ("_ROWS_PER_ROW", 1), ("_ROWS_PER_MATCH", 0)):
                monkeypatch.setattr(preparation, name, rows)
        else:
            monkeypatch.undo()
        if seed % 4 in (1, 2):
            complete_beside(monkeypatch)
        feedback = FORMS["index"] if seed % 3 == 0 else "off" if seed % 3 == 1 else "jit"
        knobs = None
        if seed % 2:
            knobs = Knobs(features=CLIQUES, streams=(3, 5), domain=2, tuples=10)
        check(seed, knobs, between=migrate, feedback=feedback)


@seeds(110_000)
def test_rows_that_get_new_numbers_while_states_are_incomplete(
    start: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows and states are packed as soon as any row is dead."""
    monkeypatch.setattr(Rows, "is_worth_a_check", lambda rows: len(rows) > 0)

    def pack(rows: Rows, alive: Any) -> bool:
        if len(alive) < len(rows):
            rows.keep_only(alive)
            return True
        return False

    monkeypatch.setattr(Rows, "pack", pack)
    complete_beside(monkeypatch)
    for seed in range(start, start + BLOCK, 3):
        knobs = Knobs(features=CLIQUES, streams=(3, 5), domain=2, tuples=10) if seed % 2 else None
        check(seed, knobs, between=migrate, feedback="off" if seed % 4 else "jit")


@pytest.mark.usefixtures("eager")
@seeds(100_000)
def test_eddies(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, rows in (("_FIRST", 2), ("_INTERVAL", 3), ("_PER_STREAM", 0), ("_LONGEST", 1)):
        monkeypatch.setattr(eddy, name, rows)
    monkeypatch.setattr(eddy, "_GAIN", 1.0)
    for seed in range(start, start + BLOCK):
        feedback = FORMS["index"] if seed % 3 == 0 else "off" if seed % 3 == 1 else "jit"
        knobs = None
        if seed % 2:
            knobs = Knobs(features=CLIQUES, streams=(3, 5), domain=2, tuples=10)
        limits = penstock.Limits(memory=4_000) if seed % 4 == 1 else None
        check(seed, knobs, between=wander, feedback=feedback, limits=limits)
