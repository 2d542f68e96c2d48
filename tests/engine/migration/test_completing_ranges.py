"""After a change of plan, what comparisons ask for is completed, and no more: theta, bands and
predicates on whole rows."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import penstock
from penstock.engine.completion import asked_ranges, missing
from penstock.engine.join import join_step, ordered_pairs
from penstock.engine.join.ordered_pairs import OrderedPairs
from penstock.kernels import probe
from penstock.testing.compare import assert_same_rows
from penstock.testing.oracle import Oracle
from penstock.testing.random_plan import random_plan

SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "x", "y")])
PREDICATES = {
    "less": "A.x < B.y AND B.x < C.y",
    "at most, at least": "A.x <= B.y AND C.y >= B.x AND A.y > C.x",
    "band": "A.x BETWEEN B.x - 1 AND B.x + 1 AND B.y BETWEEN C.y - 1 AND C.y + 1",
    "band over both": "A.x BETWEEN B.x AND C.x AND B.y = C.y",
    "not equal": "A.x <> B.x AND B.y < C.y",
    "residual": "A.x + B.x = 3 AND B.y + C.y > 4",
    "division": "A.x <> B.x AND 10 / (A.x - B.x) > 4 AND B.y = C.y",
    "residual over all": "A.x + B.x + C.x = 5 AND B.y = C.y",
    "residual over all, less": "A.x < B.y AND (A.y + B.x + C.x) % 3 = 0",
    "residual over all, band": "A.x BETWEEN B.x - 1 AND B.x + 1 AND (A.y + B.y + C.x) % 3 = 0",
    "residual over all alone": "(A.y + B.x + C.x) % 7 = 0",
    "mixed": "A.x < B.x AND A.y + B.y > 3 AND B.y = C.y",
}


def graph_of(where: str, window: int = 40) -> Any:
    sources = ", ".join(f"{s} [RANGE {window} MILLISECONDS]" for s in "ABC")
    text = f"SELECT A.id AS a, B.id AS b, C.id AS c FROM {sources} WHERE {where}"
    return penstock.parse(text, schemas=dict.fromkeys("ABC", SCHEMA))


@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("name", PREDICATES)
def test_random_changes_of_plan_against_the_oracle(
    name: str, in_order: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if in_order:  # However few pairs there are.
        for module in (join_step, asked_ranges):
            monkeypatch.setattr(module, "PAIRS_WORTH_SORTING", 0)
        monkeypatch.setattr(ordered_pairs, "_PAIRS_OF_A_CANDIDATE", 0.5)
    graph = graph_of(PREDICATES[name])
    for seed in range(6):
        chance, draw = random.Random(seed), np.random.default_rng(seed)
        engine = penstock.Engine(graph, plan="((A B) C)", feedback="off" if seed % 2 else "jit")
        oracle = Oracle(graph, None)
        clock = 0
        for _ in range(10):
            while chance.random() < 0.5:
                engine.migrate(random_plan(chance, list("ABC")), strategy="jisc")
            if chance.random() < 0.2:
                engine = penstock.Engine.restore(graph, engine.checkpoint())
            rows = chance.randrange(1, 8)
            times = np.arange(clock, clock + rows)
            clock += rows
            batch = {
                s: pa.table([times, times, *draw.integers(0, 6, (2, rows))], schema=SCHEMA)
                for s in "ABC"
                if chance.random() < 0.8
            }
            assert_same_rows(engine.push(batch), oracle.push(batch, None), graph)


@pytest.mark.parametrize(
    ("where", "partners"),
    [
        ("A.x < B.y AND B.x = C.x", range(996, 1000)),
        ("A.x BETWEEN B.y - 1 AND B.y + 1 AND B.x = C.x", range(994, 997)),
        ("A.x BETWEEN B.y - 1 AND B.y + 1 AND B.x >= C.x AND B.x <= C.x", range(994, 997)),
        ("A.x * 2 - B.y * 2 = 0 AND B.x = C.x", range(995, 996)),
    ],
)
@pytest.mark.parametrize("execution", ["auto", "reference"])
def test_only_what_is_asked_for_is_made(where: str, partners: range, execution: str) -> None:
    engine = penstock.Engine(
        graph_of(where, 10_000), plan="((A B) C)", feedback="off", execution=execution
    )
    times = np.arange(1_000)
    rows = pa.table([times, times, times, times], schema=SCHEMA)
    engine.push({"B": rows, "C": rows})
    engine.push({"A": pa.table([[0], [1_000], [-9_999], [0]], schema=SCHEMA)})
    engine.migrate("(A (B C))", strategy="jisc")
    (lacking,) = engine.trees[0].missing
    table = engine.push({"A": pa.table([[1], [1_001], [995], [0]], schema=SCHEMA)})
    assert sorted(table["b"].to_pylist()) == list(partners)
    assert lacking.completed == len(partners)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_state_of_which_all_is_asked_for_is_not_made_by_trying_all_pairs(
    is_restarted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a predicate is on rows of three streams, a row of the third asks for all pairs of the
    others; those that the other comparisons leave are few, and no more are looked at."""
    size, width = 2_000, 20
    graph = graph_of("A.x < B.y AND (A.y + B.x + C.x) % 7 = 0", 10 * size)
    draw = np.random.default_rng(1)
    times = np.arange(size)
    low, high = draw.integers(0, width, size), draw.integers(0, size, size)

    def rows(at: Any, x: Any, y: Any) -> pa.Table:
        return pa.table([at, at, x, y], schema=SCHEMA)

    first = "((A B) C)" if is_restarted else "((B C) A)"
    engine = penstock.Engine(graph, plan=first, feedback="off")
    engine.push({"A": rows(times, high, low), "B": rows(times, low, low)})
    if is_restarted:
        engine = penstock.Engine.restore(graph, engine.checkpoint())
    else:
        engine.migrate("((A B) C)", strategy="jisc")
    (lacking,) = engine.trees[0].missing
    tried = 0
    nested_loop, parts = probe.nested_loop, OrderedPairs.parts

    def loop(operators: Any, lefts: Any, births: Any, *others: Any) -> Any:
        nonlocal tried
        tried += len(births) * len(others[4])
        return nested_loop(operators, lefts, births, *others)

    def written(pairs: OrderedPairs) -> Any:
        nonlocal tried
        tried += pairs.total
        return parts(pairs)

    monkeypatch.setattr(probe, "nested_loop", loop)
    monkeypatch.setattr(OrderedPairs, "parts", written)
    pairs = int((high[:, None] < low).sum())
    assert 20 * pairs < size**2
    engine.push({"C": rows([size], [3], [0])})
    assert lacking.completed == pairs
    assert tried == pairs
    engine.push({"C": rows([size + 1], [4], [0])})
    assert tried == pairs


