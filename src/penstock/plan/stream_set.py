"""The set of streams that a state or a sub-plan covers: one key for "who has these streams?"."""

from __future__ import annotations

from collections.abc import Iterable


class StreamSet(frozenset[str]):
    """An immutable set of stream aliases, printed as ``{A, B}`` in alphabetical order."""

    __slots__ = ()

    @classmethod
    def of(cls, *streams: str) -> StreamSet:
        return cls(streams)

    @classmethod
    def union_of(cls, sets: Iterable[StreamSet]) -> StreamSet:
        return cls(stream for each in sets for stream in each)

    def __or__(self, other: object) -> StreamSet:
        if not isinstance(other, frozenset):
            return NotImplemented
        return StreamSet(frozenset.__or__(self, other))

    def __str__(self) -> str:
        return "{" + ", ".join(sorted(self)) + "}"

    def __repr__(self) -> str:
        return f"StreamSet.of({', '.join(map(repr, sorted(self)))})"
