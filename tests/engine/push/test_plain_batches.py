"""Batches that are taken in by the addresses of their columns, against the reference.

Both ways must agree on every answer and count, whatever comes between plain batches: NULLs,
disorder, late rows, chunks, slices, pushes that fail.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock

PAYLOAD: dict[str, pa.DataType] = {
    "tiny": pa.int8(),
    "small": pa.float32(),
    "day": pa.date32(),
    "moment": pa.timestamp("us"),
    "number": pa.float64(),
}
SCHEMA = pa.schema([("k", pa.int64()), ("j", pa.int64()), ("ts", pa.int64()), *PAYLOAD.items()])
SELECT = ", ".join(f"A.{name} AS a_{name}, B.{name} AS b_{name}" for name in PAYLOAD)
QUERY = (
    f"SELECT {SELECT}, A.ts AS a_ts, C.ts AS c_ts FROM A [RANGE 40 MILLISECONDS], "
    "B [RANGE 60 MILLISECONDS], C [UNBOUNDED] WHERE A.k = B.k AND A.j = C.j AND B.j = C.j"
)
PLANS = ["((A B) C)", "(A B C)"]


def rows(seed: int, times: list[int], nulls: bool = False) -> pa.RecordBatch:
    rng = np.random.default_rng(seed)
    count = len(times)
    columns: dict[str, Any] = {
        "k": rng.integers(0, 4, count),
        "j": rng.choice([1, 2, 1 << 40], count),
        "ts": np.array(times, np.int64),
    }
    for name, type_ in PAYLOAD.items():
        columns[name] = (
            pa.array(rng.integers(0, 100, count))
            .cast(pa.int32() if type_ == pa.date32() else pa.int64())
            .cast(type_)
        )
    if nulls and count:
        keep = rng.random(count) < 0.7
        columns["k"] = pa.array(columns["k"], mask=~keep)
        columns["number"] = pa.array(columns["number"].to_numpy(), mask=keep)
    return pa.RecordBatch.from_arrays([pa.array(columns[n]) for n in SCHEMA.names], schema=SCHEMA)


@st.composite
def pushes(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Mostly plain pushes, in time order, with all that is not plain strewn in."""
    now = 0
    made = []
    for _ in range(draw(st.integers(2, 7))):
        push: dict[str, Any] = {}
        for stream in "ABC":
            count = draw(st.integers(0, 12))
            times = [now + draw(st.integers(0, 30)) for _ in range(count)]
            kind = draw(st.sampled_from(["plain"] * 4 + ["nulls", "shuffled", "chunks", "slice"]))
            if kind != "shuffled":
                times.sort()
            batch: Any = rows(draw(st.integers(0, 99)), times, kind == "nulls")
            if kind == "chunks":
                batch = pa.Table.from_batches([batch.slice(0, 2), batch.slice(2)], schema=SCHEMA)
            elif kind == "slice":
                around = rows(1, [0, 0, 0])
                table = pa.Table.from_batches([around, batch, around]).combine_chunks()
                batch = table.slice(3, count)
            push[stream] = batch
        made.append(push)
        now += draw(st.integers(0, 40))
    return made


def run(
    made: list[dict[str, Any]], plan: str, feedback: Any, lateness: int | None, execution: str
) -> tuple[list[list[str]], dict[str, Any]]:
    """The answers, and what was counted; results of one push in any order."""
    graph = penstock.parse(QUERY, dict.fromkeys("ABC", SCHEMA), event_time="ts")
    engine = penstock.Engine(
        graph, plan=plan, feedback=feedback, lateness=lateness, execution=execution
    )
    answers = [sorted(map(repr, engine.push(push).to_pylist())) for push in made]
    metrics = engine.metrics()
    counted = {name: metrics[name] for name in ("rows", "results", "late", "null_time", "sources")}
    counted["windows"] = {a: w["rows"] for a, w in metrics["state"]["windows"].items()}
    return answers, counted


