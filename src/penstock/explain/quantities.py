"""Numbers for people: short, with a unit, never more digits than they deserve."""

from __future__ import annotations

from penstock.planning.limits import size_text


def count_text(value: float | None) -> str:
    """``1234567`` is ``1.23M``."""
    if value is None:
        return "–"
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= 1e15:
            return f"{value:.2g}"
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def share_text(value: float | None) -> str:
    """A share of a core in per cent."""
    return "–" if value is None else f"{100 * value:.3g} %"


def memory_text(value: float | None) -> str:
    """Bytes with a unit."""
    if value is None:
        return "–"
    if value >= 1024**5:
        return f"{value:.2g} B"
    return size_text(round(value)) if value < 1024 else _three(value)


def _three(value: float) -> str:
    number, unit = size_text(value).split()
    return f"{float(number):.3g} {unit}"
