"""File formats: what a file says about its columns, and its rows as Arrow.

Each format is one object of the table at the end. Files are decoded in bulk by Arrow.

A file that is still being written must not be taken. Formats with a mark at their end tell it from
a whole one. Lines end with a line end, unless the last has none: then a last line of JSON that is
an object is whole, since no part of an object is one; a last line of CSV may be cut within its last
value, and nobody can tell. What is compressed can be read to its end, or is cut.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa
import pyarrow.json as pa_json
import pyarrow.parquet as pq
from pyarrow import feather, fs

from penstock.errors import InputError, OptionError
from penstock.query.unreadable import CORRUPT
from penstock.sources.compressed_lines import is_compressed, plain_lines
from penstock.sources.csv_rows import read_rows, schema_of
from penstock.sources.json_lines import bulk, read_objects, with_texts
from penstock.sources.portion import Brief
from penstock.sources.row_groups import NeededRows, clock_type, needed_groups

Options = Mapping[str, str]
"""Options of the format, with Spark's names in small letters."""

_LONGEST_TEXT = 80
"""Characters of a row that are shown."""
_THREADS_FROM = 32 << 20
"""Bytes of a parquet file from which its columns are decoded by several threads. Below, starting
and joining them costs more CPU time than the wall time that it saves."""


_LONGEST_LINE = 1 << 20
"""Bytes at the end of a file that are searched for the beginning of its last line."""


class End(Enum):
    """What the last bytes of a file say."""

    WHOLE = "whole"
    """It is written to its end, or is no file of this format and never will be."""
    CUT = "cut"
    """Something is missing at its end."""
    UNSURE = "unsure"
    """Either."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """How to read one kind of file."""

    name: str
    schema: Callable[[pa.NativeFile, Options], pa.Schema]
    """The columns of a file."""
    read: Callable[[pa.NativeFile, Sequence[str], pa.Schema, Options], pa.Table]
    """Some columns of a file, whose columns should be those of a schema; columns that the file has
    not are left out."""
    mark: bytes = b""
    """The first and the last bytes of a whole file; none where a file is lines."""
    last_line: Callable[[bytes], End] | None = None
    """What a last line without a line end says; None where a file is not lines."""
    options: tuple[str, ...] = ()
    """Options that it knows, in Spark's spelling."""
    greatest: Callable[[pa.NativeFile, str], tuple[int, pa.Scalar | None] | None] | None = None
    """The number of rows and the greatest value of a column of integers or timestamps, as the file
    itself tells them; None if it does not."""
    read_needed: (
        Callable[[pa.NativeFile, Sequence[str], NeededRows], tuple[pa.Table, Brief]] | None
    ) = None
    """Some columns of the rows that may be needed, as :attr:`read` has them, and what is known of
    those that were not read; None for a format that tells nothing of rows without reading them."""
    mapped: bool = False
    """Whether a local file is best mapped into memory."""

    def content(self, file: pa.NativeFile, path: str) -> pa.NativeFile:
        """``file``, or what is compressed in it, where a file is lines."""
        return file if self.last_line is None else plain_lines(file, path)

    def end(self, system: fs.FileSystem, path: str, size: int) -> End:
        """What the end of the file of ``size`` bytes says; what does not begin with the mark either
        is no such file."""
        length = len(self.mark)
        try:
            with system.open_input_file(path) as file:
                if self.last_line is not None:
                    lines = plain_lines(file, path)
                    size = lines.size() if is_compressed(path) else size
                    return _end_of_lines(lines, size, self.last_line) if size else End.WHOLE
                if file.read_at(length, 0) != self.mark[:size]:
                    return End.WHOLE
                is_whole = size > length and file.read_at(length, size - length) == self.mark
                return End.WHOLE if is_whole else End.CUT
        except OSError:
            return End.CUT


def format_of(name: str) -> FileFormat:
    """The format called ``name``."""
    found = FORMATS.get(name.lower())
    if found is None:
        known = ", ".join((*FORMATS, "kafka", "rate"))
        raise OptionError(f"format {name!r} is not read here; choose from: {known}")
    return found


def _end_of_lines(file: pa.NativeFile, size: int, last_line: Callable[[bytes], End]) -> End:
    """What the end of a file of lines says."""
    if file.read_at(min(4, size), max(0, size - 4)).rstrip(b"\0").endswith((b"\n", b"\r")):
        return End.WHOLE  # Behind a line end there are zeros in UTF-16 and UTF-32.
    length = min(size, _LONGEST_LINE)
    return last_line(bytes(file.read_at(length, size - length)).splitlines()[-1])


def _json_line(line: bytes) -> End:
    try:
        json.loads(line)
    except ValueError:
        return End.CUT
    return End.WHOLE


def _csv_line(line: bytes) -> End:
    return End.UNSURE


def _parquet_schema(file: pa.NativeFile, options: Options) -> pa.Schema:
    return pq.read_schema(file)


def _read_parquet(
    file: pa.NativeFile, columns: Sequence[str], schema: pa.Schema, options: Options
) -> pa.Table:
    return _columns_of(pq.ParquetFile(file), columns, file.size() >= _THREADS_FROM)


def _read_needed_parquet(
    file: pa.NativeFile, columns: Sequence[str], needed: NeededRows
) -> tuple[pa.Table, Brief]:
    opened = pq.ParquetFile(file)
    kept, rest = needed_groups(opened, needed)
    groups = kept if rest.rows else None
    return _columns_of(opened, columns, file.size() >= _THREADS_FROM, groups), rest


