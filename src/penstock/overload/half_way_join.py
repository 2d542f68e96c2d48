"""A half-way join: the tuples of one input probe one partner state.

A binary join is two half-way joins, ``a ⋉ S_B`` and ``b ⋉ S_A`` (JAQPOT section 2). An mjoin of k
inputs is k(k-1) of them: the new tuples of an input visit the k-1 others in its probe order, and
every visit is one half-way join, probed by what the visits before have made. An input belongs to
one join and visits each other input once, so (origin, target) names a half-way join within a plan;
``probing`` is all that has come together before the visit and equals ``origin`` in a binary join.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.plan.stream_set import StreamSet


@dataclass(frozen=True, slots=True)
class HalfWayJoin:
    """Tuples of the input ``origin``, by now joined to ``probing``, probe the state ``target``."""

    origin: StreamSet
    target: StreamSet
    probing: StreamSet = field(compare=False)

    def __str__(self) -> str:
        """``A B ⋉ C``; what an mjoin has put to its input follows a plus: ``A+B ⋉ C``."""
        visited = "".join(f"+{stream}" for stream in sorted(self.probing - self.origin))
        return f"{_names(self.origin)}{visited} ⋉ {_names(self.target)}"


def _names(streams: StreamSet) -> str:
    return " ".join(sorted(streams))
