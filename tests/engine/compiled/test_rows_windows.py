"""ROWS windows in the compiled push, against the reference: answers, counts, failures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock

SCHEMA = pa.schema(
    [(n, pa.int64()) for n in ("id", "x", "y", "ts")] + [("s", pa.string()), ("v", pa.int64())]
)
WINDOWS = ["[ROWS 40]", "[ROWS 3]", "[PARTITION BY y ROWS 4]", "[PARTITION BY s, y ROWS 2]"]
MORE = ["", "AND A.v % 3 <> 1", "AND A.v < B.v + C.v", "AND A.s = B.s", "AND B.s LIKE 'a%'"]
ALWAYS = penstock.Feedback(adaptive=False)
SIZES = [1, 5, 20, 3, 60, 100, 2, 1, 1, 30]


def push_of(random: Any, count: int, start: int, nulls: float, values: int) -> dict[str, Any]:
    push = {}
    for name in "ABC":
        rows = int(random.integers(0, count + 1))
        times = np.sort(random.integers(start, start + count, rows))
        if random.random() < 0.3:
            random.shuffle(times)
        absent = [random.random(rows) < nulls for _ in range(2)]
        texts = random.choice(["a", "ab", "b"], rows)
        push[name] = pa.record_batch(
            [
                pa.array(np.arange(rows) + 1000 * start),
                pa.array(random.integers(0, values, rows), mask=absent[0]),
                pa.array(random.integers(0, values, rows)),
                pa.array(times, mask=random.random(rows) < nulls / 4),
                pa.array(texts.tolist(), mask=absent[1]),
                pa.array(random.integers(0, 9, rows), mask=random.random(rows) < nulls),
            ],
            schema=SCHEMA,
        )
    return push


def engine_for(
    window: str, more: str, emission: str, way: str, plan: str, feedback: Any
) -> penstock.Engine:
    text = (
        f"SELECT {emission} A.id AS a, B.id AS b, C.id AS c, C.s AS s, A.v AS v FROM A {window}, "
        f"B {window}, C {window} WHERE A.x = B.x AND A.y = C.y {more}"
    )
    query = penstock.parse(text, dict.fromkeys("ABC", SCHEMA))
    return penstock.Engine(query, plan=plan, feedback=feedback, execution=way)


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return sorted(rows, key=str)


def counts(engine: penstock.Engine) -> list[Any]:
    metrics = engine.metrics()
    tested = [guard["tested"] for guard in metrics["feedback"]["guards"]]
    return [metrics["results"], metrics["sources"], tested]


@settings(max_examples=40)
@given(
    st.sampled_from(WINDOWS),
    st.sampled_from(MORE),
    st.sampled_from(["", "DSTREAM", "RSTREAM"]),
    st.sampled_from(["((A B) C)", "(A B C)"]),
    st.sampled_from(["off", ALWAYS]),
    st.sampled_from([0.0, 0.2]),
    st.integers(0, 999),
    st.integers(0, 9),
)
def test_answers_and_counts_are_those_of_the_reference(
    window: str,
    more: str,
    emission: str,
    plan: str,
    feedback: Any,
    nulls: float,
    seed: int,
    fails: int,
) -> None:
    engines = [engine_for(window, more, emission, w, plan, feedback) for w in ("auto", "reference")]
    random, start = np.random.default_rng(seed), 0
    for number, size in enumerate(SIZES):
        push = push_of(random, size, start, nulls, 5)
        start += size
        if number == fails:  # It is made again, as if nothing had happened.
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(type(engines[0]._join.output), "stage", _fail)
                with pytest.raises(ZeroDivisionError):
                    engines[0].push(push)
        found, expected = (rows_of(engine.push(push)) for engine in engines)
        assert found == expected
        for engine in engines:
            engine.sweep()
    assert counts(engines[0]) == counts(engines[1])
    assert engines[0].metrics()["execution"]["reference"] == 0


def _fail(*_: Any) -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize("window", ["[ROWS 1500]", "[PARTITION BY y ROWS 2]"])
@pytest.mark.parametrize("feedback", ["off", ALWAYS])
def test_so_they_are_at_size(window: str, feedback: Any) -> None:
    """Rings wrap, grow and are packed."""
    engines = [
        engine_for(window, "", "", way, "((A B) C)", feedback) for way in ("auto", "reference")
    ]
    random, made = np.random.default_rng(7), 0
    for number in range(12):
        push = push_of(random, 1000, 1000 * number, 0.05, 600)
        found, expected = (rows_of(engine.push(push)) for engine in engines)
        assert found == expected
        made += len(found)
    assert made > 1000
    assert counts(engines[0]) == counts(engines[1])
    assert engines[0].metrics()["execution"]["compiled"] == 12


def test_rows_that_say_when_they_arrived_go_the_reference_way() -> None:
    engine = engine_for("[ROWS 40]", "", "", "auto", "(A B C)", "off")
    push = push_of(np.random.default_rng(0), 10, 0, 0, 3)
    numbered = {
        name: batch.append_column("arrival", pa.array(np.arange(len(batch))))
        for name, batch in push.items()
    }
    engine.push(numbered)
    assert engine.metrics()["execution"]["reasons"] == {"a column 'arrival'": 1}
    engine.push(push_of(np.random.default_rng(1), 10, 10, 0, 3))
    assert engine.metrics()["execution"]["compiled"] == 1
