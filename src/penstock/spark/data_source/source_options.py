"""Options of one source: what it is, where it is, how much a batch takes of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from penstock.errors import OptionError, PenstockError
from penstock.job.mistake import did_you_mean, listed
from penstock.query.column_list import read_columns
from penstock.query.types import plain
from penstock.sources.file_format import FORMATS, MODE, MODES, format_of
from penstock.sources.file_source import FileSource, infer_schema
from penstock.sources.file_tree import FileTree
from penstock.sources.kafka_client import Assigned, Ends, KafkaClient
from penstock.sources.kafka_source import (
    EARLIEST,
    LATEST,
    KafkaSource,
    message_schema,
    topic_names,
)
from penstock.sources.kafka_values import DECODERS
from penstock.sources.object_store import store_options
from penstock.sources.partitioned import Partitioned
from penstock.sources.portion import Admission, Source
from penstock.sources.rate_source import RateSource
from penstock.values.partitioner import ENCODINGS, PARTITIONERS, SPARK, Partitioner

FOR_ALL = (
    "eventTime",
    "watermark",
    "maxAhead",
    "maxFilesPerTrigger",
    "maxBytesPerTrigger",
    "format",
)
OF_BUCKETS = ("partitionedBy", "buckets")
"""Options of files that Spark's ``bucketBy`` has written."""
_OF_FILES = (
    "eventTimeFormat",
    "path",
    "schema",
    "pathGlobFilter",
    "recursiveFileLookup",
    "ignoreMissingFiles",
    "ignoreCorruptFiles",
    *OF_BUCKETS,
)
OF_KAFKA = (
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "maxOffsetsPerTrigger",
    "failOnDataLoss",
    "kafkaConsumer.pollTimeoutMs",
    "decode",
    "schema",
    "avroSchema",
    "partitionedBy",
    "partitioner",
    "keyEncoding",
)
OF_RATES = ("rowsPerSecond", "maxOffsetsPerTrigger")
_OF_STREAMS = ("eventTime", "eventTimeFormat", "watermark", "maxAhead", "format", "rate")
REFUSED = {
    "latestfirst": "rows must be taken in the order in which they came: the newest first would "
    "make all others late",
    "maxfileage": "a file is never too old here: each is taken once, whenever it appears",
    "cleansource": "files are the state of the query, so they must stay as long as its windows "
    "reach; remove those that are older",
    "refresh": "static relations keep the rows of the first batch; penstock.spark.join reads them "
    'again, and so does a job with lane = "dataframes"',
}
_CLIENT = "kafka."
"""What options for the client of Kafka begin with."""


@dataclass(frozen=True, slots=True)
class Given:
    """The options of one source, and after them those for all."""

    name: str
    own: Mapping[str, str]
    shared: Mapping[str, str]

    def get(self, key: str) -> str | None:
        return self.own.get(key.lower(), self.shared.get(key.lower()))

    def number(self, key: str) -> int | None:
        value = self.get(key)
        if value is None:
            return None
        if not value.strip().isdecimal() or int(value) < 1:
            raise OptionError(f"{self.name}.{key} is a whole number of 1 or more, not {value!r}")
        return int(value)

    def flag(self, key: str) -> bool:
        value = (self.get(key) or "false").strip().lower()
        if value not in ("true", "false"):
            raise OptionError(f"{self.name}.{key} is true or false, not {value!r}")
        return value == "true"


def source_of(given: Given, is_stream: bool) -> Source:
    """The source that options describe; ``is_stream`` unless the answer is bounded."""
    name = (given.get("format") or "parquet").lower()
    if name == "kafka":
        return _kafka_source(given, is_stream)
    if name == "rate":
        _check(given, (*_OF_STREAMS, *OF_RATES))
        limit = Admission(rows=given.number("maxOffsetsPerTrigger"))
        return RateSource(given.name, given.number("rowsPerSecond") or 1, limit)
    return _file_source(given)


