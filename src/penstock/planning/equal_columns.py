"""Classes of expressions that WHERE makes equal: A.x = B.x and B.x = C.x make one class of three.

The engine probes along classes, not along the text (:mod:`penstock.values.wiring`): A and C above
are linked, and no third comparison is made when all three are together.
"""

from __future__ import annotations

from penstock.query.expression import Expression
from penstock.query.join_graph import EquiPredicate, JoinGraph


def equal_columns(graph: JoinGraph) -> list[list[Expression]]:
    """The transitive closure of the equalities of one block."""
    classes: list[list[Expression]] = []
    for predicate in graph.predicates:
        if isinstance(predicate, EquiPredicate):
            pair = [predicate.left, predicate.right]
            touched = [c for c in classes if pair[0] in c or pair[1] in c]
            merged = list(dict.fromkeys(e for c in [*touched, pair] for e in c))
            classes = [c for c in classes if c not in touched]
            classes.append(merged)
    return classes
