"""FRESHNESS: results that come too late are counted, and never leave.

``FRESHNESS f`` on a stream: no result that leaves at time T, the newest event time seen, holds a
tuple of that stream older than T - f (JAQPOT, Definition 1). It is tested where results leave the
join, before whatever stands above it, so that a stale result is in no aggregate either. Where
streams are cut over several engines, T is that of all of them.

The default for f is the window. That is a bound on what an overload policy may delay: a result
that comes late because its probe was put off must be as fresh as its windows. A result that leaves
in the push that brought its last tuple has been delayed by nobody: there only FRESHNESS that was
written down counts. (Taken literally, the default would drop exact results whenever a push spans
more time than a window, or streams are out of step.) On the arrival line FRESHNESS cannot be
written, and the default means that no tuple of a late result has been pushed out of its window.

Subtracted blocks are never tested: what is missing there is a result too many.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.engine.state.clock import END, START
from penstock.engine.state.composites import Composites
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.rows import BIRTH, DEATH
from penstock.query.join_graph import JoinGraph

Int64s = NDArray[np.int64]
Float64s = NDArray[np.float64]


class Freshness:
    """The freshness of the first block of ``graph``, and how old its results are."""

    def __init__(self, graph: JoinGraph, leaves: Mapping[str, LeafWindow]) -> None:
        ticks = graph.ticks_per_millisecond
        self._leaves = leaves
        self._by_rows = graph.by_rows
        self._names = sorted(leaves)
        self.asked = {
            s.alias: s.freshness * ticks for s in graph.streams if s.freshness is not None
        }
        """FRESHNESS as written, in ticks, by stream."""
        self._windows = {
            s.alias: s.window.span * ticks for s in graph.streams if s.window.span is not None
        }
        self.limits = self._windows | self.asked
        """As written or by default."""
        self._asked_at = [(self._names.index(alias), each) for alias, each in self.asked.items()]
        self._oldest: tuple[Sequence[int], int] = (), START
        """Births of the oldest rows, by stream, in the last results, and when that was."""

    def deadlines(self, ids: Mapping[str, Int64s]) -> Int64s:
        """The last instants at which late results with these rows are fresh."""
        count = len(next(iter(ids.values())))
        last = np.full(count, END, np.int64)
        for alias, limit in self.limits.items():
            if alias in ids:
                births = self._leaves[alias].rows.take(BIRTH, ids[alias])
                np.minimum(last, np.where(births < END - limit, births + limit, END), out=last)
        return last

    def on_time(self, results: Composites, now: int) -> Composites:
        """The ``results`` of this push that are as fresh as was asked for."""
        return self._fresh(results, now, self.asked) if self.asked else results

    def late(self, results: Composites, now: int) -> Composites:
        """The ``results`` of probes that were put off that are fresh, by default as well."""
        if not self._by_rows:
            return self._fresh(results, now, self.limits)
        keep = np.ones(len(results), np.bool_)
        for alias, rows in results.ids.items():
            ring = self._leaves[alias].rows
            keep &= (rows >= ring.tail) & (ring.take(DEATH, rows) >= now)
        return results if keep.all() else results.pick(np.flatnonzero(keep))

    def once_on_time(self, results: Composites) -> Composites:
        """The ``results`` that were on time in the push that brought the last of their rows."""
        found = results.births.copy()
        for alias, rows in results.ids.items():
            seen_at = self._leaves[alias].seen_at
            if seen_at is not None:
                np.maximum(found, seen_at.of(rows), out=found)
        return self._fresh(results, found, self.asked)

    def _fresh(
        self, results: Composites, now: int | Int64s, limits: Mapping[str, int]
    ) -> Composites:
        keep = np.ones(len(results), np.bool_)
        for alias, limit in limits.items():
            births = self._leaves[alias].rows.take(BIRTH, results.ids[alias])
            keep &= births >= now - limit
        return results if keep.all() else results.pick(np.flatnonzero(keep))

    def kept_until(self, alias: str, now: int) -> int:
        """Rows of ``alias`` that died before this instant are in no fresh result any more."""
        if alias not in self.limits or now == START:
            return START
        return now - (self.limits[alias] - self._windows[alias])

    def share_left(self, streams: Collection[str], births: Int64s, now: int) -> Float64s:
        """Which part of what rows born then met, one row of each of ``streams``, is still fresh at
        ``now``, if rows come evenly.

        A row that is born at b meets what was born since b - window, of which late results hold
        what was born since ``now`` - limit. On the arrival line these are the rows of the window
        at b that are there still.
        """
        share = np.ones(len(births))
        for alias in streams:
            latest = self._leaves[alias].stream.window.latest_of_all
            if alias in self._windows:
                left = births - (now - self.limits[alias])
                share *= np.clip((left + 1) / (self._windows[alias] + 1), 0.0, 1.0)
            elif latest is not None:
                ring = self._leaves[alias].rows
                held = np.arange(ring.tail, ring.head)
                held = ring.take(BIRTH, held)[ring.take(DEATH, held) >= now]
                there = np.searchsorted(held, births, side="right")
                share *= np.clip(there / min(latest, max(1, ring.head)), 0.0, 1.0)
        return share

    def allows(self, oldest: Sequence[int], now: int) -> bool:
        """Whether results are fresh whose ``oldest`` rows, of each stream in the order of their
        names, were born then; none if there are no results."""
        if oldest:
            for place, limit in self._asked_at:
                if oldest[place] < now - limit:
                    return False
        return True

    def note(self, oldest: Sequence[int], now: int) -> None:
        """Remember how old the ``oldest`` rows are, if there are any."""
        if oldest:
            self._oldest = oldest, now

    @property
    def ages(self) -> dict[str, int]:
        """The greatest age of a tuple in the results of the last push that had any, in ticks: only
        where FRESHNESS is written down, or results come late."""
        births, now = self._oldest
        return {
            alias: now - birth
            for alias, birth in zip(self._names, births, strict=False)
            if not self._leaves[alias].stream.is_static
        }

    def look(self, results: Composites, now: int) -> None:
        """Remember how old the tuples of ``results`` are."""
        if len(results):
            births = [
                int(self._leaves[alias].rows.take(BIRTH, results.ids[alias]).min())
                for alias in self._names
            ]
            self.note(births, now)
