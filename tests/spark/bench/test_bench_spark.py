"""``penstock bench spark``: its options, its table, and that both sides answer one question."""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient
from kafka_broker import CONNECTOR, NoKafka, broker
from maven_jars import NoJars, jars
from pyspark.sql import SparkSession

import penstock
from penstock.cli import bench_spark
from penstock.cli.bench.workloads import WORKLOADS
from penstock.cli.main import main
from penstock.spark.bench import bench_run
from penstock.spark.bench.bench_topics import _texts, made_topics

pytestmark = pytest.mark.xdist_group("spark")


def measured(results: int, cpu: float) -> dict[str, Any]:
    return {
        "cpu_seconds": 3 * cpu if cpu > 10 else 2 * cpu,
        "query_cpu_seconds": cpu,
        "peak_bytes": int(cpu * 1e6),
        "wall_seconds": 2 * cpu,
        "query_wall_seconds": cpu,
        "results": results,
        "batch_cpu_ms": 10 * cpu,
        "batch_ms": cpu,
    }


def test_ratios_are_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    runs = {
        "penstock 1 cell": measured(7, 20.0),
        "penstock 2 cells": measured(7, 15.0),
        "source 1 cell": measured(7, 10.0),
        "source 2 cells": measured(7, 12.0),
        "spark hdfs 2g": measured(7, 160.0),
        "spark rocksdb 2g": measured(7, 300.0),
        "spark hdfs 6g": measured(7, 120.0),
        "spark rocksdb 6g": measured(7, 310.0),
        "small penstock": measured(0, 15.0),
        "small empty": measured(0, 10.0),
    }
    monkeypatch.setattr(bench_spark, "_measure", lambda settings, folder: runs)
    monkeypatch.setenv("COLUMNS", "240")
    target = str(tmp_path / "m.json")
    assert main(["bench", "spark", "--heap", "2g,6g", "--json", target]) == 0
    told = capsys.readouterr().out
    _, small, large = told.split("With a heap of ")
    assert small.startswith("2g")
    assert "Penstock, data source, 1 cell needs" in small
    assert re.search(r"Penstock, DataFrames, 2 cells +15.0 +1.5", told)
    assert "16.0 times fewer CPU seconds for the query alone" in small
    assert large.startswith("6g")
    assert "12.0 times fewer CPU seconds for the query alone" in large
    assert "18.0 times fewer with" in large
    assert "12.0 times less memory" in large
    assert re.search(r"Spark, default store, 2g +160.0 +16.0", told)
    assert max(map(len, told.splitlines()[:6])) <= 80
    assert "1.50 times as much" in told
    assert '"spark rocksdb 6g"' in (tmp_path / "m.json").read_text()


def test_a_wrong_answer_is_noticed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = {"penstock 1 cell": measured(7, 10.0), "spark hdfs 1g": measured(8, 120.0)}
    monkeypatch.setattr(bench_spark, "_measure", lambda settings, folder: runs)
    assert main(["bench", "spark"]) == 1
    assert "results differ: [7, 8]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "flink"], "nothing is called 'flink'; choose from: penstock, source, spark"),
        (["--rows", "0"], "rows, batches and cores are 1 or more, not 0"),
        (["--cells", "1,none"], "cells are numbers such as 1 or 1,2, not 'none'"),
        (["--rehearsal", "-1"], "rehearsal is 0 or more, not -1"),
        (["--heap", "plenty"], "heap is a size such as 512m or 6g, not 'plenty'"),
        (["--heap", "2g,much"], "heap is a size such as 512m or 6g, not 'much'"),
        (["--json", "/no/such/folder/m.json"], "cannot write /no/such/folder/m.json"),
    ],
)
def test_mistakes(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "spark", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_it_goes_on_without_the_archive_of_javas_classes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> None:
        raise penstock.PenstockError("Java wrote none")

    monkeypatch.setattr("penstock.spark.start.class_archive.make_archive", refuse)
    orders: list[dict[str, Any]] = []

    def watched(order: dict[str, Any]) -> dict[str, Any]:
        orders.append(order)
        return measured(7, 10.0)

    monkeypatch.setattr(bench_spark, "watched", watched)
    assert main(["bench", "spark", "--quick", "--cores", "3", "--heap", "2g"]) == 0
    assert "going on without it: Java wrote none" in capsys.readouterr().err
    assert [order["rehearsal"] is None for order in orders] == [False] * 7 + [True] * 3
    before = len(orders)
    assert main(["bench", "spark", "--quick", "--rehearsal", "0"]) == 0
    assert all(order["rehearsal"] is None for order in orders[before:])
    del orders[before:]
    assert [(order["kind"], order["partitions"]) for order in orders] == [
        ("penstock", 1),
        ("penstock", 3),
        ("source", 1),
        ("source", 3),
        ("spark", 3),
        ("spark", 3),
        ("spark", 3),
        ("penstock", 3),
        ("source", 3),
        ("empty", 3),
    ]


def test_sparks_own_joins_give_the_same_results(spark: SparkSession, tmp_path: Path) -> None:
    workload = replace(WORKLOADS["W1"], rows=900, window=200, domains={"x": 20, "y": 50})
    tables = workload.tables()
    schemas = {name: table.schema for name, table in tables.items()}
    expected = penstock.Engine(penstock.parse(workload.query, schemas=schemas)).push(tables)
    columns = bench_run.write_streams(tables, tmp_path / "data", 2)
    frames = bench_run._sources(spark, {"columns": columns}, tmp_path / "data")
    answer = bench_run._chained(frames, workload.pairs, workload.window)
    query = (
        answer.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "results"), format="parquet")
    )
    query.awaitTermination()
    found = spark.read.parquet(str(tmp_path / "results")).collect()
    assert len(expected) > 100
    rows = zip(*(expected.column(name).to_pylist() for name in "abc"), strict=True)
    assert sorted(map(tuple, found)) == sorted(rows)


@pytest.mark.skipif("PENSTOCK_LONG" not in os.environ, reason="long: set PENSTOCK_LONG=1")
def test_from_topics_to_a_topic(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """With a real broker, as many results from either side; no topic is left."""
    try:
        connector = ",".join(map(str, jars(CONNECTOR)))
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--jars {connector} pyspark-shell")
        with broker(tmp_path) as address:
            more = ["--rows", "2000", "--batches", "2", "--rehearsal", "1", "--cells", "1"]
            only = ["--only", "source,spark hdfs", "--broker", address]
            assert main(["bench", "spark", *more, *only]) == 0
            admin = AdminClient({"bootstrap.servers": address})
            until = time.monotonic() + 60
            while any("penstock" in name for name in admin.list_topics(timeout=30).topics):
                assert time.monotonic() < until, "topics were left"
                time.sleep(0.2)
    except (NoJars, NoKafka) as reason:
        pytest.skip(str(reason))
    told = capsys.readouterr().out
    assert "Kafka to Kafka" in told
    assert re.search(r"Penstock, data source, 1 cell +\d", told)
    assert re.search(r"Spark, default store, \S+ +\d", told)


def test_a_broker_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    with (
        pytest.raises(penstock.PenstockError, match="makes no topics"),
        made_topics("127.0.0.1:1", ["none"], seconds=0.5),
    ):
        pass


def test_rows_as_json() -> None:
    times = pa.array([1_700_000_000_123_000], pa.timestamp("us", "UTC"))
    (text,) = _texts(pa.table({"id": [7], "ts": times, "x": [-3]}))
    assert json.loads(text) == {"id": 7, "ts": "2023-11-14T22:13:20.123000Z", "x": -3}
