"""Snapshots in folders: found by position, verified, bounded, free to vanish."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from pyarrow import fs

from penstock.sources.ledger import Position
from penstock.sources.snapshot import Snapshot, SnapshotFolder, cached_snapshots


def folder(path: Path, most: int | None = None) -> SnapshotFolder:
    return SnapshotFolder(fs.LocalFileSystem(), str(path), most)


def snapshot(number: int, owner: str = "ab", size: int = 100) -> Snapshot:
    return Snapshot(owner, Position(number, f"d{number}"), bytes(size), {"obeyed": number})


def test_what_was_written_is_found_again(tmp_path: Path) -> None:
    kept = folder(tmp_path / "new")
    assert kept.positions("ab") == set()
    for number in (3, 12):
        kept.write(snapshot(number))
    kept.write(snapshot(5, "abc"))
    assert kept.positions("ab") == {Position(3, "d3"), Position(12, "d12")}
    found = kept.read("ab", Position(12, "d12"))
    assert found is not None
    assert bytes(found.blob) == bytes(100)
    assert found.about == {"obeyed": 12}
    assert kept.read("ab", Position(4, "d4")) is None


def test_a_damaged_one_is_not_read_and_goes(tmp_path: Path) -> None:
    chance = random.Random(1)
    kept = folder(tmp_path)
    for _ in range(50):
        kept.write(snapshot(7))
        (file,) = tmp_path.iterdir()
        content = bytearray(file.read_bytes())
        if chance.random() < 0.5:
            del content[chance.randrange(len(content)) :]
        else:
            content[chance.randrange(len(content) - 100)] ^= 1 << chance.randrange(8)
        file.write_bytes(content)
        found = kept.read("ab", Position(7, "d7"))
        assert found is None
        assert not any(tmp_path.iterdir())
    kept.write(snapshot(7))
    (file,) = tmp_path.iterdir()
    file.rename(tmp_path / file.name.replace("d7", "d8"))
    assert kept.read("ab", Position(7, "d8")) is None


def test_a_cache_keeps_within_its_bytes_and_drops_what_was_not_used(tmp_path: Path) -> None:
    heading = sum(map(len, snapshot(1, "three", 0).to_parts()))
    most = 3 * heading + 750  # Of 200, 200, 200 and 300 bytes, all but one of 200.
    cache = folder(tmp_path, most)
    for number, owner in enumerate(("one", "two", "three")):
        assert cache.write(snapshot(1, owner, 200))
        (file,) = tmp_path.glob(f"{owner}-*")
        os.utime(file, (1_000_000 + number,) * 2)
    assert cache.read("one", Position(1, "d1")) is not None  # Used now.
    (tmp_path / "left.1234").write_bytes(bytes(200))
    os.utime(tmp_path / "left.1234", (1_000, 1_000))
    assert cache.write(snapshot(2, "four", 300))
    assert {name.name.partition("-")[0] for name in tmp_path.iterdir()} == {"one", "three", "four"}
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= most
    assert cache.write(snapshot(9, "one", 10))
    assert cache.positions("one") == {Position(9, "d9")}
    assert not cache.write(snapshot(10, "one", 2_000))


def test_durable_ones_stay_as_far_as_one_may_go_back(tmp_path: Path) -> None:
    kept = folder(tmp_path)
    for number in (10, 20, 30, 40):
        kept.write(snapshot(number))
    kept.write(snapshot(12, "other"))
    kept.forget_before(35)
    assert {at.number for at in kept.positions("ab")} == {30, 40}
    assert {at.number for at in kept.positions("other")} == {12}


def test_a_cache_that_cannot_be_written_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache = cached_snapshots(1_000)
    assert cache.write(snapshot(1))
    (file,) = tmp_path.rglob("*.snapshot")
    assert file.stat().st_mode & 0o077 == 0
    (tmp_path / "file").touch()
    assert not folder(tmp_path / "file" / "below", 1_000).write(snapshot(1))
