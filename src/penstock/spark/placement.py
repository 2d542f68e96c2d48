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

One cell it is where results are not independent of each other or of rejected tuples:

- ROWS windows count the tuples of the whole stream;
- EXCEPT compares results of different blocks;
- an aggregate needs all results of its group, so with GROUP BY only those classes are cut that the
  group determines: one of its columns is in the group key;
- a static relation is loaded once and never moves: it has coordinates, but a dimension needs a
  stream to own it.

In a self-join one tuple plays two roles, and is sent once. So a dimension must give both roles the
same coordinate: by the same column, or none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.engine.wiring import Wiring, wire
from penstock.errors import OptionError
from penstock.query.expression import Column, Expression
from penstock.query.join_graph import JoinGraph
from penstock.spark.shares import best_shares, replication


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension of the grid.

    ``columns`` gives, by alias, the expression whose hash is the coordinate. It is empty for the
    random coordinate of the stream ``random``.
    """

    share: int
    columns: Mapping[str, Expression] = field(default_factory=dict)
    random: str | None = None

    @property
    def owners(self) -> frozenset[str]:
        """The aliases that have a coordinate."""
        return frozenset(self.columns) if self.random is None else frozenset({self.random})

    def __str__(self) -> str:
        if self.random is not None:
            return f"random {self.random}"
        return " = ".join(str(expression) for expression in self.columns.values())


@dataclass(frozen=True, slots=True)
class Placement:
    """A grid of cells. ``reason`` says why there is only one, if so."""

    dimensions: tuple[Dimension, ...]
    replicas: Mapping[str, int]
    """By alias: to how many cells a tuple goes."""
    reason: str | None = None

    @property
    def cells(self) -> int:
        return math.prod(d.share for d in self.dimensions)

    def describe(self) -> str:
        """The grid in words: classes, shares, and what is sent how often."""
        if self.cells == 1:
            return f"1 cell: {self.reason or 'as asked for'}"
        lines = [f"{self.cells} cells: {' x '.join(str(d.share) for d in self.dimensions)}"]
        lines += [f"  {d.share} by {d}" for d in self.dimensions]
        sent = (
            f"{alias} to {'one' if count == 1 else f'{count} cells'}"
            for alias, count in self.replicas.items()
        )
        return "\n".join([*lines, f"  each tuple of {', '.join(sent)}"])


def place(query: JoinGraph, cells: int, rates: Mapping[str, float] | None = None) -> Placement:
    """The grid of at most ``cells`` cells with the least load, for ``rates`` by source."""
    if isinstance(cells, bool) or not isinstance(cells, int) or cells < 1:
        raise OptionError(f"cells is a number of 1 or more, or 'auto', not {cells!r}")
    unknown = set(rates or {}) - set(query.sources)
    if unknown:
        raise OptionError(f"rates are given for {min(unknown)!r}, which the query does not read")
    reason = _why_one_cell(query)
    if reason is None and cells > 1:
        candidates = _candidates(query, wire(query))
        loads = {
            s.alias: 0.0 if s.is_static else float((rates or {}).get(s.source, 1.0))
            for s in query.streams
        }
        owners = [candidate.owners for candidate in candidates]
        shares = best_shares(owners, loads, cells)
        cut = tuple(
            Dimension(share, candidate.columns, candidate.random)
            for share, candidate in zip(shares, candidates, strict=True)
            if share > 1
        )
        if cut:
            return Placement(cut, _replicas(query, cut))
        reason = "no column can be cut without forming a result twice"
        if query.is_grouped:
            reason = "no column that streams are joined by is in GROUP BY"
    return Placement((), _replicas(query, ()), reason)


def _why_one_cell(query: JoinGraph) -> str | None:
    if query.by_rows:
        return "ROWS windows count all tuples of a stream"
    if query.minus:
        return "EXCEPT compares the results of all cells"
    if query.is_grouped and not query.group_by:
        return "an aggregate without GROUP BY needs all results"
    if all(stream.is_static for stream in query.streams):
        return "all relations are static"
    return None


def _replicas(query: JoinGraph, dimensions: Sequence[Dimension]) -> dict[str, int]:
    owners = [d.owners for d in dimensions]
    shares = [d.share for d in dimensions]
    return {
        alias: replication(alias, owners, shares)
        for block in query.blocks
        for alias in block.aliases
    }


def _candidates(query: JoinGraph, wiring: Wiring) -> list[Dimension]:
    """The dimensions that may be cut: classes first, then random coordinates."""
    roles: dict[str, list[str]] = {}
    for stream in query.streams:
        roles.setdefault(stream.source, []).append(stream.alias)
    moving = {s.alias for s in query.streams if not s.is_static}
    found = []
    for members in wiring.classes:
        columns: dict[str, Expression] = {}
        for member in members:
            columns.setdefault(member.stream, wiring.keys[member.stream][member.position])
        if (
            moving & set(columns)
            and all(_agree(aliases, columns) for aliases in roles.values())
            and (not query.is_grouped or any(e in query.group_by for e in columns.values()))
        ):
            found.append(Dimension(1, columns))
    if not query.is_grouped:
        found += [
            Dimension(1, random=s.alias)
            for s in query.streams
            if s.alias in moving and len(roles[s.source]) == 1
        ]
    return found


def _agree(aliases: Sequence[str], columns: Mapping[str, Expression]) -> bool:
    """Whether all roles of one source have the same coordinate, or none has any."""
    used = [columns.get(alias) for alias in aliases]
    if len(used) == 1 or all(expression is None for expression in used):
        return True
    return (
        all(isinstance(expression, Column) for expression in used)
        and len({e.name for e in used if isinstance(e, Column)}) == 1
    )
