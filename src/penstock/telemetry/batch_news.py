"""What is news in a micro-batch: a cell short of CPU, a wave of rows that fall asleep, a silence,
files that are left out.

A batch event has levels and counts; a person wants to know when something changed. Both kinds of
news are made of batch events alone, so whoever has these has the news.

**Overload.** A cell reports its last changes with growing numbers. Those behind the number that was
seen last are new. Of a cell that is seen for the first time in a run that goes on from a
checkpoint, only the last change is told, and only if the cell is short now: the log has the others.

**Waves.** Feedback (JIT) puts rows to sleep and wakes them all the time, a few per batch; when
demand changes, many at once: the first tuple of a stream that was silent wakes a whole window. A
*wave* is a batch in which some operator's rows fall asleep, or wake, in numbers that are
:data:`FACTOR` times what is usual there, and at least :data:`LEAST_ROWS`. Usual is the most of the
last batches, which fades: a level that stays high is one wave, not one in each batch.

**Silence.** A stream for which all state waits is told when that begins, once until it moves on.

**Files left out.** Told by name, those of the batch before not again.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from penstock.telemetry.events import Batch, OverloadChange, Warned, Wave, WaveKind

LEAST_ROWS = 100
"""Rows of a wave: fewer are told by no event, however unusual."""
FACTOR = 4.0
"""Times what is usual that a wave is, at least."""
_FADING = 0.8
_MOST_FILES = 5
"""Names of files in one warning; the event of the batch has all."""


class BatchNews:
    """Finds the news in the batches of one run; ``fresh``: it began with nothing."""

    def __init__(self, fresh: bool = True) -> None:
        self._fresh = fresh
        self._told: dict[int, int] = {}
        """The last change of each cell that was told."""
        self._silent: set[str] = set()
        self._skipped: set[tuple[str, str]] = set()
        """Files that the last batch left out, by source and name."""
        self._usual: dict[WaveKind, dict[str, float]] = {"suspend": {}, "resume": {}}

    def of(self, batch: Batch) -> list[OverloadChange | Wave | Warned]:
        """What is new in ``batch``; to be called once for each, in order."""
        warned = [*self._silences(batch), *self._skips(batch)]
        return [*self._overload(batch), *self._waves(batch), *warned]

    def _skips(self, batch: Batch) -> list[Warned]:
        before = self._skipped
        self._skipped = {(source, name) for source, each in batch.skipped.items() for name in each}
        found = []
        for source, files in batch.skipped.items():
            new = [f"{name} ({why})" for name, why in files.items() if (source, name) not in before]
            if new:
                more = ", …" * (len(new) > _MOST_FILES)
                told = f"{', '.join(new[:_MOST_FILES])}{more}"
                text = f"{source}: {len(new):,} left out of its files: {told}"
                found.append(Warned(batch.at, batch.run, "skipped", text, (source,)))
        return found

    def _silences(self, batch: Batch) -> list[Warned]:
        begun = [source for source in batch.silent if source not in self._silent]
        self._silent = set(batch.silent)
        return [
            Warned(
                batch.at,
                batch.run,
                "silent",
                f"{source} is {batch.silent[source]:,.0f} s of event time behind the newest "
                "stream, and no window lets a row go before it moves on; idle says how far it "
                "may fall behind",
                (source,),
            )
            for source in begun
        ]

    def _overload(self, batch: Batch) -> list[OverloadChange]:
        found = []
        for cell in batch.cells:
            events: list[dict[str, Any]] = list(cell.overload.get("events", ()))
            if not events:
                continue
            last = int(events[-1]["number"])
            seen = 0 if self._fresh else last - bool(cell.overload.get("short"))
            seen = self._told.get(cell.cell, seen)
            self._told[cell.cell] = last
            for event in events:
                if event["number"] > seen:
                    numbers = dict(event)
                    action, policy = numbers.pop("event"), numbers.pop("policy", "")
                    del numbers["number"], numbers["at"]
                    given = cell.overload.get("budget", "")
                    found.append(
                        OverloadChange(
                            at=batch.at,
                            run=batch.run,
                            batch=batch.batch,
                            cell=cell.cell,
                            action=action,
                            policy=policy,
                            budget=given,
                            numbers=numbers,
                        )
                    )
        return found

    def _waves(self, batch: Batch) -> list[Wave]:
        asleep = sum(each.asleep for each in batch.operators)
        kinds: tuple[tuple[WaveKind, str], ...] = (("suspend", "slept"), ("resume", "resumed"))
        found = []
        for kind, name in kinds:
            rows: Counter[str] = Counter()
            for each in batch.operators:
                rows[each.streams] += getattr(each, name)
            usual = self._usual[kind]
            many = {
                streams: count
                for streams, count in rows.items()
                if count >= LEAST_ROWS and count > FACTOR * usual.get(streams, 0.0)
            }
            if many:
                total, before = sum(many.values()), sum(usual.get(each, 0.0) for each in many)
                found.append(
                    Wave(batch.at, batch.run, batch.batch, kind, total, before, asleep, many)
                )
            self._usual[kind] = {
                streams: most
                for streams in {*usual, *rows}
                if (most := max(rows[streams], _FADING * usual.get(streams, 0.0))) >= 1
            }
        return found
