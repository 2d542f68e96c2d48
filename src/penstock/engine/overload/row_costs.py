"""What a row of each input leads to on its way to the root: work, and results.

It follows from what half-way joins have found lately
(:mod:`penstock.engine.overload.half_way_counts`), so it is worked out again after a number of
probes, soon at first and then less often, or when a push is much larger than the one that it was
worked out for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.engine.overload.half_way_counts import HalfWayCounts
from penstock.plan.stream_set import StreamSet

_FIRST_LOOK, _LOOK = 64, 4096
"""Probes after which productivities are looked at again: soon at first, then less often."""
_PUSHES = 4
"""Pushes, at least, from look to look once there have been some."""


class RowCosts:
    """Work and results of a row, by what ``counts`` tell."""

    def __init__(self, counts: HalfWayCounts) -> None:
        self._counts = counts
        self.each: dict[StreamSet, tuple[float, float]] = {}
        """Work and results that a row of each input leads to; empty before the first look."""
        self.are_known = False
        """Whether that was seen at each half-way join."""
        self._is_due = True
        self._looked_at = 0
        """The rows of the push for which that was computed."""
        self._unseen, self._patience = 0, _FIRST_LOOK

    def look(self, rows: Mapping[str, int], share_there: Callable[[StreamSet], float]) -> bool:
        """Work them out for a push of ``rows``, if they may be new; whether they are."""
        count = sum(rows.values())
        if self.each and not self._is_due and count <= 2 * self._looked_at:
            return False
        self._is_due, self._looked_at = False, count
        self.each = self._counts.prices(share_there, rows)
        self.are_known = self._counts.are_known
        return True

    def of(self, rows: Mapping[str, int]) -> tuple[float, float]:
        """The work that ``rows`` need, and the results of a unit of it."""
        need = results = 0.0
        for stream, number in rows.items():
            cost, output = self.each[StreamSet.of(stream)]
            need += number * cost
            results += number * output
        return need, results / max(1.0, need)

    def note(self, probes: int) -> None:
        """So many more probes were made: now and then, look at what they find."""
        self._unseen += probes
        if self._unseen >= self._patience:
            self._unseen, self._patience = 0, min(2 * self._patience, max(_LOOK, _PUSHES * probes))
            self._is_due = True

    def be_due(self) -> None:
        """Look again at the next occasion."""
        self._is_due = True

    def forget(self) -> None:
        """Whatever was worked out holds no longer."""
        self._is_due, self.each = True, {}
