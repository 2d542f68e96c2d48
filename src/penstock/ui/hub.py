"""The one place where a run's events meet the pages that show them: a model and a bell.

Whoever feeds it (a thread that follows a log, the loop of a running job) notes events; every page
has a thread that waits for the bell. Commands of pages go the other way, to whoever runs the query.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from penstock.ui.model import RunModel, Seen

Command = dict[str, str]
"""``{"command": "pin", "plan": "((A B) C)"}``, ``undo`` or ``unpin`` with no plan, or
``{"command": "refresh", "source": "prices"}``."""

_FOLLOWS_A_LOG = (
    "This page follows an event log. Pin and undo are on the page of the run itself, which it "
    "serves with --ui."
)


class Hub:
    """``send`` hands a command on to the run; None: the run takes none."""

    def __init__(
        self,
        send: Callable[[Command], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._model = RunModel()
        self._bell = threading.Condition()
        self._version = 0
        self._closed = False
        self._send = send

    def note(self, *events: Mapping[str, Any]) -> None:
        self.note_all(events)

    def note_all(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Take in events; pages hear of them."""
        with self._bell:
            for event in events:
                self._model.note(event)
                self._version += 1
            self._bell.notify_all()

    def note_sample(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Take in the latest results."""
        with self._bell:
            self._model.note_sample(rows)
            self._version += 1
            self._bell.notify_all()

    def told(self, seen: Seen) -> tuple[dict[str, Any], Seen]:
        """What a page must know that has read up to ``seen``."""
        with self._bell:
            message, now = self._model.told(seen)
            message["now"] = round(self._clock(), 3)
            message["accepts"] = self._accepted()
            message["takes_none"] = "" if message["accepts"] else self._why_none()
            return message, now

    def wait(self, version: int, seconds: float) -> int:
        """The version after ``version``, or the same one when ``seconds`` have passed."""
        end = time.monotonic() + seconds
        with self._bell:
            while self._version == version and not self._closed:
                left = end - time.monotonic()
                if left <= 0:
                    break
                self._bell.wait(left)
            return self._version

    @property
    def accepts(self) -> list[str]:
        """The commands that the run takes."""
        with self._bell:
            return self._accepted()

    def send(self, command: Command) -> None:
        if self._send is not None:
            self._send(command)

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Pages are let go."""
        with self._bell:
            self._closed = True
            self._bell.notify_all()

    def _why_none(self) -> str:
        if self._model.status in ("stopped", "failed"):
            return "The run is over: there is nothing to pin or to undo."
        if self._send is None:
            return _FOLLOWS_A_LOG
        return str(self._model.start.get("takes_none") or "")

    def _accepted(self) -> list[str]:
        if self._send is None or self._model.status in ("stopped", "failed"):
            return []
        accepts = self._model.start.get("accepts")
        return [str(each) for each in accepts] if isinstance(accepts, (list, tuple)) else []