def test_a_state_that_is_being_made_is_not_asked_for_what_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At once, a state is made of one below that lacks nothing any more, by comparisons as well."""
    where = "A.x BETWEEN B.y - 1 AND B.y + 1 AND B.x BETWEEN C.y - 1 AND C.y + 1 AND C.x < D.y"
    sources = ", ".join(f"{s} [RANGE 9 SECONDS]" for s in "ABCD")
    graph = penstock.parse(
        f"SELECT A.id AS a, D.id AS d FROM {sources} WHERE {where}",
        schemas=dict.fromkeys("ABCD", SCHEMA),
    )
    engine = penstock.Engine(graph, plan="(((C D) B) A)", feedback="off")
    draw, times = np.random.default_rng(1), np.arange(300)
    engine.push(
        {
            s: pa.table([times, times, *draw.integers(0, 300, (2, 300))], schema=SCHEMA)
            for s in "ABC"
        }
    )
    tested: list[int] = []
    asked = asked_ranges.asked_rows

    def noted(rows: Any, *others: Any) -> Any:
        tested.append(len(rows))
        return asked(rows, *others)

    monkeypatch.setattr(missing, "asked_rows", noted)
    engine.migrate("(((A B) C) D)", strategy="moving-state")
    assert not engine.trees[0].missing
    assert not tested


def test_a_band_asks_for_what_is_near_to_some_row_and_not_for_all_in_between() -> None:
    where = "A.x BETWEEN B.y - 1 AND B.y + 1 AND B.x = C.x"
    engine = penstock.Engine(graph_of(where, 10_000), plan="((A B) C)", feedback="off")
    times = np.arange(1_000)
    rows = pa.table([times, times, times, times], schema=SCHEMA)
    engine.push({"B": rows, "C": rows})
    engine.push({"A": pa.table([[0], [1_000], [-9_999], [0]], schema=SCHEMA)})
    engine.migrate("(A (B C))", strategy="jisc")
    (lacking,) = engine.trees[0].missing
    far = pa.table([[1, 2], [1_001, 1_001], [10, 990], [0, 0]], schema=SCHEMA)
    assert sorted(engine.push({"A": far})["b"].to_pylist()) == [9, 10, 11, 989, 990, 991]
    assert lacking.completed == 6


Values = st.lists(st.sampled_from([-(2**63), -(2**63) + 1, -1, 0, 1, 5, 2**63 - 2, 2**63 - 1]))


@settings(max_examples=300)
@given(Values, Values, Values)
def test_ranges_are_those_of_all_probing_rows(
    starts: list[int], widths: list[int], values: list[int]
) -> None:
    """A value lies within the union if and only if it lies within one of the ranges."""
    count = min(len(starts), len(widths))
    pairs = [(a, b) for a, b in zip(starts[:count], widths[:count], strict=True) if a <= b]
    merged = merged_of(pairs)
    found = asked_ranges._lie_within(np.array(values, np.int64), *merged)
    assert found.tolist() == [any(a <= v <= b for a, b in pairs) for v in values]


def merged_of(pairs: list[tuple[int, int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    columns = np.array(pairs, np.int64).reshape(-1, 2)
    return asked_ranges.merged(columns[:, 0], columns[:, 1])
