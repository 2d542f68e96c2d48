"""Random tuples for a query, and random ways to push them.

All sources share one walk through event time, with ties and bursts. The order of arrival is then
one of: in order; each stream in order but some ahead of others (*skew*); out of order within the
lateness, such that nothing is late; with stragglers that are late. Order by ``ts + delay`` with
delays up to L never makes a tuple late: whatever came before it is at most L newer.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.query.join_graph import ARRIVAL
from penstock.testing.case import table
from penstock.testing.feature_chance import FeatureChance
from penstock.testing.knobs import Knobs
from penstock.testing.random_query import RandomQuery, Source

_TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_NANOSECONDS = 1_000_000


@dataclass(frozen=True)
class Event:
    """One tuple; ``time`` in nanoseconds, for comparing tuples of different sources."""

    source: Source
    time: int
    row: tuple[Any, ...]


@dataclass(frozen=True)
class RandomPushes:
    """The pushes of a run, with the lateness they were made for."""

    pushes: tuple[dict[str, pa.Table], ...]
    lateness: int | None
    watermarks: tuple[int | None, ...]
    features: frozenset[str]


def random_pushes(chance: random.Random, query: RandomQuery, knobs: Knobs) -> RandomPushes:
    """Tuples for ``query`` and a way to push them."""
    return _Run(chance, query, knobs).pushes()


class _Run(FeatureChance):
    def __init__(self, chance: random.Random, query: RandomQuery, knobs: Knobs) -> None:
        super().__init__(chance, knobs)
        self.query = query
        self.base = chance.choice([0, 1_700_000_000_000, -7_000])
        rates = [0.0, 0.1, 0.3] if len(query.aliases) <= 3 else [0.0, 0.0, 0.1]
        self.null_rates = {
            (s.name, column): chance.choice(rates) for s in query.sources for column in s.pools
        }

    def pushes(self) -> RandomPushes:
        null_time = not self.query.by_rows and self.may("null time", 0.1)
        events = self.events(null_time)
        arrivals, lateness = self.arrival_order(events)
        groups = self.split(arrivals)
        self.arrival = self.query.arrival_in_schema or (
            self.query.by_rows and self.may("arrival", 0.2)
        )
        pushes = [self.push(group) for group in groups]
        static = {
            s.name: table(s.schema, [self.row(s, i, None) for i in range(self.static_size())])
            for s in self.query.sources
            if s.is_static
        }
        if static:
            if self.flip(0.5):
                pushes.insert(0, static)
            elif pushes:
                pushes[0] = {**static, **pushes[0]}
            else:
                pushes = [static]
        watermarks: tuple[int | None, ...] = ()
        if not self.query.by_rows and self.may("watermark", 0.1):
            watermarks = self.watermarks(groups, len(pushes))
        return RandomPushes(tuple(pushes), lateness, watermarks, frozenset(self.used))

    def static_size(self) -> int:
        return self.chance.randint(0, max(1, min(self.query.size, 8)))

    # Tuples

    def events(self, null_time: bool) -> list[Event]:
        chance = self.chance
        streams = [s for s in self.query.sources if not s.is_static]
        wanted = {s.name: chance.randint(self.query.size // 2, self.query.size) for s in streams}
        if self.flip(0.05):
            wanted[chance.choice(streams).name] = 0
        turns = [s for s in streams for _ in range(wanted[s.name])]
        chance.shuffle(turns)
        if self.flip(0.3):
            turns.sort(key=lambda s: (self.flip(0.8), s.name))  # bursts of one source
        moment = 0
        numbers = dict.fromkeys(wanted, 0)
        events = []
        steps = chance.choice([(0, 0, 0, 1, 1, 1, 2, 2, 5), (0, 0, 0, 0, 0, 1, 3), (1,)])
        for source in turns:
            moment += chance.choice(steps)
            time, value = self.time(source, moment)
            if null_time and self.flip(0.1):
                value = None
            numbers[source.name] += 1
            row = self.row(source, numbers[source.name], value)
            events.append(Event(source, time, row))
        events.sort(key=lambda event: event.time)
        return events

    def time(self, source: Source, moment: int) -> tuple[int, int | None]:
        """The event time ``moment`` steps into the run: in nanoseconds, and as the column has it.

        Off by one tick of the column's unit now and then, to try the edges of windows.
        """
        milliseconds = self.base + moment * self.query.step
        kind = source.time_type
        if kind is None:
            return milliseconds * _NANOSECONDS, None
        per_second = _TICKS[kind.unit] if pa.types.is_timestamp(kind) else 1_000
        value = milliseconds * per_second // 1_000
        if per_second > 1:
            value += self.chance.choice([0, 0, 0, 0, 1, -1])
        return value * (1_000_000_000 // per_second), value

    def row(self, source: Source, number: int, time: int | None) -> tuple[Any, ...]:
        values: list[Any] = [number]
        if source.time_type is not None:
            values.append(time)
        for column, (_, pool) in source.pools.items():
            if self.may("nulls", self.null_rates[source.name, column]):
                values.append(None)
            elif column in source.families and self.flip(self.query.heavy):
                values.append(pool[0])
            else:
                values.append(self.chance.choice(pool))
        return tuple(values)

    # Order of arrival

    def arrival_order(self, events: list[Event]) -> tuple[list[Event], int | None]:
        """``events`` in the order in which they are pushed, and the lateness of the run."""
        chance, step = self.chance, self.query.step
        if self.query.by_rows:
            if self.may("late", 0.3):
                return self.delayed(events, 10 * step), None
            return events, None
        if self.may("lateness", 0.4):
            lateness = chance.choice([0, 1, 3, 10, 40]) * step
            if self.may("late", 0.4):
                return self.straggling(events, lateness), lateness
            return self.delayed(events, lateness), lateness
        if self.may("late", 0.15):
            return self.straggling(events, 0), None
        if self.may("skew", 0.3):
            return self.skewed(events), None
        return events, None

    def delayed(self, events: Sequence[Event], most: int) -> list[Event]:
        keyed = [(e.time + self.chance.randint(0, most) * _NANOSECONDS, e) for e in events]
        return [event for _, event in sorted(keyed, key=lambda pair: pair[0])]

    def straggling(self, events: Sequence[Event], most: int) -> list[Event]:
        """Some tuples come long after the others."""
        span = events[-1].time - events[0].time if events else 0
        keyed = []
        for event in events:
            delay = self.chance.randint(0, most) * _NANOSECONDS
            if self.flip(0.15):
                delay += self.chance.randint(0, span)
            keyed.append((event.time + delay, event))
        return [event for _, event in sorted(keyed, key=lambda pair: pair[0])]

    def skewed(self, events: Sequence[Event]) -> list[Event]:
        """Each source in order, but delayed by an amount of its own."""
        span = events[-1].time - events[0].time if events else 0
        lag = {e.source.name: self.chance.choice([0, 0, span // 4, 2 * span + 1]) for e in events}
        return sorted(events, key=lambda event: event.time + lag[event.source.name])

    # Pushes

    def split(self, events: list[Event]) -> list[list[Event]]:
        chance = self.chance
        if not events or not self.may("splits", 0.85):
            return [events]
        if len(events) <= 60 and self.may("tiny pushes", 0.15):
            return [[event] for event in events]
        groups: list[list[Event]] = []
        by_source = self.flip(0.15)
        largest = chance.choice([2, 5, 10, 30])
        start = 0
        while start < len(events):
            stop = start + chance.randint(1, largest)
            if by_source:
                stop = start + 1
                while stop < len(events) and events[stop].source is events[start].source:
                    stop += 1
            groups.append(events[start:stop])
            start = stop
            if self.may("empty batches", 0.1):
                groups.append([])
        return groups

    def push(self, events: Sequence[Event]) -> dict[str, pa.Table]:
        chance = self.chance
        rows: dict[str, list[tuple[Any, ...]]] = {}
        sources = {s.name: s for s in self.query.sources}
        places = list(range(len(events)))
        if self.arrival:
            chance.shuffle(places)
            places = [place // 2 for place in places] if self.flip(0.3) else places
        for place, event in zip(places, events, strict=True):
            row = (*event.row, place) if self.arrival else event.row
            rows.setdefault(event.source.name, []).append(row)
        for source in self.query.sources:
            if not source.is_static and self.may("empty batches", 0.1):
                rows.setdefault(source.name, [])
        batches = {}
        for name, found in rows.items():
            chance.shuffle(found)
            schema = sources[name].schema
            if self.arrival and not sources[name].has_arrival:
                schema = schema.append(pa.field(ARRIVAL, pa.int64()))
            whole = table(schema, found)
            if len(found) > 1 and self.may("chunks", 0.2):
                cut = chance.randint(1, len(found) - 1)
                whole = pa.concat_tables([whole.slice(0, cut), whole.slice(cut)])
            batches[name] = whole
        return batches

    def watermarks(self, groups: Sequence[Sequence[Event]], pushes: int) -> tuple[int | None, ...]:
        """A host's watermark now and then: somewhat behind what has been pushed."""
        offsets = [0, 1, 5, 20]
        if self.may("watermark ahead", 0.3):
            offsets.append(-5)
        newest: int | None = None
        found: list[int | None] = []
        for group in groups:
            for event in group:
                newest = event.time if newest is None else max(newest, event.time)
            mark = None
            if newest is not None and self.flip(0.5):
                mark = newest // _NANOSECONDS - self.chance.choice(offsets) * self.query.step
            found.append(mark)
        return tuple([None] * (pushes - len(found)) + found)
