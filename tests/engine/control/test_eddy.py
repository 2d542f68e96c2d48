"""Eddies: routes follow the streams, and answers do not follow the routes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.control import eddy, routing
from penstock.engine.feedback.feedback import Feedback
from penstock.plan.notation import read
from penstock.plan.plan import EDDIES, Join

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("x", pa.int64()), ("y", pa.int64())])

every_eddy = pytest.mark.parametrize("kind", EDDIES)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Routes are reviewed after every few rows."""
    for name, rows in (("_FIRST", 4), ("_INTERVAL", 8), ("_PER_STREAM", 1), ("_LONGEST", 1)):
        monkeypatch.setattr(eddy, name, rows)


class Run:
    """A chain B - A - C: B meets A on x, C meets A on y. A fixed plan runs beside the eddy.

    (Random queries under eddies are compared with the oracle in ``test_exactness.py``.)
    """

    def __init__(self, plan: str, window: int = 100, **options: Any) -> None:
        self.graph = penstock.parse(
            f"""SELECT A.id AS a, B.id AS b, C.id AS c
            FROM A [RANGE {window} MILLISECONDS], B [RANGE {window} MILLISECONDS],
                 C [RANGE {window} MILLISECONDS] WHERE A.x = B.x AND A.y = C.y""",
            schemas=dict.fromkeys("ABC", SCHEMA),
        )
        self.engine = penstock.Engine(self.graph, plan=plan, **options)
        self.fixed = penstock.Engine(self.graph, plan="((A B) C)", feedback="off")
        self.random = np.random.default_rng(7)
        self.clock = 0

    def push(self, rows: int, x: int, y: int) -> int:
        """``rows`` of each stream, a millisecond apart, with ``x`` and ``y`` different values."""
        times = np.arange(self.clock, self.clock + rows)
        self.clock += rows
        batches = {
            s: pa.table(
                [times, times, self.random.integers(0, x, rows), self.random.integers(0, y, rows)],
                schema=SCHEMA,
            )
            for s in "ABC"
        }
        answer = self.engine.push(batches)
        order = [(name, "ascending") for name in answer.column_names]
        assert answer.sort_by(order).equals(self.fixed.push(batches).sort_by(order))
        return int(answer.num_rows)

    @property
    def first_visits(self) -> dict[str, str]:
        """The stream that rows of each stream visit first."""
        root = self.engine.plan.root
        assert isinstance(root, Join)
        names = [min(each.streams) for each in root.inputs]
        return {n: names[order[0]] for n, order in zip(names, root.orders, strict=True)}


@pytest.mark.usefixtures("eager")
def test_rows_visit_the_most_selective_window_first_and_routes_follow_the_streams() -> None:
    run = Run("cacq", feedback="off")
    for _ in range(3):
        run.push(40, x=4, y=200)
    assert run.first_visits == {"A": "C", "B": "A", "C": "A"}
    for _ in range(6):
        run.push(40, x=200, y=4)
    assert run.first_visits == {"A": "B", "B": "A", "C": "A"}


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("kind", ["stairs", "stairs-lazy"])
def test_stairs_hold_the_smaller_join(kind: str) -> None:
    run = Run(kind, feedback="off")
    for _ in range(3):
        run.push(40, x=4, y=200)
    assert set(run.engine.metrics()["state"]["joins"]) == {"{A, C}"}
    for _ in range(6):
        run.push(40, x=200, y=4)
    assert set(run.engine.metrics()["state"]["joins"]) == {"{A, B}"}


@pytest.mark.usefixtures("eager")
def test_eager_promotion_leaves_nothing_missing_and_lazy_promotion_does() -> None:
    """Demotion is the same for both: the state of A and B goes."""
    for kind, missing, promoted in (("stairs", 0, True), ("stairs-lazy", 1, False)):
        run = Run(kind, feedback="off")
        run.push(40, x=2, y=40)
        (tree,) = run.engine.trees
        assert set(run.engine.metrics()["state"]["joins"]) == {"{A, C}"}
        assert len(tree.missing) == missing
        assert (run.engine.metrics()["state"]["joins"]["{A, C}"]["rows"] > 0) == promoted
        run.push(20, x=2, y=40)


@pytest.mark.usefixtures("eager")
def test_steady_streams_keep_their_routes() -> None:
    run = Run("cacq", feedback="off")
    run.push(50, x=10, y=50)
    assert run.engine._changes.eddy is not None
    assert run.engine._changes.eddy.changes == 1  # From no routes at all.
    plan = run.engine.plan
    for _ in range(10):
        run.push(10, x=10, y=50)
    assert run.engine.plan == plan


@pytest.mark.usefixtures("eager")
def test_guards_and_those_who_wait_survive_a_change_of_route() -> None:
    """JIT section V: whatever the route, a row without a partner is in no result."""
    run = Run("cacq", feedback=Feedback(adaptive=False))
    run.push(30, x=4, y=300)
    (tree,) = run.engine.trees
    guards = tree.guarding.guards
    asleep = run.engine.metrics()["feedback"]["asleep"]
    assert asleep > 0
    routes = run.engine.plan
    run.engine.trees[0].reroute(read("(A B C | A:B,C B:A,C C:A,B)").root)  # type: ignore[arg-type]
    assert routes != read("(A B C | A:B,C B:A,C C:A,B)")
    assert run.engine.trees[0].guarding.guards is guards
    assert run.engine.metrics()["feedback"]["asleep"] == asleep
    for _ in range(5):
        run.push(30, x=4, y=100)
    assert run.engine.metrics()["feedback"]["resumed"] > 0


