"""A job: everything that a streaming join needs, as one frozen value.

:mod:`penstock.job.read` makes it from a file and says what is wrong with it; whoever makes one by
hand is on his own. Durations are milliseconds. Paths are absolute, or addresses with a scheme.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from penstock.job.overload import Overload
from penstock.telemetry.alerts import AlertRules

Trigger: TypeAlias = int | Literal["available-now"]
"""Milliseconds from the start of one micro-batch to the next (0: without a pause), or: take all
that is there, and end."""

Refresh: TypeAlias = int | Literal["asked"]
"""Milliseconds from one time that a static relation is read to the next, or: when asked to."""

Lane: TypeAlias = Literal["source", "dataframes"]
LANES: tuple[Lane, ...] = get_args(Lane)


@dataclass(frozen=True, slots=True)
class Source:
    """A stream or a static relation: how Spark reads it, and what Penstock makes of it."""

    name: str
    format: str
    path: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    schema: str | None = None
    """As DDL text; None: inferred, or fixed by the format."""
    decode: Literal["json"] | None = None
    """``schema`` is that of the texts in the column ``value``, as Kafka has them."""
    select: tuple[str, ...] = ()
    """SQL expressions over the columns, if not all of them as they are."""
    static: bool = False
    event_time: str | None = None
    """The column, where it is not that of the job."""
    event_time_format: str | None = None
    """How the event time is written, if it is a text: ``"iso"``, or a pattern of Spark."""
    watermark: int | None = None
    refresh: Refresh | None = None
    """How often a static relation is read again; None: never."""
    rate: float | None = None
    """Expected rows per second, for the placement on cells."""


@dataclass(frozen=True, slots=True)
class Sink:
    """Where results go."""

    format: str
    path: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    partition_by: tuple[str, ...] = ()
    encode: Literal["json"] | None = None
    """Rows become texts in one column ``value``, as Kafka takes them."""
    key: str | None = None
    """The column that becomes the key of a message, with ``encode``."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the join may use; None: whatever it needs."""

    cpu: float | None = None
    """Share of a core."""
    memory: int | None = None
    """Bytes."""
    probes: float | None = None
    """Per second of event time."""
    disk: int | None = None
    """Bytes of files that rows may take when memory is short; 0: none."""


@dataclass(frozen=True, slots=True)
class Job:
    """A query, its sources, its sink, and how it runs."""

    name: str
    query: str
    sources: Mapping[str, Source]
    sink: Sink
    checkpoint: str
    event_time: str = "ts"
    trigger: Trigger = 0
    flush: bool = False
    """Whether a run with ``available-now`` waits for no more rows at its end."""
    cells: int | Literal["auto"] = "auto"
    hot: Mapping[str, tuple[str | int | float | bool, ...]] = field(default_factory=dict)
    """Values that are spread over cells of their own, by column."""
    lane: Lane | None = None
    """The reader of the sources: Penstock (``source``) or Spark (``dataframes``); None: Penstock
    where nothing else is different then, or whoever the checkpoint was begun with."""
    plan: str = "auto"
    adapt: str | None = None
    feedback: str | None = None
    overload: Overload | None = None
    limits: Limits | None = None
    spill_folder: str | None = None
    """Folder on a local disk for rows beyond the limit on memory; None: Spark's own."""
    idle: int | None = None
    """Milliseconds of event time that a stream may fall behind the others; None: any time."""
    max_ahead: int | Literal["default", "off"] = "default"
    """Milliseconds that the event time of a row may be ahead of its arrival."""
    max_results: int | None = None
    """Results that a cell may make of a micro-batch; None: any number."""
    max_halt: int | None = None
    """Milliseconds that a change of plan may hold up a cell; None: two of its pushes."""
    late: Sink | None = None
    """The sink of late rows, if there is one."""
    rejected: Sink | None = None
    """The sink of rows that could not be read or have no event time, if there is one."""
    alerts: AlertRules | None = None
    """Rules of what is told to whom when something goes wrong, if there are any."""
    spark: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Settings of Spark, by full name. Like options, they may be secret, and are not printed."""
    file: Path | None = None

    @property
    def refreshed(self) -> dict[str, Refresh]:
        """Static relations that are read again while the job runs, and how often."""
        return {n: s.refresh for n, s in self.sources.items() if s.refresh is not None}

    @property
    def event_log(self) -> Path | None:
        """Beside the checkpoint, or beside the job file if that is not on this machine."""
        folder = local_path(self.checkpoint)
        if folder is not None:
            return folder.with_name(f"{folder.name}.events.jsonl")
        return None if self.file is None else self.file.with_name(f"{self.file.stem}.events.jsonl")


NO_FOLDER = (
    "has no effect any more, leave it out: windows are in Spark's state store, with the checkpoint"
)
"""What is said of ``state_folder``, which was a place for windows beside the checkpoint."""


def local_path(address: str) -> Path | None:
    """``address`` as a path of this machine; None if it is elsewhere."""
    scheme, colon, rest = address.partition(":")
    if not colon or "/" in scheme:
        return Path(address)
    return Path("/" + rest.lstrip("/")) if scheme == "file" else None
