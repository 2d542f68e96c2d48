"""What is hidden from probes changes no answer, and is seen again by whoever may want it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from four_streams import SCHEMA, STREAMS, batch, engine_for, same
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.migration import preparation
from penstock.engine.state.clock import START
from penstock.engine.tree import hidden_rows


def test_dead_rows_are_hidden_and_seen_again_by_an_older_probe() -> None:
    """Windows of 100, rows at 0 to 2,999, nothing expired: a probe at 3,000 needs the last 100."""
    engine = engine_for("((A B) (C D))", 100, lateness=10**6)
    engine.push(batch(np.random.default_rng(1), 0, 3_000, 50))
    (tree,) = engine.trees
    rows, hidden = tree.leaves["A"].rows, tree.hidden
    assert rows.tail == 0
    hidden.forget()
    hidden.see_windows()
    assert rows.low == 0
    hidden.hide_for(3_000, 2_000)
    assert rows.low == 2_900
    low = {id(state): state.rows.low for state in tree.states}
    with hidden.all_seen():
        assert rows.low == 0
        hidden.hide_again_before(1_000)
        assert rows.low == 900
    assert rows.low == 2_900
    assert low == {id(state): state.rows.low for state in tree.states}
    assert hidden.due_for(2_950, 1, START) == START
    assert rows.low == 0


@settings(max_examples=15)
@given(
    st.integers(0, 9_999),
    st.integers(0, 60),
    st.lists(
        st.sampled_from(["(((A B) C) D)", "(((A C) B) D)", "((A B) (C D))", "(A B C D)"]),
        min_size=1,
        max_size=4,
    ),
)
def test_what_was_hidden_before_a_change(seed: int, lateness: int, plans: list[str]) -> None:
    """Windows of 100, out of order by up to ``lateness`` now and then; rows are hidden at once."""
    chance = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hidden_rows, "_ROWS_WORTH_HIDING", 1)
        patch.setattr(preparation, "_ROWS_PER_PUSH", 40)
        engine, other = (engine_for("(A B C D)", 100, lateness) for _ in range(2))
        clock = 0
        for plan in plans:
            engine.migrate(plan, strategy="jisc")
            for _ in range(int(chance.integers(3, 12))):
                push, latest = {}, lateness if chance.random() < 0.3 else 0
                for name in STREAMS:
                    rows = int(chance.integers(0, 30))
                    late = chance.integers(0, latest + 1, rows)
                    times = clock + chance.integers(0, 30, rows) - late
                    columns = [chance.integers(0, 1 << 40, rows), times]
                    columns += list(chance.integers(0, 30, (2, rows)))
                    push[name] = pa.table(columns, schema=SCHEMA)
                clock += 30
                assert same(engine.push(push), other.push(push))