@pytest.mark.usefixtures("eager")
@every_eddy
@pytest.mark.parametrize("feedback", ["off", "jit", Feedback(adaptive=False)], ids=str)
def test_streams_that_swap_their_selectivities(kind: str, feedback: Any) -> None:
    run = Run(kind, feedback=feedback)
    results = 0
    for number in range(24):
        results += run.push(25, *((60, 6) if number % 12 < 6 else (6, 60)))
    assert results > 100
    assert run.engine._changes.eddy is not None
    assert run.engine._changes.eddy.changes > 1


@pytest.mark.usefixtures("eager")
@every_eddy
def test_a_restart_goes_on_with_the_eddy(kind: str) -> None:
    run = Run(kind)
    run.push(30, x=4, y=40)
    blob = run.engine.checkpoint()
    before = run.engine
    run.engine = penstock.Engine.restore(run.graph, blob)
    assert run.engine.routing == kind
    assert run.engine.plan == before.plan  # The routes, too.
    assert run.engine.history == before.history
    assert run.engine.metrics()["control"]["eddy"] == before.metrics()["control"]["eddy"]
    assert not run.engine.is_pinned
    run.push(30, x=4, y=40)
    by_name = penstock.Engine.restore(run.graph, blob, plan=kind)
    assert by_name.plan == before.plan
    other = next(each for each in EDDIES if each != kind)
    assert penstock.Engine.restore(run.graph, blob, plan=other).routing == other


@pytest.mark.usefixtures("eager")
@every_eddy
def test_into_an_eddy_and_out_of_it(kind: str) -> None:
    run = Run("((A B) C)")
    run.push(30, x=4, y=40)
    run.engine.migrate(kind, strategy="jisc")
    run.push(30, x=4, y=40)
    run.engine.migrate("((B C) A)", strategy="parallel-track")
    run.push(30, x=4, y=40)
    run.engine.migrate(kind, strategy="jisc")
    run.push(30, x=4, y=40)
    run.engine.migrate("(A B C)", strategy="jisc")
    assert run.engine.routing is None
    assert str(run.engine.plan) == "(A B C)"
    run.push(30, x=4, y=40)


def swapped(run: Run) -> str:
    """Let the eddy change its routes; the plan before the last change."""
    for _ in range(3):
        run.push(40, x=4, y=200)
    for _ in range(6):
        run.push(40, x=200, y=4)
    return run.engine.history[-1].before


@pytest.mark.usefixtures("eager")
@every_eddy
def test_a_route_is_an_event_with_its_reasons(kind: str) -> None:
    run = Run(kind, feedback="off")
    swapped(run)
    route = run.engine.history[-1]
    assert route.action == "route"
    assert route.plan == str(run.engine.plan) == str(run.engine.running_plan)
    assert route.plan.startswith(f"{kind} (")
    assert route.strategy == {"cacq": "reroute", "stairs": "moving-state"}.get(kind, "jisc")
    eddy = run.engine.metrics()["control"]["eddy"]
    assert eddy["kind"] == kind
    assert eddy["changes"] == len(run.engine.history) <= eddy["reviews"]
    if kind == "cacq":
        assert route.numbers["partial_results"] < 0.9 * route.numbers["partial_results_before"]
        assert eddy["promoted"] == eddy["demoted"] == 0
    else:
        assert route.numbers["state_rows"] < 0.8 * route.numbers["state_rows_before"]
        assert route.numbers["promoted"] == route.numbers["demoted"] == 1
        assert "demotes {A, C}; promotes {A, B}" in route.reason
        assert eddy["promoted"] == eddy["demoted"] == eddy["changes"]
    assert route in run.engine.drain_events()
    text = run.engine.explain(analyze=True)
    assert text.startswith(f"plan {route.plan}\nwhy  routed by the eddy: {route.reason}")
    assert f"eddy          {kind}: {eddy['reviews']} reviews" in text
    assert f"{route.before} → {route.plan}  {route.reason}" in text


@pytest.mark.usefixtures("eager")
@every_eddy
def test_a_route_that_is_undone_is_held_until_somebody_lets_go(kind: str) -> None:
    run = Run(kind, feedback="off")
    before = swapped(run)
    better = run.engine.plan
    run.engine.undo()
    assert str(run.engine.plan) == before
    assert run.engine.is_pinned
    assert run.engine.history[-1].action == "undo"
    for _ in range(4):
        run.push(40, x=200, y=4)
    assert str(run.engine.plan) == before
    assert "its routes are held" in run.engine.explain(analyze=True)
    run.engine.unpin()
    for _ in range(4):
        run.push(40, x=200, y=4)
    assert run.engine.plan == better
    assert run.engine.routing == kind


