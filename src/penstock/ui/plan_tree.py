"""Plans for the page: the tree as plain objects, and what changes from one plan to the next."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeAlias

from penstock.errors import PlanError
from penstock.plan.notation import read
from penstock.plan.plan import Join, Leaf, Node, Plan

Tree: TypeAlias = dict[str, Any]


@lru_cache(maxsize=64)
def plan_trees(text: str) -> tuple[Tree, ...]:
    """The tree of the plan in ``text`` and those of blocks after EXCEPT; none if it is no plan.

    A node has ``key`` (its streams as events write them), ``name``, ``kind`` and ``inputs``.
    """
    plan = _plan(text)
    return () if plan is None else tuple(_tree(root, True) for root in (plan.root, *plan.minus))


def states_of(text: str) -> set[str]:
    """The streams of the joins below the roots: what the plan stores."""
    found: set[str] = set()
    for root in plan_trees(text):
        for tree in walk(root):
            if tree["kind"] == "state":
                found.add(tree["key"])
    return found


def plan_change(before: str, after: str) -> dict[str, list[str]]:
    """Which stored joins stay, go and come: a migration has to complete those that come."""
    old, new = states_of(before), states_of(after)
    return {"kept": sorted(old & new), "dropped": sorted(old - new), "added": sorted(new - old)}


def walk(tree: Tree) -> Iterator[Tree]:
    yield tree
    for each in tree["inputs"]:
        yield from walk(each)


def _plan(text: str) -> Plan | None:
    try:
        return read(text)
    except (PlanError, RecursionError):
        return None


def _tree(node: Node, is_root: bool) -> Tree:
    if isinstance(node, Leaf):
        return {"key": str(node.streams), "name": node.stream, "kind": "window", "inputs": []}
    return {
        "key": str(node.streams),
        "name": "mjoin" if len(node.inputs) > 2 else "join",
        "kind": "root" if is_root else "state",
        "inputs": [_tree(each, False) for each in node.inputs],
        "orders": _orders(node),
    }


def _orders(join: Join) -> list[str]:
    names = [" ".join(sorted(each.streams)) for each in join.inputs]
    return [
        " → ".join(names[place] for place in (position, *order))
        for position, order in enumerate(join.orders)
    ]
