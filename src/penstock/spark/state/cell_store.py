"""Where the history of a cell is kept: a header and named values in Spark's state store.

Nothing of a cell is kept anywhere else. So what holds for the state of any other streaming query
holds here: a copy of a checkpoint is a query of its own, a rollback to a batch that Spark still has
finds the state of that batch, several joins in one query do not meet, and Spark cleans up.

A byte that crosses the state API is pickled, sent through a socket and copied a few times on the
JVM's side: 4 to 5 ms for a megabyte to write, and about 20 to read, where the JVM turns bytes into
a string and back. So values are compressed with LZ4 where that makes them a fifth smaller: 1.2 ms
for a megabyte of packed rows, which are half as long then. Keys and numbers that look random stay
as they are.

There is one state variable for everything, since each makes the JVM run its analyzer once more in
every task. It is called ``header``, which was another kind of variable before: so Spark refuses a
checkpoint of that time, in which a cell would find nothing and begin anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import MapState

from penstock.errors import InvariantBroken

PART_BYTES = 1 << 22
"""Size of the largest piece of a value: the JVM has several copies of it at once."""
_SMALL_BYTES = 1 << 12
"""A smaller value is not worth compressing."""
_WORTH = 0.8
"""A compressed value must be at most this part of the plain one."""
_HEADER = ("", 0)
_VERSION_DIGITS = 12
_LZ4 = pa.Codec("lz4_raw")


class CellStore(Protocol):
    """The header and the values of one cell."""

    def header(self) -> str | None: ...

    def put_header(self, text: str) -> None: ...

    def read(self, name: str) -> bytes | memoryview: ...

    def write(self, name: str, parts: Sequence[bytes | memoryview]) -> None: ...

    def let_go(self, names: Iterable[str]) -> None: ...


class StateValues:
    """Header and values in Spark's state store, whose transactions do the rest."""

    def __init__(self, values: MapState) -> None:
        self._values = values

    def header(self) -> str | None:
        found = self._values.getValue(_HEADER)
        return None if found is None else unpacked(found[0], found[1]).decode()

    def put_header(self, text: str) -> None:
        self._values.updateValue(_HEADER, packed(text.encode()))

    def read(self, name: str) -> bytes:
        pieces: list[bytes] = []
        while (found := self._values.getValue((name, len(pieces)))) is not None:
            pieces.append(unpacked(found[0], found[1]))
        if not pieces:
            raise InvariantBroken(f"{name} of a cell is not in the state store")
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def write(self, name: str, parts: Sequence[bytes | memoryview]) -> None:
        value = parts[0] if len(parts) == 1 else b"".join(parts)
        for number, start in enumerate(range(0, max(1, len(value)), PART_BYTES)):
            piece = memoryview(value)[start : start + PART_BYTES]
            self._values.updateValue((name, number), packed(piece))

    def let_go(self, names: Iterable[str]) -> None:
        for name in names:
            number = 0
            while self._values.containsKey((name, number)):
                self._values.removeKey((name, number))
                number += 1


def packed(plain: bytes | memoryview) -> tuple[bytes, int | None]:
    """A row of the state variable with these bytes.

    >>> unpacked(*packed(b"x" * 10_000)) == b"x" * 10_000, len(packed(b"x" * 10_000)[0]) < 100
    (True, True)
    """
    if len(plain) >= _SMALL_BYTES:
        shorter = _LZ4.compress(plain, asbytes=True)
        if len(shorter) <= _WORTH * len(plain):
            return shorter, len(plain)
    return bytes(plain), None


def unpacked(data: bytes | bytearray, plain: int | None) -> bytes:
    """The bytes of a row of the state variable."""
    if plain is None:
        return bytes(data)
    whole: bytes = _LZ4.decompress(data, plain, asbytes=True)
    return whole


def value_name(version: int, nonce: str, kind: str) -> str:
    """The name of a value; names sort by version."""
    return f"{version:0{_VERSION_DIGITS}}-{kind}-{nonce}"
