"""The history of a cell: whatever attempts fail and engines are lost, answers stay the same."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from case_deliveries import deliveries_of, settings_of, spark_oracle
from file_store import FileStore, TransactionalHeader
from memory_store import MemoryStore

from penstock.cells.delivery import Delivery
from penstock.cells.placement import place
from penstock.errors import CheckpointError
from penstock.spark import cell_history
from penstock.spark.cell_history import CellHistory, LiveCell
from penstock.testing import Knobs, difference, generate, rows_of
from penstock.testing.compare import inexact_columns
from penstock.testing.time_rules import with_time_rules

KNOBS = Knobs(streams=(2, 4)).without(["watermark", "watermark ahead"])


@pytest.mark.parametrize("block", range(4))
def test_failed_attempts_lost_and_foreign_engines(
    block: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each batch runs until it is committed; live engines of any earlier attempt come back.

    Attempts that fail may have seen other rows, as from a source that does not repeat itself.
    """
    chance = random.Random(block)
    trusted = rebuilt = 0
    for number in range(12):
        monkeypatch.setattr(cell_history, "SMALLEST", chance.choice([0, 300, 1 << 20]))
        case = generate(5_000 + 1_000 * block + number, KNOBS)
        graph = case.graph()
        if number % 2 and not graph.by_rows:
            case = with_time_rules(case, chance)
        settings = settings_of(case, graph, place(graph, chance.choice([1, 2, 3])))
        cells = settings.placement.cells
        stores: list[MemoryStore | FileStore] = [
            MemoryStore() if block % 2 else FileStore(tmp_path / f"{number}" / f"{cell}")
            for cell in range(cells)
        ]
        workers: list[dict[int, LiveCell]] = [{}, {}]
        oracle = spark_oracle(case, graph)
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
                    nonce = f"{chance.getrandbits(64):x}"
                    fails = chance.random() < 0.3
                    seen = Delivery(delivery.newest) if fails else delivery
                    taken = history.take(seen, live, nonce)
                    worker[cell] = taken.live
                    if not fails:
                        break
                    stores[cell].abort()
                stores[cell].commit()
                rows += rows_of(taken.results)
            wanted = oracle.push(case.pushes[push])
            wrong = difference(rows, wanted, inexact_columns(graph))
            assert wrong is None, f"push {push}\n{settings.placement.describe()}\n{wrong}\n{case}"
    assert trusted > 20
    assert rebuilt > 20


@pytest.mark.parametrize("in_files", [False, True])
def test_old_values_are_removed(
    in_files: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cell_history, "SMALLEST", 0)
    case = generate(3, Knobs(frozenset({"splits"}), (2, 2), 40))
    graph = case.graph()
    settings = settings_of(case, graph, place(graph, 1))
    store = FileStore(tmp_path) if in_files else MemoryStore()
    live = None
    for number, deliveries in enumerate(deliveries_of(case, graph, settings.placement) * 20):
        for attempt in ("fails", "works"):
            history = CellHistory(store, settings, 0, "f")
            history.read()
            live = history.take(deliveries[0], live, f"{attempt} {number}").live
            if attempt == "fails":
                store.abort()
        store.commit()
    if isinstance(store, MemoryStore):
        held = sum(map(len, store.values.values()))
    else:
        held = sum(file.stat().st_size for file in tmp_path.iterdir())
    assert live is not None
    assert held < 10 * len(live.cell.checkpoint()) + 10_000


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    case = generate(3, Knobs(frozenset(), (2, 2)))
    graph = case.graph()
    settings = settings_of(case, graph, place(graph, 1))
    store = FileStore(tmp_path)
    delivery = deliveries_of(case, graph, settings.placement)[0][0]
    CellHistory(store, settings, 0, "f").take(delivery, None, "n")
    for file in tmp_path.iterdir():
        file.unlink()
    history = CellHistory(store, settings, 0, "f")
    history.read()
    with pytest.raises(CheckpointError, match="is not whole"):
        history.take(delivery, None, "n")


def test_another_query_is_refused() -> None:
    case = generate(3, Knobs(frozenset(), (2, 2)))
    graph = case.graph()
    settings = settings_of(case, graph, place(graph, 1))
    store = MemoryStore()
    delivery = deliveries_of(case, graph, settings.placement)[0][0]
    CellHistory(store, settings, 0, "one").take(delivery, None, "n")
    with pytest.raises(CheckpointError, match="another query, or to the same one with another"):
        CellHistory(store, settings, 0, "other").read()


def test_windows_in_another_place_are_refused(tmp_path: Path) -> None:
    case = generate(3, Knobs(frozenset(), (2, 2)))
    graph = case.graph()
    settings = settings_of(case, graph, place(graph, 1))
    delivery = deliveries_of(case, graph, settings.placement)[0][0]
    files, memory = FileStore(tmp_path), MemoryStore()
    CellHistory(files, settings, 0, "f").take(delivery, None, "n")
    memory.put_header(str(files.header()))
    with pytest.raises(CheckpointError, match="in files of a state folder, and the query"):
        CellHistory(memory, settings, 0, "f").read()


def test_two_copies_of_a_task_at_the_same_time(tmp_path: Path) -> None:
    """Speculation: both read the same state, the slower one ends after the other was committed."""
    case = next(c for c in (generate(s, KNOBS) for s in range(900, 999)) if len(c.pushes) > 3)
    graph = case.graph()
    settings = settings_of(case, graph, place(graph, 1))
    text = TransactionalHeader()
    oracle = spark_oracle(case, graph)
    slow_worker: LiveCell | None = None
    for number, deliveries in enumerate(deliveries_of(case, graph, settings.placement)):
        committed = text.kept
        copies = []
        for name in ("slow", "quick"):
            store = FileStore(tmp_path)
            store.text.now = committed
            history = CellHistory(store, settings, 0, "f")
            history.read()
            copies.append((store, history, f"{name} {number}"))
        slow, quick = copies
        taken = quick[1].take(deliveries[0], None, quick[2])
        text.kept = quick[0].text.now
        lost = slow[1].take(deliveries[0], slow_worker, slow[2])
        slow_worker = lost.live
        assert lost.origin == ("new" if number == 0 else "restored")
        wanted = oracle.push(case.pushes[number])
        for each in (taken, lost):
            assert difference(rows_of(each.results), wanted, inexact_columns(graph)) is None
