"""Identify_MNS, against the lattice walked node by node as in Figure 8."""

from __future__ import annotations

import random

from penstock_studies.jit.lattice import minimal_unmatched


def figure_8(components: int, matches: list[int]) -> list[int]:
    """``matches``: for each tuple t' of the opposite state, its components that match."""
    nodes = sorted(range(1, 1 << components), key=lambda n: (n.bit_count(), n))
    alive = dict.fromkeys(nodes, True)
    for each in matches:
        matched: dict[int, bool] = {}
        for node in nodes:
            if node.bit_count() == 1:
                matched[node] = bool(node & each)
            else:
                matched[node] = all(matched[child] for child in children(node))
            alive[node] &= not matched[node]
    found: list[int] = []
    non_minimal: set[int] = set()
    for node in nodes:
        if not alive[node]:
            continue
        if any(child in found or child in non_minimal for child in children(node)):
            non_minimal.add(node)
        else:
            found.append(node)
    return found


def children(node: int) -> list[int]:
    bits = [1 << i for i in range(node.bit_length()) if node >> i & 1]
    return [node & ~bit for bit in bits] if len(bits) > 1 else []


def test_the_example_of_section_iv() -> None:
    """e1 matches a and e2 matches c: a and c are dead, ac is alive, and b and d are MNSs."""
    a, b, c, d = 1, 2, 4, 8
    assert minimal_unmatched(4, frozenset({a, c})) == (b, d, a | c)
    assert minimal_unmatched(4, frozenset({a, c}), level=1) == (b, d)


def test_as_the_figure_walks_it() -> None:
    chance = random.Random(0)
    for _ in range(300):
        components = chance.randint(1, 4)
        matches = [chance.randrange(1 << components) for _ in range(chance.randint(1, 6))]
        found = minimal_unmatched(components, frozenset(matches))
        assert list(found) == figure_8(components, matches)
