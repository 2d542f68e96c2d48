"""The overload policy of an engine, as a value: what happens when there is too little CPU.

- ``exact``: nothing is ever skipped. Falling behind is told, not avoided.
- ``shed``: tuples are stored and purged as ever, but only as many probe as the budget allows; with
  a share of a core, some may not be taken in at all. What that would have found is lost, and
  estimated.
- ``defer``: as ``shed``, but a probe that was not made is owed. It is made up for when there is
  budget left, as long as its results are fresh.

The budget is given by one of three clocks. ``probes``: per second of event time (on the arrival
line: per arrival). ``cpu``: a share of a core, that is CPU seconds per second in which tuples
arrive, by event time or by the clock, whichever is more. ``seconds``: of wall time per push, for
hosts with a trigger interval. Seconds become work through what that costs as measured
(:mod:`penstock.engine.overload.probe_cost`). A host may also give the probes of each push itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

from penstock.errors import OptionError

Policy = Literal["exact", "shed", "defer"]
Chosen = Literal["random", "newest", "correlated"]

_ALLOCATOR = "lifespan-greedy"
AT_RANDOM = "random-shedding"
"""The floor: of all streams the same share is taken in, drawn at random."""


@dataclass(frozen=True, slots=True)
class Overload:
    """What to do with too little CPU.

    ``choice`` tells which tuples get the probes: ``random`` ones, the ``newest``, or those with the
    most expected matches by their ``correlated`` event times. With the latter two a share ``audit``
    of the probes is drawn at random, to know what is lost. ``allocator`` divides the probes among
    half-way joins (:data:`penstock.overload.ALLOCATORS`). Up to ``burst`` seconds' worth of unused
    budget is saved for later (with ``seconds`` none). ``seed`` makes
    draws repeatable.
    """

    policy: Policy = "exact"
    probes: float | None = None
    cpu: float | None = None
    seconds: float | None = None
    choice: Chosen = "random"
    audit: float = 0.1
    allocator: str = _ALLOCATOR
    burst: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        _one_of("overload", self.policy, get_args(Policy))
        _one_of("choice", self.choice, get_args(Chosen))
        if self.allocator != _ALLOCATOR:
            from penstock.overload.allocators import ALLOCATORS

            _one_of("allocator", self.allocator, tuple(ALLOCATORS))
        for name in ("probes", "cpu", "seconds"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and value > 0):
                raise OptionError(f"{name}={value!r} of an overload policy must be more than 0")
        given = [n for n in ("probes", "cpu", "seconds") if getattr(self, n) is not None]
        if self.allocator == AT_RANDOM and (self.policy != "shed" or given != ["cpu"]):
            raise OptionError(
                f"allocator={AT_RANDOM!r} leaves rows at the door: it needs the policy 'shed' and "
                "a budget of cpu"
            )
        if len(given) > 1:
            raise OptionError(f"an overload policy has one budget; {' and '.join(given)} are given")
        if not (_is_number(self.audit) and 0 < self.audit <= 1):
            raise OptionError(f"audit={self.audit!r} is a share of the probes: above 0, up to 1")
        if not (_is_number(self.burst) and self.burst >= 0):
            raise OptionError(f"burst={self.burst!r} must be 0 or more seconds")
        if not isinstance(self.seed, int) or isinstance(self.seed, bool) or self.seed < 0:
            raise OptionError(f"seed={self.seed!r} must be a whole number, 0 or more")

    @property
    def has_budget(self) -> bool:
        return not (self.probes is self.cpu is self.seconds is None)

    def within(self, limits: Any) -> Overload:
        """The same with the budget of ``limits``, if it has none of its own."""
        if self.has_budget or limits is None:
            return self
        if limits.probes is not None:
            return replace(self, probes=limits.probes)
        return replace(self, cpu=limits.cpu)

    def to_json(self) -> dict[str, Any]:
        """As plain values, which :meth:`of` reads."""
        return asdict(self)

    @classmethod
    def of(cls, option: Any) -> Overload:
        """The meaning of the option ``overload``."""
        if isinstance(option, Overload):
            return option
        if isinstance(option, Mapping):
            for name in option:
                _one_of(
                    "option of an overload policy", name, tuple(each.name for each in fields(cls))
                )
            return cls(**option)
        _one_of("overload", option, get_args(Policy), ", or give an Overload")
        return cls(option)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _one_of(name: str, value: Any, known: tuple[str, ...], more: str = "") -> None:
    if value not in known:
        raise OptionError(
            f"{name}={value!r} does not exist; choose from: "
            f"{', '.join(map(repr, sorted(known)))}{more}"
        )


EXACT = Overload()
