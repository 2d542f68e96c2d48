"""Rows that wait where they are, against rows that are kept apart; and the kernels of both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_streams import streams

import penstock
from penstock.engine.compiled.compiled_push import CompiledPush
from penstock.engine.state.asleep import Asleep
from penstock.engine.state.hash_index import HashIndex
from penstock.engine.state.probing import ACTIVE
from penstock.engine.state.rows import Rows
from penstock.kernels import asleep as kernel

SCHEMA = pa.schema([("x", pa.int64()), ("y", pa.int64()), ("z", pa.int64()), ("ts", pa.int64())])
JOINS = {
    "chain": "A.x = B.x AND A.y = C.y AND C.z = D.z",
    "star": "A.x = B.x AND A.y = C.y AND A.z = D.z",
    "clique": "A.x = B.x AND A.y = C.y AND B.y = C.x AND C.z = D.z AND A.z = D.x",
    "two columns": "A.x = B.x AND A.y = C.y AND A.z = C.z AND C.x = D.x",
}
PLANS = ["(((A B) C) D)", "((A B) (C D))", "((A B) C D)", "(A B C D)", "(A (B (C D)))"]


def run(
    text: str, plan: str, feedback: Any, tables: dict[str, pa.RecordBatch], batch: int
) -> tuple[list[list[Any]], list[Any]]:
    """The answers of all pushes, in no order, and what was counted."""
    engine = penstock.Engine(
        penstock.parse(text, dict.fromkeys("ABCD", SCHEMA)), plan=plan, feedback=feedback
    )
    answers = []
    for at in range(0, len(tables["A"]), batch):
        push = {name: table.slice(at, batch) for name, table in tables.items()}
        answers.append(sorted(tuple(row.values()) for row in engine.push(push).to_pylist()))
        engine.sweep()  # The dead are matches, too, for as long as they are there.
    metrics = engine.metrics()
    counted = [
        {name: value for name, value in each.items() if name not in ("bytes", "asleep")}
        for each in metrics["feedback"]["guards"]
    ]
    return answers, [counted, *((join["probes"], join["matches"]) for join in metrics["joins"])]


@given(
    st.sampled_from(sorted(JOINS)),
    st.sampled_from(PLANS),
    st.sampled_from(["RANGE 90 MILLISECONDS", "RANGE 20 MILLISECONDS", "UNBOUNDED"]),
    st.sampled_from(["index", "bloom"]),
    st.integers(0, 999),
    st.booleans(),
    st.sampled_from([1, 7, 30]),
)
def test_the_same_answers_and_counts_as_step_by_step(
    join: str, plan: str, window: str, detection: Any, seed: int, wide: bool, batch: int
) -> None:
    sources = ", ".join(f"{name} [{window}]" for name in "ABCD")
    text = f"SELECT A.ts AS a, B.ts AS b, C.ts AS c, D.ts AS d FROM {sources} WHERE {JOINS[join]}"
    feedback = penstock.Feedback(detection=detection, adaptive=False)
    tables = streams(seed, 60, 6, wide, "ABCD")
    in_one_call = run(text, plan, feedback, tables, batch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CompiledPush, "why_not", lambda edges: "told so")
        step_by_step = run(text, plan, feedback, tables, batch)
    assert in_one_call == step_by_step


def test_a_window_waits_without_copies() -> None:
    """One byte for each row and one index, and nothing else than the window itself."""
    text = (
        "SELECT A.ts AS a FROM A [RANGE 9 SECONDS], B [RANGE 9 SECONDS], C [RANGE 9 SECONDS] "
        "WHERE A.x = B.x AND A.y = C.y"
    )
    query = penstock.parse(text, dict.fromkeys("ABC", SCHEMA))
    engine = penstock.Engine(query, plan="((A B) C)", feedback=penstock.Feedback(adaptive=False))
    batches = streams(1, 3_000, 100_000, False, "ABCD")
    engine.push({name: batches[name] for name in "ABC"})
    (told,) = [g for g in engine.metrics()["feedback"]["guards"] if g["input"] == "{A}"]
    assert told["asleep"] > 2_500
    window = engine.trees[0].leaves["A"].rows
    assert told["bytes"] == window.capacity * (1 + 4 + 8)


# -- kernels ---------------------------------------------------------------------------------


def ring_of(keys: Any) -> tuple[Rows, HashIndex]:
    ring = Rows(dated=False)
    index = ring.add_index()
    ring.reserve(len(keys))
    ring.head = len(keys)
    ring.insert(index, 0, keys)
    return ring, index


def looked_up_in(ring: Rows, index: HashIndex) -> tuple[Any, ...]:
    """What a kernel needs to know of them."""
    return (
        index.heads,
        index.entries,
        index.narrow,
        index.shift,
        ring.mask,
        ring.low,
        ring.head - 1,
    )


def wake(ring: Rows, index: HashIndex, sought: Any, asleep: Any, number: int, room: int) -> Any:
    out, met = np.empty(room, np.int64), np.zeros(len(sought), np.uint8)
    count = kernel.wake(
        sought,
        *looked_up_in(ring, index),
        asleep,
        number,
        ACTIVE,
        met,
        out,
    )
    return out[:count].tolist(), met


@pytest.mark.parametrize("seed", range(5))
def test_all_are_woken_who_wait_for_a_key_and_nobody_else(seed: int) -> None:
    random = np.random.default_rng(seed)
    wide = 2**40 if seed % 2 else 1
    held = random.integers(0, 200, 500) * wide
    ring, index = ring_of(held)
    ring.low = 100
    asleep = random.integers(0, 3, ring.capacity).astype(np.uint8)
    before = asleep.copy()
    sought = random.integers(0, 300, 150) * wide
    expected = {s for s in range(100, 500) if before[s & ring.mask] == 2 and held[s] in set(sought)}
    woken: list[int] = []
    while True:  # As long as there are as many as there is room for, there may be more.
        some, met = wake(ring, index, sought, asleep, 2, 16)
        assert (met | ~np.isin(sought, held[100:])).all()
        assert not index.narrow or (met == np.isin(sought, held[100:])).all()
        woken += some
        if len(some) < 16:
            break
    assert len(woken) == len(set(woken))
    if index.narrow:
        assert set(woken) == expected
    assert set(woken) >= expected
    assert all(before[s & ring.mask] == 2 and asleep[s & ring.mask] == 0 for s in woken)
    others = [s for s in range(500) if s not in set(woken)]
    assert all(asleep[s & ring.mask] == before[s & ring.mask] for s in others)


@pytest.mark.parametrize("seed", range(5))
def test_who_has_no_partner_is_put_to_sleep(seed: int) -> None:
    random = np.random.default_rng(seed)
    held = random.integers(0, 200, 500)
    ring, index = ring_of(held)
    ring.low = 250
    rows = np.sort(random.choice(np.arange(1_000, 1_600), 400, replace=False))
    keys = random.integers(0, 300, 400)
    asleep = random.integers(0, 3, 1_024).astype(np.uint8)
    out = np.empty(400, np.int64)
    count = kernel.sort_out(
        rows,
        keys,
        *looked_up_in(ring, index),
        asleep,
        7,
        ACTIVE,
        out,
    )
    has_partner = np.isin(keys, held[250:])
    assert out[:count].tolist() == rows[has_partner].tolist()
    assert (asleep[rows & 1_023] == np.where(has_partner, 0, 7)).all()


def test_numbers_are_used_again_and_new_rows_are_awake() -> None:
    ring = Rows()
    asleep = Asleep(ring)
    ring.reserve(50)
    ring.head = 50
    asleep.bytes[:] = 9
    one, two = asleep.take_number(), asleep.take_number()
    assert (one, two) == (1, 2)
    assert not asleep.bytes.any()
    asleep.bytes[[3, 4, 5]] = one, two, one
    assert asleep.at(one).tolist() == [3, 5]
    asleep.give_back(one)
    assert asleep.at(one).tolist() == []
    assert asleep.at(two).tolist() == [4]
    assert asleep.take_number() == one
    asleep.bytes[:] = two
    asleep.wake_run(60, 8)
    asleep.wake_rows(np.array([10, 12]))
    assert np.flatnonzero(asleep.bytes == 0).tolist() == [0, 1, 2, 3, 10, 12, 60, 61, 62, 63]
