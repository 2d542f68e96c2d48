"""Rows of a CSV file: in bulk by Arrow, line by line and value by value where that fails.

Arrow's parser takes all rows of a file or none, and an unclosed quote swallows the lines behind it.
So where it fails, or has found fewer rows than there are lines, the file is read as Spark's reader
does in its usual mode (``PERMISSIVE``): a line is a row (unless ``multiLine`` says otherwise), a
value that does not fit its column is NULL, so is one that a short row lacks, what a long row has
more is left out, and the text of each such row goes to one more column,
:data:`~penstock.query.unreadable.CORRUPT`. Texts become values by Arrow's rules in both ways: the
texts of a column are parsed once more as a file of one column, halved until those are alone that
do not fit. Times without a zone are UTC.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from penstock.query.unreadable import CORRUPT

Options = Mapping[str, str]

_BETWEEN = "\x01"
"""A delimiter that is in no value: a file of one column."""
_LARGEST_BLOCK = (1 << 31) - 1
"""Bytes that the parser can count."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a file is written."""

    header: bool
    delimiter: str
    quote: str
    escape: str
    across_lines: bool
    null: str
    encoding: str

    @classmethod
    def of(cls, options: Options) -> Dialect:
        quote, escape = options.get("quote", '"'), options.get("escape", "")
        return cls(
            options.get("header", "false").lower() == "true",
            options.get("sep", options.get("delimiter", ",")),
            quote,
            escape if escape != quote else "",
            options.get("multiline", "false").lower() == "true",
            options.get("nullvalue", ""),
            options.get("encoding", "utf8"),
        )

    def parsing(self, **more: Any) -> pa_csv.ParseOptions:
        """The same for Arrow."""
        return pa_csv.ParseOptions(
            delimiter=self.delimiter,
            quote_char=self.quote or False,
            escape_char=self.escape or False,
            newlines_in_values=self.across_lines,
            **more,
        )

    def converting(self, types: Mapping[str, pa.DataType]) -> pa_csv.ConvertOptions:
        """The columns of ``types``; those that a file lacks are NULL."""
        return pa_csv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            include_missing_columns=True,
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[self.null],
            timestamp_parsers=[pa_csv.ISO8601],
        )

    def split(self, line: str) -> list[str]:
        """The texts of one line."""
        return next(
            csv.reader(
                [line],
                delimiter=self.delimiter,
                quotechar=self.quote or None,
                escapechar=self.escape or None,
                quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
            ),
            [],
        )

    def written(self, texts: Sequence[bytes | None]) -> str:
        """A row of ``texts`` as a line of a file."""
        out = io.StringIO()
        row = [None if text is None else text.decode(errors="replace") for text in texts]
        csv.writer(out, delimiter=self.delimiter).writerow(row)
        return out.getvalue().removesuffix("\r\n")


def schema_of(data: bytes, options: Options) -> pa.Schema:
    """The columns of a file; rows that have more or fewer tell nothing."""
    dialect = Dialect.of(options)
    read = _reading(data, dialect, autogenerate_column_names=not dialect.header)
    parse = dialect.parsing(invalid_row_handler=lambda row: "skip")
    return pa_csv.read_csv(io.BytesIO(data), read, parse).schema


def read_rows(data: bytes, columns: Sequence[str], schema: pa.Schema, options: Options) -> pa.Table:
    """``columns`` of a file whose columns should be those of ``schema``; CORRUPT behind them if
    there are rows that could not be read wholly."""
    dialect = Dialect.of(options)
    types = {name: schema.field(name).type for name in columns}
    table = _bulk(data, types, schema, dialect)
    if table is None:
        return _row_by_row(data, types, schema, dialect)
    quote = dialect.quote.encode()
    if quote and not dialect.across_lines and quote in data:
        lines = len(_lines(data, dialect)) - dialect.header
        if len(table) != max(0, lines):
            return _row_by_row(data, types, schema, dialect)
    return table


def _bulk(
    data: bytes, types: Mapping[str, pa.DataType], schema: pa.Schema, dialect: Dialect
) -> pa.Table | None:
    """All rows by Arrow; None if it cannot take them."""
    names = {} if dialect.header else {"column_names": schema.names}
    read, parse = _reading(data, dialect, **names), dialect.parsing()
    for tried in (types, {name: _without_zone(kind) for name, kind in types.items()}):
        try:
            table = pa_csv.read_csv(io.BytesIO(data), read, parse, dialect.converting(tried))
            return table.cast(pa.schema(list(types.items())))
        except pa.ArrowInvalid:
            if tried == types and not any(map(_has_zone, types.values())):
                break
    return None


