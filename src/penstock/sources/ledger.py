"""The ledger: which portions of its sources each batch has taken.

It is a tree of entries that never change. An entry has a number, the portions of its batch, the
latest event times that it lets in, and the digest of its parent; its name is its number and its own
digest, so it can be checked, and two writers cannot overwrite each other: what is equal has one
name, what differs has two. Spark's offset of a batch names the entry. So

- a batch that is done again reads the same portions, whoever does it and however often;
- going back to an older batch finds its entry, and the entries behind it are taken again instead of
  made anew (:meth:`Ledger.child`), with the same answers;
- a copied checkpoint goes on from the same entry in a branch of its own.

Now and then everything that was taken so far is written down as one value (*taken*), so that nobody
has to read all entries to know it. Entries that neither a window nor a batch that Spark may go back
to can need are removed (:meth:`Ledger.forget_before`).

An entry is written before Spark hears of the batch. The *note* of an entry is written when its rows
have been read: how many there were, and the newest event time of each source so far. It is a
function of the entries up to this one and of the files that they leave out; it is there to save
reading files again, since late decisions of a batch depend on the newest event times before it.
Where each cell reads a part of the rows, each notes what it has seen, and the parts together are
the note.

Files that a batch leaves out (*skipped*) are written down before its cells begin, for all of them
and for all attempts to come. There may be more at a later attempt. So a note and a snapshot repeat
them, and those of an attempt that left out fewer count for nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

from pyarrow import fs

from penstock.errors import CheckpointError
from penstock.sources.file_tree import open_address
from penstock.sources.object_store import Options
from penstock.sources.portion import Portions
from penstock.sources.replace_file import replace_file

_FOLDER = "penstock"
"""Below the checkpoint folder of the query."""
_KEPT = "kept"
"""The name of the value that has the number of the oldest entry."""
_DIGEST = 24
"""Hexadecimal digits of a digest: 96 bits, since nobody is an adversary of their own ledger."""


Skipped: TypeAlias = Mapping[str, Mapping[str, str]]
"""Files that are left out, by source and name, with the reason."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a query stands: behind entry ``digest``, which has ``number``."""

    number: int = 0
    digest: str = ""

    def to_json(self) -> dict[str, Any]:
        """As Spark's offset log has it."""
        return {"batch": self.number, "entry": self.digest}

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> Position:
        try:
            return cls(int(value["batch"]), str(value["entry"]))
        except (KeyError, TypeError, ValueError):
            raise CheckpointError(
                f"this checkpoint has the offset {value!r}, which is not one of Penstock's; start "
                "the query with another checkpoint folder"
            ) from None


@dataclass(frozen=True, slots=True)
class Entry:
    """What one batch takes, behind ``parent``."""

    parent: Position
    portions: Portions
    latest: Mapping[str, int] = field(default_factory=dict)
    """The latest event time that rows of each source may have, in milliseconds since 1970: those
    beyond are too far ahead of their arrival. Sources that are not in it have no bound."""
    settles: bool = False
    """Whether no rows are waited for that are older than the newest of all so far."""

    def to_bytes(self) -> bytes:
        content: dict[str, Any] = {"parent": self.parent.digest, "portions": dict(self.portions)}
        if self.latest:
            content["latest"] = dict(self.latest)
        if self.settles:
            content["settles"] = True
        return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()

    def as_read(self, note: Note | None) -> Entry:
        """The entry as it was read first: without the files that were skipped, and with the sizes
        of files that ``note`` has."""
        if note is None:
            return self
        if not note.sizes:
            return self.without(note.skipped)
        portions = {
            source: [[name, note.sizes[source].get(name, size), at] for name, size, at in portion]
            if source in note.sizes
            else portion
            for source, portion in self.portions.items()
        }
        return replace(self, portions=portions).without(note.skipped)

    def without(self, skipped: Skipped) -> Entry:
        """The entry without the files that are ``skipped``."""
        return replace(self, portions=without(self.portions, skipped)) if skipped else self

    @property
    def position(self) -> Position:
        digest = hashlib.sha256(self.to_bytes()).hexdigest()[:_DIGEST]
        return Position(self.parent.number + 1, digest)

    @classmethod
    def of_bytes(cls, content: bytes, number: int) -> Entry:
        value = json.loads(content)
        parent = Position(number - 1, value["parent"])
        return cls(parent, value["portions"], value.get("latest", {}), value.get("settles", False))


