"""The history of a cell: whatever attempts fail and engines are lost, answers stay the same."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from case_deliveries import deliveries_of, settings_of, spark_oracle
from memory_store import MemoryStore

from penstock.cells.delivery import Delivery
from penstock.cells.placement import place
from penstock.errors import CheckpointError
from penstock.query.join_graph import JoinGraph
from penstock.spark.cells.cell import CellSettings
from penstock.spark.state import cell_history, engine_cache
from penstock.spark.state.cell_history import CellHistory
from penstock.spark.state.engine_cache import EngineCache
from penstock.spark.state.live_cell import LiveCell, Taken
from penstock.testing import Case, Knobs, difference, generate, rows_of
from penstock.testing.compare import inexact_columns
from penstock.testing.time_rules import with_time_rules

KNOBS = Knobs(streams=(2, 4)).without(["watermark", "watermark ahead"])


def take(
    store: MemoryStore, settings: CellSettings, cell: int, delivery: Delivery, worker: EngineCache
) -> Taken:
    history = CellHistory(store, settings, cell, "f")
    history.read()
    return history.take(delivery, worker)[0]


@pytest.mark.parametrize("block", range(4))
def test_failed_attempts_lost_and_foreign_engines(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each batch runs until it is committed; live engines of any earlier attempt come back.

    Attempts that fail may have seen other rows, as from a source that does not repeat itself.
    """
    chance = random.Random(block)
    origins: list[str] = []
    for number in range(12):
        monkeypatch.setattr(cell_history, "SMALLEST", chance.choice([0, 300, 1 << 20]))
        monkeypatch.setattr(engine_cache, "HELD_ANSWER_BYTES", chance.choice([0, 1 << 20]))
        case = generate(5_000 + 1_000 * block + number, KNOBS)
        graph = case.graph()
        if number % 2 and not graph.by_rows:
            case = with_time_rules(case, chance)
        settings = settings_of(case, graph, place(graph, chance.choice([1, 2, 3])))
        stores = [MemoryStore() for _ in range(settings.placement.cells)]
        workers = [EngineCache(), EngineCache()]
        oracle = spark_oracle(case, graph)
        for push, deliveries in enumerate(deliveries_of(case, graph, settings.placement)):
            rows: list[tuple[object, ...]] = []
            for cell, delivery in enumerate(deliveries):
                while True:
                    if chance.random() < 0.1:
                        workers[chance.randrange(2)].clear()
                    fails = chance.random() < 0.4
                    seen = Delivery(delivery.newest) if chance.random() < 0.5 * fails else delivery
                    taken = take(stores[cell], settings, cell, seen, chance.choice(workers))
                    origins.append(taken.origin)
                    if not fails:
                        break
                    stores[cell].abort()
                stores[cell].commit()
                rows += rows_of(taken.results)
            wanted = oracle.push(case.pushes[push])
            wrong = difference(rows, wanted, inexact_columns(graph))
            assert wrong is None, f"push {push}\n{settings.placement.describe()}\n{wrong}\n{case}"
    assert all(origins.count(each) > 20 for each in ("live", "replayed", "restored"))


@dataclass
class Checkpoint:
    """The batches of a query as Spark keeps them: the state of every cell behind each of them."""

    states: list[list[MemoryStore]]
    answers: list[list[tuple[object, ...]]] = field(default_factory=list)

    def copy(self, batches: int) -> Checkpoint:
        """A copy that has been rolled back to its first ``batches`` batches."""
        states = [[store.copy() for store in each] for each in self.states[: batches + 1]]
        return Checkpoint(states, list(self.answers[:batches]))


@dataclass
class Runs:
    """Runs of one query in the same workers, each with a checkpoint of its own."""

    case: Case
    graph: JoinGraph
    settings: CellSettings
    chance: random.Random
    workers: list[EngineCache]

    def __post_init__(self) -> None:
        self.deliveries = deliveries_of(self.case, self.graph, self.settings.placement)
        oracle = spark_oracle(self.case, self.graph)
        self.expected = [oracle.push(push) for push in self.case.pushes]

    def attempt(self, checkpoint: Checkpoint, batch: int) -> tuple[list[MemoryStore], list[Taken]]:
        """Batch ``batch`` once more, or for the first time, from the state before it."""
        stores = [store.copy() for store in checkpoint.states[batch]]
        return stores, [
            take(store, self.settings, cell, self.deliveries[batch][cell], self.worker())
            for cell, store in enumerate(stores)
        ]

    def worker(self) -> EngineCache:
        return self.chance.choice(self.workers)

    def go_on(self, checkpoint: Checkpoint) -> None:
        """The next batch: copies of its tasks may run, and each part of one that counts is from
        another of them: this one's output, that one's state."""
        batch = len(checkpoint.answers)
        copies = [self.attempt(checkpoint, batch) for _ in range(self.chance.choice([1, 1, 2, 3]))]
        rows: list[tuple[object, ...]] = []
        states = []
        for cell in range(len(checkpoint.states[0])):
            states.append(self.chance.choice(copies)[0][cell])
            states[-1].commit()
            rows += rows_of(self.chance.choice(copies)[1][cell].results)
        checkpoint.states.append(states)
        checkpoint.answers.append(rows)

    def check(self, checkpoint: Checkpoint) -> None:
        for batch, rows in enumerate(checkpoint.answers):
            wrong = difference(rows, self.expected[batch], inexact_columns(self.graph))
            assert wrong is None, f"batch {batch}\n{wrong}\n{self.case}"


