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
    metrics: Mapping[str, Any],
    seconds: float,
    cpu_seconds: float | None = None,
    running: float | None = None,
) -> Observations:
    """What the metrics of an engine say after ``seconds`` of event time.

    ``cpu_seconds`` is the time in all pushes, if it was measured. The plan has been ``running`` for
    so many of the seconds; its operators have counted since then.
    """
    windows, states = metrics["state"]["windows"], metrics["state"]["joins"]
    per_second = 1 / seconds if seconds > 0 else 0.0
    span = seconds if running is None else running
    in_plan = 1 / span if span > 0 else 0.0
    found = {
        StreamSet.of(alias): Observation(
            rows=each["rows"], cpu=each["seconds"] * in_plan, memory=each["bytes"]
        )
        for alias, each in windows.items()
    }
    for joined in metrics["joins"]:
        streams = read(joined["plan"]).streams
        state = states.get(str(streams), {})
        found[streams] = Observation(
            rate=joined["made"] * in_plan,
            rows=state.get("rows"),
            cpu=joined["seconds"] * in_plan,
            memory=state.get("bytes"),
        )
    total = Observation(
        rate=metrics["results"] * per_second,
        cpu=None if cpu_seconds is None else cpu_seconds * per_second,
        memory=metrics["state"]["bytes"],
    )
    return Observations(found, total)