def _check(given: Given, names: Sequence[str]) -> None:
    """A mistake if the source has an option that is not among ``names``."""
    known = {each.lower(): each for each in names}
    for key in given.own:
        if key in REFUSED:
            raise OptionError(f"{key} is not for this source: {REFUSED[key]}")
        if key not in known:
            hint = did_you_mean(key, known.values())
            raise OptionError(
                f"unknown option {given.name}.{key}; there are {listed(sorted(known.values()))}"
                + (f"; {hint}" if hint else "")
            )


def _file_source(given: Given) -> FileSource:
    format_name = given.get("format") or "parquet"
    kind = format_of(format_name)
    _check(given, (*FOR_ALL, *_OF_FILES, *kind.options, "static", "rate"))
    path = given.own.get("path")
    if path is None:
        raise OptionError(
            f"{given.name}.path is missing: the folder with its files; formats are "
            f"{listed(FORMATS)}"
        )
    tree = FileTree(
        path,
        given.get("pathGlobFilter"),
        given.flag("recursiveFileLookup"),
        store=store_options(path, given.shared.get),
    )
    of_format = {key: given.own[key] for key in given.own if key in map(str.lower, kind.options)}
    mode = of_format.get(MODE, MODES[0])
    if mode.upper() not in MODES:
        raise OptionError(f"{given.name}.mode is one of {listed(MODES)}, not {mode!r}")
    text = given.get("schema")
    try:
        schema = infer_schema(tree, kind.name, of_format) if text is None else read_columns(text)
    except PenstockError as error:
        raise type(error)(f"schema: {error}") from None
    return FileSource(
        given.name,
        tree,
        kind.name,
        pa.schema([pa.field(f.name, plain(f.type)) for f in schema]),
        Admission(given.number("maxFilesPerTrigger"), given.number("maxBytesPerTrigger")),
        of_format,
        given.flag("ignoreMissingFiles"),
        given.flag("ignoreCorruptFiles"),
        _buckets(given, schema),
    )


def _buckets(given: Given, schema: pa.Schema) -> Partitioned | None:
    """How rows are put into files, if they are bucketed."""
    column, count = given.own.get("partitionedby"), given.number("buckets")
    if (column is None) != (count is None):
        raise OptionError(
            f"{given.name}: partitionedBy and buckets go together: the column and the number that "
            "Spark's bucketBy was called with"
        )
    if column is None or count is None:
        return None
    return Partitioned(_partitioned_by(given, column, schema), Partitioner(SPARK, count))


def _partitioned_by(given: Given, column: str, schema: pa.Schema) -> str:
    if column not in schema.names:
        have = ", ".join(schema.names)
        raise OptionError(
            f"{given.name}.partitionedBy says {column!r}, and there is no such column; it has "
            f"{have}"
        )
    return column


def _partitions(
    given: Given, schema: pa.Schema, ends: Ends, is_pattern: bool
) -> Partitioned | None:
    """How rows are put into the partitions of topics, if it is said."""
    column = given.own.get("partitionedby")
    chosen = {}
    for key, allowed in (("partitioner", PARTITIONERS), ("keyEncoding", ENCODINGS)):
        value = given.own.get(key.lower())
        if value is not None and column is None:
            raise OptionError(f"{given.name}.{key} goes with partitionedBy, the column of the key")
        if value is not None and value not in allowed:
            raise OptionError(f"{given.name}.{key} is one of {listed(allowed)}, not {value!r}")
        chosen[key] = value or allowed[0]
    if column is None:
        return None
    counts: dict[str, int] = {}
    for topic, _ in ends:
        counts[topic] = counts.get(topic, 0) + 1
    if is_pattern or len(set(counts.values())) != 1:
        told = ", ".join(f"{topic} has {count}" for topic, count in sorted(counts.items()))
        raise OptionError(
            f"{given.name}.partitionedBy is for topics with as many partitions, by their names: "
            f"{told}"
        )
    (count,) = set(counts.values())
    by = Partitioner(chosen["partitioner"], count, chosen["keyEncoding"])
    return Partitioned(_partitioned_by(given, column, schema), by)


