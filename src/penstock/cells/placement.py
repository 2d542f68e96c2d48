"""Placement: which cells a tuple goes to, such that each result is formed in exactly one.

Cells form a grid (HyperCube; Afrati and Ullman). Each dimension of it is one of:

- an *attribute class*: columns that WHERE equates. Streams with a column in the class have a
  coordinate, the hash of its value modulo the share.
- a *random* coordinate of one stream: the hash of the whole tuple. That is what is left for theta
  joins and cross products.

A tuple goes to every cell that agrees with the coordinates it has. Take a combination of one tuple
per stream that is a result. In a class dimension all its tuples that have a coordinate have the
same one, since the values are equal; in a random dimension just one has any. So there is exactly
one cell that all of them go to, and nothing is shuffled between joins. One class over all streams
is plain hash partitioning. A tuple with NULL in a class is in no result and goes nowhere.

**Hot values** (SharesSkew; Afrati, Stasinopoulos, Ullman, Vassilakopoulos): all tuples with one
value of a class have one coordinate, so a value that is much of a stream fills one cell. Each hot
value therefore has a grid of its own, disjoint from the others, whose dimensions leave the class
out: other classes, or random coordinates. A tuple with a column in the class goes to the grid of
its value, or to that of all ordinary values; a tuple without one goes to all grids. A result has
one value in the class, so it is formed in one grid, and by the argument above in one cell of it.
Hot is who has the hash of a hot value; if an ordinary value has it too, it is treated as hot on all
sides, which is as right. Values of one class can be hot, as in most streams; the paper has a grid
for every combination over several classes. If it is known what share of each stream has a hot
value, its grid is cut for just these tuples, and all grids divide the cells that there are
(:mod:`penstock.cells.division`); otherwise each grid is as large and cut as if everything were hot.

What results depend on limits what may be cut:

- ROWS windows count the tuples of the whole stream, so they run in one cell. If each is
  partitioned, and by a column of a class that has one of every stream, then the class may be cut:
  tuples that are counted together stay together, and a cell sees them in their order. The same
  goes for tuples that fail predicates, since they count too.
- EXCEPT compares results of different blocks. The cell of a result may only depend on a column of
  the answer: on the class that it is in, or directly on the one stream of the block. NULLs in it
  are equal to each other here, and have a cell like every value.
- An aggregate needs all results of its group, so with GROUP BY only those classes are cut that the
  group determines: one of its columns is in the group key.
- A static relation is loaded once and never moves: it has coordinates, but a dimension needs a
  stream to own it.

In a self-join one tuple plays two roles, and is sent once. So a dimension must give both roles the
same coordinate: by the same column, or none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.cells.division import Uncut, divide
from penstock.cells.reading import PartedStreams, least_read, parted_grids
from penstock.cells.shares import best_shares, replication
from penstock.errors import InputError, OptionError
from penstock.query.expression import Column, Expression, columns_of, streams_of
from penstock.query.join_graph import JoinGraph
from penstock.values.partitioner import Partitioner
from penstock.values.value_hash import value_hashes
from penstock.values.wiring import wire

MOST_HOT = 16
"""No more values than this are hot: each has cells of its own."""

MOST_WEIGHED = 100
"""Hot values at most where their shares are known: then they divide the cells that there are."""

HotValues = Mapping[str, Sequence[Any] | Mapping[Any, Mapping[str, float]]]
"""By column: values, or values with the share of each source's tuples that has them."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension of a grid.

    ``columns`` gives, by alias, the expression whose hash is the coordinate. It is empty for the
    random coordinate of the stream ``random``. ``with_null`` tells whether tuples with NULL have
    a coordinate; otherwise they are in no result. Any function of the value does for a coordinate;
    where sources are partitioned by the class, it is the number of the partition, so that a cell
    finds its rows in some of them.
    """

    share: int
    columns: Mapping[str, Expression] = field(default_factory=dict)
    random: str | None = None
    with_null: bool = False
    partitioner: Partitioner | None = None
    """Instead of the hash: the partition of sources that are partitioned by the class."""

    @property
    def owners(self) -> frozenset[str]:
        """The aliases that have a coordinate."""
        return frozenset(self.columns) if self.random is None else frozenset({self.random})

    def __str__(self) -> str:
        if self.random is not None:
            return f"random {self.random}"
        return " = ".join(str(expression) for expression in self.columns.values())


@dataclass(frozen=True, slots=True)
class HotGrid:
    """The cells of one hot value: from ``first`` on."""

    value: str
    hash: int
    first: int
    dimensions: tuple[Dimension, ...]

    @property
    def cells(self) -> int:
        return math.prod(d.share for d in self.dimensions)


@dataclass(frozen=True, slots=True)
class Placement:
    """A grid of cells, and grids of hot values behind it.

    ``reason`` says why there is only one cell, if so. ``hot_class`` gives, by alias, the expression
    that has hot values.
    """

    dimensions: tuple[Dimension, ...]
    replicas: Mapping[str, int]
    """Cells by alias that a tuple goes to, at most one of whose values is hot."""
    reason: str | None = None
    hot_class: Mapping[str, Expression] = field(default_factory=dict)
    hot: tuple[HotGrid, ...] = ()

    @property
    def cells(self) -> int:
        """All cells, with those of hot values."""
        return self._ordinary + sum(grid.cells for grid in self.hot)

    @property
    def _ordinary(self) -> int:
        return math.prod(d.share for d in self.dimensions)

    def placed_by(self, alias: str) -> frozenset[str] | None:
        """The columns of ``alias`` that say which cells its rows go to; None if all of them do."""
        grids = [self.dimensions, *(grid.dimensions for grid in self.hot)]
        owned = [d for dimensions in grids for d in dimensions if alias in d.owners]
        if any(d.random is not None for d in owned):
            return None
        values = [d.columns[alias] for d in owned]
        values += [self.hot_class[alias]] if alias in self.hot_class else []
        return frozenset(column.name for value in values for column in columns_of(value))

    def describe(self) -> str:
        """The grid in words: classes, shares, and what is sent how often."""
        if self.cells == 1:
            return f"1 cell: {self.reason or 'all rows come to one engine'}"
        grid = " x ".join(str(d.share) for d in self.dimensions) or "1"
        parts = [grid, *(str(g.cells) for g in self.hot)]
        shape = "" if parts == [str(self.cells)] else f" in a grid of {' + '.join(parts)}"
        counts = set(self.replicas.values())
        if not self.hot and len(self.dimensions) == 1 and counts == {1}:
            return f"{self.cells} cells, by {self.dimensions[0]}: each row goes to one of them"
        lines = [f"{self.cells} cells{shape}"]
        lines += [f"  {d.share} by {d}" for d in self.dimensions]
        for each in self.hot:
            shares = ", ".join(f"{d.share} by {d}" for d in each.dimensions) or "one cell"
            names = " = ".join(str(e) for e in self.hot_class.values())
            lines.append(f"  {each.cells} for {names} = {each.value}: {shares}")
        sent = (
            f"of {alias} to {'one' if count == 1 else f'{count} cells'}"
            for alias, count in self.replicas.items()
        )
        return "\n".join([*lines, f"  each row {', '.join(sent)}"])

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        return {
            "cells": self.cells,
            "reason": self.reason,
            "dimensions": [{"share": d.share, "by": str(d)} for d in self.dimensions],
            "replicas": dict(self.replicas),
            "hot": [
                {
                    "value": grid.value,
                    "cells": grid.cells,
                    "dimensions": [{"share": d.share, "by": str(d)} for d in grid.dimensions],
                }
                for grid in self.hot
            ],
        }


def place(
    query: JoinGraph,
    cells: int,
    rates: Mapping[str, float] | None = None,
    hot: HotValues | None = None,
    parted: PartedStreams | None = None,
) -> Placement:
    """The grid of at most ``cells`` cells with the least load, for ``rates`` by source.

    ``parted`` where cells read sources themselves: how they can be read in parts, which is weighed
    unless there are hot values.

    ``hot`` has the hot values of a column that streams are joined by: ``{"A.x": [17, 4]}``. Each of
    them gets a grid of at most ``cells`` more. With what share of each source has the value,
    ``{"A.x": {17: {"A": 0.2}, 4: {"A": 0.1, "B": 0.1}}}``, there are at most ``cells`` in all (and
    one for each value), so divided that none is much fuller than others.
    """
    if isinstance(cells, bool) or not isinstance(cells, int) or cells < 1:
        raise OptionError(f"cells is a number of 1 or more, or 'auto', not {cells!r}")
    unknown = set(rates or {}) - set(query.sources)
    if unknown:
        raise OptionError(f"rates are given for {min(unknown)!r}, which the query does not read")
    if not any((rates or {}).values()):
        rates = None  # Of an empty sample: nothing is known.
    loads = {
        s.alias: 0.0 if s.is_static else float((rates or {}).get(s.source, 1.0))
        for block in query.blocks
        for s in block.streams
    }
    reason = _why_one_cell(query)
    candidates = _candidates(query) if reason is None else []
    hot_class, values = _hot_values(query, hot or {})
    if reason is None and cells > 1:
        cut, spread = _grids(query, candidates, loads, cells, hot_class, values)
        if parted and not values:
            others = parted_grids(candidates, loads, cells, parted)
            cut = least_read([cut, *(_cut(c, shares) for c, shares in others)], loads, parted)
        grids = []
        first = math.prod(d.share for d in cut)
        for value, dimensions in zip(values, spread, strict=True):
            grids.append(HotGrid(value.name, value.hash, first, dimensions))
            first += grids[-1].cells
        if cut or grids:
            replicas = _replicas(query, cut)
            for alias in replicas:
                if alias not in hot_class:
                    replicas[alias] += sum(_replicas(query, g.dimensions)[alias] for g in grids)
            return Placement(cut, replicas, None, hot_class if grids else {}, tuple(grids))
        reason = _why_not_cut(query)
    return Placement((), _replicas(query, ()), reason)


def joined_columns(query: JoinGraph) -> list[Mapping[str, Expression]]:
    """The classes whose values may be hot: by alias, what is compared."""
    if query.by_rows or query.minus or _why_one_cell(query) is not None:
        return []
    return [candidate.columns for candidate in _candidates(query) if candidate.columns]


@dataclass(frozen=True, slots=True)
class _HotValue:
    name: str
    hash: int
    shares: Mapping[str, float] | None
    """The share of each source's tuples that has the value; None if that is not known."""


