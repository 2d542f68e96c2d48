"""The Python that Spark starts on this machine: the running one, without Spark's own packages.

Spark puts a zip file with pyspark in front of everything that a Python process of its finds. It has
no compiled modules, so each process compiles pyspark before it does anything else: 1.2 CPU seconds
instead of 0.3. Beside the time, that is a danger, since Spark waits no longer than ten seconds for
a process to answer, and a busy machine may need as long for this. So Spark is given a script that
takes the zip file from the path where the same pyspark is installed, and goes on as Python. With it
goes Spark's jar of six thousand Java classes, which Spark puts there as well: every process reads
its table of contents, and every worker does so three times more.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pyspark

from penstock.spark.java import kept_script

_SCRIPT = """#!/bin/sh
# Spark's zipped copy of pyspark would be compiled by every process; it is installed as well.
# Its jar has no Python in it.
PYTHONPATH=$(printf '%s' "$PYTHONPATH" | sed -e 's#[^:]*/pyspark/python/lib/pyspark\\.zip:*##' \\
  -e 's#[^:]*/pyspark/jars/spark-core_[^:]*\\.jar:*##')
export PYTHONPATH
exec {python} "$@"
"""


def worker_python() -> str:
    """What to put into ``PYSPARK_PYTHON`` for workers on this machine."""
    installed = (Path(pyspark.__file__).parent / "daemon.py").is_file()
    if os.name != "posix" or not installed:
        return sys.executable
    text = _SCRIPT.format(python=shlex.quote(sys.executable))
    return str(kept_script("python", text))
