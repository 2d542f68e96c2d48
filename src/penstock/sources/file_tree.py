"""Files below an address: a folder, one file, or a pattern, on any file system of Arrow's.

As in Spark: names that begin with ``_`` or ``.`` are not data, and neither is what lies in folders
with such names; folders called ``column=value`` are looked into, others only if asked to. A file
with no bytes is not there yet.
"""

from __future__ import annotations

import fnmatch
import os
import posixpath
import re
from dataclasses import dataclass, field
from functools import cached_property

from pyarrow import fs

from penstock.errors import InputError
from penstock.sources.input_file import InputFile
from penstock.sources.object_store import Options, open_store

_PATTERN = re.compile(r"[*?\[{]")
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+://?")


@dataclass(frozen=True)
class FileTree:
    """The files of ``address``; ``name_pattern`` chooses among their names."""

    address: str
    name_pattern: str | None = None
    recursive: bool = False
    file_system: fs.FileSystem | None = field(default=None, compare=False)
    """Instead of the one that the address names."""
    store: Options = field(default=(), repr=False)
    """What the store of the address is opened with; there are keys in it."""

    @cached_property
    def _opened(self) -> tuple[fs.FileSystem, str]:
        return (
            open_address(self.address, self.store)
            if self.file_system is None
            else (self.file_system, self.address)
        )

    @property
    def system(self) -> fs.FileSystem:
        """The file system."""
        return self._opened[0]

    @cached_property
    def root(self) -> str:
        """The folder that names are relative to: the part of the address without a pattern."""
        path = self._opened[1].rstrip("/") or "/"
        parts = path.split("/")
        plain = next((i for i, part in enumerate(parts) if _PATTERN.search(part)), len(parts))
        if plain < len(parts):
            return "/".join(parts[:plain]) or "/"
        found = self.system.get_file_info(path)
        return posixpath.dirname(path) if found.type == fs.FileType.File else path

    def path(self, name: str) -> str:
        """The path of the file called ``name``."""
        return posixpath.join(self.root, name)

    def files(self) -> list[InputFile]:
        """What there is now, oldest first, files of one age by name."""
        path = self._opened[1].rstrip("/") or "/"
        found: list[InputFile] = []
        try:
            if path != self.root:
                self._match(path, found)
            else:
                self._list(self.root, found)
        except OSError as problem:
            raise InputError(f"{self.address} cannot be read: {problem}") from None
        if self.name_pattern is not None:
            pattern = self.name_pattern
            found = [f for f in found if fnmatch.fnmatchcase(posixpath.basename(f.name), pattern)]
        return sorted(found, key=lambda file: file.place)

    def exists(self) -> bool:
        """Whether the folder is there, or for a pattern the folder before it."""
        return bool(self.system.get_file_info(self.root).type != fs.FileType.NotFound)

    def _list(self, folder: str, found: list[InputFile]) -> None:
        for info in self.system.get_file_info(fs.FileSelector(folder, allow_not_found=True)):
            name = info.base_name
            if name.startswith(("_", ".")):
                continue
            if info.type == fs.FileType.Directory:
                if self.recursive or "=" in name:
                    self._list(info.path, found)
            elif info.size:
                found.append(self._file(info))

    def _match(self, path: str, found: list[InputFile]) -> None:
        """Files that match a pattern, and those in folders that do."""
        relative = posixpath.relpath(path, self.root)
        patterns = [_compiled(part) for part in relative.split("/")]
        self._descend(self.root, patterns, found)

    def _descend(
        self, folder: str, patterns: list[re.Pattern[str]], found: list[InputFile]
    ) -> None:
        first, *rest = patterns
        for info in self.system.get_file_info(fs.FileSelector(folder, allow_not_found=True)):
            name = info.base_name
            if name.startswith(("_", ".")) or not first.fullmatch(name):
                continue
            if info.type == fs.FileType.Directory:
                if rest:
                    self._descend(info.path, rest, found)
                else:
                    self._list(info.path, found)
            elif not rest and info.size:
                found.append(self._file(info))

    def _file(self, info: fs.FileInfo) -> InputFile:
        name = posixpath.relpath(info.path, self.root)
        return InputFile(name, int(info.size), int(info.mtime_ns or 0))


def open_address(address: str, store: Options = ()) -> tuple[fs.FileSystem, str]:
    """The file system of ``address`` and the path in it: a URI, or a path of this machine."""
    if _SCHEME.match(address) and not address.startswith("file:"):
        try:
            return open_store(address, store)
        except (OSError, ValueError) as problem:
            raise InputError(f"{address} cannot be opened: {problem}") from None
    local = re.sub(r"^file:(//)?(?=/)", "", address)
    return fs.LocalFileSystem(), os.path.abspath(os.path.expanduser(local))


def _compiled(pattern: str) -> re.Pattern[str]:
    """One part of a path with ``*``, ``?``, ``[…]`` and ``{a,b}``, as Hadoop has them."""
    alternatives = [pattern]
    while (match := re.search(r"\{([^{}]*)\}", alternatives[0])) is not None:
        alternatives = [
            each.replace(match[0], choice, 1)
            for each in alternatives
            for choice in match[1].split(",")
        ]
    return re.compile(
        "|".join(fnmatch.translate(each.replace("[^", "[!")) for each in alternatives)
    )
