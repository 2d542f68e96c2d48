"""Bugs that a review of the engine found, one failing test each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.metrics import Counters
from penstock.engine.state import rows as rows_module
from penstock.engine.state import spare_memory
from penstock.engine.state.payload import ChunkColumn
from penstock.errors import PenstockError
from penstock.values.arrow_chunks import ArrowChunks

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int64()), ("s", pa.string()), ("ts", pa.int64())])
JOIN = (
    "SELECT A.id AS a, A.s AS s, B.id AS b FROM A [RANGE 10 SECONDS], B [RANGE 10 SECONDS] "
    "WHERE A.k = B.k"
)
ROWS = JOIN.replace("RANGE 10 SECONDS", "ROWS 5")
LARGEST = 2**63 - 1


def engine(text: str = JOIN, schema: pa.Schema = SCHEMA, **options: Any) -> penstock.Engine:
    sources = [name for name in "ABC" if f" {name} [" in text]
    query = penstock.parse(text, dict.fromkeys(sources, schema))
    return penstock.Engine(query, **options)


def batch(ids: range, instant: int, key: Callable[[int], int] = lambda i: i) -> pa.Table:
    count = len(ids)
    columns = [list(ids), [key(i) for i in ids], ["x"] * count, [instant] * count]
    return pa.table(dict(zip(SCHEMA.names, columns, strict=True)), schema=SCHEMA)


# -- payload ---------------------------------------------------------------------------------


def test_dictionaries_of_many_batches_need_not_fit_one_index_type() -> None:
    """ArrowChunks joins chunks, and unifying their dictionaries overflows an int8 index.

    Every batch is legal; after 54 pushes all later pushes fail with ArrowInvalid, for good.
    """
    kind = pa.dictionary(pa.int8(), pa.string())
    schema = pa.schema([("k", pa.int64()), ("d", kind), ("ts", pa.int64())])
    running = engine("SELECT A.k, A.d FROM A [RANGE 1000 SECONDS]", schema)
    for number in range(100):
        values = pa.array([f"{number}-{i}" for i in range(3)]).dictionary_encode().cast(kind)
        table = pa.table({"k": [0] * 3, "d": values, "ts": [number] * 3}, schema=schema)
        answer = running.push({"A": table})
        assert answer.column("d").to_pylist() == values.to_pylist()


def test_results_may_come_from_dictionaries_that_do_not_fit_one_index_type() -> None:
    """The same in what leaves: a column of the answer may have several chunks."""
    kind = pa.dictionary(pa.int8(), pa.string())
    schema = pa.schema([("k", pa.int64()), ("d", kind), ("ts", pa.int64())])
    running = engine("SELECT RSTREAM A.d FROM A [RANGE 1000 SECONDS]", schema)
    for number in range(2):
        values = pa.array([f"{number}-{i}" for i in range(100)]).dictionary_encode().cast(kind)
        table = pa.table({"k": [0] * 100, "d": values, "ts": [number] * 100}, schema=schema)
        answer = running.push({"A": table})
    assert answer.num_rows == 200


def test_dictionaries_do_not_grow_with_history() -> None:
    """ArrowChunks.keep_only takes rows but keeps the whole dictionary; the next merge adds to it.

    So a window that is packed (PARTITION BY) holds every value that it ever saw.
    """
    kind = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema([("k", pa.int64()), ("d", kind), ("ts", pa.int64())])
    running = engine("SELECT A.k, A.d FROM A [PARTITION BY k ROWS 1]", schema)
    sizes = []
    for number in range(2000):
        values = pa.array([f"{number}-{i}" + "x" * 100 for i in range(11)]).dictionary_encode()
        columns = {"k": [number % 50] * 10 + [1000], "d": values.cast(kind), "ts": [number] * 11}
        running.push({"A": pa.table(columns, schema=schema)})
        if number in (499, 1999):
            sizes.append(running.metrics()["state"]["bytes"])
    assert sizes[1] < 2 * sizes[0]


def test_a_slice_of_a_large_table_does_not_pin_the_table() -> None:
    """A chunk is the caller's slice itself: 100 rows in the window hold 200,000 rows of text.

    Also every such chunk counts the whole table in state bytes.
    """
    count = 200_000
    numbers = pa.array(np.arange(count))
    text = pa.array(["x" * 50] * count)
    whole = pa.table(dict(zip(SCHEMA.names, [numbers, numbers, text, numbers], strict=True)))
    running = engine("SELECT A.id, A.s FROM A [ROWS 4096]")
    for start in range(0, 16 * 1024, 1024):
        running.push({"A": whole.slice(start, 1024)})
    assert running.metrics()["state"]["bytes"] < 4_000_000


# -- a failed push changes nothing -------------------------------------------------------------


class _NoMemory:
    """numpy, which finds no memory for arrays of more than 64 values."""

    def __getattr__(self, name: str) -> Any:
        return self._refuse if name in ("empty", "full", "zeros") else getattr(np, name)

    @staticmethod
    def _refuse(*_: Any) -> None:
        raise MemoryError


def test_out_of_memory_while_a_ring_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows._allocate sets ``capacity`` and ``mask`` before there is memory for them.

    The old columns are then read by the new mask: later answers are silently wrong.
    """
    running, reference = engine(), engine()
    for each in (running, reference):
        each.push({"A": batch(range(60), 0)})
        each.push({"A": batch(range(40, 43), 20_000), "B": batch(range(1), 20_000)})
        each.push({"A": batch(range(60), 20_000)})
    with monkeypatch.context() as patch:
        patch.setattr(rows_module, "np", _NoMemory())
        patch.setattr(spare_memory, "np", _NoMemory())
        with pytest.raises(MemoryError):
            running.push({"A": batch(range(500), 20_001)})
    asked = {"B": batch(range(60), 20_002)}
    assert running.push(asked).num_rows == reference.push(asked).num_rows == 63


