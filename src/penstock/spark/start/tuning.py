"""What Penstock sets for speed, piece by piece, each with what it is worth.

A session that Penstock starts on one machine may set what concerns the whole process; one that runs
elsewhere gets only what concerns its own queries (``anywhere``). Nothing is set that the user has
set. Each trick can be left out alone, and ``penstock bench session`` measures what that costs. What
is known to be worth less than a twentieth of a query's CPU seconds went: uncompressed shuffles (0.4
of 13), memory that processes keep (0.3), Unix sockets to workers (0.2 to 0.6). ``worth`` is from
runs on the join W1 with a million tuples per stream in 20 micro-batches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from penstock.spark.start.class_archive import archive_options
from penstock.spark.start.hadoop_defaults import forget_needless_defaults
from penstock.spark.start.java import Java
from penstock.spark.start.local_files import set_up_local_files, write_no_checksums
from penstock.spark.start.worker_python import worker_python


@dataclass(frozen=True, slots=True)
class Trick:
    """A way to make Spark faster that can be left out without any other change."""

    name: str
    about: str
    """What it does, in a few words."""
    worth: str
    """What was measured."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Of Spark."""
    anywhere: bool = False
    """Whether its settings concern the session's own queries alone."""
    environment: Callable[[], Mapping[str, str]] = dict
    """Variables of this process and those that it starts."""
    java: Callable[[Java], str] = lambda _: ""
    """Options of Java."""
    unless: str = ""
    """A word in Java's options of the user with which there are none of ours."""
    after: Callable[[SparkSession], None] = lambda _: None
    """What is done once the session is there."""


_ROCKSDB = "spark.sql.streaming.stateStore.rocksdb."
_ARROW = "spark.sql.execution.arrow."
TRICKS = (
    Trick(
        "changelog",
        "the state store writes changes, not files of RocksDB",
        "with row-count and log-checksum: 148 ms for an empty micro-batch instead of 332",
        {f"{_ROCKSDB}changelogCheckpointing.enabled": "true"},
        anywhere=True,
    ),
    Trick(
        "row-count",
        "the state store does not count its rows",
        "see changelog; alone not measured",
        {f"{_ROCKSDB}trackTotalNumberOfRows": "false"},
        anywhere=True,
    ),
    Trick(
        "arrow-rows",
        "more rows in a batch of Arrow",
        "alone not measured",
        {f"{_ARROW}maxRecordsPerBatch": "100000"},
        anywhere=True,
    ),
    Trick(
        "arrow-bytes",
        "no limit in bytes, which Spark would look at after every row",
        "an eighth of the time to hand rows over",
        {f"{_ARROW}maxBytesPerBatch": str(2**31 - 1)},
    ),
    Trick(
        "one-daemon",
        "workers of both stages have one environment, so one parent and one pool",
        "two workers and a parent less, 3 CPU seconds and 170 MB each",
        {"spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false"},
    ),
    Trick(
        "daemon",
        "the parent of workers has everything loaded before it forks",
        "3 CPU seconds and 170 MB for each worker",
        {"spark.python.daemon.module": "penstock.spark.start.worker_daemon"},
    ),
    Trick(
        "log-checksum",
        "no checksums of the logs of a checkpoint",
        "see changelog; alone not measured",
        {"spark.sql.streaming.checkpoint.fileChecksum.enabled": "false"},
    ),
    Trick(
        "compiler",
        "Java compiles quickly rather than well",
        "more than half of Java's CPU seconds",
        # With one compiler Java keeps 48 MB for its code; a job of a minute filled them, and then
        # nothing is compiled any more.
        java=lambda _: "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=192m",
    ),
    Trick(
        "threshold",
        "Java compiles early",
        "18.7 CPU seconds for a query instead of 21.7, five runs each",
        java=lambda _: "-XX:CompileThresholdScaling=0.5",
    ),
    Trick(
        "metaspace",
        "Java loads Spark's classes without collecting garbage meanwhile",
        "alone not measured",
        java=lambda _: "-XX:MetaspaceSize=256m",
    ),
    Trick(
        "unchecked",
        "Arrow does not check bounds; Spark makes room before it writes",
        "0.8 CPU seconds to hand over a million rows instead of 1.1",
        java=lambda _: "-Darrow.enable_unsafe_memory_access=true",
    ),
    Trick(
        "collector",
        "one thread for Java's garbage, and a small heap, mostly for new objects",
        "0.4 CPU seconds for garbage in a query of 13 instead of 0.9",
        java=lambda _: "-XX:+UseSerialGC -Xms320m -XX:NewSize=160m",
        unless="GC",
    ),
    Trick(
        "archive",
        "Java's classes from an archive",
        "15,000 classes that are not read from 300 jars at the start",
        java=archive_options,
        unless="Archive",
    ),
    Trick(
        "python",
        "Python processes do not compile Spark's zipped copies of pyspark and py4j",
        "0.3 CPU seconds to start a Python process instead of 1.2",
        environment=lambda: {"PYSPARK_PYTHON": worker_python()},
    ),
    Trick(
        "files",
        "permissions of files without a process for each",
        "462 processes in 20 micro-batches",
        after=set_up_local_files,
    ),
    Trick(
        "file-checksum",
        "no checksums beside local files",
        "as many files again; alone not measured",
        after=write_no_checksums,
    ),
    Trick(
        "hadoop",
        "no settings of Hadoop's other programs go around",
        "10 ms of CPU time for each source, state and sink in a micro-batch",
        after=forget_needless_defaults,
    ),
)
