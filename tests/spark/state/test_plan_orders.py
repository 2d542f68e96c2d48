"""Orders about the plan reach the cells of a running job, once, and survive restarts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from job_case import QUERY, SCHEMA, JobCase
from memory_store import MemoryStore
from pyspark.sql import SparkSession
from test_cell_control import QUERY as CELL_QUERY
from test_cell_control import SCHEMA as CELL_SCHEMA
from test_cell_control import settings

import penstock
from penstock.cells.delivery import Delivery, to_chunk
from penstock.engine.control import eddy
from penstock.errors import OptionError, PlanError
from penstock.job.job import LANES
from penstock.spark.jobs.job_run import JobRun
from penstock.spark.jobs.prepared_job import prepare
from penstock.spark.state import cell_history
from penstock.spark.state.cell_history import CellHistory
from penstock.spark.state.checkpoint_files import CheckpointFiles
from penstock.spark.state.engine_cache import EngineCache
from penstock.spark.state.live_cell import LiveCell, Taken
from penstock.spark.state.plan_orders import KEPT, NAME, PlanOrders, checked_order
from penstock.telemetry import Batch, Event, Order, PlanDecision, Start
from penstock.testing import Oracle, difference, rows_of

FIRST, SECOND = "((A B) C)", "((B C) A)"
ROWS = 12


def ordered(*given: tuple[str, str], plan: str = "auto") -> PlanOrders:
    orders = PlanOrders(plan)
    for order, wanted in given:
        orders = orders.with_order(order, wanted, 0.0)  # type: ignore[arg-type]
    return orders


def test_a_file_holds_what_was_written(tmp_path: Path) -> None:
    files = CheckpointFiles(str(tmp_path))
    assert PlanOrders.read(files) == PlanOrders()
    assert PlanOrders.read(None) == PlanOrders()
    orders = ordered(("pin", FIRST), ("undo", ""))
    orders.write(files)
    assert PlanOrders.read(files) == orders
    assert [each.name for each in tmp_path.iterdir()] == [NAME]
    for damage in (b"", b"[]", b"{}", b'{"version": 9}', b'{"version": 1, "orders": [3]}', b"\xff"):
        files.write(NAME, damage)
        assert PlanOrders.read(files) == PlanOrders()


def test_numbers_grow_and_old_orders_go() -> None:
    orders = PlanOrders()
    for _ in range(KEPT + 10):
        orders = orders.with_order("undo", "", 0.0)
    assert len(orders.orders) == KEPT
    assert orders.last == KEPT + 10
    assert [each.number for each in orders.between(KEPT + 8)] == [KEPT + 9, KEPT + 10]
    assert PlanOrders().with_order("undo", "", 12.5).last == 12_500
    assert orders.given(FIRST) == PlanOrders(FIRST, KEPT + 10)


def test_an_order_is_checked_before_it_is_given() -> None:
    query = penstock.parse(QUERY, schemas=dict.fromkeys("ABC", SCHEMA))
    assert checked_order({"command": "pin", "plan": "((A  B) C)"}, query) == ("pin", FIRST)
    stairs = {"command": "pin", "plan": "stairs"}
    assert checked_order(stairs, query) == ("pin", "stairs ((A B) C)")
    assert checked_order({"command": "undo"}, query) == ("undo", "")
    with pytest.raises(PlanError):
        checked_order({"command": "pin", "plan": "((A B) X)"}, query)
    with pytest.raises(OptionError, match="pin, undo, unpin"):
        checked_order({"command": "stop"}, query)


def deliveries() -> Iterator[Delivery]:
    """A second of each stream in each delivery."""
    chance = np.random.default_rng(1)
    for second in itertools.count():
        times = 1000 * second + np.arange(ROWS) * 1000 // ROWS
        delivery = Delivery()
        for name in "ABC":
            keys = [chance.integers(0, 12, ROWS) for _ in "xy"]
            rows = pa.table([times, times, *keys], schema=CELL_SCHEMA)
            newest = int(times[-1]) * CELL_QUERY.ticks_per_millisecond
            delivery.add(name, newest, to_chunk(rows))
        yield delivery


class _Run:
    """A cell with its state, batch by batch; answers are compared with those of the oracle."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, plan: str = "auto", adapt: str = "off"
    ) -> None:
        # One base at once, and then none: what is behind it is pushed again.
        monkeypatch.setattr(cell_history, "SMALLEST", 1)
        self.settings = settings(plan=plan, adapt=adapt)
        self.store = MemoryStore()
        self.orders = PlanOrders(plan)
        self.worker = EngineCache()
        self.live: LiveCell | None = None
        self._next = deliveries()
        self._oracle = Oracle(CELL_QUERY)

    def batch(self, lost: bool = False, tries: int = 1) -> Taken:
        delivery = next(self._next)
        for attempt in range(tries):
            history = CellHistory(self.store, self.settings, 0, "f", self.orders)
            history.read()
            if lost:
                self.worker.clear()
            taken, self.live = history.take(delivery, self.worker)
            if attempt + 1 < tries:
                self.store.abort()
                self.give("pin", FIRST)  # A batch that is tried again may see more orders.
        self.store.commit()
        wanted = self._oracle.push(delivery.tables())
        assert wanted
        assert difference(rows_of(taken.results), wanted, set()) is None
        return taken

    def give(self, order: str, plan: str = "") -> None:
        self.orders = self.orders.with_order(order, plan, 0.0)  # type: ignore[arg-type]

    @property
    def engine(self) -> penstock.Engine:
        assert self.live is not None
        return self.live.cell.engine


