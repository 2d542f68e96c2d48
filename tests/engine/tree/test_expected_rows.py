"""Samples tell how large a state will be that does not exist yet."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from four_streams import batch, engine_for

from penstock.engine.tree.expected_rows import expected_rows
from penstock.plan.notation import read
from penstock.plan.stream_set import StreamSet


@pytest.mark.parametrize("keys", [1_000, 2_500, 8_000])
def test_samples_tell_how_large_states_will_be(keys: int) -> None:
    """Both states of a left-deep plan, which another plan has by the same rows."""
    chance = np.random.default_rng(keys)
    engines = [engine_for(plan, 10**6) for plan in ("(A B C D)", "(((A C) D) B)")]
    push = batch(chance, 0, 4_000, keys)
    for engine in engines:
        engine.push(push)
    flat, filled = (engine.trees[0] for engine in engines)
    tree = flat.successor(read("(((A C) D) B)").root, {}, in_steps=True)
    while not tree.operators or tree.operators[-1].streams != tree.root.streams:
        assert tree.build()
    sizes = {state.streams: len(state.rows) for state in filled.states}
    edges = [edge for edge in tree.edges if edge.streams in sizes]
    assert len(edges) == 2
    for edge in edges:
        assert expected_rows(edge) == pytest.approx(sizes[edge.streams], rel=0.4)


def test_nothing_is_expected_where_samples_cannot_tell() -> None:
    """A join of two states that are both to be filled; and windows that share no value."""
    engine = engine_for("(A B C D)", 10**6)
    push = batch(np.random.default_rng(1), 0, 1_000, 50)
    push["B"] = push["B"].set_column(2, "x", pa.array(np.arange(5_000, 6_000)))
    engine.push(push)
    expected: dict[StreamSet, int] = {}
    for plan in ("(((A B) C) D)", "((A B) (C D))"):
        tree = engine.trees[0].successor(read(plan).root, {}, in_steps=True)
        while tree.build():
            pass
        assert not any(tree.counts)  # Samples are nobody's probes.
        expected |= {edge.streams: expected_rows(edge) for edge in tree.edges if edge.producer}
        tree.dispose()
    sizes = {"".join(sorted(streams)): rows for streams, rows in expected.items()}
    assert sizes["AB"] == sizes["ABC"] == 0
    assert sizes["CD"] > 0
