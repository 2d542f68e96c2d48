"""Compiled kernels on disk: one process compiles, others wait, and nobody gets another's code."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from penstock.kernels.kernel_files import KernelFiles


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "cache")


def _waiting(files: KernelFiles, key: str) -> tuple[threading.Thread, list[Any]]:
    """A reader of ``key`` in a thread, and what it gets."""
    got: list[Any] = []
    thread = threading.Thread(target=lambda: got.append(files.load(key)), daemon=True)
    thread.start()
    return thread, got


def test_who_comes_second_waits_and_gets_what_the_first_has_made(folder: str) -> None:
    first, second = (KernelFiles(folder, "f", "d1") for _ in range(2))
    assert first.load("int64") is None
    thread, got = _waiting(second, "int64")
    thread.join(0.2)
    assert got == []
    first.save("int64", b"code")
    first.unlock()
    thread.join(30)
    assert got == [b"code"]


def test_if_the_first_gives_up_the_second_compiles(folder: str) -> None:
    first, second = (KernelFiles(folder, "f", "d1") for _ in range(2))
    assert first.load("int64") is None
    thread, got = _waiting(second, "int64")
    first.unlock()
    thread.join(30)
    assert got == [None]
    second.unlock()


def test_signatures_that_are_compiled_at_the_same_time_are_kept_apart(folder: str) -> None:
    first, second = (KernelFiles(folder, "f", "d1") for _ in range(2))
    assert first.load("int64") is None
    assert second.load("float64") is None
    first.save("int64", b"whole")
    second.save("float64", b"broken")
    reader = KernelFiles(folder, "f", "d1")
    assert (reader.load("int64"), reader.load("float64")) == (b"whole", b"broken")


def test_code_of_older_sources_is_never_used_and_goes(folder: str) -> None:
    old, new = KernelFiles(folder, "f", "d1"), KernelFiles(folder, "f", "d2")
    other = KernelFiles(folder, "g", "d1")
    assert old.load("int64") is None
    old.save("int64", b"old")
    assert other.load("int64") is None
    other.save("int64", b"other")
    assert new.load("int64") is None
    new.save("int64", b"new")
    for files in (old, new, other):
        files.unlock()
    assert len(list(Path(folder).iterdir())) == 2
    assert (new.load("int64"), other.load("int64")) == (b"new", b"other")


def test_a_file_that_is_cut_off_or_of_another_key_is_compiled_again(folder: str) -> None:
    files = KernelFiles(folder, "f", "d1")
    assert files.load("int64") is None
    files.save("int64", b"code")
    files.unlock()
    (path,) = Path(folder).iterdir()
    whole = path.read_bytes()
    for damaged in (b"", whole[:-3], whole.replace(b"int64", b"int32")):
        path.write_bytes(damaged)
        assert files.load("int64") is None
        files.unlock()
