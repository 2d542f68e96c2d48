"""Which lane a job takes into Spark: Penstock reads the sources itself, or Spark does.

Reading them itself (``lane = "source"``) is cheaper in every way, but not every source can be read
so: Kafka topics, and files of the formats that :mod:`penstock.sources` has, as they are. A job that
names no lane leaves reading to Spark: in the other lane no row is set aside for being far ahead,
a value of JSON or CSV that does not fit its column is an error, where Spark makes it NULL, and
credentials for files elsewhere may be known to Spark alone. A checkpoint that was begun in one lane
goes on in it.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Literal

from penstock.errors import CheckpointError, OptionError
from penstock.job.job import Job, local_path
from penstock.sources.file_format import FORMATS
from penstock.spark.data_source.job_options import job_options
from penstock.spark.data_source.source_options import OF_KAFKA
from penstock.spark.jobs.side_sinks import DROPPED

SOURCE: Literal["source"] = "source"
FRAMES: Literal["dataframes"] = "dataframes"
_KAFKA = "kafka"
_OPTIONS: Set[str] = frozenset(
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
    if begun is not None and job.lane not in (begun, None):
        raise CheckpointError(
            f'{where}: lane: found "{job.lane}", expected "{begun}": {job.checkpoint} was begun '
            "so; to change it, name another checkpoint folder"
        )
    obstacle = _obstacle(job)
    if (job.lane or begun) == SOURCE and obstacle is not None:
        found = 'found "source"' if job.lane else f"{job.checkpoint} was begun in the lane source"
        raise OptionError(
            f'{where}: lane: {found}, and {obstacle}; expected "dataframes"'
            + ("" if job.lane else ", with another checkpoint folder")
        )
    if job.lane is not None:
        return ChosenLane(job.lane, "the job says so")
    if begun is not None:
        return ChosenLane(begun, "its checkpoint was begun so")
    return ChosenLane(FRAMES, "the job asks for no other lane")


def lane_options(job: Job, cells: int, cores: int) -> dict[str, str]:
    """``job`` as options of ``format("penstock")``, with what a run of it watches."""
    options = job_options(job) | {"cells": str(cells), "cores": str(cores)}
    options |= {"reports": "true", "orders": job.checkpoint}
    if job.late is not None or job.rejected is not None:
        options["dropped"] = DROPPED
    return options


def _obstacle(job: Job) -> str | None:
    """Why Penstock cannot read the sources of ``job`` itself, if it cannot."""
    if job.max_ahead not in ("default", "off"):
        return "rows too far ahead of their arrival are set aside only in the other lane"
    if job.overload == "defer":
        return "probes that are put off are kept with windows, in the other lane"
    for name, source in job.sources.items():
        if source.format not in (*FORMATS, _KAFKA):
            return f"{name} has the format {source.format}"
        if source.refresh is not None:
            return f"{name} is refreshed, which is done in the other lane"
        if source.event_time_format is not None:
            return f"{name} has event times that are texts, which Spark reads"
        is_kafka = source.format == _KAFKA
        if source.select or (source.decode is not None and not is_kafka):
            return f"{name} has {'select' if source.select else 'decode'}, which is Spark's to do"
        known: Set[str]
        if is_kafka:
            known = {each.lower() for each in OF_KAFKA}
        else:
            known = _OPTIONS | {each.lower() for each in FORMATS[source.format].options}
        ours = (key for key in source.options if not (is_kafka and key.startswith("kafka.")))
        other = next((key for key in ours if key.lower() not in known), None)
        if other is not None:
            return f"{name} has the option {other}, which is Spark's"
    return None


def _begun_in(checkpoint: str) -> Literal["source", "dataframes"] | None:
    """The lane that a checkpoint folder of this machine was begun in, if it was."""
    folder = local_path(checkpoint)
    if folder is None or not any(folder.glob("offsets/[0-9]*")):
        return None
    return SOURCE if (folder / "penstock").is_dir() else FRAMES
