"""The plan that an engine begins with: the one that was given, or one that cannot go very wrong."""

from __future__ import annotations

from penstock.engine.control.eddy import Eddy
from penstock.errors import OptionError
from penstock.plan.notation import read
from penstock.plan.plan import Join, Leaf, Node, Plan, block_of
from penstock.query.join_graph import JoinGraph


def first_plan(query: JoinGraph, plan: str | Plan) -> Plan:
    """``plan`` of ``query``: a text in the notation, ``"auto"``, an eddy, or a Plan."""
    if plan == "auto":
        return Plan(_default_tree(query))
    eddy = Eddy.of(plan)
    if eddy is not None:
        return eddy.first_plan(query)
    chosen = read(plan) if isinstance(plan, str) else plan
    if not isinstance(chosen, Plan):
        raise OptionError(f"plan must be a text or a Plan, not {type(plan).__name__}")
    chosen.check(query)
    return chosen


def roots_of(plan: Plan, query: JoinGraph) -> list[Node]:
    """The tree of each block of ``query``, in the order of the query."""
    roots = {block_of(node, query).aliases: node for node in plan.minus}
    return [plan.root, *(roots.get(b.aliases) or _default_tree(b) for b in query.minus)]


def _default_tree(block: JoinGraph) -> Node:
    """One mjoin: it stores nothing but the windows, so it cannot go very wrong."""
    leaves = [Leaf(alias) for alias in block.aliases]
    return leaves[0] if len(leaves) == 1 else Join(tuple(leaves))