def _has_zone(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is not None


def _without_zone(kind: pa.DataType) -> pa.DataType:
    """The type of times in texts that tell no zone; cast to ``kind``, they are in UTC."""
    return pa.timestamp(kind.unit) if _has_zone(kind) else kind


def _reading(data: bytes, dialect: Dialect, **more: Any) -> pa_csv.ReadOptions:
    """All of a file at once, by one thread: what is parsed is mostly small."""
    block = min(max(len(data) + 64, 1 << 16), _LARGEST_BLOCK)
    return pa_csv.ReadOptions(
        use_threads=False, block_size=block, encoding=dialect.encoding, **more
    )


def _lines(data: bytes, dialect: Dialect) -> list[bytes]:
    """The lines of a file in UTF-8, without empty ones."""
    if dialect.encoding.lower().replace("-", "") != "utf8":
        data = data.decode(dialect.encoding, "replace").encode()
    data = data.removeprefix(b"\xef\xbb\xbf")
    return [line for line in data.splitlines() if line.strip()]


@dataclass(slots=True)
class _Texts:
    """Texts of a file by row, before they are values."""

    columns: list[pa.Array]
    """Texts of each column, as bytes."""
    lines: list[str | None]
    """The text of each row, or None where it can be made of its columns."""
    is_odd: np.ndarray[Any, np.dtype[np.bool_]]
    """Whether a row has more or fewer columns, or a quote that is not closed."""


def _row_by_row(
    data: bytes, types: Mapping[str, pa.DataType], schema: pa.Schema, dialect: Dialect
) -> pa.Table:
    if dialect.across_lines:
        texts = _across_lines(data, types, schema, dialect)
    else:
        texts = _of_lines(_lines(data, dialect), types, schema, dialect)
    is_corrupt = texts.is_odd.copy()
    columns = []
    for values, kind in zip(texts.columns, types.values(), strict=True):
        column, misfits = _converted(values, kind)
        is_corrupt[misfits] = True
        columns.append(column)
    corrupt: list[str | None] = [None] * len(is_corrupt)
    for row in np.flatnonzero(is_corrupt):
        line = texts.lines[row]
        if line is None:
            line = dialect.written([values[row].as_py() for values in texts.columns])
        corrupt[row] = line
    named = pa.Table.from_arrays(columns, schema=pa.schema(list(types.items())))
    return named.append_column(CORRUPT, pa.array(corrupt, pa.string()))


def _of_lines(
    lines: Sequence[bytes], types: Mapping[str, pa.DataType], schema: pa.Schema, dialect: Dialect
) -> _Texts:
    """The texts of lines that are a row each."""
    names = schema.names
    if dialect.header:
        names = dialect.split(lines[0].decode(errors="replace")) if lines else []
        lines = lines[1:]
    quote = dialect.quote.encode()
    plain = [i for i, line in enumerate(lines) if not quote or line.count(quote) % 2 == 0]
    found = _even([lines[i] for i in plain], names, types, dialect)
    if found is None:
        plain, parts, odd = [], [], set(range(len(lines)))
    else:
        table, without = found
        plain = [row for place, row in enumerate(plain) if place not in without]
        parts, odd = [table], set(range(len(lines))) - set(plain)
    rest = sorted(odd)
    split = [dialect.split(lines[row].decode(errors="replace")) for row in rest]
    columns = []
    order = np.argsort(np.array([*plain, *rest], np.int64), kind="stable")
    for name in types:
        place = names.index(name) if name in names else -1
        given = [texts[place] if 0 <= place < len(texts) else None for texts in split]
        own = [None if text in (None, dialect.null) else text.encode() for text in given]
        chunks = [part.column(name).combine_chunks() for part in parts]
        whole = pa.concat_arrays([*map(_one, chunks), pa.array(own, pa.binary())])
        columns.append(whole.take(pa.array(order)))
    is_odd = np.zeros(len(lines), np.bool_)
    for row, texts in zip(rest, split, strict=True):
        is_odd[row] = len(texts) != len(names) or lines[row].count(quote or b"\n") % 2 == 1
    return _Texts(columns, [line.decode(errors="replace") for line in lines], is_odd)


def _even(
    lines: Sequence[bytes], names: Sequence[str], types: Mapping[str, pa.DataType], dialect: Dialect
) -> tuple[pa.Table, set[int]] | None:
    """The texts of ``lines`` by Arrow, without some that are told; None if a line is no row."""
    if not lines or not names:
        return None
    data, without = b"\n".join(lines) + b"\n", set[int]()

    def skip(row: pa_csv.InvalidRow) -> str:
        without.add(row.number - 1)
        return "skip"

    read = pa_csv.ReadOptions(
        use_threads=False, block_size=min(len(data) + 64, _LARGEST_BLOCK), column_names=list(names)
    )
    try:
        table = pa_csv.read_csv(
            io.BytesIO(data),
            read,
            dialect.parsing(invalid_row_handler=skip, ignore_empty_lines=False),
            dialect.converting(dict.fromkeys(types, pa.binary())),
        )
    except pa.ArrowInvalid:
        return None
    return (table, without) if len(table) + len(without) == len(lines) else None


def _across_lines(
    data: bytes, types: Mapping[str, pa.DataType], schema: pa.Schema, dialect: Dialect
) -> _Texts:
    """The texts of a file whose values may have several lines; odd rows come last."""
    odd: list[str] = []

    def note(row: pa_csv.InvalidRow) -> str:
        if row.text.strip():
            odd.append(row.text)
        return "skip"

    names = {} if dialect.header else {"column_names": schema.names}
    table = pa_csv.read_csv(
        io.BytesIO(data),
        _reading(data, dialect, **names),
        dialect.parsing(invalid_row_handler=note),
        dialect.converting(dict.fromkeys(types, pa.binary())),
    )
    columns = [
        pa.concat_arrays([_one(column.combine_chunks()), pa.nulls(len(odd), pa.binary())])
        for column in table.columns
    ]
    is_odd = np.arange(len(table) + len(odd)) >= len(table)
    return _Texts(columns, [*[None] * len(table), *odd], is_odd)


def _one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column in one piece, of bytes: one that a file lacks has no type."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.nulls(0, pa.binary())
    return whole.cast(pa.binary())


def _converted(texts: pa.Array, kind: pa.DataType) -> tuple[pa.Array, list[int]]:
    """``texts`` as values of ``kind``, and the rows of those that are none, which are NULL."""
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return texts.cast(kind), []
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        try:
            return texts.cast(kind), []
        except pa.ArrowInvalid:  # As Spark does: what is no UTF-8 is replaced.
            given = [None if v is None else v.decode(errors="replace") for v in texts.to_pylist()]
            return pa.array(given, kind), []
    rows = np.flatnonzero(texts.is_valid().to_numpy(zero_copy_only=False))
    values = texts.drop_null().to_pylist()
    parts: list[pa.Array] = []
    misfits: list[int] = []
    _convert(values, 0, kind, parts, misfits)
    found = pa.concat_arrays([pa.nulls(1, kind), *parts])
    places = np.zeros(len(texts), np.int64)
    places[rows] = np.arange(1, len(rows) + 1)
    return found.take(pa.array(places)), [int(rows[at]) for at in misfits]


def _column(values: Sequence[bytes], kind: pa.DataType) -> pa.ChunkedArray | None:
    """``values`` as a column of ``kind``; None unless all of them fit."""
    data = b"\n".join(values) + b"\n"
    try:
        column = pa_csv.read_csv(
            io.BytesIO(data),
            pa_csv.ReadOptions(
                use_threads=False,
                column_names=["value"],
                block_size=min(len(data) + 64, _LARGEST_BLOCK),
            ),
            pa_csv.ParseOptions(delimiter=_BETWEEN, quote_char=False, ignore_empty_lines=False),
            pa_csv.ConvertOptions(
                column_types={"value": kind}, null_values=[], timestamp_parsers=[pa_csv.ISO8601]
            ),
        ).column(0)
    except pa.ArrowInvalid:
        return None
    return column if len(column) == len(values) else None


def _convert(
    values: Sequence[bytes],
    first: int,
    kind: pa.DataType,
    parts: list[pa.Array],
    misfits: list[int],
) -> None:
    """Add ``values``, of which the first is number ``first``, to ``parts``; who fits not, is NULL
    there and told in ``misfits``."""
    if not values:
        return
    for tried in (kind, _without_zone(kind))[: 1 + _has_zone(kind)]:
        column = _column(values, tried)
        if column is not None:
            parts += column.cast(kind).chunks
            return
    if len(values) == 1:
        parts.append(pa.nulls(1, kind))
        misfits.append(first)
        return
    half = len(values) // 2
    _convert(values[:half], first, kind, parts, misfits)
    _convert(values[half:], first + half, kind, parts, misfits)
