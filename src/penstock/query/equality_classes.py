"""Classes of what is equal: A.x = B.x and B.x = C.x make one class of three."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

Member = TypeVar("Member", bound=Hashable)


def equality_classes(pairs: Iterable[tuple[Member, Member]]) -> list[list[Member]]:
    """The transitive closure of ``pairs``; classes and members in the order of first mention."""
    classes: list[list[Member]] = []
    for pair in pairs:
        touched = [c for c in classes if pair[0] in c or pair[1] in c]
        merged = list(dict.fromkeys(member for c in [*touched, pair] for member in c))
        position = classes.index(touched[0]) if touched else len(classes)
        classes = [c for c in classes if c not in touched]
        classes.insert(position, merged)
    return classes