@dataclass(frozen=True, slots=True)
class Note:
    """What was seen when the rows of an entry were read. Times are in nanoseconds since 1970, or in
    millionths of the unit where event times are plain integers."""

    newest: Mapping[str, int] = field(default_factory=dict)
    """The newest event time of each source, in all entries up to this one."""
    own: Mapping[str, int] = field(default_factory=dict)
    """The newest event time of each source in this entry."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """Rows of each source in this entry."""
    clocks: Mapping[str, str] = field(default_factory=dict)
    """The column that event times were taken from, by source."""
    sizes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Bytes of files that were mended between the entry and their first reading, by source and
    name."""
    skipped: Skipped = field(default_factory=dict)
    """Files of the entry that were left out."""
    settled: int | None = None
    """The newest event time of all at the last entry that settles, if there was one: what is as old
    or older is late from there on."""

    def to_bytes(self) -> bytes:
        content = {
            name: dict(value) if isinstance(value, Mapping) else value
            for name in self.__slots__
            if (value := getattr(self, name)) is not None
            and (name not in ("sizes", "skipped") or value)
        }
        return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def joined(cls, parts: Sequence[Note]) -> Note:
        """The note of an entry whose rows were read in parts."""
        newest: dict[str, int] = {}
        own: dict[str, int] = {}
        rows: dict[str, int] = {}
        sizes: dict[str, dict[str, int]] = {}
        for part in parts:
            for name, files in part.sizes.items():
                sizes.setdefault(name, {}).update(files)
            for times, others in ((newest, part.newest), (own, part.own)):
                for name, at in others.items():
                    times[name] = max(at, times.get(name, at))
            for name, count in part.rows.items():
                rows[name] = rows.get(name, 0) + count
        return cls(newest, own, rows, parts[0].clocks, sizes, parts[0].skipped, parts[0].settled)

    @classmethod
    def of_bytes(cls, content: bytes) -> Note:
        return cls(**json.loads(content))