def told(taken: Taken) -> list[tuple[str, str]]:
    """What was decided; what became of changes comes when it comes."""
    events = [event for event in taken.decisions if event.action not in ("complete", "overtaken")]
    return [(event.action, event.plan) for event in events]


def test_orders_are_obeyed_once_and_again_where_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = _Run(monkeypatch)
    run.batch()
    start = str(run.engine.plan)
    run.give("pin", FIRST)
    assert told(run.batch()) == [("pin", FIRST)]
    assert told(run.batch()) == []
    run.give("pin", SECOND)
    run.give("undo")
    assert told(run.batch()) == [("pin", SECOND), ("undo", FIRST)]
    for _ in range(3):
        taken = run.batch(lost=True)
        assert taken.origin == "restored"
        assert told(taken) == []
        assert (str(run.engine.plan), run.engine.is_pinned) == (FIRST, True)
    run.give("undo")
    run.give("unpin")
    assert told(run.batch(lost=True)) == [("undo", SECOND), ("unpin", SECOND)]
    assert start not in (FIRST, SECOND)


def test_an_eddy_is_ordered_held_and_let_go_of_like_any_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, rows in (("_FIRST", 4), ("_INTERVAL", 8), ("_PER_STREAM", 1), ("_LONGEST", 1)):
        monkeypatch.setattr(eddy, name, rows)
    monkeypatch.setattr(eddy, "_GAIN", 1.0)
    run = _Run(monkeypatch, adapt="auto")
    run.batch()
    run.give("pin", "cacq (A B C)")
    taken = [run.batch() for _ in range(4)]
    assert told(taken[0])[0] == ("pin", "cacq (A B C)")
    routes = [plan for each in taken for action, plan in told(each) if action == "route"]
    assert routes
    assert str(run.engine.plan) == routes[-1]
    before = run.engine.history[-1].before
    run.give("undo")
    assert ("undo", before) in told(run.batch())
    for _ in range(2):
        assert not any(action == "route" for action, _ in told(run.batch(lost=True)))
        assert (str(run.engine.plan), run.engine.is_pinned) == (before, True)
    run.give("unpin")
    run.batch(lost=True)
    assert not run.engine.is_pinned
    assert run.engine.routing == "cacq"


def test_what_cannot_be_done_is_told_and_harms_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    run = _Run(monkeypatch)
    run.give("undo")
    (event,) = run.batch().decisions
    assert (event.action, event.before) == ("refuse", event.plan)
    assert "nothing to undo" in event.reason


def test_a_batch_that_is_tried_again_with_more_orders_gives_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = _Run(monkeypatch)
    run.batch()
    run.give("pin", SECOND)
    taken = run.batch(tries=3)
    assert told(taken) == [("pin", SECOND), ("pin", FIRST), ("pin", FIRST)]
    assert str(run.engine.plan) == FIRST
    run.orders = PlanOrders()  # The file is lost: the plan of the job counts again.
    run.batch(lost=True)


