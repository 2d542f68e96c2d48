"""What operations cost in a running engine: the unit costs of calibration, put right by its clock.

Calibration measures bare operations on small integers. A query has other keys, other widths, other
caches. The operators of a running tree count their operations and are clocked
(:mod:`penstock.engine.join.stopwatch`), so there is one equation: seconds spent = f · Σ count ·
unit cost. With as many unknowns as there are kinds of operations it could not be solved, and plans
differ in counts far more than kinds differ among each other; so all unit costs are scaled by the
one factor f. What a plan is estimated to cost is then what it costs here.

The clock is a wall clock, which is for people: no decision of the engine rests on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.engine.tree.join_tree import JoinTree
from penstock.planning.unit_costs import UnitCosts

SECONDS_TO_BELIEVE = 0.05
"""CPU seconds of work before its cost per operation is believed: less is noise of the clock."""


def observed_costs(trees: Sequence[JoinTree], costs: UnitCosts) -> UnitCosts | None:
    """``costs`` as they have proved to be since the plan runs; None if that is not long enough."""
    spent = sum(sum(tree.stopwatch.seconds.values()) for tree in trees)
    counted = sum(_counted(tree, costs) for tree in trees)
    if spent < SECONDS_TO_BELIEVE or counted <= 0:
        return None
    factor = spent / counted
    return replace(costs, **{name: factor * value for name, value in costs.to_json().items()})


def _counted(tree: JoinTree, costs: UnitCosts) -> float:
    """Seconds that the operations of ``tree`` should have taken.

    The stopwatch runs from the windows to the results: taking tuples in and fetching the columns of
    results is not in it.
    """
    stored = sum(edge.admitted for edge in tree.edges)
    total = stored * (costs.insert + costs.delete) + tree.stopwatch.laps * costs.step
    for operator in tree.operators:
        for steps in operator.steps:
            for _, step in steps:
                look = costs.probe if step.hashed else len(step.target.rows) * costs.compare
                total += step.probes * look + step.matches * costs.join
    return total
