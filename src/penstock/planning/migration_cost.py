"""What it costs to go from one plan to another: CPU seconds, once.

A state that both plans have is carried over. Another has to be made of the windows: |S_V|
combinations, which are joined and stored. With JISC that is done on demand, row by row of the
stream x in V whose column is asked for. A row of x that has p partners in an input U of the same
join on average, p = |S_xU| / |S_x|, is asked for with the chance 1 − exp(−p); if no predicate links
U, all are. Sizes are those of the streams as they are now: just after a drift the rows of before
may have more combinations, of which the rows of after ask for few.

Until nothing is missing, every push asks for it first, which is a price per push and state. Rows
that nobody asks for are completed beside pushes, so many for each row that comes, which says how
many pushes that are.

What stays may need an index that it did not have, which takes an insertion per row. And a change
has a price of its own, however small the windows are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from penstock.plan.plan import Plan
from penstock.planning.bits import bits_of
from penstock.planning.block import Block
from penstock.planning.problem import Problem
from penstock.planning.shape import Shape, joins_of

CHANGE = 2e-3
"""CPU seconds for a new tree of operators, and for what is compiled or learnt anew with it."""
ASKING = 2e-4
"""CPU seconds of a push to ask for what one state lacks: 0.1 to 0.4 ms were measured."""
COMPLETED_PER_ROW = 8.0
"""Rows and combinations that are completed beside a push for each of its rows."""
COMPLETING = 3.0
"""Completing a combination against making it in passing: rows come in small lots, by key."""


def migration_cost(problem: Problem, before: Plan, after: Plan) -> float:
    """CPU seconds to migrate from ``before`` to ``after``."""
    if before == after:
        return 0.0
    return change_cost(problem, problem.shapes_of(before), problem.shapes_of(after))


def change_cost(problem: Problem, before: Sequence[Shape], after: Sequence[Shape]) -> float:
    """The same for plans by the shapes of their blocks; also if only probe orders change."""
    made = sum(map(_of_block, problem.blocks, before, after))
    return (
        CHANGE
        + made
        + sum(
            _asking(problem, block, *shapes)
            for block, *shapes in zip(problem.blocks, before, after, strict=True)
        )
    )


def _asking(problem: Problem, block: Block, old: Shape, new: Shape) -> float:
    """CPU seconds to ask for what is missing, in all pushes until nothing is."""
    statistics = problem.statistics
    rows_per_second = sum(statistics.rates.values())
    if not statistics.pushes or not rows_per_second:
        return 0.0
    size, had = block.cardinality.size, _indexes(block, old)
    lives = [float(each) for each in block.cardinality.turnovers if each > 0]
    window = 1 / max(lives) if lives else math.inf
    total, seconds = 0.0, 0.0
    for mask in _indexes(block, new):
        if mask not in had:
            rows = size(mask) + min(size(1 << stream) for stream in bits_of(mask))
            # One after another, until the old rows of the briefest window have died.
            seconds = min(window, seconds + rows / (COMPLETED_PER_ROW * rows_per_second))
            total += ASKING * statistics.pushes * seconds
    return total


def _of_block(block: Block, old: Shape, new: Shape) -> float:
    costs = block.costs
    had, needed = _indexes(block, old), _indexes(block, new)
    total = 0.0
    for mask, keys in needed.items():
        rows = block.share_made(mask) * block.cardinality.size(mask)
        if mask in had:
            total += len(keys - had[mask]) * rows * costs.index
        else:
            more = max(0, len(keys) - 1) * costs.index
            each = COMPLETING * (costs.join + costs.insert) + more
            total += _asked(block, new, mask) * rows * each
    return total


def _asked(block: Block, shape: Shape, mask: int) -> float:
    """The share of the combinations over ``mask`` that somebody asks for."""
    size = block.cardinality.size
    parts = next(node.parts for node in joins_of(shape) if mask in node.parts)
    most = 0.0
    for other in parts:
        if other == mask:
            continue
        rows = [1 << i for i in bits_of(mask) if block.is_linked(1 << i, other)]
        if not rows:
            return 1.0
        most = max(most, *(size(row | other) / size(row) for row in rows if size(row)), 0.0)
    return -math.expm1(-most)


def _indexes(block: Block, shape: Shape) -> dict[int, set[int]]:
    """Every window and stored state of ``shape``, with the keys that it is indexed on."""
    found: dict[int, set[int]] = {}
    for node in joins_of(shape):
        found.update(zip(node.parts, block.index_keys(node.parts), strict=True))
    return found
