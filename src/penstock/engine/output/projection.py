"""From composites to the columns of the answer: the only place where payload is copied out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from penstock.engine.join.join_step import ColumnReader
from penstock.engine.state.composites import Composites
from penstock.engine.state.leaf_window import LeafWindow
from penstock.kernels.held_signals import HELD
from penstock.query.expression import Expression, columns_of
from penstock.values.evaluate import compile

_NUMBER = 8
"""Bytes of a number, or of the place where a text begins."""


class Projection:
    """Evaluates ``expressions`` for composites over ``leaves``."""

    def __init__(self, expressions: Sequence[Expression], leaves: Mapping[str, LeafWindow]) -> None:
        self._values = [compile(expression) for expression in expressions]
        self._leaves = leaves
        self._read = [columns_of(expression) for expression in expressions]

    @property
    def bytes_of_row(self) -> float:
        """Bytes of a row of the answer, as the windows are now. What is computed is taken to be as
        large as what it is computed of."""
        return sum(
            _NUMBER + sum(self._leaves[c.stream].payload.bytes_of_value(c.name) for c in columns)
            for columns in self._read
        )

    def __call__(self, composites: Composites) -> list[pa.Array]:
        reader = ColumnReader(composites, self._leaves)
        count = len(composites)
        columns = []
        for value_of in self._values:
            columns.append(value_of(reader, count))
            HELD.give()
        return columns
