"""Hashes of values that decide the cell of a row: equal values, equal hashes, on every machine.

Equal means equal in the sense of Spark SQL. Where :mod:`penstock.values.key_types` encodes a
type as int64, the key is the canonical form of the value (one NaN, one zero, decimals of one
scale), and the hash is that of the key. Strings, binaries and wide decimals are hashed by their
bytes. Nothing depends on a seed, a process or an order of arrival, since a task that is run again
and a query that is restarted must send a row to the cells it went to before: a change of these
functions must change :data:`VERSION`, which makes checkpoints of before unusable.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import InputError
from penstock.kernels.kernel import kernel
from penstock.kernels.stable_hash import stable_hash
from penstock.values.arrow_layout import bytes_of, validity_of
from penstock.values.key_types import key_type_of

VERSION = 1

UInt64s = NDArray[np.uint64]
Booleans = NDArray[np.bool_]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
NOTHING = np.uint64(0x6A09E667F3BCC908)
"""The hash of NULL, where NULL has one."""


def value_hashes(array: pa.Array) -> tuple[UInt64s, Booleans | None]:
    """A hash of each value, and which of them are not NULL (None: all)."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    encoder = key_type_of(array.type)
    if encoder.needs_interner:
        data, offsets = bytes_of(array)
        validity = validity_of(array)
        if len(data) == 0:
            data = np.zeros(1, np.uint8)
        valid = np.ones(len(array), np.bool_) if validity is None else validity
        return mixed(_byte_hashes(data, offsets, valid).view(np.uint64)), validity
    keys, validity = encoder.encode(array)
    return mixed(np.ascontiguousarray(keys).view(np.uint64)), validity


def row_hashes(columns: list[pa.Array], count: int) -> UInt64s:
    """A hash of each row, of all columns whose values can be compared."""
    hashes = np.zeros(count, np.uint64)
    for column in columns:
        try:
            values, validity = value_hashes(column)
        except InputError:
            continue
        if validity is not None:
            values = np.where(validity, values, NOTHING)
        hashes = mixed((hashes + _GOLDEN) ^ values)
    return hashes


def mixed(values: UInt64s) -> UInt64s:
    """The finaliser of splitmix64: every bit of the input moves every bit of the hash."""
    h = values + _GOLDEN
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    finished: UInt64s = h ^ (h >> np.uint64(31))
    return finished


@kernel
def _byte_hashes(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], valid: Booleans
) -> NDArray[np.int64]:
    out = np.zeros(len(offsets) - 1, np.int64)
    for i in range(len(out)):
        if valid[i]:
            out[i] = stable_hash(data, offsets[i], offsets[i + 1] - offsets[i])
    return out
