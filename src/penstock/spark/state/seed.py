"""Seeds: windows that are laid out anew, for other cells, another lateness or a changed query.

The state of a cell has the deliveries whose rows may still be alive, as they came
(:mod:`penstock.spark.state.cell_history`). They were not laid out for a plan, and whoever pushes
them again has the windows of then. So to go on with other cells, take the deliveries of all old
cells batch by batch, each row once, send them where they belong now, and let every new cell push
its own, answers dropped. This is what a cell does that was lost, only with other deliveries.

- *Each row once*: where a row went to several cells, one of them has the copy that counts, which
  follows from the place of the cell alone (:meth:`penstock.cells.router.Router.first_copies`).
- *The same rows are late*: a delivery has the newest event times of its batch. A first, empty one
  has those of all that came before, and a delivery is pushed with the lateness that it came with.
  So a state has *eras*, one for each lateness since its beginning, and an engine goes through all
  of them; its watermark does not go back. Of eras whose deliveries are gone, one that is empty is
  left, with the newest event times at its end.
- *How far back*: batches that all old cells still have. A cell keeps what can reach the watermark,
  and all cells have one watermark.

What cannot be kept is refused: probes that are owed, windows that count rows by value once
deliveries were let go, columns that the query did not read before, longer windows, rows that an
earlier predicate on one stream had left out, watermarks that go, and those that come where groups
wait for them.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from penstock.cells.delivery import Delivery, from_chunk, to_chunk
from penstock.cells.router import Router
from penstock.engine.engine import Engine
from penstock.engine.options import milliseconds
from penstock.errors import CheckpointError
from penstock.query.join_graph import EquiPredicate, JoinGraph
from penstock.spark.cells.cell import CellSettings
from penstock.spark.cells.reach import Reach

ANEW = "name another checkpoint folder to begin anew"
"""The way out, where windows cannot be kept."""


@dataclass(frozen=True, slots=True)
class KeptDelivery:
    """The delivery of one batch; ``newest`` is that of all batches up to it."""

    version: int
    newest: Mapping[str, int]
    delivery: Delivery


@dataclass(frozen=True, slots=True)
class Rules:
    """What makes a row late: delays by source and ``idle`` in milliseconds, and the policy."""

    delays: Mapping[str, int]
    policy: str = "min"
    idle: int | None = None

    @classmethod
    def of(cls, settings: CellSettings) -> Rules:
        """The rules of ``settings``."""
        idle = milliseconds("idle", settings.options.get("idle"))
        policy = settings.options.get("watermark_policy", "min")
        return cls(dict(settings.delays), str(policy), idle)

    def on(self, settings: CellSettings) -> CellSettings:
        """``settings`` with these rules."""
        options = {**settings.options, "watermark_policy": self.policy, "idle": self.idle}
        return replace(settings, delays=self.delays, options=options)


@dataclass(frozen=True, slots=True)
class Era:
    """The batches with one lateness, up to the version ``until``; ``newest`` is as of then."""

    rules: Rules
    until: int
    newest: Mapping[str, int]

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Era:
        return cls(**{**found, "rules": Rules(**found["rules"])})


@dataclass(frozen=True, slots=True)
class OldCell:
    """What the state of a cell has of its windows.

    ``sources`` are those of whose rows it has the copy that counts. ``eras`` are all since the
    beginning. ``since`` has the newest event times before the first delivery, None if that is the
    very first. ``shape`` is that of the query then (:func:`shape_of`). ``reason`` is why its
    windows cannot be laid out anew, None if they can.
    """

    sources: frozenset[str]
    eras: Sequence[Era]
    since: Mapping[str, int] | None
    shape: Mapping[str, Any]
    deliveries: Sequence[KeptDelivery]
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Seed:
    """The deliveries of a new cell; ``before`` is the last entry of the state that it replaces.

    ``eras`` has, in order, how many of the deliveries came by which rules.
    """

    before: str | None
    eras: Sequence[tuple[Rules, int]]
    version: int
    deliveries: Sequence[Delivery]

    def to_bytes(self) -> bytes:
        blobs = [b"".join(delivery.to_parts()) for delivery in self.deliveries]
        about = {
            "before": self.before,
            "eras": [(asdict(rules), count) for rules, count in self.eras],
            "version": self.version,
            "sizes": [len(blob) for blob in blobs],
        }
        text = json.dumps(about).encode()
        return b"".join([struct.pack("<I", len(text)), text, *blobs])

    @classmethod
    def from_bytes(cls, data: bytes) -> Seed:
        (length,) = struct.unpack_from("<I", data)
        about = json.loads(data[4 : 4 + length])
        about["eras"] = [(Rules(**rules), count) for rules, count in about["eras"]]
        deliveries, position = [], 4 + length
        for size in about.pop("sizes"):
            deliveries.append(Delivery.from_bytes(data[position : position + size]))
            position += size
        return cls(deliveries=deliveries, **about)


def seeds(
    old: Sequence[OldCell], settings: CellSettings, before: Sequence[str | None]
) -> tuple[list[Seed], dict[str, int]]:
    """The seed of each cell of ``settings``, and the rows of each source that are kept.

    ``before`` has the last entry that each cell has now.
    """
    for cell in old:
        if cell.reason is not None:
            raise CheckpointError(f"{cell.reason}; {ANEW}")
    reason = unkept(old[0].shape, shape_of(settings.query))
    if reason is not None:
        raise CheckpointError(f"{reason}; {ANEW}")
    reason = _unsettled(old[0].eras[-1].rules, settings)
    if reason is not None:
        raise CheckpointError(f"{reason}; {ANEW}")
    needed = Engine(settings.query).columns
    router = Router(settings.query, settings.placement)
    cells = range(settings.placement.cells)
    first = max(cell.deliveries[0].version for cell in old)
    since = next(c.since for c in old if c.deliveries[0].version == first)
    found: list[list[Delivery]] = [[] for _ in cells]
    moving = {s.source: s for b in settings.query.blocks for s in b.streams if not s.is_static}
    versions = sorted({d.version for cell in old for d in cell.deliveries if d.version >= first})
    by_version: dict[int, list[tuple[OldCell, Delivery]]] = {v: [] for v in versions}
    for cell in old:
        for each in cell.deliveries:
            if each.version >= first:
                by_version[each.version].append((cell, each.delivery))
    kept = dict.fromkeys(moving, 0)
    eras: list[tuple[Rules, int]] = []
    for version, era in _in_eras(versions, old[0].eras):
        if version is None or version == first:
            news = era.newest if version is None else since or {}
            for deliveries in found:
                deliveries.append(Delivery(dict(news)))
            eras.append((era.rules, 1))
        if version is None:
            continue
        if eras[-1][0] is not era.rules:
            eras.append((era.rules, 0))
        eras[-1] = era.rules, eras[-1][1] + 1
        parts = by_version[version]
        new = [Delivery(dict(parts[0][1].newest)) for _ in cells]
        for source in moving:
            tables = [
                from_chunk(chunk)
                for cell, delivery in parts
                if source in cell.sources
                for chunk in delivery.chunks.get(source, ())
            ]
            if not tables:
                continue
            rows = pa.concat_tables(tables).combine_chunks()
            kept[source] += len(rows)
            _check_columns(source, rows.schema, moving[source].schema, needed[source])
            columns = {name: _whole(rows.column(name)) for name in rows.column_names}
            for share in router.route(source, columns, len(rows)):
                mine = rows if share.rows is None else rows.take(pa.array(share.rows))
                chunk = to_chunk(mine)
                for number in share.cells:
                    new[number].add(source, None, chunk)
        for number in cells:
            found[number].append(new[number])
    made = [Seed(before[number], eras, versions[-1], found[number]) for number in cells]
    return made, kept


def _in_eras(versions: Sequence[int], eras: Sequence[Era]) -> Iterator[tuple[int | None, Era]]:
    """``versions`` in order with the era of each; None for an era that has none of them."""
    left = list(versions)
    for era in eras:
        if left[0] > era.until:
            yield None, era
        while left and left[0] <= era.until:
            yield left.pop(0), era


def shape_of(query: JoinGraph) -> dict[str, Any]:
    """What is kept of each source: for how long, by which clock, and which rows.

    Rows that fail a predicate on their stream alone, or have NULL where equality is asked for, may
    not have reached a cell.
    """
    reach = Reach.of(query)
    shape: dict[str, Any] = {}
    for block in query.blocks:
        for stream in block.streams:
            if stream.is_static:
                continue
            alone = [str(p) for p in block.predicates if p.streams == {stream.alias}]
            equated = [
                f"{p.side(stream.alias)} IS NOT NULL"
                for p in block.predicates
                if isinstance(p, EquiPredicate) and stream.alias in p.streams
            ]
            each = shape.setdefault(
                stream.source,
                {
                    "reach": reach.spans.get(stream.source),
                    "rows": reach.counts.get(stream.source),
                    "roles": {},
                },
            )
            each["time"] = [stream.event_time, query.time_unit]
            each["roles"][stream.alias] = sorted({*alone, *equated})
    return shape


def unkept(old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    """Why what was kept for a query of shape ``old`` is not enough for ``new``; None if it is."""
    for source, wanted in new.items():
        if source not in old:
            return f"the windows of {source} were not kept before"
        kept = old[source]
        if kept["time"] != wanted["time"]:
            return f"{source} has another event time than before"
        if kept["reach"] is not None and (
            wanted["reach"] is None or wanted["reach"] > kept["reach"]
        ):
            return f"the window of {source} was shorter before"
        count, asked = kept.get("rows"), wanted["rows"]
        if count is not None and (asked is None or asked > count):
            return f"the window of {source} had {count} rows before"
        for alias, conditions in wanted["roles"].items():
            for role, before in kept["roles"].items():
                missing = [each for each in before if each not in conditions]
                if missing and (role == alias or alias not in kept["roles"]):
                    return f"rows of {source} that fail {missing[0]} were not kept"
    return None


def _unsettled(before: Rules, settings: CellSettings) -> str | None:
    """Why other watermarks than ``before`` ask for rows that are gone, or let some leave twice.

    A stream without a watermark is never late, and may match rows of any age. Groups and EXCEPT
    wait for the watermark if every stream has one, and for nothing if not.
    """
    query = settings.query
    moving = {s.source for block in query.blocks for s in block.streams if not s.is_static}
    if query.by_rows:
        return None
    for source in sorted(moving & before.delays.keys() - settings.delays.keys()):
        return f"{source} has no watermark any more, and may match rows that were let go"
    if (query.is_grouped or query.minus) and moving <= settings.delays.keys():
        for source in sorted(moving - before.delays.keys()):
            return f"{source} has its first watermark, and GROUP BY and EXCEPT did without so far"
    return None


def _check_columns(
    source: str, found: pa.Schema, declared: pa.Schema, needed: Sequence[str]
) -> None:
    for name in needed:
        if name not in found.names:
            raise CheckpointError(f"{source}.{name} was not read before, so not kept; {ANEW}")
        before, now = found.field(name).type, declared.field(name).type
        if before != now:
            raise CheckpointError(f"{source}.{name} was {before} before and is {now}; {ANEW}")


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.nulls(0, column.type)
