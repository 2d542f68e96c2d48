"""The door: rows that are not taken in, what that does to the answer, and what is told about it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.overload.door import LEAST, Door
from penstock.engine.overload.overload import Overload
from penstock.engine.overload.probe_budget import ProbeBudget
from penstock.engine.overload.throttle import Throttle

SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "k")])
SECONDS = 5


def query(window: str = f"RANGE {SECONDS} SECONDS", sources: str = "ABC") -> penstock.JoinGraph:
    streams = ", ".join(
        f"{source} [{window}] AS {alias}" for alias, source in zip("ABC", sources, strict=True)
    )
    return penstock.parse(
        f"SELECT A.id AS a, B.id AS b, C.id AS c FROM {streams} WHERE A.k = B.k AND B.k = C.k",
        schemas=dict.fromkeys(sources, SCHEMA),
    )


def batch(chance: np.random.Generator, second: int, rows: int = 300) -> dict[str, pa.Table]:
    return {
        stream: pa.table(
            [
                np.arange(rows) + 100_000 * second,
                chance.permutation(chance.integers(1000 * second, 1000 * second + 1000, rows)),
                chance.integers(0, 400, rows),
            ],
            schema=SCHEMA,
        )
        for stream in "ABC"
    }


def test_a_share_of_the_rows_is_taken_in_and_always_the_newest() -> None:
    door = Door(query())
    assert door.streams == set("ABC")
    door.open({"A": 0.3, "B": 1.0})
    chance = np.random.default_rng(1)
    kept = 0
    for second in range(50):
        rows = batch(chance, second)
        taken = door.admit(rows, (0, second))
        assert taken["B"] is rows["B"]
        assert set(taken["A"]["id"].to_pylist()) <= set(rows["A"]["id"].to_pylist())
        assert max(taken["A"]["ts"].to_pylist()) == max(rows["A"]["ts"].to_pylist())
        assert door.left_out == {"A": 300 - len(taken["A"])}
        assert door.admit(rows, (0, second))["A"].equals(taken["A"])  # A push that is made again.
        kept += len(taken["A"])
    assert kept == pytest.approx(0.3 * 50 * 300, rel=0.1)
    door.open({"A": 0.0})
    assert door.shares == {"A": LEAST}
    door.open({})
    assert door.admit(rows, (0, 0)) is rows


@pytest.mark.parametrize(
    "times",
    [
        pa.array([3, None, 9, 1], pa.timestamp("us")),
        pa.array(["2026-01-01", "2026-03-01", None, "2026-02-01"]),
        pa.chunked_array([[1, 2], [9], [3]]),
        pa.array([None, None, None, None], pa.int64()),
    ],
)
def test_times_of_any_kind(times: Any) -> None:
    door = Door(query())
    door.open({"A": LEAST})
    rows = pa.table({"id": [1, 2, 3, 4], "ts": times, "k": [1, 1, 1, 1]})
    taken = door.admit({"A": rows}, (0, 0))["A"]
    known = [each for each in times.to_pylist() if each is not None]
    assert not known or max(known) in taken["ts"].to_pylist()


def test_where_a_row_less_is_not_only_results_less_there_is_no_door() -> None:
    assert not Door(query("ROWS 10")).streams
    assert Door(query(sources="AAC")).streams == {"C"}
    text = (
        "SELECT A.id FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS] WHERE A.k = B.k "
        "EXCEPT SELECT D.id FROM A [RANGE 5 SECONDS] AS D, C [RANGE 5 SECONDS] WHERE D.k = C.k"
    )
    graph = penstock.parse(text, schemas=dict.fromkeys("ABC", SCHEMA))
    assert Door(graph).streams == {"B"}


def dear_rows(plan: str, share: float, seed: int) -> tuple[Any, Any]:
    """An engine in which a row takes 100 µs and a probe 1, with a ``share`` of what that is."""
    option = Overload("shed", cpu=share * 0.0001 * 900, seed=seed)
    engine = penstock.Engine(query(), plan, adapt="off", overload=option)
    control = engine._join.overload
    assert control is not None
    spent = 0.0

    def cpu() -> float:
        taken = sum(leaf.rows.head for leaf in control._tree.leaves.values())
        return 1e-4 * taken + 1e-6 * control._counts.probes + spent

    control.budget = ProbeBudget(option, cpu, lambda: 0.0)
    return engine, cpu


@pytest.mark.parametrize("plan", ["((A B) C)", "(A B C)"])
@pytest.mark.parametrize("share", [0.7, 0.3])
def test_rows_that_are_too_dear_stay_outside(plan: str, share: float) -> None:
    """Nothing is wrong, nothing comes twice, the budget is kept and used, and the loss is told."""
    engine, cpu = dear_rows(plan, share, seed=3)
    exact = penstock.Engine(query(), plan, adapt="off")
    chance = np.random.default_rng(7)
    made: Counter[Any] = Counter()
    wanted: Counter[Any] = Counter()
    then = 0.0
    for second in range(120):
        rows = batch(chance, second)
        made.update(map(tuple, (each.values() for each in engine.push(rows).to_pylist())))
        wanted.update(map(tuple, (each.values() for each in exact.push(rows).to_pylist())))
        if second == 59:
            then = cpu()
    assert not made - wanted
    assert made.total() > 0.7 * share * wanted.total()  # Rows that are drawn would leave share³.
    assert cpu() - then == pytest.approx(60 * 900e-4 * share, rel=0.1)
    found = engine.metrics()
    assert found["rows"] == 120 * 900  # They came, and are counted.
    assert found["shed"] > 0.5 * (1 - share) * 100 * 900
    assert found["shed"] == sum(each["shed"] for each in found["sources"].values())
    assert found["overload"]["left_out"] == {s: n["shed"] for s, n in found["sources"].items()}
    assert found["execution"]["reference"] == 0
    lost, missing = found["overload"]["lost"], wanted.total() - made.total()
    assert abs(lost["results"] - missing) < max(0.15 * missing, 4 * lost["error"])
    restored = penstock.Engine.restore(engine.query, engine.checkpoint())
    assert restored.metrics()["shed"] == found["shed"]
    assert restored.metrics()["overload"]["left_out"] == found["overload"]["left_out"]


def test_the_share_follows_what_pushes_take() -> None:
    """Half of the time is there, a third of it goes whatever the share."""
    throttle = Throttle()
    throttle.learn(1.0, 2.0, 0.1, 100)
    assert throttle.decide(1.2) is None
    share = throttle.decide(0.6)
    took = 0.0
    for _ in range(200):
        assert share is not None
        took = 0.33 * 0.5 + share
        throttle.learn(took, 0.5, 0.1, 100)
        share = throttle.decide(0.6)
    assert took == pytest.approx(0.5, rel=0.02)
    for _ in range(200):
        throttle.learn(0.2, 0.5, 0.1, 100)
    assert throttle.share is None


def test_what_saves_nothing_is_given_up_and_tried_again_later() -> None:
    throttle = Throttle()
    ways = []
    for _ in range(600):
        share = throttle.decide(0.5)
        ways.append(share is not None)
        if share is None:
            throttle.learn(1.0, 0.5, 0.1, 100)
        else:
            throttle.learn(1.5, 0.5, 0.1, 100, choosing=1.0)
    assert sum(ways[:50]) < 25
    assert 0 < sum(ways[300:]) < 20  # It is tried again.


def test_what_saves_little_is_kept_and_compared_now_and_then() -> None:
    throttle = Throttle()
    ways = []
    for _ in range(600):
        share = throttle.decide(0.5)
        ways.append(share is not None)
        if share is None:
            throttle.learn(1.0, 0.5, 0.1, 100)
        else:
            throttle.learn(0.5, 0.5, 0.1, 100, choosing=0.3)
    assert sum(ways) > 550
    assert not all(ways[100:])


def test_nobody_compares_where_choosing_costs_little() -> None:
    throttle = Throttle()
    assert throttle.decide(0.5) == 0.5
    for _ in range(300):
        throttle.learn(1.0, 0.5, 0.1, 100, choosing=0.1)
        assert throttle.decide(0.5) is not None
