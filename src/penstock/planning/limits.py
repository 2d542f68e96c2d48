"""The two limits of a qualified plan (JTree Definition 2), the budget of the overload policy, and
the disk that rows may take when memory is short.

A limit that is None does not bind: a planner then makes that resource as small as the other limit
lets it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.errors import OptionError

_SMALLEST_SHOWN = 0.001
"""Below that a number is no news, and has more zeros than digits."""
_UNITS = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGT", start=1):
    _UNITS[f"{_letter}B"] = 1000**_power
    _UNITS[f"{_letter}IB"] = 1024**_power


@dataclass(frozen=True, slots=True, init=False)
class Limits:
    """What a plan may use.

    >>> Limits(cpu=0.5, memory="2GiB").memory
    2147483648
    """

    cpu: float | None
    """Share of a core: 0.5 is half a second of CPU time per second."""
    memory: int | None
    """Bytes of all windows and states in memory."""
    probes: float | None
    """Probes per second of event time. The overload policy keeps to it, planners do not look."""
    disk: int | None
    """Bytes of files that rows may take when ``memory`` is short; 0: they stay in memory, None:
    whatever the disk has."""

    def __init__(
        self,
        cpu: float | None = None,
        memory: int | str | None = None,
        probes: float | None = None,
        disk: int | str | None = None,
    ) -> None:
        object.__setattr__(self, "cpu", _positive("cpu", cpu, "a share of a core such as 0.5"))
        object.__setattr__(self, "memory", _bytes("memory", memory))
        object.__setattr__(self, "probes", _positive("probes", probes, "a number per second"))
        none = disk == 0 and not isinstance(disk, bool)
        object.__setattr__(self, "disk", 0 if none else _bytes("disk", disk))

    def __str__(self) -> str:
        parts = []
        if self.cpu is not None:
            parts.append(f"cpu {self.cpu:g} of a core")
        if self.memory is not None:
            parts.append(f"memory {size_text(self.memory)}")
        if self.probes is not None:
            parts.append(f"{self.probes:g} probes/s")
        if self.disk is not None:
            parts.append(f"disk {size_text(self.disk)}" if self.disk else "no disk")
        return ", ".join(parts) or "no limits"

    def to_json(self) -> dict[str, float | int | None]:
        limits = {"cpu": self.cpu, "memory": self.memory, "probes": self.probes}
        return limits if self.disk is None else limits | {"disk": self.disk}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Limits:
        unknown = sorted(set(values) - {"cpu", "memory", "probes", "disk"})
        if unknown:
            raise OptionError(
                f"no limit is called {unknown[0]!r}; they are: cpu, memory, probes, disk"
            )
        return cls(**values)


def size_text(size: float) -> str:
    """A number of bytes for people: ``1.5 GiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} TiB"


def _positive(name: str, value: Any, expected: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise OptionError(f"limit {name}={value!r}: expected {expected}")
    if not math.isfinite(value) or value <= 0:
        raise OptionError(f"limit {name}={value!r} must be more than 0; expected {expected}")
    return float(value)


def _bytes(name: str, value: Any) -> int | None:
    if value is None:
        return None
    expected = "bytes, or a text such as '512MiB' or '2GiB'"
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value)
        unit = match.group(2).upper() if match else None
        if match is None or unit not in _UNITS:
            raise OptionError(
                f"limit {name}={value!r} is no size; expected {expected} "
                "(units: B, KB, MB, GB, TB, KiB, MiB, GiB, TiB)"
            )
        value = float(match.group(1)) * _UNITS[unit]
    checked = _positive(name, value, expected)
    assert checked is not None
    if checked < 1:
        raise OptionError(f"limit {name}={value!r} is less than a byte; expected {expected}")
    return int(checked)


def three_digits(value: float) -> str:
    """At most three digits that count, and never an exponent.

    >>> three_digits(999.7), three_digits(12.34), three_digits(0.0123), three_digits(0.00001)
    ('1000', '12.3', '0.0123', 'under 0.001')
    """
    if value == 0:
        return "0"
    if abs(value) < _SMALLEST_SHOWN:
        return f"under {_SMALLEST_SHOWN}"
    rounded = float(f"{value:.3g}")
    digits = max(0, 2 - math.floor(math.log10(abs(rounded))))
    text = f"{rounded:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
