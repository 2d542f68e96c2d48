"""The Python that Spark starts on this machine: the running one, without Spark's own packages.

Spark puts a zip file with pyspark in front of everything that a Python process of its finds. It has
no compiled modules, so each process compiles pyspark before it does anything else: 1.2 CPU seconds
instead of 0.3. Beside the time, that is a danger, since Spark waits no longer than ten seconds for
a process to answer, and a busy machine may need as long for this. So Spark is given a script that
takes the zip file, and that of py4j beside it, from the path where both are installed, and goes on
as Python. With them goes Spark's jar of six thousand Java classes, which Spark puts there as well:
every process reads its table of contents, and every worker does so three times more.

Where a process waits that has everything loaded (:mod:`penstock.spark.processes.python_parent`),
the script has it fork instead of starting another Python.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import py4j  # type: ignore[import-untyped]
import pyspark

from penstock.spark.start.java import kept_script

VARIABLE = "PENSTOCK_PYTHON_PARENT"
"""The variable with the address of the parent, a socket in a folder of this user alone."""
_parents: list[subprocess.Popen[bytes]] = []
"""The parent that this process has started, if it has; it lives by the pipe to it."""
_SCRIPT = """#!/bin/sh
# Spark's zipped copies of pyspark and py4j would be compiled by every process; both are installed.
# Its jar has no Python in it.
PYTHONPATH=$(printf '%s' "$PYTHONPATH" | sed -e 's#[^:]*/pyspark/python/lib/pyspark\\.zip:*##' \\
  -e 's#[^:]*/pyspark/python/lib/py4j-[^:]*-src\\.zip:*##' \\
  -e 's#[^:]*/pyspark/jars/spark-core_[^:]*\\.jar:*##')
export PYTHONPATH
[ -S "$PENSTOCK_PYTHON_PARENT" ] && exec {python} -I -S {forked} {python} "$@"
exec {python} "$@"
"""


def pythons() -> dict[str, str]:
    """The variables with which Spark starts this Python, in tasks and beside the driver."""
    return {"PYSPARK_PYTHON": worker_python(), "PYSPARK_DRIVER_PYTHON": worker_python()}


def worker_python() -> str:
    """What to put into ``PYSPARK_PYTHON`` for workers on this machine."""
    installed = all(Path(str(package.__file__)).is_file() for package in (pyspark, py4j))
    if os.name != "posix" or not installed:
        return sys.executable
    forked = shlex.quote(str(Path(__file__).parent / "forked_python.py"))
    text = _SCRIPT.format(python=shlex.quote(sys.executable), forked=forked)
    return str(kept_script("python", text))


def start_parent() -> dict[str, str]:
    """Start the parent of this process' Spark, if there is none yet; the variable that says where
    it is, or nothing where it cannot be."""
    if sys.platform != "linux":  # Elsewhere libraries of the system are not made for forks.
        return {}
    if _parents or os.environ.get("PYSPARK_PYTHON") != worker_python():
        return {}
    os.environ.pop(VARIABLE, None)  # Of the process that started this one.
    try:
        folder = tempfile.mkdtemp(prefix="penstock-python-")
    except OSError:
        return {}
    address = os.path.join(folder, "parent")
    environment = {
        **os.environ,
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"),  # As Spark has it.
        "PYTHONUNBUFFERED": "YES",
    }
    command = [sys.executable, "-m", "penstock.spark.processes.python_parent"]
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(address)  # There is not room for every path.
            listening.listen(64)
            process = subprocess.Popen(
                [*command, address, str(listening.fileno())],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=(listening.fileno(),),
                start_new_session=True,
            )
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        return {}
    _parents.append(process)
    return {VARIABLE: address}
