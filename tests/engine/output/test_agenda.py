"""Agendas against a plain list of entries."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from penstock.engine.output import agenda as module
from penstock.engine.output.agenda import Agenda, ArrivalAgenda
from penstock.kernels.aggregate import DEATH

Int64s = NDArray[np.int64]
Entry = tuple[int, int, int]

SPANS = (0, 1, 5, 63, 64, 65, 4096, 10**6, 2**40, 2**62)
ENDS = (-(2**63) + 1, 2**63 - 1)
"""The instants furthest from zero."""


def as_columns(entries: list[Entry]) -> Int64s:
    return np.array(entries, np.int64).reshape(-1, 3).T.copy()


def as_entries(columns: Int64s) -> list[Entry]:
    return sorted(map(tuple, columns.T.tolist()))


class Twin:
    """What waits: a list."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def push(self, until: int, new: list[Entry], fails: bool) -> tuple[list[Entry], list[Entry]]:
        """What is due at ``until``, and what stays."""
        due = sorted(each for each in self.entries + new if each[DEATH] <= until)
        staying = sorted(each for each in self.entries + new if each[DEATH] > until)
        if not fails:
            self.entries = staying
        return due, staying


Push = tuple[int, list[Entry], bool]


@st.composite
def histories(draw: st.DrawFn) -> list[Push]:
    now = draw(st.sampled_from((0, 10**12, -(10**6), ENDS[0])))
    pushes: list[Push] = []
    number = 0
    for _ in range(draw(st.integers(1, 12))):
        fails = draw(st.booleans())
        until = min(ENDS[1], now + draw(st.sampled_from(SPANS)) * draw(st.integers(0, 3)))
        new = []
        for _ in range(draw(st.integers(0, 6))):
            instant = until - draw(st.integers(-70, 5)) + draw(st.sampled_from(SPANS))
            number += 1
            new.append((number, min(ENDS[1], max(ENDS[0], instant)), -number))
        pushes.append((until, new, fails))
        if not fails:
            now = until
    return pushes


@given(histories(), st.booleans())
def test_an_agenda_is_a_list(history: list[Push], tidy: bool) -> None:
    with patch.object(module, "_FEWEST_ENTRIES", 1 if tidy else 64):
        agenda, twin = Agenda(3, DEATH), Twin()
        for until, new, fails in history:
            rests = agenda.rests(until)
            columns, count = agenda.exchange(until, as_columns(new))
            due, staying = twin.push(until, new, fails)
            assert not rests or set(due) <= set(new)
            assert as_entries(columns[:, :count]) == due
            assert as_entries(agenda.staying()) == staying
            (agenda.rollback if fails else agenda.commit)()
            assert len(agenda) == len(twin.entries)
            entries = agenda.entries()
            assert as_entries(entries) == sorted(twin.entries)
            entries[2] *= 2
            agenda.put(entries)
            twin.entries = [(number, death, 2 * last) for number, death, last in twin.entries]


def test_memory_is_given_back() -> None:
    agenda = Agenda(3, DEATH)
    agenda.exchange(0, as_columns([(i, 10 + i % 7, i) for i in range(100_000)]))
    agenda.commit()
    full = agenda.nbytes
    for instant in range(10, 20):
        agenda.exchange(instant, as_columns([]))
        agenda.commit()
    assert len(agenda) == 0
    agenda.exchange(20, as_columns([]))
    assert agenda.nbytes < full / 10


@pytest.mark.parametrize("make", [lambda: Agenda(3, DEATH), lambda: ArrivalAgenda(3, {})])
def test_at_size(make: Callable[[], Agenda | ArrivalAgenda]) -> None:
    chance = np.random.default_rng(7)
    agenda, twin = make(), Twin()
    number = 0
    for until in range(0, 60_000, 1500):
        lengths = chance.integers(1, 20_000, 300)
        new = [(number + i, until + int(length), i) for i, length in enumerate(lengths)]
        number += len(new)
        columns, count = agenda.exchange(until, as_columns(new))
        due, staying = twin.push(until, new, False)
        assert as_entries(columns[:, :count]) == due
        assert as_entries(agenda.staying()) == staying
        agenda.commit()
