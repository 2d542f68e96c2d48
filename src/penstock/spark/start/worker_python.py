"""The Python that Spark starts on this machine: the running one, without Spark's own packages.

Spark puts a zip file with pyspark in front of everything that a Python process of its finds. It has
no compiled modules, so each process compiles pyspark before it does anything else: 1.2 CPU seconds
instead of 0.3. Beside the time, that is a danger, since Spark waits no longer than ten seconds for
a process to answer, and a busy machine may need as long for this. So Spark is given a script that
takes the zip file, and that of py4j beside it, from the path where both are installed, and goes on
as Python. With them goes Spark's jar of six thousand Java classes, which Spark puts there as well:
every process reads its table of contents, and every worker does so three times more.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import py4j  # type: ignore[import-untyped]
import pyspark

from penstock.spark.start.java import kept_script

_SCRIPT = """#!/bin/sh
# Spark's zipped copies of pyspark and py4j would be compiled by every process; both are installed.
# Its jar has no Python in it.
PYTHONPATH=$(printf '%s' "$PYTHONPATH" | sed -e 's#[^:]*/pyspark/python/lib/pyspark\\.zip:*##' \\
  -e 's#[^:]*/pyspark/python/lib/py4j-[^:]*-src\\.zip:*##' \\
  -e 's#[^:]*/pyspark/jars/spark-core_[^:]*\\.jar:*##')
export PYTHONPATH
exec {python} "$@"
"""


def worker_python() -> str:
    """What to put into ``PYSPARK_PYTHON`` for workers on this machine."""
    installed = all(Path(str(package.__file__)).is_file() for package in (pyspark, py4j))
    if os.name != "posix" or not installed:
        return sys.executable
    text = _SCRIPT.format(python=shlex.quote(sys.executable))
    return str(kept_script("python", text))
