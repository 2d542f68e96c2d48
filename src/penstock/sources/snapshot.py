"""Snapshots of engines: a faster way to a window than reading its rows again.

A snapshot is what an engine writes down (its checkpoint), with the position in the ledger at which
it stood. It is a function of the entries up to that position and of the files that they leave out,
so whoever finds one may go on from it, and nothing is lost with one that is gone. There are two
kinds of folder:

- the *cache* is on a disk of this machine. It is bounded in bytes, those not used for longest go
  first, and anybody may empty it at any time;
- the *durable* ones are beside the ledger, on whatever file system that is, where windows reach
  further back than sources keep their rows.

A snapshot is trusted only if its heading is the one that was looked for, byte by byte, and its end
says how long it is; the rest is verified by the engine that takes it
(:mod:`penstock.engine.recovery.verify`).

A window may be larger than memory. So a snapshot is written part by part as the engine makes it,
which is why its length comes last, and it is mapped to be read: from another file system it is
copied to a file of this machine first.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import posixpath
import shutil
import struct
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pyarrow import fs

from penstock.sources.ledger import Position
from penstock.sources.replace_file import replace_file

_MAGIC_1 = b"PNSTSNP1"
"""Formerly: the length is in the heading, and nothing behind the checkpoint."""
_MAGIC = b"PNSTSNP2"
_END = struct.Struct("<Q8s")
"""The length of the checkpoint, and the magic once more."""
_SUFFIX = ".snapshot"
_COPIED = 16 << 20
"""Bytes that are copied at once from another file system."""
_PASSING_SECONDS = 3600.0
"""Age from which a file that nobody gave its name is one whose writer has died."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The engine of a cell as it stood at ``position``."""

    owner: str
    """Lane and cell: only engines of the same owner may stand in for each other."""
    position: Position
    blob: memoryview
    """The checkpoint of the engine."""
    about: Mapping[str, Any]
    """What else the host has to remember, as JSON has it."""

    @classmethod
    def of(cls, content: memoryview, owner: str, position: Position) -> Snapshot | None:
        """The snapshot in ``content``; None if it is another, or damaged."""
        try:
            magic = bytes(content[:8])
            (length,) = struct.unpack_from("<I", content, 8)
            values = json.loads(bytes(content[12 : 12 + length]))
            about = values.pop("about")
            heading = _heading(owner, position, about)
            if magic == _MAGIC_1:
                blob = content[12 + length :]
                heading["size"] = len(blob)
            else:
                blob = content[12 + length : len(content) - _END.size]
                if magic != _MAGIC or content[len(content) - _END.size :] != _end(len(blob)):
                    return None
        except (ValueError, KeyError, TypeError, AttributeError, struct.error):
            return None
        return cls(owner, position, blob, about) if values == heading else None


def _heading(owner: str, position: Position, about: Mapping[str, Any]) -> dict[str, Any]:
    text = json.dumps(dict(about), sort_keys=True)
    check = hashlib.sha256(text.encode()).hexdigest()[:32]
    return {"owner": owner, **position.to_json(), "check": check}


def _end(size: int) -> bytes:
    return _END.pack(size, _MAGIC)