def _grids(
    query: JoinGraph,
    candidates: Sequence[Dimension],
    loads: Mapping[str, float],
    cells: int,
    hot_class: Mapping[str, Expression],
    values: Sequence[_HotValue],
) -> tuple[tuple[Dimension, ...], list[tuple[Dimension, ...]]]:
    """The dimensions of the grid of ordinary values, and of that of each hot one."""
    rest = [c for c in candidates if c.columns != hot_class]
    if any(value.shares is None for value in values) or not values:
        cut = _cut(candidates, best_shares(_owners(candidates), loads, cells))
        alike = _cut(rest, best_shares(_owners(rest), loads, cells)) if values else ()
        return cut, [alike] * len(values)
    sources = {s.alias: s.source for s in query.streams}
    usual = dict(loads)
    uncut = []
    for value in values:
        own = dict(loads)
        for alias in hot_class:
            own[alias] = loads[alias] * (value.shares or {}).get(sources[alias], 0.0)
            usual[alias] = max(0.0, usual[alias] - own[alias])
        uncut.append(Uncut(_owners(rest), own))
    first, *others = divide([Uncut(_owners(candidates), usual), *uncut], cells)
    return _cut(candidates, first), [_cut(rest, shares) for shares in others]


def _owners(candidates: Sequence[Dimension]) -> list[frozenset[str]]:
    return [candidate.owners for candidate in candidates]


