"""Numbers for people: short, with a unit, never more digits than they deserve."""

from __future__ import annotations

from penstock.planning.limits import size_text, three_digits

_LARGEST = 1e15
"""From there on a model is wrong rather than a machine large."""


def count_text(value: float | None) -> str:
    """``1234567`` is ``1.23M``."""
    if value is None:
        return "–"
    if abs(value) >= _LARGEST:
        return "over 1000T"
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= 0.9995 * size:
            return f"{three_digits(value / size)}{unit}"
    return three_digits(value)


def share_text(value: float | None) -> str:
    """A share of a core in per cent."""
    return "–" if value is None else f"{three_digits(100 * value)} %"


def memory_text(value: float | None) -> str:
    """Bytes with a unit."""
    if value is None:
        return "–"
    if value >= 1024**5:
        return "over 1000 TiB"
    return size_text(round(value)) if value < 1024 else _three(value)


def _three(value: float) -> str:
    number, unit = size_text(value).split()
    return f"{three_digits(float(number))} {unit}"
