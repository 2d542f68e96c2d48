"""What a state does in every push, against what it means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.engine.state.hash_factor import SEED
from penstock.engine.state.probing import probe_keys
from penstock.engine.state.rows import Rows
from penstock.kernels import composites as kernel
from penstock.kernels.pairs import mixed


def address(array: Any) -> int:
    return int(array.ctypes.data)


@pytest.mark.parametrize("count", [1, 40, 64])
def test_composites_are_stored_and_found_by_each_index(count: int) -> None:
    """A ring of 64 from row 30 on: the new rows go over its end."""
    random = np.random.default_rng(count)
    rows = Rows(dated=False)
    columns = [rows.add_column(np.int64) for _ in range(2)]
    one, both = rows.add_index(), rows.add_index()
    rows.tail = rows.low = rows.head = 30
    keys = [random.integers(0, 20, 16), random.integers(0, 5, 32) << 40]
    ids = [random.integers(100, 500, count) for _ in range(2)]
    code = [rows.mask, 2, 2, *(address(rows.columns[column]) for column in columns)]
    code += [address(one.heads), address(one.entries), one.shift, 1, address(keys[0]), 15, 0]
    code += [address(both.heads), address(both.entries), both.shift, 2]
    code += [address(keys[0]), 15, 0, address(keys[1]), 31, 1]
    sources = np.array([address(each) for each in ids])
    wide = kernel.append(np.array(code), 30, 30, count, sources, np.empty(count, np.int64))
    assert wide & 1 == 0
    rows.head = 30 + count
    for column, each in zip(columns, ids, strict=True):
        assert rows.take(column, np.arange(30, 30 + count)).tolist() == each.tolist()
    first = keys[0][ids[0] & 15]
    second = np.array(
        [
            mixed(mixed(SEED, int(a)), int(b))
            for a, b in zip(first, keys[1][ids[1] & 31], strict=True)
        ]
    )
    for index, values, narrow in ((one, first, True), (both, second, wide >> 1 == 0)):
        index.narrow, index.stop = narrow, rows.head
        at, found = probe_keys(values[:1], rows, index, rows.head, 1)
        assert set(at) == {0}
        assert set(np.flatnonzero(values == values[0]) + 30) <= set(found.tolist())


def test_the_first_composite_that_is_whole() -> None:
    columns = [np.array([5, 1, 7, 7]), np.array([9, 9, 2, 8])]
    code = np.array([3, 2, 0, *(address(column) for column in columns)])
    lowest = np.array([6, 4])
    assert kernel.first_whole(code, 4, 8, lowest) == 7
    assert kernel.first_whole(code, 4, 7, lowest) == 7
    assert kernel.first_whole(code, 4, 8, np.array([0, 0])) == 4
    assert kernel.first_whole(code, 4, 8, np.array([9, 9])) == 8
