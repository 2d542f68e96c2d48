"""Windows that are laid out anew: other cells, lateness and queries, and the answer stays exact."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from case_deliveries import deliveries_of, settings_of, spark_oracle
from memory_store import MemoryStore

from penstock.cells.delivery import Delivery
from penstock.cells.placement import place
from penstock.errors import CheckpointError
from penstock.spark.cells.cell import CellSettings
from penstock.spark.state import cell_history
from penstock.spark.state.cell_history import CellHistory
from penstock.spark.state.engine_cache import EngineCache
from penstock.spark.state.seed import Seed, seeds
from penstock.testing import Knobs, difference, generate, rows_of
from penstock.testing.compare import inexact_columns

KNOBS = Knobs(streams=(2, 4)).without(
    ["watermark", "watermark ahead", "rows", "partition", "no event time", "arrival", "unbounded"]
)


class Cells:
    """The cells of a query that is stopped and goes on with others."""

    def __init__(self, settings: CellSettings, name: str) -> None:
        self.stores: dict[int, MemoryStore] = {}
        self.settings, self.name = settings, name
        self.seeds: list[Seed] = []
        self.worker = EngineCache()

    def history(self, cell: int) -> CellHistory:
        store = self.stores.setdefault(cell, MemoryStore())

        def seed_for(nonce: str | None) -> Seed | None:
            return next((s for s in self.seeds[cell : cell + 1] if s.before == nonce), None)

        history = CellHistory(store, self.settings, cell, self.name, seed_for=seed_for)
        history.read()
        return history

    def take(self, deliveries: Sequence[Delivery]) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        for cell, delivery in enumerate(deliveries):
            for fails in (True, False):  # What failed has changed nothing.
                taken, _ = self.history(cell).take(delivery, self.worker)
                if fails:
                    self.stores[cell].abort()
            self.stores[cell].commit()
            rows += rows_of(taken.results)
        return rows

    def change(self, settings: CellSettings, name: str) -> None:
        stores = [self.stores[cell] for cell in range(self.settings.placement.cells)]
        old = [cell_history.laid_out(str(store.header()), store.read) for store in stores]
        before = []
        for cell in range(settings.placement.cells):
            store = self.stores.setdefault(cell, MemoryStore())
            before.append(cell_history.last_nonce(store.header()))
        made = seeds(old, settings, before)
        self.seeds = [Seed.from_bytes(seed.to_bytes()) for seed in made]
        self.settings, self.name = settings, name


@pytest.mark.parametrize("block", range(4))
def test_other_cells_between_any_two_batches(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(block)
    changes = 0
    for number in range(12):
        monkeypatch.setattr(cell_history, "SMALLEST", chance.choice([0, 300, 1 << 20]))
        case = generate(40_000 + 1_000 * block + number, KNOBS)
        graph = case.graph()
        settings = settings_of(case, graph, place(graph, 2))
        cells = Cells(settings, "0")
        oracle = spark_oracle(case, graph)
        for push, rows in enumerate(case.pushes):
            if push and chance.random() < 0.5:
                settings = replace(settings, placement=place(graph, chance.choice([1, 2, 5, 6])))
                cells.change(settings, str(push))
                changes += 1
            found = cells.take(deliveries_of(case, graph, settings.placement)[push])
            wrong = difference(found, oracle.push(rows), inexact_columns(graph))
            assert wrong is None, f"push {push}\n{settings.placement.describe()}\n{wrong}\n{case}"
    assert changes > 10


def test_windows_that_never_end_are_refused_once_rows_are_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cell_history, "SMALLEST", 0)
    case = next(
        each
        for each in (
            generate(seed, Knobs(frozenset({"unbounded", "splits"}), (2, 2), 60))
            for seed in range(99)
        )
        if "UNBOUNDED" in each.text and len(each.pushes) > 5
    )
    graph = case.graph()
    settings = settings_of(case, graph, place(graph, 2))
    cells = Cells(settings, "0")
    for deliveries in deliveries_of(case, graph, settings.placement) * 4:
        cells.take(deliveries)
    with pytest.raises(CheckpointError, match="never end cannot be laid out anew; name another"):
        cells.change(replace(settings, placement=place(graph, 3)), "1")
