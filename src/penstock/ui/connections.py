"""The connections of the page's server: so many at most, and none for ever.

A thread serves each connection, so their number bounds the threads. A connection is in one of
three ranks, and when all places are taken a new one takes that of the oldest with the lowest rank:

* ``WAITING``: its request has not arrived as a whole. That must happen within
  :data:`SECONDS_FOR_A_REQUEST` in total; the timeout of a socket is about each single read, and a
  client that sends one byte now and then would stay for ever.
* ``LOOKING``: it is answered, or listens to the stream, without the token.
* ``KNOWN``: the same with the token. It keeps its place.

So whoever can only reach the port can take places from others who can do no more than that, never
from those who have the token. The same holds among streams, of which there may be
:data:`STREAMS`.
"""

from __future__ import annotations

import contextlib
import enum
import socket
import threading
import time

CONNECTIONS = 640
"""Connections at once. A thread each; some hundred viewers with a connection to spare."""
STREAMS = 64
"""Pages that may listen at once. Each is told of every change, four times a second."""
SECONDS_FOR_A_REQUEST = 10.0
"""Seconds from a connection, or from the answer before, until a request is there as a whole."""


class Rank(enum.IntEnum):
    """Rank of a connection: the lowest is closed first when there is no place left."""

    WAITING = 0
    LOOKING = 1
    KNOWN = 2


class Connection:
    """One connection: its socket, its rank, and since when (seconds of the monotonic clock)."""

    def __init__(self, wire: socket.socket) -> None:
        self._wire = wire
        self.ended = False
        self.wait()

    def wait(self) -> None:
        """A request is awaited from now on."""
        self.rank = Rank.WAITING
        self.streams = False
        self.since = time.monotonic()

    def end(self) -> None:
        """The wire is cut; its thread finds out at its next read or write, or by ``ended``."""
        self.ended = True
        with contextlib.suppress(OSError):
            self._wire.shutdown(socket.SHUT_RDWR)


class Connections:
    """All connections of one server."""

    def __init__(self, most: int = CONNECTIONS, streams: int = STREAMS) -> None:
        self._most = most
        self._most_streams = streams
        self._all: dict[int, Connection] = {}
        self._lock = threading.Lock()

    def admit(self, wire: socket.socket) -> bool:
        """Whether ``wire`` has got a place, if need be that of another.

        Those that have been ended count until their threads are gone: at most as many again.
        """
        with self._lock:
            if len(self._all) >= 2 * self._most:
                return False
            open_now = [each for each in self._all.values() if not each.ended]
            if len(open_now) >= self._most and not _end_worst(open_now):
                return False
            self._all[id(wire)] = Connection(wire)
            return True

    def of(self, wire: socket.socket) -> Connection:
        """The connection of ``wire``, which has been admitted."""
        with self._lock:
            return self._all[id(wire)]

    def may_stream(self, wire: socket.socket) -> bool:
        """Whether the connection of ``wire`` may listen from now on, if need be for another."""
        with self._lock:
            new = self._all[id(wire)]
            streams = [each for each in self._all.values() if each.streams and not each.ended]
            if len(streams) >= self._most_streams and not _end_worst(streams):
                return False
            new.streams = True
            return True

    def forget(self, wire: socket.socket) -> None:
        """``wire`` is about to be closed."""
        with self._lock:
            self._all.pop(id(wire), None)

    def end_slow(self, now: float) -> None:
        """End the connections whose request has not come in time; ``now`` is monotonic."""
        with self._lock:
            for each in self._all.values():
                if each.rank is Rank.WAITING and now - each.since > SECONDS_FOR_A_REQUEST:
                    each.end()

    def __len__(self) -> int:
        return len(self._all)


def _end_worst(some: list[Connection]) -> bool:
    """End the connection that has to go first; whether there is one without the token."""
    worst = min(some, key=lambda each: (each.rank, each.since))
    if worst.rank is Rank.KNOWN:
        return False
    worst.end()
    return True
