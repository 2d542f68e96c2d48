"""Files as a stream, with the rules that Spark's file stream has.

Each file is taken once, in the order of modification time, then name. Which files were taken is
written down by name, so one that appears late with an older time is taken all the same. A file must
come whole: it is written elsewhere and moved into the folder, or written in a format whose end can
be told (:class:`~penstock.sources.file_format.End`). The ledger has its size, and a file that has
another size when it is read again is refused: the window that it was part of cannot be had any
more. (A file that nobody could read so far may be mended; its size is noted when it was read.) So
is a file of lines that has grown before it was first read: what was taken of it is known, and what
was added would be lost.

A file that is gone or corrupt is an error of whoever reads it. Where it is to be left out instead,
somebody asks first (:meth:`FileSource.unreadable`) and tells all readers, so that they agree.
Corrupt is what cannot be decoded when all of its bytes are at hand: bytes that do not come, as when
a network fails for a moment, say nothing about a file.

Names of files that are gone from the folder for long are forgotten when the names are written down
anew, so what is kept does not grow without end.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyarrow import fs

from penstock.errors import InputError, PenstockWarning
from penstock.query.unreadable import CORRUPT
from penstock.sources.file_format import (
    MODE,
    End,
    FileFormat,
    conformed,
    format_of,
    refuse_unreadable,
)
from penstock.sources.file_tree import FileTree
from penstock.sources.folder_columns import folder_types, folder_values, with_folder_values
from penstock.sources.input_file import InputFile
from penstock.sources.json_lines import Choice, read_chosen
from penstock.sources.partitioned import Partitioned, bucket_of
from penstock.sources.portion import (
    UNLIMITED,
    Admission,
    Brief,
    Part,
    Portion,
    in_nanoseconds,
)
from penstock.sources.row_groups import NOTHING, NeededRows

_REMEMBERED = 7 * 86_400 * 10**9
"""Nanoseconds by which a file that is gone must be older than the newest to be forgotten: a week,
as long as Spark remembers files by default. One that is put back earlier is not taken twice."""


_JSON = "json"
MISSING, CORRUPT_FILE = "missing", "corrupt"
"""Why a file is left out."""
_PATIENCE = {End.WHOLE: 0.0, End.CUT: 60.0, End.UNSURE: 5.0}
"""Seconds after its last change that a file is taken to be still in the making, by its end; then it
is read like others, which says what is wrong with it. Of files whose end says nothing, most were
written like that, and have moved here."""


class TakenFiles:
    """The names of the files that were taken, with their ages."""

    def __init__(self, files: Mapping[str, int] | None = None) -> None:
        self.files = dict(files or {})
        """Nanoseconds since 1970 at which each was last modified."""

    def add(self, portion: Portion) -> None:
        self.files.update((name, changed) for name, _, changed in portion)

    def forget(self, available: Iterable[InputFile]) -> None:
        """Forget old files that are not ``available`` any more."""
        there = {file.name for file in available}
        since = max(self.files.values(), default=0) - _REMEMBERED
        self.files = {n: at for n, at in self.files.items() if n in there or at >= since}

    def to_json(self) -> dict[str, int]:
        return dict(self.files)


@dataclass(frozen=True)
class FileSource:
    """The files of ``tree`` as a stream."""

    name: str
    tree: FileTree
    format_name: str
    schema: pa.Schema
    admission: Admission = UNLIMITED
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of the format, with Spark's names in small letters."""
    skip_missing: bool = False
    """Whether files that are gone are to be left out (``ignoreMissingFiles``)."""
    skip_corrupt: bool = False
    """Whether files that cannot be decoded are to be left out (``ignoreCorruptFiles``)."""
    partitioned: Partitioned | None = None
    mended: dict[str, int] = field(default_factory=dict, compare=False, repr=False)
    """Bytes of files that had others when they were taken than when this process first read them,
    by name."""

    @property
    def format(self) -> FileFormat:
        return format_of(self.format_name)

    @property
    def kept_nanoseconds(self) -> int | None:
        return None

    @property
    def folder_columns(self) -> frozenset[str]:
        """Columns that are in the names of the folders of all files that there are."""
        names = [folder_values(file.name).keys() for file in self.tree.files()]
        return frozenset.intersection(*map(frozenset, names)) if names else frozenset()

    def progress(self, kept: Any = None) -> TakenFiles:
        return TakenFiles(kept)

    def available(self) -> list[InputFile]:
        return self.tree.files()

    def next_portion(
        self,
        progress: TakenFiles,
        admission: Admission,
        within: Sequence[InputFile] | None = None,
        is_last: bool = False,
    ) -> Portion:
        listed = self.tree.files() if within is None else within
        chosen: list[InputFile] = []
        size = 0
        for file in listed:
            if file.name in progress.files:
                self._warn_if_changed(file, progress.files[file.name])
                continue
            if admission.files is not None and len(chosen) >= admission.files:
                break
            if admission.size is not None and chosen and size + file.size > admission.size:
                break
            end = self._end(file)
            if end is End.CUT or (end is End.UNSURE and not is_last):
                continue  # Somebody is writing it.
            chosen.append(file)
            size += file.size
        return [list(file) for file in chosen] or None

    def everything(self) -> Portion:
        files = self.tree.files()
        for file in files:
            if self._end(file) is End.CUT:
                raise InputError(
                    f"{self.name}: {self.tree.path(file.name)} is being written: it has no end yet;"
                    " try again when it is whole, or in a minute to read what there is"
                )
        return [list(file) for file in files] or None

    def _end(self, file: InputFile) -> End:
        """What the end of ``file`` says, as long as that matters."""
        age = time.time() - file.changed / 1e9
        if age >= max(_PATIENCE.values()):
            return End.WHOLE
        found = self.format.end(self.tree.system, self.tree.path(file.name), file.size)
        return End.WHOLE if age >= _PATIENCE[found] else found

    def _warn_if_changed(self, file: InputFile, then: int) -> None:
        """Say so if a file of lines is newer than it was ``then``, when it was taken."""
        if self.format.last_line is not None and file.changed > then:
            warnings.warn(
                f"{self.name}: {self.tree.path(file.name)} has changed since it was taken, and "
                "what was added to it is not read; write files elsewhere and move them into the "
                "folder when whole",
                PenstockWarning,
                stacklevel=2,
            )

    def waiting(
        self, progress: TakenFiles, portion: Portion, available: Sequence[InputFile]
    ) -> int | None:
        return None

    def parts(self, portion: Portion) -> Sequence[Part]:
        """Each file by itself, if it is in folders that have columns in their names, or names tell
        its bucket."""
        if self.partitioned is None and not any("=" in file[0] for file in portion):
            return [Part(portion)]
        return [
            Part([file], self._known(InputFile.of_json(file)), self._partition(file[0]))
            for file in portion
        ]

    def _partition(self, name: str) -> int | None:
        return None if self.partitioned is None else bucket_of(name)

    def _known(self, file: InputFile) -> dict[str, pa.Array]:
        """The columns in the names of its folders."""
        if "=" not in file.name:
            return {}
        where = f"{self.name}: {self.tree.path(file.name)}"
        one = with_folder_values(pa.table({"": [0]}), folder_values(file.name), self.schema, where)
        return {name: one.column(name).combine_chunks() for name in one.column_names if name}

    def brief(self, portion: Portion, column: str) -> Brief | None:
        if self.format.greatest is None:
            return None
        rows, newest = 0, []
        for each in portion:
            file = InputFile.of_json(each)
            if "=" in file.name and column in folder_values(file.name):
                return None
            try:
                with self._open(self.tree.path(file.name)) as opened:
                    told = self.format.greatest(opened, column)
                    if told is None or opened.size() != file.size:
                        return None
            except (pa.ArrowException, OSError):
                return None
            rows += told[0]
            newest += [] if told[1] is None else [told[1]]
        return Brief(rows, max(newest, key=in_nanoseconds, default=None))

    def read(self, portion: Portion, columns: Sequence[str], again: bool = False) -> pa.Table:
        return self.read_needed(portion, columns, again)[0]

    def read_needed(
        self,
        portion: Portion,
        columns: Sequence[str],
        again: bool = False,
        needed: NeededRows | None = None,
    ) -> tuple[pa.Table, Brief]:
        """As :meth:`read`, without rows that are surely not ``needed``; and what stands in for
        these."""
        rows, newest = 0, []
        found = []
        for each in portion:
            table, rest = self._read(InputFile.of_json(each), columns, again, needed)
            found.append(table)
            rows += rest.rows
            newest += [] if rest.newest is None else [rest.newest]
        rest = Brief(rows, max(newest, key=in_nanoseconds, default=None))
        if not found:
            return pa.schema([self.schema.field(name) for name in columns]).empty_table(), rest
        if len(found) == 1:
            return found[0], rest
        return pa.concat_tables(found, promote_options="default"), rest

    @property
    def can_choose(self) -> bool:
        """Whether it pays to read a few columns first, and others of few rows."""
        return self.format_name == _JSON and self.options.get(MODE, "").upper() != "FAILFAST"

    def read_chosen(
        self,
        portion: Portion,
        columns: Sequence[str],
        first: Sequence[str],
        choose: Choice,
        again: bool = False,
    ) -> pa.Table:
        """``columns`` of rows that are chosen by those of them that come ``first``, file by
        file."""
        tables = [
            self._read(InputFile.of_json(each), columns, again, None, (first, choose))[0]
            for each in portion
        ]
        empty = pa.schema([self.schema.field(name) for name in columns]).empty_table()
        return pa.concat_tables([empty, *(table.select(columns) for table in tables)])

    def _read(
        self,
        file: InputFile,
        columns: Sequence[str],
        again: bool,
        needed: NeededRows | None,
        chosen: tuple[Sequence[str], Choice] | None = None,
    ) -> tuple[pa.Table, Brief]:
        path = self.tree.path(file.name)
        try:
            opened = self._open(path)
        except FileNotFoundError:
            how = "start again" if self.skip_missing else "set ignoreMissingFiles"
            raise InputError(
                f"{self.name}: the file {path} is gone, and a batch or a window needs it; put it "
                f"back, or {how} to go on without its rows"
            ) from None
        except OSError as problem:
            raise InputError(f"{self.name}: {path} cannot be opened: {problem}") from None
        with opened:
            size = opened.size()
            self._refuse_changed(path, size, file.size, again)
            try:
                found = None if chosen is None else self._chosen(opened, file, columns, *chosen)
                if found is not None:
                    table, rest = found, NOTHING
                else:
                    table, rest = self._decoded(opened, file, columns, needed)
            except (pa.ArrowException, OSError, UnicodeDecodeError) as problem:
                hint = "" if self.skip_corrupt else ", or set ignoreCorruptFiles to skip it"
                raise InputError(
                    f"{self.name}: {path} cannot be read as {self.format_name}: "
                    f"{_first_line(problem)}; remove it{hint}"
                ) from None
            if size != file.size:
                self.mended[file.name] = size
            where = f"{self.name}: {path}"
            refuse_unreadable(table, self.options, where)
            if "=" in file.name:
                values = {n: v for n, v in folder_values(file.name).items() if n in columns}
                table = with_folder_values(table, values, self.schema, where)
            table = conformed(table, self.schema, columns, where)
            bucket = self._partition(file.name)
            if self.partitioned is not None and bucket is not None:
                self.partitioned.check(table, bucket, where)
            if chosen is not None and found is None:
                first, choose = chosen
                told = [CORRUPT] if CORRUPT in table.column_names else []
                table = table.take(pa.array(choose(table.select([*first, *told]))))
            return table, rest

    def _chosen(
        self,
        opened: pa.NativeFile,
        file: InputFile,
        columns: Sequence[str],
        first: Sequence[str],
        choose: Choice,
    ) -> pa.Table | None:
        """The chosen rows of ``file``; None if they must be chosen of all that is in it."""
        if "=" in file.name or self.partitioned is not None:
            return None
        lines = self.format.content(opened, self.tree.path(file.name))
        wanted = pa.schema([self.schema.field(name) for name in columns])
        found = read_chosen(lines.read_buffer(), wanted, first, choose)
        if found is None:
            opened.seek(0)
        return found

    def _decoded(
        self,
        opened: pa.NativeFile,
        file: InputFile,
        columns: Sequence[str],
        needed: NeededRows | None = None,
    ) -> tuple[pa.Table, Brief]:
        """Those of ``columns`` that are in ``file``, which is ``opened``."""
        inside = self._inside(file, columns)
        rows = self._needed(file, needed)
        if rows is not None and self.format.read_needed is not None:
            return self.format.read_needed(opened, inside, rows)
        lines = self.format.content(opened, self.tree.path(file.name))
        return self.format.read(lines, inside, self.schema, self.options), NOTHING

    def unreadable(
        self, portion: Portion, columns: Sequence[str], is_decoded: bool = True
    ) -> dict[str, str]:
        """The files of a portion that are to be left out, with the reason; those that are corrupt
        only if ``is_decoded``. Of a file that cannot be had at the moment nothing is known."""
        found: dict[str, str] = {}
        files = [InputFile.of_json(each) for each in portion or ()]
        if self.skip_missing and files:
            with contextlib.suppress(OSError):
                infos = self.tree.system.get_file_info([self.tree.path(f.name) for f in files])
                gone = fs.FileType.NotFound
                there = zip(files, infos, strict=True)
                found |= {file.name: MISSING for file, info in there if info.type == gone}
        if self.skip_corrupt and is_decoded:
            for file in files:
                if file.name not in found and self._is_corrupt(file, columns):
                    found[file.name] = CORRUPT_FILE
        return found

    def _is_corrupt(self, file: InputFile, columns: Sequence[str]) -> bool:
        try:
            with self.tree.system.open_input_file(self.tree.path(file.name)) as opened:
                content = opened.read_buffer()
        except OSError:
            return False
        try:
            self._decoded(pa.BufferReader(content), file, columns)
        except MemoryError:
            raise
        except (pa.ArrowException, OSError, UnicodeDecodeError):
            return True
        return False

    def _refuse_changed(self, path: str, size: int, then: int, again: bool) -> None:
        """An error if a file has ``size`` bytes and had others ``then``, when it was taken, and
        what was taken cannot be had, or what was added would be lost."""
        is_mended = self.options.get(MODE, "").upper() == "FAILFAST"
        has_grown = self.format.last_line is not None and size > then
        if size == then or not (again or (has_grown and not is_mended)):
            return
        hint = f"leave its first {then} bytes and put the rest into a new one, or " * has_grown
        raise InputError(
            f"{self.name}: {path} has {size} bytes, and had {then} when it was taken; {hint}write "
            "files elsewhere and move them into the folder when whole"
        )

    def _needed(self, file: InputFile, needed: NeededRows | None) -> NeededRows | None:
        """What is needed of ``file``, by what its folders tell; None if that is everything."""
        if needed is None or "=" not in file.name:
            return needed
        known = self._known(file)
        return None if needed.clock in known else needed.within(known)

    def _inside(self, file: InputFile, columns: Sequence[str]) -> Sequence[str]:
        """Those of ``columns`` that are in the file and not in its folders; at least one, which
        tells how many rows there are."""
        if "=" not in file.name:
            return columns
        outside = folder_values(file.name)
        found = [name for name in columns if name not in outside]
        return found or [name for name in self.schema.names if name not in outside][:1]

    def _open(self, path: str) -> pa.NativeFile:
        system = self.tree.system
        if self.format.mapped and isinstance(system, fs.LocalFileSystem):
            return pa.memory_map(path)
        return system.open_input_file(path)


def infer_schema(tree: FileTree, format_name: str, options: Mapping[str, str]) -> pa.Schema:
    """The columns of the oldest whole file."""
    kind = format_of(format_name)
    files = tree.files()
    for file in files:
        path = tree.path(file.name)
        if kind.end(tree.system, path, file.size) is not End.CUT:
            try:
                with tree.system.open_input_file(path) as opened:
                    found = kind.schema(kind.content(opened, path), options).remove_metadata()
            except (pa.ArrowException, OSError) as problem:
                raise InputError(
                    f"{path} cannot be read as {format_name}: {_first_line(problem)}"
                ) from None
            for name, type_ in folder_types(each.name for each in files).items():
                place = found.get_field_index(name)
                own = pa.field(name, type_)
                found = found.append(own) if place < 0 else found.set(place, own)
            return found
    there = "no whole file" if files else "no file"
    there = there if tree.exists() else "no such folder, so no file"
    raise InputError(
        f"found nothing, and {there} in {tree.address} to infer it from, expected columns with "
        'types, such as "id BIGINT, ts TIMESTAMP"'
    )


def _first_line(problem: BaseException) -> str:
    return (str(problem).splitlines() or [type(problem).__name__])[0].rstrip(".")
