"""Numbers of groups, and their byte strings, against a dictionary and slices of bytes."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.kernels import group_table
from penstock.values.hash_secret import SECRET

EXTREMES = np.array([-(2**63), -1, 0, 1, 2**63 - 1], np.int64)


@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("domain", [1, 3, 1_000])
def test_rows_are_numbered_in_the_order_in_which_they_are_first_seen(
    width: int, domain: int
) -> None:
    random = np.random.default_rng([width, domain])
    keys = np.empty((4_096, width), np.int64)
    slots = np.full(8_192, group_table.EMPTY, np.int64)
    known: dict[tuple[int, ...], int] = {}
    for size in (0, 1, 5, 700, 300):
        rows = random.integers(0, domain, (size, width))
        rows[: len(EXTREMES), 0] = EXTREMES[: min(size, len(EXTREMES))]
        groups, firsts = group_table.number(rows, keys, slots, len(known), SECRET)
        before = len(known)
        expected = [known.setdefault(tuple(row), len(known)) for row in rows.tolist()]
        assert groups.tolist() == expected
        assert [expected[first] for first in firsts] == list(range(before, len(known)))
        assert [tuple(row) for row in keys[: len(known)].tolist()] == list(known)


def test_entering_all_groups_anew_finds_them_again() -> None:
    random = np.random.default_rng(3)
    keys = np.empty((512, 2), np.int64)
    rows = random.integers(0, 9, (200, 2))
    slots = np.full(1_024, group_table.EMPTY, np.int64)
    groups, firsts = group_table.number(rows, keys, slots, 0, SECRET)
    fresh = np.full(2_048, group_table.EMPTY, np.int64)
    group_table.enter(keys, len(firsts), fresh, SECRET)
    again, none = group_table.number(rows, keys, fresh, len(firsts), SECRET)
    assert again.tolist() == groups.tolist()
    assert len(none) == 0


def test_byte_strings_are_put_one_behind_the_other() -> None:
    values = [b"", b"abc", b"\0", b"longer than the others", b""]
    data = np.frombuffer(b"".join(values), np.uint8)
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int64)
    rows = np.array([3, 0, 1, 1, 4, 2], np.int64)
    assert group_table.size_of(offsets, rows) == sum(len(values[row]) for row in rows)
    arena = np.zeros(64, np.uint8)
    ends = np.zeros(16, np.int64)
    ends[1] = arena[0] = 1  # One value is there already.
    group_table.copy_bytes(data, offsets, rows, arena, ends, 1)
    found = [arena[ends[i] : ends[i + 1]].tobytes() for i in range(len(rows) + 1)]
    assert found == [b"\1", *(values[row] for row in rows)]
