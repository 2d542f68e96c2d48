"""Routing: from the rows of a batch to the cells of a placement.

Rows that can be in no result (they fail a predicate on their stream alone, or have NULL in an
equated column) are sent nowhere, and that with one cell, too; but where ROWS windows count them,
those that fail a predicate are. As in the engine, key expressions are computed only for rows that
pass these predicates. A source that is read twice is sent once, without the rows that all of its
roles reject.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.cells.placement import Dimension, Placement
from penstock.query.expression import Expression, IsNull, Not, columns_of
from penstock.query.join_graph import EquiPredicate, JoinGraph
from penstock.values.arrow_layout import validity_of
from penstock.values.evaluate import Evaluator, Filter, compile, conjunction
from penstock.values.partitioner import Partitioner
from penstock.values.value_hash import NOTHING, UInt64s, row_hashes, value_hashes
from penstock.values.wiring import wire

Int64s = NDArray[np.int64]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Share:
    """Rows of a batch that go to the same cells: ``rows`` is None for all of them."""

    rows: Int64s | None
    cells: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Coordinate:
    share: int
    stride: int
    value: Evaluator | None
    """None: random."""
    with_null: bool
    partitioner: Partitioner | None = None


@dataclass(frozen=True, slots=True)
class _Grid:
    """The cells of one grid as one stream sees it."""

    first: int
    coordinates: tuple[_Coordinate, ...]
    offsets: tuple[int, ...]
    hot: int | None
    """The hash of the hot value that the grid is for; None for ordinary values."""


@dataclass(frozen=True, slots=True)
class _Route:
    keep: Filter | None
    hot_value: Evaluator | None
    """The value that may be hot; None if the stream is not in that class."""
    grids: tuple[_Grid, ...]


class Router:
    """Sends the rows of a query's sources to the cells of ``placement``."""

    def __init__(self, query: JoinGraph, placement: Placement) -> None:
        self._everywhere = tuple(range(placement.cells))
        self._placed_by: dict[str, frozenset[str] | None] = {}
        self._needed: dict[str, frozenset[str] | None] = {}
        self._hot = np.array([grid.hash for grid in placement.hot], np.uint64)
        self._routes: dict[str, _Route] = {}
        for block in query.blocks:
            filters = wire(block).filters
            for stream in block.streams:
                alias = stream.alias
                kept = [*(p.expression for p in filters[alias]), *_present(block, alias)]
                keep = conjunction(kept)
                if query.by_rows:
                    keep = None
                elif stream.source in self._routes:
                    # In a self-join both roles have the same coordinates.
                    keep = _either(self._routes[stream.source].keep, keep)
                own = placement.placed_by(alias)
                self._placed_by[stream.source] = own
                if own is not None and self._needed.get(stream.source, own) is not None:
                    own = own.union(*({c.name for c in columns_of(each)} for each in kept))
                    own |= self._needed.get(stream.source) or frozenset()
                self._needed[stream.source] = own
                grids = [_grid(alias, 0, placement.dimensions, None)]
                grids += [_grid(alias, g.first, g.dimensions, g.hash) for g in placement.hot]
                expression = placement.hot_class.get(alias)
                self._routes[stream.source] = _Route(
                    keep, None if expression is None else compile(expression), tuple(grids)
                )

    def needed(self, source: str) -> frozenset[str] | None:
        """The columns that say which cells the rows of a source go to, and whether they go to any;
        None if that is all of them."""
        return self._needed.get(source)

    def route(self, source: str, columns: Mapping[str, pa.Array], count: int) -> Iterator[Share]:
        """Where the ``count`` rows with ``columns`` go. A cell is in at most one :class:`Share`."""
        if count == 0:
            return
        route = self._routes.get(source)
        if route is None:
            yield Share(None, self._everywhere)
            return
        rows: Int64s | None = None
        if route.keep is not None:
            passed = route.keep(lambda c: columns[c.name], count)
            if not passed.all():
                rows = np.flatnonzero(passed)
        columns, count = _taken(columns, rows, count)
        yield from self._placed(route, columns, count, rows)

    def reached(self, source: str, known: Mapping[str, pa.Array]) -> frozenset[int] | None:
        """The cells that rows may go to whose columns have the one value in ``known``; None if that
        depends on more of them."""
        needed = self._placed_by.get(source)
        if needed is None or not needed <= known.keys():
            return None
        shares = self._placed(self._routes[source], known, 1, None)
        return frozenset(cell for share in shares for cell in share.cells)

    def holding(self, source: str, partition: int) -> frozenset[int] | None:
        """The cells that rows of a ``partition`` may go to, if rows are placed by partitions; None
        if they are not."""
        grids = self._routes[source].grids if source in self._routes else ()
        if len(grids) != 1 or len(grids[0].coordinates) != 1:
            return None
        (grid,) = grids
        (coordinate,) = grid.coordinates
        if coordinate.partitioner is None:
            return None
        cell = grid.first + partition % coordinate.share * coordinate.stride
        return frozenset(cell + offset for offset in grid.offsets)

    def _placed(
        self, route: _Route, columns: Mapping[str, pa.Array], count: int, rows: Int64s | None
    ) -> Iterator[Share]:
        """Where ``count`` rows go that are in a result as far as they tell; ``rows`` are their
        numbers, None for 0, 1, 2, …"""
        if route.hot_value is None:
            for grid in route.grids:
                yield from _in_grid(grid, columns, count, rows)
            return
        hashes, valid = value_hashes(route.hot_value(lambda c: columns[c.name], count))
        is_hot = np.isin(hashes, self._hot)
        if valid is not None:
            is_hot &= valid
        for grid in route.grids:
            mine = ~is_hot if grid.hot is None else is_hot & (hashes == np.uint64(grid.hot))
            if not mine.any():
                continue
            chosen = None if mine.all() else np.flatnonzero(mine)
            inside, size = _taken(columns, chosen, count)
            yield from _in_grid(grid, inside, size, _within(rows, chosen))

    def first_cells(self, source: str, columns: Mapping[str, pa.Array], count: int) -> Int64s:
        """The first cell that each row goes to, -1 if it goes nowhere."""
        first = np.full(count, len(self._everywhere), np.int64)
        for share in self.route(source, columns, count):
            rows = slice(None) if share.rows is None else share.rows
            first[rows] = np.minimum(first[rows], min(share.cells))
        first[first == len(self._everywhere)] = -1
        return first

    def first_copies(self, cell: int) -> frozenset[str]:
        """Sources of whose rows ``cell`` has the copy that counts, if there are several.

        A row is copied along the dimensions that its stream has no coordinate in, and over all
        grids if its stream is not in the class of hot values. The first of the copies counts.
        """
        return frozenset(
            source for source, route in self._routes.items() if _has_first_copies(route, cell)
        )


