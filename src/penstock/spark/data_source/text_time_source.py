"""A source whose event times are texts: timestamps to everybody who reads it.

Spark's patterns are those of job files in both lanes. Here a pattern of years, months, days, hours,
minutes and seconds becomes the format that Arrow reads, and each number must have as many digits as
the pattern has letters, as in Spark; one with anything else in it (fractions, names of months,
zones) is left to Spark. A text that is no time is NULL, so its row counts as one without an event
time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.push.text_times import times_of
from penstock.errors import OptionError
from penstock.query.time_format import ISO
from penstock.query.types import Family, family
from penstock.sources.file_source import FileSource
from penstock.sources.partitioned import Partitioned
from penstock.sources.portion import Admission, Brief, Part, Portion, Progress, Source

_TIME = pa.timestamp("us", "UTC")
"""What Spark has for TIMESTAMP."""
_PIECE = re.compile(r"'([^']*)'|([A-Za-z])\2*|(.)", re.DOTALL)
_LETTERS = {
    "yyyy": "%Y",
    "MM": "%m",
    "dd": "%d",
    "HH": "%H",
    "mm": "%M",
    "ss": "%S",
}


@dataclass(frozen=True)
class TextTimeSource:
    """``source`` with the texts of ``column`` read by ``pattern``."""

    source: Source
    column: str
    pattern: str

    def __post_init__(self) -> None:
        kind = self.source.schema.field(self.column).type
        if family(kind) is not Family.STRING:
            raise OptionError(
                f'event_time_format: found "{self.pattern}", which is for an event time that is a '
                f"text; {self.column} is {kind}"
            )
        if arrow_format(self.pattern) is None:
            raise OptionError(f'event_time_format: found "{self.pattern}", which only Spark reads')

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def schema(self) -> pa.Schema:
        schema = self.source.schema
        return schema.set(schema.get_field_index(self.column), pa.field(self.column, _TIME))

    @property
    def admission(self) -> Admission:
        return self.source.admission

    @property
    def kept_nanoseconds(self) -> int | None:
        return self.source.kept_nanoseconds

    @property
    def partitioned(self) -> Partitioned | None:
        return self.source.partitioned

    def progress(self, kept: Any = None) -> Progress:
        return self.source.progress(kept)

    def available(self) -> Any:
        return self.source.available()

    def next_portion(
        self, progress: Any, admission: Admission, within: Any = None, is_last: bool = False
    ) -> Portion:
        return self.source.next_portion(progress, admission, within, is_last)

    def everything(self) -> Portion:
        return self.source.everything()

    def waiting(self, progress: Any, portion: Portion, available: Any) -> int | None:
        return self.source.waiting(progress, portion, available)

    def parts(self, portion: Portion) -> Sequence[Part]:
        """Parts, without what folders say about event times."""
        return [
            part._replace(known={n: v for n, v in part.known.items() if n != self.column})
            for part in self.source.parts(portion)
        ]

    def brief(self, portion: Portion, column: str) -> Brief | None:
        return None if column == self.column else self.source.brief(portion, column)

    def read(self, portion: Portion, columns: Sequence[str], again: bool = False) -> pa.Table:
        table = self.source.read(portion, columns, again)
        position = table.schema.get_field_index(self.column)
        if position < 0:
            return table
        times = text_times(table.column(position), self.pattern)
        return table.set_column(position, pa.field(self.column, _TIME), times)


def as_files(source: Source) -> FileSource | None:
    """The files that ``source`` reads, if it reads files."""
    while isinstance(source, TextTimeSource):
        source = source.source
    return source if isinstance(source, FileSource) else None


def text_times(texts: Any, pattern: str) -> Any:
    """``texts`` as times, by a ``pattern`` that :func:`arrow_format` knows."""
    if pattern == ISO:
        return times_of(texts, ISO, _TIME)
    format_ = arrow_format(pattern)
    assert format_ is not None
    fits = pc.match_substring_regex(texts, f"^{_shape(pattern)}$")
    texts = pc.if_else(pc.fill_null(fits, False), texts, pa.scalar(None, texts.type))
    return times_of(texts, format_, _TIME)


def arrow_format(pattern: str) -> str | None:
    """``pattern`` of Spark as Arrow writes it; None if it has more in it than numbers of a time."""
    if pattern == ISO:
        return ISO
    found = ""
    for quoted, letter, other in _pieces(pattern):
        text = _LETTERS.get(letter) if letter else (quoted or other).replace("%", "%%")
        if text is None:
            return None
        found += text
    return found if all(each in found for each in ("%Y", "%m", "%d")) else None


def _shape(pattern: str) -> str:
    """Texts that can be read by ``pattern``, as a regular expression."""
    return "".join(
        rf"\d{{{len(letter)}}}" if letter else re.escape(quoted or other)
        for quoted, letter, other in _pieces(pattern)
    )


def _pieces(pattern: str) -> list[tuple[str, str, str]]:
    """The pattern as texts in quotes, runs of one letter and other characters."""
    return [
        (found[1] or "", found[0] if found[2] else "", found[3] or "")
        for found in _PIECE.finditer(pattern)
    ]
