"""One mark on the time line: an event other than a micro-batch, with its numbers.

Kinds of events come and go, so those that are known have words of their own here, and whatever else
is not a batch is a mark all the same; its fields are its reasons. What is kept of one event is
bounded. Many cells may decide the same in one micro-batch: that is one mark, with their number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.ui.number import is_number, number

LONGEST = 2_000
"""Characters of a text."""
MOST_FIELDS = 40
_DEEPEST = 4
_LONGEST_CELLS = 120
_HIDDEN = ("version", "event", "at", "run")
_FIRST = ("refused", "reason", "text", "numbers")
"""What a person wants to know first."""
_TITLES = {
    "start": "started",
    "restart": "went on after a restart",
    "stop": "stopped",
    "failure": "failed",
    "warning": "worth a look",
    "alert begins": "alert begins",
    "alert over": "alert over",
    "order refresh": "refresh ordered",
    "order pin": "pin ordered",
    "order undo": "undo ordered",
    "order unpin": "unpin ordered",
    "order refused": "order refused",
    "decision migrate": "migration",
    "decision keep": "plan kept",
    "decision set": "plan set by hand",
    "decision pin": "plan pinned",
    "decision unpin": "plan let go",
    "decision undo": "change undone",
    "decision refuse": "could not be done",
    "decision route": "another route",
    "decision begin": "prepared plan runs",
    "decision complete": "nothing missing any more",
    "decision overtaken": "overtaken by another change",
    "decision fail": "controller failed",
    "overload short": "short of CPU",
    "overload recovered": "recovered",
    "wave suspend": "suspend wave",
    "wave resume": "resume wave",
}
"""By the event and what it did."""
_BAD = (
    "failure",
    "warning",
    "alert begins",
    "order refused",
    "decision refuse",
    "decision fail",
    "overload short",
)
_MINOR = (
    "decision keep",
    "decision complete",
    "decision overtaken",
    "wave suspend",
    "wave resume",
)
_SAME = ("event", "batch", "action", "before", "plan")
_PLAN_KEYS = ("plan", "after", "to", "new_plan")


def decision(identity: int, at: float, event: Mapping[str, Any]) -> dict[str, Any]:
    """``event`` as the page shows it."""
    kind = str(event["event"])[:60]
    what = title_key(event)
    named = list(event.items())[: MOST_FIELDS + len(_HIDDEN)]
    named.sort(key=lambda field: _FIRST.index(field[0]) if field[0] in _FIRST else len(_FIRST))
    fields = {str(name)[:80]: bounded(value) for name, value in named if name not in _HIDDEN}
    return {
        "id": identity,
        "at": round(at, 3),
        "kind": kind,
        "title": _TITLES.get(what) or _TITLES.get(kind) or kind.replace("_", " "),
        "summary": _summary(kind, fields),
        "bad": what in _BAD,
        "minor": what in _MINOR,
        "cells": 1,
        "fields": fields,
    }


def title_key(event: Mapping[str, Any]) -> str:
    """The kind of ``event``, and what it did."""
    kind = event["event"]
    if kind == "order":
        did = "refused" if event.get("refused") else event.get("order")
    elif kind == "alert":
        did = "over" if event.get("is_over") else "begins"
    else:
        did = event.get("action")
    return f"{kind} {did}"[:60] if isinstance(did, str) else str(kind)[:60]


def is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two events are one decision, of two cells in one micro-batch."""
    both = one.get("cell"), other.get("cell")
    return None not in both and all(one.get(name) == other.get(name) for name in _SAME)


def also_in(mark: dict[str, Any], cell: Any) -> None:
    """The decision of ``mark`` was taken by one more cell."""
    mark["cells"] += 1
    fields, one = mark["fields"], int(number(cell))
    told = str(fields["cell"])
    before, comma, last = told.rpartition(", ")
    first, _, end = last.partition("–")
    longer = f"{before}{comma}{first}–{one}" if (end or first) == str(one - 1) else f"{told}, {one}"
    if len(longer) <= _LONGEST_CELLS:
        fields["cell"] = longer
    fields.setdefault("numbers_are_of", f"cell {told}")


def bounded(value: Any, depth: int = 0) -> Any:
    """``value`` with long texts, long lists and deep nests cut off."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST else value[:LONGEST] + "…"
    if isinstance(value, bool) or value is None or is_number(value):
        return value
    if depth >= _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        items = list(value.items())[:MOST_FIELDS]
        return {str(name)[:80]: bounded(each, depth + 1) for name, each in items}
    if isinstance(value, (list, tuple)):
        return [bounded(each, depth + 1) for each in value[:MOST_FIELDS]]
    return repr(value)[:LONGEST]


def _summary(kind: str, fields: Mapping[str, Any]) -> str:
    """One line: the reason, the numbers that matter most, or the plan."""
    if kind == "overload":
        return _shortage(fields)
    if kind == "wave":
        by = fields.get("by_streams")
        where = ", ".join(by) if isinstance(by, Mapping) else ""
        return f"{number(fields.get('rows')):,.0f} of {where}"
    for name in ("refused", "reason", "why", "text", *_PLAN_KEYS):
        value = fields.get(name)
        if isinstance(value, str) and value:
            return value.splitlines()[0][:200]
    return ""


def _shortage(fields: Mapping[str, Any]) -> str:
    numbers = fields.get("numbers")
    numbers = numbers if isinstance(numbers, Mapping) else {}
    policy = str(fields.get("policy", ""))
    if "needed" in numbers:
        share = number(numbers.get("allowed")) / max(1.0, number(numbers.get("needed")))
        return f"{policy}: {share:.0%} of the probes fit the budget"
    done = ("skipped", "paid", "forgotten", "stale")
    told = [f"{number(numbers[name]):,.0f} {name}" for name in done if numbers.get(name)]
    return ": ".join(filter(None, (policy, ", ".join(told))))
