"""What became of the rows of an input in a push in which not every row might probe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.engine.state.leaf_window import LeafWindow
from penstock.kernels import ration
from penstock.overload.missed_results import Stratum

if TYPE_CHECKING:
    from penstock.engine.feedback.edge import Edge
    from penstock.engine.join.join_operator import JoinOperator

Int64s = NDArray[np.int64]


class Rationed(NamedTuple):
    """The input ``place`` of ``join`` in a push in which not every row might probe."""

    join: JoinOperator
    inputs: Sequence[Edge]
    place: int
    olds: Sequence[int]
    """The ends of all inputs before the push."""
    ration: Int64s
    shares: NDArray[np.float64]
    stratum: Stratum | None
    """Counts of the matches that the probing rows found, if not all rows probed."""

    @property
    def edge(self) -> Edge:
        return self.inputs[self.place]

    @property
    def total(self) -> int:
        """Rows that came."""
        return int(self.ration[ration.TOTAL])

    def left_out(self) -> Int64s:
        """The rows that did not probe: they are drawn once more."""
        picked = np.empty(self.total, np.uint8)
        seed = int(self.ration[ration.SEED])
        ration.draw(self.shares, seed, self.total, 0, self.total, picked)
        rows = self.olds[self.place] + np.flatnonzero(picked == 0)
        flags = self.edge.input.chosen(rows) if isinstance(self.edge.input, LeafWindow) else None
        return rows if flags is None else rows[flags]

    @property
    def bounds(self) -> tuple[int, ...]:
        """How far a row that did not probe would have seen each input."""
        return tuple(
            other.input.rows.head if number < self.place else self.olds[number]
            for number, other in enumerate(self.inputs)
        )
