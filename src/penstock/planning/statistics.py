"""One immutable snapshot of what is known about the streams: all that a planner sees of the data.

What is not given is derived or assumed when a problem is made of it, and the assumption is told
(:mod:`penstock.planning.problem`). Nothing here knows a query: names are checked against one there.
"""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from penstock.errors import OptionError
from penstock.plan.stream_set import StreamSet
from penstock.planning.unit_costs import UnitCosts

Key = TypeVar("Key", bound="str | tuple[str, ...] | StreamSet")

DAY = 86_400.0


@dataclass(frozen=True, init=False)
class Statistics:
    """Rates, selectivities and sizes at one moment.

    >>> statistics = Statistics(rates={"A": 20.0, "B": 5}, selectivities={("B", "A"): 0.05})
    >>> statistics.selectivities[StreamSet.of("A", "B")]
    0.05
    """

    rates: Mapping[str, float]
    """Tuples per second that arrive, by stream (its alias; the name of its source will do)."""
    selectivities: Mapping[StreamSet, float]
    """The share of all pairs that match, by pair of streams; given as ``{("A", "B"): 0.05}``.

    A set of one is the share of tuples that pass the predicates on this stream alone. A set of
    three or more is the share that passes the predicates that need all of them.
    """
    observed: Mapping[StreamSet, float]
    """The share of all combinations of these streams that match, as seen in a state or a result.

    Predicates that are correlated make it another number than the product of the pairs; where it
    is known it is preferred.
    """
    sizes: Mapping[StreamSet, float]
    """Rows that windows and states hold. Needed for static relations: ``{"T": 500}``."""
    distinct: Mapping[tuple[str, str], float]
    """Different values of a column: ``{("A", "k"): 50}``."""
    widths: Mapping[str, float]
    """Bytes of a tuple in its window, without indexes; derived from the types if not given."""
    demand: Mapping[StreamSet, float]
    """With feedback: the share of a state's partial results that somebody asked for."""
    costs: UnitCosts | None
    """CPU seconds per operation, as measured in a running engine or by calibration."""
    pushes: float
    """Batches per second; 0 if their fixed cost is to be left out."""
    horizon: float
    """Seconds for which an UNBOUNDED window has collected, where its size is not known."""

    def __init__(
        self,
        rates: Mapping[str, float],
        selectivities: Mapping[Any, float] | None = None,
        observed: Mapping[Any, float] | None = None,
        sizes: Mapping[Any, float] | None = None,
        distinct: Mapping[tuple[str, str], float] | None = None,
        widths: Mapping[str, float] | None = None,
        demand: Mapping[Any, float] | None = None,
        costs: UnitCosts | None = None,
        pushes: float = 0.0,
        horizon: float = DAY,
    ) -> None:
        """Streams that belong together are given as a tuple of names in any order, or a set."""
        if costs is not None and not isinstance(costs, UnitCosts):
            raise OptionError(f"costs are UnitCosts, not {type(costs).__name__}")
        values = {
            "rates": _checked("rates", rates, _stream, _at_least_zero),
            "selectivities": _checked("selectivities", selectivities or {}, _streams, _share),
            "observed": _checked("observed", observed or {}, _streams, _share),
            "sizes": _checked("sizes", sizes or {}, _streams, _at_least_zero),
            "distinct": _checked("distinct", distinct or {}, _column, _at_least_one),
            "widths": _checked("widths", widths or {}, _stream, _at_least_zero),
            "demand": _checked("demand", demand or {}, _streams, _share),
            "costs": costs,
            "pushes": _at_least_zero("pushes", pushes),
            "horizon": _at_least_zero("horizon", horizon),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __hash__(self) -> int:
        return hash(self.to_text())

    def __reduce__(self) -> tuple[Callable[[dict[str, Any]], Statistics], tuple[dict[str, Any]]]:
        return Statistics.from_json, (self.to_json(),)

    def to_json(self) -> dict[str, Any]:
        """Plain lists and dictionaries; :meth:`from_json` makes an equal snapshot of them."""

        def by_set(values: Mapping[StreamSet, float]) -> list[list[Any]]:
            return sorted([sorted(streams), value] for streams, value in values.items())

        return {
            "rates": dict(sorted(self.rates.items())),
            "selectivities": by_set(self.selectivities),
            "observed": by_set(self.observed),
            "sizes": by_set(self.sizes),
            "distinct": sorted([list(key), value] for key, value in self.distinct.items()),
            "widths": dict(sorted(self.widths.items())),
            "demand": by_set(self.demand),
            "costs": None if self.costs is None else self.costs.to_json(),
            "pushes": self.pushes,
            "horizon": self.horizon,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Statistics:
        """The snapshot that :meth:`to_json` wrote; what is left out is not known."""
        known = cls.__dataclass_fields__
        given = dict(values)
        for name in given:
            if name not in known:
                raise OptionError(f"no statistic is called {name!r}; they are: {', '.join(known)}")
        if "rates" not in given:
            raise OptionError("statistics need rates: tuples per second by stream")
        for name in ("selectivities", "observed", "sizes", "distinct", "demand"):
            if name in given:
                given[name] = _pairs(name, given[name])
        if given.get("costs") is not None:
            given["costs"] = UnitCosts.from_json(given["costs"])
        return cls(**given)

    def to_text(self) -> str:
        return json.dumps(self.to_json())

    @classmethod
    def from_text(cls, text: str) -> Statistics:
        try:
            values = json.loads(text)
        except json.JSONDecodeError as problem:
            raise OptionError(f"statistics are no JSON: {problem}") from None
        if not isinstance(values, dict):
            raise OptionError(f"statistics are a JSON object, not {type(values).__name__}")
        return cls.from_json(values)


def _pairs(name: str, entries: Any) -> dict[Any, Any]:
    try:
        return {tuple(key): value for key, value in entries}
    except (TypeError, ValueError):
        raise OptionError(
            f"{name} are a list of [[stream, …], number], not {entries!r:.80}"
        ) from None


def _checked(
    name: str,
    values: Any,
    key_of: Callable[[str, Any], Key],
    check: Callable[[str, Any], float],
) -> Mapping[Key, float]:
    if not isinstance(values, Mapping):
        raise OptionError(f"{name} are a mapping, not {type(values).__name__}")
    found: dict[Key, float] = {}
    for given, value in values.items():
        key = key_of(name, given)
        number = check(f"{name} of {given!r}", value)
        if found.get(key, number) != number:
            raise OptionError(f"{name} of {key} are given twice, as {found[key]:g} and {number:g}")
        found[key] = number
    return MappingProxyType(found)


def _stream(name: str, key: Any) -> str:
    if not isinstance(key, str) or not key:
        raise OptionError(f"{name} are given by the name of a stream, not {key!r}")
    return key


def _streams(name: str, key: Any) -> StreamSet:
    names = (key,) if isinstance(key, str) else key
    if (
        not isinstance(names, Iterable)
        or not (listed := list(names))
        or not all(isinstance(each, str) and each for each in listed)
    ):
        raise OptionError(f"{name} are given by streams such as ('A', 'B'), not {key!r}")
    if len(set(listed)) < len(listed):
        raise OptionError(
            f"{name} of {key!r} name a stream twice; in a self-join give the two aliases"
        )
    return StreamSet(listed)


def _column(name: str, key: Any) -> tuple[str, str]:
    if not isinstance(key, tuple) or len(key) != 2 or not all(isinstance(k, str) for k in key):
        raise OptionError(f"{name} values are given by (stream, column), not {key!r}")
    return key


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise OptionError(f"{name}: expected a number, not {value!r}")
    if not math.isfinite(value):
        raise OptionError(f"{name}: expected a finite number, not {value!r}")
    return float(value)


def _at_least_zero(name: str, value: Any) -> float:
    if (number := _number(name, value)) < 0:
        raise OptionError(f"{name}: expected 0 or more, not {value!r}")
    return number


def _at_least_one(name: str, value: Any) -> float:
    if (number := _number(name, value)) < 1:
        raise OptionError(f"{name}: expected 1 or more, not {value!r}")
    return number


def _share(name: str, value: Any) -> float:
    if not 0 <= (number := _number(name, value)) <= 1:
        raise OptionError(f"{name}: expected a share between 0 and 1, not {value!r}")
    return number
