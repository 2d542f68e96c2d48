"""The events of a job, as frozen values and as JSON.

One line of JSON per event, with ``version`` and ``event`` beside the fields of the value; see
``docs/reference/events.md``. Within a version, fields and events are only added: a reader skips
what it does not know, and fields that an older writer did not have take their defaults.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from penstock.errors import InputError
from penstock.telemetry.operator_batch import OperatorBatch

VERSION = 1

WaveKind: TypeAlias = Literal["suspend", "resume"]


@dataclass(frozen=True, slots=True)
class Start:
    """A job begins with an empty checkpoint folder."""

    at: str
    """When, as ISO 8601 in UTC; the same in all events."""
    run: str
    """Spark's id of this run: another one after each restart. The same in all events."""
    job: str
    query: str
    plan: str
    cells: int
    placement: str
    sources: Mapping[str, str]
    """The format of each source."""
    sink: str
    versions: Mapping[str, str]
    limits: Mapping[str, float] = field(default_factory=dict)
    """What it may use: ``cpu`` (share of a core), ``memory`` (bytes), ``probes`` per second."""
    accepts: tuple[str, ...] = ()
    """The commands that the run takes from a page: ``pin``, ``undo``, ``unpin``, ``refresh``."""
    takes_none: str = ""
    """Why it takes none."""
    lane: str = ""
    """The lane that reads the sources, and the reason, as text."""
    streams: Mapping[str, str] = field(default_factory=dict)
    """The source of each alias in plans."""
    refreshes: tuple[str, ...] = ()
    """Static relations that can be read again."""


@dataclass(frozen=True, slots=True)
class Restart(Start):
    """A job goes on from its checkpoint folder."""

    after: int = -1
    """The last micro-batch that was committed; -1 if none was."""


@dataclass(frozen=True, slots=True)
class CellBatch:
    """One cell in one micro-batch."""

    cell: int
    rows: Mapping[str, int]
    results: int
    late: Mapping[str, int]
    """Late rows by source; one that goes to several cells is told by the first of them."""
    state_bytes: int
    stored_bytes: int
    engine_seconds: float
    total_seconds: float
    origin: str
    plan: str
    dropped: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Dropped rows by source and reason, as far as this cell tells them."""
    overload: Mapping[str, Any] = field(default_factory=dict)
    """How short of time the cell is, and what it costs; empty where nothing limits it."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A micro-batch is committed."""

    at: str
    run: str
    batch: int
    seconds: float
    """From its trigger to its commit."""
    rows: Mapping[str, int]
    """Rows read, by source."""
    results: int
    late: Mapping[str, int]
    """Rows that came behind the watermark and were dropped, by source."""
    state_bytes: int
    """Bytes in the engines of all cells."""
    stored_bytes: int
    """Bytes in Spark's state store."""
    engine_seconds: float
    """Seconds in the engines of all cells together; they work side by side."""
    durations: Mapping[str, int] = field(default_factory=dict)
    """Milliseconds of Spark's phases, by Spark's names."""
    cells: tuple[CellBatch, ...] = ()
    operators: tuple[OperatorBatch, ...] = ()
    """What each window and join did, added up over the cells that run the same plan."""
    dropped: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Rows that were dropped, by source and reason: ``late``, ``no event time``, ``unreadable``."""
    filtered: Mapping[str, int] = field(default_factory=dict)
    """Rows that can be in no result by the query's own predicates on their stream, or for a NULL
    in a join column: rows read, less those dropped and those sent to cells, by source."""
    silent: Mapping[str, float] = field(default_factory=dict)
    """Streams that all state waits for though others have moved on by several windows: seconds of
    event time behind the newest."""
    refreshed: Mapping[str, int] = field(default_factory=dict)
    """Static relations that have other rows from this batch on, with the number of the version."""
    watermark: int | None = None
    """No older row is waited for: event time in milliseconds since 1970; None if there is none."""
    newest: Mapping[str, int] = field(default_factory=dict)
    """The newest event time of each source, in milliseconds since 1970."""
    backlog: Mapping[str, int] = field(default_factory=dict)
    """Rows that a source has and no batch has taken yet, of sources that tell it (Kafka)."""
    skipped: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Files that were left out, by source and name, with the reason: ``missing``, ``corrupt``, or
    either ``since it was read``, of files that windows had to be made without."""


@dataclass(frozen=True, slots=True)
class Idle:
    """All input is taken; the next micro-batch comes with the next rows."""

    at: str
    run: str


@dataclass(frozen=True, slots=True)
class Warned:
    """Something that works and is probably not what the user wants."""

    at: str
    run: str
    about: str
    """``watermark`` (a source has none), ``silent`` (state waits for a stream), or another word."""
    text: str
    """What it is, with the remedy."""
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that a person wants to be told of, by the job's ``[alerts]``, begins or is over."""

    at: str
    run: str
    alert: str
    """``failed``, ``late``, ``lag``, ``silent``, ``short`` or ``rejected``."""
    text: str
    """What it is, in a sentence."""
    is_over: bool = False
    source: str = ""
    """The source that it is about, if it is about one."""
    value: float | None = None
    """What was measured: a share of rows, or seconds."""
    limit: float | None = None
    """What was allowed."""