def test_another_plan_in_the_job_file_voids_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    run = _Run(monkeypatch)
    run.batch()
    run.give("pin", FIRST)
    run.batch()
    run.batch()
    run.settings = settings(plan="((A C) B)", adapt="auto")
    run.orders = run.orders.given("((A C) B)")
    run.batch(lost=True)
    assert (str(run.engine.plan), run.engine.is_pinned) == ("((A C) B)", True)
    run.give("unpin")
    run.batch()
    assert not run.engine.is_pinned
    run.batch()
    run.batch(lost=True)
    assert not run.engine.is_pinned


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("lane", LANES)
def test_a_job_on_spark_is_pinned_undone_and_restarted(
    lane: str, spark: SparkSession, tmp_path: Path
) -> None:
    """Files come one by one; orders are given in between, and the job is restarted with a pin."""
    kinds = dict.fromkeys("ABC", "parquet")
    top = f'lane = "{lane}"\ntrigger = "100 MILLISECONDS"\ncells = 2\nadapt = "off"'
    case = JobCase(tmp_path, spark).write(kinds, top)
    seed = iter(range(1, 100))

    def deliver() -> None:
        for name in kinds:
            case.deliver(name, "parquet", next(seed))

    def run(*commands: dict[str, str] | None) -> list[Event]:
        """A batch of files for each of ``commands``, given before it."""
        events: list[Event] = []
        with JobRun(prepare(case.job(), spark)) as job:
            events.append(job.start())
            for command in commands:
                if command is not None:
                    events.append(job.order(command))
                if len(events) == 2:
                    events.append(job.order({"command": "pin", "plan": "((A C) X)"}))
                deliver()
                files = case.written["A"]
                while _rows(events) < 40 * 3 * (len(files) - already):
                    assert not job.ended
                    events += job.poll(0.1)
            job.stop("enough")
            while not job.ended:
                events += job.poll(0.1)
        return events

    already = 0
    first = run(
        {"command": "pin", "plan": SECOND},
        {"command": "pin", "plan": FIRST},
        {"command": "undo"},
    )
    assert isinstance(first[0], Start)
    assert first[0].accepts == ("pin", "undo", "unpin")
    given = [(each.order, bool(each.refused)) for each in first if isinstance(each, Order)]
    assert given == [("pin", False), ("pin", True), ("pin", False), ("undo", False)]
    wanted = [("pin", SECOND), ("pin", FIRST), ("undo", SECOND)]
    for cell in (0, 1):
        mine = [e for e in _decided(first) if e.cell == cell]
        assert [(each.action, each.plan) for each in mine] == wanted
    already = len(case.written["A"])
    second = run(None, {"command": "unpin"})
    plans = [
        {cell.plan for cell in each.cells}
        for each in second
        if isinstance(each, Batch) and any(each.rows.values())
    ]
    assert plans
    assert all(each == {SECOND} for each in plans)
    assert [each.action for each in _decided(second)] == ["unpin", "unpin"]
    assert case.results() == case.expected()
    assert case.log() == first + second


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("lane", LANES)
def test_a_job_file_names_an_eddy(lane: str, spark: SparkSession, tmp_path: Path) -> None:
    kinds = dict.fromkeys("ABC", "parquet")
    top = f'lane = "{lane}"\ntrigger = "available-now"\ncells = 2\nplan = "stairs-lazy"'
    case = JobCase(tmp_path, spark).write(kinds, top)
    for seed in (1, 11):  # The second time, the job goes on.
        for number, name in enumerate(kinds):
            case.deliver(name, "parquet", seed + number)
        events = case.run()
        assert isinstance(events[0], Start)
        assert events[0].plan == "stairs-lazy ((A B) C)"
        batches = [each for each in events if isinstance(each, Batch)]
        assert {cell.plan for each in batches for cell in each.cells} == {events[0].plan}
    assert case.results() == case.expected()


def _rows(events: list[Event]) -> int:
    return sum(sum(each.rows.values()) for each in events if isinstance(each, Batch))


def _decided(events: list[Event]) -> list[PlanDecision]:
    """What was decided; what became of changes comes when it comes."""
    found = [event for event in events if isinstance(event, PlanDecision)]
    return [event for event in found if event.action not in ("complete", "overtaken")]