def _present(block: JoinGraph, alias: str) -> list[Expression]:
    """That what is equated of ``alias`` is not NULL: each value once."""
    sides = [
        predicate.side(alias)
        for predicate in block.predicates
        if isinstance(predicate, EquiPredicate) and alias in predicate.streams
    ]
    return [Not(pa.bool_(), IsNull(pa.bool_(), side)) for side in dict.fromkeys(sides)]


def _either(one: Filter | None, other: Filter | None) -> Filter | None:
    """The rows that pass one of two filters; None lets all pass."""
    if one is None or other is None:
        return None
    return lambda columns, count: one(columns, count) | other(columns, count)


def _has_first_copies(route: _Route, cell: int) -> bool:
    position = max(p for p, grid in enumerate(route.grids) if grid.first <= cell)
    grid = route.grids[position]
    inside = cell - grid.first
    own = sum((inside // c.stride) % c.share * c.stride for c in grid.coordinates)
    return inside == own and (position == 0 or route.hot_value is not None)


def _grid(alias: str, first: int, dimensions: Sequence[Dimension], hot: int | None) -> _Grid:
    coordinates, free, stride = [], [], 1
    for dimension in dimensions:
        if alias in dimension.owners:
            expression = dimension.columns.get(alias)
            value = None if expression is None else compile(expression)
            own = (dimension.share, stride, value, dimension.with_null, dimension.partitioner)
            coordinates.append(_Coordinate(*own))
        else:
            free.append([i * stride for i in range(dimension.share)])
        stride *= dimension.share
    offsets = tuple(sorted(sum(each) for each in itertools.product(*free)))
    return _Grid(first, tuple(coordinates), offsets, hot)


def _in_grid(
    grid: _Grid, columns: Mapping[str, pa.Array], count: int, rows: Int64s | None
) -> Iterator[Share]:
    """Where ``count`` rows go in one grid; ``rows`` are their numbers, None for 0, 1, 2, …"""
    if count == 0:
        return
    if not grid.coordinates:
        yield Share(rows, tuple(grid.first + offset for offset in grid.offsets))
        return
    cells = np.zeros(count, np.int64)
    valid: Booleans | None = None
    for coordinate in grid.coordinates:
        hashes, present = _hashes(coordinate, columns, count)
        cells += (hashes % np.uint64(coordinate.share)).astype(np.int64) * coordinate.stride
        if present is not None:
            valid = present if valid is None else valid & present
    if valid is not None:
        cells[~valid] = -1
    order = np.argsort(cells, kind="stable")
    starts = np.flatnonzero(np.diff(cells[order], prepend=-2))
    for start, stop in itertools.pairwise([*starts.tolist(), count]):
        cell = int(cells[order[start]])
        if cell >= 0:
            chosen = order[start:stop]
            yield Share(
                _within(rows, chosen),
                tuple(grid.first + cell + offset for offset in grid.offsets),
            )


def _hashes(
    coordinate: _Coordinate, columns: Mapping[str, pa.Array], count: int
) -> tuple[UInt64s, Booleans | None]:
    if coordinate.value is None:
        return row_hashes(list(columns.values()), count), None
    values = coordinate.value(lambda c: columns[c.name], count)
    if coordinate.partitioner is not None:
        numbers = coordinate.partitioner.numbers(values)
        return np.maximum(numbers, 0).astype(np.uint64), validity_of(values)
    hashes, valid = value_hashes(values)
    if coordinate.with_null and valid is not None:
        return np.where(valid, hashes, NOTHING), None
    return hashes, valid


def _taken(
    columns: Mapping[str, pa.Array], rows: Int64s | None, count: int
) -> tuple[Mapping[str, pa.Array], int]:
    if rows is None:
        return columns, count
    indices = pa.array(rows)
    return {name: column.take(indices) for name, column in columns.items()}, len(rows)


def _within(rows: Int64s | None, chosen: Int64s | None) -> Int64s | None:
    """The numbers of those rows of ``rows`` that are ``chosen``."""
    if rows is None or chosen is None:
        return chosen if rows is None else rows
    return rows[chosen]
