"""The work of a cell in one micro-batch: packed rows in, answers and a report out.

What Spark keeps of a cell is a header and named values (:mod:`penstock.spark.state.cell_store`);
:mod:`penstock.spark.state.cell_history` says what becomes of both.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import MapState

from penstock.cells.delivery import Delivery, from_chunk
from penstock.cells.packing import NO_NEWS
from penstock.engine.overload.overload import Overload
from penstock.errors import CheckpointError, InvariantBroken
from penstock.spark.cells.cell import CellSettings, static_share
from penstock.spark.cells.cell_report import CellReport, in_milliseconds, newest_times
from penstock.spark.cells.trigger_budget import seconds_until_due
from penstock.spark.operator.evolution import Seeds
from penstock.spark.rows.envelope import Envelope
from penstock.spark.rows.result_time import ResultTime
from penstock.spark.rows.side_rows import SideRow, counted, side_rows, told_once
from penstock.spark.state.cell_history import CellHistory
from penstock.spark.state.cell_store import StateValues
from penstock.spark.state.checkpoint_files import CheckpointFiles
from penstock.spark.state.engine_cache import WORKER
from penstock.spark.state.live_cell import HandedOn
from penstock.spark.state.nearby_values import nearby
from penstock.spark.state.plan_orders import PlanOrders
from penstock.spark.state.static_versions import StaticVersions


@dataclass(frozen=True, slots=True)
class CellWork:
    """What the cells of ``settings`` do; ``keys`` are the keys of the cells in order.

    ``orders`` are the files among which people say what they want of the plan. ``interval`` is that
    of the trigger in seconds, if there is one.
    """

    settings: CellSettings
    keys: tuple[int, ...]
    fingerprint: str
    orders: CheckpointFiles | None = None
    interval: float | None = None
    column: str | None = None
    """The column in which dropped rows leave beside the answers; None: they are only counted."""
    seeds: Seeds | None = None
    """Windows that were laid out anew since the query ran last, if they had to be."""
    born: ResultTime | None = None
    """The column of the event time of results, if it is wanted."""
    versions: StaticVersions | None = None
    """The versions of static relations, if any is refreshed."""

    def take(
        self, key: int, rows: Iterable[pd.DataFrame], values: MapState, mark: str, batch: int
    ) -> Iterator[pd.DataFrame]:
        """Take the packed ``rows`` of micro-batch ``batch`` into the cell with ``key``.

        ``values`` is its state, ``mark`` stands for this work in caches.
        """
        start = time.perf_counter()
        if key not in self.keys:  # A cell of before: its windows are elsewhere by now.
            values.clear()
            return
        number = self.keys.index(key)
        packed = Packed.of(self.settings, rows)
        for source, version in packed.refreshed.items():
            relation = self._version(source, version)
            share = static_share(self.settings, number, source, relation)
            packed.delivery.add(source, None, share)
        delivery = packed.delivery
        given = PlanOrders.read(self.orders).given(self.settings.plan)
        store = nearby(StateValues(values))
        seeds = self.seeds
        seed_for = None if seeds is None else partial(seeds.seed, number)
        history = CellHistory(store, self.settings, number, self.fingerprint, given, mark, seed_for)
        try:
            history.read()
            taken, live = history.take(delivery, WORKER, self._due(start))
        except EOFError:  # Spark's state server dies of what it cannot write, without a word.
            raise CheckpointError(
                "Spark's state store does not answer any more; is the disk of the checkpoint full?"
            ) from None
        late = told_once(self.settings, number, taken.dropped)
        dropped = [*packed.rejected, *side_rows(self.settings, late, self.column is not None)]
        report = CellReport(
            batch=batch,
            cell=number,
            rows=taken.rows,
            results=taken.results.num_rows,
            state_bytes=taken.state_bytes,
            stored_bytes=taken.stored_bytes,
            engine_seconds=taken.engine_seconds,
            total_seconds=time.perf_counter() - start,
            origin=taken.origin,
            plan=taken.plan,
            watermark=taken.watermark,
            sent=packed.sent,
            dropped=counted(dropped),
            silent=taken.silent,
            refreshed=packed.refreshed,
            event_clock=in_milliseconds(self.settings.query, taken.watermark),
            newest=newest_times(self.settings.query, live.cell.engine.newest),
            operators=taken.operators,
            decisions=tuple(event.to_json() for event in taken.decisions),
            ways=taken.ways,
            reasons=taken.reasons,
            overload=taken.overload,
        )
        ready = time.perf_counter()
        results, schema = taken.results, self.settings.query.schema
        if self.born is not None:
            results, schema = self.born.folded(results), self.born.schema(schema)
        yield from Envelope.of(schema, self.column).wrap(results, report, dropped)
        count, handed = sum(taken.rows.values()), time.perf_counter() - ready
        live.handed_on = HandedOn(count, ready - taken.pushed, taken.results.num_rows, handed)

    def _version(self, source: str, version: int) -> pa.Table:
        """The rows of the static relation ``source`` in its ``version``."""
        if self.versions is None:
            raise InvariantBroken(f"{source} has a version, and nobody knows where")
        return self.versions.read(source, version)

    def _due(self, start: float) -> float | None:
        """When the cell must be done that was called at ``start``, by the clock of ``start``."""
        option = self.settings.options.get("overload")
        if not isinstance(option, Overload) or option.seconds is None:
            return None
        if self.interval is None:
            return start + option.seconds
        return start + seconds_until_due(self.interval, option.seconds, time.time())


@dataclass(slots=True)
class Packed:
    """What the packed rows of one cell hold."""

    delivery: Delivery
    sent: dict[str, int]
    """Rows that were sent to any cell, as far as this one tells it, by source."""
    rejected: list[SideRow]
    """Rows that were sent to none, as far as this cell tells it."""
    refreshed: dict[str, int] = field(default_factory=dict)
    """Static relations that have another version from now on, with its number."""

    @classmethod
    def of(cls, settings: CellSettings, frames: Iterable[pd.DataFrame]) -> Packed:
        columns = ["source", "partition", "sequence", "newest", "chunk", "sent", "rejected"]
        packed = [
            row
            for frame in frames
            for row in zip(*(frame[column].tolist() for column in columns), strict=True)
        ]
        packed.sort(key=lambda row: row[:3])
        found = cls(Delivery(), {}, [])
        for number, _, sequence, newest, chunk, sent, rejected in packed:
            source = settings.query.sources[int(number)]
            if source in settings.static:
                found.refreshed[source] = int(sequence)
                continue
            found.delivery.add(
                source,
                None if newest == NO_NEWS else int(newest),
                None if chunk is None else bytes(chunk),
            )
            found.sent[source] = found.sent.get(source, 0) + int(sent)
            if rejected is not None:
                found.rejected += [
                    SideRow(source, row["reason"], value=row["value"], count=row["count"])
                    for row in from_chunk(bytes(rejected)).to_pylist()
                ]
        return found
