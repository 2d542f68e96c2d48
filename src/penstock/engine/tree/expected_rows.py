"""How many rows a state is going to have that does not exist yet: a join of samples.

To grow is to move, and to move a state of a million rows in the middle of a push is a halt. So a
state that a change of plan will have to fill gets room for all of it beforehand. Some rows of one
input of its join, evenly spread, go through the probe order of that input; what comes out, times
how many rows each of them stands for, is the size of the state. If the input is to be filled
itself, its rows are those of its own sample. Where samples cannot tell (a probe order that meets
another state to be filled, joins without keys), nothing is expected, and the state grows as rows
come.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from penstock.engine.feedback.edge import Edge
from penstock.engine.state.leaf_window import LeafWindow

Int64s = NDArray[np.int64]
Sample = tuple[Mapping[str, Int64s], float]
"""Combinations, and how many each of them stands for."""

_SAMPLE_ROWS = 512
"""Rows of an input that go through its probe order to guess how many come out."""


def expected_rows(edge: Edge) -> int:
    """About as many combinations as the inputs of the join below ``edge`` have now."""
    sample = _sample_of_join(edge)
    if sample is None:
        return 0
    ids, scale = sample
    return int(scale * len(next(iter(ids.values()))))


def _sample_of_join(edge: Edge) -> Sample | None:
    """Of what the join below ``edge`` makes; None if that cannot be told."""
    unfilled = [position for position, each in enumerate(edge.children) if _is_to_be_filled(each)]
    if edge.producer is None or len(unfilled) > 1:
        return None
    position = unfilled[0] if unfilled else 0
    start = edge.children[position]
    sample = _sample_of_join(start) if unfilled else _sample_of_rows(start)
    if sample is None:
        return None
    ids, scale = sample
    for _, step in edge.producer.steps[position]:
        if not step.hashed or step.linking.residuals:
            return None
        rows = step.target.rows
        if rows.head <= rows.low or len(next(iter(ids.values()))) == 0:
            return ids, 0.0
        ids = step.extend(ids, rows.head)
    return ids, scale


def _sample_of_rows(edge: Edge) -> Sample:
    rows = edge.source.rows
    picked = np.linspace(rows.tail, rows.head, min(_SAMPLE_ROWS, len(rows)), False).astype(np.int64)
    scale = len(rows) / max(1, len(picked))
    flags = edge.source.chosen(picked) if isinstance(edge.source, LeafWindow) else None
    ids, _ = edge.source.resolve_whole(picked if flags is None else picked[flags])
    return ids, scale


def _is_to_be_filled(edge: Edge) -> bool:
    return edge.producer is not None and len(edge.source.rows) == 0
