"""What MIN and MAX tell their inputs: rows that a later row surpasses cannot matter any more.

If a query asks for nothing but MIN, MAX and groups, it does not matter how often a value is there.
Take two rows x and y of one stream that agree in all columns that predicates, groups and arguments
read. Whoever is a partner of x is one of y, so with each result of x there is one of y in the same
group, with the same arguments, which is alive whenever x and y are. If y comes later and its window
has one length for all rows, y outlives x. So from the birth of y on x makes no difference: at every
instant of the relation of groups (``docs/notes/answers.md``) the result of y says the same. The one
column of the stream whose MAX is asked for need not be equal: it is enough if y has no less there
(for MIN, no more); a NULL is less than anything, as it counts for nothing. This is dominance by
(value, death), the skyline of a sliding window, kept for each combination of the other columns.

It is about rows, not results: that y has a partner need not be known, since x has none that y has
not. To ask whether a *result* surpasses all that x may still be in would find next to nothing. A
result lives as long as its oldest part; so it dies before any x that came after its own row of
that stream, and x would have to be kept for the time after that.

**When.** What x has given the instants before the birth of y remains. So x goes between pushes, and
only if the instant at which y was born is settled: results of x that come later count then or
afterwards. That x goes means what it means when a row dies: windows are packed, and states forget
what was made of it. Answers do not depend on which of the surpassed rows have gone, or when; a
restart from a window that still has them is as good.

In a window that is UNBOUNDED all rows die together, so that an earlier row surpasses a later one as
well: of each combination the best row remains, and the window stops to grow.

**Where not.** COUNT, SUM and AVG read how many results there are, so each of them counts. With ROWS
windows rows count for the deaths of others. Where probes are owed or were shed, or states lack
combinations since a change of plan, y may not have met who x has met: then nothing goes. Nor do
rows of static relations, which are there once, and rows that are on disk: to look at them would
bring them back.

**What it costs.** A look numbers the combinations of a window by a hash table, and packing enters
the rest into the indexes again. Both happen when as many rows have come as are held, so that it is
a constant for each row, and only if the pairs that were made since then are worth it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.engine.feedback.feedback import Feedback
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.payload import RingColumn
from penstock.engine.state.rows import BIRTH
from penstock.errors import PenstockError
from penstock.kernels import group_table, ring
from penstock.kernels.surpassed import find_surpassed
from penstock.query.expression import Column, columns_of
from penstock.query.join_graph import JoinGraph
from penstock.values.hash_secret import SECRET
from penstock.values.interner import Interner
from penstock.values.key_types import key_type_of
from penstock.values.wiring import Wiring

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]

LOOK = 60.0
PACK = 60.0
PAIR = 30.0
"""Nanoseconds, about: of a row that is looked at, of one that is kept when a window is packed, and
of a pair that a join makes."""
_FEWEST_ROWS = 1024
"""Rows that come before the first look, and from one look to the next, at least."""
_SHARE_WORTH_PACKING = 0.25
"""The share of a window that has to be surpassed before it is packed."""
_MOST_PATIENCE = 32
"""Times longer that a window is left alone in which little was surpassed again and again."""


@dataclass(slots=True)
class _Watch:
    """What is remembered about a window between looks."""

    leaf: LeafWindow
    best: Column | None
    """The column of which only the greatest or least value matters, if there is one."""
    least: bool
    """Whether that is the least."""
    others: tuple[str, ...]
    """Names of the other columns that decide, besides the keys."""
    patience: int = 1
    due: int = _FEWEST_ROWS
    """The row number at which the window is looked at next."""
    pairs: int = 0
    """Pairs that had been made at the last look."""


class Surpassed:
    """Finds the rows that others surpass, in the windows of a block that is all MIN and MAX."""

    def __init__(self, watches: Sequence[_Watch], adaptive: bool) -> None:
        self._watches = {watch.leaf.stream.alias: watch for watch in watches}
        self._adaptive = adaptive
        self.gone = dict.fromkeys(self._watches, 0)
        """Rows that have gone since the start, by alias."""

    @classmethod
    def of(
        cls,
        graph: JoinGraph,
        wiring: Wiring,
        leaves: Mapping[str, LeafWindow],
        feedback: Feedback | None,
    ) -> Surpassed | None:
        """For a query of which rows can be surpassed, if feedback is asked for."""
        if feedback is None or not graph.ignores_copies or graph.by_rows or len(leaves) == 1:
            return None
        watches = [_watch(graph, wiring, leaf) for leaf in leaves.values()]
        found = [watch for watch in watches if watch is not None]
        return cls(found, feedback.adaptive) if found else None

    @property
    def is_due(self) -> bool:
        """Whether so many rows have come that a window should be looked at."""
        return any(each.leaf.rows.head >= each.due for each in self._watches.values())

    def kept(self, alias: str, settled: int, pairs: int, at_once: bool = False) -> Int64s | None:
        """The rows of a window to go on with; None if all, or if it is not worth while to look.

        ``pairs`` were made since the start. With ``at_once``, whatever it costs.
        """
        watch = self._watches.get(alias)
        if watch is None or watch.leaf.bytes_away:
            return None
        if not at_once and watch.leaf.rows.head < watch.due:
            return None
        saved = np.inf
        if self._adaptive and not at_once and not watch.leaf.is_unbounded:
            saved = PAIR * (pairs - watch.pairs)
        watch.pairs = pairs
        held = len(watch.leaf.rows)
        kept = None
        if _SHARE_WORTH_PACKING * saved > LOOK * held:
            kept = _kept(watch, settled)
            share = 1 - len(kept) / max(1, held)
            least = 0.0 if at_once else _SHARE_WORTH_PACKING
            if share <= least or share * saved < LOOK * held + PACK * len(kept):
                kept = None
        self._put_off(watch, kept)
        return kept

    def _put_off(self, watch: _Watch, kept: Int64s | None) -> None:
        """Look again when as many rows have come as are held; if it was in vain, later still."""
        rows = watch.leaf.rows
        count, head = len(rows), rows.head
        if kept is not None:
            self.gone[watch.leaf.stream.alias] += count - len(kept)
            count, head = len(kept), head + len(kept)
            watch.patience = 1
        watch.due = head + watch.patience * max(_FEWEST_ROWS, count)
        if kept is None and self._adaptive:
            watch.patience = min(2 * watch.patience, _MOST_PATIENCE)


def _watch(graph: JoinGraph, wiring: Wiring, leaf: LeafWindow) -> _Watch | None:
    """How to compare the rows of ``leaf``; None if that cannot be."""
    if leaf.stream.is_static or leaf.span == 0:
        return None
    best, least = _best_column(graph, wiring, leaf.stream.alias)
    others = tuple(n for n in leaf.payload.columns if best is None or n != best.name)
    try:
        for name in others:
            column = leaf.payload.columns[name]
            if not isinstance(column, RingColumn):
                key_type_of(column.type)
    except PenstockError:  # Values of this type cannot be compared.
        return None
    return _Watch(leaf, best, least, others)


def _best_column(graph: JoinGraph, wiring: Wiring, alias: str) -> tuple[Column | None, bool]:
    """The first column of a stream of which nothing but its MAX, or nothing but its MIN, is asked
    for; and whether it is MIN."""
    read = [*graph.group_by, *(each.expression for each in wiring.residuals)]
    equal = {column for expression in read for column in columns_of(expression)}
    for aggregate in graph.aggregates:
        column = aggregate.argument
        if not isinstance(column, Column) or column.stream != alias or column in equal:
            continue
        asked = {
            (each.function, each.argument)
            for each in graph.aggregates
            if each.argument is not None and column in columns_of(each.argument)
        }
        if asked == {(aggregate.function, column)} and key_type_of(column.type).ordered:
            return column, aggregate.function == "min"
    return None, False


def _kept(watch: _Watch, settled: int) -> Int64s:
    """The rows of a window that no other surpasses, those that are not settled included."""
    leaf = watch.leaf
    rows = np.arange(leaf.rows.tail, leaf.rows.head, dtype=np.int64)
    births = leaf.rows.take(BIRTH, rows)
    is_open = births > settled
    known = np.flatnonzero(~is_open)
    order = ring.order_of(births[known])
    if order is not None:
        known = known[order]
    candidates = rows[known]
    classes, count = _classes(watch, candidates)
    merits, valid = _merits(watch, candidates)
    gone = _surpassed(classes, count, merits, valid)
    if leaf.is_unbounded:
        left = np.flatnonzero(~gone)[::-1]
        again = _surpassed(classes[left], count, merits[left], valid[left])
        gone[left[again]] = True
    stays = np.ones(len(rows), np.bool_)
    stays[known[gone]] = False
    return rows[stays]


def _surpassed(classes: Int64s, count: int, merits: Int64s, valid: Bools) -> Bools:
    gone = np.zeros(len(classes), np.bool_)
    find_surpassed(classes, merits, valid, np.full(count, -1, np.int64), gone)
    return gone


def _classes(watch: _Watch, rows: Int64s) -> tuple[Int64s, int]:
    """A number for each of ``rows``, the same where all columns agree that must; and how many.

    Numbers and times are compared bit by bit, so that no predicate can tell two of a class apart.
    """
    leaf, own = watch.leaf, watch.leaf.rows
    columns: list[Int64s] = [own.take(leaf.key_column(at), rows) for at in range(leaf.key_count)]
    for name in watch.others:
        column = leaf.payload.columns[name]
        valid = None
        if isinstance(column, RingColumn):
            bits = own.take(column.column, rows)
            values = bits.view(f"i{bits.dtype.itemsize}").astype(np.int64)
            if column.flags is not None:
                valid = own.take(column.flags, rows)
        else:
            kind = key_type_of(column.type)
            interner = Interner() if kind.needs_interner else None
            values, valid = kind.encode(leaf.payload.take(name, rows), interner)
        if valid is not None:
            values = np.where(valid, values, 0)
            columns.append(valid.astype(np.int64))
        columns.append(values)
    if not columns or len(rows) == 0:
        return np.zeros(len(rows), np.int64), 1
    table = np.column_stack(columns)
    slots = np.full(2 << (len(rows) - 1).bit_length(), group_table.EMPTY, np.int64)
    numbers, firsts = group_table.number(table, np.empty_like(table), slots, 0, SECRET)
    return numbers, len(firsts)


def _merits(watch: _Watch, rows: Int64s) -> tuple[Int64s, Bools]:
    """What makes a row of a class better than another, and where there is anything."""
    if watch.best is None:
        return np.zeros(len(rows), np.int64), np.ones(len(rows), np.bool_)
    values, valid = key_type_of(watch.best.type).encode(
        watch.leaf.payload.take(watch.best.name, rows)
    )
    if valid is None:
        valid = np.ones(len(rows), np.bool_)
    return np.array(~values if watch.least else values), valid
