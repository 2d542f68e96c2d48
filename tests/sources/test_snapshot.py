"""Snapshots in folders: found by position, verified, bounded, free to vanish."""

from __future__ import annotations

import hashlib
import json
import os
import random
import struct
from pathlib import Path

import pytest
from pyarrow import fs

from penstock.sources.ledger import Position
from penstock.sources.snapshot import SnapshotFolder, cached_snapshots


def folder(path: Path, most: int | None = None) -> SnapshotFolder:
    return SnapshotFolder(fs.LocalFileSystem(), str(path), most)


def write(kept: SnapshotFolder, number: int, owner: str = "ab", size: int = 100) -> bool:
    parts = [bytes(size - size // 3), bytes(size // 3)]
    return kept.write(owner, Position(number, f"d{number}"), {"obeyed": number}, parts)


def test_what_was_written_is_found_again(tmp_path: Path) -> None:
    kept = folder(tmp_path / "new")
    assert kept.positions("ab") == set()
    for number in (3, 12):
        write(kept, number)
    write(kept, 5, "abc")
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
        write(kept, 7)
        (file,) = tmp_path.iterdir()
        content = bytearray(file.read_bytes())
        if chance.random() < 0.5:
            del content[chance.randrange(len(content)) :]
        else:
            content[chance.randrange(len(content) - 116)] ^= 1 << chance.randrange(8)
        file.write_bytes(content)
        found = kept.read("ab", Position(7, "d7"))
        assert found is None
        assert not any(tmp_path.iterdir())
    write(kept, 7)
    (file,) = tmp_path.iterdir()
    file.rename(tmp_path / file.name.replace("d7", "d8"))
    assert kept.read("ab", Position(7, "d8")) is None


def test_a_cache_keeps_within_its_bytes_and_drops_what_was_not_used(tmp_path: Path) -> None:
    write(folder(tmp_path), 1, "three", 0)
    (file,) = tmp_path.iterdir()
    heading = file.stat().st_size
    file.unlink()
    most = 3 * heading + 750  # Of 200, 200, 200 and 300 bytes, all but one of 200.
    cache = folder(tmp_path, most)
    for number, owner in enumerate(("one", "two", "three")):
        assert write(cache, 1, owner, 200)
        (file,) = tmp_path.glob(f"{owner}-*")
        os.utime(file, (1_000_000 + number,) * 2)
    assert cache.read("one", Position(1, "d1")) is not None  # Used now.
    (tmp_path / "left.1234").write_bytes(bytes(200))
    os.utime(tmp_path / "left.1234", (1_000, 1_000))
    assert write(cache, 2, "four", 300)
    assert {name.name.partition("-")[0] for name in tmp_path.iterdir()} == {"one", "three", "four"}
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= most
    assert write(cache, 9, "one", 10)
    assert cache.positions("one") == {Position(9, "d9")}
    assert not write(cache, 10, "one", 2_000)


def test_one_on_another_file_system_is_copied_to_be_read(tmp_path: Path) -> None:
    far = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    kept = SnapshotFolder(far, "")
    write(kept, 7)
    found = kept.read("ab", Position(7, "d7"))
    assert found is not None
    assert bytes(found.blob) == bytes(100)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    assert kept.read("ab", Position(7, "d7")) is None
    assert not any(tmp_path.iterdir())


def test_one_of_the_first_format_is_read(tmp_path: Path) -> None:
    about, position = {"obeyed": 7}, Position(7, "d7")
    check = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32]
    heading = {"owner": "ab", **position.to_json(), "size": 100, "check": check, "about": about}
    text = json.dumps(heading).encode()
    kept = folder(tmp_path)
    write(kept, 7)
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"PNSTSNP1" + struct.pack("<I", len(text)) + text + bytes(range(100)))
    found = kept.read("ab", position)
    assert found is not None
    assert bytes(found.blob) == bytes(range(100))
    file.write_bytes(file.read_bytes()[:-1])
    assert kept.read("ab", position) is None


def test_durable_ones_stay_as_far_as_one_may_go_back(tmp_path: Path) -> None:
    kept = folder(tmp_path)
    for number in (10, 20, 30, 40):
        write(kept, number)
    write(kept, 12, "other")
    kept.forget_before(35)
    assert {at.number for at in kept.positions("ab")} == {30, 40}
    assert {at.number for at in kept.positions("other")} == {12}


def test_a_cache_that_cannot_be_written_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache = cached_snapshots(1_000)
    assert write(cache, 1)
    (file,) = tmp_path.rglob("*.snapshot")
    assert file.stat().st_mode & 0o077 == 0
    (tmp_path / "file").touch()
    assert not write(folder(tmp_path / "file" / "below", 1_000), 1)