def _cut(candidates: Sequence[Dimension], shares: Sequence[int]) -> tuple[Dimension, ...]:
    """The dimensions that are cut."""
    return tuple(
        Dimension(share, candidate.columns, candidate.random, candidate.with_null)
        for share, candidate in zip(shares, candidates, strict=True)
        if share > 1
    )


def _hot_values(
    query: JoinGraph, hot: HotValues
) -> tuple[Mapping[str, Expression], list[_HotValue]]:
    """The class that has hot values, and the values."""
    chosen: Mapping[str, Expression] = {}
    values: dict[int, _HotValue] = {}
    classes = joined_columns(query) if hot else []
    for name, given in hot.items():
        found = [c for c in classes if any(str(e) == name for e in c.values())]
        if not found:
            known = ", ".join(sorted({str(e) for c in classes for e in c.values()}))
            raise OptionError(
                f"hot values are given for {name!r}; in this query columns that can have some are: "
                f"{known or 'none'}"
            )
        if chosen and found[0] != chosen:
            raise OptionError(
                f"hot values are given for {name!r} and for another column that is not joined "
                "with it; give them for the one where they weigh most"
            )
        chosen = found[0]
        kind = next(e.type for e in chosen.values() if str(e) == name)
        for value in given:
            try:
                hashes, _ = value_hashes(pa.array([value], kind))
            except (pa.ArrowException, InputError, TypeError, ValueError):
                raise OptionError(f"the hot value {value!r} of {name} is no {kind}") from None
            if value is not None:
                shares = _checked(query, given[value]) if isinstance(given, Mapping) else None
                number = int(hashes[0])
                values.setdefault(number, _HotValue(str(value), number, shares))
    most = MOST_HOT if any(v.shares is None for v in values.values()) else MOST_WEIGHED
    if len(values) > most:
        raise OptionError(f"{len(values)} values are hot; give the {most} that weigh most")
    return chosen, list(values.values())


