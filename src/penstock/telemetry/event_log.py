"""The event log: JSON lines, one writer, only ever appended to.

A log outlives its job: each run adds to it. The writer holds a lock on the file, so a job cannot
run twice at once on one checkpoint. A line is written by one call and flushed; a process that is
killed may leave half a line, which the next writer ends and readers skip. Beyond a size the file is
put aside as ``NAME.1`` (``NAME.2`` is older), and the oldest go.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path

from penstock.errors import PenstockError
from penstock.telemetry.events import Event, from_json, to_json
from penstock.telemetry.private_file import open_private

try:
    import fcntl
except ImportError:  # Windows: no lock, and no Spark either without WSL.
    fcntl = None  # type: ignore[assignment]

LARGEST = 64 << 20
KEPT = 4


class EventLog:
    """The one writer of the log at ``path``."""

    def __init__(self, path: Path, largest: int = LARGEST, kept: int = KEPT) -> None:
        self.path = path
        self._largest = largest
        self._kept = kept
        self._file = self._open()

    def write(self, event: Event) -> None:
        """Add ``event``; the line has left this process when this returns."""
        line = (to_json(event) + "\n").encode()
        size = os.fstat(self._file).st_size
        if size and size + len(line) > self._largest:
            self._rotate()
        os.write(self._file, line)

    def close(self) -> None:
        os.close(self._file)

    def __enter__(self) -> EventLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> int:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = open_private(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(file)
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            raise PenstockError(
                f"{self.path} is being written: this job runs already; stop that run first, or "
                "give this one another checkpoint folder"
            ) from None
        size = os.fstat(file).st_size
        if size and os.pread(file, 1, size - 1) != b"\n":
            os.write(file, b"\n")
        return file

    def _rotate(self) -> None:
        for number in range(self._kept, 0, -1):
            newer = _aside(self.path, number - 1)
            if newer.exists():
                os.replace(newer, _aside(self.path, number))
        old, self._file = self._file, self._open()
        os.close(old)


def read_events(path: Path) -> Iterator[Event]:
    """The events of the log at ``path`` in order, the parts put aside first."""
    for file in parts_of(path):
        with file.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    event = from_json(line)
                except (json.JSONDecodeError, KeyError, TypeError):
                    continue  # Half a line, from a process that was killed.
                if event is not None:
                    yield event


def parts_of(path: Path) -> list[Path]:
    """The files of the log at ``path``, the oldest first."""
    number = 1
    while _aside(path, number).exists():
        number += 1
    files = [_aside(path, part) for part in range(number - 1, -1, -1)]
    return [file for file in files if file.exists()]


def _aside(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}") if number else path
