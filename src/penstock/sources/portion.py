"""What a source must offer: portions that can be written down, and rows that can be read again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import pyarrow as pa

from penstock.sources.partitioned import Partitioned

Portion: TypeAlias = Any
"""What one batch takes of one source, as JSON has it: nested lists, dicts, texts and integers."""


@dataclass(frozen=True, slots=True)
class Admission:
    """How much a batch may take of one source; None where there is no limit."""

    files: int | None = None
    """Files in a batch."""
    size: int | None = None
    """Bytes of files in a batch; a first file that is larger is taken alone."""
    rows: int | None = None
    """Records in a batch, of sources that count them."""

    @property
    def is_limited(self) -> bool:
        """Whether there is any limit."""
        return not (self.files is None and self.size is None and self.rows is None)


UNLIMITED = Admission()


class Part(NamedTuple):
    """Some of a portion, in its order."""

    portion: Portion
    known: Mapping[str, pa.Array] = {}
    """Columns in which all of its rows have one value: arrays of this value alone."""
    partition: int | None = None
    """The partition that all of its rows are in, where the source is partitioned by a column."""


class Brief(NamedTuple):
    """What statistics say about rows."""

    rows: int
    newest: pa.Scalar | None
    """The greatest value of the column; None if there is none."""


class Progress(Protocol):
    """What has been taken of a source so far: the sum of its portions."""

    def add(self, portion: Portion) -> None:
        """One more portion was taken."""
        ...

    def forget(self, available: Any) -> None:
        """Forget what need not be kept, given what there is now."""
        ...

    def to_json(self) -> Any:
        """All of it as plain values, to be written down."""
        ...


class Source(Protocol):
    """A source of rows. Everything that a reader needs to know travels with it: it is pickled."""

    @property
    def name(self) -> str: ...

    @property
    def schema(self) -> pa.Schema:
        """The columns of a row."""
        ...

    @property
    def admission(self) -> Admission:
        """How much a batch takes, unless Spark asks for everything."""
        ...

    @property
    def kept_nanoseconds(self) -> int | None:
        """How long rows stay, in nanoseconds; None if that is for the user to say."""
        ...

    @property
    def partitioned(self) -> Partitioned | None:
        """How rows are put into partitions by a column, if they are."""
        ...

    def progress(self, kept: Any = None) -> Progress:
        """Nothing taken so far, or what :meth:`Progress.to_json` gave."""
        ...

    def available(self) -> Any:
        """What there is at this moment; later batches may be held to it."""
        ...

    def next_portion(
        self, progress: Any, admission: Admission, within: Any = None, is_last: bool = False
    ) -> Portion:
        """What the next batch takes, ``None`` if there is nothing new.

        ``within`` is what :meth:`available` gave earlier: nothing that came later is taken.
        ``is_last`` if the run ends with what there is, and nothing is left for a later look.
        """
        ...

    def everything(self) -> Portion:
        """All that there is, for an answer or a relation that is never looked at again; an error if
        some of it is about to come."""
        ...

    def waiting(self, progress: Any, portion: Portion, available: Any) -> int | None:
        """Rows that are ``available`` and neither taken so far nor in ``portion``; None if the
        source does not count them."""
        ...

    def parts(self, portion: Portion) -> Sequence[Part]:
        """``portion`` cut where rows have a value in common that is known without reading them."""
        ...

    def brief(self, portion: Portion, column: str) -> Brief | None:
        """What is known of ``column`` without reading the rows of a portion; None if nothing is,
        or somebody should have a look at them."""
        ...

    def read(self, portion: Portion, columns: Sequence[str], again: bool = False) -> pa.Table:
        """The rows of a portion, the same and in the same order whenever it is read. ``again`` if
        somebody has read it before: then anything else is an error. Behind ``columns`` may be one
        more, with the texts of rows that could not be read
        (:data:`~penstock.query.unreadable.CORRUPT`)."""
        ...


Portions: TypeAlias = Mapping[str, Portion]
"""Portions by source."""


def in_nanoseconds(time: pa.Scalar) -> int:
    """A time of a source in nanoseconds since 1970, or in millionths of the unit where event times
    are plain integers."""
    if pa.types.is_timestamp(time.type):
        nanoseconds = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[time.type.unit]
        return int(time.value) * nanoseconds
    return int(time.as_py()) * 10**6
