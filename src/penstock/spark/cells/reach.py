"""How far back windows reach: which entries of the ledger an engine has to take in to be current.

On event time, with watermark W: a row of a window of span w is of no use any more when its event
time is before W − w. An entry has the newest event time of its rows, so an entry whose newest is
older can be left out, source by source; and since the newest of all entries so far only grows, once
*that* is older for every source, nothing further back matters.

- Aggregates look at the last settled instant once more, just before W.
- After EXCEPT it matters who had a partner that has died since. A row that is alive was born at
  W − w or later, and who met it was alive then, so born at W − w − w' or later: twice the longest
  window is enough.
- ``UNBOUNDED`` reaches back to the first entry.
- ``ROWS n`` reaches back until a source has n rows. ``PARTITION BY k ROWS n`` may need the very
  first row, for a value of k that is rare, and so may EXCEPT over ROWS windows: the first entry.

What is left out can be in no result with rows that are still to come, and what is taken in twice or
more than is needed does no harm: answers of rows that were taken in before are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.query.join_graph import JoinGraph
from penstock.sources.ledger import Note
from penstock.sources.portion import Source
from penstock.spark.cells.cell import CellSettings

_SETTLED = 1_000_000
"""Nanoseconds of event time before the watermark that aggregates may look at: one millisecond, at
least one tick."""

_MARGIN = 2
"""Windows that a source must keep to be read again: one, and one for the time that a query may be
down."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How far back the windows of each source reach; None is to the beginning."""

    spans: Mapping[str, int | None]
    """Nanoseconds before the watermark, by source."""
    counts: Mapping[str, int | None]
    """Rows of the source, where windows count rows; then ``spans`` is empty."""

    @classmethod
    def of(cls, query: JoinGraph) -> Reach:
        """The reach of ``query``."""
        streams = [s for block in query.blocks for s in block.streams if not s.is_static]
        if query.by_rows:
            counts: dict[str, int | None] = {}
            for stream in streams:
                count = None if query.minus else stream.window.latest_of_all
                counts[stream.source] = _longer(counts.get(stream.source, 0), count)
            return cls({}, counts)
        spans: dict[str, int | None] = {}
        for stream in streams:
            span = stream.window.span
            lives = None if span is None else span * 10**6
            spans[stream.source] = _longer(spans.get(stream.source, 0), lives)
        if query.minus:
            longest = _longest(spans)
            return cls(dict.fromkeys(spans, None if longest is None else 2 * longest), {})
        return cls(spans, {})

    @property
    def is_bounded(self) -> bool:
        """Whether some entry is the first that matters, sooner or later."""
        return None not in self.spans.values() and None not in self.counts.values()

    def alive(self, note: Note, watermark: int | None, newer_rows: Mapping[str, int]) -> set[str]:
        """The sources whose rows in the entry of ``note`` matter at ``watermark`` (nanoseconds).

        ``newer_rows`` is how many rows of each source came with later entries.
        """
        if self.counts:
            return {
                name
                for name, count in self.counts.items()
                if note.rows.get(name, 0) and (count is None or newer_rows.get(name, 0) < count)
            }
        return {
            name
            for name, span in self.spans.items()
            if name in note.own and _reaches(note.own[name], span, watermark)
        }

    def goes_on(self, note: Note, watermark: int | None, newer_rows: Mapping[str, int]) -> bool:
        """Whether entries up to that of ``note`` may matter."""
        if self.counts:
            return any(
                count is None or newer_rows.get(name, 0) < count
                for name, count in self.counts.items()
            )
        return any(
            name in note.newest and _reaches(note.newest[name], span, watermark)
            for name, span in self.spans.items()
        )


def unkept_by_sources(settings: CellSettings, sources: Mapping[str, Source]) -> str | None:
    """Why sources may not have what windows need any more when it is read again; None if they do
    as long as files stay that windows reach."""
    reach = Reach.of(settings.query)
    if not reach.is_bounded:
        return "windows reach back to the first row"
    endless = [name for name in reach.spans if name not in settings.delays]
    if endless:
        return f"{endless[0]} has no watermark, so windows reach back to the first row"
    for name in reach.spans or reach.counts:
        kept = sources[name].kept_nanoseconds
        if kept is None:
            continue
        delay = settings.delays.get(name, 0) * 10**6
        if not reach.spans or kept < _MARGIN * ((reach.spans[name] or 0) + delay):
            if not kept:
                return f"{name} does not say how long it keeps rows"
            return f"{name} keeps its rows for {kept // 10**9} s, and windows may reach further"
    return None


def _reaches(newest: int, span: int | None, watermark: int | None) -> bool:
    return span is None or watermark is None or newest + span >= watermark - _SETTLED


def _longer(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else max(one, other)


def _longest(spans: Mapping[str, int | None]) -> int | None:
    longest: int | None = 0
    for span in spans.values():
        longest = _longer(longest, span)
    return longest
