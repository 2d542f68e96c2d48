"""The page and the log of a run that goes on: no larger after many batches than after some."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import synthetic_run as synthetic

from penstock.telemetry import Batch, EventLog
from penstock.telemetry.alerts import AlertRules, Alerts
from penstock.telemetry.batch_news import BatchNews
from penstock.telemetry.event_log import parts_of
from penstock.ui.hub import Hub
from penstock.ui.model import Seen

SOME, MANY = 3_000, 9_000
"""Batches: after the first number every list that has a bound is full."""
ROOM = 64 << 10


def grown(step: Callable[[int], None]) -> int:
    """Bytes that the steps after the first :data:`SOME` have left behind."""
    sizes = []
    tracemalloc.start()
    try:
        for number in range(1, MANY + 1):
            step(number)
            if number in (SOME, MANY):
                gc.collect()
                sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    return sizes[1] - sizes[0]


def test_a_page_takes_what_it_shows() -> None:
    """New plans, decisions and cells all the time; one reader follows, another never reads."""
    hub = Hub()
    hub.note(synthetic.start(8))
    seen = Seen()

    def step(number: int) -> None:
        nonlocal seen
        hub.note(synthetic.batch(number, cells=8) | {"plan": f"(A B C) {number}"})
        if number % 3 == 0:
            hub.note(synthetic.migration(number))
        hub.note_sample([{"a": number, "text": f"result {number}"}])
        if number % 50 == 0:
            seen = hub.told(seen)[1]

    assert grown(step) <= ROOM


def test_news_and_alerts_remember_what_is_going_on() -> None:
    news, alerts = BatchNews(), Alerts(AlertRules())

    def step(number: int) -> None:
        moment = synthetic.at(number)
        batch = Batch(moment, "r", number, 0.1, {"A": number % 7}, 0, {"A": 1}, 0, 0, 0.0)
        news.of(batch)
        alerts.of(batch)

    assert grown(step) <= ROOM


def test_an_event_log_has_a_largest_size(tmp_path: Path) -> None:
    largest, kept = 4_000, 3
    with EventLog(tmp_path / "log.jsonl", largest, kept) as log:
        for number in range(2_000):
            log.write(Batch("t", "r", number, 0.1, {"A": number}, 0, {}, 0, 0, 0.0))
    files = parts_of(tmp_path / "log.jsonl")
    assert len(files) == len(list(tmp_path.iterdir())) == kept + 1
    assert sum(file.stat().st_size for file in files) <= (kept + 1) * largest
