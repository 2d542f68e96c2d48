"""The start of the JVM: settings arrive, and no command line has them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from penstock.spark.start.launch import properties

SECRET = "a secret=with #marks: and\\ ünïcode "
SCRIPT = """
import os, subprocess
import penstock.spark
spark = penstock.spark.session("local[1,1]", **{
    "spark.hadoop.some.secret.key": os.environ["TOLD"], "spark.driver.memory": "517m"})
assert spark.conf.get("spark.hadoop.some.secret.key") == os.environ["TOLD"]
assert "PYSPARK_SUBMIT_ARGS" not in os.environ
print(subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True).stdout)
spark.stop()
"""


def test_properties_are_escaped() -> None:
    assert properties({"a b": "c=d\\e\n"}) == "a\\ b=c\\=d\\\\e\\n\n"


@pytest.mark.skipif(not os.path.exists("/proc"), reason="ps shows other processes differently")
def test_no_setting_is_on_a_command_line() -> None:
    environment = {**os.environ, "TOLD": SECRET}
    environment.pop("PYSPARK_SUBMIT_ARGS", None)
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        env=environment,
        timeout=1_800,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "--extra-properties-file" in ran.stdout
    assert "-Xmx517m" in ran.stdout
    assert SECRET not in ran.stdout
