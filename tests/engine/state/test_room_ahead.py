"""A state that is filled after a change of plan gets its room while it is small, and keeps it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.state import rows as ring
from penstock.engine.state.rows import Rows

WINDOW = 6_000
SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "x", "y")])
QUERY = penstock.parse(
    "SELECT A.id AS a, B.id AS b, C.id AS c FROM "
    + ", ".join(f"{name} [RANGE {WINDOW} MILLISECONDS]" for name in "ABC")
    + " WHERE A.x = B.x AND A.y = C.y",
    schemas=dict.fromkeys("ABC", SCHEMA),
)


def batches(rows: int, values: int, seed: int) -> Iterator[dict[str, pa.Table]]:
    chance = np.random.default_rng(seed)
    start = 0
    while True:
        times = np.arange(start, start + rows)
        start += rows
        yield {
            name: pa.table(
                [times, times, *(chance.integers(0, values, rows) for _ in "xy")], schema=SCHEMA
            )
            for name in "ABC"
        }


@pytest.mark.parametrize("partners", [1, 2, 3, 5])
@pytest.mark.parametrize("rows", [60, 600])
def test_a_state_moves_only_while_it_is_small(
    monkeypatch: pytest.MonkeyPatch, partners: int, rows: int
) -> None:
    source = batches(rows, WINDOW // partners, seed=partners)
    engine = penstock.Engine(QUERY, plan="((A B) C)", feedback="off")
    for _ in range(2 * WINDOW // rows):
        engine.push(next(source))
    moved: list[tuple[Rows, int]] = []
    resize = Rows._resize

    def noting(self: Rows, capacity: int) -> None:
        moved.append((self, len(self)))
        resize(self, capacity)

    monkeypatch.setattr(Rows, "_resize", noting)
    for plan in ("((A C) B)", "((A B) C)") * 2:
        engine.migrate(plan, strategy="jisc")
        (state,) = engine.trees[0].states
        moved.clear()
        most = 0
        for _ in range(3 * WINDOW // rows):
            engine.push(next(source))
            most = max(most, len(state.rows))
        assert most > WINDOW * partners
        late = [held for ring_, held in moved if ring_ is state.rows and held > most // 3]
        assert late == []


def test_rows_that_expire_first_do_not_make_a_ring_smaller_at_once() -> None:
    rows = Rows()
    rows.reserve(2_000, 40_000)
    rows.give_page_by_page(False)
    large = rows.capacity
    rows.head += 2_000
    rows.advance(10)
    rows.fit()
    assert rows.capacity == large
    rows.advance(2_000)
    rows.head += 20_000
    rows.advance(20_000)
    rows.fit()
    assert rows.capacity < large


def test_memory_is_in_small_pages_until_rows_have_been_everywhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    advice: list[bool] = []
    monkeypatch.setattr(ring, "give_page_by_page", lambda block, small=True: advice.append(small))
    rows = Rows()
    rows.reserve(2_000)
    rows.give_page_by_page(True)
    rows.give_page_by_page(False)
    rows.head += rows.capacity - 1
    rows.fit()
    assert advice == [True]
    rows.head += 1
    rows.fit()
    rows.fit()
    assert advice == [True, False]
