"""What the page knows about a run, made of its events and bounded whatever comes.

Everything here has a fixed size: the past is a :class:`~penstock.ui.series.Series`, marks and plans
are the latest so many, cells are summed up, texts are cut. So a page that is open for a week costs
what one costs that is open for a minute. Events are plain objects as the log has them, also of
kinds that are not known here: those become marks on the time line.

Rates are per second of the clock on the wall, over the last few micro-batches and the time between
them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from penstock.ui.cell_view import CellView
from penstock.ui.decision import also_in, bounded, decision, is_same
from penstock.ui.number import is_number, number
from penstock.ui.plan_tree import plan_change, plan_trees
from penstock.ui.series import Mark, Series
from penstock.ui.shortage import is_short, shortage
from penstock.ui.source_view import SourceView

DECISIONS = 400
PLANS = 100
SAMPLE = 12
_RECENT = 5
_LATELY = 16
_LONGEST_VALUE = 200
_COLUMNS = 24
_OWN = ("plan", "streams", "cells")
_FLOWS = ("made", "probes", "matches", "resumed", "avoided")
"""Of these, events have the number of one micro-batch; the page has rates."""


@dataclass(frozen=True, slots=True)
class Seen:
    """How far a page has read."""

    series: Mark = field(default_factory=Mark)
    changes: int = 0
    """Changes of marks that it has got."""


@dataclass(slots=True)
class _Moment:
    """One micro-batch among the last few."""

    span: float
    rows: Mapping[str, float]
    results: float
    operators: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class _Marked:
    """An event, its mark, and its place in the history of plans if it is a change."""

    event: Mapping[str, Any]
    mark: dict[str, Any]
    plan: dict[str, Any] | None


@dataclass
class RunModel:
    """The run so far; :meth:`note` takes one more event."""

    start: dict[str, Any] = field(default_factory=dict)
    status: str = "waiting"
    totals: dict[str, float] = field(
        default_factory=lambda: {"rows": 0, "results": 0, "late": 0, "batches": 0, "avoided": 0}
    )
    latest: dict[str, Any] = field(default_factory=dict)
    overload: dict[str, Any] = field(default_factory=dict)
    failure: dict[str, Any] = field(default_factory=dict)
    """What ended the run, if it has failed."""
    watermark: float | None = None
    """No older row is waited for: milliseconds since 1970."""
    sample: dict[str, Any] = field(default_factory=lambda: {"columns": [], "rows": []})

    def __post_init__(self) -> None:
        self.series = Series(
            {
                "seconds": "sum",
                "rows": "sum",
                "results": "sum",
                "late": "sum",
                "state_bytes": "max",
                "engine_seconds": "sum",
                "slowest": "max",
                "asleep": "last",
                "short": "max",
                "batches": "sum",
            }
        )
        self.cells = CellView()
        self.sources = SourceView()
        self.decisions: deque[dict[str, Any]] = deque(maxlen=DECISIONS)
        self.plans: deque[dict[str, Any]] = deque(maxlen=PLANS)
        self._recent: deque[_Moment] = deque(maxlen=_RECENT)
        self._next_decision = 0
        self._changes = 0
        self._lately: deque[_Marked] = deque(maxlen=_LATELY)
        """The last marks, with their events."""
        self._main: str | None = None
        """The plan that most cells run."""
        self._observed: dict[str, Any] | None = None
        """The last change of plan that was seen in a batch and not told as a decision."""
        self._end: float | None = None
        """The end of the last micro-batch, in seconds since 1970."""

    # -- events ------------------------------------------------------------------------------

    def note(self, event: Mapping[str, Any]) -> None:
        """One more event."""
        kind = event.get("event")
        at = _moment(event.get("at")) or self._end or 0.0
        if kind == "batch":
            self._note_batch(at, event)
            return
        if kind in ("start", "restart"):
            self._note_start(at, event)
        elif kind == "idle":
            self.status = "idle"
            return
        elif kind == "stop":
            self.status = "stopped"
        elif kind == "failure":
            self.status = "failed"
            told = {name: bounded(event.get(name)) for name in ("reason", "details")}
            self.failure = {"at": round(at, 3), **told}
        self._mark(at, event)

    def note_sample(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """The latest results, as they are."""
        shown = list(rows)[-SAMPLE:]
        names = list(shown[-1])[:_COLUMNS] if shown else []
        self.sample = {
            "columns": [str(name)[:80] for name in names],
            "rows": [[_cell_text(row.get(name)) for name in names] for row in shown],
        }

    def _mark(self, at: float, event: Mapping[str, Any]) -> None:
        self._changes += 1
        marked = next((each for each in self._lately if is_same(each.event, event)), None)
        if marked is not None:
            also_in(marked.mark, event.get("cell"))
            if marked.plan is not None:
                marked.plan["cells"] += 1
        else:
            mark = decision(self._next_decision, at, event)
            marked = _Marked(event, mark, self._note_change(at, event))
            self._next_decision += 1
            self.decisions.append(mark)
            self._lately.append(marked)
        marked.mark["change"] = self._changes

    def _note_start(self, at: float, event: Mapping[str, Any]) -> None:
        self.start = {
            name: bounded(value) for name, value in event.items() if name not in ("version",)
        }
        self.status = "running"
        self._recent.clear()
        self.cells.clear()
        self.overload = {}
        self.failure = {}
        self._end = None
        plan = str(event.get("plan", ""))
        # After a restart cells go on with the plans that they had, which their first batch tells.
        if plan != "auto" and not (self.plans and event["event"] == "restart"):
            self._note_plan(at, plan)

    def _note_batch(self, at: float, event: Mapping[str, Any]) -> None:
        seconds = number(event.get("seconds"))
        end = at + seconds
        span = seconds if self._end is None or end <= self._end else end - self._end
        self._end = max(end, self._end or end)
        rows = {str(name): number(count) for name, count in _items(event.get("rows"))}
        operators, cells = _objects(event.get("operators")), _objects(event.get("cells"))
        numbers = {
            "seconds": span,
            "rows": sum(rows.values()),
            "results": number(event.get("results")),
            "late": sum(number(count) for _, count in _items(event.get("late"))),
            "state_bytes": number(event.get("state_bytes")),
            "engine_seconds": number(event.get("engine_seconds")),
            "slowest": seconds,
            "asleep": sum(number(each.get("asleep")) for each in operators),
            "short": sum(map(is_short, cells)),
            "batches": 1,
        }
        self.series.add(at, numbers)
        for name in ("rows", "results", "late", "batches"):
            self.totals[name] += numbers[name]
        self.totals["avoided"] += sum(number(each.get("avoided")) for each in operators)
        self.latest = {"batch": number(event.get("batch")), **numbers}
        self.latest["stored_bytes"] = number(event.get("stored_bytes"))
        self._recent.append(_Moment(span, rows, numbers["results"], operators))
        self.sources.note(end, event)
        mark = event.get("watermark")
        self.watermark = number(mark) if is_number(mark) else None
        self.cells.note(cells)
        self.overload = shortage(cells)
        self.status = "running"
        plans = self.cells.plans
        if plans:
            self._note_plan(at, plans[0][0])

    def _note_plan(self, at: float, plan: str) -> None:
        """``plan`` is what most cells run now."""
        if plan and plan != self._main:
            before, self._main = self._main, plan
            if not self.plans or self.plans[-1]["plan"] != plan:
                self._observed = self._add_plan(at, plan, before)

    def _note_change(self, at: float, event: Mapping[str, Any]) -> dict[str, Any] | None:
        """A decision with two plans is a change: its place in the history."""
        before, plan = event.get("before"), event.get("plan")
        if not (isinstance(before, str) and isinstance(plan, str)) or before == plan:
            return None
        observed, self._observed = self._observed, None
        if observed is not None and observed is self.plans[-1] and observed["plan"] == plan:
            return observed  # A log has the batch with a new plan before the decision for it.
        return self._add_plan(at, plan, before)

    def _add_plan(self, at: float, plan: str, before: str | None) -> dict[str, Any]:
        change = plan_change(before, plan) if before else {"kept": [], "dropped": [], "added": []}
        self.plans.append({"at": round(at, 3), "plan": plan[:500], "cells": 1, **change})
        return self.plans[-1]

    # -- what the page gets ------------------------------------------------------------------

    def told(self, seen: Seen) -> tuple[dict[str, Any], Seen]:
        """What a page must know that has read up to ``seen``."""
        points, mark = self.series.since(seen.series)
        message = {
            "whole": seen == Seen(),
            "start": self.start,
            "status": self.status,
            "totals": self.totals,
            "latest": self.latest,
            "overload": self.overload,
            "failure": self.failure,
            "watermark": self.watermark,
            "last_batch": None if self._end is None else round(self._end, 3),
            "sources": self.sources.view(self._rates()),
            "rates": self._rates(),
            "result_rate": self._per_second(moment.results for moment in self._recent),
            "trees": self._trees(),
            "cells": self.cells.view(),
            "plans": list(self.plans),
            "sample": self.sample,
            "series": points,
            "decisions": [each for each in self.decisions if each["change"] > seen.changes],
        }
        return message, Seen(mark, self._changes)

    def _rates(self) -> dict[str, float]:
        """Rows per second, by source."""
        names = dict.fromkeys(name for moment in self._recent for name in moment.rows)
        return {
            name: self._per_second(moment.rows.get(name, 0.0) for moment in self._recent)
            for name in names
        }

    def _per_second(self, counts: Iterable[float]) -> float:
        """What was counted in the last micro-batches, per second of them; nothing comes while the
        run is idle."""
        if self.status == "idle":
            return 0.0
        spans = sum(moment.span for moment in self._recent)
        return sum(counts) / spans if spans > 0 else 0.0

    def _trees(self) -> list[dict[str, Any]]:
        """The plans that run, the one of most cells first, each with the numbers of its nodes."""
        operators = self._recent[-1].operators if self._recent else ()
        cells = dict(self.cells.plans)
        plans = dict.fromkeys(str(each.get("plan", "")) for each in operators)
        if not plans:
            plans = dict.fromkeys(cells)
        if not plans and self.plans:
            plans = {self.plans[-1]["plan"]: None}
        return [
            {
                "plan": plan,
                "cells": cells.get(plan, 0),
                "roots": plan_trees(plan),
                "numbers": self._numbers_of(plan),
            }
            for plan in list(plans)[:8]
        ]

    def _numbers_of(self, plan: str) -> dict[str, dict[str, float]]:
        """By node: what it holds now, and rates of what it does."""
        spans = 0.0
        flows: dict[str, dict[str, float]] = {}
        levels: dict[str, dict[str, float]] = {}
        for moment in self._recent:
            mine = [each for each in moment.operators if each.get("plan") == plan]
            spans += moment.span if mine else 0.0
            for each in mine:
                sums = flows.setdefault(str(each.get("streams")), {})
                for name in _FLOWS:
                    sums[name] = sums.get(name, 0.0) + number(each.get(name))
        for each in self._recent[-1].operators if self._recent else ():
            if each.get("plan") == plan:
                levels[str(each.get("streams"))] = {
                    str(name)[:40]: number(value)
                    for name, value in list(each.items())[:24]
                    if name not in (*_OWN, *_FLOWS) and is_number(value)
                }
        if not levels:
            return {f"{{{name}}}": {"made": rate} for name, rate in self._rates().items()}
        return {
            streams: numbers
            | {
                name: float(f"{value / spans:.6g}") if spans > 0 else 0.0
                for name, value in flows.get(streams, {}).items()
            }
            for streams, numbers in levels.items()
        }


def _items(value: Any) -> list[tuple[Any, Any]]:
    return list(value.items()) if isinstance(value, Mapping) else []


def _objects(value: Any) -> list[Mapping[str, Any]]:
    found = value if isinstance(value, (list, tuple)) else ()
    return [each for each in found if isinstance(each, Mapping)]


def _moment(text: Any) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (TypeError, ValueError):
        return None


def _cell_text(value: Any) -> str:
    text = "NULL" if value is None else str(value)
    if isinstance(value, datetime):
        text = text.removesuffix("000") if value.microsecond else text
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "…"
