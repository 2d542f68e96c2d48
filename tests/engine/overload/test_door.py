"""The door: rows that are not taken in, what that does to the answer, and what is told about it."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.overload.door import LEAST_SHARE_TAKEN, Door
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
    assert door.streams == tuple("ABC")
    door.open({"A": 0.3, "B": 1.0})
    chance = np.random.default_rng(1)
    kept = 0
    for second in range(50):
        rows = batch(chance, second)
        taken = door.admit(rows, second)
        assert taken["B"] is rows["B"]
        assert set(taken["A"]["id"].to_pylist()) <= set(rows["A"]["id"].to_pylist())
        assert max(taken["A"]["ts"].to_pylist()) == max(rows["A"]["ts"].to_pylist())
        assert door.left_out == {"A": 300 - len(taken["A"])}
        assert door.admit(rows, second)["A"].equals(taken["A"])  # A push that is made again.
        kept += len(taken["A"])
    assert kept == pytest.approx(0.3 * 50 * 300, rel=0.1)
    door.open({"A": 0.0})
    assert door.shares == {"A": LEAST_SHARE_TAKEN}
    door.open({})
    assert door.admit(rows, 0) is rows


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
    door.open({"A": LEAST_SHARE_TAKEN})
    rows = pa.table({"id": [1, 2, 3, 4], "ts": times, "k": [1, 1, 1, 1]})
    taken = door.admit({"A": rows}, 0)["A"]
    known = [each for each in times.to_pylist() if each is not None]
    assert not known or max(known) in taken["ts"].to_pylist()


def test_where_a_row_less_is_not_only_results_less_there_is_no_door() -> None:
    assert not Door(query("ROWS 10")).streams
    assert Door(query(sources="AAC")).streams == ("C",)
    text = (
        "SELECT A.id FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS] WHERE A.k = B.k "
        "EXCEPT SELECT D.id FROM A [RANGE 5 SECONDS] AS D, C [RANGE 5 SECONDS] WHERE D.k = C.k"
    )
    graph = penstock.parse(text, schemas=dict.fromkeys("ABC", SCHEMA))
    assert Door(graph).streams == ("B",)


@pytest.mark.parametrize("length", [None, 0.4])
@pytest.mark.parametrize("is_odd", [False, True])
def test_a_look_chooses_the_rows_that_a_filter_does(length: float | None, is_odd: bool) -> None:
    """Late rows, rows without a time and rows out of order among them; what the compiled push
    answers is what the reference does."""
    answers: list[Any] = []
    for execution in ("auto", "reference"):
        option = Overload("shed", cpu=1e3, seed=3)
        engine = penstock.Engine(
            query(),
            "((A B) C)",
            adapt="off",
            overload=option,
            lateness="1 SECONDS",
            execution=execution,
        )
        control = engine._join.overload
        assert control is not None
        rows = np.random.default_rng(1)
        found = []
        for second in range(12):
            batches = batch(rows, second)
            if is_odd:
                times = batches["B"]["ts"].to_numpy().copy()
                times[::50] -= 3_000
                masked = pa.array(times, mask=np.arange(len(times)) % 70 == 1)
                batches["B"] = batches["B"].set_column(1, SCHEMA.field("ts"), masked)
            if length is None:
                control.door.open({"A": 0.5, "B": 0.7})
            else:
                control.door.open_by_key(length)
            control.passing.credit = None
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answer = engine.push(batches).to_pylist()
            left_out = dict(control.door.left_out)
            found.append((sorted(map(str, answer)), left_out))
        assert any(answer for answer, _ in found)
        assert all(left_out for _, left_out in found)
        assert engine.metrics()["execution"]["reference"] == (12 if execution != "auto" else 0)
        answers.append(found)
    if is_odd:  # What is late is no longer counted among what is left out.
        answers = [[answer for answer, _ in each] for each in answers]
    assert answers[0] == answers[1]


def dear_rows(
    plan: str, share: float, seed: int, allocator: str = "lifespan-greedy"
) -> tuple[Any, Any]:
    """An engine in which a row takes 100 µs and a probe 1, with a ``share`` of what that is."""
    option = Overload("shed", cpu=share * 0.0001 * 900, seed=seed, allocator=allocator)
    engine = penstock.Engine(query(), plan, adapt="off", overload=option)
    control = engine._join.overload
    assert control is not None
    spent = 0.0

    def cpu() -> float:
        taken = sum(leaf.rows.head for leaf in control.join.tree.leaves.values())
        return 1e-4 * taken + 1e-6 * control.join.counts.probes + spent

    control.join.budget = ProbeBudget(option, cpu, lambda: 0.0)
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


def test_shedding_at_random_takes_in_the_same_share_of_all_streams() -> None:
    engine, cpu = dear_rows("((A B) C)", 0.5, seed=3, allocator="random-shedding")
    exact = penstock.Engine(query(), "((A B) C)", adapt="off")
    chance = np.random.default_rng(7)
    made: Counter[Any] = Counter()
    wanted: Counter[Any] = Counter()
    then = 0.0
    for second in range(60):
        rows = batch(chance, second)
        made.update(map(tuple, (each.values() for each in engine.push(rows).to_pylist())))
        wanted.update(map(tuple, (each.values() for each in exact.push(rows).to_pylist())))
        if second == 29:
            then = cpu()
    assert not made - wanted
    assert cpu() - then == pytest.approx(30 * 900e-4 * 0.5, rel=0.15)
    shed = [each["shed"] for each in engine.metrics()["sources"].values()]
    assert max(shed) < 1.1 * min(shed)
    assert made.total() < 0.4 * wanted.total()
    assert "random-shedding" in engine.explain(analyze=True)


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


def pushes_of(throttle: Throttle, count: int, limited: float, has: float = 0.5) -> list[bool]:
    """Which of ``count`` pushes are limited, where a whole one takes a second, and a limited one
    ``limited`` seconds."""
    ways = []
    for _ in range(count):
        share = throttle.decide(0.5)
        ways.append(share is not None)
        throttle.learn(1.0 if share is None else limited, has, 0.1, 100)
    return ways


def test_what_saves_nothing_is_given_up_and_tried_again_later() -> None:
    throttle = Throttle()
    throttle.learn(1.0, 0.5, 0.1, 100)
    ways = pushes_of(throttle, 900, limited=1.2)
    assert sum(ways[:40]) < 40
    assert 0 < sum(ways[600:]) < 30  # It is tried again.


def test_what_saves_little_is_kept() -> None:
    throttle = Throttle()
    throttle.learn(1.0, 0.5, 0.1, 100)
    assert all(pushes_of(throttle, 300, limited=0.8))


def test_a_budget_that_is_kept_is_not_in_vain() -> None:
    """Whole pushes were as short when windows were empty."""
    throttle = Throttle()
    throttle.learn(0.5, 0.5, 0.1, 100, is_full=False)
    assert all(pushes_of(throttle, 300, limited=0.5))
