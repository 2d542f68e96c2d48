"""What Penstock sets for speed, piece by piece, each with what it is worth.

A session that Penstock starts on one machine may set what concerns the whole process; one that runs
elsewhere gets only what concerns its own queries (``anywhere``). Nothing is set that the user has
set. Each trick can be left out alone, and ``penstock bench session`` measures what that costs: what
is worth less than a twentieth goes (docs/notes/spark.md has the list of what went). ``worth`` are
ratios, without over with, the middle of several rounds and in brackets the least and the greatest:
the join W1 with 200,000 tuples per stream in 10 micro-batches, on two cores that had neighbours.
Runs with everything took 9.2 to 11.7 CPU seconds for the query, 28 to 33 with the start, but for
one beside a full machine (13.4; hence what is below 1). Where it says 40,000 rows, it is one run
each with 400,000 tuples per stream, in turn with runs that had everything (6.8 to 7.6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from penstock.job.job import LANES
from penstock.spark.start.class_archive import archive_options, local_files
from penstock.spark.start.hadoop_defaults import forget_needless_defaults
from penstock.spark.start.java import Java
from penstock.spark.start.local_files import use_for_sinks
from penstock.spark.start.worker_python import pythons, start_parent


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
    lanes: Sequence[str] = LANES
    """The lanes of jobs in which it does anything: where Penstock reads the sources, there is no
    state store, and no row goes from Java to Python. A session that is not of one job has all."""
    anywhere: bool = False
    """Whether its settings concern the session's own queries alone."""
    environment: Callable[[], Mapping[str, str]] = dict
    """Variables of this process and those that it starts."""
    found: Callable[[Java, Mapping[str, str]], Mapping[str, str]] = lambda _, given: {}
    """More of Spark's settings, if there is what they need; those that are given come to it."""
    java: Callable[[Java], str] = lambda _: ""
    """Options of Java."""
    unless: str = ""
    """A word in Java's options of the user with which there are none of ours."""
    after: Callable[[SparkSession], None] = lambda _: None
    """What is done once the session is there."""


def tricks_of(lane: str) -> Sequence[Trick]:
    """What is worth setting for a job of ``lane``."""
    return [each for each in TRICKS if lane in each.lanes]


_FRAMES = ("dataframes",)
_ROCKSDB = "spark.sql.streaming.stateStore.rocksdb."
_ARROW = "spark.sql.execution.arrow."
TRICKS = (
    Trick(
        "changelog",
        "the state store writes changes, not files of RocksDB",
        "1.02 (1.02–1.03) of CPU seconds, 1.15 with 1.2 million rows in windows",
        {f"{_ROCKSDB}changelogCheckpointing.enabled": "true"},
        lanes=_FRAMES,
        anywhere=True,
    ),
    Trick(
        "row-count",
        "the state store does not count its rows",
        "1.05 (1.01–1.10) of CPU seconds, 1.06 (1.06–1.07) with the start",
        {f"{_ROCKSDB}trackTotalNumberOfRows": "false"},
        lanes=_FRAMES,
        anywhere=True,
    ),
    Trick(
        "arrow-rows",
        "more rows in a batch of Arrow",
        "1.05 of CPU seconds, with 40,000 rows of a stream in a micro-batch",
        {f"{_ARROW}maxRecordsPerBatch": "100000"},
        lanes=_FRAMES,
        anywhere=True,
    ),
    Trick(
        "arrow-bytes",
        "no limit in bytes, which Spark would look at after every row",
        "1.30 of CPU seconds, 1.22 with the start, with 40,000 rows in a micro-batch",
        {f"{_ARROW}maxBytesPerBatch": str(2**31 - 1)},
        lanes=_FRAMES,
    ),
    Trick(
        "one-daemon",
        "workers of both stages have one environment, so one parent and one pool",
        "1.05 (0.85–1.05) of CPU seconds, 1.08 (1.05–1.10) with the start, and 170 MB a worker",
        {"spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false"},
    ),
    Trick(
        "daemon",
        "the parent of workers has everything loaded before it forks",
        "1.53 (1.05–1.55) of CPU seconds, 1.36 (1.20–1.36) with the start, and 170 MB a worker",
        {"spark.python.daemon.module": "penstock.spark.processes.worker_daemon"},
    ),
    Trick(
        "log-checksum",
        "no checksums of the logs of a checkpoint",
        "1.07 (1.04–1.16) of CPU seconds, 1.15 (1.09–1.22) of the wall clock",
        {"spark.sql.streaming.checkpoint.fileChecksum.enabled": "false"},
    ),
    Trick(
        "compiler",
        "Java compiles quickly rather than well",
        "1.67 (1.53–1.73) of CPU seconds, 1.78 (1.74–1.80) with the start",
        # With one compiler Java keeps 48 MB for its code; a job of a minute filled them, and then
        # nothing is compiled any more.
        java=lambda _: "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=192m",
    ),
    Trick(
        "unchecked",
        "Arrow does not check bounds; Spark makes room before it writes",
        "1.17 of CPU seconds, 1.13 with the start, with 40,000 rows in a micro-batch",
        java=lambda _: "-Darrow.enable_unsafe_memory_access=true",
    ),
    Trick(
        "collector",
        "one thread for Java's garbage, and a small heap, mostly for new objects",
        "1.23 (1.12–1.33) of CPU seconds, 1.38 (1.36–1.40) of the wall clock",
        java=lambda _: "-XX:+UseSerialGC -Xms320m -XX:NewSize=160m",
        unless="GC",
    ),
    Trick(
        "archive",
        "Java's classes from an archive",
        "1.14 (1.13–1.14) of CPU seconds with the start",
        java=archive_options,
        unless="Archive",
    ),
    Trick(
        "local-files",
        "no processes are started for files of checkpoints and results",
        "1.35 (1.28–1.55) of CPU seconds, 1.2 with the start",
        found=local_files,
        after=use_for_sinks,
    ),
    Trick(
        "python",
        "Python processes do not compile Spark's zipped copies of pyspark and py4j",
        "data source lane: 1.25 (1.17–1.33) of CPU seconds, 1.15 (1.09–1.23) with the start",
        environment=pythons,
    ),
    Trick(
        "parent",
        "Spark's Python processes are forked from one that has everything loaded",
        "data source lane: 1.5 of CPU seconds, 1.45 with the start, and 280 MB",
        environment=start_parent,
    ),
    Trick(
        "hadoop",
        "no settings of Hadoop's other programs go around",
        "1.12 of CPU seconds, with 40,000 rows in a micro-batch",
        after=forget_needless_defaults,
    ),
)
