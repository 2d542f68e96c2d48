"""A ring of rows against a plain list: append, expire, truncate, pack, in any order."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.rows import BIRTH, DEATH, SMALLEST, Rows, probe_all

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
