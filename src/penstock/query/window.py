"""Windows: how long a tuple lives.

A window maps the birth of a tuple to its death (design: lifespans). ``RANGE w`` ends at
``birth + w`` inclusive, ``NOW`` at its birth, ``UNBOUNDED`` never. ``ROWS n`` ends just before the
n-th later tuple of the stream arrives, ``PARTITION BY k ROWS n`` counts only tuples with the same
``k``. A static relation has no time: born before everything, it never dies.

What the rest of Penstock wants to know of a window, the kind says itself (:class:`Window`): whoever
asks does not ask for its class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


class Window:
    """A kind of window. What is said here holds for a window whose rows never die."""

    __slots__ = ()

    has_time: ClassVar[bool] = True
    """Whether its rows are born one after the other."""

    @property
    def span(self) -> int | None:
        """Milliseconds that every row lives, if rows die by time."""
        return None

    @property
    def latest(self) -> int | None:
        """Rows that live, of the stream or of each partition, if rows die by counting: then the
        time line of the query is the order of arrival."""
        return None

    @property
    def partition_by(self) -> tuple[str, ...]:
        """Columns within whose values rows are counted."""
        return ()

    @property
    def is_endless(self) -> bool:
        """Whether rows die neither by time nor by counting: that goes with either time line."""
        return self.span is None and self.latest is None

    @property
    def latest_of_all(self) -> int | None:
        """As ``latest``, if all rows of the stream are counted together."""
        return None if self.partition_by else self.latest


@dataclass(frozen=True, slots=True)
class Range(Window):
    """``[RANGE w]``, ``milliseconds`` long. ``[NOW]`` is a range of zero."""

    milliseconds: int

    @property
    def span(self) -> int:
        return self.milliseconds

    def __str__(self) -> str:
        return "[NOW]" if self.milliseconds == 0 else f"[RANGE {duration(self.milliseconds)}]"


@dataclass(frozen=True, slots=True)
class Rows(Window):
    """``[ROWS n]``, or ``[PARTITION BY a, b ROWS n]`` when ``partition_by`` is not empty."""

    count: int
    partition_by: tuple[str, ...] = ()

    @property
    def latest(self) -> int:
        return self.count

    def __str__(self) -> str:
        by = f"PARTITION BY {', '.join(self.partition_by)} " if self.partition_by else ""
        return f"[{by}ROWS {self.count}]"


@dataclass(frozen=True, slots=True)
class Unbounded(Window):
    """``[UNBOUNDED]``: nothing ever dies."""

    def __str__(self) -> str:
        return "[UNBOUNDED]"


@dataclass(frozen=True, slots=True)
class Static(Window):
    """A relation with no time, loaded before the first tuple of any stream."""

    has_time = False

    def __str__(self) -> str:
        return "[STATIC]"


_UNITS = (
    ("DAYS", 86_400_000),
    ("HOURS", 3_600_000),
    ("MINUTES", 60_000),
    ("SECONDS", 1_000),
    ("MILLISECONDS", 1),
)


def duration(milliseconds: int) -> str:
    """``milliseconds`` in the largest unit that divides it: ``300000`` is ``5 MINUTES``."""
    for unit, size in _UNITS:
        if milliseconds % size == 0 and milliseconds:
            count = milliseconds // size
            return f"{count} {unit[:-1] if count == 1 else unit}"
    return f"{milliseconds} MILLISECONDS"
