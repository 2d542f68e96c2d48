"""Eddies: routes follow the streams, and answers do not follow the routes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.control import eddy
from penstock.engine.control.eddy import EDDIES
from penstock.engine.feedback.feedback import Feedback
from penstock.plan.notation import read
from penstock.plan.plan import Join

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
    run.engine = penstock.Engine.restore(run.graph, blob)
    assert run.engine.routing == kind
    run.push(30, x=4, y=40)


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
