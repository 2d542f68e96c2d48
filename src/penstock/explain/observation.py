"""What was seen while a plan ran, to stand beside what was estimated.

The engine fills one :class:`Observation` per window and per join, by the streams it covers;
anything it does not know stays None. :func:`observed_in` makes them of ``engine.metrics()``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.plan.notation import read
from penstock.plan.stream_set import StreamSet


@dataclass(frozen=True, slots=True)
class Observation:
    """One operator."""

    rate: float | None = None
    """Tuples per second of event time that it took in (a window) or made (a join)."""
    rows: float | None = None
    """Rows that it holds."""
    cpu: float | None = None
    """CPU seconds per second."""
    memory: float | None = None
    """Bytes that it holds."""


@dataclass(frozen=True, slots=True)
class Observations:
    """A whole plan."""

    operators: Mapping[StreamSet, Observation] = field(default_factory=dict)
    total: Observation = Observation()

    def of(self, streams: StreamSet) -> Observation | None:
        return self.operators.get(streams)


def observed_in(
    metrics: Mapping[str, Any], seconds: float, cpu_seconds: float | None = None
) -> Observations:
    """What the metrics of an engine say after ``seconds`` of event time.

    ``cpu_seconds`` is the CPU time of all pushes, if the host has counted it.
    """
    windows, states = metrics["state"]["windows"], metrics["state"]["joins"]
    per_second = 1 / seconds if seconds > 0 else 0.0
    found = {
        StreamSet.of(alias): Observation(rows=each["rows"], memory=each["bytes"])
        for alias, each in windows.items()
    }
    for joined in metrics["joins"]:
        streams = read(joined["plan"]).streams
        state = states.get(str(streams), {})
        found[streams] = Observation(
            rate=joined["made"] * per_second, rows=state.get("rows"), memory=state.get("bytes")
        )
    total = Observation(
        rate=metrics["results"] * per_second,
        cpu=None if cpu_seconds is None else cpu_seconds * per_second,
        memory=metrics["state"]["bytes"],
    )
    return Observations(found, total)
