"""Cells change their plans by themselves; the change, and why, survive restarts and replays."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from memory_store import MemoryStore

import penstock
from penstock.cells.delivery import Delivery, to_chunk
from penstock.cells.placement import place
from penstock.engine.control import controller
from penstock.spark.cells.cell import CellSettings
from penstock.spark.state import cell_history
from penstock.spark.state.cell_history import CellHistory
from penstock.spark.state.engine_cache import EngineCache
from penstock.spark.state.live_cell import LiveCell, Taken

ROWS, WINDOW = 200, 4
SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "x", "y")])
QUERY = penstock.parse(
    f"""SELECT A.id AS a, B.id AS b, C.id AS c
        FROM A [RANGE {WINDOW} SECONDS], B [RANGE {WINDOW} SECONDS], C [RANGE {WINDOW} SECONDS]
        WHERE A.x = B.x AND A.y = C.y""",
    schemas=dict.fromkeys("ABC", SCHEMA),
)


@pytest.fixture(autouse=True)
def watchful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "SHARE", 1e6)
    monkeypatch.setattr(controller, "GLANCE_WORK", 0.0)
    monkeypatch.setattr("penstock.planning.migration_cost.CHANGE", 1e-6)
    monkeypatch.setattr(cell_history, "SMALLEST", 60_000)


def deliveries(seconds: int) -> Iterator[Delivery]:
    """A has many partners in B and few in C for eight seconds, then the other way round."""
    chance = np.random.default_rng(1)
    for second in range(seconds):
        times = 1000 * second + np.arange(ROWS) * 1000 // ROWS
        domains = (80, 40_000) if second < 8 else (40_000, 80)
        delivery = Delivery()
        for name in "ABC":
            keys = [chance.integers(0, domain, ROWS) for domain in domains]
            rows = pa.table([times, times, *keys], schema=SCHEMA)
            delivery.add(name, int(times[-1]) * QUERY.ticks_per_millisecond, to_chunk(rows))
        yield delivery


def settings(**options: object) -> CellSettings:
    given = {"plan": "auto"} | options
    plan, delays = str(given.pop("plan")), dict.fromkeys("ABC", 0)
    return CellSettings(QUERY, place(QUERY, 1), plan, delays, options=given)


def take(
    store: MemoryStore, how: CellSettings, delivery: Delivery, worker: EngineCache
) -> tuple[Taken, LiveCell]:
    history = CellHistory(store, how, 0, "f")
    history.read()
    return history.take(delivery, worker)


def test_a_change_survives_a_restart_and_is_told_once() -> None:
    store, how = MemoryStore(), settings(feedback="off")
    worker = EngineCache()
    changes, plans, origins = [], [], []
    for number, delivery in enumerate(deliveries(16)):
        # Every third batch runs in a new worker, which has nothing but the state.
        if number % 3 == 2:
            worker.clear()
        taken, live = take(store, how, delivery, worker)
        changes += [event.plan for event in taken.decisions if event.is_change]
        plans.append(str(live.cell.engine.plan))
        origins.append(taken.origin)
    assert "restored" in origins
    # Every change is told, and none of them twice, wherever the batches ran.
    assert changes == [plan for plan, _ in itertools.groupby(plans)]
    assert "((A C) B)" in plans[7] or "A:C,B" in plans[7]
    assert "((A B) C)" in plans[-1] or "A:B,C" in plans[-1]


def test_the_options_of_now_count_after_a_restart() -> None:
    store = MemoryStore()
    first = [take(store, settings(), each, EngineCache()) for each in deliveries(6)]
    assert str(first[-1][1].cell.engine.plan) == "((A C) B)"
    *_, delivery = deliveries(7)
    limits = penstock.Limits(memory="1GiB")
    off = take(store, settings(adapt="off", limits=limits), delivery, EngineCache())[1].cell.engine
    assert off.is_pinned
    assert off.options.limits == limits
    *_, delivery = deliveries(8)
    given = take(store, settings(plan="((A B) C)"), delivery, EngineCache())[1].cell.engine
    assert str(given.plan) == "((A B) C)"
    assert given.is_pinned