class SnapshotFolder:
    """The snapshots in ``folder`` of a file system.

    ``most`` is how many bytes they may have together, and one more for as long as it is written,
    None if nobody counts. What the file system refuses is no error where there is a limit: then it
    is a cache.
    """

    def __init__(self, system: fs.FileSystem, folder: str, most: int | None = None) -> None:
        self._system = system
        self._folder = folder
        self._most = most

    def positions(self, owner: str) -> set[Position]:
        """Where ``owner`` has snapshots."""
        found = set()
        for info in self._infos():
            name = info.base_name
            if name.startswith(f"{owner}-") and name.endswith(_SUFFIX):
                number, _, digest = name[len(owner) + 1 : -len(_SUFFIX)].partition("-")
                if number.isdecimal():
                    found.add(Position(int(number), digest))
        return found

    def read(self, owner: str, position: Position) -> Snapshot | None:
        """A snapshot, None if it is not there; one that is damaged is removed."""
        path = self._path(owner, position)
        try:
            content = self._mapped(path)
        except OSError:
            return None
        found = Snapshot.of(content, owner, position)
        if found is None:
            self.remove(owner, position)
        elif self._most is not None:
            with contextlib.suppress(OSError):
                os.utime(path)
        return found

    def _mapped(self, path: str) -> memoryview:
        """The file at ``path``, mapped into memory."""
        if isinstance(self._system, fs.LocalFileSystem):
            with open(path, "rb") as file:
                return _content(file)
        with tempfile.TemporaryFile() as near:
            with self._system.open_input_stream(path) as far:
                shutil.copyfileobj(far, near, _COPIED)
            near.flush()
            return _content(near)

    def write(
        self,
        owner: str,
        position: Position,
        about: Mapping[str, Any],
        checkpoint: Iterable[bytes | memoryview],
    ) -> bool:
        """Keep a snapshot with the parts of a ``checkpoint``; whether it was kept. Older ones of
        the same owner are not needed in a cache."""
        path = self._path(owner, position)
        parts = _parts(_heading(owner, position, about), about, checkpoint, self._most)
        if self._most is None:
            if isinstance(self._system, fs.LocalFileSystem):
                replace_file(path, parts)
            else:
                with self._system.open_output_stream(path) as file:
                    for part in parts:
                        file.write(part)
            return True
        older = self.positions(owner) - {position}
        try:
            replace_file(path, parts, durable=False, private=True)
        except OSError:
            return False
        for each in older:
            self.remove(owner, each)
        self._trim(self._most)
        return True

    def remove(self, owner: str, position: Position) -> None:
        with contextlib.suppress(OSError):
            self._system.delete_file(self._path(owner, position))

    def forget_before(self, number: int) -> None:
        """Remove what is older than the newest snapshot at or before entry ``number``, owner by
        owner: who goes back to ``number`` begins there."""
        kept: dict[str, int] = {}
        found = []
        for info in self._infos():
            owner, _, rest = info.base_name.partition("-")
            digits = rest.partition("-")[0]
            if digits.isdecimal() and info.base_name.endswith(_SUFFIX):
                found.append((owner, int(digits), info.path))
                if int(digits) <= number:
                    kept[owner] = max(kept.get(owner, 0), int(digits))
        for owner, at, path in found:
            if at < kept.get(owner, 0):
                with contextlib.suppress(OSError):
                    self._system.delete_file(path)

    def _trim(self, most: int) -> None:
        """Remove those not used for longest until at most ``most`` bytes are there."""
        infos = sorted(self._infos(), key=lambda info: info.mtime_ns or 0)
        total = sum(info.size or 0 for info in infos)
        newest = (infos[-1].mtime_ns or 0) if infos else 0
        for info in infos:
            is_left = not info.base_name.endswith(_SUFFIX)
            if is_left and newest - (info.mtime_ns or 0) < _PASSING_SECONDS * 1e9:
                continue
            if is_left or total > most:
                with contextlib.suppress(OSError):
                    self._system.delete_file(info.path)
                total -= info.size or 0

    def _infos(self) -> list[fs.FileInfo]:
        try:
            found = self._system.get_file_info(fs.FileSelector(self._folder, allow_not_found=True))
        except OSError:
            return []
        return [info for info in found if info.type == fs.FileType.File]

    def _path(self, owner: str, position: Position) -> str:
        name = f"{owner}-{position.number:012}-{position.digest}{_SUFFIX}"
        return posixpath.join(self._folder, name)


def _content(file: IO[bytes]) -> memoryview:
    if not os.fstat(file.fileno()).st_size:  # That cannot be mapped.
        return memoryview(b"")
    return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _parts(
    heading: Mapping[str, Any],
    about: Mapping[str, Any],
    checkpoint: Iterable[bytes | memoryview],
    most: int | None,
) -> Iterator[bytes | memoryview]:
    """A file of a snapshot; an OSError if it has more than ``most`` bytes."""
    text = json.dumps({**heading, "about": dict(about)}).encode()
    first = _MAGIC + struct.pack("<I", len(text)) + text
    yield first
    size, others = 0, len(first) + _END.size
    for part in checkpoint:
        size += len(part)
        if most is not None and size + others > most:
            raise OSError(f"a snapshot has more than {most:,} bytes")
        yield part
    yield _end(size)


def cached_snapshots(most: int) -> SnapshotFolder:
    """The cache of this machine and user, with at most ``most`` bytes."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    try:
        home = Path(given) if os.path.isabs(given) else Path.home() / ".cache"
        folder = home / "penstock" / "snapshots"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except (OSError, RuntimeError):  # A worker whose user has no home.
        folder = Path(tempfile.gettempdir()) / f"penstock-snapshots-{os.getuid()}"
    return SnapshotFolder(fs.LocalFileSystem(), str(folder), most)
