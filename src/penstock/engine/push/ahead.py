"""Rows that are too far ahead of the time at which they arrive.

One row a century ahead moves the clock of a query a century ahead: everything in its windows dies,
and every row that follows is late. No order of events by themselves tells a wrong time from a long
silence; the time of arrival does. So where ``max_ahead`` is given for a source, rows whose event
time is later than their arrival by more than that are set aside before anything looks at them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.push.dropped import Dropped
from penstock.engine.push.intake import Source
from penstock.errors import OptionError

AHEAD = "too far ahead"
"""The event time of the row is later than its arrival by more than ``max_ahead``."""
_PER_MILLISECOND = {"s": 0.001, "ms": 1, "us": 1_000, "ns": 1_000_000}


@dataclass(slots=True)
class Split:
    """A push without the rows that are too far ahead, and these."""

    batches: Mapping[str, Any]
    dropped: list[Dropped] = field(default_factory=list)


class Ahead:
    """Bounds on event times ahead of arrival, in milliseconds by source."""

    def __init__(self, most: Mapping[str, int], event_times: Mapping[str, str | None]) -> None:
        self._most = most
        self._times = {
            name: event_times[name] for name in most if event_times.get(name) is not None
        }

    @classmethod
    def of(
        cls, most: int | Mapping[str, int] | None, sources: Mapping[str, Source]
    ) -> Ahead | None:
        """The rule of the option ``max_ahead``; None if there is none."""
        if most is None:
            return None
        if not isinstance(most, Mapping):
            most = dict.fromkeys(sources, most)
        for name in most:
            if name not in sources:
                known = ", ".join(sources)
                raise OptionError(f"max_ahead names {name!r}; the query reads: {known}")
        return cls(most, {name: source.event_time for name, source in sources.items()})

    def split(self, batches: Mapping[str, Any], arrived: int) -> Split:
        """``batches`` as they go on; ``arrived`` is in milliseconds since 1970."""
        found = Split(batches)
        for name, column in self._times.items():
            batch = batches.get(name) if isinstance(batches, Mapping) else None
            if not isinstance(batch, pa.RecordBatch | pa.Table) or not len(batch):
                continue
            position = batch.schema.get_field_index(str(column))
            type_ = batch.schema.field(position).type if position >= 0 else None
            if type_ is None:
                continue
            latest = arrived + self._most[name]
            times = batch.column(position)
            if pa.types.is_timestamp(type_):
                times = times.cast(pa.timestamp(type_.unit)).cast(pa.int64())
                latest = int(latest * _PER_MILLISECOND[type_.unit])
            elif not pa.types.is_integer(type_):
                continue
            newest = pc.max(times).as_py()
            if newest is None or newest <= latest:
                continue
            ahead = pc.fill_null(pc.greater(times, latest), False)
            rows = (
                pa.table(batch.filter(ahead))
                if isinstance(batch, pa.Table)
                else (pa.Table.from_batches([batch.filter(ahead)]))
            )
            found.dropped.append(Dropped(name, AHEAD, rows))
            found.batches = {**found.batches, name: batch.filter(pc.invert(ahead))}
        return found
