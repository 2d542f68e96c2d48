"""Blocks in files without a name: what is let go comes back, what is refused changes nothing."""

from __future__ import annotations

import ctypes
import errno
import gc
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock import OptionError
from penstock.engine.state import spill_files
from penstock.engine.state.ring_files import KEYS, PAYLOAD
from penstock.engine.state.rows import Rows
from penstock.engine.state.spill_files import SpillFiles, default_folder, is_in_memory, let_go


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_pages_that_are_let_go_leave_the_process_and_come_back(tmp_path: Path) -> None:
    files = SpillFiles(tmp_path)
    size = 64 << 20
    block = files.block(size)
    assert block is not None
    numbers = block.view(np.int64)
    numbers[:] = np.arange(len(numbers))
    full = resident()
    let_go(block)
    assert resident() < full - size // 2
    assert (numbers[::1000] == np.arange(len(numbers))[::1000]).all()
    assert list(tmp_path.iterdir()) == []  # It has no name: nothing can be left behind.
    assert (files.nbytes, files.count) == (size, 1)
    del block, numbers
    gc.collect()
    assert (files.nbytes, files.count) == (0, 0)


def test_an_arrow_array_is_read_where_it_lies(tmp_path: Path) -> None:
    files = SpillFiles(tmp_path)
    values = pa.array(["a", None, "long" * 1000])
    stored = files.array(values.slice(1))
    assert stored is not None
    array, block = stored
    let_go(block)
    assert array.equals(values.slice(1))
    address = block.ctypes.data
    assert address <= array.buffers()[2].address < address + len(block)
    del stored, block
    gc.collect()
    assert files.count == 1  # The array has it.
    assert array.to_pylist()[0] is None


def test_what_is_refused_and_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = SpillFiles(tmp_path, most=1000)
    assert files.block(1001) is None
    assert files.refused == "the limit on disk is 1,000 bytes"
    assert files.block(1000) is not None
    assert files.refused == ""
    files = SpillFiles(tmp_path)
    monkeypatch.setattr(spill_files, "LEFT_FREE", 1 << 60)
    assert files.block(1) is None
    assert files.refused.startswith("the disk is nearly full")
    monkeypatch.undo()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    assert files.block(1) is None
    assert files.refused.startswith("No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_reach_the_disk_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = SpillFiles(tmp_path)
    block = files.block(1 << 16)
    assert block is not None
    block[:] = 7
    assert files.settled(block)
    assert files.refused == ""

    def failing(*_: Any) -> int:
        ctypes.set_errno(errno.EIO)
        return -1

    monkeypatch.setattr(spill_files._system(), "msync", failing)
    assert not files.settled(block)
    assert files.failed
    told = f"Input/output error while rows were written ({tmp_path}); they stay in memory"
    assert files.refused == told
    assert files.array(pa.array(range(10_000))) is None
    assert (block == 7).all()


def test_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptionError, match="is no folder; give one on a local disk"):
        SpillFiles(tmp_path / "none")
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/a / ext4 rw 0 0\nnone {tmp_path} tmpfs rw 0 0\n")
    monkeypatch.setattr(spill_files, "_MOUNTS", mounts)
    assert is_in_memory(str(tmp_path / "below"))
    assert not is_in_memory(f"{tmp_path}-beside")
    with pytest.raises(OptionError, match=r"is in memory \(tmpfs\)"):
        SpillFiles(tmp_path)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    assert default_folder() != str(tmp_path)


def test_a_ring_is_the_same_in_files(tmp_path: Path) -> None:
    """Rows come, expire, grow, shrink and are packed, with everything in files and without."""
    chance = np.random.default_rng(1)
    rings = [Rows(), Rows()]
    for ring in rings:
        ring.add_column(np.int64, is_payload=True)
        ring.add_index()
    files = SpillFiles(tmp_path)
    in_files = rings[0]
    for step in range(300):
        count = int(chance.choice([0, 1, 10, 3000]))
        values = chance.integers(0, 50, count)
        gone = int(chance.integers(0, 1500))
        for ring in rings:
            head = ring.head
            ring.reserve(count)
            for column in range(3):
                ring.put(column, head, values + column)
            ring.head += count
            ring.insert(ring.indexes[0], head, values)
            if step % 17 == 16:
                ring.truncate(max(ring.tail, head))
            ring.advance(min(ring.head, ring.tail + gone))
            if step % 29 == 28:
                ring.keep_only(np.arange(ring.tail, ring.head)[::4])
            ring.fit()
        if step % 3 == 0:
            kind = (PAYLOAD, KEYS)[step % 2]
            assert in_files.spill(kind, int(chance.integers(0, in_files.head + 1)), files)
        if step % 50 == 49:
            in_files.bring_back()
            assert in_files.bytes_away == 0
        in_files.let_go()
        first, second = rings
        assert (first.tail, first.head, first.capacity) == (
            second.tail,
            second.head,
            second.capacity,
        )
        rows = np.arange(first.tail, first.head)
        for column in range(3):
            assert (first.take(column, rows) == second.take(column, rows)).all()
        assert first.nbytes + first.bytes_away == second.nbytes
        assert first.nbytes <= second.nbytes


def test_a_ring_whose_disk_is_full_grows_in_memory(tmp_path: Path) -> None:
    files = SpillFiles(tmp_path, most=1 << 20)
    ring = Rows()
    ring.add_column(np.int64, is_payload=True)
    ring.reserve(1 << 15)
    ring.head = 1 << 15
    ring.columns[2][:] = np.arange(1 << 15)
    assert ring.spill(PAYLOAD, 1 << 14, files)
    assert not ring.spill(KEYS, 1 << 15, SpillFiles(tmp_path, most=1)) or files.count == 2
    ring.reserve(1 << 17)
    assert not ring.is_in_file(PAYLOAD)
    assert files.refused
    assert (ring.take(2, np.arange(1 << 15)) == np.arange(1 << 15)).all()
