"""Files of values on the host: of use when they are there, and never needed."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from case_deliveries import deliveries_of, settings_of, spark_oracle
from memory_store import MemoryStore

from penstock.cells.placement import place
from penstock.spark.state import cell_history, nearby_values
from penstock.spark.state.cell_history import CellHistory
from penstock.spark.state.engine_cache import EngineCache
from penstock.spark.state.nearby_values import VARIABLE, NearbyValues, ValueFiles, nearby
from penstock.testing import Knobs, difference, generate, rows_of
from penstock.testing.compare import inexact_columns

KNOBS = Knobs(streams=(2, 4)).without(["watermark", "watermark ahead"])
VALUE = bytes(range(256)) * 64


@pytest.fixture
def files(tmp_path: Path) -> ValueFiles:
    found = ValueFiles.at(tmp_path / "cells")
    assert found is not None
    return found


def test_a_value_is_read_from_its_file(files: ValueFiles) -> None:
    store = MemoryStore()
    NearbyValues(store, files).write("v", [VALUE[:100], VALUE[100:]])
    assert store.read("v") == VALUE
    assert NearbyValues(MemoryStore(), files).read("v") == VALUE
    NearbyValues(store, files).let_go(["v"])
    assert files.read("v") is None


def test_damage_is_found_and_the_store_asked(files: ValueFiles) -> None:
    store = MemoryStore()
    near = NearbyValues(store, files)
    near.write("v", [VALUE])
    near.write("w", [VALUE])
    path = files.folder / "v"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    (files.folder / "w").unlink()
    assert near.read("v") == near.read("w") == VALUE
    assert files.read("v") == VALUE, "it has been written again"
    (files.folder / "w").rename(files.folder / "x")
    assert files.read("x") is None, "a value belongs to its name"


def test_the_limit_is_in_bytes_and_the_least_used_go(tmp_path: Path) -> None:
    files = ValueFiles(tmp_path, 20 * len(VALUE))
    for number in range(60):
        files.write(f"v{number}", [VALUE])
        os.utime(tmp_path / f"v{number}", (number, number))
        assert files.read("v0") == VALUE, "one that is used stays"
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 22 * len(VALUE)
    assert files.read("v59") == VALUE
    assert files.read("v1") is None


def test_a_folder_of_others_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o777)
    assert ValueFiles.at(tmp_path) is None
    (tmp_path / "file").touch()
    assert ValueFiles.at(tmp_path / "file" / "below") is None
    store = MemoryStore()
    for folder in ("", str(tmp_path)):
        monkeypatch.setenv(VARIABLE, folder)
        assert nearby(store) is store


def test_a_full_disk_is_no_mistake(files: ValueFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    files.folder.rename(files.folder.with_name("gone"))
    files.write("v", [VALUE])
    assert files.read("v") is None


def test_cells_whose_files_come_and_go(files: ValueFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells are made anew in every batch, from files that are there, gone, or damaged."""
    monkeypatch.setattr(nearby_values, "_SMALLEST", 0)
    chance = random.Random(5)
    read = 0
    for number in range(12):
        monkeypatch.setattr(cell_history, "SMALLEST", chance.choice([0, 300, 1 << 20]))
        case = generate(
            21_000 + number, Knobs(streams=(2, 4)).without(["watermark", "watermark ahead"])
        )
        graph = case.graph()
        settings = settings_of(case, graph, place(graph, 2))
        stores = [MemoryStore() for _ in range(settings.placement.cells)]
        oracle = spark_oracle(case, graph)
        for push, deliveries in enumerate(deliveries_of(case, graph, settings.placement)):
            rows: list[tuple[object, ...]] = []
            for cell, delivery in enumerate(deliveries):
                for file in list(files.folder.iterdir()):
                    if chance.random() < 0.1:
                        file.unlink()
                    elif chance.random() < 0.1:
                        file.write_bytes(file.read_bytes()[:-1])
                    else:
                        read += 1
                for kept in (False, True):
                    history = CellHistory(NearbyValues(stores[cell], files), settings, cell, "f")
                    history.read()
                    taken, _ = history.take(delivery, EngineCache())
                    stores[cell].commit() if kept else stores[cell].abort()
                rows += rows_of(taken.results)
            wrong = difference(rows, oracle.push(case.pushes[push]), inexact_columns(graph))
            assert wrong is None, f"push {push}\n{wrong}\n{case}"
    assert read > 100
