"""Numbers of key rows against a dictionary."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.values.key_rows import KeyRows

CELLS: dict[pa.DataType, list[Any]] = {
    pa.int64(): [-(2**63), -1, 0, 1, 2**63 - 1, None],
    pa.string(): ["", "a", "é", "a longer one than eight bytes", None],
    pa.bool_(): [True, False, None],
}
Rows = list[tuple[Any, ...]]


@st.composite
def groupings(draw: st.DrawFn) -> tuple[list[pa.DataType], list[tuple[Rows, int | None]]]:
    types = draw(st.lists(st.sampled_from(list(CELLS)), min_size=1, max_size=4))
    rows = st.lists(st.tuples(*(st.sampled_from(CELLS[each]) for each in types)), max_size=40)
    return types, draw(st.lists(st.tuples(rows, st.none() | st.integers(0, 3)), max_size=5))


def columns_of(rows: Rows, types: list[pa.DataType]) -> list[pa.Array]:
    return [pa.array([row[i] for row in rows], each) for i, each in enumerate(types)]


@settings(derandomize=True, max_examples=120, deadline=None, database=None)
@given(groupings())
def test_numbers_agree_with_a_dictionary(
    case: tuple[list[pa.DataType], list[tuple[Rows, int | None]]],
) -> None:
    """Also when rows are taken back, or only every so many are kept."""
    types, batches = case
    table = KeyRows(types)
    known: dict[tuple[Any, ...], int] = {}
    for rows, step in batches:
        before = len(known)
        numbers, firsts = table.number(columns_of(rows, types))
        assert numbers.tolist() == [known.setdefault(row, len(known)) for row in rows]
        assert [numbers[each] for each in firsts] == list(range(before, len(known)))
        assert len(table) == len(known)
        if step == 0:
            table.forget(before)
            known = {row: n for row, n in known.items() if n < before}
        elif step is not None:
            kept = list(known)[::step]
            table.keep_only(np.arange(0, len(known), step))
            table.sweep()
            known = {row: n for n, row in enumerate(kept)}
        everyone = table.number(columns_of(list(known), types))[0]
        assert everyone.tolist() == list(range(len(known)))


def test_values_come_back() -> None:
    table = KeyRows([pa.int64(), pa.bool_()])
    table.number([pa.array([5, None, 5]), pa.array([None, True, False])])
    numbers = np.array([2, 1, 0, 1])
    assert table.values(0, numbers).to_pylist() == [5, None, 5, None]
    assert table.values(1, numbers).to_pylist() == [False, True, None, True]


def test_many_rows() -> None:
    table = KeyRows([pa.int64(), pa.int64()])
    first = np.arange(50_000) % 20_000
    numbers, firsts = table.number([pa.array(first), pa.array(first // 7 - 1_000)])
    assert numbers.tolist() == first.tolist()
    assert len(table) == len(firsts) == 20_000
