"""What is found about the columns of slots, and where their rows go: tables that kernels read.

:class:`SlotTables` has a row for each slot, :class:`WrittenArrivals` one for each window, anew
whenever its rings or indexes have moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.engine.compiled.arrivals import Arrivals
from penstock.engine.compiled.compiled_push import CompiledPush
from penstock.engine.push.slot import Reader, Slot
from penstock.engine.state.address import address_of
from penstock.engine.state.hash_index import HashIndex
from penstock.engine.state.rows import Rows
from penstock.kernels import arrow_struct, door
from penstock.kernels.arrow_struct import FACTS, IN_BYTES, PLACES
from penstock.kernels.whole_push import ARRIVAL, IS_ARRANGED, SPACE

Int64s = NDArray[np.int64]

_END = -1
"""Behind the numbers of indexes, so that there is an address also where there are none."""


class SlotTables:
    """The tables of :mod:`penstock.kernels.arrow_struct`, with a row for each of ``slots``."""

    def __init__(self, slots: int, columns: int) -> None:
        self.structs = np.zeros((slots, arrow_struct.WORDS), np.int64)
        self.positions = np.full((slots, columns), -1, np.int64)
        self.widths = np.ones((slots, columns), np.int64)
        self.facts = np.zeros((slots, FACTS), np.int64)
        self.found, self.valid, self.offsets = np.zeros((3, slots, columns), np.int64)
        self.doors = np.zeros((slots, door.DOOR), np.int64)
        self._room = 0
        self._places: Int64s = np.empty(0, np.int64)

    def choose(self, slot: int, start: int, limit: int, keys: Sequence[tuple[int, int]]) -> None:
        """Leave rows of ``slot`` at the door, by ``keys``, columns and factors, or drawn."""
        row = self.doors[slot].view(np.uint64)
        row[door.KIND] = door.BY_KEY if keys else door.DRAWN
        row[door.START], row[door.LIMIT], row[door.KEYS] = start, limit, len(keys)
        at = door.FIRST_KEY
        for each in keys:
            row[at : at + door.KEY] = each
            at += door.KEY

    def addresses(self, slot: int) -> tuple[int, int, int]:
        """Addresses of what is found about the columns of ``slot``."""
        if self.found.size == 0:
            return 0, 0, 0
        at = slot * self.found.strides[0]
        found, valid, offsets = map(address_of, (self.found, self.valid, self.offsets))
        return found + at, valid + at, offsets + at

    def make_room(self, rows: int) -> None:
        """Room for the order of ``rows`` of any slot."""
        if rows > self._room:
            room, slots = 2 * rows, len(self.facts)
            places = np.empty((slots, 2 * room), np.int64)
            addresses = places.ctypes.data + np.arange(slots) * 16 * room
            self.facts[:, PLACES] = addresses
            self._room, self._places = room, places

    def look(self) -> int:
        """Look at the batches of all slots."""
        answer: int = arrow_struct.look_at_all(
            self.structs,
            self.positions,
            self.widths,
            self.facts,
            self.found,
            self.valid,
            self.offsets,
            self.doors,
        )
        return answer

    def put(self, slot: int, column: int, values: Int64s, valid: Any) -> None:
        """Column ``column`` of ``slot`` lies in an array, and so does its validity, in bytes."""
        self.found[slot, column] = values.__array_interface__["data"][0]
        if valid is None or valid.all():
            self.valid[slot, column] = 0
        else:
            self.valid[slot, column] = valid.__array_interface__["data"][0]
            self.offsets[slot, column] = IN_BYTES


class WrittenArrivals:
    """Addresses where the rows of slots go, to each of ``readers``, in pushes by ``compiled``."""

    def __init__(
        self,
        compiled: CompiledPush,
        readers: Sequence[tuple[Slot, Reader]],
        tables: SlotTables,
    ) -> None:
        self._compiled = compiled
        self._known = [reader.leaf.became_whole for _, reader in readers]
        """Times that an index of each window had been completed when the table was written."""
        self.table = np.zeros((len(readers), ARRIVAL), np.int64)
        self.rows = {reader.alias: self.table[n] for n, (_, reader) in enumerate(readers)}
        self.indexes: list[tuple[HashIndex, Rows]] = []
        self._held: list[Int64s] = []
        """Arrays whose addresses are in the table: they must live as long as it does."""
        for place, (slot, reader) in enumerate(readers):
            code = reader.append.code
            indexes = reader.append.filled
            numbers = np.array([*map(compiled.number_of, indexes), _END], np.int64)
            picks = reader.picks()
            copied = np.empty(max(1, len(picks)), np.int64)
            self._held += (code, numbers, picks, copied)
            self.indexes += [(index, reader.leaf.rows) for index in indexes]
            self.table[place] = (
                *(reader.append.address, len(code)),
                *(compiled.ring_of(reader.alias), compiled.lap_of(reader.alias), slot.place),
                *tables.addresses(slot.place),
                *(address_of(picks) if len(picks) else 0, reader.key_count),
                *(address_of(copied), address_of(numbers)),
                *(0, 0, reader.chosen_column, 0),
            )

    def is_for(self, compiled: CompiledPush, filled: list[int]) -> bool:
        """Whether nothing has changed for pushes by ``compiled``."""
        return compiled is self._compiled and filled == self._known


class BlockArrivals:
    """The windows of one block of the query, and where their new rows go."""

    def __init__(self, readers: list[tuple[Slot, Reader]], facts: Int64s) -> None:
        self._readers = readers
        self._written: WrittenArrivals | None = None
        self._space = 0
        """Address of the working space, as the table has it."""
        self.arrivals = Arrivals(np.zeros((0, ARRIVAL), np.int64), facts)

    def written_for(
        self, compiled: CompiledPush, tables: SlotTables, space: int
    ) -> WrittenArrivals:
        """Where the rows go in a push by ``compiled``; ``space`` is the address of room to work."""
        filled = [reader.leaf.became_whole for _, reader in self._readers]
        written = self._written
        if written is None or not written.is_for(compiled, filled):
            self._written = written = WrittenArrivals(compiled, self._readers, tables)
            self.arrivals.table, self.arrivals.filled = written.table, written.indexes
            self._space = 0
        if space != self._space:
            self.arrivals.table[:, SPACE] = space
            self._space = space  # Only now: there may have been no memory for that.
        return written

    def has(self, alias: str) -> bool:
        """Whether a window is one of the block."""
        return any(reader.alias == alias for _, reader in self._readers)

    def is_arranged(self, alias: str) -> bool:
        """Whether the new rows of a window are not simply all of their slot, as they lie."""
        assert self._written is not None
        return bool(self._written.rows[alias][IS_ARRANGED])
