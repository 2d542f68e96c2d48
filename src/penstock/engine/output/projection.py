"""From composites to the columns of the answer: the only place where payload is copied out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from penstock.engine.join.join_step import ColumnReader
from penstock.engine.state.composites import Composites
from penstock.engine.state.held_signals import HELD
from penstock.engine.state.leaf_window import LeafWindow
from penstock.query.expression import Expression
from penstock.values.evaluate import compile


class Projection:
    """Evaluates ``expressions`` for composites over ``leaves``."""

    def __init__(self, expressions: Sequence[Expression], leaves: Mapping[str, LeafWindow]) -> None:
        self._values = [compile(expression) for expression in expressions]
        self._leaves = leaves

    def __call__(self, composites: Composites) -> list[pa.Array]:
        reader = ColumnReader(composites, self._leaves)
        count = len(composites)
        columns = []
        for value_of in self._values:
            columns.append(value_of(reader, count))
            HELD.give()
        return columns
