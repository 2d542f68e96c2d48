"""Classes of expressions that WHERE makes equal: A.x = B.x and B.x = C.x make one class of three.

The engine probes along classes, not along the text (:mod:`penstock.values.wiring`): A and C above
are linked, and no third comparison is made when all three are together.
"""

from __future__ import annotations

from penstock.query.equality_classes import equality_classes
from penstock.query.expression import Expression
from penstock.query.join_graph import EquiPredicate, JoinGraph


def equal_columns(graph: JoinGraph) -> list[list[Expression]]:
    """The transitive closure of the equalities of one block."""
    return equality_classes(
        (predicate.left, predicate.right)
        for predicate in graph.predicates
        if isinstance(predicate, EquiPredicate)
    )
