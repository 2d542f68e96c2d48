"""How many bytes a window or a state takes for its rows.

The engine keeps rows in rings (:mod:`penstock.engine.state.rows`): a leaf row is its lifespan, its
encoded key columns and its payload; a stored combination is one row number per stream; each index
takes twelve bytes a row. On top of the living rows come two kinds of slack:

- Rings have a power of two of places: ``1 / ln 2`` = 1.44 times the rows on average. The mean is
  taken and not the very power, so that a planner does not see a cliff where there is none for long.
- Combinations die out of order, and the ring lets go of its oldest row only when that is dead. Of
  those made at one moment some live nearly as long as the shortest window W, so about ``rate × W``
  are kept: ``W · Σ 1/Wᵢ`` times the living ones (twice for two equal windows). The engine packs a
  state when two thirds of it are dead, so three times is the most.

:data:`TUPLES` counts living rows instead, as the paper does (equations 3 and 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

LIFESPAN = 16
KEY = 8
NUMBERED = 56
"""Bytes of a value that is numbered, beside itself: a slot of a table, and a heading."""
VARIABLE = 24
"""Bytes guessed for a value of a type without a fixed width, such as a string."""


@dataclass(frozen=True, slots=True)
class Storage:
    """Bytes of rows."""

    row_number: float = 8
    index: float = 12
    places: float = 1.44
    """Places of a ring per row."""
    most_kept: float = 3
    """Rows kept per living combination, at most."""
    whole_rows: bool = False
    """Whether a row counts as 1, whatever it holds."""

    def of_window(self, rows: float, width: float, indexes: int) -> float:
        """A leaf window with ``rows`` tuples of ``width`` bytes."""
        if self.whole_rows:
            return rows
        return rows * (width + indexes * self.index) * self.places

    def of_state(self, rows: float, streams: int, indexes: int, kept: float) -> float:
        """A state; ``kept`` rows per living one if nobody packed."""
        if self.whole_rows:
            return rows
        row = streams * self.row_number + indexes * self.index
        return rows * row * self.places * min(max(1.0, kept), self.most_kept)

    def of_values(self, count: float) -> float:
        """So many numbered values."""
        return 0.0 if self.whole_rows else count * (NUMBERED + VARIABLE * self.places)


TUPLES = Storage(whole_rows=True)


def width_of(type_: Any) -> float:
    """Bytes of a value of an Arrow type in a payload column."""
    try:
        return max(1.0, float(type_.bit_width) / 8)
    except ValueError:
        return VARIABLE


def is_number_of_64_bits(type_: Any) -> bool:
    """Whether a key of an Arrow type is kept as it is; others are looked up in a dictionary."""
    try:
        return int(type_.bit_width) <= 64
    except ValueError:
        return False
