"""Where the history of a cell is kept: a header in Spark's state, and named values.

Two ways to keep values, with one interface. *In the state store* they are part of Spark's
checkpoint, and nothing else is needed; but every byte crosses a socket twice and is picked apart
one by one on the JVM's side. *In files* of a folder that all hosts can reach they cost next to
nothing. Then only the header is in the state store, and with it goes the decision which files
count: an attempt that was not committed left files that no header names.

A value is never changed. Its name begins with the version of the cell that wrote it and ends with
the nonce of the attempt, so no two attempts write the same one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from pyspark.sql.streaming.stateful_processor import MapState, ValueState

from penstock.errors import CheckpointError, InvariantBroken
from penstock.telemetry.private_file import open_private, read_private

PART = 1 << 24
"""Bytes of the largest value in the state store; longer ones are cut."""


class CellStore(Protocol):
    """The header and the values of one cell; ``place`` says where values are."""

    place: str

    def header(self) -> str | None: ...

    def put_header(self, text: str) -> None: ...

    def read(self, name: str) -> bytes | memoryview: ...

    def write(self, name: str, parts: Sequence[bytes | memoryview]) -> None: ...

    def let_go(self, names: Iterable[str]) -> None:
        """``names`` are not in the header that is about to be put."""
        ...

    def tidy(self, kept: Iterable[str]) -> None:
        """The header that was read names only ``kept``: nothing older is needed any more."""
        ...


class StateValues:
    """Values in the state store, whose transactions do the rest."""

    place = "Spark's state store"

    def __init__(self, header: ValueState, values: MapState) -> None:
        self._header = header
        self._values = values

    def header(self) -> str | None:
        return _text(self._header)

    def put_header(self, text: str) -> None:
        self._header.update((text,))

    def read(self, name: str) -> bytes:
        parts: list[bytes] = []
        while (found := self._values.getValue((name, len(parts)))) is not None:
            parts.append(bytes(found[0]))
        if not parts:
            raise InvariantBroken(f"{name} of a cell is not in the state store")
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def write(self, name: str, parts: Sequence[bytes | memoryview]) -> None:
        value = b"".join(parts)
        for number, start in enumerate(range(0, max(1, len(value)), PART)):
            self._values.updateValue((name, number), (value[start : start + PART],))

    def let_go(self, names: Iterable[str]) -> None:
        for name in names:
            number = 0
            while self._values.containsKey((name, number)):
                self._values.removeKey((name, number))
                number += 1

    def tidy(self, kept: Iterable[str]) -> None:
        """Done by :meth:`let_go`."""


class FileValues:
    """Values in the files of ``folder``, which belongs to this cell alone."""

    place = "files of a state folder"

    def __init__(self, header: ValueState, folder: Path) -> None:
        self._header = header
        self._folder = folder

    def header(self) -> str | None:
        return _text(self._header)

    def put_header(self, text: str) -> None:
        self._header.update((text,))

    def read(self, name: str) -> memoryview:
        try:
            return memoryview(read_private(self._folder / name))
        except OSError as problem:
            raise CheckpointError(
                f"the state of this query is not whole: {self._folder / name} cannot be read "
                f"({problem.strerror}); was the checkpoint copied without its state folder?"
            ) from None

    def write(self, name: str, parts: Sequence[bytes | memoryview]) -> None:
        self._folder.mkdir(0o700, parents=True, exist_ok=True)
        new = open_private(self._folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with os.fdopen(new, "wb", buffering=0) as file:
            for part in parts:
                rest = memoryview(part)
                while len(rest):  # An unbuffered file may take less than it is given.
                    rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def let_go(self, names: Iterable[str]) -> None:
        """Not yet: until the new header is committed, the old one counts. See :meth:`tidy`."""

    def tidy(self, kept: Iterable[str]) -> None:
        """Remove what no later attempt can read: files up to the committed version but not of it.

        Files of a later version are left alone: somebody may be writing them now.
        """
        names = set(kept)
        last = max(names, default="")[:_VERSION]
        with contextlib.suppress(OSError):
            for name in os.listdir(self._folder):
                if name not in names and name[:_VERSION] <= last:
                    with contextlib.suppress(OSError):
                        os.unlink(self._folder / name)


_VERSION = 12


def value_name(version: int, nonce: str, kind: str) -> str:
    """The name of a value; names sort by version."""
    return f"{version:0{_VERSION}}-{kind}-{nonce}"


def _text(header: ValueState) -> str | None:
    found = header.get()
    return None if found is None else str(found[0])
