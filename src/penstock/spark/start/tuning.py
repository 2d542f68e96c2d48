"""What Penstock sets for speed, piece by piece, each with what it is worth.

A session that Penstock starts on one machine may set what concerns the whole process; one that runs
elsewhere gets only what concerns its own queries (``anywhere``). Nothing is set that the user has
set. Each trick can be left out alone, and ``penstock bench session`` measures what that costs:
"""

from __future__ import annotations

import os
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
        {f"{_ROCKSDB}changelogCheckpointing.enabled": "true"},
        anywhere=True,
    ),
    Trick(
        "row-count",
        "the state store does not count its rows",
        {f"{_ROCKSDB}trackTotalNumberOfRows": "false"},
        anywhere=True,
    ),
    Trick(
        "arrow-rows",
        "more rows in a batch of Arrow",
        {f"{_ARROW}maxRecordsPerBatch": "100000"},
        anywhere=True,
    ),
    Trick(
        "arrow-bytes",
        "no limit in bytes, which Spark would look at after every row",
        {f"{_ARROW}maxBytesPerBatch": str(2**31 - 1)},
    ),
    Trick(
        "one-daemon",
        "workers of both stages have one environment, so one parent and one pool",
        {"spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false"},
    ),
    Trick(
        "daemon",
        "the parent of workers has everything loaded before it forks",
        {"spark.python.daemon.module": "penstock.spark.start.worker_daemon"},
    ),
    Trick(
        "log-checksum",
        "no checksums of the logs of a checkpoint",
        {"spark.sql.streaming.checkpoint.fileChecksum.enabled": "false"},
    ),
    Trick(
        "sockets",
        "rows go to Python workers past the network",
        {"spark.python.unix.domain.socket.enabled": str(os.name == "posix").lower()},
    ),
    Trick(
        "shuffle",
        "what is shuffled does not leave the machine, and is not compressed",
        {"spark.shuffle.compress": "false"},
    ),
    Trick(
        "memory",
        "processes keep some of the memory that they free",
        environment=lambda: {
            "MALLOC_ARENA_MAX": "2",  # Else every thread of Java's has a heap.
            "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
            "MALLOC_TRIM_THRESHOLD_": str(128 << 20),
            "ARROW_DEFAULT_MEMORY_POOL": "system",
        },
    ),
    Trick(
        "compiler",
        "Java compiles quickly rather than well",
        # With one compiler Java keeps 48 MB for its code; a job of a minute filled them, and then
        # nothing is compiled any more.
        java=lambda _: "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=192m",
    ),
    Trick("threshold", "Java compiles early", java=lambda _: "-XX:CompileThresholdScaling=0.5"),
    Trick(
        "metaspace",
        "Java loads Spark's classes without collecting garbage meanwhile",
        java=lambda _: "-XX:MetaspaceSize=256m",
    ),
    Trick(
        "unchecked",
        "Arrow does not check bounds; Spark makes room before it writes",
        java=lambda _: "-Darrow.enable_unsafe_memory_access=true",
    ),
    Trick(
        "collector",
        "one thread for Java's garbage, and a small heap, mostly for new objects",
        java=lambda _: "-XX:+UseSerialGC -Xms320m -XX:NewSize=160m",
        unless="GC",
    ),
    Trick("archive", "Java's classes from an archive", java=archive_options, unless="Archive"),
    Trick(
        "python",
        "Python processes do not compile Spark's zipped copies of pyspark and py4j",
        environment=lambda: {"PYSPARK_PYTHON": worker_python()},
    ),
    Trick("files", "permissions of files without a process for each", after=set_up_local_files),
    Trick("file-checksum", "no checksums beside local files", after=write_no_checksums),
    Trick(
        "hadoop", "no settings of Hadoop's other programs go around", after=forget_needless_defaults
    ),
)
