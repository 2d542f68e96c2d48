"""Which lane a job takes into Spark: Penstock reads the sources itself, or Spark does.

Reading them itself (``lane = "source"``) is cheaper in every way, but not every source can be read
so: files of the formats that :mod:`penstock.sources` has, as they are. In JSON and CSV a value that
does not fit its column is an error there, where Spark makes it NULL. A checkpoint that was begun in
one lane goes on in it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal

from penstock.errors import CheckpointError, OptionError
from penstock.job.job import Job, Source, local_path
from penstock.sources.file_format import FORMATS

SOURCE: Literal["source"] = "source"
FRAMES: Literal["dataframes"] = "dataframes"
_OPTIONS = frozenset(
    name.lower()
    for name in (
        "path",
        "maxFilesPerTrigger",
        "maxBytesPerTrigger",
        "pathGlobFilter",
        "recursiveFileLookup",
        "ignoreMissingFiles",
        "ignoreCorruptFiles",
    )
)


@dataclass(frozen=True, slots=True)
class ChosenLane:
    """A lane and the reason for it."""

    name: Literal["source", "dataframes"]
    why: str

    def __str__(self) -> str:
        who = "Penstock reads the sources itself" if self.name == SOURCE else "Spark reads them"
        return f"lane {self.name}: {who}, since {self.why}"


def choose_lane(job: Job) -> ChosenLane:
    """The lane of ``job``; an error in one line if it asks for one that it cannot have."""
    begun = _begun_in(job.checkpoint)
    where = str(job.file or job.name)
    if begun is not None and begun != job.lane:
        raise CheckpointError(
            f'{where}: lane: found "{job.lane}", expected "{begun}": {job.checkpoint} was begun '
            "so; to change it, name another checkpoint folder"
        )
    if job.lane == SOURCE and (obstacle := _obstacle(job)) is not None:
        raise OptionError(f'{where}: lane: found "source", and {obstacle}; expected "dataframes"')
    return ChosenLane(job.lane, "the job says so" if job.lane == SOURCE else "nothing else is said")


def lane_options(job: Job, cells: int, cores: int) -> dict[str, str]:
    """``job`` as options of ``format("penstock")``."""
    options = {
        "query": job.query,
        "eventTime": job.event_time,
        "checkpointLocation": job.checkpoint,
        "cells": str(cells),
        "plan": job.plan,
        "cores": str(cores),
        "reports": "true",
        "orders": job.checkpoint,
    }
    for name in ("adapt", "feedback", "overload"):
        if (value := getattr(job, name)) is not None:
            options[name] = value
    if job.limits is not None:
        options["limits"] = json.dumps({k: v for k, v in asdict(job.limits).items() if v})
    if job.hot:
        options["hot"] = json.dumps({column: list(values) for column, values in job.hot.items()})
    if isinstance(job.trigger, int) and job.trigger:
        options["trigger"] = f"{job.trigger} MILLISECONDS"
    for name, source in job.sources.items():
        options |= {f"{name}.{key}": value for key, value in _source_options(source).items()}
    return options


def _source_options(source: Source) -> dict[str, str]:
    options = dict(source.options) | {"format": source.format}
    if source.path is not None:
        options["path"] = source.path
    if source.schema is not None:
        options["schema"] = source.schema
    if source.static:
        options["static"] = "true"
    if source.event_time is not None:
        options["eventTime"] = source.event_time
    if source.watermark is not None:
        options["watermark"] = f"{source.watermark} MILLISECONDS"
    if source.rate is not None:
        options["rate"] = str(source.rate)
    return options


def _obstacle(job: Job) -> str | None:
    """Why Penstock cannot read the sources of ``job`` itself, if it cannot."""
    if job.late is not None or job.rejected is not None:
        return "rows that were dropped go to a sink only in the other lane"
    if job.max_ahead not in ("default", "off"):
        return "rows too far ahead of their arrival are set aside only in the other lane"
    if job.overload == "defer":
        return "probes that are put off are kept with windows, in the other lane"
    for name, source in job.sources.items():
        if source.format not in FORMATS:
            return f"{name} has the format {source.format}"
        if source.refresh is not None:
            return f"{name} is refreshed, which is done in the other lane"
        if source.select or source.decode is not None:
            return f"{name} has {'select' if source.select else 'decode'}, which is Spark's to do"
        known = _OPTIONS | {each.lower() for each in FORMATS[source.format].options}
        other = next((key for key in source.options if key.lower() not in known), None)
        if other is not None:
            return f"{name} has the option {other}, which is Spark's"
    return None


def _begun_in(checkpoint: str) -> Literal["source", "dataframes"] | None:
    """The lane that a checkpoint folder of this machine was begun in, if it was."""
    folder = local_path(checkpoint)
    if folder is None or not any(folder.glob("offsets/[0-9]*")):
        return None
    return SOURCE if (folder / "penstock").is_dir() else FRAMES
