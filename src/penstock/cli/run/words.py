"""Numbers for people."""

from __future__ import annotations

from collections.abc import Sequence

_BARS = "▁▂▃▄▅▆▇█"


def short(value: float) -> str:
    """A count in three digits: 12.3 k."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            digits = 0 if value >= 100 * size else 1 if value >= 10 * size else 2
            return f"{value / size:.{digits}f} {unit}"
    return f"{value:.0f}"


def size(count: float) -> str:
    """Bytes: 4.2 MB."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count:.0f} B"


def span(seconds: float) -> str:
    """A time that has passed: 850 ms, 3.2 s, 4 min 10 s."""
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def count(number: int, noun: str) -> str:
    """1 cell, 2 cells; the plural of ``batch`` is batches."""
    plural = f"{noun}es" if noun.endswith(("s", "ch")) else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def curve(values: Sequence[float]) -> str:
    """Values as a row of bars."""
    top = max([*values, 1e-9])
    return "".join(_BARS[round((len(_BARS) - 1) * value / top)] for value in values)