def _interrupted(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("text", [JOIN, ROWS], ids=["range", "rows"])
def test_a_payload_that_cannot_be_stored_is_taken_back(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows enter the indexes before the payload is stored and ``head`` moves.

    ChunkColumn.append can fail (Arrow: dictionaries, more than 2 GB of text). Then truncate removes
    nothing, heads of chains lead to rows that are not there, and the next rows of these buckets
    lose the older ones: answers are silently wrong.
    """
    running, reference = engine(text), engine(text)
    for each in (running, reference):
        each.push({"A": batch(range(3), 0)})
    with monkeypatch.context() as patch:
        patch.setattr(ChunkColumn, "append", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            running.push({"A": batch(range(3), 1)})
    for each in (running, reference):
        each.push({"A": batch(range(2), 2)})
    asked = {"B": batch(range(3), 3)}
    assert running.push(asked).num_rows == reference.push(asked).num_rows == 5


def test_interrupt_after_the_commit_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Places, newest times and counters are set after ``_broken`` is False again.

    An interrupt there loses the answer of the push, and the next push gives places twice.
    """
    running = engine(ROWS)
    with monkeypatch.context() as patch:
        patch.setattr(Counters, "count_rows", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            running.push({"A": batch(range(3), 0)})
    try:
        running.push({"A": batch(range(3), 0)})
    except PenstockError:
        return
    assert running.metrics()["state"]["windows"]["A"]["rows"] == 3


def test_interrupt_between_two_lists_of_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """ArrowChunks.append fills ``chunks`` before ``starts``: truncate then fails in the undo."""
    chunks = ArrowChunks(pa.string())
    monkeypatch.setattr(chunks, "starts", _Refusing(chunks.starts))
    with pytest.raises(KeyboardInterrupt):
        chunks.append(pa.array(["b"]))
    chunks.truncate(0)
    assert chunks.chunks == []


class _Refusing(list[int]):
    def append(self, value: int) -> None:
        raise KeyboardInterrupt


def test_a_failed_push_leaves_the_metrics_alone() -> None:
    """StepCounts.probes (and with it what probes make room for) goes up in a push that failed."""
    running = engine(JOIN + " AND A.id / (B.id - 5) > 0")
    running.push({"A": batch(range(10), 0)})
    before = running.metrics()
    with pytest.raises(PenstockError):
        running.push({"B": batch(range(5, 6), 1)})
    assert running.metrics() == before


# -- time ------------------------------------------------------------------------------------


def test_a_watermark_beyond_time_does_not_break_the_engine() -> None:
    """The promise is not checked: OverflowError in the commit, and the engine stays broken."""
    running = engine()
    try:
        running.push({"A": batch(range(1), 0)}, watermark=10**20)
    except PenstockError:
        running.push({"A": batch(range(1), 0)})
    running.checkpoint()


@pytest.mark.parametrize("watermark", ["now", 1.5, [1]])
def test_a_watermark_of_another_type_is_refused(watermark: Any) -> None:
    """TypeError from inside; 1.5 is even taken, and compiles the kernels for floats."""
    with pytest.raises(PenstockError):
        engine().push({"A": batch(range(1), 0)}, watermark=watermark)


@pytest.mark.parametrize("instant", [LARGEST, -LARGEST - 1])
def test_the_ends_of_time_are_instants_or_refused(instant: int) -> None:
    """A tuple at 2^63 - 1 dies before its birth; one at -2^63 is late with no watermark."""
    running = engine()
    try:
        answer = running.push({"A": batch(range(1), instant), "B": batch(range(1), instant)})
    except PenstockError:
        return
    assert answer.num_rows == 1


# -- mistakes of the caller ------------------------------------------------------------------


def _with_arrival(*columns: pa.Array) -> pa.Table:
    table = batch(range(1), 0)
    for column in columns:
        table = table.append_column("arrival", column)
    return table


@pytest.mark.parametrize(
    "given",
    [
        pa.array([1, 2]),
        pa.chunked_array([[1, 2]]),
        _with_arrival(pa.array([1]), pa.array([1])),
        _with_arrival(pa.array([2**40], pa.timestamp("s"))),
    ],
    ids=["array", "chunked array", "arrival twice", "arrival out of range"],
)
def test_a_wrong_batch_is_the_callers_mistake(given: Any) -> None:
    """These show an Arrow error or a KeyError instead of an InputError."""
    with pytest.raises(PenstockError):
        engine(ROWS).push({"A": given})


@pytest.mark.parametrize("blob", [None, "text"])
def test_a_checkpoint_that_is_no_bytes_is_refused(blob: Any) -> None:
    """TypeError from bytes()."""
    with pytest.raises(PenstockError):
        penstock.Engine.restore(engine().query, blob)


def test_a_lateness_beyond_floats_is_refused() -> None:
    """OverflowError: cannot convert float infinity to integer."""
    with pytest.raises(PenstockError):
        engine(lateness="9" * 400 + " DAYS")


def test_a_plan_that_subtracts_a_block_twice_is_refused() -> None:
    """Accepted and printed as the plan, while C runs with a tree of its own."""
    text = "SELECT A.k FROM A [NOW] EXCEPT SELECT B.k FROM B [NOW] EXCEPT SELECT C.k FROM C [NOW]"
    with pytest.raises(PenstockError):
        engine(text, plan="A - B - B")


def test_what_was_owed_at_a_checkpoint_dies_with_its_rows() -> None:
    """The result of a debt that a checkpoint had paid was shown after its row had left."""
    text = "SELECT RSTREAM A.id AS a, B.id AS b FROM A [ROWS 3], B [ROWS 2] WHERE A.k = B.k"
    running = engine(text, overload=penstock.Overload("defer", probes=1e12))
    for source, number, probes in (("B", 1, None), ("B", 2, None), ("A", 3, 0.0), ("B", 4, None)):
        if number == 4:
            running = penstock.Engine.restore(running.query, running.checkpoint())
        rows = batch(range(number, number + 1), number, lambda i: 0)
        shown = running.push({source: rows}, None, None, probes)
    assert sorted(shown.column("b").to_pylist()) == [2, 4]
