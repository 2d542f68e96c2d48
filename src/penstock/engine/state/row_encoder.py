"""Which rows of a stream may be in a result, and what these are compared by, as integers.

A tuple that can be in no result need not be kept: one that fails a predicate on its stream alone,
or has a NULL in a compared column (every comparison in WHERE must be true, and NULL compared with
anything is not), or differs in two columns that have to be equal. What is left of it for joins are
its keys, encoded (:mod:`penstock.values.key_types`) so that two are equal if their numbers are.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.state.arrival import SourceRows
from penstock.kernels import ring
from penstock.query.expression import Column, columns_of
from penstock.query.join_graph import Stream
from penstock.values.evaluate import compile, conjunction
from penstock.values.interner import Interner
from penstock.values.key_types import KeyType, key_type_of
from penstock.values.wiring import Wiring

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]
DirectKeys = tuple[tuple[str, KeyType | None, Interner | None], ...]


class RowEncoder:
    """Filters and encodes the rows of ``stream``."""

    def __init__(self, stream: Stream, wiring: Wiring, interners: Mapping[int, Interner]) -> None:
        self.expressions = wiring.keys[stream.alias]
        """Expressions whose keys the encoded columns hold."""
        numbers = wiring.interners[stream.alias]
        self.interners = [None if number is None else interners[number] for number in numbers]
        """The interner that numbers the values of each encoded column, if they need one."""
        self._keys = [(compile(each), key_type_of(each.type)) for each in self.expressions]
        self._same = wiring.same.get(stream.alias, ())
        filters = [predicate.expression for predicate in wiring.filters[stream.alias]]
        self._filter = conjunction(filters)
        read = [c.name for each in (*self.expressions, *filters) for c in columns_of(each)]
        self.columns = tuple(dict.fromkeys(read))
        """Names of the columns that are read."""
        self._key_names = {c.name for each in self.expressions for c in columns_of(each)}

    @property
    def direct_keys(self) -> DirectKeys | None:
        """The columns that are keys, each with what encodes it (None: it is what is compared) and
        an interner if that needs one. None if not every row is taken, or a key is computed."""
        if self._filter is not None or self._same:
            return None
        keys = []
        for key, (_, kind), interner in zip(
            self.expressions, self._keys, self.interners, strict=True
        ):
            if not isinstance(key, Column):
                return None
            keys.append((key.name, None if kind.is_its_own_key else kind, interner))
        return tuple(keys)

    def encode(
        self, columns: Mapping[str, pa.Array], count: int
    ) -> tuple[Int64s | None, list[Int64s]]:
        """The positions of the rows that may be in results, None for all, and the encoded columns
        of these. Nothing changes but interners.

        Keys are computed only for rows that pass the filter: ``B.k = A.x / A.y`` beside
        ``A.y <> 0`` divides by no zero.
        """
        chosen: Int64s | None = None
        if self._filter is not None:
            keep = self._filter(lambda c: columns[c.name], count)
            if not keep.all():
                chosen = np.flatnonzero(keep)
        keys, valid = self._encode(columns, chosen, count)
        if valid is not None and not valid.all():
            positions = np.flatnonzero(valid)
            keys = [ring.pick(each, positions) for each in keys]
            chosen = positions if chosen is None else ring.pick(chosen, positions)
        return chosen, keys

    def passes(self, source: SourceRows) -> Bools:
        """Mask of the rows of a push that may be in results."""
        chosen, _ = self.encode(source.columns, len(source))
        found = np.full(len(source), chosen is None)
        if chosen is not None:
            found[chosen] = True
        return found

    def _encode(
        self, columns: Mapping[str, pa.Array], chosen: Int64s | None, count: int
    ) -> tuple[list[Int64s], Bools | None]:
        """The encoded columns of the ``chosen`` rows, and which of these have no NULL in them."""
        if chosen is not None:
            indices = pa.array(chosen)
            columns = {name: columns[name].take(indices) for name in self._key_names}
            count = len(chosen)
        keys: list[Int64s] = []
        valid: Bools | None = None
        for (value_of, kind), interner in zip(self._keys, self.interners, strict=True):
            values, present = kind.encode(value_of(lambda c: columns[c.name], count), interner)
            keys.append(values)
            if present is not None:
                valid = _both(valid, present)
        for first, second in self._same:
            valid = _both(valid, keys[first] == keys[second])
        return keys, valid


def _both(first: Bools | None, second: Bools) -> Bools:
    return second if first is None else first & second
