"""Private files: for this user alone, and never behind a symbolic link."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.telemetry import EventLog
from penstock.telemetry.private_file import read_private, replace_private


@pytest.fixture(autouse=True)
def usual_mask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_log_is_for_this_user(tmp_path: Path) -> None:
    EventLog(tmp_path / "log").close()
    assert mode(tmp_path / "log") == 0o600


def test_the_mode_of_a_log_that_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    (tmp_path / "log").chmod(0o640)
    EventLog(tmp_path / "log").close()
    assert mode(tmp_path / "log") == 0o640


def test_a_log_behind_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "log").symlink_to("precious")
    with pytest.raises(OSError, match="symbolic link"):
        EventLog(tmp_path / "log")
    assert (tmp_path / "precious").read_text() == "mine"


def test_replacing_touches_neither_links_nor_drafts_of_others(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "file").symlink_to("precious")
    (tmp_path / ".file.new").symlink_to("precious")
    replace_private(tmp_path / "file", b"new")
    assert (tmp_path / "precious").read_text() == "mine"
    assert not (tmp_path / "file").is_symlink()
    assert mode(tmp_path / "file") == 0o600
    (tmp_path / "file").chmod(0o640)
    replace_private(tmp_path / "file", b"newer")
    assert mode(tmp_path / "file") == 0o640
    assert read_private(tmp_path / "file") == b"newer"
    assert sorted(os.listdir(tmp_path)) == [".file.new", "file", "precious"]


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match=r"is not a file|symbolic link"):
            read_private(tmp_path / name)
