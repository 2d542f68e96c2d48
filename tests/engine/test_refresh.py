"""Static relations that are refreshed: from then on, the answer of who had the new rows always.

The oracle runs once for each version of the relations, over the same rows of streams. What an
engine gives between two refreshes is what the oracle of the version in between gives there.
"""

from __future__ import annotations

import os
import random
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.errors import InputError, OptionError
from penstock.testing.case import Case
from penstock.testing.compare import assert_same_rows
from penstock.testing.generators import generate
from penstock.testing.knobs import FEATURES, Knobs
from penstock.testing.random_plan import random_plan

CASES = int(os.environ.get("PENSTOCK_CASES", "120"))
KNOBS = Knobs(FEATURES - {"except"}, streams=(2, 4))
STRATEGIES = ("jisc", "moving-state", "parallel-track")


def with_static(seed: int) -> tuple[Case, dict[str, pa.Table]] | None:
    """The case of ``seed`` with its first version, None if it has no static relation."""
    case = generate(seed, KNOBS)
    fixed = {s.source for b in case.graph().blocks for s in b.streams if s.is_static}
    if not fixed or not case.pushes:
        return None
    return case, {name: table for name, table in case.pushes[0].items() if name in fixed}


def other_version(chance: random.Random, table: pa.Table) -> pa.Table:
    """Some rows of ``table``, some of them twice, in another order."""
    rows = [i for i in range(len(table)) for _ in range(chance.choice([0, 1, 1, 2]))]
    chance.shuffle(rows)
    return table.take(pa.array(rows, pa.int64()))


def check(seed: int, restarts: bool = False, **options: Any) -> int:
    """Run the case of ``seed`` with a refresh before some pushes; how many there were."""
    found = with_static(seed)
    if found is None:
        return 0
    case, first = found
    chance = random.Random(seed)
    graph = case.graph()
    thin = {name: other_version(chance, table) for name, table in first.items()}
    versions = [thin]
    current = []
    for number in range(len(case.pushes)):
        if number and chance.random() < 0.4:
            versions.append({name: other_version(chance, t) for name, t in first.items()})
        current.append(len(versions) - 1)
    expected, instants = [], []
    for version in versions:
        pushes = [{**case.pushes[0], **version}, *case.pushes[1:]]
        oracle = replace(case, pushes=pushes).oracle(graph)
        answers, orders = [], []
        for number, push in enumerate(pushes):
            answers.append(oracle.push(push, case.watermark(number)))
            orders.append(oracle.instants)
        answers.append(oracle.finish())
        orders.append(oracle.instants)
        expected.append(answers)
        instants.append(orders)
    engine = penstock.Engine(graph, plan=case.plan, lateness=case.lateness, **options)
    engine.refresh(versions[0])
    for number, push in enumerate(case.pushes):
        streams = {name: table for name, table in push.items() if name not in first}
        if number and current[number] != current[number - 1]:
            if restarts and chance.random() < 0.5:
                engine = penstock.Engine.restore(graph, engine.checkpoint())
            if chance.random() < 0.3:
                plan = random_plan(chance, graph.aliases)
                with suppress(OptionError):  # Not every strategy is for every window.
                    engine.migrate(plan, chance.choice(STRATEGIES))
            engine.refresh(versions[current[number]])
            if restarts and chance.random() < 0.5:
                engine = penstock.Engine.restore(graph, engine.checkpoint())
        table = engine.push(streams, case.watermark(number))
        having = current[number]
        context = f"seed {seed}, push {number}, version {having}\n{case}"
        order = instants[having][number]
        assert_same_rows(table, expected[having][number], graph, instants=order, context=context)
    context = f"seed {seed}, finish\n{case}"
    last = current[-1]
    order = instants[last][-1]
    assert_same_rows(engine.finish(), expected[last][-1], graph, instants=order, context=context)
    return len(versions) - 1


@pytest.mark.parametrize("feedback", ["jit", "off"])
@pytest.mark.parametrize("restarts", [False, True])
def test_the_answer_is_that_of_the_version(feedback: str, restarts: bool) -> None:
    refreshes = sum(check(seed, restarts, feedback=feedback) for seed in range(2 * CASES))
    assert refreshes > CASES // 8


def test_guards_that_are_always_on_see_no_row_twice() -> None:
    always = penstock.Feedback(adaptive=False)
    assert sum(check(seed, feedback=always) for seed in range(CASES)) > 0


def test_the_reference_push_agrees() -> None:
    assert sum(check(seed, execution="reference") for seed in range(CASES)) > 0


SCHEMAS = {
    "A": pa.schema([("ts", pa.int64()), ("x", pa.int64())]),
    "S": pa.schema([("x", pa.int64()), ("name", pa.string())]),
}
TEXT = "SELECT A.ts AS at, S.name AS name FROM A [RANGE 10 SECONDS], S WHERE A.x = S.x"


def engine_of(text: str = TEXT) -> penstock.Engine:
    event_time = {name: "ts" if "ts" in s.names else None for name, s in SCHEMAS.items()}
    return penstock.Engine(penstock.parse(text, SCHEMAS, event_time))


def relation(*names: str) -> pa.Table:
    return pa.table({"x": [1] * len(names), "name": list(names)}, schema=SCHEMAS["S"])


def rows(*times: int) -> pa.Table:
    return pa.table({"ts": list(times), "x": [1] * len(times)}, schema=SCHEMAS["A"])


def test_later_rows_meet_the_new_version() -> None:
    engine = engine_of()
    assert engine.push({"S": relation("old"), "A": rows(1)})["name"].to_pylist() == ["old"]
    engine.refresh({"S": relation("new", "newer")})
    assert engine.push({}).num_rows == 0
    assert sorted(engine.push({"A": rows(2)})["name"].to_pylist()) == ["new", "newer"]
    engine.refresh({"S": relation()})
    assert engine.push({"A": rows(3)}).num_rows == 0
    assert engine.metrics()["sources"]["S"]["rows"] == 3


def test_what_cannot_be_refreshed_is_refused() -> None:
    engine = engine_of()
    engine.push({"S": relation("old"), "A": rows(1)})
    with pytest.raises(InputError, match=r"A is a stream.*they are: S"):
        engine.refresh({"A": rows(2)})
    with pytest.raises(InputError, match="unknown stream 'T'"):
        engine.refresh({"T": rows(2)})
    with pytest.raises(InputError, match="no column 'name'"):
        engine.refresh({"S": pa.table({"x": [1]})})
    assert engine.push({"A": rows(2)})["name"].to_pylist() == ["old"]
    minus = "SELECT A2.ts AS at, T.name AS name FROM A [NOW] AS A2, S AS T WHERE A2.x > T.x"
    text = f"{TEXT} EXCEPT {minus}"
    with pytest.raises(OptionError, match="EXCEPT"):
        engine_of(text).refresh({"S": relation("new")})
