"""How an engine runs: one frozen object, validated once."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from penstock.engine.feedback.feedback import Feedback
from penstock.engine.join.join_step import Algorithm
from penstock.engine.overload.overload import EXACT, Overload
from penstock.engine.push.lateness import POLICIES, WatermarkPolicy
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
    lateness: int | Mapping[str, int] | None = None
    """Milliseconds that rows may be out of order, for all sources or by source."""
    join: Algorithm = "hash"
    limits: Limits | None = None
    adapt: str = "auto"
    execution: str = "auto"
    idle: int | None = None
    """Milliseconds that a source may fall behind before the watermark goes on without it."""
    watermark_policy: WatermarkPolicy = "min"
    max_ahead: int | Mapping[str, int] | None = None
    """Milliseconds that a row may be ahead of its arrival, for all sources or by source."""
    max_results: int | None = None
    """Results that a push may make; a push that would make more is refused."""
    max_halt: int | None = None
    """Milliseconds that a change of plan may hold up a push; None for two pushes as they are."""

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
        idle: Any = None,
        watermark_policy: Any = "min",
        max_ahead: Any = None,
        max_results: Any = None,
        max_halt: Any = None,
    ) -> Options:
        """Check every value, and say what exists."""
        _one_of("join", join, get_args(Algorithm))
        _one_of("adapt", adapt, ADAPT)
        _one_of("execution", execution, EXECUTION)
        _one_of("watermark_policy", watermark_policy, POLICIES)
        if isinstance(limits, Mapping):
            limits = Limits.from_json(limits)
        if limits is not None and not isinstance(limits, Limits):
            raise OptionError(f"limits are penstock.Limits, not {type(limits).__name__}")
        chosen = Overload.of(overload).within(limits)
        if max_results is not None:
            _check_max_results(max_results, chosen)
        return cls(
            Feedback.of(feedback),
            chosen,
            delays_of(lateness) if isinstance(lateness, Mapping) else _lateness(lateness),
            join,
            limits,
            adapt,
            execution,
            milliseconds("idle", idle),
            watermark_policy,
            delays_of(max_ahead, "max_ahead")
            if isinstance(max_ahead, Mapping)
            else milliseconds("max_ahead", max_ahead),
            max_results,
            milliseconds("max_halt", max_halt),
        )

    @property
    def unkept(self) -> str:
        """Text on an option without effect, and what would give it one; empty if all have one."""
        limits = self.limits
        if limits is None or limits.memory is None or limits.disk != 0:
            return ""
        if self.overload.policy != "shed":
            return ""
        return (
            "overload='shed' does not keep Limits(memory=…, disk=0): it leaves out probes, and "
            "rows only for want of CPU, so a limit on memory that plans cannot keep is told when "
            "it breaks (metrics()['control']['exceeded']); leave disk=0 out, so that rows go to "
            "disk, or make windows shorter"
        )

    def to_json(self) -> dict[str, Any]:
        """The options as plain values, of which :meth:`of` makes the same."""
        return {
            "feedback": "off" if self.feedback is None else self.feedback.to_json(),
            "overload": self.overload.to_json(),
            "lateness": self.lateness,
            "join": self.join,
            "limits": None if self.limits is None else self.limits.to_json(),
            "adapt": self.adapt,
            "execution": self.execution,
            "idle": self.idle,
            "watermark_policy": self.watermark_policy,
            "max_ahead": self.max_ahead,
            "max_results": self.max_results,
            "max_halt": self.max_halt,
        }


def _check_max_results(value: Any, overload: Overload) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise OptionError(f"max_results={value!r} must be a whole number of results, 1 or more")
    if overload.policy == "defer":
        raise OptionError(
            "max_results is about what a push makes, and overload='defer' makes results later than "
            "in their push; leave one of them out, or use overload='shed'"
        )


def delays_of(delays: Mapping[str, Any], option: str = "lateness") -> dict[str, int]:
    """Milliseconds by source; a source with None has none, as one that is not there."""
    given = {name: milliseconds(f"{option}[{name!r}]", each) for name, each in delays.items()}
    return {name: delay for name, delay in given.items() if delay is not None}


def _lateness(value: Any) -> int | None:
    return milliseconds("lateness", value)


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
