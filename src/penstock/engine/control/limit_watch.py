"""Limits against what was measured: after every push, and told in the push in which they break.

Memory is the bytes of all windows and states and of what is held above them, as they are. CPU is
the seconds of the thread in pushes for each second of event time, over about the last second of it:
batches come in lumps. On the arrival line there are no seconds, and CPU is not measured.
"""

from __future__ import annotations

import math

from penstock.planning.limits import Limits

SPAN = 1.0
"""Seconds of event time over which CPU is measured, about."""
LEAST_SPAN = 0.5
"""Seconds of event time that must have passed before it is."""
NEAR = 0.95
"""The share of a limit above which it is about to break."""
FAR = 0.85
"""The share below which it may be about to break once more: what swings is told once."""


class LimitWatch:
    """Compares what an engine uses with ``limits``."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.cpu: float | None = None
        """CPU seconds per second of event time, lately; None while that is not known."""
        self.memory: int | None = None
        """Bytes held, if they are limited."""
        self.over: tuple[str, ...] = ()
        """The limits that are exceeded now."""
        self._near: set[str] = set()
        """The limits that have been told to be about to break."""
        self._at: float | None = None
        self._spent = 0.0
        self._passed = 0.0

    def note(self, seconds: float | None, spent: float, nbytes: int | None) -> None:
        """A push is done: event time is at ``seconds`` (None on the arrival line), and it took
        ``spent`` CPU seconds; ``nbytes`` are held."""
        if seconds is not None and self.limits.cpu is not None:
            elapsed = 0.0 if self._at is None else max(0.0, seconds - self._at)
            self._at = seconds
            kept = math.exp(-elapsed / SPAN)
            self._spent = self._spent * kept + spent
            self._passed = self._passed * kept + elapsed
            self.cpu = self._spent / self._passed if self._passed >= LEAST_SPAN else None
        self.note_memory(nbytes)

    def note_memory(self, nbytes: int | None) -> None:
        """``nbytes`` are held now."""
        self.memory = nbytes
        self.over = tuple([name for name, used, limit in self._compared() if used > limit])

    def approached(self) -> set[str]:
        """The limits that are about to break since the last call, or have broken."""
        compared = self._compared()
        self._near -= {name for name, used, limit in compared if used < FAR * limit}
        news = {name for name, used, limit in compared if used > NEAR * limit} - self._near
        self._near |= news
        return news

    @property
    def known(self) -> set[str]:
        """The limits of which it is known whether they are."""
        return {name for name, _, _ in self._compared()}

    def in_words(self) -> str:
        """By how much they are exceeded."""
        return " and ".join(
            f"{name} is {used:.4g}{unit}, {100 * (used / limit - 1):.0f} % over the limit"
            for name, used, limit in self._compared()
            if used > limit
            for unit in (" bytes" if name == "memory" else " of a core",)
        )

    def _compared(self) -> list[tuple[str, float, float]]:
        found: list[tuple[str, float, float]] = []
        if self.limits.cpu is not None and self.cpu is not None:
            found.append(("cpu", self.cpu, self.limits.cpu))
        if self.limits.memory is not None and self.memory is not None:
            found.append(("memory", float(self.memory), float(self.limits.memory)))
        return found
