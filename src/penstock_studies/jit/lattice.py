"""Identify_MNS (Figure 8): the minimal sub-tuples that no tuple of the opposite state matches.

A candidate sub-tuple (CNS) is a set of components, here a bit mask. By property (ii) of section
IV.A a tuple t' of the opposite state matches exactly the subsets of the set of components that it
matches one by one. So it is enough to know which such sets occurred: a node of the lattice is dead
if it is a subset of one of them, alive otherwise, and an MNS if it is alive and all its children
are dead.

Line 14 of the figure reports every node whose children are neither MNS nor non-minimal, dead ones
included; the text says "for each alive node", which is what is done here.
"""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=4096)
def minimal_unmatched(
    components: int, seen: frozenset[int], level: int | None = None
) -> tuple[int, ...]:
    """The MNSs among ``components`` components, level by level, up to ``level``.

    ``seen`` are the sets of components that tuples of the opposite state match.
    """
    found: list[int] = []
    for node in sorted(range(1, 1 << components), key=lambda n: (n.bit_count(), n)):
        if level is not None and node.bit_count() > level:
            break
        is_dead = any(node & each == node for each in seen)
        is_minimal = not any(node & smaller == smaller for smaller in found)
        if not is_dead and is_minimal:
            found.append(node)
    return tuple(found)
