"""Keys are equal if and only if values are, and ordered as values are.

The twin is Spark's equality and order on Python values, pair by pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InputError, InvariantBroken
from penstock.values.arrow_layout import booleans_of, bytes_of, validity_of
from penstock.values.interner import Interner
from penstock.values.key_types import KEY_TYPES, key_type_of

NAN = math.nan


def integers(bits: int, signed: bool = True) -> st.SearchStrategy[int]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    near = st.sampled_from([low, low + 1, 0, 1, high // 2, high // 2 + 1, high - 1, high])
    return near | st.integers(low, high) | st.integers(max(low, -3), 3)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    largest = 10**precision - 1
    unscaled = st.sampled_from([-largest, -1, 0, 1, largest]) | st.integers(-largest, largest)
    return unscaled.map(lambda n: Decimal((int(n < 0), Decimal(abs(n)).as_tuple().digits, -scale)))


SPECIAL = [0.0, -0.0, NAN, -NAN, math.inf, -math.inf, 1.0, -1.0, 5e-324, -5e-324, 1e-45, 65504.0]
FLOATS = st.sampled_from(SPECIAL)
TEXTS = st.sampled_from(["", "a", "a\0", "a\0b", "\0", "é", "e\u0301", "ß", "🚰", "ab"]) | st.text(
    max_size=12
)
BINARIES = TEXTS.map(lambda t: t.encode("utf-8", "surrogatepass"))
FIXED = st.binary(min_size=3, max_size=3) | st.sampled_from([b"\0\0\0", b"\0\0a", b"abc"])

ORDERED: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int8(), integers(8)),
    (pa.int16(), integers(16)),
    (pa.int32(), integers(32)),
    (pa.int64(), integers(64)),
    (pa.uint8(), integers(8, False)),
    (pa.uint16(), integers(16, False)),
    (pa.uint32(), integers(32, False)),
    (pa.uint64(), integers(64, False)),
    (pa.bool_(), st.booleans()),
    (pa.float16(), st.floats(width=16) | FLOATS),
    (pa.float32(), st.floats(width=32) | FLOATS),
    (pa.float64(), st.floats() | FLOATS),
    (pa.date32(), integers(32)),
    (pa.date64(), st.integers(-(10**8), 10**8).map(lambda day: day * 86_400_000)),
    (pa.time32("s"), st.integers(0, 86_399)),
    (pa.time64("us"), st.integers(0, 86_399_999_999)),
    (pa.timestamp("s"), integers(64)),
    (pa.timestamp("us", "Europe/Paris"), integers(64)),
    (pa.timestamp("ns"), integers(64)),
    (pa.duration("ms"), integers(64)),
    (pa.decimal32(9, 3), decimals(9, 3)),
    (pa.decimal64(18, 2), decimals(18, 2)),
    (pa.decimal128(18, 0), decimals(18, 0)),
    (pa.decimal128(5, 2), decimals(5, 2)),
    (pa.decimal256(18, 9), decimals(18, 9)),
    (pa.dictionary(pa.int8(), pa.int64()), integers(64)),
    (pa.null(), st.none()),
]
UNORDERED: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.string(), TEXTS),
    (pa.large_string(), TEXTS),
    (pa.string_view(), TEXTS),
    (pa.binary(), BINARIES),
    (pa.large_binary(), BINARIES),
    (pa.binary_view(), BINARIES),
    (pa.binary(3), FIXED),
    (pa.decimal128(19, 0), decimals(19, 0)),
    (pa.decimal128(38, 10), decimals(38, 10)),
    (pa.decimal256(76, 2), decimals(76, 2)),
    (pa.dictionary(pa.int32(), pa.string()), TEXTS),
    (pa.dictionary(pa.int16(), pa.large_binary()), BINARIES),
]


def compare(left: Any, right: Any) -> int:
    """Spark's order: NaN is equal to itself and greater than all other numbers."""
    left_nan, right_nan = left != left, right != right
    if left_nan or right_nan:
        return int(left_nan) - int(right_nan)
    return int(left > right) - int(left < right)


def array_of(values: list[Any], type: pa.DataType) -> pa.Array:
    if pa.types.is_date(type) or (pa.types.is_temporal(type) and pa.types.is_time(type)):
        storage = pa.int32() if type.bit_width == 32 else pa.int64()
        return pa.array(values, storage).view(type)
    if pa.types.is_float16(type):
        halves = [None if v is None else np.float16(v) for v in values]
        return pa.array(halves, type)
    if pa.types.is_dictionary(type):
        return pa.array(values, type.value_type).dictionary_encode().cast(type)
    return pa.array(values, type)


