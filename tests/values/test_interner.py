"""The interner against a dictionary, and its kernels against twins on Python bytes."""

from __future__ import annotations

import struct
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from penstock.kernels import intern as kernels
from penstock.kernels.stable_hash import stable_hash
from penstock.values.hash_secret import SECRET
from penstock.values.interner import NOT_A_VALUE, Interner

Int64s = NDArray[np.int64]
MASK = 2**64 - 1


class DictionaryInterner:
    """What an interner means."""

    def __init__(self) -> None:
        self.numbers: dict[bytes, int] = {}
        self.next_number = 0

    def intern(self, values: list[bytes | None]) -> list[int]:
        return [NOT_A_VALUE if value is None else self.number(value) for value in values]

    def number(self, value: bytes) -> int:
        if value not in self.numbers:
            self.numbers[value] = self.next_number
            self.next_number += 1
        return self.numbers[value]

    def sweep(self, live: list[int]) -> None:
        self.numbers = {v: n for v, n in self.numbers.items() if n in live}


def packed(values: list[bytes | None], before: bytes = b"") -> tuple[Any, Int64s, Any]:
    """Values as an interner takes them, with ``before`` in front of the first one."""
    filled = [b"" if v is None else v for v in values]
    data = np.frombuffer(before + b"".join(filled), np.uint8)
    ends = np.cumsum([len(before), *map(len, filled)], dtype=np.int64)
    validity = np.array([v is not None for v in values], np.bool_)
    return data, ends, None if validity.all() else validity


def hash_twin(value: bytes, key: tuple[int, int]) -> int:
    """The hash as the kernel computes it, as a signed integer: SipHash-1-3 of words."""
    v = [
        key[0] ^ 0x736F6D6570736575,
        key[1] ^ 0x646F72616E646F6D,
        key[0] ^ 0x6C7967656E657261,
        key[1] ^ 0x7465646279746573,
    ]

    def turned(number: int, bits: int) -> int:
        return (number << bits | number >> (64 - bits)) & MASK

    def mix() -> None:
        v[0], v[2] = (v[0] + v[1]) & MASK, (v[2] + v[3]) & MASK
        v[1], v[3] = turned(v[1], 13) ^ v[0], turned(v[3], 16) ^ v[2]
        v[0] = turned(v[0], 32)
        v[2], v[0] = (v[2] + v[1]) & MASK, (v[0] + v[3]) & MASK
        v[1], v[3] = turned(v[1], 17) ^ v[2], turned(v[3], 21) ^ v[0]
        v[2] = turned(v[2], 32)

    words = [int.from_bytes(value[i : i + 8], "little") for i in range(0, len(value), 8)]
    for word in [*words, len(value)]:
        v[3] ^= word
        mix()
        v[0] ^= word
    v[2] ^= 255
    for _ in range(3):
        mix()
    h = v[0] ^ v[1] ^ v[2] ^ v[3]
    return h - 2**64 if h >= 2**63 else h


KEY = (0x0123456789ABCDEF, 0xFEDCBA9876543210)
KEY_ARRAY = np.array(KEY, np.uint64)


def flood(count: int) -> list[bytes]:
    """Values of 16 bytes that share one hash where hashes are not keyed, as cells have them."""

    def state(word: int) -> int:
        h = 16 * 0x9E3779B97F4A7C15 & MASK
        h = (h ^ word) * 0xFF51AFD7ED558CCD & MASK
        return h ^ h >> 32

    return [struct.pack("<QQ", i, state(i)) for i in range(count)]


VALUES = st.sampled_from([b"", b"\0", b"\0\0", b"a", b"a\0", b"ab", b"x" * 7, b"x" * 8, b"x" * 9])
BYTES = VALUES | st.binary(max_size=40) | st.integers(0, 300).map(lambda i: f"user-{i}".encode())


