"""Where the query stands on its time line (docs/notes/answers.md)."""

from __future__ import annotations

from typing import NamedTuple

from penstock.kernels.lifespan import BEGINNING, FOREVER

START = int(BEGINNING)
END = int(FOREVER)


class Clock(NamedTuple):
    """``now`` is the newest instant seen, ``watermark`` what state must outlive.

    ``strict`` tells whether disorder is declared: then an instant is settled when the watermark
    has passed it, otherwise when it has been seen. Rows before ``late`` are late: that is the
    watermark, unless some source is never late, for then no state may go.
    """

    now: int = START
    watermark: int = START
    strict: bool = False
    late: int = START

    @property
    def settled(self) -> int:
        """The last instant about which nothing can change any more."""
        return self.watermark - 1 if self.strict else self.now
