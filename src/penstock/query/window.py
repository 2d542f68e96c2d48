"""Windows: how long a tuple lives.

A window maps the birth of a tuple to its death (design: lifespans). ``RANGE w`` ends at
``birth + w`` inclusive, ``NOW`` at its birth, ``UNBOUNDED`` never. ``ROWS n`` ends just before the
n-th later tuple of the stream arrives, ``PARTITION BY k ROWS n`` counts only tuples with the same
``k``. A static relation has no time: born before everything, it never dies.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Range:
    """``[RANGE w]``, ``milliseconds`` long. ``[NOW]`` is a range of zero."""

    milliseconds: int

    def __str__(self) -> str:
        return "[NOW]" if self.milliseconds == 0 else f"[RANGE {duration(self.milliseconds)}]"


@dataclass(frozen=True, slots=True)
class Rows:
    """``[ROWS n]``, or ``[PARTITION BY a, b ROWS n]`` when ``partition_by`` is not empty."""

    count: int
    partition_by: tuple[str, ...] = ()

    def __str__(self) -> str:
        by = f"PARTITION BY {', '.join(self.partition_by)} " if self.partition_by else ""
        return f"[{by}ROWS {self.count}]"


@dataclass(frozen=True, slots=True)
class Unbounded:
    """``[UNBOUNDED]``: nothing ever dies."""

    def __str__(self) -> str:
        return "[UNBOUNDED]"


@dataclass(frozen=True, slots=True)
class Static:
    """A relation with no time, loaded before the first tuple of any stream."""

    def __str__(self) -> str:
        return "[STATIC]"


Window = Range | Rows | Unbounded | Static

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
