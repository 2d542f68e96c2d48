"""One mark on the time line: an event other than a micro-batch, with its numbers.

Kinds of events come and go, so none is named here but for its words: whatever is not a batch is a
mark, and its fields are its reasons. What is kept of one event is bounded. Many cells may decide
the same in one micro-batch: that is one mark, with their number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.ui.number import is_number

LONGEST = 2_000
"""Characters of a text."""
MOST_FIELDS = 40
_DEEPEST = 4
_HIDDEN = ("version", "event", "at", "run")
_TITLES = {
    "start": "started",
    "restart": "went on",
    "stop": "stopped",
    "failure": "failed",
}
_ACTIONS = {
    "migrate": "migration",
    "keep": "plan kept",
    "set": "plan set",
    "pin": "plan pinned",
    "unpin": "plan let go",
    "undo": "change undone",
    "fail": "controller failed",
}
_BAD = ("failure", "fail")
_MINOR = ("keep",)
_SAME = ("event", "batch", "action", "before", "plan")
_PLAN_KEYS = ("plan", "after", "to", "new_plan")


def decision(number: int, at: float, event: Mapping[str, Any]) -> dict[str, Any]:
    """``event`` as the page shows it."""
    kind = str(event["event"])[:60]
    action = str(event.get("action", ""))[:60]
    fields = {
        str(name)[:80]: bounded(value)
        for name, value in list(event.items())[: MOST_FIELDS + len(_HIDDEN)]
        if name not in _HIDDEN
    }
    return {
        "id": number,
        "at": round(at, 3),
        "kind": kind,
        "title": _ACTIONS.get(action) or _TITLES.get(kind) or kind.replace("_", " "),
        "summary": _summary(fields),
        "bad": kind in _BAD or action in _BAD,
        "minor": action in _MINOR,
        "cells": 1,
        "fields": fields,
    }


def is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two events are one decision, of two cells in one micro-batch."""
    both = one.get("cell"), other.get("cell")
    return None not in both and all(one.get(name) == other.get(name) for name in _SAME)


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


def _summary(fields: Mapping[str, Any]) -> str:
    """One line: the reason, or the plan."""
    for name in ("reason", "why", *_PLAN_KEYS):
        value = fields.get(name)
        if isinstance(value, str) and value:
            return value.splitlines()[0][:200]
    return ""
