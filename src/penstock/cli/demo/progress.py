"""What the demo knows about its run: totals, and how it went by tenths of a second."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

import penstock

_SLICE = 0.1
_SLICES = 600
_SAMPLE = 8


class Progress:
    """Totals of a run, a history for the curve, and the latest results."""

    def __init__(self, engine: penstock.Engine) -> None:
        self._engine = engine
        self.rows = 0
        self.results = 0
        self.cpu = 0.0
        """CPU seconds that the engine took."""
        self.elapsed = 0.0
        self.slowest = 0.0
        """The slowest push, in seconds."""
        self.history: deque[int] = deque([0], maxlen=_SLICES)
        """Results in every tenth of a second; the last one is still growing."""
        self.latest: list[dict[str, Any]] = []
        self._start = time.perf_counter()
        self._slice_end = _SLICE

    def note(
        self, batches: Mapping[str, pa.Table], table: pa.Table, wall: float, cpu: float
    ) -> None:
        """A push is done, which took ``wall`` and ``cpu`` seconds."""
        self.slowest = max(self.slowest, wall)
        self.rows += sum(len(batch) for batch in batches.values())
        self.results += len(table)
        self.cpu += cpu
        self.elapsed = time.perf_counter() - self._start
        while self.elapsed >= self._slice_end:
            self.history.append(0)
            self._slice_end += _SLICE
        self.history[-1] += len(table)
        if len(table):
            self.latest = table.slice(max(0, len(table) - _SAMPLE)).to_pylist()

    @property
    def engine_rate(self) -> float:
        """Tuples per CPU second of the engine."""
        return self.rows / max(self.cpu, 1e-9)

    @property
    def metrics(self) -> dict[str, Any]:
        metrics: dict[str, Any] = self._engine.metrics()
        return metrics
