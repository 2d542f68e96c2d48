"""A cell in the memory of a Python worker, and what its last delivery led to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.engine.control.plan_event import PlanEvent
from penstock.engine.push.dropped import Dropped
from penstock.spark.cells.cell import Cell
from penstock.spark.cells.cell_report import Origin
from penstock.telemetry.operator_batch import OperatorBatch


@dataclass(frozen=True, slots=True)
class Taken:
    """What a delivery led to."""

    results: pa.Table
    origin: Origin
    engine_seconds: float
    pushed: float
    """When the push was over, by the performance counter."""
    rows: Mapping[str, int]
    dropped: tuple[Dropped, ...]
    """Rows that the cell got and did not take in."""
    silent: Mapping[str, float]
    """Streams that all state waits for: seconds of event time behind the newest."""
    state_bytes: int
    stored_bytes: int
    plan: str
    """The plan that the engine ran."""
    watermark: int | None
    """In ticks of the query's time unit, after the delivery."""
    operators: tuple[OperatorBatch, ...]
    decisions: tuple[PlanEvent, ...]
    overload: Mapping[str, Any]
    ways: Mapping[str, int]
    """Pushes by the way they went: ``compiled`` or ``reference``."""
    reasons: Mapping[str, int]
    """Pushes that were not compiled, by the reason."""


class HandedOn(NamedTuple):
    """What a host took after a push, as :meth:`penstock.Engine.note_host` wants it."""

    rows: int
    rows_seconds: float
    results: int
    results_seconds: float


@dataclass(slots=True)
class LiveCell:
    """A cell that has taken in the entry with ``nonce``, and all before it.

    ``taken`` is what that entry led to, None if it is unknown or too large to hold. ``base`` is the
    checkpoint of the cell behind it, if probes are owed.
    """

    nonce: str
    cell: Cell
    state_bytes: int
    taken: Taken | None = None
    base: bytes = b""
    seconds: float | None = None
    """Time that was left when the push began, if the budget is a time."""
    handed_on: HandedOn | None = None
    """What the host did with the rows and results of that entry."""

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        held = self.taken.results.nbytes if self.taken is not None else 0
        return self.state_bytes + held + len(self.base)
