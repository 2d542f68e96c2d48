"""Batches that are taken in by the addresses of their columns, as a whole push or one by one,
against the general way.

All ways must agree on every answer, count and byte, whatever comes between plain batches: NULLs,
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
from penstock.engine.push.intake import Intake
from penstock.engine.push.plain_batch import PlainBatches, plain_width
from penstock.engine.push.whole_push import WholePush

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
    made: list[dict[str, Any]], plan: str, feedback: Any, lateness: int | None
) -> tuple[list[list[dict[str, Any]]], dict[str, Any]]:
    graph = penstock.parse(QUERY, dict.fromkeys("ABC", SCHEMA), event_time="ts")
    engine = penstock.Engine(graph, plan=plan, feedback=feedback, lateness=lateness)
    answers = [engine.push(push).to_pylist() for push in made]
    metrics = engine.metrics()
    return answers, {name: metrics[name] for name in ("rows", "results", "late", "joins", "state")}


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
def test_all_ways_give_the_same(
    made: list[dict[str, Any]], plan: str, feedback: Any, lateness: int | None
) -> None:
    whole = run(made, plan, feedback, lateness)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WholePush, "look", lambda *_: "told so")
        plain = run(made, plan, feedback, lateness)
        patch.setattr(Intake, "_plainly", lambda *_: None)
        general = run(made, plan, feedback, lateness)
    assert whole[0] == plain[0] == general[0]
    assert without_times(whole[1]) == without_times(plain[1]) == without_times(general[1])


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each batch that was looked at was found plain."""
    seen: list[bool] = []
    look = PlainBatches.look

    def watched(self: PlainBatches, batch: pa.RecordBatch, earliest: int | None) -> Any:
        found = look(self, batch, earliest)
        seen.append(found is not None)
        return found

    monkeypatch.setattr(PlainBatches, "look", watched)
    monkeypatch.setattr(WholePush, "look", lambda *_: "told so")
    return seen


def two_streams(**options: Any) -> penstock.Engine:
    schema = pa.schema([("k", pa.int64()), ("ts", pa.int64())])
    query = (
        "SELECT A.ts AS a, B.ts AS b FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] WHERE A.k = B.k"
    )
    return penstock.Engine(penstock.parse(query, {"A": schema, "B": schema}), **options)


def keys(values: list[int | None], times: list[int | None]) -> pa.RecordBatch:
    return pa.record_batch({"k": pa.array(values, pa.int64()), "ts": pa.array(times, pa.int64())})


def test_what_is_plain(looks: list[bool]) -> None:
    engine = two_streams(lateness=10)
    engine.push({"A": keys([1, 2], [5, 5])})
    engine.push({"A": pa.Table.from_batches([keys([1, 2], [5, 7])])})
    assert looks == [True, True]
    engine.push({"A": keys([1, None], [8, 8])})
    engine.push({"A": keys([1, 2], [9, 8])})
    assert looks[2:] == [False, False]
    engine.push({"B": keys([1], [100])})
    engine.push({"A": keys([1], [100])})
    engine.push({"A": keys([1, 1], [50, 100])})  # The first of them is late.
    assert looks[4:] == [True, True, False]
    engine.push({"A": keys([], [])})
    assert len(looks) == 7
    assert engine.metrics()["late"] == 1 or engine.metrics()["late"] == {"A": 1, "B": 0}


@pytest.mark.parametrize(
    "condition",
    ["A.k + 1 = B.k + 1", "A.k = B.k AND A.n > 0 AND B.n > 0", "A.s = B.s", "A.n = B.n"],
)
def test_computed_filtered_and_encoded_keys_go_the_general_way(
    condition: str, looks: list[bool]
) -> None:
    schema = pa.schema(
        [("k", pa.int64()), ("n", pa.int32()), ("s", pa.string()), ("ts", pa.int64())]
    )
    graph = penstock.parse(
        f"SELECT B.ts AS b FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] WHERE {condition}",
        {"A": schema, "B": schema},
    )
    engine = penstock.Engine(graph)
    batch = pa.record_batch({"k": [5], "n": [1], "s": ["x"], "ts": [1]}, schema=schema)
    engine.push({"A": batch, "B": batch})
    assert looks == []


def test_a_large_push_is_cut_into_slices(looks: list[bool]) -> None:
    count = 100_000
    batch = pa.record_batch({"k": np.arange(count), "ts": np.arange(count) // 100})
    results = two_streams().push({"A": batch, "B": batch})
    assert looks == [True, True]
    assert results.num_rows == count
    assert results["a"].equals(results["b"])


def test_a_failed_push_of_plain_batches_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, looks: list[bool]
) -> None:
    engine = two_streams(plan="(A B)")
    engine.push({"A": keys([1, 1 << 40], [1, 1]), "B": keys([2], [1])})
    before = without_times(engine.metrics())
    output = engine._output

    def fail(*_: Any) -> Any:
        raise RuntimeError("no")

    with monkeypatch.context() as patch:
        patch.setattr(output, "stage", fail)
        with pytest.raises(RuntimeError):
            engine.push({"A": keys([2, 2], [2, 2]), "B": keys([1], [2])})
    assert without_times(engine.metrics()) == before
    assert engine.push({"B": keys([1, 1 << 40, 2], [3, 3, 3])}).num_rows == 2
    assert all(looks)


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


def test_which_types_are_plain() -> None:
    assert (
        plain_width(pa.int64()) == plain_width(pa.timestamp("ns")) == plain_width(pa.float64()) == 8
    )
    assert plain_width(pa.int8()) == 1
    assert plain_width(pa.date32()) == 4
    for type_ in (pa.bool_(), pa.string(), pa.decimal128(10), pa.list_(pa.int8()), pa.null()):
        assert plain_width(type_) is None