@settings(derandomize=True, max_examples=150, deadline=None, database=None)
@given(st.binary(max_size=40), st.integers(0, 9), st.integers(0, 9))
def test_entries_agree_with_their_twin(value: bytes, start: int, behind: int) -> None:
    data = np.frombuffer(b"-" * start + value + b"!" * behind, np.uint8)
    data = np.zeros(0, np.uint8) if len(data) == 0 else data
    assert kernels.hash_bytes(data, start, len(value), KEY_ARRAY) == hash_twin(value, KEY)
    arena = np.full(12, -1, np.int64)
    place = kernels.put_entry(arena, 3, 77, data, start, len(value))
    assert place == 3 + kernels.HEADER + (len(value) + 7) // 8
    assert arena[3:5].tolist() == [77, len(value)]
    stored = arena[5:place].tobytes()
    assert stored == value + bytes(len(stored) - len(value))
    assert kernels.hash_entry(arena, 3, KEY_ARRAY) == hash_twin(value, KEY)
    assert kernels.is_entry(arena, 3, data, start, len(value))


@pytest.mark.parametrize("size", range(27))
def test_every_byte_counts(size: int) -> None:
    value = bytes(range(1, size + 1))
    arena = np.zeros(12, np.int64)
    kernels.put_entry(arena, 0, 0, np.frombuffer(value + b"!", np.uint8), 0, size)
    for i in range(size):
        other = value[:i] + bytes([value[i] ^ 64]) + value[i + 1 :]
        assert not kernels.is_entry(arena, 0, np.frombuffer(b"-" + other, np.uint8), 1, size)
        assert hash_twin(value, KEY) != hash_twin(other, KEY)
    longer = np.frombuffer(value + bytes(9), np.uint8)
    for more in range(1, 9):
        assert not kernels.is_entry(arena, 0, longer, 0, size + more)


STEPS = st.lists(
    st.tuples(st.just("intern"), st.lists(st.none() | BYTES, max_size=60))
    | st.tuples(st.just("sweep"), st.lists(st.integers(-1, 400), max_size=40)),
    max_size=8,
)


@settings(derandomize=True, max_examples=120, deadline=None, database=None)
@given(STEPS)
def test_agrees_with_a_dictionary(steps: list[tuple[str, Any]]) -> None:
    interner, twin = Interner(), DictionaryInterner()
    for step, argument in steps:
        if step == "sweep":
            interner.sweep(np.array(argument, np.int64))
            twin.sweep(argument)
        else:
            data, offsets, validity = packed(argument, before=b"skipped")
            assert interner.intern(data, offsets, validity).tolist() == twin.intern(argument)
        assert len(interner) == len(twin.numbers)
        held: dict[bytes, int] = {}
        for numbers, values in interner.contents(3):
            values.validate(full=True)
            assert len(values) <= 3
            held |= dict(zip(values.to_pylist(), numbers.tolist(), strict=True))
        assert held == twin.numbers


def test_grows_through_many_values_and_shrinks_again() -> None:
    interner, twin = Interner(), DictionaryInterner()
    values: list[bytes | None] = [f"value {i * 7 % 20_000}".encode() for i in range(30_000)]
    numbers = interner.intern(*packed(values))
    assert numbers.tolist() == twin.intern(values)
    assert len(interner) == 20_000
    full = interner.nbytes
    assert full < 20_000 * 200
    live = numbers[:100]
    interner.sweep(live)
    assert len(interner) == 100
    assert interner.nbytes < full // 20
    assert interner.intern(*packed(values[:100])).tolist() == live.tolist()
    again = interner.intern(*packed(values[100:103]))
    assert again.tolist() == [20_000, 20_001, 20_002]


def test_a_swept_value_gets_a_new_number() -> None:
    interner = Interner()
    assert interner.intern(*packed([b"a", b"b", b"c"])).tolist() == [0, 1, 2]
    interner.sweep(np.array([1, 1, 77, -1]))
    assert len(interner) == 1
    assert interner.intern(*packed([b"a", b"b", b"c"])).tolist() == [3, 1, 4]
    interner.sweep(np.zeros(0, np.int64))
    assert len(interner) == 0
    assert interner.intern(*packed([b"b"])).tolist() == [5]


def test_a_hash_decides_nothing() -> None:
    """A value that meets the hash of another in the table gets a number of its own."""
    one, two = b"one value", b"another value"
    data, offsets, _ = packed([two])
    arena, slots = np.zeros(64, np.int64), np.full(2 * 64, kernels.EMPTY, np.int64)
    used = kernels.put_entry(arena, 0, 0, np.frombuffer(one, np.uint8), 0, len(one))
    h = kernels.hash_bytes(np.frombuffer(two, np.uint8), 0, len(two), KEY_ARRAY)
    slot = h & 63
    slots[2 * slot : 2 * slot + 2] = h, 0
    out = np.empty(1, np.int64)
    none = np.zeros(0, np.bool_)
    state, shorts = np.array([used, 1, 0, 1]), np.zeros(2 * 64, np.int64)
    done = kernels.intern(data, offsets, none, slots, arena, shorts, state, 0, out, KEY_ARRAY)
    assert (done, state[kernels.COUNT], out.tolist()) == (1, 2, [1])


