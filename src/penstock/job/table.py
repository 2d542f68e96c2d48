"""One table of a job file, read key by key.

Every key is taken once, with the type it must have; :meth:`Table.end` refuses what is left over,
since a key that nobody reads is a typing error. Texts may name variables of the environment:
``${NAME}``, or ``${NAME:-otherwise}``.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.errors import OptionError
from penstock.job.mistake import did_you_mean, listed, mistake, shown
from penstock.job.redaction import NOT_SHOWN, is_secret, note_secret

UNITS = {"MILLISECOND": 1, "SECOND": 1_000, "MINUTE": 60_000, "HOUR": 3_600_000, "DAY": 86_400_000}
SIZES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}

_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


class Table:
    """The table called ``name`` (empty for the top) of the job file ``file``."""

    def __init__(
        self,
        file: str,
        name: str,
        values: Mapping[str, Any],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._file = file
        self._name = name
        self._values = dict(values)
        self._known: list[str] = []
        self._environment = os.environ if environment is None else environment
        self._as_written: dict[str, str] = {}
        """Texts of the file with the names of variables, by what became of them."""

    def where(self, key: str = "") -> str:
        """The place of ``key`` for messages."""
        place = ".".join(part for part in (self._name, key) if part)
        return f"{self._file}: {place}" if place else self._file

    def wrong(self, key: str, found: Any, expected: str, hint: str | None = None) -> OptionError:
        """The error for a value of ``key``."""
        told = NOT_SHOWN if is_secret(key) else self._as_written.get(str(found)) or shown(found)
        return mistake(self.where(key), told, expected, hint)

    def missing(self, key: str, expected: str, hint: str | None = None) -> OptionError:
        return mistake(self.where(key), "nothing", expected, hint)

    def take(self, key: str) -> Any:
        """The raw value of ``key``, or None."""
        self._known.append(key)
        return self._values.pop(key, None)

    def text(self, key: str, expected: str = "a text") -> str | None:
        value = self.take(key)
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(key, value, expected)
        return self._filled(key, value)

    def required_text(self, key: str, expected: str) -> str:
        value = self.text(key, expected)
        if value is None:
            found = next((k for k in self._values if did_you_mean(k, [key])), None)
            hint = None if found is None else f"there is {shown(found)}: did you mean {key}?"
            raise self.missing(key, expected, hint)
        return value

    def choice(self, key: str, choices: Sequence[str]) -> str | None:
        value = self.text(key, f"one of {listed(choices)}")
        if value is not None and value not in choices:
            raise self.wrong(key, value, f"one of {listed(choices)}", did_you_mean(value, choices))
        return value

    def flag(self, key: str) -> bool:
        value = self.take(key)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(key, value, "true or false")
        return bool(value)

    def number(self, key: str, expected: str, may_be_none: bool = False) -> float | None:
        """A number above 0; or 0, if there may be none."""
        value = self.take(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(key, value, expected)
        if not 0 <= value < math.inf or not (value or may_be_none):
            raise self.wrong(key, value, expected)
        return float(value)

    def texts(self, key: str, expected: str) -> tuple[str, ...]:
        value = self.take(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not value:
            raise self.wrong(key, value, expected)
        for each in value:
            if not isinstance(each, str) or not each.strip():
                raise self.wrong(key, each, expected)
        return tuple(self._filled(key, each) for each in value)

    def duration(self, key: str) -> int | None:
        """A duration in milliseconds, written as ``"5 SECONDS"``."""
        value = self.text(key, _DURATION)
        return None if value is None else self.milliseconds(key, value)

    def milliseconds(self, key: str, value: str) -> int:
        match = _QUANTITY.fullmatch(value)
        unit = match[2].upper().removesuffix("S") if match else ""
        if match is None or unit not in UNITS:
            hint = did_you_mean(match[2], [f"{u}S" for u in UNITS], 0.6) if match else None
            raise self.wrong(key, value, _DURATION, hint)
        return self._whole(key, value, float(match[1]) * UNITS[unit], _DURATION)

    def size(self, key: str, may_be_none: bool = False) -> int | None:
        """A number of bytes, written as ``"2 GB"`` or as a whole number; 0 if there may be none."""
        value = self.take(key)
        if value is None:
            return None
        expected = 'a size such as "512 MB" (B, KB, MB, GB, KiB, MiB, GiB) or a number of bytes'
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1 - may_be_none:
            return value
        match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
        if match is None or match[2].upper() not in SIZES:
            raise self.wrong(key, value, expected)
        return self._whole(key, value, float(match[1]) * SIZES[match[2].upper()], expected)

    def settings(self, key: str) -> dict[str, str]:
        """A table of settings as Spark takes them: texts by name, dots for nested tables."""
        value = self.take(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.wrong(key, value, "a table of names and values")
        found: dict[str, str] = {}
        for name, each in value.items():
            place = f"{key}.{name}"
            if isinstance(each, dict):
                inner = Table(self._file, self._name, {place: each}, self._environment)
                found |= {f"{name}.{k}": v for k, v in inner.settings(place).items()}
            elif isinstance(each, bool | int | float):
                found[name] = shown(each)
            elif isinstance(each, str):
                found[name] = self._filled(place, each)
                if is_secret(name):
                    note_secret(found[name])
            else:
                raise self.wrong(place, each, "a text, a number, true or false")
        return found

    def holds_table(self, key: str) -> bool:
        """Whether the value of ``key``, which is not taken by this, is a table."""
        return isinstance(self._values.get(key), dict)

    def table(self, key: str) -> Table | None:
        value = self.take(key)
        if value is None:
            return None
        return self._inner(key, value)

    def tables(self, key: str) -> dict[str, Table]:
        """The tables inside the table ``key``, by name."""
        value = self.take(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.wrong(key, value, f"tables [{key}.NAME]")
        return {name: self._inner(f"{key}.{name}", each) for name, each in value.items()}

    def end(self) -> None:
        """Refuse the keys that nobody has taken."""
        for key in self._values:
            hint = did_you_mean(key, self._known)
            raise mistake(
                self.where(key), "an unknown key", f"one of {listed(sorted(self._known))}", hint
            )

    def _inner(self, key: str, value: Any) -> Table:
        if not isinstance(value, dict):
            raise self.wrong(key, value, f"a table [{key}]")
        name = ".".join(part for part in (self._name, key) if part)
        return Table(self._file, name, value, self._environment)

    def _filled(self, key: str, text: str) -> str:
        """``text`` with the variables of the environment in place."""

        def value_of(match: re.Match[str]) -> str:
            value = self._environment.get(match[1])
            if value is not None:
                note_secret(value, f"${{{match[1]}}}")
            else:
                value = match[2]
            if value is None:
                raise mistake(
                    self.where(key),
                    match[0],
                    f"the variable {match[1]} in the environment",
                    f"set it, or give a value for the case that it is not: ${{{match[1]}:-…}}",
                )
            return value

        filled = _VARIABLE.sub(value_of, text)
        if filled != text:
            self._as_written[filled] = shown(text)
        return filled

    def _whole(self, key: str, value: Any, number: float, expected: str) -> int:
        if number != int(number) or number > 2**52:
            raise self.wrong(key, value, expected)
        return int(number)


_DURATION = f'a duration such as "5 SECONDS" ({listed(f"{unit}S" for unit in UNITS)})'
