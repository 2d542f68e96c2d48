"""An allocation: probes per second for each half-way join, and what they are expected to give.

A value: it can be compared, hashed, logged, written as JSON and read again, and explained.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.overload.flow import Flow
from penstock.overload.half_way_join import HalfWayJoin
from penstock.overload.path_model import PathModel
from penstock.overload.shortfall import Shortfall, StaleStream
from penstock.overload.staleness import staleness
from penstock.plan.stream_set import StreamSet


@dataclass(frozen=True, slots=True)
class Allowance:
    """``probes`` per second for one half-way join."""

    half_way_join: HalfWayJoin
    probes: float


@dataclass(frozen=True, slots=True)
class Allocation:
    """The allowances of every half-way join, bottom-up, with predictions.

    ``staleness`` has, per stream, the greatest age in seconds of its tuples in a result.
    ``freshness_probes`` are the probes spent for freshness alone. ``keep`` is the share of the
    input that is taken in at all: below 1 under load shedding only. ``admitted`` is the same by
    stream, where each has a door of its own.
    """

    allocator: str
    budget: float
    allowances: tuple[Allowance, ...]
    throughput: float
    staleness: tuple[tuple[str, float], ...]
    saturation_resources: float
    saturation_throughput: float
    freshness_probes: float = 0.0
    shortfall: Shortfall | None = None
    keep: float = 1.0
    admitted: tuple[tuple[str, float], ...] = ()

    @property
    def probes(self) -> dict[HalfWayJoin, float]:
        """Probes per second by half-way join."""
        return {each.half_way_join: each.probes for each in self.allowances}

    @property
    def resources(self) -> float:
        """Probes per second in all."""
        return sum(each.probes for each in self.allowances)

    @property
    def feasible(self) -> bool:
        """Whether every freshness predicate holds."""
        return self.shortfall is None

    def to_json(self) -> str:
        """The allocation as a JSON object; :func:`from_json` reads it."""
        return json.dumps(
            {
                "allocator": self.allocator,
                "budget": self.budget,
                "keep": self.keep,
                "admitted": dict(self.admitted),
                "throughput": self.throughput,
                "saturation": {
                    "resources": self.saturation_resources,
                    "throughput": self.saturation_throughput,
                },
                "freshness_probes": self.freshness_probes,
                "staleness": {stream: _number(age) for stream, age in self.staleness},
                "shortfall": None if self.shortfall is None else _shortfall(self.shortfall),
                "half_way_joins": [
                    {
                        "origin": sorted(each.half_way_join.origin),
                        "probing": sorted(each.half_way_join.probing),
                        "target": sorted(each.half_way_join.target),
                        "probes": each.probes,
                    }
                    for each in self.allowances
                ],
            }
        )

    @staticmethod
    def from_json(text: str) -> Allocation:
        """The allocation that :meth:`to_json` has written."""
        found: dict[str, Any] = json.loads(text)
        short = found["shortfall"]
        return Allocation(
            allocator=found["allocator"],
            budget=found["budget"],
            keep=found["keep"],
            admitted=tuple(found["admitted"].items()),
            throughput=found["throughput"],
            saturation_resources=found["saturation"]["resources"],
            saturation_throughput=found["saturation"]["throughput"],
            freshness_probes=found["freshness_probes"],
            staleness=tuple((s, _or_infinite(age)) for s, age in found["staleness"].items()),
            shortfall=None
            if short is None
            else Shortfall(
                _or_infinite(short["needed"]),
                short["budget"],
                tuple(
                    StaleStream(
                        each["stream"],
                        each["wanted"],
                        _or_infinite(each["reached"]),
                        _or_infinite(each["at_best"]),
                    )
                    for each in short["streams"]
                ),
            ),
            allowances=tuple(
                Allowance(
                    HalfWayJoin(
                        StreamSet(each["origin"]),
                        StreamSet(each["target"]),
                        StreamSet(each["probing"]),
                    ),
                    each["probes"],
                )
                for each in found["half_way_joins"]
            ),
        )

    def __str__(self) -> str:
        """The allocation explained: what is spent where, and what comes of it."""
        # Where rows have a price too, a budget is work of all kinds, and no number of probes.
        of_budget = "" if self.admitted else f" of {self.budget:,.1f}"
        lines = [
            f"{self.allocator}: {self.resources:,.1f}{of_budget} probes/s, "
            f"{_percent(self.resources, self.saturation_resources)} of what the whole load needs",
            f"results: {self.throughput:,.1f}/s, "
            f"{_percent(self.throughput, self.saturation_throughput)} of all",
        ]
        if self.keep < 1:
            lines.append(f"input: {_percent(self.keep, 1)} is taken in, the rest is lost")
        lines += [
            f"input: {_percent(share, 1)} of {stream} is taken in, the rest is lost"
            for stream, share in self.admitted
            if share < 1
        ]
        if self.freshness_probes:
            lines.append(
                f"freshness: {self.freshness_probes:,.1f} probes/s, "
                f"{_percent(self.freshness_probes, self.budget)} of the budget"
            )
        width = max(len(str(each.half_way_join)) for each in self.allowances)
        lines += [
            f"  {str(each.half_way_join).ljust(width)}  {each.probes:,.1f} probes/s"
            for each in self.allowances
        ]
        ages = ", ".join(f"{stream} {age:.3g} s" for stream, age in self.staleness)
        lines.append(f"age of the oldest result: {ages}")
        if self.shortfall is not None:
            lines.append(str(self.shortfall))
        return "\n".join(lines)


def allocation(
    allocator: str,
    model: PathModel,
    budget: float,
    found: Flow,
    *,
    freshness_probes: float = 0.0,
    shortfall: Shortfall | None = None,
) -> Allocation:
    """The allocation that makes ``found`` flow."""
    return Allocation(
        allocator=allocator,
        budget=budget,
        allowances=_allowances(found.probes),
        throughput=found.throughput,
        staleness=tuple(staleness(model, found.made).items()),
        saturation_resources=model.saturation_resources,
        saturation_throughput=model.saturation_throughput,
        freshness_probes=freshness_probes,
        shortfall=shortfall,
    )


def _allowances(probes: Mapping[HalfWayJoin, float]) -> tuple[Allowance, ...]:
    return tuple(Allowance(step, each) for step, each in probes.items())


def _shortfall(short: Shortfall) -> dict[str, Any]:
    return {
        "needed": _number(short.needed),
        "budget": short.budget,
        "missing": _number(short.missing),
        "streams": [
            {
                "stream": each.stream,
                "wanted": each.wanted,
                "reached": _number(each.reached),
                "at_best": _number(each.at_best),
            }
            for each in short.streams
        ],
    }


def _number(value: float) -> float | None:
    """JSON has no infinity: null stands for it."""
    return None if value == float("inf") else value


def _or_infinite(value: float | None) -> float:
    return float("inf") if value is None else value


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "0 %"