def identity_twin(value: bytes) -> int:
    return int.from_bytes(value, "little") | (len(value) + 1) << 56


@given(st.lists(st.binary(max_size=7), max_size=300), st.binary(max_size=9))
def test_short_values_are_words_of_their_own(values: list[bytes], behind: bytes) -> None:
    data = np.frombuffer(b"".join(values) + behind, np.uint8)
    start = 0
    for value in values:
        assert kernels.identity_of(data, start, len(value)) == identity_twin(value)
        start += len(value)


def test_short_values_that_differ_in_their_highest_bits_do_not_meet() -> None:
    """Zeros in front, and then whatever an attacker can choose."""
    values: list[bytes | None] = [b"\0\0\0\0" + i.to_bytes(3, "little") for i in range(20_000)]
    interner = Interner()
    assert interner.intern(*packed(values)).tolist() == list(range(20_000))
    slots = len(interner._shorts) // 2
    identities = [np.uint64(each) for each in interner._shorts[::2].tolist() if each]
    for secret in [SECRET, *np.random.default_rng(1).integers(0, 2**64, (60, 2), np.uint64)]:
        wanted = {kernels.short_slot(each, slots - 1, secret) for each in identities}
        # 17,237 of 20,000 if they were drawn by lot; with two factors alone, one secret in 25 was
        # below 10,000.
        assert len(wanted) > 16_500


def test_crafted_values_do_not_meet() -> None:
    values = flood(4_000)
    assert len({stable_hash(np.frombuffer(v, np.uint8), 0, 16) for v in values}) == 1
    interner = Interner()
    data, offsets, _ = packed([*values])
    assert interner.intern(data, offsets).tolist() == list(range(4_000))
    slots = len(interner._slots) // 2
    hashes = interner._slots[::2][interner._slots[1::2] != kernels.EMPTY]
    assert len(np.unique(hashes & (slots - 1))) > 2_000


def test_every_process_has_its_own_key() -> None:
    script = "from penstock.values.hash_secret import SECRET; print(SECRET.tolist())"
    keys = {
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout
        for _ in range(2)
    }
    assert len(keys) == 2


@pytest.mark.parametrize("size", [1007, 1008, 1009, 100_000])
def test_one_value_larger_than_the_arena(size: int) -> None:
    interner = Interner()
    long = b"z" * size
    assert interner.intern(*packed([long, b"", long, long[:-1]])).tolist() == [0, 1, 0, 2]
    interner.sweep(np.array([0]))
    assert interner.intern(*packed([long])).tolist() == [0]


def test_nothing() -> None:
    interner = Interner()
    assert interner.intern(*packed([])).tolist() == []
    assert interner.intern(*packed([None, None])).tolist() == [NOT_A_VALUE] * 2
    assert len(interner) == 0


def test_a_null_may_have_bytes() -> None:
    data = np.frombuffer(b"abcd", np.uint8)
    numbers = Interner().intern(
        data, np.array([0, 2, 3, 4]), np.array([True, False, True], np.bool_)
    )
    assert numbers.tolist() == [0, NOT_A_VALUE, 1]


def test_rehash_keeps_every_entry() -> None:
    old = np.full(2 * 8, kernels.EMPTY, np.int64)
    for slot, (h, entry) in enumerate([(5, 0), (13, 1), (-3, 2)]):
        old[2 * slot], old[2 * slot + 1] = h, entry
    new = np.full(2 * 16, kernels.EMPTY, np.int64)
    kernels.rehash(old, new)
    table = new.reshape(-1, 2)
    assert sorted(map(tuple, table[table[:, 1] >= 0].tolist())) == [(-3, 2), (5, 0), (13, 1)]
    for h, entry in ((5, 0), (13, 1), (-3, 2)):
        slot = h & 15
        while table[slot, 1] != entry:
            assert table[slot, 1] != kernels.EMPTY
            slot = (slot + 1) & 15
