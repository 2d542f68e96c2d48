"""What all joins of a run share: the time, the log and the counts."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock_studies.jit.ledger import Ledger
from penstock_studies.jit.messages import Made, Message


@dataclass(slots=True)
class RunState:
    """``window`` is in milliseconds."""

    window: int
    log: list[Message | Made] | None
    ledger: Ledger = field(default_factory=Ledger)
    now: int = 0
    """Event time."""
    _ticks: int = 0

    @property
    def since(self) -> int:
        """Time from which on tuples are alive."""
        return self.now - self.window

    def tick(self) -> int:
        """The next instant of a time line on which no two things happen at once."""
        self._ticks += 1
        return self._ticks
