"""Two drivers and their workers on one ledger: one is in charge, the other has not heard of it.

A driver that is thought dead, a copy of a slow task, a worker of a killed executor: all of them may
plan, read, note and tidy while the winner does. They take turns here between any two accesses to
the ledger, as a seed has it. Every attempt at a batch gives the oracle's rows, and whoever tidied,
each batch that Spark retains can be done again from nothing.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from test_stream_reader import Driver, put, rows

from penstock.errors import CheckpointError
from penstock.sources.ledger import Ledger, Position
from penstock.spark.data_source import engine_cache, stream_reader
from penstock.testing import Oracle, difference

RETAINED = 6


class Attempts:
    """Two drivers of one query, each with the engines of its own workers; one log of offsets."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder = folder
        self.chance = chance
        self.drivers = [Driver(folder, cells="2") for _ in range(2)]
        self.log = self.drivers[0].log
        self.caches: list[OrderedDict[tuple[str, int], engine_cache.LiveCell]] = [
            OrderedDict(),
            OrderedDict(),
        ]
        self.current: int | None = None
        """Who is at work."""
        self.committed = 0
        self.tables: dict[tuple[str, str], pa.Table] = {}
        self.expected: list[list[tuple[Any, ...]]] = [[]]
        self.oracle = Oracle(self.drivers[0].reader._lane.query, 1_000)
        self.interruptions = 0
        self.interrupted = False

    def as_one(self, who: int, act: Callable[[Driver], None]) -> None:
        """Let ``who`` act, with the engines of its own workers."""
        before, kept = self.current, engine_cache._engines
        self.current, engine_cache._engines = who, self.caches[who]
        try:
            act(self.drivers[who])
        finally:
            self.current, engine_cache._engines = before, kept

    def interrupt(self) -> None:
        """Between two accesses of one, the other may do an attempt, commit or plan."""
        if self.current is not None and not self.interrupted and self.chance.random() < 0.02:
            self.interrupted = True
            self.interruptions += 1
            self.as_one(1 - self.current, self.chance.choice([self.attempt, self.commit]))
            self.interrupted = False

    def deliver(self, number: int) -> None:
        for source in "AB":
            for place in range(self.chance.randint(0, 2)):
                name = f"{number}-{place}.parquet"
                self.tables[source, name] = rows(self.chance, number / 2)
                age = self.chance.uniform(-99, 99)
                put(self.folder, source, name, self.tables[source, name], age)

    def plan(self, driver: Driver) -> None:
        """What comes second, Spark does not take into its log."""
        start = len(self.log)
        end = driver.reader.latestOffset(self.log[-1], driver.reader.getDefaultReadLimit())
        if end == self.log[0]:
            return
        entry = driver.reader._ledger.entry(Position.of_json(end))
        if len(self.log) > start or end == self.log[-1]:
            return
        push = {
            source: pa.concat_tables([self.tables[source, name] for name, *_ in portion])
            for source, portion in entry.portions.items()
        }
        self.log.append(end)
        self.expected.append(self.oracle.push(push))

    def attempt(self, driver: Driver, number: int | None = None) -> None:
        """Do the last batch, or one that Spark may still go back to."""
        last = len(self.log) - 1
        if last == 0:
            return
        if number is None:
            oldest = max(1, self.committed - RETAINED + 1)
            number = last if self.chance.random() < 0.7 else self.chance.randint(oldest, last)
        driver.log = self.log
        assert difference(driver.run(number, commit=False), self.expected[number]) is None

    def commit(self, driver: Driver) -> None:
        """The end of a batch, told late, or twice."""
        if not self.committed:
            return
        at = self.chance.randint(max(1, self.committed - 3), self.committed)
        before = self.interruptions
        try:
            driver.reader.commit(self.log[at])
        except CheckpointError:  # The other has tidied behind a newer batch meanwhile.
            assert at < self.committed
            assert self.interruptions > before


@pytest.mark.parametrize("seed", range(3))
def test_two_drivers_on_one_ledger_agree_and_lose_nothing(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_reader, "TIDY_EVERY", 2)
    monkeypatch.setattr(stream_reader, "RETAINED", RETAINED)
    monkeypatch.setattr(engine_cache, "_engines", OrderedDict())
    chance = random.Random(seed)
    both = Attempts(tmp_path, chance)
    for name in ("_read", "_write", "_names"):
        was = getattr(Ledger, name)

        def accessed(self: Ledger, *given: Any, was: Any = was, **more: Any) -> Any:
            both.interrupt()
            return was(self, *given, **more)

        monkeypatch.setattr(Ledger, name, accessed)
    for number in range(24):
        both.deliver(number)
        for who in chance.sample([0, 1], chance.randint(1, 2)):
            both.as_one(who, both.plan)
        for who in chance.sample([0, 1], chance.randint(1, 2)):
            both.as_one(who, both.attempt)
        winner = chance.randrange(2)
        both.as_one(winner, lambda driver: both.attempt(driver, len(both.log) - 1))
        both.committed = len(both.log) - 1
        both.as_one(winner, lambda driver: driver.reader.commit(both.log[-1]))
        if chance.random() < 0.3:
            both.as_one(1 - winner, both.commit)
        if chance.random() < 0.2:
            both.caches[chance.randrange(2)].clear()
    assert sum(map(len, both.expected)) > 50
    assert both.interruptions > 10
    kept = both.drivers[0].reader._ledger.value("kept")
    assert 0 < kept <= both.committed - RETAINED
    for number in range(both.committed - RETAINED + 1, both.committed + 1):
        both.caches[0].clear()
        both.as_one(0, lambda driver, number=number: both.attempt(driver, number))  # type: ignore[misc]
