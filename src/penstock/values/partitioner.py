"""Partitioners: which partition of a source a value belongs to, as its writer has it.

Where the streams of a join are partitioned by the join key, in one way and into as many partitions,
whoever reads the same partitions of all of them has all that meets. The number of a partition is
computed from the value of the key alone, so it can be checked for every row that is read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.kernels.partition_hash import CRC32, MURMUR2, MURMUR3, partitions
from penstock.values.arrow_layout import bytes_of, validity_of

Int64s = NDArray[np.int64]
_FUNCTIONS = {"murmur2": MURMUR2, "crc32": CRC32, "spark": MURMUR3}
PARTITIONERS = ("murmur2", "crc32")
"""Partitioners of Kafka's producers: of the Java client, and of librdkafka."""
SPARK = "spark"
"""How Spark's ``bucketBy`` does it."""
_INTEGERS = {"long": ">i8", "int": ">i4"}
ENCODINGS = ("text", *_INTEGERS)
"""How the value of a key becomes its bytes: as text in UTF-8, or as Java's serializers of longs and
integers write it, the most significant byte first."""


@dataclass(frozen=True, slots=True)
class Partitioner:
    """``count`` partitions by the hash ``function`` of a value in ``encoding``."""

    function: str
    count: int
    encoding: str = "text"
    """Of no importance to Spark's function, which knows types."""

    def __str__(self) -> str:
        return f"{self.function} of {self.count}"

    def why_not(self, kinds: set[pa.DataType]) -> str | None:
        """Why equal values of columns with these types need not have one partition; None if they
        do."""
        of_integers = all(pa.types.is_signed_integer(kind) for kind in kinds)
        of_texts = all(pa.types.is_string(kind) for kind in kinds)
        of_bytes = all(pa.types.is_binary(kind) for kind in kinds)
        if self.function == SPARK:
            of_dates = all(pa.types.is_date32(kind) for kind in kinds)
            fits = len(kinds) == 1 and (of_integers or of_texts or of_dates)
        elif self.encoding == "text":
            fits = of_integers or of_texts or of_bytes
        else:
            fits = of_integers
        if fits:
            return None
        return f"it has keys of type {', '.join(sorted(map(str, kinds)))}"

    def numbers(self, values: pa.Array) -> Int64s:
        """The partition of each value; NULL has one only where the writer gives it one."""
        validity = validity_of(values)
        valid = np.ones(len(values), np.bool_) if validity is None else validity
        data, offsets = self._bytes(values)
        if len(data) == 0:
            data = np.zeros(1, np.uint8)
        found: Int64s = partitions(_FUNCTIONS[self.function], data, offsets, valid, self.count)
        return found

    def _bytes(self, values: pa.Array) -> tuple[NDArray[np.uint8], Int64s]:
        """The bytes that are hashed: value ``i`` has those from its offset to the next."""
        is_number = pa.types.is_integer(values.type) or pa.types.is_date32(values.type)
        if not is_number:
            return bytes_of(values)
        if self.function != SPARK and self.encoding == "text":
            return bytes_of(pc.cast(values, pa.string()))
        if self.function == SPARK:
            kind = "<i8" if values.type.bit_width == 64 else "<i4"
        else:
            kind = _INTEGERS[self.encoding]
        whole = values.cast(pa.int32()) if pa.types.is_date32(values.type) else values
        numbers = whole.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False).astype(kind)
        width = numbers.dtype.itemsize
        return numbers.view(np.uint8), np.arange(len(numbers) + 1, dtype=np.int64) * width