def plain(values: list[Any], type: pa.DataType) -> list[Any]:
    """``values`` after the rounding that putting them into an array implies."""
    if not pa.types.is_floating(type):
        return values
    dtype = type.to_pandas_dtype()
    with np.errstate(all="ignore"):
        return [None if v is None else float(dtype(v)) for v in values]


def shuffled_slices(values: list[Any], type: pa.DataType) -> list[pa.Array]:
    """The same values, in memory in different ways."""
    whole = array_of(values, type)
    padded = array_of(values[:1] * 5 + [None] * 6 + values + values[:1] * 2, type)
    start = 5 * bool(values) + 6
    return [whole, padded.slice(start, len(values)), whole.slice(0), padded[start:][: len(values)]]


def check(type: pa.DataType, values: list[Any]) -> None:
    encoder = key_type_of(type)
    interner = Interner() if encoder.needs_interner else None
    values_in = plain(values, type)
    for array in shuffled_slices(values, type):
        assert array.type == type
        keys, validity = encoder.encode(array, interner)
        assert keys.dtype == np.int64
        assert len(keys) == len(values)
        valid = [True] * len(values) if validity is None else validity.tolist()
        assert valid == [v is not None for v in values]
        present = [(v, int(k)) for v, k, ok in zip(values_in, keys, valid, strict=True) if ok]
        for left, left_key in present:
            for right, right_key in present:
                order = compare(left, right)
                assert (left_key == right_key) == (order == 0), (left, right)
                if encoder.ordered:
                    assert (left_key < right_key) == (order < 0), (left, right)


@pytest.mark.parametrize(("type", "values"), ORDERED + UNORDERED, ids=lambda p: str(p)[:40])
def test_keys_are_equal_and_ordered_as_values(
    type: pa.DataType, values: st.SearchStrategy[Any]
) -> None:
    @settings(derandomize=True, max_examples=40, deadline=None, database=None)
    @given(st.lists(st.none() | values, max_size=12))
    def run(rows: list[Any]) -> None:
        check(type, rows)

    run()


@pytest.mark.parametrize(("type", "ordered"), [(t, True) for t, _ in ORDERED])
def test_fixed_width_types_are_ordered(type: pa.DataType, ordered: bool) -> None:
    encoder = key_type_of(type)
    assert encoder.ordered is ordered
    assert encoder.needs_interner is False


@pytest.mark.parametrize("type", [t for t, _ in UNORDERED])
def test_bytes_need_an_interner(type: pa.DataType) -> None:
    encoder = key_type_of(type)
    assert encoder.ordered is False
    assert encoder.needs_interner is True
    with pytest.raises(InvariantBroken, match="interner"):
        encoder.encode(pa.nulls(1, type), None)


@pytest.mark.parametrize("type", [t for t, _ in ORDERED + UNORDERED])
def test_nothing_and_nothing_but_null(type: pa.DataType) -> None:
    encoder = key_type_of(type)
    for length in (0, 1, 9):
        keys, validity = encoder.encode(pa.nulls(length, type), Interner())
        assert len(keys) == length
        assert length == 0 or (validity is not None and not validity.any())


def test_texts_without_a_data_buffer() -> None:
    offsets = pa.py_buffer(np.zeros(3, np.int32).tobytes())
    array = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"")])
    keys, validity = key_type_of(array.type).encode(array, Interner())
    assert validity is None
    assert keys.tolist() == [0, 0]


@pytest.mark.parametrize("bits", [0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, -1])
def test_every_nan_is_one_value_and_the_greatest(bits: int) -> None:
    values = np.array([bits & 0xFFFFFFFFFFFFFFFF], np.uint64).view(np.float64)
    assert np.isnan(values[0])
    encoder = key_type_of(pa.float64())
    key = encoder.encode(pa.array(values, from_pandas=False))[0]
    others = encoder.encode(pa.array([NAN, math.inf]))[0]
    assert key[0] == others[0] > others[1]


def test_floats_share_keys_with_doubles() -> None:
    narrow = key_type_of(pa.float32()).encode(pa.array([0.1, NAN, -0.0], pa.float32()))[0]
    wide = key_type_of(pa.float64()).encode(
        pa.array([float(np.float32(0.1)), NAN, 0.0], pa.float64())
    )[0]
    assert narrow.tolist() == wide.tolist()


def test_unsigned_64_keeps_its_order() -> None:
    values = [0, 1, 2**63 - 1, 2**63, 2**64 - 1]
    keys = key_type_of(pa.uint64()).encode(pa.array(values, pa.uint64()))[0]
    assert keys.tolist() == [v - 2**63 for v in values]


def test_int64_is_not_copied() -> None:
    array = pa.array(range(10)).slice(3)
    keys, validity = key_type_of(array.type).encode(array)
    assert validity is None
    assert keys.tolist() == list(range(3, 10))
    assert keys.__array_interface__["data"][0] == array.buffers()[1].address + 24


