"""Starting Spark from the command line: with a sign of life, and quietly.

Spark's processes write to the stderr that they were born with. So, unless Spark's messages are
asked for, stderr is a file while they are started; what is in it is looked at when something goes
wrong, and thrown away otherwise.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from penstock.errors import PenstockError

if TYPE_CHECKING:
    from penstock.job import Job

SPARK_PACKAGES = (
    ("pyspark", "pyspark"),
    ("pandas", "pandas"),
    ("google.protobuf", "protobuf"),
)
"""Modules that the join on Spark needs, and the packages that they come in."""

_MISSING = re.compile(r"unresolved dependency: ([^\s:]+)")
_JAVA_OPTION = ("Invalid ", "Unrecognized ", "Conflicting ")
"""How Java begins to say what is wrong with its options, before it says that it does not start."""
_STDERR = 2


class SparkLog:
    """The file that Spark's messages go to."""

    def __init__(self) -> None:
        handle, name = tempfile.mkstemp(prefix="penstock-spark-", suffix=".log")
        os.close(handle)
        self.path = Path(name)
        self.is_kept = False

    def keep(self) -> Path:
        """Do not throw the file away."""
        self.is_kept = True
        return self.path

    def close(self) -> None:
        if not self.is_kept or not self.path.stat().st_size:
            self.path.unlink(missing_ok=True)


@contextmanager
def started_spark(
    job: Job, console: Console, spark_log: str | None
) -> Iterator[tuple[Any, SparkLog]]:
    """A session for ``job``, which is stopped at the end, and the log of its messages."""
    need_spark()
    log = SparkLog()
    try:
        with sign_of_life(console, "starting Spark"):
            from penstock.spark.jobs.job_session import job_session

            with _stderr_to(None if spark_log else log.path):
                try:
                    session = job_session(job, (spark_log or "error").upper())
                except Exception as error:
                    raise _refused(error, log) from None
        try:
            yield session, log
        finally:
            stop_quietly(session)
    finally:
        log.close()


def is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # The package that it would be in.
        return False


def need_spark() -> None:
    """:class:`PenstockError` if what PySpark needs is not installed."""
    missing = [package for module, package in SPARK_PACKAGES if not is_installed(module)]
    if missing:
        raise PenstockError(
            f"this needs Spark, and {', '.join(missing)} cannot be found: "
            "pip install 'penstock[spark]'"
        )


def stop_quietly(session: Any) -> None:
    """Stop Spark; if its process is gone already, all the better."""
    try:
        session.stop()
    except Exception:  # Whatever the connection to a dead process raises.
        return


@contextmanager
def sign_of_life(console: Console, what: str) -> Iterator[None]:
    """Show ``what`` is going on: in a terminal as long as it does, elsewhere as a line."""
    if not console.is_terminal:
        console.print(f"{what} …", highlight=False)
        yield
        return
    with console.status(f"{what} …"):
        yield


@contextmanager
def messages_apart() -> Iterator[None]:
    """What Spark writes is thrown away, unless something goes wrong: then it is told where it is.

    For experiments, which start Spark themselves.
    """
    need_spark()
    log = SparkLog()
    try:
        with _stderr_to(log.path):
            yield
    except Exception as error:
        if isinstance(error, PenstockError):
            raise
        raise PenstockError(
            f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason'}; "
            f"Spark's messages are in {log.keep()}"
        ) from error
    finally:
        log.close()


@contextmanager
def _stderr_to(path: Path | None) -> Iterator[None]:
    """Give processes that are started now ``path`` as stderr."""
    if path is None:
        yield
        return
    sys.stderr.flush()
    before = os.dup(_STDERR)
    file = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.dup2(file, _STDERR)
    os.close(file)
    try:
        yield
    finally:
        os.dup2(before, _STDERR)
        os.close(before)


def _refused(error: Exception, log: SparkLog) -> Exception:
    """Why Spark did not start: in one line if the reason is known."""
    if isinstance(error, PenstockError):
        return error
    said = log.path.read_text(errors="replace")
    missing = sorted(set(_MISSING.findall(said)))
    if missing:
        names = ", ".join(name.replace("#", ":").replace(";", ":") for name in missing)
        return PenstockError(
            f"Spark cannot get {names}; "
            "is the version right, and can this machine reach a Maven repository?"
        )
    lines = [line for line in (said or str(error)).splitlines() if line.strip()]
    reasons = [line for line in lines if line.startswith(_JAVA_OPTION)]
    reasons += [line for line in lines if "Error" in line or "Exception" in line]
    reason = (reasons or lines or [type(error).__name__])[0].strip()
    return PenstockError(f"Spark does not start: {reason}; penstock doctor looks for the cause")
