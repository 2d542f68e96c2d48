"""The windows of one block of a query, and the interners that number their keys.

Columns that are compared with one another share an interner, so the windows of a block are made,
swept and saved together: the numbers of an interner change over a restart, and every key column
that it has numbered follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.recovery.columns import integers, whole
from penstock.engine.recovery.verify import check_columns
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.saved_window import Renumbering, load_window, save_window
from penstock.query.expression import columns_of
from penstock.query.join_graph import JoinGraph
from penstock.values.arrow_layout import bytes_of
from penstock.values.interner import Interner
from penstock.values.wiring import Wiring

Int64s = NDArray[np.int64]

SPARE_VALUES = 1024
"""Values that an interner may hold beside two for each row: a sweep looks at all of them."""
VALUES_IN_A_PIECE = 1 << 16
"""Values of a piece of a checkpoint."""


class Windows:
    """The leaf windows of ``block``, by alias."""

    def __init__(
        self,
        block: JoinGraph,
        wiring: Wiring,
        by_rows: bool,
        ticks: int,
        like: Windows | None = None,
    ) -> None:
        """``ticks`` is the number of ticks in a millisecond. Keys are numbered as in ``like``, if
        it is given."""
        self._classes = wiring.classes
        self.interners: dict[int, Interner] = (
            like.interners
            if like is not None
            else {
                number: Interner()
                for numbers in wiring.interners.values()
                for number in numbers
                if number is not None
            }
        )
        expressions = [
            *(item.expression for item in block.select if not block.is_grouped),
            *block.group_by,
            *(a.argument for a in block.aggregates if a.argument is not None),
            *(p.expression for p in wiring.residuals),
        ]
        read = [c for expression in expressions for c in columns_of(expression)]
        self.leaves = {
            stream.alias: LeafWindow(
                stream,
                wiring,
                list(dict.fromkeys(c.name for c in read if c.stream == stream.alias)),
                self.interners,
                by_rows,
                ticks,
            )
            for stream in block.streams
        }

    @property
    def bytes_of_values(self) -> int:
        """Bytes of all interned values."""
        return sum([each.nbytes for each in self.interners.values()])

    @property
    def have_many_values(self) -> bool:
        """Whether an interner holds far more values than the rows of all windows can have."""
        if not self.interners:
            return False
        living = sum([len(leaf.rows) for leaf in self.leaves.values()])
        return any(len(each) > 2 * living + SPARE_VALUES for each in self.interners.values())

    def sweep_values(self) -> None:
        """Forget interned values that no row has, where there are many."""
        for number, interner in self.interners.items():
            members = self._classes[number]
            living = sum(len(self.leaves[each.stream].rows) for each in members)
            if len(interner) <= 2 * living + SPARE_VALUES:
                continue
            held = []
            for member in members:
                leaf = self.leaves[member.stream]
                rows = np.arange(leaf.rows.tail, leaf.rows.head, dtype=np.int64)
                held.append(leaf.rows.take(leaf.key_column(member.position), rows))
            interner.sweep(np.concatenate(held))

    # -- recovery ----------------------------------------------------------------------------

    def save(self) -> Iterator[Iterator[pa.Table]]:
        """The rows of each window, in pieces."""
        return map(save_window, self.leaves.values())

    def save_values(self) -> Iterator[Iterator[pa.Table]]:
        """Numbers and values of each interner, in pieces."""
        return map(_values_of, self.interners.values())

    def load(
        self,
        rows: Sequence[Iterable[pa.Table]],
        values: Sequence[Iterable[pa.Table]],
        grown: Callable[[], None],
    ) -> None:
        """Fill the empty windows with ``rows``, whose keys are numbered by ``values``; ``grown`` is
        called after each piece."""
        renumbered = {
            interner: _reintern(interner, pieces)
            for interner, pieces in zip(self.interners.values(), values, strict=True)
        }
        for leaf, pieces in zip(self.leaves.values(), rows, strict=True):
            load_window(leaf, pieces, renumbered, grown)


def _values_of(interner: Interner) -> Iterator[pa.Table]:
    for numbers, values in interner.contents(VALUES_IN_A_PIECE):
        yield pa.table({"number": pa.array(numbers), "value": values})


def _reintern(interner: Interner, pieces: Iterable[pa.Table]) -> Renumbering:
    """The saved numbers in ascending order, and the new number of each."""
    expected = {"number": pa.int64(), "value": pa.large_binary()}
    before, after = [], []
    for piece in pieces:
        check_columns(piece, expected, "a table of values")
        before.append(integers(piece, "number"))
        after.append(interner.intern(*bytes_of(whole(piece, "value"))))
    old, new = np.concatenate(before), np.concatenate(after)
    order = np.argsort(old)
    return old[order], new[order]