def _kafka_source(given: Given, is_stream: bool) -> KafkaSource:
    client_options = {k: v for k, v in given.own.items() if k.startswith(_CLIENT)}
    others = {k: v for k, v in given.own.items() if k not in client_options}
    _check(Given(given.name, others, given.shared), (*_OF_STREAMS, *OF_KAFKA))
    own = {key.removeprefix(_CLIENT): value for key, value in client_options.items()}
    if not own.get("bootstrap.servers"):
        raise OptionError(
            f"{given.name}.kafka.bootstrap.servers is missing: the brokers, such as localhost:9092"
        )
    names, pattern, assigned = map(given.own.get, ("subscribe", "subscribepattern", "assign"))
    if [names, pattern, assigned].count(None) != 2:
        raise OptionError(
            f"{given.name}: give one of subscribe (topics, with commas), subscribePattern and "
            "assign (JSON of topics with their partitions)"
        )
    chosen = None if assigned is None else _assigned(given, assigned)
    topics = topic_names(names) if names is not None else tuple(chosen or (str(pattern),))
    decode = given.own.get("decode")
    text = given.own.get("schema")
    if decode is not None and decode not in DECODERS:
        raise OptionError(f"{given.name}.decode is one of {listed(DECODERS)}, not {decode!r}")
    if (decode is None) != (text is None):
        raise OptionError(
            f'{given.name}: decode and schema go together: decode = "json" with the columns of a '
            "value, or neither, for messages as they are"
        )
    value = None
    if text is not None:
        try:
            value = pa.schema([pa.field(f.name, plain(f.type)) for f in read_columns(text)])
        except PenstockError as error:
            raise type(error)(f"schema: {error}") from None
    milliseconds = given.number("kafkaConsumer.pollTimeoutMs") or 120_000
    client = KafkaClient(own, milliseconds / 1e3)
    source = KafkaSource(
        given.name,
        client,
        topics,
        message_schema(value),
        pattern is not None,
        value,
        decode,
        given.own.get("avroschema"),
        _starting(given, is_stream),
        Admission(rows=given.number("maxOffsetsPerTrigger")),
        given.get("failOnDataLoss") is None or given.flag("failOnDataLoss"),
        client.retention(topics) if is_stream and pattern is None else 0,
        assigned=chosen,
    )
    ends = source.available()  # A topic that does not exist is found now.
    return replace(source, partitioned=_partitions(given, source.schema, ends, source.is_pattern))


def _assigned(given: Given, text: str) -> Assigned:
    """The partitions that are read, by topic."""
    try:
        found = {
            str(topic): sorted({int(number) for number in numbers})
            for topic, numbers in json.loads(text).items()
        }
    except (ValueError, TypeError, AttributeError):
        found = {}
    if not found or not all(numbers and numbers[0] >= 0 for numbers in found.values()):
        raise OptionError(
            f"{given.name}.assign is partitions by topic, such as "
            f'{{"orders": [0, 1], "parcels": [4]}}, not {text!r}'
        )
    if given.own.get("partitionedby") is not None:
        raise OptionError(
            f"{given.name}.partitionedBy is for topics that are read whole: give subscribe instead "
            "of assign"
        )
    return found


def _starting(given: Given, is_stream: bool) -> int | Mapping[str, Mapping[str, int]]:
    """Where the first batch begins."""
    text = given.own.get("startingoffsets")
    if text is None:
        return LATEST if is_stream else EARLIEST
    named = {"earliest": EARLIEST, "latest": LATEST}.get(text.strip().lower())
    if named is not None:
        return named
    try:
        found: dict[str, dict[str, int]] = json.loads(text)
        return {t: {str(int(p)): int(o) for p, o in each.items()} for t, each in found.items()}
    except (ValueError, TypeError, AttributeError):
        raise OptionError(
            f"{given.name}.startingOffsets is earliest, latest, or offsets by topic and partition, "
            f'such as {{"orders": {{"0": 23, "1": -2}}}}, not {text!r}'
        ) from None
