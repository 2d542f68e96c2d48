"""A plan lowered to edges, operators and states, and what becomes of them."""

from __future__ import annotations

import numpy as np
from four_streams import batch, engine_for

from penstock.engine.tree.operator_tree import OperatorTree
from penstock.plan.notation import read
from penstock.plan.stream_set import StreamSet


def name(streams: StreamSet) -> str:
    return "".join(sorted(streams))


def lowered(plan: str, carried: str | None = None) -> tuple[OperatorTree, OperatorTree]:
    """The tree of a running engine, and one of ``plan`` over the same windows."""
    engine = engine_for("(((A B) C) D)", 10**6)
    engine.push(batch(np.random.default_rng(7), 0, 50, 10))
    (old,) = engine.trees
    states = {state.streams: state for state in old.states if name(state.streams) == carried}
    tree = OperatorTree(read(plan).root, old.wiring, old.leaves, old.algorithm, states, {})
    tree.lower_edges()
    tree.lower_operators()
    return old, tree


def test_joins_below_are_built_and_visited_first() -> None:
    _, tree = lowered("((A B) (C D))")
    assert [name(operator.streams) for operator in tree.operators] == ["AB", "CD", "ABCD"]
    assert [name(state.streams) for state in tree.states] == ["AB", "CD"]
    visited = [name(edge.streams) for edge in tree.from_below()]
    for edge in tree.edges:
        for child in edge.children:
            assert visited.index(name(child.streams)) < visited.index(name(edge.streams))
    assert sorted(visited) == sorted(name(edge.streams) for edge in tree.edges)
    feeds = {name(edge.streams): (name(join.streams), at) for edge, join, at in tree.inputs()}
    assert feeds == {
        "AB": ("ABCD", 0),
        "CD": ("ABCD", 1),
        "A": ("AB", 0),
        "B": ("AB", 1),
        "C": ("CD", 0),
        "D": ("CD", 1),
    }


def test_a_carried_state_is_taken_and_others_are_new() -> None:
    old, tree = lowered("(((A B) D) C)", carried="AB")
    first, second = tree.states
    assert first is old.states[0]
    assert len(first.rows)
    assert not len(second.rows)


def test_indexes_go_with_the_tree() -> None:
    old, tree = lowered("(D (A C) B)")
    before = {alias: len(leaf.rows.indexes) for alias, leaf in old.leaves.items()}
    tree.dispose()
    after = {alias: len(leaf.rows.indexes) for alias, leaf in old.leaves.items()}
    assert sum(after.values()) < sum(before.values())
    assert not tree.edges
    assert not tree.operators
    assert not tree.states
    assert tree.leaves.keys() == old.leaves.keys()
