"""What Penstock takes of pyspark without a promise is there, in the versions that are named."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.accumulators import _accumulatorRegistry, _deserialize_accumulator
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.profiler import ProfileResultsParam

import penstock.spark
from penstock.spark import private_spark

SOURCE = Path(str(penstock.spark.__file__)).parent
PRIVATE = re.compile(r"^_(jvm|jsc|jconf|jdf|jsparkSession|gateway|sc|active_spark_context)$")

UNDOCUMENTED = {
    "pyspark.daemon",
    "pyspark.worker",
    "pyspark.java_gateway",
    "pyspark.sql.streaming.proto.StateMessage_pb2",
}
KEYS = {"streaming.sql.batchId", "sql.streaming.queryId", "spark.watermarkDelayMs"}


def test_the_installed_version_is_one_of_those_it_was_seen_in() -> None:
    assert pyspark.__version__.startswith(tuple(f"{each}." for each in private_spark.SEEN_IN))


def test_nobody_else_reaches_behind_pyspark() -> None:
    """No module but one names Java's gateway, a private module or an unwritten key of pyspark."""
    for file in sorted(SOURCE.rglob("*.py")):
        if file.name == "private_spark.py":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute):
                assert not PRIVATE.match(node.attr), f"{file.name}:{node.lineno} {node.attr}"
            where = f"{file.name}:{node.lineno}" if hasattr(node, "lineno") else file.name
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pyspark"):
                hidden = [each.name for each in node.names if each.name.startswith("_")]
                assert not hidden, f"{where} {hidden}"
                assert node.module not in UNDOCUMENTED, f"{where} {node.module}"
            if isinstance(node, ast.Import):
                assert not UNDOCUMENTED & {each.name for each in node.names}, where
            if isinstance(node, ast.Constant):
                assert node.value not in KEYS, f"{where} {node.value}"


def test_what_is_named_without_being_loaded_is_there() -> None:
    """Programs that ``penstock.spark`` tells by their names, and what workers load."""
    for module in (*UNDOCUMENTED, "pyspark.sql.streaming.transform_with_state_driver_worker"):
        assert importlib.util.find_spec(module) is not None, module
    private_spark.load_worker()
    assert any(private_spark.jars_folder().glob("spark-core_*.jar"))
    assert private_spark.batch_number() is None


@pytest.mark.xdist_group("spark")
def test_a_classic_session_has_it_all(spark: SparkSession) -> None:
    assert private_spark.is_running()
    assert private_spark.has_java()
    assert private_spark.java_is_ours()
    assert (Path(private_spark.spark_home()) / "bin" / "spark-submit").is_file()
    java = private_spark.java_of(spark)
    java.System.setProperty("spark.penstock.given", "1")  # As spark-submit gives its settings.
    assert private_spark.settings_of_java()["spark.penstock.given"] == "1"
    java.System.clearProperty("spark.penstock.given")
    assert java.System.getProperty("java.version")
    assert private_spark.hadoop_settings(spark).get("fs.nobody.impl") is None
    array = private_spark.java_array(spark, java.String, "a", "b")
    assert list(array) == ["a", "b"]


@pytest.mark.xdist_group("spark")
def test_delay_of_a_watermark(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    assert private_spark.watermark_delay(stream, "timestamp") is None
    late = stream.withWatermark("timestamp", "90 seconds").withColumn("x", sf.lit(1))
    assert private_spark.watermark_delay(late, "timestamp") == 90_000


def test_a_planning_process_sends_no_empty_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = _accumulatorRegistry
    monkeypatch.setattr(sys, "gettrace", lambda: None)  # Coverage is not a profile of Spark's.
    for number in private_spark._PROFILES:
        _deserialize_accumulator(number, {}, ProfileResultsParam)
    filled = _deserialize_accumulator(-3, {}, ProfileResultsParam)
    try:
        monkeypatch.setattr(sys, "getprofile", lambda: print)
        private_spark.send_no_empty_profiles()
        assert set(private_spark._PROFILES) <= set(registry), "one is being made"
        monkeypatch.setattr(sys, "getprofile", lambda: None)
        registry[-1] += {1: "a profile"}
        private_spark.send_no_empty_profiles()
        assert set(registry) & {-1, -2, -3} == {-1, -3}
        assert registry[-3] is filled
    finally:
        for number in (-1, -2, -3):
            registry.pop(number, None)