def _columns_of(
    opened: pq.ParquetFile, columns: Sequence[str], threads: bool, groups: list[int] | None = None
) -> pa.Table:
    """Those of ``columns`` that the file has, of some row ``groups`` or of all."""
    there = set(opened.schema_arrow.names)
    wanted = [name for name in columns if name in there]
    if groups is None:
        return opened.read(wanted, use_threads=threads)
    return opened.read_row_groups(groups, wanted, use_threads=threads)


def _greatest_in_parquet(file: pa.NativeFile, column: str) -> tuple[int, pa.Scalar | None] | None:
    about = pq.read_metadata(file)
    place = next((i for i in range(about.num_columns) if about.schema.column(i).path == column), -1)
    kind = None if place < 0 else clock_type(about, place)
    if kind is None:
        return None
    greatest: int | None = None
    for number in range(about.num_row_groups):
        rows = about.row_group(number).num_rows
        statistics = about.row_group(number).column(place).statistics
        if rows == 0:
            continue
        if statistics is None or not statistics.has_null_count:
            return None
        if statistics.null_count == rows:
            continue
        if not statistics.has_min_max:
            return None
        largest = int(statistics.max_raw)
        greatest = largest if greatest is None else max(largest, greatest)
    return about.num_rows, None if greatest is None else pa.scalar(greatest, kind)


def _arrow_schema(file: pa.NativeFile, options: Options) -> pa.Schema:
    return pa.ipc.open_file(file).schema


def _read_arrow(
    file: pa.NativeFile, columns: Sequence[str], schema: pa.Schema, options: Options
) -> pa.Table:
    there = set(pa.ipc.open_file(file).schema.names)
    file.seek(0)
    wanted = [name for name in columns if name in there]
    return feather.read_table(file, columns=wanted, use_threads=False)


def _json_schema(file: pa.NativeFile, options: Options) -> pa.Schema:
    return pa_json.read_json(file).schema


def _read_json(
    file: pa.NativeFile, columns: Sequence[str], schema: pa.Schema, options: Options
) -> pa.Table:
    wanted = pa.schema([schema.field(name) for name in columns])
    table = bulk(file, _block(file), wanted)
    if table is not None:
        return table
    file.seek(0)
    lines = [line for line in bytes(file.read()).splitlines() if line.strip()]
    return read_objects(lines, wanted)


def _csv_schema(file: pa.NativeFile, options: Options) -> pa.Schema:
    return schema_of(bytes(file.read()), options)


def _read_csv(
    file: pa.NativeFile, columns: Sequence[str], schema: pa.Schema, options: Options
) -> pa.Table:
    return read_rows(bytes(file.read()), columns, schema, options)


def _block(file: pa.NativeFile) -> int:
    """Bytes that are parsed at once: all of a file, as far as the parser can count."""
    return int(min(max(file.size(), 1 << 16), (1 << 31) - 1))


MODE = "mode"
"""The option that says what becomes of rows that cannot be read, as in Spark."""
MODES = ("PERMISSIVE", "FAILFAST")
"""Its values: count them, or fail. Rows that vanish (``DROPMALFORMED``) would be in no number."""
_CSV_OPTIONS = ("header", "sep", "delimiter", "quote", "escape", "nullValue", "encoding")
FORMATS = {
    each.name: each
    for each in (
        FileFormat(
            "parquet",
            _parquet_schema,
            _read_parquet,
            b"PAR1",
            greatest=_greatest_in_parquet,
            read_needed=_read_needed_parquet,
            mapped=True,
        ),
        FileFormat("arrow", _arrow_schema, _read_arrow, b"ARROW1", mapped=True),
        FileFormat("feather", _arrow_schema, _read_arrow, b"ARROW1", mapped=True),
        FileFormat("json", _json_schema, _read_json, last_line=_json_line, options=(MODE,)),
        FileFormat(
            "csv",
            _csv_schema,
            _read_csv,
            last_line=_csv_line,
            options=(*_CSV_OPTIONS, "multiLine", MODE),
        ),
    )
}


def refuse_unreadable(table: pa.Table, options: Options, where: str) -> None:
    """With ``mode = "FAILFAST"``, an :class:`InputError` if a row could not be read wholly."""
    if options.get(MODE, "").upper() != "FAILFAST" or CORRUPT not in table.column_names:
        return
    texts = table.column(CORRUPT)
    count = len(texts) - texts.null_count
    if count:
        text = texts.drop_null()[0].as_py()
        shown = text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
        raise InputError(
            f"{where}: {count:,} of {len(texts):,} rows cannot be read, the first is {shown!r}; "
            'without mode = "FAILFAST" they are counted as unreadable'
        )


def conformed(table: pa.Table, schema: pa.Schema, columns: Sequence[str], where: str) -> pa.Table:
    """``columns`` of ``table`` in the types of ``schema``; those that it lacks are NULL. Texts of
    rows that could not be read stay beside them."""
    arrays = []
    for name in columns:
        kind = schema.field(name).type
        position = table.schema.get_field_index(name)
        if position < 0:
            arrays.append(pa.chunked_array([pa.nulls(len(table), kind)]))
            continue
        column = table.column(position)
        if column.type != kind:
            try:
                column = column.cast(kind)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
                raise InputError(
                    f"{where}: column {name!r} is of type {column.type}, expected {kind}: {problem}"
                ) from None
        arrays.append(column)
    wanted = pa.schema([schema.field(name) for name in columns])
    return with_texts(pa.Table.from_arrays(arrays, schema=wanted), table)
