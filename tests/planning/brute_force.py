"""All jtrees of a query and their costs, the slow way: what JTree-Finder has to agree with.

Knows the statistics and the cost model's definition, and shares no code with the planners. Streams
are names, trees nested frozensets of names, selectivities products over pairs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from penstock.planning.unit_costs import UnitCosts

Tree = str | frozenset["Tree"]
Pairs = dict[frozenset[str], float]


@dataclass(frozen=True)
class World:
    rates: dict[str, float]
    windows: dict[str, float]
    shares: Pairs
    costs: UnitCosts
    cross_products: bool

    def linked(self, left: frozenset[str], right: frozenset[str]) -> bool:
        return any(frozenset((a, b)) in self.shares for a in left for b in right)

    def connected(self, streams: frozenset[str]) -> bool:
        reached = {min(streams)}
        while True:
            more = {s for s in streams - reached if self.linked(frozenset(reached), frozenset([s]))}
            if not more:
                return reached == streams
            reached |= more

    def size(self, streams: frozenset[str]) -> float:
        share = math.prod(v for pair, v in self.shares.items() if pair <= streams)
        return share * math.prod(self.rates[s] * self.windows[s] for s in streams)

    def rate(self, streams: frozenset[str]) -> float:
        share = math.prod(v for pair, v in self.shares.items() if pair <= streams)
        return sum(
            share
            * self.rates[born]
            * math.prod(self.rates[s] * self.windows[s] for s in streams if s != born)
            for born in streams
        )

    def allowed(self, streams: frozenset[str]) -> bool:
        if self.cross_products or self.connected(streams):
            return True
        parts = self.components()
        return len(parts) > 1 and all(p <= streams or not p & streams for p in parts)

    def components(self) -> list[frozenset[str]]:
        found = []
        left = set(self.rates)
        while left:
            part = max(
                (
                    frozenset(s)
                    for n in range(1, len(left) + 1)
                    for s in itertools.combinations(sorted(left), n)
                    if min(left) in s and self.connected(frozenset(s))
                ),
                key=len,
            )
            found.append(part)
            left -= part
        return found


def streams_of(tree: Tree) -> frozenset[str]:
    if isinstance(tree, str):
        return frozenset([tree])
    return frozenset(s for each in tree for s in streams_of(each))


def partitions(items: list[str]) -> Iterator[list[list[str]]]:
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for smaller in partitions(rest):
        yield [[first], *smaller]
        for i in range(len(smaller)):
            yield [*smaller[:i], [first, *smaller[i]], *smaller[i + 1 :]]


def all_trees(streams: list[str], world: World) -> Iterator[Tree]:
    if len(streams) == 1:
        yield streams[0]
        return
    if not world.allowed(frozenset(streams)):
        return
    for parts in partitions(streams):
        if len(parts) > 1:
            for chosen in itertools.product(*(list(all_trees(p, world)) for p in parts)):
                yield frozenset(chosen)


def cost(tree: Tree, world: World) -> tuple[float, float]:
    """CPU and tuples."""
    if isinstance(tree, str):
        return 0.0, 0.0
    cpu = memory = 0.0
    inputs = [streams_of(each) for each in tree]
    for each in tree:
        below = cost(each, world)
        cpu, memory = cpu + below[0], memory + below[1]
    for mine in inputs:
        others = [other for other in inputs if other != mine]
        key_lists = {
            frozenset(pair for pair in world.shares if pair & mine and pair & other)
            for other in others
        }
        indexes = len(key_lists - {frozenset()})
        stored = world.costs.insert + world.costs.delete if len(mine) > 1 else world.costs.window
        stored += max(0, indexes - 1) * world.costs.index
        cpu += world.rate(mine) * stored + _probes(mine, others, world)
        memory += world.size(mine)
    return cpu, memory


def _probes(start: frozenset[str], others: list[frozenset[str]], world: World) -> float:
    return min(_walk(start, order, world) for order in _orders(start, others, world))


def _orders(
    together: frozenset[str], left: list[frozenset[str]], world: World
) -> Iterator[tuple[frozenset[str], ...]]:
    if not left:
        yield ()
        return
    near = [each for each in left if world.linked(together, each)]
    for first in left if world.cross_products else near or left:
        rest = [each for each in left if each != first]
        for order in _orders(together | first, rest, world):
            yield (first, *order)


def _walk(start: frozenset[str], order: tuple[frozenset[str], ...], world: World) -> float:
    passing = world.rate(start)
    together = start
    total = 0.0
    for each in order:
        crossing = math.prod(
            v for pair, v in world.shares.items() if pair & together and pair & each
        )
        hashed = world.linked(together, each)
        total += passing * (world.costs.probe if hashed else world.size(each) * world.costs.compare)
        passing *= world.size(each) * crossing
        together |= each
        total += passing * world.costs.join
    return total
