"""What a person wants to be told of in the night, found in the events of a run.

An alert *begins* when its condition is first true and *is over* when it is false again; each is
told once. Shares of rows are over the last :data:`BATCHES` micro-batches that had rows of the
source, so that one bad row after an hour of silence is no alert of a hundred per cent for long.

========== =========================================================================================
failed     the run has failed
short      a cell is short of CPU
silent     all state waits for a stream that has nothing
late       of a source, more rows than allowed came behind the watermark
rejected   of a source, more rows than allowed had no event time or could not be read
lag        the watermark is further behind the clock than allowed
no batch   no micro-batch was committed for longer than allowed
========== =========================================================================================
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias, get_args

from penstock.telemetry.events import Alert, Batch, Event, Failure, OverloadChange, Start

BATCHES = 20
"""Micro-batches with rows of a source over which shares are taken."""

AlertKind: TypeAlias = Literal["failed", "short", "silent", "late", "rejected", "lag", "no batch"]
KINDS: tuple[AlertKind, ...] = get_args(AlertKind)


@dataclass(frozen=True, slots=True)
class AlertRules:
    """Which alerts there are, and who is told: a program, an address, or both.

    ``late`` and ``rejected`` are shares of the rows of a source, ``lag`` and ``no_batch`` seconds;
    None: no such alert. The others are always there.
    """

    command: tuple[str, ...] = ()
    """The program and its arguments; the alert comes to its standard input as JSON."""
    webhook: str | None = None
    """The address that the alert is posted to, as JSON."""
    late: float | None = None
    rejected: float | None = None
    lag: float | None = None
    no_batch: float | None = None


class Alerts:
    """The alerts of one run by ``rules``."""

    def __init__(self, rules: AlertRules) -> None:
        self._rules = rules
        self._firing: dict[tuple[str, str], Alert] = {}
        self._recent: dict[str, deque[tuple[int, int, int]]] = {}
        """Of each source, the rows, late ones and rejected ones of the last batches with rows."""
        self._short: set[int] = set()
        self._run = ""
        self._last: float | None = None
        """When the last batch ended or the run began, in seconds of the clock."""

    def of(self, event: Event) -> list[Alert]:
        """What begins or is over with ``event``; to be called once for each, in order."""
        if isinstance(event, Start):
            self._run, self._last = event.run, _seconds(event.at)
            return []
        if isinstance(event, Batch):
            return self._of_batch(event)
        if isinstance(event, OverloadChange):
            if event.action == "short":
                self._short.add(event.cell)
            else:
                self._short.discard(event.cell)
            cells = len(self._short)
            text = f"short of CPU in {cells} {'cell' if cells == 1 else 'cells'}"
            return self._told("short", "", bool(cells), event.at, text)
        if isinstance(event, Failure):
            return self._told("failed", "", True, event.at, f"the run has failed: {event.reason}")
        return []

    def look(self, now: float) -> list[Alert]:
        """What begins because time passes; ``now`` is in seconds of the clock."""
        limit = self._rules.no_batch
        if limit is None or self._last is None:
            return []
        age = now - self._last
        at = _text(now)
        text = f"no micro-batch for {age:,.0f} s"
        return self._told("no batch", "", age > limit, at, text, age, limit)

    def _of_batch(self, batch: Batch) -> list[Alert]:
        self._last = _seconds(batch.at) + batch.seconds
        found = self.look(self._last)
        for source, count in batch.rows.items():
            if count:
                reasons = batch.dropped.get(source, {})
                late = reasons.get("late", 0)
                past = self._recent.setdefault(source, deque(maxlen=BATCHES))
                past.append((count, late, sum(reasons.values()) - late))
        for source, past in self._recent.items():
            rows, late, rejected = map(sum, zip(*past, strict=True))
            for kind, number, limit, what in (
                ("late", late, self._rules.late, "came behind the watermark"),
                ("rejected", rejected, self._rules.rejected, "had no time or were unreadable"),
            ):
                if limit is not None:
                    share = number / rows
                    text = f"{100 * share:.1f} % of the rows of {source} {what}"
                    found += self._told(kind, source, share > limit, batch.at, text, share, limit)
        if self._rules.lag is not None and batch.watermark is not None:
            lag = self._last - batch.watermark / 1000
            text = f"the watermark is {lag:,.0f} s behind the clock"
            late_by = lag > self._rules.lag
            found += self._told("lag", "", late_by, batch.at, text, lag, self._rules.lag)
        return found + self._silences(batch.at, batch.silent)

    def _silences(self, at: str, silent: Mapping[str, float]) -> list[Alert]:
        known = {source for kind, source in self._firing if kind == "silent"}
        found: list[Alert] = []
        for source in sorted(known | silent.keys()):
            behind = silent.get(source)
            text = f"{source} has moved on"
            if behind is not None:
                text = f"all state waits for {source}, {behind:,.0f} s behind the newest stream"
            found += self._told("silent", source, behind is not None, at, text, behind)
        return found

    def _told(
        self,
        kind: str,
        source: str,
        is_firing: bool,
        at: str,
        text: str,
        value: float | None = None,
        limit: float | None = None,
    ) -> list[Alert]:
        """The alert if it begins or is over."""
        key = (kind, source)
        if is_firing == (key in self._firing):
            return []
        alert = Alert(at, self._run, kind, text, not is_firing, source, value, limit)
        if is_firing:
            self._firing[key] = alert
        else:
            del self._firing[key]
        return [alert]


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()


def _text(now: float) -> str:
    moment = datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds")
    return moment.replace("+00:00", "Z")
