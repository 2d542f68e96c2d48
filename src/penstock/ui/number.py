"""Numbers that a log may have, and what else it may have in their place."""

from __future__ import annotations

from typing import Any

_LARGEST = 1e18


def is_number(value: Any) -> bool:
    """Whether a page can show ``value`` as a number."""
    is_one = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_one and -_LARGEST <= value <= _LARGEST


def number(value: Any) -> float:
    """``value``, or 0 for what is no number."""
    return value if is_number(value) else 0.0
