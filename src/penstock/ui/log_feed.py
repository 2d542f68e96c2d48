"""Feeds a hub from an event log, in a thread, for as long as the page is there."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path

from penstock.errors import InputError
from penstock.telemetry.follow import EventFollower
from penstock.ui.hub import Hub

_EVERY = 0.25
_AT_ONCE = 8
"""Events in memory: one of a thousand cells is a megabyte."""


class LogFeed:
    """Reads what is there at once, and then, as a context, what is added."""

    def __init__(self, path: Path, hub: Hub) -> None:
        if not path.is_file():
            raise InputError(
                f"{path} is no event log: there is no such file; a job with the checkpoint folder "
                "out/checkpoint writes out/checkpoint.events.jsonl"
            )
        self._follower = EventFollower(path)
        self._hub = hub
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="penstock log", daemon=True)
        self.events = self._read()

    def __enter__(self) -> LogFeed:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._follower.close()

    def _follow(self) -> None:
        while not self._ended.wait(_EVERY):
            self._read()

    def _read(self) -> int:
        """Note what is new; how many events that are."""
        found = self._follower.new()
        count = 0
        while some := list(itertools.islice(found, _AT_ONCE)):
            self._hub.note_all(some)
            count += len(some)
        return count