@pytest.mark.usefixtures("eager")
@every_eddy
def test_an_eddy_that_was_left_by_mistake_goes_on_where_it_was(kind: str) -> None:
    run = Run(kind, feedback="off")
    swapped(run)
    routes = run.engine.plan
    run.engine.migrate("((B C) A)")
    assert run.engine.is_pinned
    run.push(10, x=200, y=4)
    run.engine.undo()
    assert run.engine.plan == routes
    for _ in range(9):
        run.push(40, x=4, y=200)
    assert run.engine.plan != routes


@pytest.mark.usefixtures("eager")
@every_eddy
def test_routes_that_are_pinned_or_not_to_adapt_stay(kind: str) -> None:
    run, still = Run(kind, feedback="off"), Run(kind, feedback="off", adapt="off")
    run.engine.pin()
    first = run.engine.plan, still.engine.plan
    for each in (run, still):
        swapped_not = [each.push(40, x=4, y=200) for _ in range(3)]
        assert sum(swapped_not) > 0
    assert (run.engine.plan, still.engine.plan) == first
    run.engine.pin(kind)  # By name, it goes on.
    for _ in range(3):
        run.push(40, x=4, y=200)
    assert run.engine.plan != first[0]


@pytest.mark.usefixtures("eager")
def test_an_eddy_begins_with_the_tree_that_was_given() -> None:
    run = Run("stairs ((A C) B)", feedback="off")
    assert str(run.engine.plan) == "stairs ((A C) B)"
    for _ in range(3):
        run.push(40, x=4, y=200)
    assert str(run.engine.plan) == "stairs ((A C) B)"
    with pytest.raises(penstock.PlanError, match="stores nothing but windows"):
        run.engine.migrate("cacq ((A B) C)")


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("kind", ["stairs", "stairs-lazy"])
def test_states_that_have_no_room_are_demoted_and_promoted_when_there_is_some(kind: str) -> None:
    run = Run(kind, feedback="off", limits=penstock.Limits(memory="400KB", disk=0), window=400)
    for _ in range(12):
        run.push(100, x=20, y=10)
    assert str(run.engine.plan).startswith(f"{kind} (A B C")
    assert run.engine.metrics()["state"]["joins"] == {}
    demotion = next(each for each in run.engine.history if "windows leave" in each.reason)
    assert demotion.numbers["state_bytes"] > demotion.numbers["room"]
    assert demotion.numbers["demoted"] == 1
    changes = len(run.engine.history)
    for _ in range(4):
        run.push(100, x=20, y=10)
    assert len(run.engine.history) == changes  # It does not go to and fro.
    for _ in range(12):
        run.push(100, x=400, y=4000)
    promotion = run.engine.history[-1]
    assert promotion.numbers["promoted"] == 1
    assert promotion.reason.startswith("there is room for ")
    assert run.engine.metrics()["state"]["joins"].keys() == {"{A, C}"}
    assert run.engine.metrics()["state"]["bytes"] <= 400_000


def test_an_eddy_that_fails_stays_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eddy, "_FIRST", 4)
    monkeypatch.setattr(routing.Routing, "route", lambda *_: 1 / 0)
    run = Run("cacq")
    plan = run.engine.plan
    for _ in range(3):
        run.push(20, x=4, y=40)
    assert run.engine.plan == plan
    (failure,) = [each for each in run.engine.drain_events() if each.action == "fail"]
    assert "the eddy has stopped: ZeroDivisionError" in failure.reason


CHAIN = """SELECT A.id AS a, B.id AS b, C.id AS c, D.id AS d
FROM A [RANGE 200 MILLISECONDS], B [RANGE 200 MILLISECONDS], C [RANGE 200 MILLISECONDS],
     D [RANGE 200 MILLISECONDS] WHERE A.x = B.x AND B.y = C.y AND C.x = D.x"""


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("kind", ["stairs", "stairs-lazy"])
def test_stairs_hold_both_ends_of_a_chain_whose_middle_is_large(kind: str) -> None:
    """A and B, C and D have one partner in ten; a B has partners in half of C."""
    graph = penstock.parse(CHAIN, schemas=dict.fromkeys("ABCD", SCHEMA))
    engine = penstock.Engine(graph, plan=kind, feedback="off")
    fixed = penstock.Engine(graph, plan="(A B C D)", feedback="off")
    random, results = np.random.default_rng(3), 0
    for number in range(20):
        times = np.arange(25 * number, 25 * number + 25)
        x, y = (2000, 2) if number < 12 else (2, 2000)
        batches = {}
        for stream in "ABCD":
            columns = [times, times, random.integers(0, x, 25), random.integers(0, y, 25)]
            batches[stream] = pa.table(columns, schema=SCHEMA)
        answer, expected = engine.push(batches), fixed.push(batches)
        order = [(name, "ascending") for name in answer.column_names]
        assert answer.sort_by(order).equals(expected.sort_by(order))
        results += answer.num_rows
        if number == 11:
            assert engine.metrics()["state"]["joins"].keys() == {"{A, B}", "{C, D}"}
    assert results > 100
    assert "{B, C}" in engine.metrics()["state"]["joins"]
