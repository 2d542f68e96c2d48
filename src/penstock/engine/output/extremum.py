"""MIN or MAX of one argument, for all groups.

Each group has a heap of the values that are alive or may still be there though dead: see
:mod:`penstock.kernels.heap`. All heaps share one pool of nodes. A push appends nodes and
computes new roots, and ``rollback`` forgets both. A node is made when its result arrives; until
the birth of the result it stands alone, and the entry (:mod:`penstock.engine.output.agenda`) knows
its number.

On the arrival line deaths come nearer: there a node names its entry, nothing is pruned, and the
deaths are fetched from the entries before each push.

When most nodes may be garbage (popped, or replaced by copies) the living are packed together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.output.agenda import Agenda
from penstock.engine.output.group_rows import GroupRows
from penstock.kernels import heap
from penstock.kernels.aggregate import DEATH
from penstock.query.expression import Aggregate
from penstock.values.arrow_layout import read_only, validity_of
from penstock.values.key_types import BytesKey, key_type_of

Int64s = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_SINGLE = np.zeros(heap.WIDTH, np.int64)
_SINGLE[[heap.LEFT, heap.RIGHT, heap.ENTRY, heap.START]] = -1
_SINGLE[heap.RANK] = 1
_GONE = np.int64(-(2**63))
_FEWEST_NODES = 256
_FEWEST_BYTES = 1024
"""Nodes, and bytes of their values, for which there always is room."""
_FEWEST_NODES_TO_PACK = 4096
"""Nodes below which those of the dead are not looked for."""


class Extremum:
    """The least (``greatest``: the greatest) living value of ``type`` in every group."""

    words = 1
    """An entry has one row for it: the number of its node, -1 for NULL."""

    def __init__(self, type: pa.DataType, greatest: bool, by_rows: bool) -> None:
        self.type = type.value_type if pa.types.is_dictionary(type) else type
        self._greatest = greatest
        self._by_rows = by_rows
        self._key = key_type_of(self.type)
        self._bytes = self._key if isinstance(self._key, BytesKey) else None
        self._row = 0
        self._roots = np.zeros(0, np.int64)
        self._nodes = np.empty((_FEWEST_NODES, heap.WIDTH), np.int64)
        self._fresh = self._head = 0
        self._arena = np.empty(_FEWEST_BYTES if self._bytes is not None else 0, np.uint8)
        self._fresh_bytes = self._head_bytes = 0
        self._packed = 0
        self._least = np.empty(0, np.int64)
        self._after: Int64s | None = None
        """Roots of the touched groups after the push."""

    @property
    def nbytes(self) -> int:
        return self._roots.nbytes + self._nodes.nbytes + self._arena.nbytes

    def place(self, row: int) -> None:
        """Set where the number of the node is in an entry."""
        self._row = row

    def reserve(self, capacity: int) -> None:
        """Have state for groups below ``capacity``."""
        self._roots = _extended(self._roots, capacity)

    def encode(self, array: pa.Array, entries: Int64s) -> None:
        """Make nodes for the values of ``array``, and write their numbers into ``entries``."""
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        valid = validity_of(array)
        count = len(array) if valid is None else int(valid.sum())
        numbers = np.arange(self._head, self._head + count)
        if valid is not None:
            some, numbers = numbers, np.full(len(array), -1, np.int64)
            numbers[valid] = some
        entries[self._row] = numbers
        if count == 0:
            return
        new = self._room_for_nodes(count)
        new[:] = _SINGLE
        new[:, heap.DEATH] = entries[DEATH] if valid is None else entries[DEATH, valid]
        if self._bytes is not None:
            data, offsets = self._bytes.ordered_bytes(array)
            size = int(offsets[-1] - offsets[0])
            self._room_for_bytes(size)
            heap.put_bytes(
                self._nodes,
                numbers,
                self._arena,
                self._head_bytes,
                read_only(data),
                offsets,
                self._greatest,
            )
            self._head_bytes += size
        else:
            keys, _ = self._key.encode(array)
            if valid is not None:
                keys = keys[valid]
            new[:, heap.KEY] = ~keys if self._greatest else keys
        self._head += count

    def name_entries(self, entries: Int64s, first: int) -> None:
        """Tell the nodes of ``entries``, which are new, their entries: ``first`` and on."""
        nodes = entries[self._row]
        known = np.flatnonzero(nodes >= 0)
        self._nodes[nodes[known], heap.ENTRY] = known + first

    def fetch_deaths(self, deaths: Int64s) -> None:
        """Bring the deaths of the nodes up to date; ``deaths`` is by entry."""
        nodes = self._nodes[: self._head]
        entry = nodes[:, heap.ENTRY]
        known = entry >= 0
        nodes[:, heap.DEATH] = _GONE
        nodes[known, heap.DEATH] = deaths[entry[known]]

    def renumbered_entries(self, numbers: Int64s) -> Int64s:
        """The entries of all nodes if entry ``e`` becomes ``numbers[e]``: to be adopted."""
        entry = self._nodes[: self._head, heap.ENTRY]
        return np.where(entry >= 0, numbers[entry], entry)

    def adopt_entries(self, entries: Int64s) -> None:
        """Go on with what :meth:`renumbered_entries` has made."""
        self._nodes[: self._head, heap.ENTRY] = entries

    def stage(self, rows: GroupRows) -> None:
        """Compute the extremum along ``rows``; the heaps of before stay as they are."""
        self._nodes, self._head, self._least = heap.least_in_time(
            rows.owner,
            rows.instants,
            rows.stops,
            rows.living,
            rows.order,
            rows.entering,
            rows.events,
            self._row,
            rows.touched,
            self._roots,
            self._nodes,
            self._head,
            self._fresh,
            self._arena,
            self._greatest,
            not self._by_rows,
        )
        self._after = self._least[rows.last]

    def commit(self, rows: GroupRows | None) -> None:
        """Make the last of ``rows`` the state of each group."""
        if rows is not None:
            assert self._after is not None
            self._roots[rows.touched] = self._after
        self._fresh, self._fresh_bytes = self._head, self._head_bytes
        self.rollback()

    def rollback(self) -> None:
        self._head, self._head_bytes = self._fresh, self._fresh_bytes
        self._least = self._least[:0]
        self._after = None

    def kept(self, groups: Int64s, capacity: int) -> tuple[NDArray[Any], ...]:
        """The state if that of ``groups`` becomes that of the groups from 0 on: to be adopted."""
        return (_extended(self._roots[groups], capacity),)

    def adopt(self, state: tuple[NDArray[Any], ...]) -> None:
        """Go on with what :meth:`kept` has made."""
        (self._roots,) = state

    def pack(self, settled: int, unborn: Agenda) -> None:
        """Drop garbage, if it may be the majority. Nodes of ``unborn`` entries stand alone."""
        if self._head <= 2 * self._packed + _FEWEST_NODES_TO_PACK:
            return
        roots = self._roots.copy()
        nodes, count = heap.pack(
            self._nodes, self._head, self._arena, self._greatest, roots, settled
        )
        entries = unborn.entries()
        count = heap.pack_single(self._nodes, nodes, count, entries[self._row])
        pool = np.empty((max(_FEWEST_NODES, 2 * count), heap.WIDTH), np.int64)
        pool[:count] = nodes[:count]
        arena, size = self._arena, self._head_bytes
        if self._bytes is not None:
            arena, size = heap.pack_arena(pool, count, arena, _FEWEST_BYTES)
        # Only now: without memory for it, everything is as it was.
        unborn.put(entries)
        self._roots, self._nodes, self._arena = roots, pool, arena
        self._fresh_bytes = self._head_bytes = size
        self._fresh = self._head = self._packed = count

    def answer(self, aggregate: Aggregate, rows: Int64s) -> pa.Array:
        """The values of ``aggregate`` in ``rows`` of the push that is staged."""
        if self._bytes is not None:
            nodes = self._least[rows]
            data, offsets = heap.get_bytes(self._nodes, nodes, self._arena)
            found = self._bytes.from_bytes(data, offsets, nodes >= 0)
        else:
            found = self._key.decode(*heap.get_keys(self._nodes, self._least, rows, self._greatest))
        if found.type == aggregate.type:
            return found
        if pa.types.is_dictionary(aggregate.type):
            found = found.dictionary_encode()
        return found.cast(aggregate.type)

    def _room_for_nodes(self, count: int) -> Int64s:
        """The next ``count`` nodes, to be written to."""
        needed = self._head + count
        if needed > len(self._nodes):
            nodes = np.empty((max(needed, 2 * len(self._nodes)), heap.WIDTH), np.int64)
            nodes[: self._head] = self._nodes[: self._head]
            self._nodes = nodes
        return self._nodes[self._head : needed]

    def _room_for_bytes(self, size: int) -> None:
        needed = self._head_bytes + size
        if needed > len(self._arena):
            arena = np.empty(max(needed, 2 * len(self._arena)), np.uint8)
            arena[: self._head_bytes] = self._arena[: self._head_bytes]
            self._arena = arena


def _extended(roots: Int64s, capacity: int) -> Int64s:
    grown = np.full(capacity, -1, np.int64)
    grown[: len(roots)] = roots
    return grown
