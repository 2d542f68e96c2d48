"""Guards for ``<`` and the like: who waits, and who wakes when a range reaches further."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.feedback.demand_range import RANGED, DemandRange, best_of, holds
from penstock.engine.feedback.feedback import Feedback
from penstock.engine.feedback.guard import WOKEN
from penstock.kernels import demand, probe
from penstock.testing.compare import assert_same_rows, rows_of
from penstock.testing.fuzz import fuzz
from penstock.testing.oracle import Oracle

ALWAYS = Feedback(adaptive=False, record=True)
COLUMNS = {"A": "id ts x y", "B": "id ts x", "C": "id ts y", "D": "id ts x"}
SCHEMAS = {
    name: pa.schema([(column, pa.int64()) for column in columns.split()])
    for name, columns in COLUMNS.items()
}
BAND = """SELECT A.id AS a, B.id AS b, C.id AS c
    FROM A [RANGE 4 SECONDS], B [RANGE 4 SECONDS], C [RANGE 4 SECONDS]
    WHERE A.x = B.x AND A.y > C.y"""


def table(name: str, *rows: tuple[int, ...]) -> pa.Table:
    names = SCHEMAS[name].names
    return pa.Table.from_pylist(
        [dict(zip(names, row, strict=True)) for row in rows], schema=SCHEMAS[name]
    )


def asleep(engine: penstock.Engine) -> int:
    return int(engine.metrics()["feedback"]["asleep"])


@pytest.mark.parametrize("execution", ["auto", "reference"])
def test_rows_wait_until_the_range_reaches_them(execution: Any) -> None:
    query = penstock.parse(BAND, schemas=SCHEMAS)
    options: dict[str, Any] = {"plan": "((A B) C)", "execution": execution}
    engine = penstock.Engine(query, feedback=Feedback(adaptive=False), **options)
    oracle = Oracle(query)

    def push(**batches: pa.Table) -> None:
        found = engine.push(batches)
        assert_same_rows(found, oracle.push(batches), query, instants=oracle.instants)

    push(B=table("B", (1, 0, 1)), C=table("C", (1, 0, 50)))
    push(A=table("A", (1, 1, 1, 20), (2, 1, 1, 40), (3, 1, 1, 60)))
    assert asleep(engine) == 2
    push(C=table("C", (2, 2, 45)))  # Further, but nobody is there.
    assert asleep(engine) == 2
    push(C=table("C", (3, 3, 70)))
    assert asleep(engine) == 2
    push(C=table("C", (4, 4, 30)))
    assert asleep(engine) == 1
    push(C=table("C", (5, 5, 20)))  # Not less: it is no partner.
    assert asleep(engine) == 1
    push(C=table("C", (6, 6, 19)))
    assert asleep(engine) == 0


@pytest.mark.parametrize("execution", ["auto", "reference"])
def test_a_failed_push_does_not_reach_further(
    execution: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or else its rows would wake nobody when they come again."""
    query = penstock.parse(BAND, schemas=SCHEMAS)
    engine = penstock.Engine(
        query, plan="((A B) C)", feedback=Feedback(adaptive=False), execution=execution
    )
    engine.push({"B": table("B", (1, 0, 1)), "C": table("C", (1, 0, 50))})
    engine.push({"A": table("A", (1, 1, 1, 20))})
    output = engine._join.output

    def fail(*_: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(output, "stage", fail)
        with pytest.raises(MemoryError):
            engine.push({"C": table("C", (2, 2, 10))})
    assert asleep(engine) == 1
    assert engine.push({"C": table("C", (2, 2, 10))}).num_rows == 1


def test_what_is_said() -> None:
    query = penstock.parse(BAND, schemas=SCHEMAS)
    engine = penstock.Engine(query, plan="((A B) C)", feedback=ALWAYS)
    engine.push({"C": table("C", (1, 0, 50))})
    engine.push({"A": table("A", (1, 1, 1, 20))})
    engine.push({"C": table("C", (2, 2, 10))})
    assert [str(message) for message in engine.messages] == [
        "({A, B, C}) suspend {A} {A.y=20}",
        "({A, B, C}) resume {A} {A.y=20}",
    ]


def streams(seed: int, names: str, rows: int) -> list[dict[str, pa.Table]]:
    random = np.random.default_rng(seed)
    pushes = []
    for start in range(0, rows, 25):
        clock = np.arange(start, start + 25) * 20
        push = {}
        for name in names:
            columns = {"id": clock, "ts": clock, "x": random.integers(0, 12, 25)}
            columns["y"] = random.integers(0, 100, 25) + (80 if name == "C" else 0)
            push[name] = pa.table([columns[c] for c in COLUMNS[name].split()], SCHEMAS[name])
            if name == "C":
                push[name] = push[name].slice(0, 2)
        pushes.append(push)
    return pushes


def plans(streams: str) -> list[str]:
    """Left-deep and bushy plans of four."""
    deep = [f"((({a} {b}) {c}) {d})" for a, b, c, d in itertools.permutations(streams) if a < b]
    return [*deep, "((A B) (C D))", "((A D) (B C))", "(A B C D)", "((A B D) C)"]


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
def test_all_plans_agree(operator: str) -> None:
    """Also those in which combinations wait for a range, compiled and step by step."""
    where = f"A.x = B.x AND B.x = D.x AND A.y {operator} C.y AND B.id {operator} C.id"
    sources = ", ".join(f"{name} [RANGE 1500 MILLISECONDS]" for name in "ABCD")
    query = penstock.parse(
        f"SELECT A.id AS a, B.id AS b, C.id AS c, D.id AS d FROM {sources} WHERE {where}",
        schemas=SCHEMAS,
    )
    pushes = streams(3, "ABCD", 300)
    plain = penstock.Engine(query, plan="(((A B) C) D)", feedback="off")
    expected = [sorted(map(str, rows_of(plain.push(push)))) for push in pushes]
    assert sum(map(len, expected)) > 100
    composites = 0
    for number, plan in enumerate(plans("ABCD")):
        way: Any = ("auto", "reference")[number % 2]
        engine = penstock.Engine(query, plan=plan, feedback=Feedback(adaptive=False), execution=way)
        for push, answer in zip(pushes, expected, strict=True):
            assert sorted(map(str, rows_of(engine.push(push)))) == answer, plan
        engine = penstock.Engine(query, plan=plan, feedback="jit", execution=way)
        (tree,) = engine.trees
        some = [(e, g) for e in tree.edges for g in e.guards if len(g.streams) > 1 and g.operator]
        for edge, guard in some:
            edge.turn_on(guard, "index")
        tree.take_stock()
        for push, answer in zip(pushes, expected, strict=True):
            assert sorted(map(str, rows_of(engine.push(push)))) == answer, plan
        composites += sum(guard.count(WOKEN) for _, guard in some)
    assert composites > 100


def test_a_range_that_few_reach_comes_on_by_itself() -> None:
    query = penstock.parse(BAND, schemas=SCHEMAS)
    random = np.random.default_rng(1)
    engines = [penstock.Engine(query, plan="((A B) C)", feedback=kind) for kind in ("off", "jit")]
    for second in range(10):
        clock = np.arange(second * 1000, second * 1000 + 1000)
        x, y = random.integers(0, 200, (2, 1000)), random.integers(0, 1_000_000, 1000)
        push = {
            "A": pa.table([clock, clock, x[0], y], SCHEMAS["A"]),
            "B": pa.table([clock, clock, x[1]], SCHEMAS["B"]),
            "C": pa.table([clock[:5], clock[:5], 999_000 + x[0][:5]], SCHEMAS["C"]),
        }
        counts = [engine.push(push).num_rows for engine in engines]
        assert counts[0] == counts[1]
    plain, told = (engine.metrics() for engine in engines)
    assert plain["results"] > 0
    assert told["joins"][0]["made"] < plain["joins"][0]["made"] / 4


def test_a_range_that_does_not_wake_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    add = DemandRange.add
    monkeypatch.setattr(DemandRange, "add", lambda each, keys: add(each, keys) and len(keys) < 3)
    with pytest.raises(AssertionError, match="seed"):
        list(fuzz(1, 20083, large_every=0))


@pytest.mark.parametrize("operator", RANGED)
def test_one_value_stands_for_all(operator: int) -> None:
    random = np.random.default_rng(operator)
    mine, theirs = random.integers(-9, 9, (2, 12))
    pairs = np.array([[holds(operator, mine[i : i + 1], t)[0] for t in theirs] for i in range(12)])
    best = best_of(operator, theirs)
    assert holds(operator, mine, best).tolist() == pairs.any(axis=1).tolist()
    place = np.array([best_of(operator, theirs[:3]), demand.tag_of(operator), 0], np.int64)
    demand.reach(place.ctypes.data, theirs, len(theirs))
    assert place[0] == best
    assert place[2] == (best != best_of(operator, theirs[:3]))
    assert best_of(operator, theirs[:0], 4) == 4
    assert probe.EQUAL not in RANGED
