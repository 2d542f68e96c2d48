"""The plan that an engine begins with: the one that was given, or one that cannot go very wrong."""

from __future__ import annotations

from penstock.errors import OptionError
from penstock.plan.notation import read
from penstock.plan.plan import (
    EDDIES,
    Join,
    Leaf,
    Node,
    Plan,
    block_of,
    first_routes,
    stores_results,
)
from penstock.query.join_graph import JoinGraph


def first_plan(query: JoinGraph, plan: str | Plan, before: Plan | None = None) -> Plan:
    """``plan`` of ``query``: a text in the notation, ``"auto"``, the name of an eddy, or a
    Plan.

    It has a tree for every block. Those after EXCEPT are subtracted in the order in which they are
    given; where none are, they and their order are those of the plan ``before``.
    """
    chosen = _read(query, plan)
    given = {block_of(node, query).aliases: node for node in before.minus} if before else {}
    if chosen.minus:
        given = {block_of(node, query).aliases: node for node in chosen.minus}
    if chosen.eddy == "cacq":  # It routes every block, and stores nothing for any.
        given = {aliases: node for aliases, node in given.items() if not stores_results(node)}
    names_blocks = bool(chosen.minus) and plan not in EDDIES
    order = chosen.places_in(query) if names_blocks or before is None else before.places_in(query)
    blocks = [query.minus[place] for place in order] or query.minus
    minus = (given.get(block.aliases) or _default_tree(block) for block in blocks)
    return Plan(chosen.root, tuple(minus), chosen.eddy)


def _read(query: JoinGraph, plan: str | Plan) -> Plan:
    if plan == "auto":
        return Plan(_default_tree(query))
    if isinstance(plan, str) and plan in EDDIES:
        return first_routes(plan, query)
    chosen = read(plan) if isinstance(plan, str) else plan
    if not isinstance(chosen, Plan):
        raise OptionError(f"plan must be a text or a Plan, not {type(plan).__name__}")
    chosen.check(query)
    return chosen


def _default_tree(block: JoinGraph) -> Node:
    """One mjoin: it stores nothing but the windows, so it cannot go very wrong."""
    leaves = [Leaf(alias) for alias in block.aliases]
    return leaves[0] if len(leaves) == 1 else Join(tuple(leaves))
