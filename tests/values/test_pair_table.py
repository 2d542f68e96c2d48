"""Pair tables and groups against dictionaries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InvariantBroken
from penstock.values.pair_table import PairTable, group_ids

LEAST, GREATEST = -(2**63), 2**63 - 1
INTEGERS = st.sampled_from([LEAST, -1, 0, 1, 2, GREATEST]) | st.integers(LEAST, GREATEST)
SMALL = st.integers(-2, 2)


class DictionaryTable:
    """What a pair table means: dense numbers by first appearance."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}

    def ids(self, keys: list[Any]) -> list[int]:
        return [self.numbers.setdefault(key, len(self.numbers)) for key in keys]


def ids_of(table: PairTable, pairs: list[tuple[int, int]]) -> list[int]:
    both = np.array(pairs, np.int64).reshape(-1, 2)
    numbers: list[int] = table.ids(both[:, 0].copy(), both[:, 1].copy()).tolist()
    return numbers


PAIRS = st.tuples(SMALL, SMALL) | st.tuples(INTEGERS, INTEGERS)
STEPS = st.lists(st.lists(PAIRS, max_size=60), max_size=8)


@settings(derandomize=True, max_examples=120, deadline=None, database=None)
@given(STEPS)
def test_agrees_with_a_dictionary(steps: list[list[tuple[int, int]]]) -> None:
    table, twin = PairTable(), DictionaryTable()
    for pairs in steps:
        assert ids_of(table, pairs) == twin.ids(pairs)
        assert len(table) == len(twin.numbers)
        assert [tuple(p) for p in table.pairs.tolist()] == list(twin.numbers)


def test_grows_through_many_pairs() -> None:
    table = PairTable()
    first = np.arange(50_000) % 20_000
    second = first // 7 - 1_000
    assert table.ids(first, second).tolist() == first.tolist()
    assert len(table) == 20_000


def test_read_only_and_empty_columns() -> None:
    table = PairTable()
    column = np.array([3, 3, 4])
    column.flags.writeable = False
    assert table.ids(column, column).tolist() == [0, 0, 1]
    nothing = np.zeros(0, np.int64)
    assert table.ids(nothing, nothing).tolist() == []
    assert len(table) == 2


Rows = list[tuple[int | None, ...]]


def encoded(rows: Rows, width: int) -> list[tuple[Any, Any]]:
    """Key columns, with any value where a row has NULL."""
    columns = []
    for i in range(width):
        cells = [row[i] for row in rows]
        values = np.array([n * 3 if v is None else v for n, v in enumerate(cells)], np.int64)
        validity = np.array([v is not None for v in cells], np.bool_)
        columns.append((values, None if validity.all() else validity))
    return columns


@st.composite
def groupings(draw: st.DrawFn) -> tuple[int, list[Rows]]:
    width = draw(st.integers(1, 4))
    cell = st.none() | SMALL | st.sampled_from([LEAST, GREATEST])
    rows = st.lists(st.tuples(*[cell] * width), max_size=40)
    return width, draw(st.lists(rows, max_size=4))


@settings(derandomize=True, max_examples=120, deadline=None, database=None)
@given(groupings())
def test_groups_agree_with_a_dictionary(case: tuple[int, list[Rows]]) -> None:
    width, batches = case
    tables: list[PairTable] = []
    twin = DictionaryTable()
    for rows in batches:
        assert group_ids(tables, encoded(rows, width)).tolist() == twin.ids(rows)
        assert len(tables) == width
        assert len(tables[-1]) == len(twin.numbers)
        known = list(twin.numbers)
        assert group_ids(tables, encoded(known, width)).tolist() == list(range(len(known)))
        sizes = [len({row[: i + 1] for row in known}) for i in range(width)]
        assert [len(table) for table in tables] == sizes


def test_null_is_a_group_of_its_own() -> None:
    values = np.array([0, 7, 0, 0])
    validity = np.array([True, False, False, True])
    assert group_ids([], [(values, validity)]).tolist() == [0, 1, 1, 0]
    nothing = np.zeros(0, np.int64)
    assert group_ids([], [(nothing, None)]).tolist() == []


def test_keys_are_left_as_they_are() -> None:
    values, validity = np.array([5, 6]), np.array([False, True])
    group_ids([], [(values, validity), (values, None)])
    assert values.tolist() == [5, 6]
    assert validity.tolist() == [False, True]


def test_groups_of_no_columns_are_a_bug() -> None:
    with pytest.raises(InvariantBroken):
        group_ids([], [])
