"""Numbering byte strings: the loops behind :class:`penstock.values.interner.Interner`.

``arena`` is one int64 array of entries, one after the other in the order of their numbers. An entry
is its number, its size in bytes, and the bytes as little-endian words, the last one filled up with
zeros. ``slots`` is an open-addressing table with linear probing, two int64 per slot: a hash, and
the place of an entry in the arena, -1 if the slot is empty.

The hash decides nothing: a slot with the same hash is a hit only if size and bytes agree. It is
keyed by a secret of the process (SipHash-1-3; Aumasson and Bernstein 2012), since whoever could
tell the hash of a value could send thousands with one slot, each of which is compared with all
before it. The key is an argument: compiled kernels, which are kept on disk, know nothing of it.

Most keys that are texts are short. A value of up to seven bytes is a word of its own, its bytes and
its size together (its *identity*), so nothing needs to be compared behind the table: ``shorts``
has, two int64 per slot, identities (0 if the slot is empty) and numbers. A slot is found by two
multiplications with the secret (and one that spreads) in place of SipHash: whoever does not know it
cannot tell two values that meet (multiply-shift hashing; Dietzfelbinger et al. 1997). Short values
stand in the arena, too, for whoever lists or sweeps it.

:func:`intern` works on blocks of rows in three passes: hash the values, find for each the first
slot with its hash, compare the bytes. Within a pass the rows do not depend on one another, so their
cache misses overlap. The first two only guess, on the table as it was before the block; a row whose
guess is not confirmed by the third, which may enter new values, is searched for once more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.kernel import inlined, kernel
from penstock.kernels.prefetch import prefetch

Int64s = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Booleans = NDArray[np.bool_]
UInt64s = NDArray[np.uint64]

EMPTY = -1
NOT_A_VALUE = -1
"""What :func:`intern` gives for NULL."""
HEADER = 2
"""Words of an entry before its bytes."""

SHORT_SIZE = 7
"""Bytes of a short value at most: with its size it is one word."""
USED, COUNT, SHORT, NEXT = range(4)
"""Places in the ``state`` of an interner: words in use, entries, short ones, the next number."""

_BLOCK = 128
_S0 = np.uint64(0x736F6D6570736575)
_S1 = np.uint64(0x646F72616E646F6D)
_S2 = np.uint64(0x6C7967656E657261)
_S3 = np.uint64(0x7465646279746573)
"""What SipHash starts with."""
_SPREAD = np.uint64(0xBF58476D1CE4E5B9)
"""A factor with well mixed bits (Steele, Lea and Flood 2014)."""


@inlined
def word_at(data: Bytes, position: int) -> np.uint64:
    """The eight bytes from ``position`` on, as a little-endian integer."""
    p = np.uint64(position)
    return (
        np.uint64(data[p])
        | (np.uint64(data[p + np.uint64(1)]) << np.uint64(8))
        | (np.uint64(data[p + np.uint64(2)]) << np.uint64(16))
        | (np.uint64(data[p + np.uint64(3)]) << np.uint64(24))
        | (np.uint64(data[p + np.uint64(4)]) << np.uint64(32))
        | (np.uint64(data[p + np.uint64(5)]) << np.uint64(40))
        | (np.uint64(data[p + np.uint64(6)]) << np.uint64(48))
        | (np.uint64(data[p + np.uint64(7)]) << np.uint64(56))
    )


@inlined
def part_of_word_at(data: Bytes, position: int, size: int) -> np.uint64:
    """The ``size`` (one to seven) bytes from ``position`` on, as a little-endian integer."""
    word = np.uint64(0)
    if position + 8 <= len(data):
        bits = np.uint64(8) * np.uint64(size)
        word = word_at(data, position) & ((np.uint64(1) << bits) - np.uint64(1))
    else:
        for i in range(size):
            word |= np.uint64(data[position + i]) << np.uint64(8 * i)
    return word


@inlined
def _turned(value: np.uint64, bits: int) -> np.uint64:
    """``value`` with its bits rotated to the left."""
    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))


@inlined
def _round(
    v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """One round of SipHash."""
    v0 += v1
    v2 += v3
    v1 = _turned(v1, 13) ^ v0
    v3 = _turned(v3, 16) ^ v2
    v0 = _turned(v0, 32)
    v2 += v1
    v0 += v3
    v1 = _turned(v1, 17) ^ v2
    v3 = _turned(v3, 21) ^ v0
    v2 = _turned(v2, 32)
    return v0, v1, v2, v3


@inlined
def _finished(v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64, size: int) -> np.int64:
    """The last word, which is the size, and three rounds more."""
    v3 ^= np.uint64(size)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0 ^= np.uint64(size)
    v2 ^= np.uint64(255)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return np.int64(v0 ^ v1 ^ v2 ^ v3)


@kernel
def hash_bytes(data: Bytes, start: int, size: int, key: UInt64s) -> np.int64:
    """SipHash-1-3 with ``key`` of the ``size`` bytes from ``start`` on, as int64.

    Words are hashed as they are in an entry, and then the size as a word of its own.
    """
    v0, v1, v2, v3 = key[0] ^ _S0, key[1] ^ _S1, key[0] ^ _S2, key[1] ^ _S3
    position = start
    left = size
    while left > 0:
        word = word_at(data, position) if left >= 8 else part_of_word_at(data, position, left)
        v3 ^= word
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0 ^= word
        position += 8
        left -= 8
    return np.int64(_finished(v0, v1, v2, v3, size))


@kernel
def hash_entry(arena: Int64s, place: int, key: UInt64s) -> np.int64:
    """The same hash, of the bytes of an entry."""
    size = arena[place + 1]
    v0, v1, v2, v3 = key[0] ^ _S0, key[1] ^ _S1, key[0] ^ _S2, key[1] ^ _S3
    for i in range((size + 7) // 8):
        word = np.uint64(arena[place + HEADER + i])
        v3 ^= word
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0 ^= word
    return np.int64(_finished(v0, v1, v2, v3, size))


@kernel
def is_entry(arena: Int64s, place: int, data: Bytes, start: int, size: int) -> bool:
    """Whether the entry at ``place`` is for the ``size`` bytes of ``data`` from ``start`` on."""
    if arena[place + 1] != size:
        return False
    position = start
    left = size
    place += HEADER
    while left >= 8:
        if np.uint64(arena[place]) != word_at(data, position):
            return False
        place += 1
        position += 8
        left -= 8
    return left == 0 or np.uint64(arena[place]) == part_of_word_at(data, position, left)


@kernel
def put_entry(arena: Int64s, place: int, number: int, data: Bytes, start: int, size: int) -> int:
    """Write an entry; the place behind it."""
    arena[place] = number
    arena[place + 1] = size
    position = start
    left = size
    place += HEADER
    while left >= 8:
        arena[place] = np.int64(word_at(data, position))
        place += 1
        position += 8
        left -= 8
    if left > 0:
        arena[place] = np.int64(part_of_word_at(data, position, left))
        place += 1
    return place


@inlined
def identity_of(data: Bytes, start: int, size: int) -> np.uint64:
    """The identity of a short value: its bytes, and one more than its size; never 0."""
    word = part_of_word_at(data, start, size) if size > 0 else np.uint64(0)
    return word | (np.uint64(size + 1) << np.uint64(56))


@inlined
def short_slot(identity: np.uint64, mask: int, key: UInt64s) -> int:
    """Where to look for ``identity`` first, in a table of ``mask`` + 1 slots.

    Two secret factors alone leave one key in 25 by which values that only count in their highest
    bits meet, up to twenty at a place; a third factor, which need not be secret, spreads what the
    second one put into the bits above.
    """
    mixed = identity * (key[0] | np.uint64(1))
    mixed = (mixed ^ (mixed >> np.uint64(32))) * (key[1] | np.uint64(1))
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _SPREAD
    return int(np.int64(mixed >> np.uint64(32)) & mask)


@kernel
def intern(
    data: Bytes,
    offsets: Int64s,
    validity: Booleans,
    slots: Int64s,
    arena: Int64s,
    shorts: Int64s,
    state: Int64s,
    first: int,
    out: Int64s,
    key: UInt64s,
) -> int:
    """Number the rows from ``first`` on; the first row that is not done.

    ``state`` has the words of ``arena`` in use, the number of its entries and how many of them are
    short, and the next number. Stops early when one more entry would not fit: the caller makes room
    and goes on. ``validity`` is empty if no row is NULL.
    """
    mask, short_mask = len(slots) // 2 - 1, len(shorts) // 2 - 1
    limit, short_limit = (mask + 1) // 2, (short_mask + 1) // 2
    used, count, short_count, next_number = state[USED], state[COUNT], state[SHORT], state[NEXT]
    done = len(offsets) - 1
    rows = len(offsets) - 1
    has_nulls = len(validity) != 0
    hashes = np.empty(_BLOCK, np.int64)
    guesses = np.empty(_BLOCK, np.int64)
    for block in range(first, rows, _BLOCK):
        stop = min(block + _BLOCK, rows)
        for row in range(block, stop):
            i = row - block
            start = offsets[row]
            size = offsets[row + 1] - start
            if has_nulls and not validity[row]:
                hashes[i], guesses[i] = 0, 0
            elif size <= SHORT_SIZE:
                identity = identity_of(data, start, size)
                hashes[i] = np.int64(identity)
                guesses[i] = short_slot(identity, short_mask, key)
                prefetch(shorts, 2 * guesses[i])
            else:
                hashes[i] = hash_bytes(data, start, size, key)
                guesses[i] = hashes[i] & mask
                prefetch(slots, 2 * guesses[i])
        for row in range(block, stop):
            i = row - block
            if offsets[row + 1] - offsets[row] <= SHORT_SIZE or (has_nulls and not validity[row]):
                continue
            h, slot = hashes[i], guesses[i]
            while slots[2 * slot + 1] != EMPTY and slots[2 * slot] != h:
                slot = (slot + 1) & mask
            guesses[i] = slots[2 * slot + 1]
        for row in range(block, stop):
            if has_nulls and not validity[row]:
                out[row] = NOT_A_VALUE
                continue
            start = offsets[row]
            size = offsets[row + 1] - start
            h = hashes[row - block]
            words = HEADER + (size + 7) // 8
            if size <= SHORT_SIZE:
                slot = guesses[row - block]
                while shorts[2 * slot] != h and shorts[2 * slot] != 0:
                    slot = (slot + 1) & short_mask
                if shorts[2 * slot] == 0:
                    if short_count >= short_limit or used + words > len(arena):
                        done = row
                        break
                    shorts[2 * slot], shorts[2 * slot + 1] = h, next_number
                    used = put_entry(arena, used, next_number, data, start, size)
                    next_number += 1
                    count += 1
                    short_count += 1
                out[row] = shorts[2 * slot + 1]
                continue
            place = guesses[row - block]
            if place != EMPTY and is_entry(arena, place, data, start, size):
                out[row] = arena[place]
                continue
            slot = h & mask
            while slots[2 * slot + 1] != EMPTY:
                place = slots[2 * slot + 1]
                if slots[2 * slot] == h and is_entry(arena, place, data, start, size):
                    break
                slot = (slot + 1) & mask
            if slots[2 * slot + 1] == EMPTY:
                if count - short_count >= limit or used + words > len(arena):
                    done = row
                    break
                slots[2 * slot], slots[2 * slot + 1] = h, used
                used = put_entry(arena, used, next_number, data, start, size)
                next_number += 1
                count += 1
            out[row] = arena[slots[2 * slot + 1]]
        if done < rows:
            break
    state[USED], state[COUNT], state[SHORT], state[NEXT] = used, count, short_count, next_number
    return done


@kernel
def rehash_short(old: Int64s, new: Int64s, key: UInt64s) -> None:
    """Move the short values of table ``old`` to the empty table ``new``."""
    mask = len(new) // 2 - 1
    for i in range(len(old) // 2):
        if old[2 * i] != 0:
            _enter_short(new, mask, old[2 * i], old[2 * i + 1], key)


@inlined
def _enter_short(shorts: Int64s, mask: int, identity: int, number: int, key: UInt64s) -> None:
    slot = short_slot(np.uint64(identity), mask, key)
    while shorts[2 * slot] != 0:
        slot = (slot + 1) & mask
    shorts[2 * slot], shorts[2 * slot + 1] = identity, number


@kernel
def rehash(old: Int64s, new: Int64s) -> None:
    """Move the entries of table ``old`` to the empty table ``new``, by the hashes stored there."""
    mask = len(new) // 2 - 1
    for i in range(len(old) // 2):
        if old[2 * i + 1] != EMPTY:
            h = old[2 * i]
            slot = h & mask
            while new[2 * slot + 1] != EMPTY:
                slot = (slot + 1) & mask
            new[2 * slot] = h
            new[2 * slot + 1] = old[2 * i + 1]


@kernel
def list_entries(arena: Int64s, places: Int64s, numbers: Int64s) -> None:
    """Fill in the places and numbers of all entries; ``places`` also gets the place behind them."""
    place = 0
    for entry in range(len(numbers)):
        places[entry] = place
        numbers[entry] = arena[place]
        place += HEADER + (arena[place + 1] + 7) // 8
    places[len(numbers)] = place


@kernel
def mark_live(
    arena: Int64s, places: Int64s, numbers: Int64s, live: Int64s, kept: Booleans
) -> tuple[int, int, int]:
    """Set ``kept`` for the entries numbered in ``live``; how many they are, how many of them are
    short, and the words of all.

    Numbers in ``live`` may repeat, and may be of no entry. ``numbers`` is ascending, so each is
    found by bisection.
    """
    count = 0
    short_count = 0
    words = 0
    for number in live:
        low = 0
        high = len(numbers)
        while low < high:
            middle = (low + high) // 2
            if numbers[middle] < number:
                low = middle + 1
            else:
                high = middle
        if low < len(numbers) and numbers[low] == number and not kept[low]:
            kept[low] = True
            count += 1
            short_count += int(arena[places[low] + 1] <= SHORT_SIZE)
            words += places[low + 1] - places[low]
    return count, short_count, words


@kernel
def copy_kept(
    arena: Int64s,
    places: Int64s,
    kept: Booleans,
    new_arena: Int64s,
    new_slots: Int64s,
    new_shorts: Int64s,
    key: UInt64s,
) -> None:
    """Copy the ``kept`` entries, and enter them into the empty ``new_slots`` or ``new_shorts``."""
    mask, short_mask = len(new_slots) // 2 - 1, len(new_shorts) // 2 - 1
    used = 0
    for entry in range(len(kept)):
        if kept[entry]:
            place = places[entry]
            size = arena[place + 1]
            if size <= SHORT_SIZE:
                word = np.uint64(arena[place + HEADER]) if size > 0 else np.uint64(0)
                identity = np.int64(word | (np.uint64(size + 1) << np.uint64(56)))
                _enter_short(new_shorts, short_mask, identity, arena[place], key)
            else:
                h = hash_entry(arena, place, key)
                slot = h & mask
                while new_slots[2 * slot + 1] != EMPTY:
                    slot = (slot + 1) & mask
                new_slots[2 * slot] = h
                new_slots[2 * slot + 1] = used
            for place in range(places[entry], places[entry + 1]):
                new_arena[used] = arena[place]
                used += 1


@kernel
def copy_bytes(arena: Int64s, places: Int64s, offsets: Int64s, data: Bytes) -> None:
    """Copy the bytes of each entry to where ``offsets`` says."""
    for entry in range(len(offsets) - 1):
        start = offsets[entry]
        for i in range(offsets[entry + 1] - start):
            word = np.uint64(arena[places[entry] + HEADER + i // 8])
            data[start + i] = np.uint8((word >> np.uint64(8 * (i % 8))) & np.uint64(255))
