"""Follow an event log that is being written: every event once, in order, as plain objects.

The follower knows where it is by file and place in it. A part that was put aside keeps its inode,
so after a rotation the follower ends the old part, wherever it is by now, and goes on with the next
newer one. Half a line at the end is left for the next look. Objects are handed on as they are, of
whatever kind: who follows may know more events, or fewer, than this version.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from penstock.telemetry.event_log import parts_of
from penstock.telemetry.events import plain_event


class EventFollower:
    """Reads the log at ``path`` from its oldest part on, and then what is added to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO | None = None

    def new(self) -> Iterator[dict[str, Any]]:
        """The events since the last call."""
        while True:
            if self._file is None and not self._open_next(None):
                return
            yield from self._lines()
            if not self._open_next(self._inode()):
                return

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _lines(self) -> Iterator[dict[str, Any]]:
        file = self._file
        while file is not None:
            place = file.tell()
            line = file.readline()
            if not line.endswith(b"\n"):
                file.seek(place)
                return
            try:
                event = plain_event(line.decode(errors="replace"))
                known = isinstance(event["event"], str)
            except (json.JSONDecodeError, KeyError, TypeError):
                continue  # Half a line, from a process that was killed.
            if known:
                yield event

    def _open_next(self, inode: int | None) -> bool:
        """Open the part after the one with ``inode``, or the oldest; False if there is none."""
        parts = parts_of(self.path)
        inodes = [part.stat().st_ino for part in parts]
        place = inodes.index(inode) + 1 if inode in inodes else 0
        if place >= len(parts):
            return False
        file = parts[place].open("rb")
        self.close()
        self._file = file
        return True

    def _inode(self) -> int:
        return os.fstat(self._file.fileno()).st_ino if self._file is not None else -1
