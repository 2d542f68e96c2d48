"""GROUP BY: a relation of aggregates over results that are born and die.

At instant *t* the relation has one row for each group with a result alive at *t*
(``docs/notes/answers.md``). It changes only when a result enters (at its birth) or leaves (just
after its death), so what happens up to the settled instant is a finite list of *events*, and the
rows in between need no look. A push

1. collects the events up to the settled instant *s*: of the new results, of those that have waited
   for their birth, and of those that have waited for their death. An event before the instant *p*
   that was settled last counts at *p*; a result that was dead by then has none;
2. sorts them by group and instant, and runs every aggregate along them from the state of its group:
   for each touched group one row for the state before, one for each instant with events
   (:mod:`penstock.engine.output.group_rows`);
3. evaluates the select list on these rows and compares each with the one before it in its group.
   ISTREAM emits the new ones of the pairs that differ, DSTREAM the old ones. Groups that are not
   touched have the same row as before and emit nothing. RSTREAM needs only the last row, of all
   groups, at the instant *now* instead of *s*.

Two rows are different if their select lists are: a change that the query does not show is none.

All aggregates are functions of the living values, exactly (:mod:`penstock.engine.output.exact_sum`,
:mod:`penstock.engine.output.extremum`). So a row never depends on how the work was cut into pushes,
and a state that was rebuilt from the living results after a restart equals the one that was lost.

Nothing visible changes before :meth:`Aggregation.commit`. A push costs what comes, what goes and
the groups that these touch, not what is held; only on the arrival line, where deaths are not known
in advance, all that is held is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.engine.output.agenda import Agenda, ArrivalAgenda
from penstock.engine.output.exact_sum import ExactSum
from penstock.engine.output.extremum import Extremum
from penstock.engine.output.group_rows import GroupRows
from penstock.engine.output.group_table import GroupTable
from penstock.errors import InvariantBroken
from penstock.kernels import aggregate as kernels
from penstock.kernels.aggregate import BIRTH, DEATH, GROUP, MASK
from penstock.query.expression import Aggregate, Column, Expression, columns_of
from penstock.query.join_graph import JoinGraph
from penstock.values.evaluate import compile, compile_filter
from penstock.values.interner import Interner
from penstock.values.key_types import KeyType, key_type_of

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]
Refresh = Callable[[dict[str, Int64s], Int64s], None]

NEVER_SETTLED = -(2**63)
_MASK_BITS = 63
_FEWEST_GROUPS_TO_SWEEP = 1024
"""Groups below which empty ones are not looked for."""

_take = pc.get_function("array_take").call
_UNCHECKED = pc.TakeOptions(boundscheck=False)


@dataclass(slots=True)
class _Staged:
    """Work that a push has prepared: the instant it settles, and its rows (None for none)."""

    settled: int
    rows: GroupRows | None
    alive: Int64s | int | None
    """Living results: of the touched groups; without rows, of the only one, if they change."""


class Aggregation:
    """The grouped relation of ``graph``; see the module."""

    def __init__(self, graph: JoinGraph) -> None:
        self._graph = graph
        self._by_rows = graph.by_rows
        self._emission = graph.emission
        self._schema = graph.schema
        self._empty = self._schema.empty_table()
        self._select = [compile(item.expression) for item in graph.select]
        self._having = None if graph.having is None else compile_filter(graph.having)
        self._compared: list[tuple[int, KeyType]] = [
            (i, key_type_of(item.expression.type))
            for i, item in enumerate(graph.select)
            if _varies(item.expression)
        ]
        counts = {f"$aggregate{i}" for i, a in enumerate(graph.aggregates) if a.argument is None}
        varying = [item.expression for item in graph.select if _varies(item.expression)]
        self._counts_tell = (
            self._having is None
            and len(varying) > 0
            and all(isinstance(each, Column) and each.name in counts for each in varying)
        )
        """Whether two rows of a group differ just if they count another number of results."""
        self.is_count = (
            self._counts_tell
            and self._emission != "rstream"
            and not (graph.group_by or graph.by_rows)
            and len(counts) == len(graph.aggregates)
        )
        """Whether there is nothing but the number of results."""
        self._reset()

    def _reset(self) -> None:
        """Start with nothing."""
        graph = self._graph
        self._groups = GroupTable([e.type for e in graph.group_by])
        self._capacity = 0
        self._alive = np.zeros(0, np.int64)
        self._alive_groups = 0
        self._settled = NEVER_SETTLED
        self._staged: _Staged | None = None
        self._sums: list[tuple[ExactSum, int]] = []
        self._extrema: list[tuple[Extremum, int]] = []
        self._answers: list[ExactSum | Extremum | None] = []
        self._make_measures()
        self._measures: list[ExactSum | Extremum] = [
            *(measure for measure, _ in self._sums),
            *(extremum for extremum, _ in self._extrema),
        ]
        masks = -(-len(self._sums) // _MASK_BITS)
        width = GROUP if self.is_count else MASK + masks
        for number, (measure, _) in enumerate(self._sums):
            measure.place(MASK + number // _MASK_BITS, number % _MASK_BITS, width)
            width += measure.words
        for extremum, _ in self._extrema:
            extremum.place(width)
            width += extremum.words
        self._ids: dict[str, int] = {}
        if self._by_rows:
            self._ids = {alias: width + i for i, alias in enumerate(graph.aliases)}
            width += len(self._ids)
        self._width = width
        self._none = np.empty((width, 0), np.int64)
        self._unborn = Agenda(width, BIRTH)
        self._born: Agenda | ArrivalAgenda
        self._born = ArrivalAgenda(width, self._ids) if self._by_rows else Agenda(width, DEATH)
        self._make_room()

    def _make_measures(self) -> None:
        """One measure for all aggregates that can share it, with the position of its argument."""
        found: dict[tuple[str, Expression], ExactSum | Extremum] = {}
        summed = {a.argument for a in self._graph.aggregates if a.function in ("sum", "avg")}
        for position, aggregate in enumerate(self._graph.aggregates):
            argument = aggregate.argument
            if argument is None:
                self._answers.append(None)
                continue
            kind = aggregate.function if aggregate.function in ("min", "max") else "sum"
            if (kind, argument) not in found:
                if kind == "sum":
                    measure = ExactSum(argument.type, argument not in summed)
                    found[kind, argument] = measure
                    self._sums.append((measure, position))
                else:
                    extremum = Extremum(argument.type, kind == "max", self._by_rows)
                    found[kind, argument] = extremum
                    self._extrema.append((extremum, position))
            self._answers.append(found[kind, argument])

    # -- the outside ---------------------------------------------------------------------------

    def __len__(self) -> int:
        """Results that are held."""
        return len(self._unborn) + len(self._born)

    @property
    def nbytes(self) -> int:
        return (
            self._groups.nbytes
            + self._alive.nbytes
            + self._unborn.nbytes
            + self._born.nbytes
            + sum(measure.nbytes for measure in self._measures)
        )

    @property
    def last_settled(self) -> int | None:
        """The instant that the relation stands at; for RSTREAM the last ``now``."""
        return None if self._settled == NEVER_SETTLED else self._settled

    def stage(
        self,
        groups: list[pa.Array],
        arguments: list[pa.Array | None],
        births: Int64s,
        deaths: Int64s,
        ids: Mapping[str, Int64s],
        settled: int,
        now: int,
    ) -> pa.Table:
        """Take in new results and settle all instants up to ``settled``: the rows that leave.

        ``births`` and ``deaths`` are inclusive; ``ids`` are the leaf rows, for the arrival line.
        """
        until = now if self._emission == "rstream" else settled
        try:
            until = max(until, self._settled)
            if not len(births) and self._rests(until):
                self._staged = _Staged(until, None, None)
                return self._empty
            if self.is_count:
                return self._counted(births, deaths, until)
            rows = self._advance(groups, arguments, births, deaths, ids, until)
            return self._empty if rows is None else self._leaving(rows)
        except BaseException:
            self.rollback()
            raise

    def load(
        self,
        groups: list[pa.Array],
        arguments: list[pa.Array | None],
        births: Int64s,
        deaths: Int64s,
        ids: Mapping[str, Int64s],
        settled: int | None,
    ) -> None:
        """Begin anew with the given results, as of the instant ``settled``. Nothing leaves."""
        self._reset()
        self._settled = NEVER_SETTLED if settled is None else settled
        if self.is_count:
            self._counted(births, deaths, self._settled)
        else:
            self._advance(groups, arguments, births, deaths, ids, self._settled)
        self.commit()
        self.tidy()

    def commit(self) -> None:
        """Make what was staged the state. All memory for it is there."""
        staged, self._staged = self._staged, None
        if staged is None:
            self.rollback()
            return
        rows = staged.rows
        if staged.alive is not None:
            self._alive[0 if rows is None else rows.touched] = staged.alive
        if rows is not None:
            for measure, _ in self._sums:
                measure.commit(rows)
        for extremum, _ in self._extrema:
            extremum.commit(rows)
        self._unborn.commit()
        self._born.commit()
        self._settled = staged.settled

    def tidy(self) -> None:
        """Pack what is sparse and forget groups without results. Each part is done as a whole or,
        for lack of memory, not at all; answers do not depend on it."""
        if isinstance(self._born, ArrivalAgenda) and self._born.is_worth_packing:
            self._born.pack(self._renumbered)
        for extremum, _ in self._extrema:
            extremum.pack(self._settled, self._unborn)
        self._sweep()

    def _renumbered(self, numbers: Int64s) -> Callable[[], None]:
        """Entries get new ``numbers``: what makes nodes follow, needing no more memory."""
        entries = [each.renumbered_entries(numbers) for each, _ in self._extrema]

        def adopt() -> None:
            for (extremum, _), each in zip(self._extrema, entries, strict=True):
                extremum.adopt_entries(each)

        return adopt

    def rollback(self) -> None:
        """Forget what was staged."""
        self._staged = None
        for measure in self._measures:
            measure.rollback()
        self._unborn.rollback()
        self._born.rollback()

    def shorten(self, refresh: Refresh) -> None:
        """On the arrival line, before :meth:`stage`: lower deaths to those of the leaf rows."""
        if isinstance(self._born, ArrivalAgenda):
            self._born.shorten(refresh)

    def renumber(self, alias: str, mapping: Int64s, first: int) -> None:
        """Leaf row ``r`` of ``alias`` is now ``mapping[r - first]``; -1 where it is gone."""
        if isinstance(self._born, ArrivalAgenda):
            self._born.renumber(alias, mapping, first)

    # -- events --------------------------------------------------------------------------------

    def _advance(
        self,
        groups: Sequence[pa.Array],
        arguments: Sequence[pa.Array | None],
        births: Int64s,
        deaths: Int64s,
        ids: Mapping[str, Int64s],
        until: int,
    ) -> GroupRows | None:
        """Stage the state at ``until``; the rows on the way, None if nothing happens."""
        if self._staged is not None:
            raise InvariantBroken("the push before was neither committed nor rolled back")
        before = self._settled
        if isinstance(self._born, ArrivalAgenda):
            for extremum, _ in self._extrema:
                extremum.fetch_deaths(self._born.deaths)
        new = self._entries(groups, arguments, births, deaths, ids)
        coming, entering = self._unborn.exchange(until, new)
        coming = coming[:, :entering]
        going, leaving = self._born.exchange(max(until - 1, NEVER_SETTLED), coming)
        if isinstance(self._born, ArrivalAgenda):
            if entering < new.shape[1]:
                raise InvariantBroken("on the arrival line nobody is born after now")
            for extremum, _ in self._extrema:
                extremum.name_entries(self._born.added, self._born.next_number)
        self._make_room()
        everyone = len(self._groups) if self._emission == "rstream" else 0
        rows = None
        if entering or leaving or everyone:
            events = np.concatenate([coming, going[:, :leaving]], axis=1)
            instants = np.concatenate([coming[BIRTH], events[DEATH, entering:] + 1])
            np.maximum(instants, before, out=instants)
            if everyone:  # One instant is as good as another on the way: only the last row counts.
                instants.fill(until)
            rows = GroupRows(events, instants, entering, self._alive, everyone)
            for measure in self._measures:
                measure.stage(rows)
        self._staged = _Staged(until, rows, None if rows is None else rows.living[rows.last])
        return rows

    def _rests(self, until: int) -> bool:
        """Whether nothing happens until ``until`` if nothing comes."""
        rests = self._unborn.rests(until) and self._born.rests(until - 1)
        return rests and self._emission != "rstream"

    def _counted(self, births: Int64s, deaths: Int64s, until: int) -> pa.Table:
        """The counts that leave until ``until``; the state is staged."""
        coming, entering = self._none, len(births)
        if entering:
            coming = np.empty((GROUP, entering), np.int64)
            coming[BIRTH], coming[DEATH] = births, deaths
        if len(self._unborn) or (entering and births.max() > until):
            coming, entering = self._unborn.exchange(until, coming)
        going, leaving = self._born.exchange(max(until - 1, NEVER_SETTLED), coming[:, :entering])
        events = entering + leaving
        alive, found = int(self._alive[0]), 0
        if events:
            counts = np.empty(events, np.int64)
            alive, found = kernels.counts_in_time(
                *(coming, entering, going, leaving, self._settled, alive),
                *(self._emission == "dstream", np.empty((3, events), np.int64), counts),
            )
        self._staged = _Staged(until, None, alive)
        if not found:
            return self._empty
        column = pa.Array.from_buffers(pa.int64(), found, [None, pa.py_buffer(counts)])
        values = [value_of(lambda _: column, found) for value_of in self._select]
        return pa.Table.from_arrays(values, schema=self._schema)

    def _entries(
        self,
        groups: Sequence[pa.Array],
        arguments: Sequence[pa.Array | None],
        births: Int64s,
        deaths: Int64s,
        ids: Mapping[str, Int64s],
    ) -> Int64s:
        """The new results that still count, as entries of an agenda."""
        count = len(births)
        kept: pa.Array | None = None
        if count and deaths.min() < self._settled:
            positions = np.flatnonzero(deaths >= self._settled)
            kept = pa.array(positions)
            count = len(positions)
            births, deaths = births[positions], deaths[positions]
            ids = {alias: each[positions] for alias, each in ids.items()}
        if count == 0:
            return self._none
        entries = np.zeros((self._width, count), np.int64)
        entries[BIRTH] = births
        entries[DEATH] = deaths
        entries[GROUP] = self._groups.number([_kept(g, kept) for g in groups], count)
        for measure, position in self._sums:
            measure.encode(_kept(arguments[position], kept), entries)
        for extremum, position in self._extrema:
            extremum.encode(_kept(arguments[position], kept), entries)
        for alias, row in self._ids.items():
            entries[row] = ids[alias]
        return entries

    # -- rows ----------------------------------------------------------------------------------

    def _leaving(self, rows: GroupRows) -> pa.Table:
        """The rows that leave in this push, ordered by instant."""
        if self._emission == "rstream":
            shown, columns = self._selected(rows, rows.last[rows.living[rows.last] > 0])
            if len(shown) == 0:
                return self._empty
            return pa.Table.from_arrays(columns, schema=self._schema)
        if self._counts_tell:
            return self._leaving_counts(rows)
        shown, columns = self._selected(rows, rows.living.nonzero()[0])
        if len(shown) == 0:
            return self._empty
        living = rows.living
        if self._having is not None:
            living = np.zeros_like(living)
            living[shown] = rows.living[shown]
        leaving, instants, in_order = kernels.differences(
            rows.owner,
            rows.instants,
            living,
            shown,
            self._changed(columns, len(shown)),
            self._emission == "dstream",
        )
        if len(leaving) == 0:
            return self._empty
        if not in_order:
            leaving = leaving[instants.argsort(kind="stable")]
        first, count = int(leaving[0]), len(leaving)
        if in_order and leaving[-1] - first + 1 == count:
            columns = [column.slice(first, count) for column in columns]
        else:
            positions = pa.array(leaving)
            columns = [_take([column, positions], _UNCHECKED) for column in columns]
        return pa.Table.from_arrays(columns, schema=self._schema)

    def _leaving_counts(self, rows: GroupRows) -> pa.Table:
        """The same if rows of a group differ in nothing but the number of results."""
        found = np.empty((2, rows.count), np.int64)
        count, in_order = kernels.changed_counts(
            rows.all, rows.count, self._emission == "dstream", found
        )
        if count == 0:
            return self._empty
        leaving = found[0, :count]
        if not in_order:
            leaving = leaving[found[1, :count].argsort(kind="stable")]
        return pa.Table.from_arrays(self._selected(rows, leaving)[1], schema=self._schema)

    def _selected(self, rows: GroupRows, shown: Int64s) -> tuple[Int64s, list[pa.Array]]:
        """Rows of those ``shown`` that HAVING lets through, and the select list on them."""
        arrays: dict[str, pa.Array] = {}
        groups = rows.touched[rows.owner[shown]]
        for i, values in enumerate(self._groups.values(groups)):
            arrays[f"$group{i}"] = values
        for i, aggregate in enumerate(self._graph.aggregates):
            arrays[f"$aggregate{i}"] = self._answer(aggregate, self._answers[i], rows, shown)

        def column(wanted: Column) -> pa.Array:
            return arrays[wanted.name]

        if self._having is not None and len(shown):
            passing = self._having(column, len(shown))
            if not passing.all():
                kept = pa.array(passing)
                arrays = {name: array.filter(kept) for name, array in arrays.items()}
                shown = shown[passing]
        return shown, [value_of(column, len(shown)) for value_of in self._select]

    @staticmethod
    def _answer(
        aggregate: Aggregate, measure: ExactSum | Extremum | None, rows: GroupRows, shown: Int64s
    ) -> pa.Array:
        if measure is None:
            return pa.array(rows.living[shown], aggregate.type)
        return measure.answer(aggregate, shown)

    def _changed(self, columns: list[pa.Array], length: int) -> Bools:
        """Mask of the rows of ``columns`` that differ from the one before."""
        changed = np.zeros(length, np.bool_)
        for position, encoder in self._compared:
            interner = Interner() if encoder.needs_interner else None
            keys, valid = encoder.encode(columns[position], interner)
            if valid is None:
                kernels.changed_from(np.array(keys), changed)
            else:
                kernels.changed_from(np.where(valid, keys, 0), changed)
                kernels.changed_from(valid.astype(np.int64), changed)
        return changed

    # -- room ----------------------------------------------------------------------------------

    def _make_room(self) -> None:
        """Have state for all groups."""
        if len(self._groups) > self._capacity:
            capacity = max(16, 1 << (len(self._groups) - 1).bit_length())
            alive = np.zeros(capacity, np.int64)
            alive[: len(self._alive)] = self._alive
            self._alive = alive
            for measure in self._measures:
                measure.reserve(capacity)
            self._capacity = capacity  # Last: only if there was memory for all of them.

    def _sweep(self) -> None:
        """Forget groups of which no result is held, if they may be the majority."""
        count = len(self._groups)
        if count <= 2 * self._alive_groups + _FEWEST_GROUPS_TO_SWEEP:
            return
        self._make_room()
        wanted = self._alive[:count] > 0
        wanted[self._unborn.entries()[GROUP]] = True
        kept = np.flatnonzero(wanted)
        if 2 * len(kept) > count:
            self._alive_groups = len(kept)
            return
        numbers = np.full(count, -1, np.int64)
        numbers[kept] = np.arange(len(kept))
        agendas = (self._unborn, self._born)
        renumbered = [each.entries() for each in agendas]
        for entries in renumbered:
            entries[GROUP] = numbers[entries[GROUP]]
        capacity = max(16, 1 << max(0, 2 * len(kept) - 1).bit_length())
        alive = np.zeros(capacity, np.int64)
        alive[: len(kept)] = self._alive[kept]
        states = [measure.kept(kept, capacity) for measure in self._measures]
        self._groups.keep_only(kept)
        # Only now: without memory for it, everything is as it was.
        for agenda, entries in zip(agendas, renumbered, strict=True):
            agenda.put(entries)
        for measure, state in zip(self._measures, states, strict=True):
            measure.adopt(state)
        self._alive, self._capacity, self._alive_groups = alive, capacity, len(kept)
        self._groups.sweep()


def _varies(expression: Expression) -> bool:
    """Whether ``expression`` can have several values in one group."""
    return any(not column.name.startswith("$group") for column in columns_of(expression))


def _kept(array: pa.Array | None, positions: pa.Array | None) -> pa.Array:
    if array is None:
        raise InvariantBroken("an aggregate with an argument came without its values")
    return array if positions is None else array.take(positions)
