"""Heaps with deaths against a list that is searched from one end to the other."""

from __future__ import annotations

import random

import numpy as np
import pytest

from penstock.kernels import heap

SPINES = 130
NO_BYTES = np.empty(0, np.uint8)


class Heaps:
    """Heaps in one pool, with the calls that the engine makes."""

    def __init__(self, prune: bool) -> None:
        self.nodes = np.empty((4, heap.WIDTH), np.int64)
        self.head = 0
        self.prune = prune
        self._paths = np.empty(SPINES, np.int64), np.empty(SPINES, np.int64)

    def insert(self, root: int, key: int, death: int, fresh: int) -> int:
        self.nodes = heap.with_room(self.nodes, self.head)
        node, self.head = self.head, self.head + 1
        self.nodes[node] = key, death, -1, -1, 1, 0, -1, 0
        self.nodes, self.head, root = heap.insert(
            self.nodes, self.head, fresh, NO_BYTES, False, self.prune, root, node, *self._paths
        )
        return int(root)

    def pop(self, root: int, fresh: int) -> int:
        self.nodes = heap.with_room(self.nodes, self.head)
        left, right = self.nodes[root, heap.LEFT], self.nodes[root, heap.RIGHT]
        root, self.head = heap.merge(
            self.nodes, self.head, fresh, NO_BYTES, False, left, right, self._paths[0]
        )
        return int(root)

    def least(self, root: int, instant: int, fresh: int) -> tuple[int, int]:
        """The root, and the least key that is alive at ``instant``, or -1."""
        while root >= 0 and self.nodes[root, heap.DEATH] < instant:
            root = self.pop(root, fresh)
        return root, int(self.nodes[root, heap.KEY]) if root >= 0 else -1


def least_of(values: list[tuple[int, int]], instant: int) -> int:
    """The least key of the ``values`` (key, death) that are alive at ``instant``, or -1."""
    return min((key for key, death in values if death >= instant), default=-1)


@pytest.mark.parametrize("prune", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_the_least_of_what_is_alive(seed: int, prune: bool) -> None:
    chance = random.Random(seed)
    heaps, values, root = Heaps(prune), list[tuple[int, int]](), -1
    for instant in range(100):
        for _ in range(chance.randint(0, 3)):
            key, death = chance.randrange(12), instant + chance.randrange(20)
            values.append((key, death))
            root = heaps.insert(root, key, death, fresh=0)
        root, least = heaps.least(root, instant, fresh=0)
        assert least == least_of(values, instant)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_older_than_the_push_is_not_written_to(seed: int) -> None:
    chance = random.Random(seed)
    heaps, values, root = Heaps(prune=False), list[tuple[int, int]](), -1
    for instant in range(60):
        fresh, before = heaps.head, heaps.nodes[: heaps.head].copy()
        new, more = root, list[tuple[int, int]]()
        for _ in range(chance.randint(0, 4)):
            more.append((chance.randrange(9), instant + chance.randrange(15)))
            new = heaps.insert(new, *more[-1], fresh)
        new, least = heaps.least(new, instant, fresh)
        assert least == least_of(values + more, instant)
        assert np.array_equal(heaps.nodes[:fresh], before)
        if chance.random() < 0.6:  # Else the push is taken back.
            root, values = new, values + more


@pytest.mark.parametrize("seed", range(20))
def test_packed_heaps_are_the_same(seed: int) -> None:
    chance = random.Random(seed)
    heaps, groups = Heaps(prune=False), [list[tuple[int, int]]() for _ in range(4)]
    roots = np.full(len(groups), -1, np.int64)
    for _ in range(80):
        group = chance.randrange(3)  # The last one stays empty.
        groups[group].append((chance.randrange(50), chance.randrange(30)))
        roots[group] = heaps.insert(int(roots[group]), *groups[group][-1], fresh=0)
    heaps.nodes, heaps.head = heap.pack(heaps.nodes, heaps.head, NO_BYTES, False, roots, 10)
    assert heaps.head == sum(death >= 10 for values in groups for _, death in values)
    for root, values in zip(roots.tolist(), groups, strict=True):
        top = root
        for instant in range(10, 31):
            top, least = heaps.least(top, instant, fresh=0)
            assert least == least_of(values, instant)
