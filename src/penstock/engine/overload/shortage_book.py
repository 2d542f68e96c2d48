"""The book of a query that is short of CPU: what was done and skipped, since when, and until when.

A push writes into a draft, which counts when the push is done. The query is short when a push needs
more probes than it may make, or owes some; it has recovered when several pushes in a row were not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from penstock.errors import CheckpointError

CALM = 3
"""Pushes without a limit after which a query counts as recovered."""
MOST_EVENTS = 64
"""Events that are kept."""


class ShortageBook:
    """Totals and events of one overload policy."""

    def __init__(self, policy: str) -> None:
        self._policy = policy
        self.totals = {"probes": 0, "skipped": 0, "paid": 0, "forgotten": 0, "stale": 0}
        """Probes made, skipped, made late and given up, and results that were stale."""
        self.draft = dict(self.totals)
        """The totals if the push at hand is done."""
        self.since: int | None = None
        """The instant at which the query got short; None if it is not."""
        self._calm = 0
        self.events: list[dict[str, Any]] = []
        """The latest times that the query got short or recovered."""
        self._numbered = 0

    def begin(self) -> None:
        """A push comes, or has failed: nothing is drafted."""
        self.draft = dict(self.totals)

    def commit(self) -> None:
        """The push is done."""
        self.totals = self.draft

    def note(self, now: int, is_short: bool, needed: float, allowed: float) -> None:
        """A push ended at ``now``; it ``needed`` so many probes and was ``allowed`` so many."""
        if is_short:
            self._calm = 0
            if self.since is None:
                self.since = now
                self._event(now, "short", needed=needed, allowed=allowed)
        elif self.since is not None:
            self._calm += 1
            if self._calm >= CALM:
                since, self.since = self.since, None
                self._event(now, "recovered", since=since, **self.totals)

    def to_json(self, events: int) -> dict[str, Any]:
        """The book with the last ``events``."""
        return {
            "totals": self.totals,
            "since": self.since,
            "events": self.events[-events:],
            "numbered": self._numbered,
        }

    def load_json(self, values: Mapping[str, Any]) -> None:
        """Go on from what :meth:`to_json` wrote."""
        if values["totals"].keys() != self.totals.keys():
            raise CheckpointError(f"the checkpoint is damaged: totals are {values['totals']!r}")
        self.totals = dict(values["totals"])
        self.draft = dict(self.totals)
        self.since = values["since"]
        self.events = list(values["events"])
        self._numbered = values["numbered"]

    def _event(self, now: int, kind: str, **values: float) -> None:
        self._numbered += 1
        plain = {
            name: round(each) if math.isfinite(each) else None for name, each in values.items()
        }
        head = {"number": self._numbered, "event": kind, "at": now, "policy": self._policy}
        self.events = [*self.events[1 - MOST_EVENTS :], head | plain]
