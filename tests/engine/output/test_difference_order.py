"""The order in which blocks are subtracted is part of the plan, and changes with it: what leaves is
the same, and each block tests only what those before it have left."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.testing.compare import assert_same_rows, difference, rows_of, surplus
from penstock.testing.oracle import Oracle

SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "x", "y")])
BLOCKS = ("D", "E", "(F G)")
WINDOWS = ("[RANGE 40 MILLISECONDS]", "[RANGE 7 MILLISECONDS]", "[RANGE UNBOUNDED]", "[ROWS 12]")


def except_query(
    chance: random.Random, emission: str, by_rows: bool, windows: Sequence[str] = WINDOWS
) -> penstock.JoinGraph:
    windows = [each for each in windows if by_rows == each.startswith("[ROWS")]
    window = {name: chance.choice(windows) for name in "ABCDEFG"}
    text = (
        f"SELECT {emission} A.x AS v, C.y AS w "
        f"FROM A {window['A']}, B {window['B']}, C {window['C']} "
        "WHERE A.x = B.x AND B.y = C.y "
        f"EXCEPT SELECT D.x, D.y FROM D {window['D']} "
        f"EXCEPT SELECT E.x, E.y FROM E {window['E']} "
        f"EXCEPT SELECT F.x, G.y FROM F {window['F']}, G {window['G']} WHERE F.y = G.x"
    )
    return penstock.parse(text, schemas=dict.fromkeys("ABCDEFG", SCHEMA))


def pushed(chance: np.random.Generator, clock: int, rows: int, late: int) -> dict[str, pa.Table]:
    batches = {}
    for name in "ABCDEFG":
        times = np.arange(clock, clock + rows) - chance.integers(0, late + 1, rows)
        keys = [pa.array(chance.integers(0, 8, rows), mask=chance.random(rows) < 0.1) for _ in "xy"]
        batches[name] = pa.table([times, np.maximum(times, 0), *keys], schema=SCHEMA)
    return batches


@pytest.mark.parametrize("seed", range(8))
def test_any_order_gives_the_same_answer(seed: int) -> None:
    """Random migrations of all blocks and of their order, against the oracle."""
    chance, rows_of = random.Random(seed), np.random.default_rng(seed)
    by_rows = seed % 4 == 3
    emission = ("", "DSTREAM", "RSTREAM")[seed % 3]
    graph = except_query(chance, emission, by_rows)
    late = chance.choice((0, 3)) if not by_rows else 0
    lateness = f"{late} MILLISECONDS" if late else None
    trees = ("((A B) C)", "(A (B C))", "(A B C)")

    def plan() -> str:
        blocks = chance.sample(BLOCKS, len(BLOCKS))
        return " - ".join([chance.choice(trees), *blocks])

    engine = penstock.Engine(graph, plan=plan(), lateness=lateness)
    oracle = Oracle(graph, late or None)
    clock = 0
    for _ in range(12):
        if chance.random() < 0.6:
            wanted = plan()
            strategies = ["auto", "jisc", "moving-state"]
            if not any(leaf.is_unbounded for leaf in engine._join.all_leaves):
                strategies.append("parallel-track")
            engine.migrate(wanted, chance.choice(strategies))
            assert str(engine.plan) == str(engine.running_plan) == wanted
        rows = chance.randrange(1, 9)
        batch = pushed(rows_of, clock, rows, late)
        clock += rows
        assert_same_rows(
            engine.push(batch), oracle.push(batch, None), graph, instants=oracle.instants
        )
    order = [each["streams"] for each in engine.metrics()["subtractions"]]
    told = str(engine.running_plan).split(" - ")[1:]
    assert order == ["{" + each.strip("()").replace(" ", ", ") + "}" for each in told]


@pytest.mark.parametrize("order", list(itertools.permutations("DE")))
def test_each_block_tests_what_is_left(order: tuple[str, str]) -> None:
    graph = penstock.parse(
        "SELECT A.x AS v FROM A [RANGE UNBOUNDED] EXCEPT SELECT D.x FROM D [RANGE UNBOUNDED] "
        "EXCEPT SELECT E.x FROM E [RANGE UNBOUNDED]",
        schemas=dict.fromkeys("ADE", SCHEMA),
    )
    engine = penstock.Engine(graph, plan=f"A - {order[0]} - {order[1]}")

    def rows(clock: int, *values: int) -> pa.Table:
        count = len(values)
        return pa.table([[clock] * count, [clock] * count, values, values], schema=SCHEMA)

    engine.push({"D": rows(1, 1, 2, 3), "E": rows(1, 3, 4)})
    assert engine.push({"A": rows(2, 1, 2, 3, 4, 5)}).column("v").to_pylist() == [5]
    removed = {"D": 3, "E": 1} if order == ("D", "E") else {"D": 2, "E": 2}
    left = 5 - removed[order[0]]
    assert engine.metrics()["subtractions"] == [
        {"streams": f"{{{order[0]}}}", "tested": 5, "removed": removed[order[0]]},
        {"streams": f"{{{order[1]}}}", "tested": left, "removed": removed[order[1]]},
    ]


def test_a_push_that_fails_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = except_query(random.Random(1), "", by_rows=False)
    engine = penstock.Engine(graph, plan="(A B C) - E - (F G) - D")
    chance = np.random.default_rng(1)
    engine.push(pushed(chance, 0, 20, 0))
    before = engine.metrics()["subtractions"]
    batch = pushed(chance, 20, 20, 0)
    with monkeypatch.context() as patch:
        output = type(engine._join.output)
        stage = output.stage

        def fails(*arguments: object) -> None:
            stage(*arguments)  # type: ignore[arg-type]
            raise KeyboardInterrupt

        patch.setattr(output, "stage", fails)
        with pytest.raises(KeyboardInterrupt):
            engine.push(batch)
    assert engine.metrics()["subtractions"] == before
    engine.push(batch)
    assert engine.metrics()["subtractions"] != before


def test_the_order_survives_changes_of_shape_and_a_restart() -> None:
    """A controller chooses trees, and leaves the order as it is; so does a restart."""
    graph = except_query(random.Random(1), "", by_rows=False)
    engine = penstock.Engine(graph, plan="(A B C) - E - (F G) - D")
    engine.push(pushed(np.random.default_rng(1), 0, 20, 0))
    engine._changes.change_shape("((A B) C) - D - E - (F G)")
    assert str(engine.plan) == str(engine.running_plan) == "((A B) C) - E - (F G) - D"
    again = penstock.Engine.restore(graph, engine.checkpoint())
    assert str(again.plan) == str(again.running_plan) == "((A B) C) - E - (F G) - D"
    engine.migrate("((A B) C) - D - E - (F G)")
    engine.undo()
    assert str(engine.running_plan) == "((A B) C) - E - (F G) - D"


@pytest.mark.parametrize("policy", ["defer", "shed"])
@pytest.mark.parametrize("seed", range(3))
def test_changes_while_probes_are_owed(policy: Literal["defer", "shed"], seed: int) -> None:
    """With a budget that is short now and then, no more leaves than should, whatever the plan; and
    under ``defer`` all of it has left in the end."""
    chance, rows_of_pushes = random.Random(seed), np.random.default_rng(seed)
    graph = except_query(
        chance, "", by_rows=False, windows=("[RANGE 30 MILLISECONDS] FRESHNESS 9 DAYS",)
    )
    overload = penstock.Overload(policy, probes=1e12)
    engine = penstock.Engine(graph, plan="((A B) C) - D - E - (F G)", overload=overload)
    oracle, clock = Oracle(graph, None), 0
    left: list[Any] = []
    due: list[Any] = []
    for number in range(14):
        if chance.random() < 0.6:
            blocks = chance.sample(BLOCKS, len(BLOCKS))
            tree = chance.choice(("((A B) C)", "(A (B C))", "(A B C)"))
            wanted = " - ".join([tree, *blocks])
            engine.migrate(wanted, chance.choice(("auto", "jisc", "moving-state")))
            assert str(engine.plan) == str(engine.running_plan) == wanted
        batch = pushed(rows_of_pushes, clock, 8, 0)
        clock += 8
        due += oracle.push(batch, None)
        left += rows_of(engine.push(batch, None, None, chance.choice((None, 5.0, 20.0))))
        assert surplus(left, due) is None, number
    due += oracle.finish()
    left += rows_of(engine.finish())
    found = engine.metrics()["overload"]
    if policy == "defer":
        assert found["forgotten"] == found["stale"] == 0
        assert difference(left, due) is None
        assert due
    else:
        assert surplus(left, due) is None
        assert len(left) < len(due)