class Ledger:
    """The ledger in the folder of a checkpoint."""

    def __init__(self, address: str, store: Options = ()) -> None:
        """``store`` is what the store of the address is opened with; there are keys in it."""
        self.address = address
        self._store = store

    @cached_property
    def _opened(self) -> tuple[fs.FileSystem, str]:
        system, path = open_address(self.address, self._store)
        return system, posixpath.join(path, _FOLDER)

    @property
    def place(self) -> tuple[fs.FileSystem, str]:
        """The file system and the folder of the ledger."""
        return self._opened

    def __reduce__(self) -> tuple[type[Ledger], tuple[str, Options]]:
        return Ledger, (self.address, self._store)

    # -- entries -----------------------------------------------------------------------------

    def add(self, entry: Entry) -> Position:
        """Write ``entry`` down; where it is."""
        self._write(_name(entry.position, "entry"), entry.to_bytes())
        return entry.position

    def entry(self, position: Position) -> Entry:
        """The entry at ``position``; :class:`CheckpointError` if it is not there."""
        content = self._read(_name(position, "entry"))
        if content is None and position.number < (kept := int(self.value(_KEPT) or 0)):
            raise CheckpointError(
                f"the windows of this query reach back to batch {position.number}, and the ledger "
                f"was kept from batch {kept} on, as far as windows reached before; start the query "
                "with another checkpoint folder"
            )
        if content is None:
            raise CheckpointError(
                f"the ledger of this query has no entry for batch {position.number}: "
                f"{self._opened[1]} is not the one that its checkpoint was written with; pass the "
                "checkpoint folder of the query as the option checkpointLocation, and copy it whole"
            )
        entry = Entry.of_bytes(content, position.number)
        if entry.position != position:
            raise CheckpointError(f"the ledger entry {_name(position, 'entry')} is damaged")
        return entry

    def child(self, position: Position) -> Position | None:
        """An entry behind ``position`` that was written before, if there is one."""
        prefix = f"{position.number + 1:012}-"
        for name in sorted(self._names()):
            if name.startswith(prefix) and name.endswith(".entry"):
                found = Position(position.number + 1, name[len(prefix) : -len(".entry")])
                if self.entry(found).parent.digest == position.digest:
                    return found
        return None

    def back_from(self, position: Position) -> Iterator[tuple[Position, Entry]]:
        """The entries up to ``position``, the newest first."""
        while position.number > 0:
            entry = self.entry(position)
            yield position, entry
            position = entry.parent

    # -- notes -------------------------------------------------------------------------------

    def note(self, position: Position) -> Note | None:
        """The note of an entry, if somebody has read its rows."""
        if position.number == 0:
            return Note()
        content = self._read(_name(position, "note"))
        return None if content is None else Note.of_bytes(content)

    def add_note(self, position: Position, note: Note) -> None:
        self._write(_name(position, "note"), note.to_bytes(), durable=False)

    def parts_of_note(self, position: Position, owners: Sequence[str]) -> list[Note] | None:
        """What each of ``owners`` has noted of an entry; None if one of them has not."""
        found = []
        for owner in owners:
            content = self._read(_name(position, f"{owner}.note"))
            if content is None:
                return None
            found.append(Note.of_bytes(content))
        return found

    def add_part_of_note(self, position: Position, owner: str, note: Note) -> None:
        self._write(_name(position, f"{owner}.note"), note.to_bytes(), durable=False)

    def skipped(self, position: Position) -> Skipped:
        """The files that the batch of an entry leaves out; at the beginning, those that static
        relations do."""
        return self.value(_name(position, "skipped")) or {}

    def add_skipped(self, position: Position, skipped: Skipped) -> None:
        self.put_value(_name(position, "skipped"), skipped)

    # -- what was taken ----------------------------------------------------------------------

    def taken(self, position: Position) -> Any:
        """What was taken of each source up to ``position``, if it was written down there."""
        return {} if position.number == 0 else self.value(_name(position, "taken"))

    def add_taken(self, position: Position, taken: Any) -> None:
        self.put_value(_name(position, "taken"), taken)

    def forget_before(self, number: int) -> None:
        """Remove entries and notes that are older than entry ``number``, which stays."""
        self.put_value(_KEPT, number)
        system, folder = self._opened
        for name in self._names():
            digits = name[:12]
            known = name.endswith((".entry", ".note", ".taken.json", ".skipped.json"))
            if known and digits.isdecimal() and 0 < int(digits) < number:
                with contextlib.suppress(OSError):
                    system.delete_file(posixpath.join(folder, name))

    # -- other values ------------------------------------------------------------------------

    def value(self, name: str) -> Any:
        """A named value, None if there is none."""
        content = self._read(f"{name}.json")
        return None if content is None else json.loads(content)

    def put_value(self, name: str, value: Any) -> None:
        self._write(f"{name}.json", json.dumps(value, sort_keys=True).encode())

    # -- files -------------------------------------------------------------------------------

    def _names(self) -> list[str]:
        system, folder = self._opened
        infos = system.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        return [info.base_name for info in infos]

    def _read(self, name: str) -> bytes | None:
        system, folder = self._opened
        try:
            with system.open_input_stream(posixpath.join(folder, name)) as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise CheckpointError(f"the ledger cannot be read: {problem}") from None

    def _write(self, name: str, content: bytes, durable: bool = True) -> None:
        """All or nothing: a name that is there has all its bytes."""
        system, folder = self._opened
        path = posixpath.join(folder, name)
        try:
            if isinstance(system, fs.LocalFileSystem):
                replace_file(path, [content], durable)
                return
            system.create_dir(folder, recursive=True)
            with system.open_output_stream(path) as file:
                file.write(content)
        except OSError as problem:
            raise CheckpointError(f"the ledger cannot be written: {problem}") from None


def without(portions: Portions, skipped: Skipped) -> Portions:
    """``portions`` without the files that are ``skipped``."""
    return {
        name: [file for file in portion if file[0] not in skipped[name]]
        if name in skipped
        else portion
        for name, portion in portions.items()
    }


def joined_skips(*each: Skipped) -> Skipped:
    """The files that are in any of ``each``."""
    found: dict[str, dict[str, str]] = {}
    for skipped in each:
        for name, files in skipped.items():
            found.setdefault(name, {}).update(files)
    return found


def _name(position: Position, kind: str) -> str:
    return f"{position.number:012}-{position.digest}.{kind}"
