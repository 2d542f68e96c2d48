"""Kinds of queries and of feedback in the compiled push: its answers are those of the oracle and of
the reference, its counts are those of the reference, and no push goes another way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock
from penstock.testing.compare import assert_same_rows
from penstock.testing.oracle import Oracle

SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "x", "y", "v", "ts")])
STREAMS = "ABCD"
CLIQUE = " AND ".join(
    f"{a}.{'x' if (i + j) % 2 else 'y'} = {b}.{'x' if (i + j) % 2 else 'y'}"
    for i, a in enumerate(STREAMS)
    for j, b in enumerate(STREAMS)
    if i < j
)
CHAIN = "A.x = B.x AND B.y = C.y AND C.x = D.x"
STAR = "A.x = B.x AND A.y = C.y AND A.v = D.v"
PLANS = [
    "((A B) (C D))",
    "(((A B) C) D)",
    "(((C D) A) B)",
    "(A B C D)",
    "((A B) C D)",
    "((A B C) D)",
]
FEEDBACK = [
    penstock.Feedback(adaptive=False),
    penstock.Feedback(adaptive=False, level=1),
    penstock.Feedback(adaptive=False, detection="bloom"),
    "jit",
    "off",
]
SELECT = "SELECT A.id AS a, B.id AS b, C.id AS c, D.id AS d"
SIZES = [2, 1, 4, 6, 1, 2, 7, 1, 4, 2]
"""Rows that a stream gets in a push, at most: the oracle tries all combinations."""


def rows_for(chance: Any, names: str, count: int, start: int, values: int) -> dict[str, Any]:
    push = {}
    for name in names:
        rows = int(chance.integers(0, count + 1))
        times = np.sort(chance.integers(start, start + count, rows))
        columns = [chance.integers(0, values, rows) for _ in range(3)]
        arrays = [np.arange(rows) + 1000 * start, *columns, times]
        push[name] = pa.record_batch([pa.array(each) for each in arrays], schema=SCHEMA)
    return push


def compare(text: str, plan: str, feedback: Any, seed: int, values: int, fails: int) -> None:
    """Run ``text`` both ways; push ``fails`` is made to fail first."""
    names = "".join(sorted({name for name in STREAMS if f"{name} [" in text}))
    query = penstock.parse(text, dict.fromkeys(names, SCHEMA))
    engines = [
        penstock.Engine(query, plan=plan, feedback=feedback, execution=way)
        for way in ("auto", "reference")
    ]
    oracle, chance, start = Oracle(query, None), np.random.default_rng(seed), 0
    for number, size in enumerate(SIZES):
        push = rows_for(chance, names, size, start, values)
        start += size
        if number == fails:
            for engine in engines:
                stage = vars(engine._join.output)["stage"] = _fail
                with pytest.raises(ZeroDivisionError):
                    engine.push(push)
                assert stage is vars(engine._join.output).pop("stage")
        expected = oracle.push(push, None)
        for engine in engines:
            context = (
                f"{text} {plan} {feedback} seed {seed} push {number} {engine.options.execution}"
            )
            found = engine.push(push)
            assert_same_rows(found, expected, query, instants=oracle.instants, context=context)
            if number % 3 == 2:
                engine.sweep()
    metrics = [engine.metrics() for engine in engines]
    assert metrics[0]["execution"]["reasons"] == {}
    if feedback != "jit":  # Which goes by what joins cost, and learns it in another order.
        assert _counts(metrics[0]) == _counts(metrics[1]), f"{text} {plan} {feedback} {seed}"


def _counts(metrics: Any) -> list[Any]:
    """What happened at guards between streams; how many composites that never lived are made on the
    way is everybody's own business."""
    keys = ("input", "waits_for", "tested", "slept", "dropped")
    guards = metrics["feedback"]["guards"]
    between = [each for each in guards if len(each["input"]) == len(each["waits_for"]) == 3]
    return [[guard[key] for key in keys] for guard in between]


def _fail(*_: Any) -> None:
    raise ZeroDivisionError


def joining(window: str, where: str) -> str:
    return f"{SELECT} FROM {', '.join(f'{s} [{window}]' for s in STREAMS)} WHERE {where}"


@settings(max_examples=12)
@given(
    st.sampled_from([CLIQUE, CHAIN, STAR]),
    st.sampled_from(PLANS),
    st.sampled_from(FEEDBACK),
    st.sampled_from(["RANGE 20 MILLISECONDS", "RANGE 5 MILLISECONDS", "ROWS 8"]),
    st.integers(0, 999),
    st.integers(1, 4),
    st.integers(0, 9),
)
def test_any_number_of_guards_before_any_input(
    where: str, plan: str, feedback: Any, window: str, seed: int, values: int, fails: int
) -> None:
    compare(joining(window, where), plan, feedback, seed, values, fails)


@settings(max_examples=12)
@given(
    st.sampled_from(["A.x < B.x AND B.y = C.y AND C.x <> D.x", "A.v + B.v = C.v AND D.x > A.x"]),
    st.sampled_from(PLANS),
    st.sampled_from(FEEDBACK),
    st.sampled_from(["RANGE 20 MILLISECONDS", "RANGE 3 MILLISECONDS", "ROWS 5"]),
    st.integers(0, 999),
    st.integers(0, 9),
)
def test_joins_without_an_equality_and_pushes_that_span_windows(
    where: str, plan: str, feedback: Any, window: str, seed: int, fails: int
) -> None:
    compare(joining(window, where), plan, feedback, seed, 3, fails)


@settings(max_examples=12)
@given(
    st.sampled_from(["", "ISTREAM", "DSTREAM", "RSTREAM"]),
    st.sampled_from(
        [
            "A.id AS n FROM A [{w}] EXCEPT SELECT B.id AS n FROM B [{w}]",
            "A.x AS n FROM A [{w}], C [{w}] WHERE A.x = C.x EXCEPT SELECT B.x AS n FROM B [{w}]",
            "A.x AS n FROM A [{w}] EXCEPT SELECT B.x AS n FROM B [{w}], D [{w}] WHERE B.y = D.y",
            "A.x AS n, A.v AS v FROM A [{w}] WHERE A.x < 3",
        ]
    ),
    st.sampled_from(FEEDBACK),
    st.sampled_from(["RANGE 20 MILLISECONDS", "ROWS 6"]),
    st.integers(0, 999),
    st.integers(1, 5),
    st.integers(0, 9),
)
def test_several_blocks_and_a_single_stream(
    emission: str, rest: str, feedback: Any, window: str, seed: int, values: int, fails: int
) -> None:
    compare(f"SELECT {emission} {rest.format(w=window)}", "auto", feedback, seed, values, fails)


@settings(max_examples=12)
@given(
    st.sampled_from(["", "DSTREAM", "RSTREAM"]),
    st.sampled_from(["COUNT(*) AS n", "A.v AS v, COUNT(*) AS n, SUM(B.v) AS s, MAX(C.v) AS m"]),
    st.sampled_from(PLANS[:4]),
    st.sampled_from(FEEDBACK),
    st.sampled_from(["RANGE 20 MILLISECONDS", "ROWS 6"]),
    st.integers(0, 999),
    st.integers(0, 9),
)
def test_aggregates(
    emission: str, what: str, plan: str, feedback: Any, window: str, seed: int, fails: int
) -> None:
    sources = ", ".join(f"{s} [{window}]" for s in STREAMS)
    by = " GROUP BY A.v" if "A.v" in what else ""
    text = f"SELECT {emission} {what} FROM {sources} WHERE {CHAIN}{by}"
    compare(text, plan, feedback, seed, 3, fails)
