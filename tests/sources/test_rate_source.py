"""Rows that come at a rate: by the clock, the same whenever they are read."""

from __future__ import annotations

import json
import pickle
import random

import pytest

from penstock.sources.portion import UNLIMITED, Admission
from penstock.sources.rate_source import RateSource

MICROSECONDS = 1_000_000


def test_rows_are_due_by_the_clock_and_none_twice() -> None:
    chance = random.Random(1)
    now = 1_700_000_000.0
    source = RateSource("A", 50, clock=lambda: now)
    progress = source.progress()
    first = source.next_portion(progress, UNLIMITED)
    assert first is not None  # When it began is written down before any row is due.
    assert len(source.read(first, ["value"])) == 0
    progress.add(first)
    assert source.next_portion(progress, UNLIMITED) is None
    values: list[int] = []
    for _ in range(40):
        now += chance.uniform(0, 0.3)
        progress = source.progress(json.loads(json.dumps(progress.to_json())))  # A restart.
        portion = source.next_portion(progress, UNLIMITED)
        if portion is None:
            continue
        table = source.read(portion, ["value", "timestamp"])
        assert source.read(json.loads(json.dumps(portion)), ["value"]).equals(
            table.select(["value"])
        )
        for value, at in zip(*map(list, (table["value"], table["timestamp"])), strict=True):
            assert at.value == 1_700_000_000 * MICROSECONDS + value.as_py() * MICROSECONDS // 50
            assert at.value <= now * MICROSECONDS
        values += table.column("value").to_pylist()
        progress.add(portion)
    assert values == list(range(len(values)))
    assert len(values) == int((now - 1_700_000_000) * 50)


@pytest.mark.parametrize("most", [1, 7])
def test_a_batch_has_a_limit(most: int) -> None:
    now = 100.0
    source = RateSource("A", 10, Admission(rows=most), clock=lambda: now)
    progress = source.progress()
    progress.add(source.next_portion(progress, source.admission))
    now = 102.0
    taken = 0
    while portion := source.next_portion(progress, source.admission, source.available()):
        count = len(source.read(portion, ["value"]))
        assert count <= most
        taken += count
        progress.add(portion)
    assert taken == 20


def test_it_travels_to_tasks() -> None:
    source = pickle.loads(pickle.dumps(RateSource("A", 3)))
    assert source.read([0, 0, 2], ["value", "timestamp"]).column("value").to_pylist() == [0, 1]
