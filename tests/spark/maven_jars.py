"""Jars of Maven for tests, fetched once by Ivy, which comes with PySpark.

Without their dependencies: whoever asks names all that is needed. They stay in the user's cache
folder. Where they cannot be had, the reason is a :class:`NoJars`.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyspark

from penstock.spark.start.java import find_java

_FETCH_SECONDS = 240


class NoJars(Exception):  # noqa: N818 - the name states the finding
    """Why there are no such jars."""


def jars(names: Sequence[str]) -> list[Path]:
    """The jars with these Maven names."""
    cache = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(cache) if cache else Path.home() / ".cache") / "penstock" / "test-jars"
    wanted = {name: folder / "{1}-{2}.jar".format(*name.split(":")) for name in names}
    missing = [name for name, file in wanted.items() if not file.exists()]
    if missing:
        _fetch(missing, folder)
    return list(wanted.values())


def _fetch(names: Sequence[str], folder: Path) -> None:
    dependency = '<dependency org="{}" name="{}" rev="{}" conf="default->master"/>'
    listed = "".join(dependency.format(*name.split(":")) for name in names)
    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        module = Path(name) / "ivy.xml"
        module.write_text(
            '<ivy-module version="2.0"><info organisation="penstock" module="tests"/>'
            '<configurations><conf name="default"/></configurations>'
            f"<dependencies>{listed}</dependencies></ivy-module>"
        )
        pattern = f"{name}/jars/[artifact]-[revision].[ext]"
        command = [java(), "-cp", str(ivy), "org.apache.ivy.Main", "-ivy", str(module)]
        command += ["-cache", f"{name}/cache", "-retrieve", pattern]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_FETCH_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise NoJars("no answer from a Maven repository") from None
        fetched = list((Path(name) / "jars").glob("*.jar"))
        if done.returncode or len(fetched) < len(names):
            found = [line for line in done.stdout.splitlines() if "not found" in line]
            raise NoJars(f"Maven artifacts cannot be had: {(found or ['no network'])[0].strip()}")
        for file in fetched:
            os.replace(file, folder / file.name)


def java() -> str:
    """The program that runs Java."""
    return str(find_java().home / "bin" / "java")
