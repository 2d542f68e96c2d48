"""Compiling the kernels ahead of time.

:func:`warm_up` runs small queries that between them use every kernel with every type that a key or
a column can have.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.engine import Engine
from penstock.engine.feedback.feedback import Detection, Feedback
from penstock.engine.overload.overload import Overload
from penstock.errors import InputError
from penstock.kernels.compilation import announce_compilation, compilations
from penstock.kernels.door import draw
from penstock.query.parse import parse
from penstock.values.key_types import key_type_of
from penstock.values.partitioner import PARTITIONERS, SPARK, Partitioner
from penstock.values.value_hash import value_hashes


def warm_up(progress: Callable[[int, int], None] | None = None) -> int:
    """Compile what is not on disk yet; how many kernels that were.

    ``progress`` is told how many of the queries have run, and how many there are.
    """
    announce_compilation()
    before = compilations.count
    schemas = {name: _batch(name, 0, 0, 1, False).schema for name in "ABC"}
    schemas["T"] = _static().schema
    cases = list(_cases())
    for number, (text, plan, options) in enumerate(cases):
        query = parse(text, schemas=schemas)
        many = options.pop("many", False)
        other_plan = options.pop("then", None)
        engine = Engine(query, plan=plan, **options)
        sources = {stream.source for block in query.blocks for stream in block.streams}
        static = {"T": _static()} if "T" in sources else {}
        for turn, push in enumerate(_pushes(many)):
            if turn == _CHANGE and other_plan is not None:
                engine.migrate(other_plan, strategy="jisc")
            batches = {name: batch for name, batch in push.items() if name in sources}
            with contextlib.suppress(InputError):  # Taking back a failed push needs kernels too.
                engine.push(batches | static)
            static = {}
        for tree in engine.trees:
            tree.put_back(lambda: True)
        engine._join.expiry.drop_surpassed()
        engine.statistics()
        restored = Engine.restore(query, engine.checkpoint())
        restored.finish()
        if progress is not None:
            progress(number + 1, len(cases))
    _place()
    return compilations.count - before


def _place() -> None:
    """Choose cells and partitions by numbers and by texts, and rows at the door by chance."""
    for values in (pa.array([1, 2, None]), pa.array(["one", "two", None])):
        value_hashes(values)
        for function in (*PARTITIONERS, SPARK):
            Partitioner(function, 3).numbers(values)
    draw(np.uint64(1), np.uint64(1), np.empty(1, np.bool_))


_TYPES: dict[str, Any] = {
    "i8": pa.int8(),
    "i16": pa.int16(),
    "i32": pa.int32(),
    "i64": pa.int64(),
    "u8": pa.uint8(),
    "u16": pa.uint16(),
    "u32": pa.uint32(),
    "u64": pa.uint64(),
    "f16": pa.float16(),
    "f32": pa.float32(),
    "f64": pa.float64(),
    "flag": pa.bool_(),
    "text": pa.string(),
    "long_text": pa.large_string(),
    "bytes": pa.binary(),
    "code": pa.dictionary(pa.int32(), pa.string()),
    "day": pa.date32(),
    "day64": pa.date64(),
    "clock": pa.time32("s"),
    "clock64": pa.time64("us"),
    "at": pa.timestamp("us"),
    "span": pa.duration("ms"),
    "price": pa.decimal128(10, 2),
    "wide": pa.decimal128(38, 2),
}
_NO_KEY = ("f16",)
FIRST = 2
"""Cases at the head of the list that have what a plain join needs."""


def _cases() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Queries with plan and options."""
    payload = ", ".join(f"A.{column} AS {column}" for column in _TYPES)
    pair = "A [RANGE 50 MILLISECONDS], B [RANGE 70 MILLISECONDS]"
    three = f"{pair}, C [RANGE 60 MILLISECONDS]"
    chain = "A.i64 = B.i64 AND B.i32 = C.i32"
    common = "A.id, A.i64, A.f64, B.text, C.at"
    for plan in ("((A B) C)", "(A B C)"):
        plain = "A.i64 = B.i64 AND B.i64 = C.i64"
        yield f"SELECT {common} FROM {three} WHERE {plain}", plan, {"lateness": 20}
    for plan in ("((A B) C)", "(A B C)"):
        yield f"SELECT {payload}, C.id FROM {three} WHERE {chain}", plan, {}
        yield f"SELECT A.id, C.id FROM {three} WHERE {chain}", plan, {"lateness": 20}
    long = "A [RANGE 9 SECONDS], B [RANGE 9 SECONDS], C [RANGE 9 SECONDS]"
    yield f"SELECT A.id, C.id FROM {long} WHERE {chain}", "(A B C)", {}
    for join in ("hash", "nested-loops"):  # States of the second plan are completed on demand.
        changed = {"then": "(A (B C))", "join": join}
        yield f"SELECT A.id, C.id FROM {long} WHERE {chain}", "((A B) C)", changed
    four = ", ".join(
        f"{source} [RANGE 9 SECONDS] AS {name}" for source, name in zip("ABCA", "pqrs", strict=True)
    )
    links = "p.i64 = q.i64 AND q.i32 = r.i32 AND r.i64 = s.i64"
    for plan in ("((p q) (r s))", "(((r s) q) p)"):  # Joins ask joins, and a push fails.
        failing: dict[str, Any] = {"then": plan, "many": True}
        yield f"SELECT 1 / (p.id - 150) AS x FROM {four} WHERE {links}", "(((p q) r) s)", failing
    patient = long.replace("SECONDS]", "SECONDS] FRESHNESS 1 HOUR")
    owing = {"overload": Overload("defer", probes=1), "many": True}
    yield f"SELECT A.id, C.id FROM {patient} WHERE {chain}", "((A B) C)", owing
    for column in _TYPES:
        if column not in _NO_KEY:
            text = f"SELECT A.id, B.{column} FROM {pair} WHERE A.{column} = B.{column}"
            yield text, "auto", {"many": column in ("text", "i64")}
    detections: tuple[Detection, ...] = ("index", "bloom")
    for detection in detections:
        told = {"feedback": Feedback(detection=detection, adaptive=False)}
        star = "A.i64 = B.i64 AND A.i32 = C.i32"
        yield f"SELECT A.id, C.id FROM {three} WHERE {star}", "((A B) C)", dict(told)
        yield f"SELECT 1 / (A.id - 5) AS fails FROM {three} WHERE {star}", "(A B C)", dict(told)
        counted = "A [ROWS 20], B [ROWS 30], C [ROWS 10]"
        yield f"SELECT A.id, C.id FROM {counted} WHERE {star}", "((A B) C)", dict(told)
    keys = "A.i64 = B.i64 AND A.text = B.text AND B.i64 = C.i64 AND A.i32 = C.i32"
    yield f"SELECT A.id FROM {three} WHERE {keys}", "((A B) C)", {}
    yield f"SELECT A.id FROM {three} WHERE {keys}", "((A B) C)", {"join": "nested-loops"}
    theta = "A.i64 < B.i64 AND A.f64 + 1 <> B.f64 AND A.i64 + B.i64 + C.i64 > 10 AND A.i32 > 0"
    yield f"SELECT A.id FROM {three} WHERE {theta} AND B.id = C.id", "((A B) C)", {}
    yield f"SELECT A.id, T.name FROM {pair}, T WHERE A.i64 = B.i64 AND A.i32 = T.id", "auto", {}
    rows = "A [ROWS 20], B [ROWS 30], C [PARTITION BY i32 ROWS 2]"
    for plan in ("((A B) C)", "(A B C)"):
        yield f"SELECT A.id FROM {rows} WHERE {chain}", plan, {}
        yield f"DSTREAM (SELECT A.id FROM {rows} WHERE {chain})", plan, {}
        yield f"SELECT 1 / (A.id - 5) AS fails FROM {rows} WHERE {chain}", plan, {}
    yield f"SELECT 1 / (A.id - 5) AS fails FROM {three} WHERE {chain}", "((A B) C)", {}
    partition = "A [PARTITION BY text ROWS 3], B [PARTITION BY i32, f64 ROWS 2]"
    yield f"SELECT A.id FROM {partition} WHERE A.i64 = B.i64", "auto", {"many": True}
    for emission in ("DSTREAM", "RSTREAM"):
        yield f"{emission} (SELECT A.id FROM {pair} WHERE A.i64 = B.i64)", "auto", {}
    yield f"DSTREAM (SELECT A.id FROM {long} WHERE {chain})", "auto", {}
    for options in ({}, {"lateness": 20}):
        yield (
            "SELECT A.i64, A.text FROM A [RANGE 50 MILLISECONDS] EXCEPT "
            "SELECT B.i64, B.text FROM B [RANGE 70 MILLISECONDS]",
            "auto",
            options,
        )
    for options in ({}, {"lateness": 20}):
        for key in ("A.i32", "A.text, A.i64"):
            for column in ("i64", "i32", "f64", "f32", "u64", "price", "wide"):
                yield _grouped(key, column, pair, "COUNT SUM AVG MIN MAX"), "auto", options
            for column in ("text", "day"):
                yield _grouped(key, column, pair, "COUNT MIN MAX"), "auto", options
    for counted in ("SELECT COUNT(*) AS n", "DSTREAM (SELECT COUNT(*) AS n"):
        closing = ")" if counted.startswith("DSTREAM") else ""
        joined = f"{counted} FROM {pair} WHERE A.i64 = B.i64"
        yield f"{joined}{closing}", "auto", {}
        yield f"{joined} GROUP BY A.i32{closing}", "auto", {"lateness": 20}
    for column in ("text", "i64"):
        options = {"lateness": 20, "many": True}
        yield _grouped("A.text", column, pair, "MIN MAX"), "auto", options
    extrema = "MAX(A.f64) AS most, MIN(B.at) AS least"
    yield f"SELECT A.text, {extrema} FROM {pair} WHERE A.i64 = B.i64 GROUP BY A.text", "auto", {}
    for detection in detections:  # What the compiled push does not leave to others.
        told = {"feedback": Feedback(detection=detection, adaptive=False)}
        for sources in (three, rows):
            yield (
                f"SELECT A.id, C.id FROM {sources} WHERE {star}",
                "((A B) C)",
                {**told, "execution": "reference"},
            )
    for where in (chain, theta, keys):
        for sources in (three, rows):
            query = f"SELECT A.id FROM {sources} WHERE {where}"
            yield query, "((A B) C)", {"execution": "reference"}


