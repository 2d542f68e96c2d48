"""Grids that are cut by what sources are parted by: what a cell reads is weighed, not only what it
takes in."""

from __future__ import annotations

import itertools
import math
import random

import pyarrow as pa
import pytest

import penstock
from penstock.cells.placement import Dimension, Placement, place
from penstock.cells.reading import Parted, amplification, own_streams
from penstock.query.expression import columns_of
from penstock.query.join_graph import JoinGraph
from penstock.values.partitioner import Partitioner

COLUMNS = ("x", "y")
SCHEMA = pa.schema([("id", pa.int64()), *((c, pa.int64()) for c in COLUMNS), ("ts", pa.int64())])
MURMUR, CRC = Partitioner("murmur2", 64), Partitioner("crc32", 64)


def query_of(*equal: str) -> JoinGraph:
    streams = sorted({side.split(".")[0] for each in equal for side in each.split(" = ")})
    windows = ", ".join(f"{name} [RANGE 1 HOUR]" for name in streams)
    text = f"SELECT A.id FROM {windows} WHERE {' AND '.join(equal)}"
    return penstock.parse(text, schemas=dict.fromkeys(streams, SCHEMA))


def read_by_a_cell(placement: Placement, alias: str, parted: Parted | None) -> float:
    """The share of a stream's rows that a cell reads, from the definition: rows that differ in no
    column that its source is parted by go to these cells together."""
    cut = [d for d in placement.dimensions if alias in d.owners]
    if parted is None or not cut or any(d.random is not None for d in cut):
        return 1.0
    needed = {column.name for d in cut for column in columns_of(d.columns[alias])}
    if not needed <= parted.columns or (parted.by is not None and len(cut) > 1):
        return 1.0
    return 1 / math.prod(d.share for d in cut)


def load_of(placement: Placement, parted: dict[str, Parted]) -> float:
    taken = sum(placement.replicas.values()) / placement.cells
    own = own_streams(placement.dimensions, parted)
    found = {a: read_by_a_cell(placement, a, parted.get(a)) for a in placement.replicas}
    return taken + sum(share if alias in own else 1.0 for alias, share in found.items())


TWO_CLASSES = query_of("A.x = B.x", "B.y = C.y")


@pytest.mark.parametrize("by", [None, MURMUR], ids=["folders", "partitions"])
@pytest.mark.parametrize(("column", "streams"), [("x", "AB"), ("y", "BC")])
def test_the_class_that_sources_are_parted_by_is_cut(
    column: str, streams: str, by: Partitioner | None
) -> None:
    """Without that both would do alike, or a grid over both."""
    parted = {alias: Parted(frozenset({column}), by) for alias in streams}
    found = place(TWO_CLASSES, 4, parted=parted)
    (cut,) = found.dimensions
    assert {each.name for e in cut.columns.values() for each in columns_of(e)} == {column}
    assert own_streams(found.dimensions, parted) == {*streams}
    usual = place(TWO_CLASSES, 4)
    assert load_of(found, parted) < load_of(usual, parted)


def test_folders_of_two_columns_are_cut_by_both() -> None:
    query = query_of("A.x = B.x", "A.y = B.y")
    parted = {alias: Parted(frozenset(COLUMNS)) for alias in "AB"}
    found = place(query, 6, parted=parted)
    assert own_streams(found.dimensions, parted) == {"A", "B"}
    assert found.cells == 6


def test_partitions_of_two_functions_are_not_followed_together() -> None:
    query = query_of("A.x = B.x", "B.x = C.x")
    parted = {
        a: Parted(frozenset("x"), by) for a, by in zip("ABC", (MURMUR, CRC, CRC), strict=True)
    }
    assert own_streams(place(query, 4, parted=parted).dimensions, parted) == {"B", "C"}


def test_no_more_cells_than_partitions_are_of_use() -> None:
    few = Partitioner("murmur2", 3)
    parted = {alias: Parted(frozenset("x"), few) for alias in "AB"}
    assert place(query_of("A.x = B.x"), 8, parted=parted).cells == 3


@pytest.mark.parametrize("seed", range(30))
def test_no_grid_of_one_class_and_not_the_usual_one_is_better(seed: int) -> None:
    chance = random.Random(seed)
    pairs = [f"{a}.{chance.choice(COLUMNS)} = {b}.{chance.choice(COLUMNS)}"
             for a, b in itertools.pairwise("ABCD"[: chance.randint(2, 4)])]  # fmt: skip
    query = query_of(*pairs)
    parted = {
        alias: Parted(frozenset({chance.choice(COLUMNS)}), chance.choice([None, MURMUR]))
        for alias in query.sources
        if chance.random() < 0.7
    }
    cells = chance.randint(2, 9)
    found = place(query, cells, parted=parted)
    usual = place(query, cells)
    assert 1 <= found.cells <= cells
    assert load_of(found, parted) <= load_of(usual, parted) + 1e-9
    own = own_streams(found.dimensions, parted)
    for alias in query.sources:
        if read_by_a_cell(found, alias, parted.get(alias)) == 1:
            assert alias not in own
        elif parted[alias].by is None:
            assert alias in own
    if not parted:
        assert found == usual


def test_amplification() -> None:
    found = place(query_of("A.x = B.x"), 4)
    rates = {"A": 3.0, "B": 1.0}
    assert amplification(found.replicas, 4, frozenset("AB"), rates) == 1.0
    assert amplification(found.replicas, 4, frozenset("A"), rates) == (3 + 4) / 4
    assert amplification(found.replicas, 4, frozenset(), rates) == 4.0
    assert amplification({}, 1, frozenset(), {}) == 1.0
    assert own_streams([Dimension(2, random="A")], {"A": Parted(frozenset("x"))}) == frozenset()