def test_odd_addresses_are_copied() -> None:
    raw = pa.py_buffer(b"\0" + np.arange(4).tobytes())
    array = pa.Array.from_buffers(pa.int64(), 3, [None, raw.slice(1)], offset=1)
    keys, _ = key_type_of(array.type).encode(array)
    assert keys.flags.aligned
    assert keys.tolist() == [1, 2, 3]


def test_equal_values_of_two_columns_share_a_key_with_one_interner() -> None:
    shared, other = Interner(), Interner()
    encoder = key_type_of(pa.string())
    left, _ = encoder.encode(pa.array(["x", "y", "z"]), shared)
    right, _ = encoder.encode(pa.array(["z", "new", "x"]), shared)
    assert right[0] == left[2]
    assert right[2] == left[0]
    assert right[1] not in left
    assert encoder.encode(pa.array(["z"]), other)[0].tolist() == [0]


def test_dictionaries_of_two_batches_agree() -> None:
    interner = Interner()
    type = pa.dictionary(pa.int32(), pa.string())
    encoder = key_type_of(type)
    first = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int32()), ["a", "b"])
    second = pa.DictionaryArray.from_arrays(
        pa.array([2, 1, 0, 2], pa.int32()), pa.array(["b", None, "a"])
    )
    left, left_validity = encoder.encode(first, interner)
    right, right_validity = encoder.encode(second, interner)
    assert left_validity is not None
    assert left_validity.tolist() == [True, True, False]
    assert right_validity is not None
    assert right_validity.tolist() == [True, False, True, True]
    assert [right[0], right[2], right[3]] == [left[0], left[1], left[0]]


@pytest.mark.parametrize(
    "type", [type for type, _ in ORDERED + UNORDERED if type != pa.null()], ids=str
)
def test_samples_are_equal_for_equal_numbers(type: pa.DataType) -> None:
    numbers = np.array([0, 3, 1, 3, 40, 0], np.int64)
    array = key_type_of(type).sample(numbers)
    assert array.type == type
    assert len(array) == len(numbers)
    assert array.null_count == 0
    values = array.to_pylist()
    assert values[1] == values[3]
    assert values[0] == values[5]
    assert len(set(values)) == (2 if type == pa.bool_() else 4)


def test_the_registry_names_every_kind_once() -> None:
    assert len(set(KEY_TYPES)) == len(KEY_TYPES)
    kinds = {type(key_type_of(each)) for each, _ in ORDERED + UNORDERED}
    assert kinds == set(KEY_TYPES)


@pytest.mark.parametrize(
    "type",
    [
        pa.list_(pa.int64()),
        pa.struct([("a", pa.int64())]),
        pa.map_(pa.string(), pa.int64()),
        pa.month_day_nano_interval(),
    ],
)
def test_other_types_are_refused(type: pa.DataType) -> None:
    with pytest.raises(InputError, match="cannot be a join key"):
        key_type_of(type)


@pytest.mark.parametrize(
    ("make", "type"),
    [
        (lambda: pa.array(["", "aé", None, "c\0"]), pa.string()),
        (lambda: pa.array(["", "aé", None, "c\0"], pa.large_string()), pa.large_string()),
        (lambda: pa.array(["", "aé", None, "c\0"], pa.string_view()), pa.string_view()),
        (lambda: pa.array([b"abc", None, b"\0\0\0"], pa.binary(3)), pa.binary(3)),
        (lambda: pa.array([], pa.binary()), pa.binary()),
    ],
)
@pytest.mark.parametrize("start", [0, 1, 3])
def test_bytes_of(make: Callable[[], pa.Array], type: pa.DataType, start: int) -> None:
    array = make().slice(start)
    data, offsets = bytes_of(array)
    assert data.dtype == np.uint8
    assert offsets.dtype == np.int64
    assert len(offsets) == len(array) + 1
    for i, value in enumerate(array.to_pylist()):
        assert 0 <= offsets[i] <= offsets[i + 1] <= len(data)
        if value is not None:
            expected = value.encode() if isinstance(value, str) else value
            assert data[offsets[i] : offsets[i + 1]].tobytes() == expected


@settings(derandomize=True, max_examples=60, deadline=None, database=None)
@given(st.lists(st.none() | st.booleans(), max_size=40), st.integers(0, 20), st.integers(0, 20))
def test_bits(values: list[bool | None], start: int, length: int) -> None:
    array = pa.array(values, pa.bool_()).slice(start, length)
    expected = values[start : start + length]
    validity = validity_of(array)
    valid = [True] * len(expected) if validity is None else validity.tolist()
    assert valid == [v is not None for v in expected]
    seen = booleans_of(array).tolist()
    assert [s for s, ok in zip(seen, valid, strict=True) if ok] == [
        v for v in expected if v is not None
    ]
