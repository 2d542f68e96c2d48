"""What is known about a run: totals and the recent past, made of nothing but its events."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from penstock.telemetry import (
    Batch,
    CellBatch,
    Event,
    Failure,
    PlanDecision,
    Start,
    Stop,
    Warned,
)

MOST_WARNINGS = 4
"""So many warnings stay on the screen."""
RECENT = 60
"""So many micro-batches are drawn."""
_SMOOTHED = 5
"""So many make a rate."""


@dataclass
class Progress:
    """The run so far."""

    start: Start | None = None
    end: Stop | Failure | None = None
    batches: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    dropped: dict[str, Counter[str]] = field(default_factory=dict)
    """Rows that were dropped, by source and reason."""
    filtered: Counter[str] = field(default_factory=Counter)
    silent: Mapping[str, float] = field(default_factory=dict)
    """Streams that all state waits for, as of the last batch: seconds of event time behind."""
    warnings: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_WARNINGS))
    results: int = 0
    busy: float = 0.0
    """Seconds in micro-batches."""
    engine: float = 0.0
    slowest: float = 0.0
    changes: int = 0
    """Changes of plan, in all cells."""
    refused: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """The limits that each cell exceeds, as it said last."""
    recent: deque[Batch] = field(default_factory=lambda: deque(maxlen=RECENT))

    def note(self, event: Event) -> None:
        """One more event."""
        if isinstance(event, Start):
            self.start = event
        elif isinstance(event, Batch):
            self.batches += 1
            self.rows.update(event.rows)
            self.late.update(event.late)
            self.filtered.update(event.filtered)
            self.silent = event.silent
            for source, reasons in event.dropped.items():
                self.dropped.setdefault(source, Counter()).update(reasons)
            self.results += event.results
            self.busy += event.seconds
            self.engine += event.engine_seconds
            self.slowest = max(self.slowest, event.seconds)
            self.recent.append(event)
        elif isinstance(event, PlanDecision):
            self.changes += event.before != event.plan
            if event.action in ("keep", "migrate"):
                self.refused[event.cell] = event.exceeded
        elif isinstance(event, Warned):
            self.warnings.append(event.text)
        elif isinstance(event, Stop | Failure):
            self.end = event

    @property
    def latest(self) -> Batch | None:
        return self.recent[-1] if self.recent else None

    @property
    def cells(self) -> tuple[CellBatch, ...]:
        return self.latest.cells if self.latest else ()

    @property
    def exceeded(self) -> list[str]:
        """The limits that no plan of some cell is within."""
        return sorted({limit for limits in self.refused.values() for limit in limits})

    def rate(self, source: str | None = None) -> float:
        """Rows per second in the last micro-batches and the time between them."""
        batches = list(self.recent)[-_SMOOTHED:]
        if not batches:
            return 0.0
        rows = sum(
            sum(batch.rows.values()) if source is None else batch.rows.get(source, 0)
            for batch in batches
        )
        begin, last = (datetime.fromisoformat(b.at) for b in (batches[0], batches[-1]))
        seconds = (last - begin).total_seconds() + batches[-1].seconds
        return rows / seconds if seconds > 0 else 0.0
