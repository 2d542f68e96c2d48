"""What the user has told Spark before there is a session."""

from __future__ import annotations

from pathlib import Path

from penstock.spark.start.given_settings import given_settings

DEFAULTS = """\
# a comment
spark.master                spark://host:7077
spark.sql.session.timeZone=Europe/Berlin
spark.driver.extraJavaOptions -Dx=y -Dz="a b"
  spark.ui.enabled : true
other.setting 1
"""


def test_the_file_of_defaults(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(DEFAULTS)
    expected = {
        "spark.master": "spark://host:7077",
        "spark.sql.session.timeZone": "Europe/Berlin",
        "spark.driver.extraJavaOptions": '-Dx=y -Dz="a b"',
        "spark.ui.enabled": "true",
    }
    assert given_settings({"SPARK_CONF_DIR": str(tmp_path)}) == expected
    home = tmp_path / "home"
    (home / "conf").mkdir(parents=True)
    assert given_settings({"SPARK_HOME": str(home)}) == {}
    (home / "conf" / "spark-defaults.conf").write_text(DEFAULTS)
    assert given_settings({"SPARK_HOME": str(home)}) == expected


def test_arguments_go_before_the_file_and_may_name_another(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(DEFAULTS)
    (tmp_path / "mine.conf").write_text("spark.ui.port 4711\n")
    told = "--master local[3] --conf spark.ui.enabled=false -c spark.x=a=b --name=mine"
    environment = {"SPARK_CONF_DIR": str(tmp_path), "PYSPARK_SUBMIT_ARGS": f"{told} pyspark-shell"}
    found = given_settings(environment)
    assert found["spark.master"] == "local[3]"
    assert found["spark.ui.enabled"] == "false"
    assert found["spark.sql.session.timeZone"] == "Europe/Berlin"
    assert found["spark.x"] == "a=b"
    assert found["spark.app.name"] == "mine"
    environment["PYSPARK_SUBMIT_ARGS"] = f"--properties-file {tmp_path / 'mine.conf'} pyspark-shell"
    assert given_settings(environment) == {"spark.ui.port": "4711"}
