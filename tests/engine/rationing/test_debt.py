"""Piles of owed probes against a plain list of them."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.engine.rationing.debt import Debt, Forgotten, Owed
from penstock.engine.state.clock import END, START
from penstock.plan.stream_set import StreamSet

A, B = StreamSet.of("A"), StreamSet.of("B")
Plain = dict[StreamSet, list[list[tuple[int, int, int]]]]
"""Of each input, pieces of (row, birth, deadline), the last on top."""


def same(debt: Debt, plain: Plain) -> None:
    rows = [each for pieces in plain.values() for piece in pieces for each in piece]
    assert len(debt) == len(rows)
    assert bool(debt) == bool(rows)
    assert debt.oldest == min((birth for _, birth, _ in rows), default=END)
    assert debt.youngest == max((birth for _, birth, _ in rows), default=START)
    counts = {origin: sum(map(len, pieces)) for origin, pieces in plain.items()}
    assert debt.by_input == {origin: count for origin, count in counts.items() if count}
    found = [(origin, row) for origin, owed in debt.items() for row in owed.rows.tolist()]
    assert set(found) == {
        (origin, row) for origin, pieces in plain.items() for piece in pieces for row, _, _ in piece
    }


def counted(gone: dict[StreamSet, Forgotten]) -> dict[StreamSet, int]:
    """How many rows of each input; each stood for one result."""
    assert all(each.results == each.rows for each in gone.values())
    return {origin: each.rows for origin, each in gone.items()}


def forget(plain: Plain, stays: int, at: int) -> dict[StreamSet, int]:
    """Let go of rows whose birth (1) or deadline (2) is before ``stays``."""
    gone = {}
    for origin, pieces in plain.items():
        before = sum(map(len, pieces))
        kept = [[row for row in piece if row[at] >= stays] for piece in pieces]
        plain[origin] = [piece for piece in kept if piece]
        if before > sum(map(len, kept)):
            gone[origin] = before - sum(map(len, kept))
    return gone


@pytest.mark.parametrize("seed", range(30))
def test_a_pile_is_a_list_that_knows_its_sums(seed: int) -> None:
    chance = np.random.default_rng(seed)
    debt, plain = Debt(), Plain({A: [], B: []})
    marks = debt.marks(), {origin: list(pieces) for origin, pieces in plain.items()}
    row = 0
    for step in range(120):
        origin = (A, B)[chance.integers(2)]
        what = chance.integers(8)
        if what < 4:
            births = step * 10 + chance.integers(-60, 60, chance.integers(0, 6))
            deadlines = births + chance.integers(50, 200, len(births))
            rows = np.arange(row, row + len(births))
            row += len(births)
            debt.owe(origin, Owed(rows, births, deadlines, (step, 0), 1.0))
            if len(births):
                piece = zip(rows.tolist(), births.tolist(), deadlines.tolist(), strict=True)
                plain[origin].append(list(piece))
        elif what == 4:
            most = int(chance.integers(1, 4))
            owed = debt.take(origin, most)
            taken = []
            if plain[origin]:
                last = plain[origin].pop()
                if len(last) > most:
                    plain[origin].append(last[:-most])
                taken = last[-most:]
            assert ([] if owed is None else owed.rows.tolist()) == [each[0] for each in taken]
        elif what == 5:
            assert counted(debt.forget_stale(step * 10)) == forget(plain, step * 10, 2)
        elif what == 6:
            assert counted(debt.forget_older(step * 8)) == forget(plain, step * 8, 1)
        elif chance.random() < 0.5:
            marks = debt.marks(), {origin: list(pieces) for origin, pieces in plain.items()}
        else:
            debt.undo(dict(marks[0]))
            plain = {origin: list(pieces) for origin, pieces in marks[1].items()}
        same(debt, plain)


def test_in_an_endless_shortage_only_pieces_with_something_stale_are_touched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thousand pieces wait, and in each push the first of them gets stale."""
    touched = 0
    pick = Owed.pick

    def noted(self: Owed, positions: slice) -> Owed:
        nonlocal touched
        touched += 1
        return pick(self, positions)

    monkeypatch.setattr(Owed, "pick", noted)
    debt, pushes, age, spread = Debt(), 3_000, 10_000, 30
    forgotten = 0
    for push in range(pushes):
        now = 10 * push
        births = now + np.arange(10)
        deadlines = births + age - np.arange(10) * spread // 10
        debt.owe(A, Owed(10 * push + np.arange(10), births, deadlines, (push, 0), 1.0))
        forgotten += sum(each.rows for each in debt.forget_stale(now).values())
    assert 900 < len(debt.marks()[A].pieces) < 1_100
    assert len(debt) + forgotten == 10 * pushes
    assert touched < 5 * pushes
