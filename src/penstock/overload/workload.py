"""What the streams bring: rates, windows and selectivities, from which state sizes follow.

A state over the streams V holds every combination of live tuples that match, so its size is the
product of rate times window over V, times the selectivities inside V (the cost model of JTree,
section 2). Sizes that are known otherwise (ROWS windows, static relations, observed states) are
given in ``sizes`` and take precedence.

A selectivity is the share of pairs that match. Pairs that are not listed have no predicate, hence
1. Predicates that are not independent (three columns in one class of equal columns) are corrected
with ``combined``: the share of all combinations over a set of streams that match.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field

from penstock.errors import OptionError
from penstock.plan.stream_set import StreamSet

Pair = tuple[str, str]


@dataclass(frozen=True)
class Workload:
    """Tuples per second, windows in seconds and shares of matching pairs.

    >>> workload = Workload(
    ...     rates={"A": 10.0, "B": 20.0}, windows={"A": 60.0, "B": 30.0},
    ...     selectivities={("A", "B"): 0.01},
    ... )
    >>> workload.size(StreamSet.of("A")), workload.selectivity({"B"}, {"A"})
    (600.0, 0.01)
    """

    rates: Mapping[str, float]
    windows: Mapping[str, float]
    selectivities: Mapping[Pair, float] = field(default_factory=dict)
    combined: Mapping[StreamSet, float] = field(default_factory=dict)
    sizes: Mapping[StreamSet, float] = field(default_factory=dict)
    _partners: Mapping[str, Mapping[str, float]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for stream, rate in self.rates.items():
            check_number(f"the rate of {stream}", rate)
        for stream, window in self.windows.items():
            if not window > 0:
                raise OptionError(f"the window of {stream} is {window}; it must be above 0 seconds")
        for streams, size in self.sizes.items():
            check_number(f"the size of {streams}", size)
        shares: list[tuple[Iterable[str], float]] = [*self.selectivities.items()]
        for names, share in [*shares, *self.combined.items()]:
            if not 0 <= share <= 1:
                raise OptionError(
                    f"the selectivity of {', '.join(sorted(names))} is {share}; "
                    "it is a share of pairs, from 0 to 1"
                )
        symmetric: dict[str, dict[str, float]] = {}
        for (left, right), share in self.selectivities.items():
            if symmetric.get(left, {}).get(right, share) != share:
                raise OptionError(f"two different selectivities for {left} and {right}")
            symmetric.setdefault(left, {})[right] = share
            symmetric.setdefault(right, {})[left] = share
        object.__setattr__(self, "_partners", symmetric)

    def linked(self, left: Iterable[str], right: Iterable[str]) -> bool:
        """Whether a selectivity is known between the two sides."""
        others = frozenset(right)
        return any(not others.isdisjoint(self._partners.get(stream, ())) for stream in left)

    def selectivity(self, left: Iterable[str], right: Iterable[str]) -> float:
        """The share of pairs of a combination over ``left`` and one over ``right`` that match."""
        mine, theirs = StreamSet(left), StreamSet(right)
        if self.combined:
            both = self.combined.get(mine | theirs)
            apart = self._inside(mine) * self._inside(theirs)
            if both is not None and apart > 0:
                return min(1.0, both / apart)
        return self._across(mine, theirs)

    def size(self, streams: StreamSet) -> float:
        """The size given for ``streams``, or that of the window of a single stream."""
        if streams in self.sizes:
            return self.sizes[streams]
        (stream,) = streams
        for known, what in ((self.rates, "rate"), (self.windows, "window")):
            if stream not in known:
                raise OptionError(
                    f"no {what} for stream {stream}; there is one for {', '.join(known) or 'none'}"
                )
        if math.isinf(self.windows[stream]):
            raise OptionError(
                f"the window of {stream} has no end, so its size does not follow from its rate\n"
                "hint: give the number of tuples that it holds now in sizes"
            )
        return self.rates[stream] * self.windows[stream]

    def _inside(self, streams: StreamSet) -> float:
        if streams in self.combined:
            return self.combined[streams]
        share, rest = 1.0, set(streams)
        while rest:
            stream = rest.pop()
            share *= self._across(rest, (stream,))
        return share

    def _across(self, left: Container[str], right: Iterable[str]) -> float:
        share = 1.0
        for stream in right:
            for other, known in self._partners.get(stream, {}).items():
                if other in left:
                    share *= known
        return share


def check_number(what: str, value: float) -> None:
    """Raise :class:`OptionError` unless ``value`` is finite and not negative."""
    if not (math.isfinite(value) and value >= 0):
        raise OptionError(f"{what} is {value}; it must be a number that is not negative")
