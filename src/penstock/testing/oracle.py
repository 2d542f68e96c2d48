"""The oracle: ``docs/notes/answers.md`` as code, by brute force.

It keeps every tuple that was not late and recomputes the whole answer after each push: lifespans,
then nested loops over the streams with each predicate checked as soon as its streams are bound,
then what leaves in this push. It is slow, and shares nothing with the engine but the query model.

Instants are integers (ticks, or places on the arrival line); the beginning and the end of time are
the infinities. Where the note prescribes no order, rows with equal births (deaths, instants) come
in the order of the loops.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from penstock.errors import InputError
from penstock.query.expression import GROUPED, Expression
from penstock.query.join_graph import ARRIVAL, JoinGraph, Predicate, Stream
from penstock.query.window import Range, Rows
from penstock.testing.evaluate_aggregate import evaluate_aggregate
from penstock.testing.evaluate_row import Row, evaluate
from penstock.testing.python_values import canonical, python_values

Instant: TypeAlias = int | float
"""An integer, or one of the infinities."""

AnswerRow = tuple[Any, ...]
Batch: TypeAlias = pa.Table | pa.RecordBatch

BEGINNING, END = -math.inf, math.inf
TICKS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class Arrived:
    """One input tuple. ``birth`` is its event time or its place."""

    number: int
    values: Mapping[str, Any]
    birth: Instant


@dataclass(frozen=True, slots=True)
class Result:
    """A combination of one tuple per stream, with its row of the select list."""

    numbers: tuple[int, ...]
    row: Row
    selected: AnswerRow
    birth: Instant
    death: Instant


class Oracle:
    """Runs ``graph`` by brute force.

    ``lateness`` is in milliseconds, for all streams or by source, where a source that is not there
    is never late. ``idle`` (milliseconds) and ``policy`` (``min`` or ``max``) are as in the note.
    ``late`` and ``null_time`` count the dropped tuples of each source. ``now`` and ``watermark``
    are instants; there is no watermark while it is at the beginning of time. ``instants`` are those
    by which the rows of the last push were ordered: rows with one instant may come in any order.
    """

    def __init__(
        self,
        graph: JoinGraph,
        lateness: int | Mapping[str, int] | None = None,
        idle: int | None = None,
        policy: str = "min",
    ) -> None:
        if (graph.is_grouped and graph.minus) or any(block.is_grouped for block in graph.minus):
            raise InputError("EXCEPT together with GROUP BY has no meaning: the parser refuses it")
        self.graph = graph
        self.now: Instant = BEGINNING
        self.watermark: Instant = BEGINNING
        self.instants: list[Instant] = []
        self._by_source: dict[str, Stream] = {
            stream.source: stream for block in graph.blocks for stream in block.streams
        }
        self.late: dict[str, int] = dict.fromkeys(graph.sources, 0)
        self.null_time: dict[str, int] = dict.fromkeys(graph.sources, 0)
        self.arrived: dict[str, list[Arrived]] = {source: [] for source in graph.sources}
        """The tuples of each source that were taken in."""
        self._newest: dict[str, Instant] = {
            source: BEGINNING for source, s in self._by_source.items() if not s.is_static
        }
        self._delays: dict[str, int] = {}
        self.go_on_with(lateness, idle, policy)
        self._promised: Instant = BEGINNING
        self._numbers = 0
        self._places = 0
        self._loaded = False
        self._finished = False
        self._truths: dict[tuple[int, tuple[int, ...]], bool] = {}
        self._select_lists: dict[tuple[int, tuple[int, ...]], AnswerRow] = {}
        self._births: dict[int, Instant] = {}
        self._seen: dict[int, Instant] = {}
        """What was now, by tuple, at the end of the push that brought it."""
        self._fresh: dict[tuple[int, ...], bool] = {}
        self._verdicts: dict[tuple[int, ...], bool] = {}
        self._gone: set[tuple[int, ...]] = set()
        self._settled: Instant | None = None
        self._settled_rows: dict[Hashable, AnswerRow] = {}

    def go_on_with(
        self,
        lateness: int | Mapping[str, int] | None,
        idle: int | None = None,
        policy: str = "min",
    ) -> None:
        """Move the watermark by another rule from the next push on; it does not go back."""
        ticks = self.graph.ticks_per_millisecond
        self.lateness, self.idle, self.policy = lateness, idle, policy
        self._delays = (
            {source: delay * ticks for source, delay in lateness.items()}
            if isinstance(lateness, Mapping)
            else dict.fromkeys(self._newest, (lateness or 0) * ticks)
        )

    def push(self, batches: Mapping[str, Batch], watermark: int | None = None) -> list[AnswerRow]:
        """Take ``batches`` in, and give the rows that leave in this push, in order.

        ``watermark`` is the host's own, in milliseconds of event time.
        """
        self.see(batches, watermark)
        return self._leaving()

    def see(self, batches: Mapping[str, Batch], watermark: int | None = None) -> None:
        """Take ``batches`` in and move the watermark, without asking what leaves."""
        last = self._numbers
        self.take(batches)
        if not self.graph.by_rows:
            self.watermark = max(self.watermark, self._own_watermark())
            if watermark is not None:
                self._promised = max(self._promised, watermark * self.graph.ticks_per_millisecond)
                self.watermark = max(self.watermark, self._promised)
                self.now = max(self.now, self._promised)
        self._seen |= dict.fromkeys(range(last + 1, self._numbers + 1), self.now)

    def _own_watermark(self) -> Instant:
        newest = {source: self._newest[source] for source in self._delays}
        if self.idle is not None and self.policy == "min":
            patience = self.idle * self.graph.ticks_per_millisecond
            reached = max(newest.values(), default=BEGINNING) - patience
            newest = {source: max(time, reached) for source, time in newest.items()}
        marks = [newest[source] - delay for source, delay in self._delays.items()]
        choose = min if self.policy == "min" else max
        return choose(marks, default=BEGINNING)

    def finish(self) -> list[AnswerRow]:
        """No more tuples come: give the rows that still leave."""
        self._finished = True
        self.now = self.watermark = END
        return self._in_order([]) if self.graph.emission == "rstream" else self._leaving()

    # What comes in

    def take(self, batches: Mapping[str, Batch]) -> None:
        """Take ``batches`` in; the watermark stays where it is."""
        if self._finished:
            raise InputError("finish() was called: no more batches can be pushed")
        for source, batch in batches.items():
            if source not in self._by_source:
                raise InputError(f"unknown stream {source!r}, expected one of {self.graph.sources}")
            for name in self._by_source[source].schema.names:
                if name not in batch.schema.names:
                    raise InputError(f"a batch of {source!r} has no column {name!r}")
        tables = {
            source: batches[source]
            for source in self.graph.sources
            if source in batches and batches[source].num_rows
        }
        for source, table in tables.items():
            if self._by_source[source].is_static:
                if self._loaded:
                    raise InputError(f"rows of the static relation {source!r} after a stream's")
                for values in self._rows(source, table):
                    self._add(source, values, BEGINNING)
        streams = {s: t for s, t in tables.items() if not self._by_source[s].is_static}
        if self.graph.by_rows:
            self._take_in_arrival_order(streams)
        else:
            self._take_by_event_time(streams)
        self._loaded = self._loaded or bool(streams)

    def refresh(self, relations: Mapping[str, Batch]) -> None:
        """Replace the rows of static relations. Results that would have left by now never leave.

        For queries without EXCEPT and GROUP BY.
        """
        for source, table in relations.items():
            self.arrived[source].clear()
            for values in self._rows(source, table):
                self._add(source, values, BEGINNING)
                self._seen[self._numbers] = BEGINNING
        for r in self.results(self.graph):
            if self.graph.emission == "istream" or r.death < self.now:
                self._gone.add(r.numbers)

    def _take_by_event_time(self, tables: Mapping[str, Batch]) -> None:
        for source, table in tables.items():
            watermark = self.watermark if source in self._delays else self._promised
            times = self._times(self._by_source[source], table)
            for values, time in zip(self._rows(source, table), times, strict=True):
                if time is None:
                    self.null_time[source] += 1
                elif time < watermark:
                    self.late[source] += 1
                else:
                    self._add(source, values, time)
                    self._newest[source] = max(self._newest[source], time)
                    self.now = max(self.now, time)

    def _take_in_arrival_order(self, tables: Mapping[str, Batch]) -> None:
        has_arrival = {ARRIVAL in table.schema.names for table in tables.values()}
        if len(has_arrival) > 1:
            raise InputError(f"some batches of this push have a column {ARRIVAL!r}, others do not")
        incoming = []
        for rank, (source, table) in enumerate(tables.items()):
            if True in has_arrival:
                keys = python_values(table.column(ARRIVAL))
                if None in keys:
                    raise InputError(f"column {ARRIVAL!r} of {source!r} has a NULL")
            else:
                keys = self._times(self._by_source[source], table)
            rows = self._rows(source, table)
            for position, (values, key) in enumerate(zip(rows, keys, strict=True)):
                if key is None:
                    self.null_time[source] += 1
                else:
                    incoming.append(((key, rank, position), source, values))
        for _, source, values in sorted(incoming, key=lambda item: item[0]):
            self._places += 1
            self._add(source, values, self._places)
            self.now = self._places

    def _add(self, source: str, values: Mapping[str, Any], birth: Instant) -> None:
        self._numbers += 1
        self.arrived[source].append(Arrived(self._numbers, values, birth))
        self._births[self._numbers] = birth

    def _rows(self, source: str, table: Batch) -> list[dict[str, Any]]:
        names = self._by_source[source].schema.names
        columns = [python_values(table.column(name)) for name in names]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def _times(self, stream: Stream, table: Batch) -> list[int | None]:
        """The event times of ``table`` in ticks."""
        if stream.event_time is None:
            raise InputError(f"a batch of {stream.source!r} has nothing to order its rows by")
        kind = stream.schema.field(stream.event_time).type
        unit = kind.unit if pa.types.is_timestamp(kind) else "ms"
        ticks = 1_000 * self.graph.ticks_per_millisecond // TICKS_PER_SECOND[unit]
        values = python_values(table.column(stream.event_time))
        return [None if value is None else value * ticks for value in values]

    # Lifespans and results

    def _lifespans(self, stream: Stream) -> list[tuple[Arrived, Instant]]:
        """The tuples of ``stream`` with their deaths."""
        arrived = self.arrived[stream.source]
        window = stream.window
        if isinstance(window, Range):
            length = window.milliseconds * self.graph.ticks_per_millisecond
            return [(a, a.birth + length) for a in arrived]
        if not isinstance(window, Rows):
            return [(a, END) for a in arrived]
        partitions: dict[Hashable, list[Arrived]] = {}
        for a in arrived:
            key = canonical(tuple(a.values[name] for name in window.partition_by))
            partitions.setdefault(key, []).append(a)
        lifespans: list[tuple[Arrived, Instant]] = []
        for members in partitions.values():
            for i, a in enumerate(members):
                killer = i + window.count
                lifespans.append((a, members[killer].birth - 1 if killer < len(members) else END))
        return lifespans

    def results(self, block: JoinGraph) -> Iterator[Result]:
        """All results of ``block`` among the tuples so far."""
        order = _binding_order(block)
        members = {s.alias: self._lifespans(s) for s in block.streams}
        checks: dict[str, list[tuple[Predicate, list[str]]]] = {alias: [] for alias in order}
        for p in block.predicates:
            streams = sorted(p.streams, key=order.index)
            checks[streams[-1] if streams else order[0]].append((p, streams))

        def bind(chosen: dict[str, Arrived], birth: Instant, death: Instant) -> Iterator[Result]:
            if len(chosen) == len(order):
                numbers = tuple(chosen[alias].number for alias in block.aliases)
                row = {alias: arrived.values for alias, arrived in chosen.items()}
                yield Result(numbers, row, self._selected(block, numbers, row), birth, death)
                return
            alias = order[len(chosen)]
            for arrived, dies in members[alias]:
                latest, earliest = max(birth, arrived.birth), min(death, dies)
                if latest <= earliest:
                    extended = {**chosen, alias: arrived}
                    if all(self._is_true(p, streams, extended) for p, streams in checks[alias]):
                        yield from bind(extended, latest, earliest)

        return bind({}, BEGINNING, END)

    def _selected(self, block: JoinGraph, numbers: tuple[int, ...], row: Row) -> AnswerRow:
        """The select list of ``block``, empty if it is grouped; remembered as well."""
        key = (id(block), numbers)
        if key not in self._select_lists:
            items = () if block.is_grouped else block.select
            self._select_lists[key] = _values([item.expression for item in items], row)
        return self._select_lists[key]

    def _is_true(
        self, predicate: Predicate, streams: Sequence[str], chosen: Mapping[str, Arrived]
    ) -> bool:
        """Whether ``predicate`` is true; remembered, since values never change."""
        key = (id(predicate), tuple([chosen[alias].number for alias in streams]))
        if key not in self._truths:
            row = {alias: chosen[alias].values for alias in streams}
            self._truths[key] = evaluate(predicate.expression, row) is True
        return self._truths[key]

    # What leaves

    def _leaving(self) -> list[AnswerRow]:
        results = [r for r in self.results(self.graph) if self._is_fresh(r)]
        if self.graph.is_grouped:
            return self._leaving_groups(results)
        removers: dict[Hashable, list[Result]] = {}
        for block in self.graph.minus:
            for s in self.results(block):
                removers.setdefault(canonical(s.selected), []).append(s)

        def equals(r: Result) -> list[Result]:
            """The results of later blocks that are equal to ``r``; NULL equals nothing."""
            if not removers or None in r.selected:
                return []
            return removers.get(canonical(r.selected), [])

        leaving: list[tuple[Instant, AnswerRow]] = []
        for r in results:
            equal = equals(r)
            removed = any(s.birth <= r.birth <= s.death for s in equal)
            later = [s.birth - 1 for s in equal if s.birth > r.birth]
            death = min([r.death, *later])
            if self.graph.emission == "rstream":
                if not removed and r.birth <= self.now <= death:
                    leaving.append((r.birth, r.selected))
            elif r.numbers not in self._gone and self._is_decided(r.birth):
                verdict = self._verdicts.setdefault(r.numbers, not removed)
                at, due = r.birth, True
                if self.graph.emission == "dstream":
                    at, due = death, death < self.now and self._is_decided(death)
                if verdict and due:
                    self._gone.add(r.numbers)
                    leaving.append((at, r.selected))
        return self._in_order(leaving)

    def _is_fresh(self, r: Result) -> bool:
        """Whether no tuple of ``r`` was older than its FRESHNESS when the last of them came.

        Rows of a static relation are as if they had been there from the start.
        """
        if r.numbers not in self._fresh:
            found = max(self._seen.get(number, self.now) for number in r.numbers)
            self._fresh[r.numbers] = all(
                stream.freshness is None
                or found - self._births[number]
                <= stream.freshness * self.graph.ticks_per_millisecond
                for stream, number in zip(self.graph.streams, r.numbers, strict=True)
            )
        return self._fresh[r.numbers]

    def _in_order(self, leaving: list[tuple[Instant, AnswerRow]]) -> list[AnswerRow]:
        leaving.sort(key=lambda pair: pair[0])
        self.instants = [instant for instant, _ in leaving]
        return [row for _, row in leaving]

    def _is_decided(self, instant: Instant) -> bool:
        """Whether nothing that comes later can change what EXCEPT does at ``instant``."""
        return not self.graph.minus or not self._waits or self.watermark > instant

    @property
    def _waits(self) -> bool:
        """Whether an instant is settled when the watermark has passed it, or when it was seen."""
        declared = self.lateness is not None and not self.graph.by_rows
        return declared and len(self._delays) == len(self._newest)

    def _leaving_groups(self, results: Sequence[Result]) -> list[AnswerRow]:
        if self.graph.emission == "rstream":
            rows = self._rows_at(self.now, results).values()
            return self._in_order([(self.now, row) for row in rows])
        until = self.now
        if self._waits:
            if self.watermark == BEGINNING:
                return self._in_order([])
            until = self.watermark - 1
        instants = {r.birth for r in results} | {r.death + 1 for r in results if r.death < END}
        instants = {t for t in instants if t <= until}
        if self._settled is not None:
            instants = {t for t in instants if t > self._settled} | {self._settled}
        leaving: list[tuple[Instant, AnswerRow]] = []
        for instant in sorted(instants):
            before, after = self._settled_rows, self._rows_at(instant, results)
            old, new = (before, after) if self.graph.emission == "istream" else (after, before)
            leaving.extend(
                (instant, row)
                for group, row in new.items()
                if group not in old or canonical(old[group]) != canonical(row)
            )
            self._settled_rows = after
        self._settled = until
        return self._in_order(leaving)

    def _rows_at(self, instant: Instant, results: Iterable[Result]) -> dict[Hashable, AnswerRow]:
        """The grouped relation at ``instant``: group to row."""
        groups: dict[Hashable, list[Result]] = {}
        for r in results:
            if r.birth <= instant <= r.death:
                groups.setdefault(canonical(_values(self.graph.group_by, r.row)), []).append(r)
        rows = {}
        for group, members in groups.items():
            columns: dict[str, Any] = {}
            for i, value in enumerate(_values(self.graph.group_by, members[0].row)):
                columns[f"$group{i}"] = value
            for i, aggregate in enumerate(self.graph.aggregates):
                argument = aggregate.argument
                columns[f"$aggregate{i}"] = evaluate_aggregate(
                    aggregate,
                    [None if argument is None else evaluate(argument, r.row) for r in members],
                )
            row = {GROUPED: columns}
            if self.graph.having is not None and evaluate(self.graph.having, row) is not True:
                continue
            rows[group] = tuple(evaluate(item.expression, row) for item in self.graph.select)
        return rows


def answer(
    graph: JoinGraph,
    batches_list: Iterable[Mapping[str, Batch]],
    lateness: int | Mapping[str, int] | None = None,
    finish: bool = True,
) -> Counter[Hashable]:
    """The whole answer to ``batches_list``, pushed one after another, as a multiset.

    Rows are in their canonical form (:func:`penstock.testing.python_values.canonical`).
    """
    oracle = Oracle(graph, lateness)
    rows = [row for batches in batches_list for row in oracle.push(batches)]
    if finish:
        rows.extend(oracle.finish())
    return Counter(canonical(row) for row in rows)


def _binding_order(block: JoinGraph) -> list[str]:
    """The aliases of ``block``, each after one that a predicate links it to where there is one."""
    order: list[str] = []
    while len(order) < len(block.streams):
        rest = [alias for alias in block.aliases if alias not in order]
        linked = [
            alias
            for alias in rest
            if any(alias in p.streams and p.streams & set(order) for p in block.predicates)
        ]
        order.append((linked or rest)[0])
    return order


def _values(expressions: Iterable[Expression], row: Row) -> tuple[Any, ...]:
    return tuple(evaluate(expression, row) for expression in expressions)
