"""Versions of static relations: files of the checkpoint folder, numbered from 1.

A version is the rows that a relation had when somebody read it. It is written once and never
changed, so a number means the same rows to every batch, every cell and every attempt. Which version
a batch has is Spark's to remember (:mod:`penstock.spark.operator.version_stream`).

Whoever wants a relation to be read again writes so to a file beside the versions, from any process
that reaches the folder; :class:`penstock.spark.state.static_refresh.StaticRefresh` looks at it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

import pyarrow as pa

from penstock.cells.delivery import from_chunk
from penstock.errors import CheckpointError
from penstock.spark.state.checkpoint_files import CheckpointFiles

FOLDER = "penstock.static"
KEPT = 128
"""Versions of a relation that are kept. Spark retains 100 batches by default and a batch has one
version of a relation, so whatever is planned in a batch that it can go back to is there."""
_ASKED = f"{FOLDER}/asked"
_DIGITS = 8
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True, slots=True)
class StaticVersions:
    """The versions among ``files``, which are those of a checkpoint folder."""

    files: CheckpointFiles

    def newest(self) -> dict[str, int]:
        """The number of the newest version of each relation that has one."""
        found: dict[str, int] = {}
        for name, number in self._all():
            found[name] = max(number, found.get(name, 0))
        return found

    def read(self, name: str, number: int) -> pa.Table:
        """The rows of version ``number`` of the relation ``name``."""
        try:
            return from_chunk(self.files.read(_file(name, number)))
        except OSError as error:
            raise CheckpointError(
                f"version {number} of the static relation {name} cannot be read from "
                f"{self.files.address}/{FOLDER}: {error}; the batch at hand was planned with it"
            ) from None

    def add(self, name: str, rows: pa.Table, after: int) -> int:
        """Write the version behind number ``after``, unless its rows are those of ``after``; the
        number of the newest. Versions that nobody can need are removed."""
        blob = _bytes_of(rows)
        if after and self.files.read(_file(name, after)) == blob:
            return after
        self.files.write(_file(name, after + 1), blob)
        for each, number in self._all():
            if each == name and number <= after + 1 - KEPT:
                self.files.remove(_file(name, number))
        return after + 1

    def ask(self, names: Iterable[str], at: float) -> None:
        """Ask for the relations ``names`` to be read again, at ``at`` seconds of the clock."""
        asked = {**self.asked(), **dict.fromkeys(names, int(1000 * at))}
        self.files.write(_ASKED, json.dumps(asked).encode())

    def asked(self) -> dict[str, int]:
        """When each relation was asked for last, in milliseconds of the clock."""
        try:
            found: Mapping[str, int] = json.loads(self.files.read(_ASKED))
            return {str(name): int(at) for name, at in found.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def _all(self) -> list[tuple[str, int]]:
        found = []
        for each in self.files.names(FOLDER) or ():
            name, dash, number = each.removesuffix(".arrow").rpartition("-")
            if dash and number.isdigit() and each.endswith(".arrow"):
                found.append((unquote(name), int(number)))
        return found


def _file(name: str, number: int) -> str:
    return f"{FOLDER}/{quote(name, safe='')}-{number:0{_DIGITS}}.arrow"


def _bytes_of(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_COMPRESSED) as writer:
        writer.write(rows.combine_chunks())
    return bytes(sink.getvalue())
