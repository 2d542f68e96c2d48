"""What operations cost in a running engine: calibrated costs, put right by the CPU clock.

Steps count probes and matches, edges what is stored, the engine rows, results and pushes. So of the
pushes between two looks at these counts it is known what they should have cost by the calibrated
costs, for each kind of work; and what they did cost is measured by the CPU clock of the thread.
:mod:`penstock.planning.fitted_costs` makes of it what each kind costs here.

Pushes in which the plan changed, or completed what it lacked, are left out: nobody counts that. Nor
are tests of further conditions, and of guards, counted: what they cost is taken for that of the
probes which they go with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from penstock.engine.join.join_step import JoinStep
from penstock.engine.tree.join_tree import JoinTree
from penstock.plan.plan import Leaf
from penstock.planning.calibrated import calibrated_costs
from penstock.planning.fitted_costs import FittedCosts, Work
from penstock.planning.problem import FIRST_COLUMNS
from penstock.planning.unit_costs import UnitCosts
from penstock.query.join_graph import JoinGraph

SECONDS_TO_BELIEVE = 0.005
"""CPU seconds of work before it is compared: of less, the small pushes that are not measured but
taken for others are too large a share."""


class Counting(Protocol):
    """The engine, as far as its work is counted."""

    query: JoinGraph

    @property
    def trees(self) -> Sequence[JoinTree]:
        """The running tree of each block."""

    @property
    def rows(self) -> int:
        """Rows taken in since the start."""

    @property
    def pushes(self) -> int:
        """Pushes since the start."""

    @property
    def results(self) -> int:
        """Rows of the answer since the start."""


class ObservedCosts:
    """Fits unit costs to what the pushes of one engine have cost."""

    def __init__(self, calibrated: UnitCosts | None = None) -> None:
        self._calibrated = calibrated
        self._fit: FittedCosts | None = None
        self._spent = 0.0
        """CPU seconds of pushes since the counts were looked at."""
        self._trees: list[JoinTree] = []
        self._steps: list[tuple[JoinStep, bool]] = []
        """Those of all trees, and whether what passes is a result."""
        self._before: list[float] = []

    def note(self, seconds: float) -> None:
        """A push took so many CPU seconds."""
        self._spent += seconds

    @property
    def costs(self) -> UnitCosts | None:
        """What operations cost; None if not enough was seen."""
        fit = self._fit
        return None if fit is None or not fit.observations else fit.costs

    def look(self, engine: Counting) -> float:
        """Learn from the work since the last call. By which factor such work is priced higher now
        than before."""
        trees = list(engine.trees)
        is_whole = not any(tree.missing for tree in trees)
        is_same = len(trees) == len(self._trees) and all(
            one is other for one, other in zip(trees, self._trees, strict=True)
        )
        if is_same and is_whole and self._spent < SECONDS_TO_BELIEVE:
            return 1.0
        factor = 1.0
        if is_same and is_whole and self._before:
            if self._fit is None:
                self._fit = FittedCosts(self._calibrated or calibrated_costs() or UnitCosts())
            factor = self._fit.observe(self._work(engine), self._spent)
        self._begin(engine, trees if is_whole else [])
        return factor

    def _begin(self, engine: Counting, trees: list[JoinTree]) -> None:
        self._trees, self._spent = trees, 0.0
        self._steps = [
            (step, operator is tree.operators[-1] and number == len(steps) - 1 and tree is trees[0])
            for tree in trees
            for operator in tree.operators
            for steps in operator.steps
            for number, (_, step) in enumerate(steps)
        ]
        self._before = self._counts(engine)

    def _counts(self, engine: Counting) -> list[float]:
        stored = sum(
            edge.admitted
            for tree in self._trees
            for edge in tree.edges
            if not isinstance(edge.node, Leaf)
        )
        own: list[float] = [engine.rows, engine.pushes, engine.results, stored]
        for step, _ in self._steps:
            own += (step.probes, step.matches)
        return own

    def _work(self, engine: Counting) -> Work:
        """What the work since the last look should have cost."""
        fit, query = self._fit, engine.query
        assert fit is not None
        costs = fit.calibrated
        now = self._counts(engine)
        done = [new - old for new, old in zip(now, self._before, strict=True)]
        rows, pushes, results, stored = done[:4]
        probing = made = 0.0
        for place, (step, is_last) in enumerate(self._steps):
            probes, matches = done[4 + 2 * place : 6 + 2 * place]
            look = costs.probe if step.hashed else len(step.target.rows) * costs.compare
            probing += probes * look + matches * costs.join
            made += matches if is_last else 0.0
        made = made if self._steps else results
        keeping = rows * (costs.arrival + costs.window) + stored * (costs.insert + costs.delete)
        streams = sum(len(tree.leaves) for tree in self._trees)
        fixed = pushes * (costs.call + streams * costs.push + len(self._steps) * costs.step)
        if query.is_grouped:
            valued = sum(each.argument is not None for each in query.aggregates)
            output = made * (costs.group + valued * costs.aggregate) + results * costs.answer
            fixed += pushes * costs.grouping
        else:
            more = max(0, len(query.select) - FIRST_COLUMNS)
            output = made * (costs.result + more * costs.column)
        return Work(probing, keeping, output, fixed)