@dataclass(frozen=True, slots=True)
class Order:
    """Somebody wants something of the plan, and the cells take it up with their next micro-batch;
    or wants a static relation to be read again."""

    at: str
    run: str
    order: str
    """``pin``, ``undo`` or ``unpin``; or ``refresh``, which is about a static relation."""
    number: int = 0
    """Orders have growing numbers; 0 if it was refused."""
    plan: str = ""
    """The plan to pin."""
    source: str = ""
    """The static relation to read again."""
    refused: str = ""
    """Why nobody will obey it."""


@dataclass(frozen=True, slots=True)
class PlanDecision:
    """The controller of a cell has decided about its plan, or the cell has obeyed an order."""

    at: str
    run: str
    batch: int
    cell: int
    action: str
    """Of the controller ``migrate``, ``keep``, or ``fail`` if it cannot go on; of people ``pin``,
    ``undo`` and ``unpin``, or ``refuse`` if it could not be done."""
    before: str
    plan: str
    """The plan that runs from now on."""
    reason: str
    after_seconds: float
    """Event time since the first tuple of the cell; arrivals on the arrival line."""
    after_rows: int
    rival: str | None = None
    """The best other plan."""
    exceeded: tuple[str, ...] = ()
    """The limits that even ``plan`` exceeds: some of ``cpu`` and ``memory``."""
    numbers: Mapping[str, float] = field(default_factory=dict)
    """What the decision rests on."""
    strategy: str = ""
    """How a change is carried out: ``jisc``, ``moving-state``, ``parallel-track``, ``reroute``."""
    strategy_reason: str = ""
    """Why it is carried out like this."""


@dataclass(frozen=True, slots=True)
class OverloadChange:
    """A cell has run short of CPU, or has recovered."""

    at: str
    run: str
    batch: int
    cell: int
    action: str
    """``short`` or ``recovered``."""
    policy: str
    """What is done about it: ``exact``, ``shed`` or ``defer``."""
    budget: str = ""
    """What the cell may use, in words."""
    numbers: Mapping[str, float | None] = field(default_factory=dict)
    """The probes ``needed`` and ``allowed``; after it, what was skipped, paid and forgotten."""


@dataclass(frozen=True, slots=True)
class Wave:
    """Many more rows than usual fell asleep or woke in one micro-batch, in all cells together."""

    at: str
    run: str
    batch: int
    action: WaveKind
    rows: int
    usual: float
    """Rows that did so in the last batches, at most; it fades."""
    asleep: int
    """Rows that are asleep after it."""
    by_streams: Mapping[str, int] = field(default_factory=dict)
    """``rows``, by the streams of the window or join that they belong to."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A job has ended, all that it took in is committed."""

    at: str
    run: str
    reason: str
    """``finished``, or what asked it to stop."""
    batches: int
    rows: int
    results: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Failure:
    """A job has failed; what was committed stays, and it can be restarted."""

    at: str
    run: str
    reason: str
    details: str = ""


Event: TypeAlias = (
    Start
    | Restart
    | Batch
    | Idle
    | Warned
    | Alert
    | Order
    | PlanDecision
    | OverloadChange
    | Wave
    | Stop
    | Failure
)

KINDS: dict[str, type[Event]] = {
    "start": Start,
    "restart": Restart,
    "batch": Batch,
    "idle": Idle,
    "warning": Warned,
    "alert": Alert,
    "order": Order,
    "decision": PlanDecision,
    "overload": OverloadChange,
    "wave": Wave,
    "stop": Stop,
    "failure": Failure,
}
_NAMES = {kind: name for name, kind in KINDS.items()}


def to_json(event: Event) -> str:
    """``event`` as one line, without the end of the line."""
    return json.dumps(to_plain(event), ensure_ascii=False)


def to_plain(event: Event) -> dict[str, Any]:
    """``event`` as a plain object, as the log has it."""
    return {"version": VERSION, "event": _NAMES[type(event)], **dataclasses.asdict(event)}


def from_json(line: str) -> Event | None:
    """The event in ``line``; None if it is of a kind that this version does not know."""
    values = plain_event(line)
    kind = KINDS.get(values["event"])
    if kind is None:
        return None
    if kind is Batch:
        for name, inside in (("cells", CellBatch), ("operators", OperatorBatch)):
            values[name] = tuple(_known(inside, each) for each in values.get(name, ()))
    for name in ("accepts", "exceeded", "sources", "refreshes"):
        if name in kind.__dataclass_fields__ and isinstance(values.get(name), list):
            values[name] = tuple(values[name])
    event: Event = _known(kind, values)
    return event


def plain_event(line: str) -> dict[str, Any]:
    """The event in ``line`` as it is written, of whatever kind."""
    values: dict[str, Any] = json.loads(line)
    if values["version"] > VERSION:
        raise InputError(
            f"the event log is of version {values['version']}, and this Penstock reads versions "
            f"up to {VERSION}: use a newer one"
        )
    return values


def _known(kind: type[Any], values: Mapping[str, Any]) -> Any:
    return kind(**{f.name: values[f.name] for f in dataclasses.fields(kind) if f.name in values})
