"""What cells read, where each reads the sources itself instead of being sent its rows.

A *parted* source can be read in parts by the values of some columns: folders are named by them, or
rows are in partitions by the value of one. A cell reads its own part of it, if all that says which
cells its rows go to is in these columns: of partitions one column, and nothing else, since there
the number of the partition takes the place of the hash. Of any other source it reads everything
and drops what is not its own. So the load of a cell is what it takes in, as where rows are sent
(:mod:`penstock.cells.shares`), and what it reads: to decode a row costs about as much as to join
it. Grids that cut by what sources are parted by are weighed against the one with the least to take
in, by the sum of both. Partitions that differ in their function cannot be followed together, so
those of the largest group count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from penstock.cells.shares import best_shares, load
from penstock.query.expression import Column, columns_of
from penstock.values.partitioner import Partitioner

if TYPE_CHECKING:
    from penstock.cells.placement import Dimension


@dataclass(frozen=True, slots=True)
class Parted:
    """How a source can be read in parts: by folders of ``columns``, or by one column's ``by``."""

    columns: frozenset[str]
    by: Partitioner | None = None


PartedStreams = Mapping[str, Parted]
"""The streams whose sources can be read in parts, by alias; one alias of each source."""


class _Followed(NamedTuple):
    """What a grid makes of the parts of sources."""

    own: frozenset[str]
    """The streams of which each cell reads its own part."""
    place: int = -1
    """The dimension whose coordinate is the number of a partition; -1 if there is none."""
    partitions: int = 0


def own_streams(dimensions: Sequence[Dimension], parted: PartedStreams) -> frozenset[str]:
    """The streams of which each cell of a grid reads its own part."""
    return _followed(dimensions, parted).own


def _followed(dimensions: Sequence[Dimension], parted: PartedStreams) -> _Followed:
    found: set[str] = set()
    groups: dict[tuple[int, Partitioner], set[str]] = {}
    for alias, each in parted.items():
        owned = [(i, d) for i, d in enumerate(dimensions) if alias in d.owners]
        if not owned or any(d.random is not None for _, d in owned):
            continue
        values = [d.columns[alias] for _, d in owned]
        if not {column.name for value in values for column in columns_of(value)} <= each.columns:
            continue
        if each.by is None:
            found.add(alias)
        elif len(owned) == 1 and isinstance(values[0], Column) and not owned[0][1].with_null:
            groups.setdefault((owned[0][0], each.by), set()).add(alias)
    if not groups:
        return _Followed(frozenset(found))
    (place, by), most = max(groups.items(), key=lambda each: len(each[1]))
    return _Followed(frozenset(found | most), place, by.count)


def least_read(
    grids: Sequence[tuple[Dimension, ...]], rates: Mapping[str, float], parted: PartedStreams
) -> tuple[Dimension, ...]:
    """The grid whose cells read and take in the least, among equals the one with fewer cells;
    ``rates`` has rows by alias, 0 for what is read once."""
    cells = [math.prod(d.share for d in grid) for grid in grids]
    loads = [round(_cell_load(grid, rates, parted), 9) for grid in grids]
    return grids[min(range(len(grids)), key=lambda i: (loads[i], cells[i]))]


def _cell_load(
    grid: tuple[Dimension, ...], rates: Mapping[str, float], parted: PartedStreams
) -> float:
    """Rows that a cell reads and takes in. Where it follows partitions, no more cells than there
    are partitions have any."""
    own, place, partitions = _followed(grid, parted)
    shares = [min(d.share, partitions) if i == place else d.share for i, d in enumerate(grid)]
    owners = [d.owners for d in grid]
    taken = load(owners, rates, shares)
    read = sum(
        rate / math.prod(s for s, each in zip(shares, owners, strict=True) if alias in each)
        if alias in own
        else rate
        for alias, rate in rates.items()
    )
    return taken + read


def parted_grids(
    candidates: Sequence[Dimension],
    rates: Mapping[str, float],
    cells: int,
    parted: PartedStreams,
) -> list[tuple[list[Dimension], tuple[int, ...]]]:
    """Candidates with shares for each one that sources are parted by: that one alone, and with
    those that leave the parts of its streams whole."""
    found: list[tuple[list[Dimension], tuple[int, ...]]] = []
    for candidate in candidates:
        own = own_streams([candidate], parted)
        if not own:
            continue
        counts = [by.count for alias in own if (by := parted[alias].by) is not None]
        most = min(cells, max(counts)) if counts else cells
        found.append(([candidate], best_shares([candidate.owners], rates, most)))
        rest = [c for c in candidates if not c.owners & own]
        if rest:
            both = [candidate, *rest]
            found.append((both, best_shares([c.owners for c in both], rates, cells)))
    return found


def amplification(
    replicas: Mapping[str, int], cells: int, own: frozenset[str], rates: Mapping[str, float]
) -> float:
    """How often what there is of all streams is read by all cells together: rows of ``own`` streams
    by the cells that they go to, of others by all."""
    rows = sum(rates.values())
    read = sum(rate * (replicas[a] if a in own else cells) for a, rate in rates.items())
    return read / rows if rows else 1.0
