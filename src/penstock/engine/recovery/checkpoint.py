"""Checkpoints: the leaf windows and the clock, and nothing that can be computed from them.

A result that may still matter is made of tuples that are all still alive, so the leaf windows give
back every state, every held result and every living result of an aggregate. The exception is set
difference: who was removed by a partner that has died since cannot be computed again, so the
results that it holds are written down, as row numbers into the windows.

Layout: magic, length and text of a JSON header, Arrow IPC streams, BLAKE2 of all that. Row numbers
are written from zero: row ``i`` of a leaf's table is row ``i`` after a restart. Nothing in a
checkpoint is followed before it has been verified (:mod:`penstock.engine.recovery.verify`).

Formats, all of which are read; ``tests/engine/recovery/formats`` has checkpoints of each:

== ===================================
1  another magic, and CRC-32 at the end
2  as above
== ===================================
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.engine.output.difference import Difference
from penstock.engine.output.output import DifferenceOutput
from penstock.engine.recovery.debt_checkpoint import (
    composites_table,
    load_composites,
    load_tree,
    tree_tables,
)
from penstock.engine.recovery.verify import (
    check_columns,
    check_rows,
    verified_header,
    verified_table,
)
from penstock.engine.state.clock import Clock
from penstock.engine.state.composites import Composites
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.rows import BIRTH, DEATH
from penstock.errors import CheckpointError, PenstockError
from penstock.kernels.lifespan import FOREVER
from penstock.plan.plan import Plan
from penstock.query.join_graph import JoinGraph, Rows
from penstock.values.interner import Interner
from penstock.values.key_encoding import bytes_of

if TYPE_CHECKING:
    from penstock.engine.engine import Engine

Int64s = NDArray[np.int64]

_MAGIC = b"PENSTCK2"
_FORMAT = 2
_MAGIC_1 = b"PENSTOCK"
_DIGEST = 32
"""Bytes of the checksum."""


@dataclass(slots=True)
class Checkpoint:
    """A header and its tables, in the order that the header gives."""

    header: dict[str, Any]
    tables: list[pa.Table]
    query: JoinGraph

    # -- writing -----------------------------------------------------------------------------

    @classmethod
    def of(cls, engine: Engine) -> Checkpoint:
        """What ``engine`` needs to go on."""
        if engine._output.needs_history:
            engine._pay_all()  # What is held is computed again, debts and all.
        tables: list[pa.Table] = []
        numbers: dict[str, Int64s] = {}
        for leaves in engine._leaves:
            for alias, leaf in leaves.items():
                numbers[alias] = _living(leaf, engine.query.by_rows)
                tables.append(_leaf_table(leaf, numbers[alias]))
        for interners in engine._interners:
            tables += [_interned(interner) for interner in interners.values()]
        difference = _difference_of(engine)
        if difference is not None:
            tables.append(_held_table(difference, numbers))
        control = engine._overload
        overload = {} if control is None else {"control": control.to_json()}
        if engine._owed_results is not None:
            overload["results"] = {}
            tables.append(composites_table(engine._owed_results, numbers))
        if control is not None and control.owes:
            overload["tree"], more = tree_tables(engine._trees[0], numbers)
            tables += more
        counters = engine._counters
        feedback, limits = engine.options.feedback, engine.options.limits
        header = {
            "format": _FORMAT,
            "query": fingerprint(engine.query),
            "text": engine.query.text,
            "plan": engine.routing or str(engine.plan),
            "options": {
                "feedback": feedback.to_json() if feedback is not None else "off",
                "overload": engine.options.overload.to_json(),
                "lateness": engine.options.lateness,
                "join": engine.options.join,
                "limits": None if limits is None else limits.to_json(),
                "adapt": engine.options.adapt,
                "execution": engine.options.execution,
                "idle": engine.options.idle,
                "watermark_policy": engine.options.watermark_policy,
                "max_ahead": engine.options.max_ahead,
            },
            "control": engine._control.to_json(),
            "now": engine._clock.now,
            "watermark": engine._clock.watermark,
            "late": engine._clock.late,
            "newest": engine._newest,
            "place": engine._place,
            "first": engine._first,
            "started": engine._started,
            "counters": {name: getattr(counters, name) for name in vars(counters)},
            "overload": overload,
            "tables": len(tables),
        }
        return cls(header, tables, engine.query)

    def to_bytes(self) -> bytes:
        text = json.dumps(self.header).encode()
        parts = [_MAGIC, struct.pack("<I", len(text)), text]
        for table in self.tables:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            blob = sink.getvalue().to_pybytes()
            parts += [struct.pack("<Q", len(blob)), blob]
        return b"".join([*parts, _checksum(*parts)])

    # -- reading -----------------------------------------------------------------------------

    @classmethod
    def from_bytes(cls, blob: bytes, query: JoinGraph) -> Checkpoint:
        """Read ``blob``; raises :class:`CheckpointError` if it is damaged or of another query."""
        if not isinstance(blob, bytes | bytearray | memoryview):
            raise CheckpointError(f"a checkpoint is bytes, not {type(blob).__name__}")
        data = memoryview(blob).cast("B")  # Slices of it are not copies.
        if len(data) < 16 or data[:8] not in (_MAGIC, _MAGIC_1):
            raise CheckpointError("this is not a Penstock checkpoint")
        format_ = 1 if data[:8] == _MAGIC_1 else 2
        end = len(data) - (4 if format_ == 1 else _DIGEST)
        body = data[: max(0, end)]
        expected = struct.pack("<I", zlib.crc32(body)) if format_ == 1 else _checksum(body)
        if data[end:] != expected:
            raise CheckpointError("the checkpoint is damaged or was cut off")
        (length,) = struct.unpack_from("<I", data, 8)
        header = verified_header(bytes(_part(body, 12, length)))
        if header.get("format") != format_:
            raise CheckpointError(
                f"the checkpoint has format {header.get('format')!r}; this version reads 1 to "
                f"{_FORMAT}"
            )
        of_query = [fingerprint(query)] + ([fingerprint_1(query)] if format_ == 1 else [])
        if header.get("query") not in of_query:
            raise CheckpointError(
                "the checkpoint belongs to another query (or to columns of other types); it was "
                f"made for:\n{header.get('text')}"
            )
        position = 12 + length
        tables = []
        while position < end:
            (size,) = struct.unpack("<Q", _part(body, position, 8))
            tables.append(verified_table(_part(body, position + 8, size)))
            position += 8 + size
        if len(tables) != header.get("tables"):
            raise CheckpointError("the checkpoint is damaged: it has too many tables, or too few")
        return cls(header, tables, query)

    def up_to(self, instant: int) -> Checkpoint:
        """The same without rows born after ``instant``, and with the clock there at the latest.

        What has expired by a clock that ran ahead is gone: only what comes is right again.
        """
        header = dict(self.header)
        if self.query.by_rows or len(self.query.blocks) > 1 or "tree" in header["overload"]:
            raise CheckpointError(
                "a checkpoint with windows of ROWS, EXCEPT or owed probes cannot be cut at a time"
            )
        windows = len(self.query.blocks[0].streams)
        statics = [stream.is_static for stream in self.query.blocks[0].streams]
        tables = list(self.tables)
        for place in range(windows):
            table = tables[place]
            if not statics[place] and "birth" in table.column_names:
                tables[place] = table.filter(pc.less_equal(table.column("birth"), instant))
        lateness = header["options"].get("lateness") or 0
        delays = lateness.values() if isinstance(lateness, Mapping) else [lateness]
        slack = max(delays, default=0) * self.query.ticks_per_millisecond
        for name, latest in (("now", instant), ("watermark", instant - slack)):
            header[name] = min(header[name], latest)
        if "late" in header:
            header["late"] = min(header["late"], instant - slack)
        header["newest"] = {name: min(at, instant) for name, at in header["newest"].items()}
        return Checkpoint(header, tables, self.query)

    def restore(
        self, engine_class: type[Engine], plan: str | Plan | None, options: Mapping[str, Any]
    ) -> Engine:
        """An engine that goes on from here."""
        try:
            return self._restored(engine_class, plan, options)
        except CheckpointError:
            raise
        except Exception as problem:
            if isinstance(problem, PenstockError) and (options or plan not in (None, "auto")):
                raise  # What the caller asks for may not be possible.
            if isinstance(problem, MemoryError):
                raise
            raise CheckpointError(
                f"the checkpoint is damaged: {type(problem).__name__}: {problem}"
            ) from problem

    def _restored(
        self, engine_class: type[Engine], plan: str | Plan | None, options: Mapping[str, Any]
    ) -> Engine:
        header = self.header
        overload = header.get("overload", {})
        given = None if plan == "auto" else plan
        first = header["plan"] if "tree" in overload else given or header["plan"]
        engine = engine_class(self.query, plan=first, **header["options"] | options)
        if given is None and "control" in header:
            engine._control.load(header["control"])
        if plan == "auto":
            engine._control.pinned = False
        tables = iter(self.tables)
        windows = [
            (alias, leaf, next(tables))
            for leaves in engine._leaves
            for alias, leaf in leaves.items()
        ]
        renumbered: dict[Interner, tuple[Int64s, Int64s]] = {}
        for interners in engine._interners:
            for interner in interners.values():
                renumbered[interner] = _reintern(interner, next(tables))
        for _, leaf, table in windows:
            _load_leaf(leaf, table, renumbered)
        counts = {alias: table.num_rows for alias, _, table in windows}
        late = header.get("late", header["watermark"])
        _check_numbers(header, late)
        engine._clock = Clock(header["now"], header["watermark"], engine._strict, late)
        engine._newest = dict(header["newest"])
        engine._place = header["place"]
        engine._first = header.get("first")
        engine._plan_since = engine.seconds
        engine._started = header["started"]
        for name, value in header["counters"].items():
            if not isinstance(getattr(engine._counters, name), type(value)):
                raise CheckpointError(f"the checkpoint is damaged: {name} is {value!r}")
            setattr(engine._counters, name, value)
        self._restore_output(engine, tables, counts)
        if engine._overload is not None:
            engine._overload.load_json(overload["control"], engine._clock.now)
            engine._overload.attach(engine._trees[0])
        if "tree" in overload:
            load_tree(engine, overload["tree"], tables, counts)
            if plan is not None:
                engine.migrate(plan)  # This pays the debt, if the plan is another.
        return engine

    def _restore_output(
        self, engine: Engine, tables: Iterator[pa.Table], counts: Mapping[str, int]
    ) -> None:
        """What is held above the join; states are completed on demand."""
        difference = _difference_of(engine)
        held = next(tables) if difference is not None else None
        if "results" in self.header.get("overload", {}):
            streams = tuple(engine._leaves[0])
            engine._owed_results = load_composites(next(tables), streams, counts)
        if not engine._output.needs_history:
            engine._complete_later()
            return
        results = engine._replay()
        if difference is not None:
            assert held is not None
            _load_held(difference, held, results[1:], tuple(engine._leaves[0]), counts)
            return
        if engine._owed_results is not None:
            results[0] = _without(results[0], engine._owed_results)
        engine._output.load(results, engine._clock)


def fingerprint(query: JoinGraph) -> str:
    """Tells queries apart by what they mean: windows, predicates, output, types of what they read.

    How the text is written does not matter, nor do columns that the query does not read.
    """
    parts: list[Any] = [query.time_unit]
    for block in query.blocks:
        parts += [block.emission, block.predicates, block.select, block.group_by, block.aggregates]
        for stream in block.streams:
            window = stream.window
            read = [*(window.partition_by if isinstance(window, Rows) else ()), stream.event_time]
            types = [stream.schema.field(name).type for name in read if name is not None]
            parts += [stream.alias, stream.source, window, stream.event_time, types]
            parts.append(stream.freshness)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def fingerprint_1(query: JoinGraph) -> str:
    """The fingerprint in checkpoints of format 1: the text, schemas, event times and output."""
    parts = [query.text, query.time_unit, str(query.schema)]
    for block in query.blocks:
        for stream in block.streams:
            parts += [stream.alias, stream.source, str(stream.event_time), str(stream.window)]
            parts.append(stream.schema.to_string(show_schema_metadata=False))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _checksum(*parts: bytes | memoryview) -> bytes:
    """Tells whether a checkpoint is whole; it is no signature."""
    found = hashlib.blake2b(digest_size=_DIGEST)
    for part in parts:
        found.update(part)
    return found.digest()


def _check_numbers(header: Mapping[str, Any], late: Any) -> None:
    """What the next push reckons with is whole numbers."""
    newest = header["newest"]
    first = header.get("first")
    numbers = [header["now"], header["watermark"], header["place"], late, *newest.values()]
    numbers += [] if first is None else [first]
    if not all(type(each) is int for each in numbers) or header["place"] < 0:
        raise CheckpointError("the checkpoint is damaged: a time in it is no number")


def _part(data: memoryview, start: int, size: int) -> memoryview:
    """``size`` bytes from ``start``, which have to be there."""
    if start + size > len(data):
        raise CheckpointError("the checkpoint is damaged: a part is longer than all of it")
    return data[start : start + size]


def _living(leaf: LeafWindow, by_rows: bool) -> Int64s:
    """The rows to write down: on the arrival line only those that have not been pushed out."""
    rows = np.arange(leaf.rows.tail, leaf.rows.head, dtype=np.int64)
    return rows[leaf.rows.take(DEATH, rows) == FOREVER] if by_rows else rows


def _leaf_table(leaf: LeafWindow, rows: Int64s) -> pa.Table:
    columns: dict[str, pa.Array] = {"birth": pa.array(leaf.rows.take(BIRTH, rows))}
    for position in range(leaf.key_count):
        columns[f"key {position}"] = pa.array(leaf.rows.take(leaf.key_column(position), rows))
    chosen = leaf.chosen(rows)
    if chosen is not None:
        columns["chosen"] = pa.array(chosen)
    names = list(columns) + [f"payload {name}" for name in leaf.payload.columns]
    arrays = list(columns.values()) + [
        leaf.payload.take(name, rows) for name in leaf.payload.columns
    ]
    return pa.Table.from_arrays(arrays, names=names)


def _load_leaf(
    leaf: LeafWindow, table: pa.Table, renumbered: dict[Interner, tuple[Int64s, Int64s]]
) -> None:
    expected = {"birth": pa.int64()}
    expected |= {f"key {position}": pa.int64() for position in range(leaf.key_count)}
    if leaf.chosen(np.empty(0, np.int64)) is not None:
        expected["chosen"] = pa.bool_()
    expected |= {f"payload {name}": column.type for name, column in leaf.payload.columns.items()}
    check_columns(table, expected, f"the window of {leaf.stream.alias}")
    keys = []
    for position in range(leaf.key_count):
        values = _integers(table, f"key {position}")
        interner = leaf.interner_of(position)
        if interner is not None and len(values):
            old, new = renumbered[interner]
            values = _mapped(values, old, new)
        keys.append(values)
    payload = {name: _whole(table, f"payload {name}") for name in leaf.payload.columns}
    chosen = None
    if "chosen" in table.column_names:
        flags = _whole(table, "chosen").to_numpy(zero_copy_only=False)
        chosen = None if flags.all() else np.flatnonzero(flags)
    leaf.load(_integers(table, "birth"), keys, payload, chosen)


def _interned(interner: Interner) -> pa.Table:
    numbers, values = interner.contents()
    return pa.table({"number": pa.array(numbers), "value": values})


def _reintern(interner: Interner, table: pa.Table) -> tuple[Int64s, Int64s]:
    """Old numbers in ascending order, and the new number of each."""
    check_columns(table, {"number": pa.int64(), "value": pa.large_binary()}, "a table of values")
    old = _integers(table, "number")
    data, offsets = bytes_of(_whole(table, "value"))
    new = interner.intern(data, offsets)
    order = np.argsort(old)
    return old[order], new[order]


def _mapped(values: Int64s, old: Int64s, new: Int64s) -> Int64s:
    """``new`` where a value is in ``old``; others belong to rows in no index and do not matter."""
    if len(old) == 0:
        return np.full(len(values), -1, np.int64)
    positions = np.minimum(np.searchsorted(old, values), len(old) - 1)
    return np.where(old[positions] == values, new[positions], -1)


def _difference_of(engine: Engine) -> Difference | None:
    output = engine._output
    return output.difference if isinstance(output, DifferenceOutput) else None


def _held_table(difference: Difference, numbers: dict[str, Int64s]) -> pa.Table:
    held, decided = difference.held
    columns = {
        f"row {alias}": pa.array(np.searchsorted(numbers[alias], rows))
        for alias, rows in held.ids.items()
    }
    return pa.table(
        {
            **columns,
            "birth": pa.array(held.births),
            "death": pa.array(held.deaths),
            "decided": pa.array(decided),
        }
    )


def _load_held(
    difference: Difference,
    table: pa.Table,
    removing: list[Composites],
    streams: tuple[str, ...],
    counts: Mapping[str, int],
) -> None:
    rows = {f"row {alias}": pa.int64() for alias in streams}
    times = {"birth": pa.int64(), "death": pa.int64()}
    check_columns(table, rows | times | {"decided": pa.bool_()}, "what is held")
    ids = {alias: _integers(table, f"row {alias}") for alias in streams}
    for alias, numbers in ids.items():
        check_rows(numbers, counts[alias], "what is held")
    held = Composites(ids, _integers(table, "birth"), _integers(table, "death"))
    decided = np.array(_whole(table, "decided").to_numpy(zero_copy_only=False), np.bool_)
    difference.load(held, decided, removing)


def _without(results: Composites, others: Composites) -> Composites:
    """The ``results`` that are not among ``others``."""
    gone = set(zip(*(rows.tolist() for rows in others.ids.values()), strict=True))
    mine = zip(*(results.ids[alias].tolist() for alias in others.ids), strict=True)
    keep = np.array([each not in gone for each in mine], np.bool_)
    return results.pick(np.flatnonzero(keep))


def _whole(table: pa.Table, name: str) -> pa.Array:
    chunks = table.column(name).chunks
    if not chunks:
        return pa.nulls(0, table.schema.field(name).type)
    if len(chunks) == 1:
        return chunks[0]
    try:
        return pa.concat_arrays(chunks)
    except pa.ArrowInvalid:
        return table.column(name)  # Dictionaries that do not fit into one.


def _integers(table: pa.Table, name: str) -> Int64s:
    return np.array(_whole(table, name).to_numpy(zero_copy_only=False), np.int64)
