"""The start of the JVM, with no setting on a command line.

PySpark hands every setting of a session to ``spark-submit`` as an argument, where everybody on the
machine can read it: passwords of stores and brokers among them. So the gateway to the JVM is
started before the session, with the settings in a file that only this user can read.
``spark-submit`` reads it after ``spark-defaults.conf``, what it says goes first, and it is gone
when the JVM answers. The session then sets them again, by way of the gateway.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path

from penstock.spark.private_spark import has_java, start_java

ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
_SHELL = "pyspark-shell"
_MARKED = {each: f"\\{each}" for each in "\\ =:#!"} | {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def launch_java(settings: Mapping[str, str]) -> None:
    """Start the JVM of this process with ``settings``, unless it has one."""
    if has_java():
        return
    given = os.environ.get(ARGUMENTS)
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:  # Of mode 0700.
        file = Path(folder) / "spark.properties"
        file.touch(mode=0o600)
        file.write_text(properties(settings), encoding="utf-8")
        extra = f"--extra-properties-file {shlex.quote(str(file))}"
        os.environ[ARGUMENTS] = f"{extra} {given or _SHELL}"
        try:
            start_java()
        finally:
            if given is None:
                del os.environ[ARGUMENTS]
            else:
                os.environ[ARGUMENTS] = given


def properties(settings: Mapping[str, str]) -> str:
    """``settings`` as a properties file of Java."""
    return "".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in settings.items())


def _escaped(text: str) -> str:
    return "".join(_MARKED.get(each, each) for each in text)
