"""What a generated case may contain, and how large it may be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

FEATURES = frozenset(
    {
        # windows
        "range",  # windows of different sizes; without it all streams share one
        "now",
        "unbounded",
        "rows",
        "partition",  # PARTITION BY … ROWS
        # predicates
        "multi",  # several equalities per pair
        "theta",
        "single",  # predicates on one stream
        "three",  # predicates over three streams
        "or",
        "key expressions",  # equality of expressions, as in A.v + 1 = B.w
        "cross",  # CROSS JOIN
        # streams and blocks
        "self-join",
        "static",
        "except",
        "group by",
        # emission
        "dstream",
        "rstream",
        # columns
        "key types",  # all types of keys, not only integers
        "mixed types",  # keys of different types compared with each other
        "payload",  # columns of odd Arrow types
        "nulls",
        "special floats",  # NaN, infinities and -0.0 outside of keys
        "select expressions",
        # time
        "time types",  # event time as timestamps of all units, and integers
        "null time",
        "no event time",  # ROWS over streams that have none
        "arrival",  # the column that orders a push
        "skew",  # streams that run ahead of others, with no lateness given
        "lateness",  # out of order, but never late
        "late",  # so far out of order that tuples are dropped
        "watermark",  # the host's own watermark
        "watermark ahead",  # … also beyond all tuples seen
        # batches
        "splits",  # many pushes; without it, one
        "tiny pushes",  # one tuple per push
        "empty batches",
        "chunks",  # tables of several chunks
    }
)
"""All features, by name."""


_TUPLES = {1: 40, 2: 30, 3: 24, 4: 18, 5: 14, 6: 12}


@dataclass(frozen=True)
class Knobs:
    """Limits of the generator.

    ``streams`` is the least and the largest number of streams in FROM; ``tuples`` the largest
    number per source, ``domain`` the number of different key values (both by the number of streams
    if None).
    """

    features: frozenset[str] = FEATURES
    streams: tuple[int, int] = (2, 6)
    tuples: int | None = None
    domain: int | None = None

    def __post_init__(self) -> None:
        unknown = self.features - FEATURES
        if unknown:
            raise ValueError(f"unknown feature {min(unknown)!r}; there are {sorted(FEATURES)}")

    def without(self, features: Iterable[str]) -> Knobs:
        """The same knobs with some features off."""
        return Knobs(self.features - frozenset(features), self.streams, self.tuples, self.domain)

    def tuples_for(self, streams: int) -> int:
        return self.tuples if self.tuples is not None else _TUPLES.get(streams, 6)

    def domain_for(self, streams: int) -> int:
        return self.domain if self.domain is not None else (5 if streams <= 3 else 4)
