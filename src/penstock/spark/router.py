"""Routing: from the rows of a batch to the cells of a placement.

Rows that can be in no result (they fail a predicate on their stream alone, or have NULL in an
equated column) are sent nowhere. As in the engine, key expressions are computed only for rows that
pass these predicates. A source that is read twice is sent once, unfiltered.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.evaluate import Evaluator, Filter, compile, conjunction
from penstock.engine.wiring import wire
from penstock.query.join_graph import JoinGraph
from penstock.spark.placement import Placement
from penstock.spark.value_hash import UInt64s, row_hashes, value_hashes

Int64s = NDArray[np.int64]


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


@dataclass(frozen=True, slots=True)
class _Route:
    keep: Filter | None
    coordinates: tuple[_Coordinate, ...]
    offsets: tuple[int, ...]


class Router:
    """Sends the rows of a query's sources to the cells of ``placement``."""

    def __init__(self, query: JoinGraph, placement: Placement) -> None:
        self._everywhere = tuple(range(placement.cells))
        self._routes: dict[str, _Route] = {}
        if placement.cells == 1:
            return
        strides = [1]
        for dimension in placement.dimensions:
            strides.append(strides[-1] * dimension.share)
        filters = wire(query).filters
        for stream in query.streams:
            alias = stream.alias
            coordinates, free = [], []
            for dimension, stride in zip(placement.dimensions, strides, strict=False):
                if alias in dimension.owners:
                    expression = dimension.columns.get(alias)
                    value = None if expression is None else compile(expression)
                    coordinates.append(_Coordinate(dimension.share, stride, value))
                else:
                    free.append([i * stride for i in range(dimension.share)])
            offsets = tuple(sorted(sum(each) for each in itertools.product(*free)))
            keep = conjunction([p.expression for p in filters[alias]])
            if stream.source in self._routes:  # A self-join: both roles have the same coordinates.
                keep = None
            self._routes[stream.source] = _Route(keep, tuple(coordinates), offsets)

    def route(self, source: str, columns: Mapping[str, pa.Array], count: int) -> Iterator[Share]:
        """Where the ``count`` rows with ``columns`` go; each row in at most one :class:`Share`."""
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
                indices = pa.array(rows)
                columns = {name: column.take(indices) for name, column in columns.items()}
                count = len(rows)
        if count == 0:
            return
        if not route.coordinates:
            yield Share(rows, route.offsets)
            return
        cells = np.zeros(count, np.int64)
        valid: NDArray[np.bool_] | None = None
        for coordinate in route.coordinates:
            hashes, present = self._hashes(coordinate, columns, count)
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
                    chosen if rows is None else rows[chosen],
                    tuple(cell + offset for offset in route.offsets),
                )

    @staticmethod
    def _hashes(
        coordinate: _Coordinate, columns: Mapping[str, pa.Array], count: int
    ) -> tuple[UInt64s, NDArray[np.bool_] | None]:
        if coordinate.value is None:
            return row_hashes(list(columns.values()), count), None
        return value_hashes(coordinate.value(lambda c: columns[c.name], count))
