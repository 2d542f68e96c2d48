"""Exact numbers for byte strings.

Two byte strings get the same number if and only if they are equal, as long as the interner holds
their entry: the table is searched by a hash, but only the bytes decide. Numbers grow for ever and
are never given twice. That is what makes :meth:`Interner.sweep` safe: a value that was swept and
comes again gets a new number, and no key of a row that is still alive can be mistaken for it, since
a row that is alive keeps its entry alive.

Memory is about 50 to 100 bytes and the value itself for each distinct value.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.kernels import intern as kernels
from penstock.values.hash_secret import SECRET

Int64s = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Booleans = NDArray[np.bool_]

NOT_A_VALUE = kernels.NOT_A_VALUE
"""The number of NULL."""

_FEWEST_SLOTS = 64
_FEWEST_WORDS = 128
_ALL_VALID = np.zeros(0, np.bool_)


class Interner:
    """Numbers byte strings, for all columns that are compared with one another.

    >>> interner = Interner()
    >>> data = np.frombuffer(b"abcab", np.uint8)
    >>> interner.intern(data, np.array([0, 2, 3, 5])).tolist()
    [0, 1, 0]
    """

    def __init__(self) -> None:
        self._state = np.zeros(4, np.int64)
        """Words in use and entries of the arena, short ones among them, and the next number."""
        self._slots = _empty_slots(_FEWEST_SLOTS)
        self._shorts = np.zeros(2 * _FEWEST_SLOTS, np.int64)
        self._arena = np.empty(_FEWEST_WORDS, np.int64)

    def __len__(self) -> int:
        """How many distinct values there are."""
        count: int = self._state.item(kernels.COUNT)
        return count

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._slots.nbytes + self._shorts.nbytes + self._arena.nbytes

    def intern(self, data: Bytes, offsets: Int64s, validity: Booleans | None = None) -> Int64s:
        """The numbers of the values ``data[offsets[i]:offsets[i + 1]]``.

        Where ``validity`` is false the number is :data:`NOT_A_VALUE`.
        """
        rows = len(offsets) - 1
        out = np.empty(rows, np.int64)
        valid = _ALL_VALID if validity is None else validity
        # As they mostly come from Arrow: one compiled form of the kernel, and not four.
        if data.flags.writeable:
            data = data.view()
            data.flags.writeable = False
        if not offsets.flags.writeable:
            offsets = offsets.copy()
        done = 0
        while True:
            done = kernels.intern(
                data,
                offsets,
                valid,
                self._slots,
                self._arena,
                self._shorts,
                self._state,
                done,
                out,
                SECRET,
            )
            if done == rows:
                return out
            self._make_room(int(offsets[done + 1] - offsets[done]))

    def sweep(self, live: Int64s) -> None:
        """Keep only the values whose numbers are in ``live`` (any order, repeats allowed)."""
        numbers, places = self._entries()
        kept = np.zeros(len(self), np.bool_)
        live = np.array(live, np.int64)
        count, short, used = kernels.mark_live(self._arena, places, numbers, live, kept)
        slots = _empty_slots(_slots_for(count - short))
        shorts = np.zeros(2 * _slots_for(short), np.int64)
        arena = np.empty(max(_FEWEST_WORDS, used), np.int64)
        kernels.copy_kept(self._arena, places, kept, arena, slots, shorts, SECRET)
        # Only now: without memory for the new tables, the old ones stay, with all that they hold.
        self._slots, self._shorts, self._arena = slots, shorts, arena
        self._state[: kernels.NEXT] = used, count, short

    def contents(self, most: int) -> Iterator[tuple[Int64s, pa.Array]]:
        """All numbers, and their values as binary, ``most`` at a time, at least once."""
        numbers, places = self._entries()
        for start in range(0, max(1, len(numbers)), most):
            chosen = numbers[start : start + most]
            its = places[start : start + len(chosen) + 1]
            offsets = np.zeros(len(chosen) + 1, np.int64)
            np.cumsum(self._arena[its[:-1] + 1], out=offsets[1:])
            data = np.empty(int(offsets[-1]), np.uint8)
            kernels.copy_bytes(self._arena, its, offsets, data)
            buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
            yield chosen, pa.Array.from_buffers(pa.large_binary(), len(chosen), buffers)

    def _entries(self) -> tuple[Int64s, Int64s]:
        """The numbers of all entries, and their places in the arena with the one behind them."""
        numbers = np.empty(len(self), np.int64)
        places = np.empty(len(self) + 1, np.int64)
        kernels.list_entries(self._arena, places, numbers)
        return numbers, places

    def _make_room(self, size: int) -> None:
        """Room for at least one entry of ``size`` bytes, and for twice of what there is."""
        used, count, short = self._state[: kernels.NEXT].tolist()
        if 4 * (count - short) >= len(self._slots):
            slots = _empty_slots(len(self._slots))
            kernels.rehash(self._slots, slots)
            self._slots = slots
        if 4 * short >= len(self._shorts):
            shorts = np.zeros(2 * len(self._shorts), np.int64)
            kernels.rehash_short(self._shorts, shorts, SECRET)
            self._shorts = shorts
        needed = used + kernels.HEADER + (size + 7) // 8
        if needed > len(self._arena):
            arena = np.empty(max(2 * len(self._arena), needed), np.int64)
            arena[:used] = self._arena[:used]
            self._arena = arena


def _empty_slots(count: int) -> Int64s:
    """A table of ``count`` slots, none in use."""
    return np.full(2 * count, kernels.EMPTY, np.int64)


def _slots_for(count: int) -> int:
    """A power of two, more than twice ``count``."""
    return max(_FEWEST_SLOTS, 1 << (2 * count).bit_length())
