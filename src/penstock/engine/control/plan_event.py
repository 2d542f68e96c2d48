"""What happened to the plan of an engine: one plain value per decision, whoever took it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Action = Literal[
    "keep",
    "migrate",
    "route",
    "set",
    "pin",
    "unpin",
    "undo",
    "refuse",
    "fail",
    "begin",
    "complete",
    "overtaken",
]


@dataclass(frozen=True, slots=True)
class PlanEvent:
    """A decision.

    The controller's are ``keep`` and ``migrate`` (and ``fail``, if it cannot go on), with the
    numbers that they rest on: see :class:`penstock.planning.adaptation.Decision`. ``set``, ``pin``,
    ``unpin`` and ``undo`` are what people asked for, ``refuse`` is what could not be done of it.
    ``route`` is an eddy's. ``begin`` tells that a plan that was prepared takes over; ``complete``
    that nothing is missing any more since the last change, after so many ``pushes``, and what the
    change has ``cost`` against what it was ``priced`` at, in CPU seconds; ``overtaken`` that
    another change came before that, and what it has cost until then.
    """

    action: Action
    before: str
    """The plan that was running."""
    plan: str
    """The plan that runs from now on."""
    at: float
    """Event time since the first tuple, in seconds; arrivals on the arrival line."""
    rows: int
    """Rows that the engine had taken in."""
    reason: str = ""
    rival: str | None = None
    """The best other plan that was considered."""
    exceeded: tuple[str, ...] = ()
    """The limits that even ``plan`` exceeds."""
    numbers: Mapping[str, float] = field(default_factory=dict)
    """CPU (share of a core), memory (bytes), cost and credit (CPU seconds), horizon (seconds)."""
    strategy: str = ""
    """How a change is carried out: ``jisc``, ``moving-state``, ``parallel-track``, or, of an eddy,
    ``reroute``; empty if nothing changes, or not yet."""
    strategy_reason: str = ""
    """Why it is carried out like this."""

    @property
    def is_change(self) -> bool:
        return self.before != self.plan

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self) | {"exceeded": list(self.exceeded), "numbers": dict(self.numbers)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> PlanEvent:
        known = {name: values[name] for name in cls.__dataclass_fields__ if name in values}
        return cls(**known | {"exceeded": tuple(known.get("exceeded", ()))})
