"""The history of a cell: whatever attempts fail and engines are lost, answers stay the same."""

from __future__ import annotations

import random

import pytest
from case_deliveries import deliveries_of, settings_of
from memory_store import MemoryStore

from penstock.errors import CheckpointError
from penstock.spark import cell_history
from penstock.spark.cell_history import CellHistory, LiveCell
from penstock.spark.delivery import Delivery
from penstock.spark.placement import place
from penstock.testing import Knobs, Oracle, difference, generate, rows_of
from penstock.testing.compare import inexact_columns

KNOBS = Knobs(streams=(2, 4)).without(["watermark", "watermark ahead"])


@pytest.mark.parametrize("block", range(4))
def test_failed_attempts_lost_and_foreign_engines(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each batch runs until it is committed; live engines of any earlier attempt come back.

    Attempts that fail may have seen other rows, as from a source that does not repeat itself.
    """
    chance = random.Random(block)
    trusted = rebuilt = 0
    for number in range(12):
        monkeypatch.setattr(cell_history, "SMALLEST", chance.choice([0, 300, 1 << 20]))
        monkeypatch.setattr(cell_history, "PART", chance.choice([100, 1 << 24]))
        case = generate(5_000 + 1_000 * block + number, KNOBS)
        graph = case.graph()
        settings = settings_of(case, graph, place(graph, chance.choice([1, 2, 3])))
        cells = settings.placement.cells
        stores = [MemoryStore() for _ in range(cells)]
        workers: list[dict[int, LiveCell]] = [{}, {}]
        oracle = Oracle(graph, case.lateness)
        for push, deliveries in enumerate(deliveries_of(case, graph, settings.placement)):
            rows: list[tuple[object, ...]] = []
            for cell, delivery in enumerate(deliveries):
                while True:
                    if chance.random() < 0.1:
                        workers[chance.randrange(2)].clear()
                    worker = chance.choice(workers)
                    history = CellHistory(stores[cell], settings, cell, "f")
                    history.read()
                    live = worker.pop(cell, None)
                    last = history.entries[-1].nonce if history.entries else None
                    trusted += live is not None and live.nonce == last
                    rebuilt += live is None or live.nonce != last
                    nonce = f"{chance.random()}"
                    fails = chance.random() < 0.3
                    seen = Delivery(delivery.newest) if fails else delivery
                    results, worker[cell] = history.take(seen, live, nonce)
                    if not fails:
                        break
                    stores[cell].abort()
                stores[cell].commit()
                rows += rows_of(results)
            wanted = oracle.push(case.pushes[push])
            wrong = difference(rows, wanted, inexact_columns(graph))
            assert wrong is None, f"push {push}\n{settings.placement.describe()}\n{wrong}\n{case}"
    assert trusted > 20
    assert rebuilt > 20


def test_old_values_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_history, "SMALLEST", 0)
    case = generate(3, Knobs(frozenset({"splits"}), (2, 2), 40))
    graph = case.graph()
    settings = settings_of(case, graph, place(graph, 1))
    store = MemoryStore()
    live = None
    for deliveries in deliveries_of(case, graph, settings.placement) * 20:
        history = CellHistory(store, settings, 0, "f")
        history.read()
        _, live = history.take(deliveries[0], live, "n")
    held = sum(map(len, store.values.values()))
    assert live is not None
    assert held < 3 * len(live.cell.checkpoint()) + 3_000


def test_another_query_is_refused() -> None:
    case = generate(3, Knobs(frozenset(), (2, 2)))
    graph = case.graph()
    settings = settings_of(case, graph, place(graph, 1))
    store = MemoryStore()
    delivery = deliveries_of(case, graph, settings.placement)[0][0]
    CellHistory(store, settings, 0, "one").take(delivery, None, "n")
    with pytest.raises(CheckpointError, match="another query, or to the same one with another"):
        CellHistory(store, settings, 0, "other").read()
