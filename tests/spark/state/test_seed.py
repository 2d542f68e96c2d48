"""Windows that are laid out anew: other cells, lateness and queries, and the answer stays exact."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from case_deliveries import deliveries_of, settings_of, spark_oracle
from memory_store import MemoryStore

from penstock.cells.delivery import Delivery
from penstock.cells.placement import place
from penstock.errors import CheckpointError
from penstock.spark.cells.cell import CellSettings
from penstock.spark.state import archive, cell_history
from penstock.spark.state.archive import Bundle, bundled, merged, unbundled
from penstock.spark.state.cell_history import CellHistory
from penstock.spark.state.engine_cache import EngineCache
from penstock.spark.state.seed import Seed, seeds
from penstock.testing import Case, Knobs, difference, generate, rows_of
from penstock.testing.compare import inexact_columns

KNOBS = Knobs(streams=(2, 4)).without(["watermark", "watermark ahead", "partition"])


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
        made, _ = seeds(old, settings, before)
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


SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "x", "y")])
TEXT = "SELECT A.id AS a, B.id AS b FROM A [{}], B [{}] WHERE A.x = B.x AND A.y <> B.y"
CHANGED = "SELECT B.ts AS t, A.id AS a FROM A [{}], B [{}] WHERE A.x = B.x AND A.y < B.y"


def a_push(number: int) -> dict[str, pa.Table]:
    chance = np.random.default_rng(number)
    times = 100 * number + np.sort(chance.integers(0, 100, 20))
    return {
        name: pa.table(
            [np.arange(20) + 20 * number, times, *chance.integers(0, 6, (2, 20))], SCHEMA
        )
        for name in "AB"
    }


def case_of(text: str, pushes: int) -> Case:
    rows = [a_push(number) for number in range(pushes)]
    return Case(text, dict.fromkeys("AB", SCHEMA), "ts", rows, "(A B)", 0)


@pytest.mark.parametrize(
    "windows",
    [
        ("RANGE 300 MILLISECONDS", "RANGE 500 MILLISECONDS"),
        ("ROWS 15", "ROWS 50"),
        ("UNBOUNDED", "UNBOUNDED"),
        ("UNBOUNDED", "RANGE 300 MILLISECONDS"),
    ],
)
def test_a_changed_query_goes_on(windows: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Another SELECT list and another predicate, and back, for all kinds of windows."""
    monkeypatch.setattr(cell_history, "SMALLEST", 0)
    monkeypatch.setattr(archive, "LARGEST_BYTES", 20_000)
    pushes = 24
    texts = [text.format(*windows) for text in (TEXT, CHANGED)]
    cases = [case_of(text, pushes) for text in texts]
    graphs = [case.graph() for case in cases]
    kinds = [settings_of(c, g, place(g, 2)) for c, g in zip(cases, graphs, strict=True)]
    oracles = [spark_oracle(c, g) for c, g in zip(cases, graphs, strict=True)]
    deliveries = [
        deliveries_of(c, g, k.placement) for c, g, k in zip(cases, graphs, kinds, strict=True)
    ]
    cells, now = Cells(kinds[0], "0"), 0
    for push in range(pushes):
        if push in (7, 14, 21):
            now = 1 - now
            cells.change(kinds[now], str(push))
        found = cells.take(deliveries[now][push])
        wanted = [oracle.push(a_push(push)) for oracle in oracles][now]
        assert difference(found, wanted) is None, push


def test_many_deliveries_are_few_bundles() -> None:
    store = MemoryStore()
    bundles: list[Bundle] = []
    for version in range(3_000):
        value = bundled([str(version).encode()])
        store.write(f"{version}", [value])
        bundles, gone = merged(
            [*bundles, Bundle(f"{version}", version, 1, len(value))],
            lambda first, level: f"{first} level {level}",
            store.read,
            store.write,
        )
        store.let_go(gone)
    assert len(bundles) < 40
    assert len(store.values) == len(bundles)
    found = [bytes(each) for bundle in bundles for each in unbundled(store.read(bundle.name))]
    assert found == [str(version).encode() for version in range(3_000)]
    assert [b.version for b in bundles] == [int(unbundled(store.read(b.name))[0]) for b in bundles]


def test_longer_windows_of_rows_are_refused() -> None:
    case = case_of(TEXT.format("ROWS 15", "ROWS 20"), 3)
    cells = Cells(settings_of(case, case.graph(), place(case.graph(), 1)), "0")
    for deliveries in deliveries_of(case, case.graph(), cells.settings.placement):
        cells.take(deliveries)
    longer = case_of(TEXT.format("ROWS 16", "ROWS 20"), 3)
    with pytest.raises(CheckpointError, match="the window of A had 15 rows before; name another"):
        cells.change(settings_of(longer, longer.graph(), place(longer.graph(), 1)), "1")


def test_rows_by_value_are_refused_once_deliveries_are_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cell_history, "SMALLEST", 0)
    case = case_of(TEXT.format("PARTITION BY x ROWS 2", "ROWS 20"), 12)
    graph = case.graph()
    settings = settings_of(case, graph, place(graph, 1))
    cells = Cells(settings, "0")
    for deliveries in deliveries_of(case, graph, settings.placement):
        cells.take(deliveries)
    with pytest.raises(CheckpointError, match=r"PARTITION BY … ROWS, .* cannot be laid"):
        cells.change(replace(settings, options={"idle": 5}), "1")
