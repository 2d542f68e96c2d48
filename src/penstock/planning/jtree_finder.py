"""JTree-Finder (Algorithm 1): dynamic programming over all jtrees, with both limits pruning.

For every set of streams, by size, each way to partition it gives a join of the parts; a part is
a stream or a plan found before. What exceeds a limit is dropped at once, as costs only grow.

The paper keeps *every* sub-plan within the limits. A cost here is a sum over joins, and a join's
share depends on its parts as sets, so a sub-plan that needs no less CPU and no less memory than
another for the same streams can never be part of a better plan. Keeping only the sub-plans that
are not dominated gives the whole front of CPU against memory, and so the least of either;
``keep="all"`` is the paper's way.

The paper stops when no sub-plan of size k is left. That is wrong: an mjoin over all streams needs
no sub-plan of any size between. Here nothing is concluded from that.

Exponential: the partitions of all subsets of n streams are the Bell number of n + 1 (877 for six
streams, 21,147 for eight). So this is the yardstick for the others, and the last resort for few
streams.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from penstock.planning.block import Block, Cost
from penstock.planning.cost_model import join_cost, shape_cost
from penstock.planning.limits import Limits
from penstock.planning.problem import Candidate, Problem
from penstock.planning.shape import Shape, join, leaf
from penstock.planning.verdict import is_qualified

Keep = Literal["front", "all"]
Entry = tuple[float, float, Shape]
"""CPU and memory of a sub-plan."""


def jtree_finder(problem: Problem, limits: Limits, keep: Keep = "front") -> list[Candidate]:
    """The qualified plans, by CPU: those that are not dominated, or all; empty if there is none."""
    found: list[tuple[Cost, tuple[Shape, ...]]] = [(problem.fixed, ())]
    for block in problem.blocks:
        entries = best_shapes(block, limits, keep)
        found = [
            (cost.plus(Cost(cpu, memory)), (*shapes, shape))
            for cost, shapes in found
            for cpu, memory, shape in entries
        ]
        found = [each for each in found if is_qualified(each[0], limits)]
    candidates = sorted(
        (Candidate(shapes, cost, problem.cross_products) for cost, shapes in found),
        key=lambda c: (c.cost.cpu, c.cost),
    )
    return candidates if keep == "all" else not_dominated(candidates)


def not_dominated(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The front of CPU against memory, by CPU."""
    front: list[Candidate] = []
    for each in sorted(candidates, key=lambda c: (c.cost.cpu, c.cost.memory)):
        if not front or each.cost.memory < front[-1].cost.memory:
            front.append(each)
    return front


def best_shapes(block: Block, limits: Limits, keep: Keep = "front") -> list[Entry]:
    """The shapes of one block within ``limits``."""
    if len(block.windows) == 1:
        alone = leaf(0)
        cost = shape_cost(block, alone)
        return [(cost.cpu, cost.memory, alone)] if is_qualified(cost, limits) else []
    return shapes_over(block, [leaf(i) for i in range(len(block.windows))], limits, keep)


def shapes_over(
    block: Block, units: Sequence[Shape], limits: Limits, keep: Keep = "front"
) -> list[Entry]:
    """The shapes that join ``units``; what is inside these is not counted."""
    most_cpu = limits.cpu if limits.cpu is not None else float("inf")
    most_memory = limits.memory if limits.memory is not None else float("inf")
    count = len(units)
    order = sorted(range(count), key=lambda i: units[i].mask & -units[i].mask)
    found: dict[int, list[Entry]] = {
        1 << position: [(0.0, 0.0, units[i])] for position, i in enumerate(order)
    }
    masks = [0] * (1 << count)
    for chosen in range(1, 1 << count):
        low = chosen & -chosen
        masks[chosen] = masks[chosen ^ low] | units[order[low.bit_length() - 1]].mask
    for chosen in sorted(range(1, 1 << count), key=int.bit_count):
        if chosen in found or not block.is_allowed(masks[chosen]):
            continue
        entries: list[Entry] = []
        for parts in _partitions(chosen, chosen, found):
            cost = join_cost(block, tuple([masks[part] for part in parts]))
            if cost.cpu > most_cpu or cost.memory > most_memory:
                continue
            entries.extend(_combined(cost, [found[part] for part in parts], most_cpu, most_memory))
        if keep == "front":
            entries = _front(entries)
        if entries:
            found[chosen] = entries
    return found.get((1 << count) - 1, [])


def _partitions(
    chosen: int, whole: int, found: dict[int, list[Entry]]
) -> Iterator[tuple[int, ...]]:
    """The partitions of ``chosen`` into parts that have plans, without ``whole`` itself; the parts
    in the order of their first members."""
    low = chosen & -chosen
    rest = chosen ^ low
    others = rest
    while True:
        part = low | others
        if part != whole and part in found:
            if part == chosen:
                yield (part,)
            else:
                for more in _partitions(chosen ^ part, whole, found):
                    yield (part, *more)
        if not others:
            return
        others = (others - 1) & rest


def _combined(
    cost: Cost, choices: Sequence[list[Entry]], most_cpu: float, most_memory: float
) -> list[Entry]:
    """One entry for each choice of sub-plans that stays within the limits."""
    partial: list[tuple[float, float, tuple[Shape, ...]]] = [(cost.cpu, cost.memory, ())]
    for entries in choices:
        partial = [
            (cpu + more_cpu, memory + more_memory, (*shapes, shape))
            for cpu, memory, shapes in partial
            for more_cpu, more_memory, shape in entries
            if cpu + more_cpu <= most_cpu and memory + more_memory <= most_memory
        ]
    return [(cpu, memory, join(shapes)) for cpu, memory, shapes in partial]


def _front(entries: list[Entry]) -> list[Entry]:
    kept: list[Entry] = []
    for each in sorted(entries, key=lambda e: (e[0], e[1])):
        if not kept or each[1] < kept[-1][1]:
            kept.append(each)
    return kept