def without_times(measured: Mapping[str, Any]) -> str:
    """The measures, but for seconds."""

    def clean(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {k: clean(v) for k, v in value.items() if "second" not in str(k)}
        return [clean(each) for each in value] if isinstance(value, list | tuple) else value

    return repr(clean(measured))


@given(
    pushes(),
    st.sampled_from(PLANS),
    st.sampled_from(["off", penstock.Feedback(adaptive=False)]),
    st.sampled_from([None, 0, 25]),
)
def test_both_ways_give_the_same(
    made: list[dict[str, Any]], plan: str, feedback: Any, lateness: int | None
) -> None:
    compiled = run(made, plan, feedback, lateness, "auto")
    reference = run(made, plan, feedback, lateness, "reference")
    assert compiled == reference


def two_streams(**options: Any) -> penstock.Engine:
    schema = pa.schema([("k", pa.int64()), ("ts", pa.int64())])
    query = (
        "SELECT A.ts AS a, B.ts AS b FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] WHERE A.k = B.k"
    )
    return penstock.Engine(penstock.parse(query, {"A": schema, "B": schema}), **options)


def keys(values: list[int | None], times: list[int | None]) -> pa.RecordBatch:
    return pa.record_batch({"k": pa.array(values, pa.int64()), "ts": pa.array(times, pa.int64())})


def test_what_the_kernel_sees_to() -> None:
    engine = two_streams(lateness=10)
    engine.push({"A": keys([1, 2], [5, 5])})
    engine.push({"A": pa.Table.from_batches([keys([1, 2], [5, 7])])})
    engine.push({"A": keys([1, None], [8, 8])})
    engine.push({"A": keys([1, 2], [9, 8])})
    engine.push({"B": keys([1, 2], [100, None])})
    engine.push({"A": keys([1], [100])})
    engine.push({"A": keys([1, 1], [50, 100])})  # The first of them is late.
    engine.push({"A": keys([], [])})
    engine.push({"A": keys([7], [3])})  # All of it.
    metrics = engine.metrics()
    assert metrics["execution"] == {"compiled": 9, "reference": 0, "reasons": {}}
    assert (metrics["late"], metrics["null_time"]) == (2, 1)
    assert metrics["state"]["windows"]["A"]["rows"] == 9
    assert engine.push({"B": keys([1], [101])}).num_rows == 6


@pytest.mark.parametrize(
    "condition",
    [
        "A.k + 1 = B.k + 1",
        "A.k = B.k AND A.n > 0 AND B.n > 0",
        "A.k = B.k AND A.k = A.n",
        "A.s = B.s",
        "A.n = B.n",
    ],
)
def test_computed_filtered_and_encoded_keys(condition: str) -> None:
    schema = pa.schema(
        [("k", pa.int64()), ("n", pa.int32()), ("s", pa.string()), ("ts", pa.int64())]
    )
    graph = penstock.parse(
        f"SELECT A.s AS s, B.n AS n FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] WHERE {condition}",
        {"A": schema, "B": schema},
    )
    values = {"k": [5, 1, None, 1], "n": [1, 1, 1, None], "s": ["x", "y", "z", None]}
    batch = pa.record_batch({**values, "ts": [4, 3, 2, 1]}, schema=schema)
    answers = []
    for execution in ("auto", "reference"):
        engine = penstock.Engine(graph, execution=execution, lateness=5)
        engine.push({"A": batch})
        answers.append(engine.push({"B": batch}).sort_by("s").to_pylist())
        told = engine.metrics()["execution"]
        assert told[{"auto": "compiled"}.get(execution, execution)] == 2
    assert answers[0] == answers[1] != []


def test_a_large_push_is_cut_into_slices() -> None:
    count = 100_000
    batch = pa.record_batch({"k": np.arange(count), "ts": np.arange(count) // 100})
    results = two_streams().push({"A": batch, "B": batch})
    assert results.num_rows == count
    assert results["a"].equals(results["b"])


def test_a_failed_push_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = two_streams(plan="(A B)")
    engine.push({"A": keys([1, 1 << 40], [1, 1]), "B": keys([2], [1])})
    before = without_times(engine.metrics())
    output = engine._join.output

    def fail(*_: Any) -> Any:
        raise RuntimeError("no")

    with monkeypatch.context() as patch:
        patch.setattr(output, "stage", fail)
        with pytest.raises(RuntimeError):
            engine.push({"A": keys([2, 2], [2, 2]), "B": keys([1], [2])})
    assert without_times(engine.metrics()) == before
    assert engine.push({"B": keys([1, 1 << 40, 2], [3, 3, 3])}).num_rows == 2
    assert engine.metrics()["execution"]["reference"] == 0


def test_an_event_time_that_is_too_far_away_is_an_error_as_ever() -> None:
    engine = two_streams()
    with pytest.raises(penstock.InputError, match="too far away"):
        engine.push({"A": keys([1], [2**62 + 1])})
    with pytest.raises(penstock.InputError, match="too far away"):
        engine.push({"A": keys([1, 1], [-(2**62) - 1, 0])})
    assert engine.push({"A": keys([1], [1]), "B": keys([1], [1])}).num_rows == 1


def test_nothing_of_a_batch_is_kept() -> None:
    engine = two_streams()
    batch = keys([1, 2, 3], [1, 1, 1])
    gone = weakref.ref(batch)
    before = pa.total_allocated_bytes()
    engine.push({"A": batch})
    del batch
    gc.collect()
    assert gone() is None
    assert pa.total_allocated_bytes() <= before