def _checked(query: JoinGraph, shares: Mapping[str, float]) -> Mapping[str, float]:
    for source, share in shares.items():
        if source not in query.sources or not 0 <= share <= 1:
            raise OptionError(
                f"a hot value is said to be {share!r} of {source!r}; give for each source of the "
                f"query ({', '.join(query.sources)}) what share of its tuples has it, from 0 to 1"
            )
    return shares


def _why_one_cell(query: JoinGraph) -> str | None:
    moving = [s for block in query.blocks for s in block.streams if not s.is_static]
    if query.by_rows:
        whole = any(s.window.latest_of_all is not None for s in moving)
        if whole or query.is_grouped or query.minus:
            return "ROWS windows count all tuples of a stream"
    if any(block.is_grouped for block in query.blocks) and query.minus:
        return "EXCEPT compares the results of all cells"
    if query.is_grouped and not query.group_by:
        return "an aggregate without GROUP BY needs all results"
    if not moving:
        return "all relations are static"
    return None


def _why_not_cut(query: JoinGraph) -> str:
    if query.by_rows:
        return "ROWS windows are not all partitioned by a column that all streams are joined by"
    if query.minus:
        return "EXCEPT has no column that decides on a cell on both sides"
    if query.is_grouped:
        return "no column that streams are joined by is in GROUP BY"
    return "no column can be cut without forming a result twice"


def _replicas(query: JoinGraph, dimensions: Sequence[Dimension]) -> dict[str, int]:
    owners = [d.owners for d in dimensions]
    shares = [d.share for d in dimensions]
    return {
        alias: replication(alias, owners, shares)
        for block in query.blocks
        for alias in block.aliases
    }


def _candidates(query: JoinGraph) -> list[Dimension]:
    """The dimensions that may be cut: classes first, then random coordinates."""
    streams = [s for block in query.blocks for s in block.streams]
    roles: dict[str, list[str]] = {}
    for stream in streams:
        roles.setdefault(stream.source, []).append(stream.alias)
    moving = {s.alias for s in streams if not s.is_static}
    if query.minus:
        if len({s.alias for s in streams}) < len(streams):
            return []
        found = list(_of_the_answer(query))
    else:
        found = [Dimension(1, columns) for columns in _classes(query)]
    found = [
        each
        for each in found
        if moving & each.owners
        and all(_agree(aliases, each.columns) for aliases in roles.values())
        and (not query.is_grouped or any(e in query.group_by for e in each.columns.values()))
        and (not query.by_rows or _is_counted_by(query, each.columns))
    ]
    if not (query.is_grouped or query.by_rows or query.minus):
        found += [
            Dimension(1, random=s.alias)
            for s in query.streams
            if s.alias in moving and len(roles[s.source]) == 1
        ]
    return found


def _classes(block: JoinGraph) -> Iterable[dict[str, Expression]]:
    """The attribute classes of a block: one expression of each stream that is in it."""
    wiring = wire(block)
    for members in wiring.classes:
        columns: dict[str, Expression] = {}
        for member in members:
            columns.setdefault(member.stream, wiring.keys[member.stream][member.position])
        yield columns


def _of_the_answer(query: JoinGraph) -> Iterable[Dimension]:
    """For each column of the answer of EXCEPT: what it is in every block."""
    classes = [list(_classes(block)) for block in query.blocks]
    for position in range(len(query.select)):
        columns: dict[str, Expression] = {}
        kinds = set()
        for block, known in zip(query.blocks, classes, strict=True):
            expression = block.select[position].expression
            kinds.add(expression.type)
            fitting = [c for c in known if expression in c.values()]
            if fitting:
                columns |= fitting[0]
            elif len(block.streams) == 1 and streams_of(expression) == set(block.aliases):
                columns[block.aliases[0]] = expression
            else:
                break
        else:
            if len(kinds) == 1:
                yield Dimension(1, columns, with_null=True)


def _is_counted_by(query: JoinGraph, columns: Mapping[str, Expression]) -> bool:
    """Whether every ROWS window is partitioned by its column in ``columns``."""
    for stream in query.streams:
        if stream.is_static:
            continue
        expression = columns.get(stream.alias)
        if not (isinstance(expression, Column) and expression.name in stream.window.partition_by):
            return False
    return True


def _agree(aliases: Sequence[str], columns: Mapping[str, Expression]) -> bool:
    """Whether all roles of one source have the same coordinate, or none has any."""
    used = [columns.get(alias) for alias in aliases]
    if len(used) == 1 or all(expression is None for expression in used):
        return True
    return (
        all(isinstance(expression, Column) for expression in used)
        and len({e.name for e in used if isinstance(e, Column)}) == 1
    )
