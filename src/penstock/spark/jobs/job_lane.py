"""Which lane a job takes into Spark: Penstock reads the sources itself, or Spark does.

Reading them itself (``lane = "source"``) is cheaper in every way, but not every source can be read
so: Kafka topics, and files of the formats that :mod:`penstock.sources` has, as they are. A job that
names no lane takes it where nothing else would be different. Spark reads

- texts whose values it reads by rules of its own: CSV files, Avro, event times with a format, JSON
  with types that are rare in it or without a schema, and JSON in a session whose zone is not UTC,
  as times may lack theirs;
- files that are elsewhere, since credentials may be known to Spark alone;
- Kafka where its client for Python is not installed, or does not know an option;
- everything on a server of Spark Connect, which may see other files;
- everything on a cluster, where rows for many cells are better spread by a shuffle than read by
  each of them;
- everything where so many cells are asked for, of sources that are not partitioned, that reading
  all in each costs more than a shuffle.

A checkpoint that was begun in one lane goes on in it.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Literal, TypeAlias

import pyarrow as pa
from pyspark.sql import is_remote

from penstock.errors import CheckpointError, OptionError, PenstockError
from penstock.job.job import Job, Source, local_path
from penstock.query.column_list import read_columns
from penstock.sources.file_format import FORMATS, MODE, MODES
from penstock.sources.file_tree import FileTree
from penstock.sources.folder_columns import folder_values
from penstock.sources.kafka_client import native_options
from penstock.sources.ledger import Position
from penstock.spark.data_source.job_options import job_options
from penstock.spark.data_source.source_options import OF_BUCKETS, OF_KAFKA, OF_RATES
from penstock.spark.data_source.text_time_source import arrow_format
from penstock.spark.jobs.side_sinks import DROPPED

SOURCE: Literal["source"] = "source"
FRAMES: Literal["dataframes"] = "dataframes"
_KAFKA = "kafka"
_RATE = "rate"
_JSON = "json"
_BINARY = ("parquet", "arrow", "feather")
"""Formats whose values are the same whoever reads them."""
_PLAIN = (
    pa.types.is_string,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_timestamp,
    pa.types.is_date,
    pa.types.is_decimal,
)
"""Types that JSON has, or texts in it."""
_PARTED_BY = {OF_BUCKETS[0].lower()}
_MOST_READ, _MOST_READ_JSON = 8.0, 4.0
"""Times that cells may together read what there is before the other lane, which sends each row
once, is the cheaper one. A million rows of each of three streams take that lane 11 to 17 CPU
seconds and this one 4.8, of which reading takes 0.6 from parquet and 2.1 from JSON: what lies
between them is read again some ten times, and three to five."""
_ZONE = "spark.sql.session.timeZone"
_UTC = ("UTC", "Etc/UTC", "GMT", "Z", "+00:00")
_MASTER = "spark.master"
Setting: TypeAlias = Callable[[str], str | None]
"""The value of a setting of Spark, None if it has none."""
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
        *OF_BUCKETS,
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


def choose_lane(job: Job, setting: Setting | None = None) -> ChosenLane:
    """The lane of ``job``; an error in one line if it asks for one that it cannot have.

    ``setting`` tells the settings of the session; where there is none yet, those of the job.
    """
    chosen = _chosen(job, setting)
    if job.flush and chosen.name == FRAMES:
        raise OptionError(
            f"{job.file or job.name}: flush: found true, and Spark reads the sources, since "
            f"{chosen.why}; Spark ends a run when it has read them, so it is for the lane source "
            '(lane = "source", with a checkpoint folder of its own)'
        )
    return chosen


def _chosen(job: Job, setting: Setting | None) -> ChosenLane:
    """The lane of ``job``, whatever it asks for at the end of a run."""
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
    difference = obstacle or _difference(job, setting or job.spark.get)
    if difference is not None:
        return ChosenLane(FRAMES, difference)
    kinds = dict.fromkeys(source.format for source in job.sources.values())
    return ChosenLane(SOURCE, f"they are {' and '.join(kinds)}, which it reads as Spark does")


def lane_options(job: Job, cores: int, setting: Setting | None = None) -> dict[str, str]:
    """``job`` as options of ``format("penstock")``, with what a run of it watches."""
    options = job_options(job, setting) | {"cores": str(cores)}
    options |= {"reports": "true", "orders": job.checkpoint}
    if job.late is not None or job.rejected is not None:
        options["dropped"] = DROPPED
    return options


def _obstacle(job: Job) -> str | None:
    """Why Penstock cannot read the sources of ``job`` itself, if it cannot."""
    if job.overload is not None and job.overload.policy == "defer":
        return "probes that are put off are kept with windows, in the other lane"
    for name, source in job.sources.items():
        if source.format not in (*FORMATS, _KAFKA, _RATE):
            return f"{name} has the format {source.format}"
        if source.refresh is not None:
            return f"{name} is refreshed, which is done in the other lane"
        pattern = source.event_time_format
        if pattern is not None and arrow_format(pattern) is None:
            return f'{name} has event times that are texts like "{pattern}", which only Spark reads'
        is_kafka = source.format == _KAFKA
        if source.static and source.format not in FORMATS:
            return f"{name} is static and of the format {source.format}"
        if source.select or (source.decode is not None and not is_kafka):
            return f"{name} has {'select' if source.select else 'decode'}, which is Spark's to do"
        known: Set[str]
        if is_kafka or source.format == _RATE:
            known = {each.lower() for each in (OF_KAFKA if is_kafka else OF_RATES)}
        else:
            known = _OPTIONS | {each.lower() for each in FORMATS[source.format].options}
        mode = next((v for k, v in source.options.items() if k.lower() == MODE), MODES[0])
        if mode.upper() not in MODES:
            return f"{name} has the mode {mode}, which is Spark's"
        ours = (key for key in source.options if not (is_kafka and key.startswith("kafka.")))
        other = next((key for key in ours if key.lower() not in known), None)
        if other is not None:
            return f"{name} has the option {other}, which is Spark's"
    return None


def _difference(job: Job, setting: Setting) -> str | None:
    """What might come out otherwise if Penstock read the sources, if anything."""
    for name, source in job.sources.items():
        if source.format == _KAFKA:
            problem = _unlike_in_kafka(source)
            if problem is not None:
                return f"{name} is Kafka, and {problem}"
        elif source.path is None or local_path(source.path) is None:
            return f"{name} is not on this machine"
        elif source.format not in (*_BINARY, _JSON):
            kind = source.format
            return f"{name} has the format {kind}, whose values Spark reads by rules of its own"
        if source.event_time_format is not None:
            return f"{name} has event times that are texts, which Spark reads by rules of its own"
        if _JSON in (source.format, source.decode):
            problem = _unlike_in_json(source.schema, setting)
            if problem is not None:
                return f"{name} is JSON, and {problem}"
    if local_path(job.checkpoint) is None:
        return "the checkpoint is not on this machine"
    if is_remote():
        return "a server of Spark Connect may see other files than this machine"
    master = setting(_MASTER) or "local"
    if not master.startswith("local"):
        return f"there is a cluster, {master}"
    return _read_too_often(job)


def _read_too_often(job: Job) -> str | None:
    """Why cells should be sent their rows instead of reading everything, if they should."""
    if job.cells == "auto":  # Then they read hardly more than one would.
        return None
    rates = {n: s.rate or 1.0 for n, s in job.sources.items() if not s.static}
    whole = [name for name in rates if not _is_parted(job.sources[name])]
    rows = sum(rates.values())
    read = rows + (job.cells - 1) * sum(rates[name] for name in whole)
    is_json = any(_JSON in (job.sources[n].format, job.sources[n].decode) for n in whole)
    if read <= rows * (_MOST_READ_JSON if is_json else _MOST_READ):
        return None
    return (
        f"{job.cells} cells that each read all of {', '.join(whole)} would read {read / rows:.3g} "
        "times what there is"
    )


def _is_parted(source: Source) -> bool:
    """Whether a cell may find its own rows of ``source`` without reading the others."""
    if any(key.lower() in _PARTED_BY for key in source.options):
        return True
    if source.path is None or source.format not in FORMATS:
        return False
    names = [folder_values(file.name) for file in FileTree(source.path).files()]
    return bool(names) and all(names)


def _unlike_in_kafka(source: Source) -> str | None:
    """Why Spark's connector might read topics otherwise, or alone."""
    if importlib.util.find_spec("confluent_kafka") is None:
        return 'its client is not installed: pip install "penstock[kafka]"'
    if source.decode not in (None, _JSON):
        return f"its values are {source.decode}"
    options = {k.removeprefix("kafka."): v for k, v in source.options.items() if "kafka." in k[:6]}
    try:
        native_options(options)
    except OptionError as problem:
        return str(problem)
    return None


