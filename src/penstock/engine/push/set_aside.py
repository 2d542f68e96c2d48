"""Rows that a push does not take in: late, without an event time, too far ahead, or filtered.

They are counted always, kept if somebody asks for them, and whoever has declared nothing is told
once: a stream that is out of order though no lateness was given loses rows, and so does one whose
clock runs ahead of the wall's. Warnings come before a push becomes visible, since a host may make
errors of them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from penstock.engine.push.dropped import Dropped
from penstock.engine.push.intake import Batches, Intake
from penstock.engine.push.lateness import Lateness
from penstock.engine.state.arrival import SourceRows
from penstock.engine.state.clock import Clock
from penstock.engine.state.leaf_window import LeafWindow
from penstock.errors import PenstockWarning


class SetAside:
    """Rows of one engine that were set aside, and their counts."""

    def __init__(
        self,
        intake: Intake,
        leaves: Sequence[LeafWindow],
        lateness: Lateness,
        ticks: int,
        keeps: bool,
    ) -> None:
        """``ticks`` is their number in a millisecond. With ``keeps``, rows are kept until
        :meth:`drain`."""
        self._intake = intake
        self._lateness = lateness
        self._ticks = ticks
        self.keeps = keeps
        self._windows = {
            name: [leaf for leaf in leaves if leaf.stream.source == name] for name in intake.sources
        }
        """The windows of each source."""
        self._kept: list[Dropped] = []
        self._has_warned_of_disorder = False

    def take_over(self, other: SetAside) -> None:
        """Go on where ``other`` was, of which this engine is made anew."""
        self._kept = other._kept
        self._has_warned_of_disorder = other._has_warned_of_disorder

    def drain(self) -> list[Dropped]:
        """Rows set aside since the last call."""
        found, self._kept = self._kept, []
        return found

    def keep(self, dropped: Sequence[Dropped]) -> None:
        """Rows that a push which is done has left out."""
        self._kept += dropped

    def looked_at_again(
        self, batches: Mapping[str, Any], sources: Mapping[str, int], clock: Clock
    ) -> Batches | None:
        """Rows of ``sources`` that a compiled push has only counted; None if they are not kept."""
        warns = not (self._lateness.is_declared or self._has_warned_of_disorder)
        if not sources or not (self.keeps or warns):
            return None
        return self._intake.dropped_of(batches, sources, clock)

    def warn_of_ahead(self, dropped: Sequence[Dropped], counts: Mapping[str, int]) -> None:
        """Tell, once, that rows are too far ahead; ``counts`` are those since the start."""
        if dropped and not any(counts.values()):
            warnings.warn(
                f"{len(dropped[0].rows):,} rows of {dropped[0].source} are further ahead of their "
                "arrival than max_ahead allows, and were set aside; they are counted, and kept "
                "with keep_dropped",
                PenstockWarning,
                stacklevel=_levels_to_caller(),
            )

    def warn_of_disorder(self, taken: Batches, watermark: int) -> None:
        """Tell, once, that rows came behind ``watermark`` though nobody has given a lateness."""
        if not taken.late or self._has_warned_of_disorder or self._lateness.is_declared:
            return
        source = next(iter(taken.late))
        behind = -((taken.oldest_late[source] - watermark) // self._ticks)
        warnings.warn(
            f"{source} is out of order: {taken.late[source]:,} of its rows came behind the "
            f"watermark, the oldest by {behind:,} ms, and were dropped; with no lateness given, "
            f"streams are taken to be in order: give lateness={behind} or more (milliseconds)",
            PenstockWarning,
            stacklevel=_levels_to_caller(),
        )
        self._has_warned_of_disorder = True  # Unless that was an error, which undoes the push.

    def filtered(
        self,
        on_time: Mapping[str, int],
        admitted: Mapping[str, int],
        pushed: Mapping[str, Any],
        clock: Clock,
    ) -> dict[str, int]:
        """Rows of a push that came into no window, by source.

        ``on_time`` are rows by source, ``admitted`` those that each window took in. Where a source
        has several windows and each has refused some of its rows, ``pushed`` tells which.
        """
        found = {}
        for name, count in on_time.items():
            leaves = self._windows[name]
            least = count - max([admitted.get(leaf.stream.alias, 0) for leaf in leaves])
            if least and len(leaves) > 1:
                rows = pushed[name]
                if not isinstance(rows, SourceRows):
                    rows = self._intake.rows_of(name, rows, clock)
                passing = [leaf.encoder.passes(rows) for leaf in leaves]
                least = int(np.count_nonzero(~np.logical_or.reduce(passing)))
            if least:
                found[name] = least
        return found


def _levels_to_caller() -> int:
    """Calls between a warning and the caller of the engine, whose line it names."""
    frame, levels = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("penstock.engine"):
        frame, levels = frame.f_back, levels + 1
    return levels
