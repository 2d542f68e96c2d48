"""Signals are answered within a portion of work, and what they interrupt has not happened.

Work is counted, not time; ``penstock attack latency`` measures the time.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.state.working_memory import WORKING
from penstock.errors import TooManyResults
from penstock.kernels import guards, probe, push
from penstock.kernels.held_signals import HELD

SCHEMA = pa.schema([("ts", pa.int64()), ("x", pa.int64()), ("id", pa.int64())])
SELECT = "SELECT A.id AS a, B.id AS b FROM "
RANGE = "A [RANGE 1 SECOND], B [RANGE 1 SECOND] WHERE "
MOST_PER_PORTION = push.PAUSE + probe.MATCHES_TO_PAUSE
"""Results between two looks for signals."""


class Stop(BaseException):
    """What the handler raises."""


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise Stop

    before = signal.signal(signal.SIGUSR1, stop)
    yield
    signal.signal(signal.SIGUSR1, before)


def rows(count: int) -> pa.Table:
    return pa.table([np.zeros(count, np.int64), np.full(count, 7), np.arange(count)], schema=SCHEMA)


def engine_of(text: str, **options: Any) -> penstock.Engine:
    return penstock.Engine(penstock.parse(text, dict.fromkeys("AB", SCHEMA)), **options)


def test_a_signal_ends_a_push_that_makes_millions(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of(f"{SELECT}{RANGE}A.x = B.x")
    engine.push({"A": rows(2_000)})
    begin = WORKING.begin

    def begin_and_signal(limit: int | None) -> None:
        begin(limit)
        os.kill(os.getpid(), signal.SIGUSR1)

    with monkeypatch.context() as patched:
        patched.setattr(WORKING, "begin", begin_and_signal)
        with pytest.raises(Stop):
            engine.push({"B": rows(1_500)})
    (tree,) = engine.trees
    compiled = tree.in_one_call()
    assert compiled is not None
    assert 0 < compiled._progress.item(guards.RESULTS) <= MOST_PER_PORTION
    assert engine.metrics()["rows"] == 2_000
    assert len(engine.push({"B": rows(1_500)})) == 3_000_000


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f"{SELECT}{RANGE}A.x = B.x", {}),
        (f"{SELECT}{RANGE}A.x = B.x", {"execution": "reference"}),
        (f"{SELECT}A [ROWS 3000], B [ROWS 3000] WHERE A.x = B.x", {}),
        (f"{SELECT}{RANGE}A.id <> B.x + 3000", {}),
        (f"{SELECT}{RANGE}A.x <= B.x", {}),
    ],
    ids=["compiled", "reference", "rows", "residual", "pairs"],
)
def test_signals_are_looked_for_all_the_time(
    text: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_of(text, **options)
    engine.push({"A": rows(3_000)})
    looks = 0

    def give() -> None:
        nonlocal looks
        looks += HELD.undoable

    monkeypatch.setattr(HELD, "give", give)
    made = len(engine.push({"B": rows(2_000)}))
    assert made == 6_000_000
    assert looks >= made // MOST_PER_PORTION


@pytest.mark.parametrize("count", [5_000, 70_000], ids=["one call", "in slices"])
@pytest.mark.parametrize("execution", ["auto", "reference"])
def test_an_explosion_is_not_counted_to_its_end(
    count: int, execution: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One probe of thousands of rows with one key would count for seconds without a look."""
    engine = engine_of(f"{SELECT}{RANGE}A.x = B.x", execution=execution)
    engine.push({"A": rows(count)})
    monkeypatch.setattr(WORKING, "_machine", 1 << 26)
    asked: list[int] = []
    ask = WORKING.ask

    def note(combinations: int, numbers: int) -> None:
        asked.append(combinations)
        ask(combinations, numbers)

    monkeypatch.setattr(WORKING, "ask", note)
    with pytest.raises(TooManyResults, match=rf"{count:,} of {count:,} rows of B have B.x = 7"):
        engine.push({"B": rows(count)})
    assert max(asked) <= 8 * probe.MATCHES_TO_PAUSE  # Two parts of a probe, and both together.
    assert engine.metrics()["rows"] == count
    assert len(engine.push({"B": rows(2)})) == 2 * count
