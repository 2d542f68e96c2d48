"""When rows came, against a dictionary, while rows come, go, and get new numbers."""

from __future__ import annotations

import random

import numpy as np
import pytest

from penstock.engine.state.clock import START
from penstock.engine.state.rows import Rows
from penstock.engine.state.seen_at import SeenAt


@pytest.mark.parametrize("seed", range(20))
def test_each_row_keeps_its_instant(seed: int) -> None:
    chance = random.Random(seed)
    rows = Rows()

    def come(count: int) -> range:
        rows.reserve(count)
        rows.head += count
        return range(rows.head - count, rows.head)

    expected = dict.fromkeys(come(chance.randint(0, 3)), START)
    seen_at = SeenAt(rows)
    instant = 0
    for _ in range(300):
        instant += chance.randint(0, 2)
        done = chance.random()
        if done < 0.7:
            expected |= dict.fromkeys(come(chance.randint(0, 3)), instant)
            seen_at.note(instant)
        elif done < 0.8:
            instants = [instant + chance.randint(0, 2) for _ in range(chance.randint(0, 5))]
            expected |= dict(zip(come(len(instants)), instants, strict=True))
            seen_at.note_each(np.array(instants, np.int64))
        elif done < 0.95:
            rows.advance(chance.randint(rows.tail, min(rows.head, rows.tail + 10)))
        else:
            kept = [row for row in range(rows.tail, rows.head) if chance.random() < 0.6]
            values = [expected[row] for row in kept]
            rows.pack(np.array(kept, np.int64))
            expected = dict(zip(range(rows.tail, rows.head), values, strict=True))
        there = np.arange(rows.tail, rows.head)
        assert seen_at.of(there).tolist() == [expected[row] for row in there.tolist()]


def test_steps_of_rows_that_are_gone_are_let_go_of() -> None:
    rows = Rows()
    seen_at = SeenAt(rows)
    for instant in range(2_000):
        rows.reserve(1)
        rows.head += 1
        seen_at.note(instant)
        rows.advance(max(rows.tail, rows.head - 10))
    assert seen_at.nbytes <= 16 * 65