def _grouped(key: str, column: str, sources: str, functions: str) -> str:
    selected = ", ".join(
        f"{function}(B.{column}) AS out{i}" for i, function in enumerate(functions.split())
    )
    return (
        f"SELECT {key}, COUNT(*) AS n, {selected} FROM {sources} WHERE A.i64 = B.i64 GROUP BY {key}"
    )


@functools.cache
def _pushes(many: bool) -> list[dict[str, Any]]:
    """Streams that grow and dry up; with and without NULLs, in and out of order, one alone."""
    return [
        {
            name: _batch(name, number, 200 * number, count, number == 2)
            for name in ("A" if number == 4 else "ABC")
        }
        for number, count in enumerate((1, 40, 100, _DISTINCT_VALUES if many else 20, 1, 30, 30))
    ]


_CHANGE = 3
"""Before this push, the plan is changed."""
_DISTINCT_VALUES = 5_000
"""Distinct values of a window that are gone in the next push, so that they are swept away."""


def _batch(name: str, seed: int, start: int, count: int, with_nulls: bool) -> Any:
    random = np.random.default_rng([ord(name), seed])
    values = np.arange(count) if count == _DISTINCT_VALUES else random.integers(0, 20, count)
    times = start + np.sort(random.integers(0, 100, count))
    if seed == 3:
        times = times[::-1].copy()
    columns: dict[str, Any] = {
        "id": pa.array(np.arange(count, dtype=np.int64)),
        "ts": pa.array(times),
    }
    for column, type_ in _TYPES.items():
        shown = key_type_of(type_).sample(values)
        if with_nulls:
            shown = shown.take(pa.array(np.arange(count), mask=values == 7))
        columns[column] = shown
    return pa.RecordBatch.from_pydict(columns)


def _static() -> Any:
    return pa.table({"id": pa.array(range(20), pa.int32()), "name": [f"n{i}" for i in range(20)]})
