"""Rows that come at a rate, as Spark's source of this name makes them: for demos and tests.

Row ``n`` has the value ``n`` and the time ``start + n / rate``. A portion has the start, so rows
are the same whenever they are read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.sources.portion import UNLIMITED, Admission, Brief, Part, Portion

SCHEMA = pa.schema([("timestamp", pa.timestamp("us", "UTC")), ("value", pa.int64())])


class TakenRows:
    """How many rows were taken, and when the first was due, in microseconds since 1970."""

    def __init__(self, kept: Sequence[int] | None = None) -> None:
        self.start, self.count = (-1, 0) if kept is None else kept

    def add(self, portion: Portion) -> None:
        self.start, _, self.count = portion

    def forget(self, available: int) -> None:
        """There are two numbers, which stay."""

    def to_json(self) -> list[int]:
        return [self.start, self.count]


@dataclass(frozen=True)
class RateSource:
    """``rate`` rows per second."""

    name: str
    rate: int = 1
    admission: Admission = UNLIMITED
    clock: Callable[[], float] = field(default=time.time, compare=False)

    @property
    def schema(self) -> pa.Schema:
        return SCHEMA

    @property
    def kept_nanoseconds(self) -> int | None:
        return None

    @property
    def partitioned(self) -> None:
        return None

    def progress(self, kept: Any = None) -> TakenRows:
        return TakenRows(kept)

    def available(self) -> int:
        return int(self.clock() * 1e6)

    def next_portion(
        self,
        progress: TakenRows,
        admission: Admission,
        within: int | None = None,
        is_last: bool = False,
    ) -> Portion:
        now = self.available() if within is None else within
        start = now if progress.start < 0 else progress.start
        count = max(0, now - start) * self.rate // 1_000_000
        if admission.rows is not None:
            count = min(count, progress.count + admission.rows)
        if count <= progress.count and progress.start >= 0:
            return None
        return [start, progress.count, count]

    def everything(self) -> Portion:
        return self.next_portion(self.progress(), UNLIMITED)

    def waiting(self, progress: TakenRows, portion: Portion, available: int) -> int | None:
        return None

    def parts(self, portion: Portion) -> Sequence[Part]:
        return [Part(portion)]

    def brief(self, portion: Portion, column: str) -> Brief | None:
        return None

    def read(self, portion: Portion, columns: Sequence[str], again: bool = False) -> pa.Table:
        start, first, end = portion
        values = np.arange(first, end, dtype=np.int64)
        times = pa.array(start + values * 1_000_000 // self.rate, SCHEMA.field("timestamp").type)
        return pa.table([times, values], schema=SCHEMA).select(list(columns))
