"""The sources of a run side by side: what came, what did not get in and why, who is silent.

Bounded: so many sources, and so many reasons of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.ui.number import number

MOST_SOURCES = 64
MOST_REASONS = 8
_LONGEST_NAME = 80


class SourceView:
    """Totals of each source since the page knows the run, and what its last batches said."""

    def __init__(self) -> None:
        self._sources: dict[str, dict[str, Any]] = {}

    def note(self, end: float, event: Mapping[str, Any]) -> None:
        """One more micro-batch, which ended at ``end``."""
        dropped, filtered = _inside(event, "dropped"), _inside(event, "filtered")
        newest, silent = _inside(event, "newest"), _inside(event, "silent")
        backlog, late = _inside(event, "backlog"), _inside(event, "late")
        skipped = _inside(event, "skipped")
        for name, rows in _inside(event, "rows").items():
            found = self._of(str(name)[:_LONGEST_NAME])
            if found is None:
                continue
            found["rows"] += number(rows)
            if number(rows):
                found["last"] = round(end, 3)
            reasons = _inside(dropped, name) or {"late": late.get(name)}
            for reason, count in list(reasons.items())[:MOST_REASONS]:
                if number(count):
                    mine = found["dropped"]
                    mine[str(reason)[:40]] = mine.get(str(reason)[:40], 0) + number(count)
            found["filtered"] += number(filtered.get(name))
            for reason in _inside(skipped, name).values():
                files = found["skipped"]
                if reason in files or len(files) < MOST_REASONS:
                    files[str(reason)[:40]] = files.get(str(reason)[:40], 0) + 1
            found["newest"] = number(newest[name]) if name in newest else found["newest"]
            found["silent"] = number(silent[name]) if name in silent else None
            found["backlog"] = number(backlog[name]) if name in backlog else None

    def _of(self, name: str) -> dict[str, Any] | None:
        if name not in self._sources and len(self._sources) < MOST_SOURCES:
            self._sources[name] = {
                "rows": 0.0,
                "dropped": {},
                "filtered": 0.0,
                "skipped": {},
                "newest": None,
                "silent": None,
                "backlog": None,
                "last": None,
            }
        return self._sources.get(name)

    def view(self, rates: Mapping[str, float]) -> list[dict[str, Any]]:
        """Every source, with its rows per second in ``rates``."""
        return [
            {"name": name, "rate": rates.get(name, 0.0), **found}
            for name, found in self._sources.items()
        ]


def _inside(values: Mapping[Any, Any], name: Any) -> Mapping[Any, Any]:
    found = values.get(name)
    return found if isinstance(found, Mapping) else {}