def _unlike_in_json(schema: str | None, setting: Setting) -> str | None:
    """Why Spark might read JSON otherwise."""
    if schema is None:
        return "no schema is given"
    zone = setting(_ZONE) or _UTC[0]
    if zone not in _UTC:
        return f"times may be of the zone {zone}"
    try:
        columns = read_columns(schema)
    except PenstockError:
        return "its schema is for Spark to read"
    odd = next((each for each in columns if not any(is_(each.type) for is_ in _PLAIN)), None)
    return None if odd is None else f"{odd.name} is of the type {odd.type}"


def _begun_in(checkpoint: str) -> Literal["source", "dataframes"] | None:
    """The lane that a checkpoint folder of this machine was begun in, if it was."""
    folder = local_path(checkpoint)
    logged = [] if folder is None else [*folder.glob("offsets/[0-9]*")]
    if folder is None or not logged:
        return None
    # A run that found no rows has no ledger, and an offset.
    newest = max(logged, key=lambda file: (len(file.name), file.name))  # Spark removes old ones.
    lines = newest.read_text().splitlines()
    is_ours = (folder / "penstock").is_dir() or any(map(_is_position, lines))
    return SOURCE if is_ours else FRAMES


def _is_position(line: str) -> bool:
    """Whether a line of Spark's log is an offset of the data source."""
    try:
        Position.of_json(json.loads(line))
    except (CheckpointError, ValueError):
        return False
    return True
