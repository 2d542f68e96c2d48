"""How an engine runs: one frozen object, validated once."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from penstock.engine.feedback.feedback import Feedback
from penstock.engine.join.join_step import Algorithm
from penstock.engine.rationing.overload import EXACT, Overload
from penstock.errors import OptionError
from penstock.planning.limits import Limits

ADAPT = ("auto", "on", "off")
EXECUTION = ("auto", "reference")

_UNITS = {
    "MILLISECOND": 1,
    "SECOND": 1_000,
    "MINUTE": 60_000,
    "HOUR": 3_600_000,
    "DAY": 86_400_000,
}


@dataclass(frozen=True, slots=True)
class Options:
    """The options of :class:`~penstock.engine.engine.Engine`."""

    feedback: Feedback | None = None
    overload: Overload = EXACT
    lateness: int | None = None
    """In milliseconds."""
    join: Algorithm = "hash"
    limits: Limits | None = None
    adapt: str = "auto"
    execution: str = "auto"

    @classmethod
    def of(
        cls,
        feedback: Any,
        overload: Any,
        lateness: Any,
        join: Any,
        limits: Any,
        adapt: Any = "auto",
        execution: Any = "auto",
    ) -> Options:
        """Check every value, and say what exists."""
        _one_of("join", join, get_args(Algorithm))
        _one_of("adapt", adapt, ADAPT)
        _one_of("execution", execution, EXECUTION)
        if isinstance(limits, Mapping):
            limits = Limits.from_json(limits)
        if limits is not None and not isinstance(limits, Limits):
            raise OptionError(f"limits are penstock.Limits, not {type(limits).__name__}")
        return cls(
            Feedback.of(feedback),
            Overload.of(overload).within(limits),
            milliseconds("lateness", lateness),
            join,
            limits,
            adapt,
            execution,
        )


def milliseconds(name: str, value: Any) -> int | None:
    """``value`` as milliseconds: an int, a timedelta, or a text such as ``"5 SECONDS"``."""
    if value is None:
        return None
    if isinstance(value, datetime.timedelta):
        whole: float = value / datetime.timedelta(milliseconds=1)
    elif isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*", value)
        unit = match.group(2).upper().removesuffix("S") if match else ""
        if match is None or unit not in _UNITS:
            raise OptionError(
                f"{name}={value!r} is not a duration; write for example '5 SECONDS' "
                f"(units: {', '.join(u + 'S' for u in _UNITS)})"
            )
        whole = float(match.group(1)) * _UNITS[unit]
    elif isinstance(value, int) and not isinstance(value, bool):
        whole = value
    else:
        raise OptionError(
            f"{name} is milliseconds, a timedelta or a text such as '5 SECONDS', not {value!r}"
        )
    if whole > 2**52:
        raise OptionError(f"{name}={value!r} is longer than any stream")
    if whole < 0 or whole != int(whole):
        raise OptionError(f"{name}={value!r} must be a whole number of milliseconds, 0 or more")
    return int(whole)


def _one_of(name: str, value: Any, known: tuple[str, ...]) -> None:
    if value not in known:
        raise OptionError(
            f"{name}={value!r} does not exist; choose from: {', '.join(map(repr, known))}"
        )
