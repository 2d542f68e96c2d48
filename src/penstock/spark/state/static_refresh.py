"""Static relations read again while a query runs: on an interval, or when somebody asks.

Spark reads a relation, so it is read in the process that made the join, by a thread of its own. New
rows become a version (:mod:`penstock.spark.state.static_versions`); from which batch on they hold
is for Spark's log of offsets to say (:mod:`penstock.spark.operator.version_stream`): the first one
that is planned after the version was written. Rows that are as they were make no version. A
relation that cannot be read keeps its rows, with a warning, and is read again when it is due next.

The thread does nothing while the session has no active query, and ends with the last one.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.engine.options import milliseconds
from penstock.engine.overload.overload import Overload
from penstock.errors import CheckpointError, OptionError, PenstockWarning
from penstock.job.redaction import redacted
from penstock.query.join_graph import JoinGraph
from penstock.spark.state.checkpoint_files import CheckpointFiles
from penstock.spark.state.static_versions import StaticVersions

ASKED = "asked"
"""In place of an interval: a relation is read again only when somebody asks."""
_LOOK_SECONDS = 1.0
"""Time between two looks at what was asked for: what a person waits without wondering."""
_running: dict[str, StaticRefresh] = {}
"""The one that works for each checkpoint folder."""


def refresh(
    checkpoint: str, spark: SparkSession | None = None, *relations: str, at: float | None = None
) -> None:
    """Ask the query with the folder ``checkpoint`` to read static relations again: those named, or
    all that it refreshes. ``spark`` is needed for folders that are not on this machine.

    >>> refresh("checkpoints/orders", None, "prices")    # doctest: +SKIP
    """
    files = CheckpointFiles(checkpoint) if spark is None else CheckpointFiles.of(checkpoint, spark)
    versions = StaticVersions(files)
    known = versions.newest()
    unknown = [name for name in relations if name not in known]
    if unknown or not known:
        have = f"it refreshes: {', '.join(known)}" if known else "it refreshes none"
        what = f"no static relation {unknown[0]!r}" if unknown else "no static relation"
        raise OptionError(f"the query of {checkpoint} has {what} that could be read again; {have}")
    versions.ask(relations or known, time.time() if at is None else at)


def intervals(
    query: JoinGraph, refreshed: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, float | None]:
    """Seconds between two times that each relation is read; None: only when asked to."""
    static = [s.source for s in query.streams if s.is_static]
    found: dict[str, float | None] = {}
    for name, every in refreshed.items():
        if name not in static:
            have = f"they are: {', '.join(static)}" if static else "the query has none"
            raise OptionError(f"refresh names {name!r}, and refreshes static relations; {have}")
        if isinstance(every, str) and every.strip().lower() == ASKED:
            found[name] = None
            continue
        interval = milliseconds(f"refresh of {name}", every)
        if not interval:
            raise OptionError(f"refresh of {name} is an interval above 0, or {ASKED!r}")
        found[name] = interval / 1000
    if query.minus:
        raise OptionError(
            "a query with EXCEPT keeps the static relations that it began with: what it has "
            "removed so far cannot be decided anew; leave refresh out"
        )
    if Overload.of(options.get("overload", "exact")).policy == "defer":
        raise OptionError(
            "refresh and overload='defer' do not go together: probes that are put off have to "
            "meet the rows of before; use 'shed' or 'exact'"
        )
    return found


def check_begun(files: CheckpointFiles, refreshed: Mapping[str, Any]) -> None:
    """:class:`CheckpointError` if the query of a checkpoint folder has begun with no relation that
    is refreshed, and now there are some, or the other way round: Spark takes a query only with as
    many sources as it had, and versions are one."""
    try:
        if not any(name.isdecimal() for name in files.names("offsets") or ()):
            return
        before = StaticVersions(files).newest()
    except OSError:
        return  # Spark may reach what Python does not.
    if refreshed and not before:
        raise CheckpointError(
            f"the query of {files.address} has begun without refresh, and Spark does not take one "
            "more source; leave refresh out, or name another checkpoint folder"
        )
    if before and not refreshed:
        names = ", ".join(before)
        raise CheckpointError(
            f"the query of {files.address} has begun with refresh of {names}, and Spark does not "
            f"take one source less; keep it, if only as {ASKED!r}, or name another folder"
        )


@dataclass(slots=True)
class StaticRefresh:
    """Reads static relations again, each by its function in ``read``.

    ``every`` has the seconds between two times, None for a relation that is read when asked for.
    """

    versions: StaticVersions
    read: Mapping[str, Callable[[], pa.Table]]
    every: Mapping[str, float | None]
    problems: list[str] = field(default_factory=list)
    """What went wrong since somebody looked; only if ``is_heard``, else it is a warning."""
    is_heard: bool = False
    _due: dict[str, float] = field(default_factory=dict)
    """When each relation is read next, by the monotonic clock."""
    _seen: dict[str, int] = field(default_factory=dict)
    """What was asked for before."""
    _over: threading.Event = field(default_factory=threading.Event)

    def begin(self, now: float) -> None:
        """What was asked for before the query started has been done: it has read everything."""
        self._seen = self.versions.asked()
        self._due = {n: now + seconds for n, seconds in self.every.items() if seconds is not None}

    def look(self, now: float) -> list[str]:
        """Read what is due at ``now`` or was asked for; the relations that have been read."""
        asked = self.versions.asked()
        wanted = [
            name
            for name in self.read
            if self._due.get(name, now + 1) <= now or asked.get(name, 0) > self._seen.get(name, 0)
        ]
        self._seen = asked
        for name in wanted:
            if (seconds := self.every[name]) is not None:
                self._due[name] = now + seconds
            try:
                rows = self.read[name]()
                self.versions.add(name, rows, self.versions.newest().get(name, 0))
            except Exception as error:  # Whatever a source or a file system raises: the rows stay.
                self._tell(name, error)
        return wanted

    def start(self, spark: SparkSession) -> None:
        """Work in a thread of its own until :meth:`stop`, or until ``spark`` has no query left."""
        address = self.versions.files.address
        before = _running.get(address)
        if before is not None:
            before.stop()
        _running[address] = self
        thread = threading.Thread(target=self._run, args=[spark], name="penstock refresh")
        thread.daemon = True
        thread.start()

    def stop(self) -> None:
        """End the thread after what it does now."""
        self._over.set()

    def _run(self, spark: SparkSession) -> None:
        has_begun = False
        while not self._over.wait(_LOOK_SECONDS):
            try:
                is_active = bool(spark.streams.active)
            except Exception:  # The session is gone, in one of many ways.
                return
            if is_active and has_begun:
                self.look(time.monotonic())
            elif is_active:
                self.begin(time.monotonic())
                has_begun = True
            elif has_begun:
                return

    def _tell(self, name: str, error: Exception) -> None:
        first = next(iter(str(error).splitlines()), "")
        text = redacted(
            f"{name} could not be read again and keeps its rows: {first or type(error).__name__}"
        )
        if self.is_heard:
            self.problems.append(text)
        else:
            warnings.warn(text, PenstockWarning, stacklevel=2)


def running(address: str) -> StaticRefresh | None:
    """The one that works for the checkpoint folder at ``address`` in this process."""
    return _running.get(address)
