"""Classes of what is equal: A.x = B.x and B.x = C.x make one class of three."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

Member = TypeVar("Member", bound=Hashable)


def equality_classes(pairs: Iterable[tuple[Member, Member]]) -> list[list[Member]]:
    """The transitive closure of ``pairs``; classes and members in the order of first mention."""
    classes: dict[int, dict[Member, None]] = {}
    """By the number of the pair that began each; a merged one keeps the first."""
    number_of: dict[Member, int] = {}
    for number, pair in enumerate(pairs):
        touched = sorted({number_of[member] for member in pair if member in number_of})
        kept = touched[0] if touched else number
        merged = classes.setdefault(kept, {})
        for other in touched[1:]:
            merged |= classes.pop(other)
        merged |= dict.fromkeys(pair)
        for member in pair if len(touched) < 2 else merged:
            number_of[member] = kept
    return [list(members) for members in classes.values()]
