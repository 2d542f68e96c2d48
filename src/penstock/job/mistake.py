"""A mistake in a job file, in one line: where, what was found, what is expected, a hint."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from penstock.errors import OptionError
from penstock.job.redaction import redacted


def mistake(where: str, found: str, expected: str, hint: str | None = None) -> OptionError:
    """The error for ``where``, such as ``job.toml: sources.bids.format``."""
    tail = f"; {hint}" if hint else ""
    return OptionError(redacted(f"{where}: found {found}, expected {expected}{tail}"))


def shown(value: Any) -> str:
    """A value as a job file has it, cut to a readable length."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    text = f'"{value}"' if isinstance(value, str) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:59]}…"


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.7) -> str | None:
    """A hint that names the nearest of ``known``, if one is near."""
    by_lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(word.lower(), by_lower, 1, cutoff)
    return f"did you mean {by_lower[near[0]]}?" if near else None


def listed(words: Iterable[str]) -> str:
    return ", ".join(words)