@pytest.mark.parametrize("block", range(4))
def test_copies_rollbacks_speculation_and_zombies(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several checkpoints of one query, in the same workers, each as if it were alone."""
    chance = random.Random(100 + block)
    for number in range(8):
        monkeypatch.setattr(cell_history, "SMALLEST", chance.choice([0, 300, 1 << 20]))
        case = generate(9_000 + 1_000 * block + number, KNOBS)
        graph = case.graph()
        if number % 2 and not graph.by_rows:
            case = with_time_rules(case, chance)
        settings = settings_of(case, graph, place(graph, chance.choice([1, 2])))
        limit = chance.choice([0, 20_000, 1 << 30])
        workers = [EngineCache(limit), EngineCache(limit)]
        runs = Runs(case, graph, settings, chance, workers)
        new = [[MemoryStore() for _ in range(settings.placement.cells)]]
        checkpoints = [Checkpoint(new)]
        for _ in range(4 * len(case.pushes)):
            checkpoint = chance.choice(checkpoints)
            done = len(checkpoint.answers)
            what = chance.random()
            if what < 0.1 and len(checkpoints) < 3:
                checkpoints.append(checkpoint.copy(done))
            elif what < 0.2:
                checkpoints[checkpoints.index(checkpoint)] = checkpoint.copy(
                    chance.randint(0, done)
                )
            elif what < 0.3 and done:  # A zombie does an old batch: nobody takes it.
                runs.attempt(checkpoint, chance.randrange(done))
            elif done < len(case.pushes):
                runs.go_on(checkpoint)
        for checkpoint in checkpoints:
            runs.check(checkpoint)


def a_case(seed: int = 3, cells: int = 1) -> tuple[CellSettings, list[list[Delivery]]]:
    case = generate(seed, Knobs(frozenset({"splits"}), (2, 2), 40))
    graph = case.graph()
    settings = settings_of(case, graph, place(graph, cells))
    return settings, deliveries_of(case, graph, settings.placement)


def test_a_batch_that_is_done_twice_keeps_its_engine() -> None:
    """As ``foreachBatch`` with two actions does: the second one is answered without a push."""
    settings, batches = a_case()
    store, worker = MemoryStore(), EngineCache()
    for number, deliveries in enumerate(batches):
        first = take(store, settings, 0, deliveries[0], worker)
        header = store.header()
        store.abort()
        second = take(store, settings, 0, deliveries[0], worker)
        store.commit()
        assert (first.origin, second.origin) == ("live" if number else "new", "live")
        assert second.results is first.results
        assert store.header() == header
    assert len(worker) == 1


def test_attempts_that_do_the_same_are_the_same_entry() -> None:
    settings, batches = a_case()
    one, other = MemoryStore(), MemoryStore()
    for deliveries in batches:
        take(one, settings, 0, deliveries[0], EngineCache())
        take(other, settings, 0, deliveries[0], EngineCache())
        assert one.header() == other.header()
    take(other, settings, 0, Delivery(), EngineCache())
    assert one.header() != other.header()


def test_a_cache_has_a_limit_in_bytes() -> None:
    settings, batches = a_case()
    sizes = []
    cache = EngineCache()
    for number in range(3):
        history = CellHistory(MemoryStore(), settings, 0, f"f{number}")
        sizes.append(history.take(batches[0][0], cache)[1].size)
    assert len(cache) == 3
    small = EngineCache(sizes[1] + sizes[2])
    kept: list[LiveCell] = []
    for number in range(3):
        history = CellHistory(MemoryStore(), settings, 0, f"f{number}")
        kept.append(history.take(batches[0][0], small)[1])
    assert len(small) == 2
    assert small.take("", [kept[0].nonce]) is None
    assert small.take("other settings", [kept[1].nonce]) is None
    assert small.take("", [kept[1].nonce]) is kept[1]
    tiny = EngineCache(1)
    tiny.put("", kept[1])
    assert len(tiny) == 1, "a large engine is kept: it is what a cache is for"
    tiny.put("", kept[2])
    assert len(tiny) == 1


def test_old_values_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_history, "SMALLEST", 0)
    settings, batches = a_case()
    store, worker = MemoryStore(), EngineCache()
    for deliveries in batches * 20:
        for attempt in ("fails", "works"):
            history = CellHistory(store, settings, 0, "f")
            history.read()
            _, live = history.take(deliveries[0], worker)
            if attempt == "fails":
                store.abort()
        store.commit()
    held = sum(map(len, store.values.values()))
    assert held < 10 * len(live.cell.checkpoint()) + 10_000


def test_another_query_is_refused() -> None:
    settings, batches = a_case()
    store = MemoryStore()
    CellHistory(store, settings, 0, "one").take(batches[0][0], EngineCache())
    with pytest.raises(CheckpointError, match="another query, or to the same one with another"):
        CellHistory(store, settings, 0, "other").read()
