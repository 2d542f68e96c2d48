"""What the user has told Spark outside of the program, before there is a session.

Spark's own order is: the program, the arguments of ``spark-submit``, the file
``spark-defaults.conf``. What a program sets therefore wins over what its user has set elsewhere. A
library is not the program: it may set only what is unset, so it has to know what is set.

Under ``spark-submit`` and in Spark's shells a Java virtual machine is there already and knows. (One
that Penstock has started knows Penstock's settings, too, so it is not asked.) Where Python comes
first, Spark would start one from the same two places, so both are read here:
``PYSPARK_SUBMIT_ARGS``, and the file in ``SPARK_CONF_DIR`` or in the folder ``conf`` of Spark.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from penstock.spark import private_spark

_NAMES = {
    "--master": "spark.master",
    "--remote": "spark.remote",
    "--name": "spark.app.name",
    "--driver-memory": "spark.driver.memory",
    "--driver-java-options": "spark.driver.extraJavaOptions",
    "--packages": "spark.jars.packages",
    "--jars": "spark.jars",
}
"""Arguments of ``spark-submit`` with a name of their own that stand for a setting."""
_LINE = re.compile(r"\s*([^\s=:#!]+)\s*[\s=:]\s*(.*?)\s*$")


def given_settings(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Spark's settings that are given to whatever starts in ``environment``."""
    if environment is None and private_spark.has_java() and not private_spark.java_is_ours():
        return private_spark.settings_of_java()
    environment = os.environ if environment is None else environment
    told, file = _told(environment)
    if file is None:
        folder = environment.get("SPARK_CONF_DIR")
        home = environment.get("SPARK_HOME") or private_spark.spark_home()
        file = Path(folder or Path(home) / "conf") / "spark-defaults.conf"
    return _read(file) | told


def told_by_arguments(environment: Mapping[str, str]) -> dict[str, str]:
    """Those that are arguments, which count more than what a program sets."""
    return _told(environment)[0]


def _told(environment: Mapping[str, str]) -> tuple[dict[str, str], Path | None]:
    """The settings among arguments, and the file that they name instead of the usual one."""
    told: dict[str, str] = {}
    file = None
    words = iter(shlex.split(environment.get("PYSPARK_SUBMIT_ARGS", "")))
    for word in words:
        name, has_value, value = word.partition("=")
        if name in (*_NAMES, "--conf", "-c", "--properties-file"):
            value = value if has_value else next(words, "")
            if name == "--properties-file":
                file = Path(value)
            elif name in _NAMES:
                told[_NAMES[name]] = value
            else:
                key, _, value = value.partition("=")
                told[key] = value
    return told, file


def _read(file: Path) -> dict[str, str]:
    """The settings in ``file``: a name, a blank or an equals sign, and a value in each line."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return {}
    found = [_LINE.match(line) for line in lines if not line.lstrip().startswith(("#", "!"))]
    return {each[1]: each[2] for each in found if each and each[1].startswith("spark.")}
