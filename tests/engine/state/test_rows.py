"""A ring of rows against a plain list: append, expire, truncate, pack, in any order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.state import index_sweep
from penstock.engine.state.probing import probe_all, probe_keys
from penstock.engine.state.rows import BIRTH, DEATH, SMALLEST, Rows

Step = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 200)),
    st.tuples(st.just("expire"), st.integers(0, 100)),
    st.tuples(st.just("truncate"), st.integers(0, 30)),
    st.tuples(st.just("pack"), st.integers(2, 5)),
    st.tuples(st.just("fit"), st.just(0)),
)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.lists(Step, max_size=25), st.integers(1, 50))
def test_rows_behave_like_a_list(steps: list[tuple[str, int]], domain: int) -> None:
    rows = Rows()
    key = rows.add_column(np.int64)
    index = rows.add_index()
    model: list[int] = []
    value = 0
    for action, amount in steps:
        if action == "append":
            keys = (np.arange(value, value + amount) * 7919) % domain
            value += amount
            rows.reserve(amount)
            start = rows.head
            for column, content in ((key, keys), (BIRTH, keys * 0), (DEATH, keys * 0 + 9)):
                rows.put(column, start, content)
            rows.head += amount
            rows.insert(index, start, keys)
            model += keys.tolist()
        elif action == "expire":
            gone = min(amount, len(rows))
            rows.put(DEATH, rows.tail, np.zeros(gone, np.int64))
            rows.expire(1)
            del model[:gone]
        elif action == "truncate":
            gone = min(amount, len(rows))
            rows.truncate(rows.head - gone)
            del model[len(model) - gone :]
        elif action == "pack":
            kept = np.arange(rows.tail, rows.head, amount, dtype=np.int64)
            rows.keep_only(kept)
            model = model[::amount]
        else:
            rows.fit()
            assert rows.capacity <= max(SMALLEST, 4 * len(rows))
        assert len(rows) == len(model)
        present = np.arange(rows.tail, rows.head, dtype=np.int64)
        assert rows.take(key, present).tolist() == model
        wanted = np.arange(domain, dtype=np.int64)
        nothing = np.zeros(domain, np.int64)
        matches = probe_all(wanted, nothing, nothing + 5, rows, index, rows.head, 0)
        found = sorted(zip(matches[0].tolist(), matches[1].tolist(), strict=True))
        assert found == sorted((k, rows.tail + i) for i, k in enumerate(model))


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    st.integers(1, 60),
    st.lists(st.integers(1, 4), min_size=1, max_size=6),
    st.integers(0, 2**40),
    st.sampled_from([1, 2**20, 2**40]),
    st.sampled_from([(SMALLEST, 4), (0, 4), (0, 1)]),
)
def test_old_heads_are_never_taken_for_new_rows(
    alive: int, sizes: list[int], start: int, factor: int, sweeping: tuple[int, int]
) -> None:
    """A ring that turns many times without growing; most buckets rest for several turns. They are
    swept at once, in time beside the rows, or in part."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_sweep, "_BUCKETS_AT_ONCE", sweeping[0])
        patch.setattr(index_sweep, "_BUCKETS_PER_ROW", sweeping[1])
        patch.setattr(index_sweep, "_ROWS_BETWEEN_SWEEPS", 3)
        _turn(alive, sizes, start, factor)


def _turn(alive: int, sizes: list[int], start: int, factor: int) -> None:
    rows = Rows()
    index = rows.add_index()
    rows.tail = rows.low = rows.head = start
    model: dict[int, int] = {}
    for step in range(40 * SMALLEST // sum(sizes)):
        for size in sizes:
            keys = (np.arange(rows.head, rows.head + size) ** 2 // 7 % 331) * factor
            rows.reserve(size)
            rows.put(DEATH, rows.head, np.full(size, rows.head + size + alive))
            first = rows.head
            rows.head += size
            rows.insert(index, first, keys)
            model.update(zip(range(first, rows.head), keys.tolist(), strict=True))
            rows.advance(max(rows.tail, rows.head - alive))
            for gone in [r for r in model if r < rows.tail]:
                del model[gone]
        if step % 5 == 0:
            wanted = np.arange(331, dtype=np.int64) * factor
            found = probe_keys(wanted, rows, index, rows.head, 0)
            pairs = sorted(zip((found[0] * factor).tolist(), found[1].tolist(), strict=True))
            assert pairs == sorted((k, r) for r, k in model.items())
    assert rows.capacity == SMALLEST
