"""Cells that read their own partitions alone, of topics and buckets, give the oracle's answer."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from test_stream_reader import COLUMNS, SCHEMA, Driver, put

import penstock
import penstock.spark
from penstock.errors import InputError, OptionError, PenstockWarning
from penstock.sources.file_source import FileSource
from penstock.sources.kafka_client import Assigned, Ends, KafkaClient, Records
from penstock.spark.data_source import engine_cache, source_options
from penstock.spark.data_source.amplification import read_by_cells
from penstock.spark.data_source.options import lane_of
from penstock.spark.data_source.sourced_cell import SourcedCell
from penstock.testing import Oracle, difference, rows_of
from penstock.values.partitioner import Partitioner

QUERY = """SELECT A.id AS a, B.id AS b, C.id AS c FROM A [RANGE 3 SECONDS], B [RANGE 2 SECONDS],
           C [RANGE 4 SECONDS] WHERE A.x = B.x AND B.x = C.x"""
STREAMS = "ABC"
LATENESS = 1_000


@dataclass(frozen=True)
class Topics(KafkaClient):
    """Topics in memory; it notes what is read of them."""

    partitions: dict[str, list[list[bytes]]] = field(default_factory=dict)
    read_of: list[tuple[str, int]] = field(default_factory=list)

    def ends(
        self, name: str, topics: Sequence[str], is_pattern: bool, assigned: Assigned | None = None
    ) -> Ends:
        return {(t, p): self.ends_of(t, p) for t in topics for p in range(len(self.partitions[t]))}

    def ends_of(self, topic: str, partition: int) -> tuple[int, int]:
        return 0, len(self.partitions[topic][partition])

    def retention(self, topics: Sequence[str]) -> int | None:
        return None

    def read(self, name: str, ranges: Sequence[Any]) -> Records:
        self.read_of.extend((each.topic, each.partition) for each in ranges)
        rows = [(r, n) for r in sorted(ranges) for n in range(r.start, r.end)]
        values = [self.partitions[r.topic][r.partition][n] for r, n in rows]
        return Records(
            [None] * len(rows),
            values,
            [r.topic for r, _ in rows],
            [r.partition for r, _ in rows],
            [n for _, n in rows],
            [0] * len(rows),
            [0] * len(rows),
        )


def of_topics(**more: str) -> dict[str, str]:
    options = {"query": QUERY}
    for name in STREAMS:
        options |= {f"{name}.format": "kafka", f"{name}.subscribe": name}
        options |= {f"{name}.kafka.bootstrap.servers": "none:1", f"{name}.decode": "json"}
        options |= {f"{name}.startingOffsets": "earliest", f"{name}.partitionedBy": "x"}
        options |= {f"{name}.schema": COLUMNS}
    return options | more


class TopicDriver(Driver):
    """A driver whose options are those of topics alone."""

    def __init__(self, folder: Path, options: dict[str, str]) -> None:
        self._given = options | {"watermark": f"{LATENESS} MILLISECONDS"}
        super().__init__(folder)

    def start(self) -> None:
        for name in [key for key in self.options if key[0] in STREAMS and key[1] == "."]:
            del self.options[name]
        self.options |= self._given
        super().start()


def rows(chance: random.Random, second: float, count: int) -> pa.Table:
    """Rows some of which are late."""
    times = [int(1e6 * (1_000_000 + second + chance.uniform(-2.6, 0))) for _ in range(count)]
    ids = [chance.randrange(10**9) for _ in range(count)]
    keys = [None if chance.random() < 0.05 else chance.randrange(12) for _ in range(count)]
    columns = zip((ids, times, keys), SCHEMA.types, strict=True)
    return pa.table([pa.array(c, t) for c, t in columns], schema=SCHEMA)


def send(topics: Topics, topic: str, table: pa.Table, by: Partitioner, chance: Any) -> None:
    numbers = by.numbers(table.column("x").combine_chunks()).tolist()
    for row, number in zip(table.to_pylist(), numbers, strict=True):
        text = json.dumps(row | {"ts": row["ts"].isoformat()}).encode()
        place = chance.randrange(by.count) if number < 0 else number
        topics.partitions[topic][place].append(text)


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> Topics:
    found = Topics({"bootstrap.servers": "none:1"})
    monkeypatch.setattr(source_options, "KafkaClient", lambda *_: found)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_topics_by_key(seed: int, topics: Topics, tmp_path: Path) -> None:
    """With restarts, batches done twice, batches gone back to, and other cells."""
    chance = random.Random(seed)
    by = Partitioner("murmur2", 5)
    topics.partitions.update({name: [[] for _ in range(by.count)] for name in STREAMS})
    driver = TopicDriver(tmp_path, of_topics(cells=str(2 + seed % 3)))
    assert driver.reader._lane.relayed
    oracle = Oracle(penstock.parse(QUERY, schemas=dict.fromkeys(STREAMS, SCHEMA)), LATENESS)
    expected: list[list[tuple[Any, ...]]] = [[]]
    for number in range(25):
        push = {}
        for name in STREAMS:
            if chance.random() < 0.8:
                push[name] = rows(chance, number / 2, chance.randrange(1, 9))
                send(topics, name, push[name], by, chance)
        if not push:
            continue
        assert driver.plan()
        expected.append(oracle.push(push))
        if chance.random() < 0.2:
            driver.run(commit=False)  # A first attempt whose results are lost.
        if chance.random() < 0.2:
            driver._given["cells"] = str(chance.randint(1, 4))
            driver.start()
        if chance.random() < 0.2:
            driver.start()
        assert difference(driver.run(), expected[-1]) is None
        if chance.random() < 0.15:
            back = chance.randint(max(1, len(driver.log) - 4), len(driver.log) - 1)
            del driver.log[back:]
            driver.start()
            while driver.plan():
                assert difference(driver.run(), expected[len(driver.log) - 1]) is None
            assert len(driver.log) == len(expected)
    assert sum(map(len, expected)) > 100
    assert sum(oracle.late.values()) > 5


def test_a_partition_is_read_by_one_cell(topics: Topics, tmp_path: Path) -> None:
    chance = random.Random(7)
    by = Partitioner("crc32", 6, "long")
    topics.partitions.update({name: [[] for _ in range(by.count)] for name in STREAMS})
    said = {f"{name}.partitioner": "crc32" for name in STREAMS}
    said |= {f"{name}.keyEncoding": "long" for name in STREAMS}
    driver = TopicDriver(tmp_path, of_topics(cells="3", **said))
    for number in range(6):
        for name in STREAMS:
            send(topics, name, rows(chance, number / 2, 40), by, chance)
        assert driver.plan()
        topics.read_of.clear()
        driver.run()
        assert len(topics.read_of) == len(set(topics.read_of)) == 18
    assert read_by_cells(driver.reader._lane) == [
        "each cell reads its own partitions of A, B, C, by x (crc32 of 6)",
        "together the cells read 1 times what there is of all streams",
    ]


def test_a_row_that_is_elsewhere_is_told(topics: Topics, tmp_path: Path) -> None:
    topics.partitions.update({name: [[], []] for name in STREAMS})
    driver = TopicDriver(tmp_path, of_topics(cells="2"))
    number = int(Partitioner("murmur2", 2).numbers(pa.array([17]))[0])
    row = {"id": 1, "ts": "2026-01-01T00:00:00Z", "x": 17}
    topics.partitions["B"][1 - number].append(json.dumps(row).encode())
    assert driver.plan()
    told = rf"^B: B: a row with x = 17 is in partition {1 - number}, and murmur2 of 2 puts it into"
    with pytest.raises(InputError, match=told):
        driver.run()
    for name in STREAMS:
        del driver._given[f"{name}.partitionedBy"]
    driver.start()
    assert driver.run() == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"query": QUERY.replace("A.x = B.x", "A.id = B.id")},
            r"partitions of A are read by all cells: cells are not cut by A\.x alone",
        ),
        (
            {"query": QUERY.replace("A.id AS a, B.id AS b, C.id AS c", "A.x, COUNT(*) AS n")
             + " GROUP BY A.x"},
            "event times of all partitions are read by all cells: what leaves waits",
        ),
        ({"idle": "5 SECONDS"}, "idle looks at the clock of all"),
        ({"A.keyEncoding": "long"}, "A are read by all cells: it is partitioned by murmur2 of 4"),
    ],
    ids=["other key", "group by", "idle", "other encoding"],
)  # fmt: skip
def test_where_it_would_not_be_exact_all_is_read(
    change: dict[str, str], reason: str, topics: Topics, tmp_path: Path
) -> None:
    topics.partitions.update({name: [[] for _ in range(4)] for name in STREAMS})
    options = of_topics(cells="3", watermark="1 SECOND", checkpointLocation=str(tmp_path))
    with pytest.warns(PenstockWarning, match=reason):
        lane = lane_of(options | change)
    assert not lane.relayed
    assert read_by_cells(lane)


def test_topics_that_differ_in_partitions(topics: Topics, tmp_path: Path) -> None:
    counts = {"A": 4, "B": 4, "C": 3}
    topics.partitions.update({name: [[] for _ in range(n)] for name, n in counts.items()})
    options = of_topics(cells="2", watermark="1 SECOND", checkpointLocation=str(tmp_path))
    with pytest.warns(PenstockWarning, match=r"C are .*: it is partitioned by murmur2 of 3, and A"):
        lane = lane_of(options)
    assert lane.aligned == {"A", "B"}
    assert read_by_cells(lane) == [
        "each cell reads its own partitions of A, B, by x (murmur2 of 4), and event times of all: "
        "C is not partitioned so",
        "partitions of C are of no use: it is partitioned by murmur2 of 3, and A, B by murmur2 of "
        "4",
        "each cell reads all of C: 2 times what there is",
        "together the cells read 1.33 times what there is of all streams",
    ]
    with pytest.raises(OptionError, match=r"A: A\.partitionedBy|as many partitions"):
        lane_of(options | {"A.subscribe": "A,C"})
    with pytest.raises(OptionError, match=r"A\.partitioner is one of murmur2, crc32, not 'md5'"):
        lane_of(options | {"A.partitioner": "md5"})


def test_auto_is_a_cell_for_each_core_where_each_reads_its_own(
    topics: Topics, tmp_path: Path
) -> None:
    topics.partitions.update({name: [[] for _ in range(8)] for name in STREAMS})
    given = {"cells": "auto", "cores": "4", "watermark": "1 SECOND"}
    options = of_topics(**given, checkpointLocation=str(tmp_path))
    lane = lane_of(options)
    assert (lane.placement.cells, lane.relayed) == (4, True)
    assert lane_of(options | {"hot": '{"A.x": [17]}'}).placement.cells == 1
    # The event times of all topics would be read by each cell.
    assert lane_of(options | {"idle": "5 SECONDS"}).placement.cells == 1
    del options["C.partitionedBy"]
    assert lane_of(options).placement.cells == 1  # Together they would read twice what there is.
    with pytest.raises(OptionError, match="cells is a number of 1 or more, or auto, not 'all'"):
        lane_of(options | {"cells": "all"})


def test_auto_with_folders_of_streams_that_are_large(tmp_path: Path) -> None:
    """What a small stream is read more often weighs little."""
    for name in STREAMS:
        folder = "x=1/" if name != "C" else ""
        table = rows(random.Random(1), 1, 5).drop_columns("x")
        put(tmp_path, name, f"{folder}0.parquet", table, 0)
    options = {f"{name}.path": str(tmp_path / name) for name in STREAMS}
    options |= {"query": QUERY, "watermark": "1 SECOND", "cells": "auto", "cores": "3"}
    options |= {f"{name}.schema": COLUMNS for name in STREAMS}
    assert lane_of(options).placement.cells == 1
    few = options | {"A.rate": "100", "B.rate": "100", "C.rate": "10"}
    lane = lane_of(few)
    assert lane.placement.cells == 3
    assert read_by_cells(lane)[-1] == (
        "together the cells read 1.1 times what there is of all streams"
    )


def test_cells_are_cut_by_what_sources_are_partitioned_by(topics: Topics, tmp_path: Path) -> None:
    """Where two classes would do alike, it is the one by which less is read."""
    topics.partitions.update({name: [[] for _ in range(8)] for name in STREAMS})
    text = """SELECT A.id AS a, B.id AS b, C.id AS c FROM A [RANGE 2 SECONDS], B [RANGE 2 SECONDS],
              C [RANGE 2 SECONDS] WHERE A.id = C.id AND A.x = B.x"""
    options = of_topics(query=text, cells="3", watermark="1 SECOND", checkpointLocation="/c")
    for first, second in (("x", "id"), ("id", "x")):
        names = "AB" if first == "x" else "AC"
        for name in STREAMS:
            options.pop(f"{name}.partitionedBy", None)
        options |= {f"{name}.partitionedBy": first for name in names}
        with pytest.warns(PenstockWarning, match="is not partitioned so"):
            lane = lane_of(options)
        assert lane.aligned == {*names}
        (cut,) = lane.placement.dimensions
        assert str(cut).split()[0] == f"A.{first}", second


@pytest.mark.parametrize("grouped", [False, True], ids=["join", "group by"])
def test_buckets_of_spark(grouped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is read by one cell; of the others' files statistics are enough."""
    text = "SELECT A.id AS a, B.id AS b FROM A [RANGE 3 SECONDS], B [RANGE 2 SECONDS] WHERE A.x=B.x"
    if grouped:
        text = text.replace("A.id AS a, B.id AS b", "A.x, COUNT(*) AS n") + " GROUP BY A.x"
    said = {f"{n}.{key}": v for n in "AB" for key, v in (("partitionedBy", "x"), ("buckets", "4"))}
    driver = Driver(tmp_path, query=text, cells="3", **said)
    assert driver.reader._lane.relayed is not grouped
    chance, by = random.Random(9), Partitioner("spark", 4)
    oracle = Oracle(penstock.parse(text, schemas=dict.fromkeys("AB", SCHEMA)), LATENESS)
    read: list[str] = []
    before = FileSource._read

    def noted(self: FileSource, file: Any, *others: Any) -> Any:
        read.append(f"{self.name}/{file.name}")
        return before(self, file, *others)

    monkeypatch.setattr(FileSource, "_read", noted)
    total = 0
    for number in range(10):
        push = {name: rows(chance, number / 2, 30) for name in "AB"}
        for name, table in push.items():
            buckets = by.numbers(table.column("x").combine_chunks())
            for bucket in set(buckets.tolist()):
                part = table.filter(pa.array(buckets == bucket))
                put(tmp_path, name, f"part-{number}_{bucket:05}.c000.parquet", part, number)
        if number % 4 == 3:
            driver.start()
        assert driver.plan()
        read.clear()
        expected = oracle.push(push)
        assert difference(driver.run(), expected) is None
        assert len(read) == len(set(read))
        total += len(expected)
    assert total > 100


@pytest.mark.parametrize("ended", [False, True], ids=["one cell fails", "all have ended"])
def test_a_file_of_buckets_that_was_left_out_later_and_comes_back(
    ended: bool, tmp_path: Path
) -> None:
    """What cells noted of the attempt that had it makes no note with what those without it did."""
    text = "SELECT A.id AS a, B.id AS b FROM A [RANGE 3 SECONDS], B [RANGE 2 SECONDS] WHERE A.x=B.x"
    said = {f"{n}.{key}": v for n in "AB" for key, v in (("partitionedBy", "x"), ("buckets", "4"))}
    driver = Driver(tmp_path, query=text, cells="3", **{"A.ignoreMissingFiles": "true"}, **said)
    lane = driver.reader._lane
    assert lane.relayed
    oracle = Oracle(penstock.parse(text, schemas=dict.fromkeys("AB", SCHEMA)), LATENESS)
    chance, by = random.Random(17), Partitioner("spark", 4)

    def deliver(number: int, second: float) -> dict[str, pa.Table]:
        push = {name: rows(chance, second, 60) for name in "AB"}
        for name, table in push.items():
            buckets = by.numbers(table.column("x").combine_chunks())
            for bucket in set(buckets.tolist()):
                part = table.filter(pa.array(buckets == bucket))
                put(tmp_path, name, f"part-{number}_{bucket:05}.c000.parquet", part, number)
        return push

    push = deliver(0, 1)
    gone = rows(chance, 3, 300)  # The newest of all, and of cell 1.
    gone = gone.filter(pa.array(by.numbers(gone.column("x").combine_chunks()) == 1))
    file = "part-gone_00001.c000.parquet"
    put(tmp_path, "A", file, gone, 1)
    assert driver.plan()
    partitions = driver.reader.partitions(*driver.log)
    for number in (0, 2, 1) if ended else (0, 2):
        list(driver.reader.read(partitions[number]))
    if ended:
        assert SourcedCell(lane, 0).note(partitions[0].end).skipped == {}
    (tmp_path / "A" / file).unlink()
    engine_cache.clear()
    if not ended:
        with pytest.raises(InputError, match="start again"):
            list(driver.reader.read(partitions[1]))
    partitions = driver.reader.partitions(*driver.log)
    found: list[tuple[Any, ...]] = []
    for number in (1, 0, 2):
        for batch in driver.reader.read(partitions[number]):
            found += rows_of(pa.table(batch))
    assert difference(found, oracle.push(push)) is None
    put(tmp_path, "A", file, gone, 1)
    for number in (1, 2):
        push = deliver(number, 1 + number / 2)
        driver.start()
        assert driver.plan()
        expected = oracle.push(push)
        assert difference(driver.run(), expected) is None
        assert len(expected) > 100


def test_a_grid_in_which_one_source_is_partitioned(topics: Topics, tmp_path: Path) -> None:
    """A row of a partition goes to several cells; the others are read by all."""
    text = """SELECT A.id AS a, B.id AS b, C.id AS c FROM A [RANGE 2 SECONDS], B [RANGE 2 SECONDS],
              C [RANGE 2 SECONDS] WHERE A.x = B.x AND A.id = C.id"""
    by = Partitioner("murmur2", 3)
    topics.partitions.update({name: [[] for _ in range(by.count)] for name in STREAMS})
    options = of_topics(query=text, cells="4")
    del options["A.partitionedBy"], options["C.partitionedBy"]
    with pytest.warns(PenstockWarning, match="A, C is not partitioned so"):
        driver = TopicDriver(tmp_path, options)
    assert driver.reader._lane.aligned == {"B"}
    assert len(driver.reader._lane.placement.dimensions) == 2
    oracle = Oracle(penstock.parse(text, schemas=dict.fromkeys(STREAMS, SCHEMA)), LATENESS)
    chance, total = random.Random(11), 0
    for number in range(8):
        push = {name: rows(chance, number / 2, 20) for name in STREAMS}
        for name in "AC":
            ids = pa.array([chance.randrange(9) for _ in range(20)], pa.int64())
            push[name] = push[name].set_column(0, "id", ids)
        for name, table in push.items():
            send(topics, name, table, by, chance)
        assert driver.plan()
        expected = oracle.push(push)
        assert difference(driver.run(), expected) is None
        total += len(expected)
    assert total > 100


@pytest.mark.xdist_group("spark")
def test_buckets_are_those_of_spark(spark: SparkSession) -> None:
    values: dict[str, list[Any]] = {
        "BIGINT": [0, 1, -1, 2**40 + 17, -(2**50)],
        "INT": [0, 1, -1, 2**31 - 1],
        "STRING": ["", "a", "abc", "abcd", "abcdé", "a longer text with ÄÖÜ"],
    }
    kinds = {"BIGINT": pa.int64(), "INT": pa.int32(), "STRING": pa.string()}
    for name, each in values.items():
        frame = spark.createDataFrame([(v,) for v in [*each, None]], f"v {name}")
        wanted = [row[0] for row in frame.selectExpr("pmod(hash(v), 13)").collect()]
        assert Partitioner("spark", 13).numbers(pa.array([*each, None], kinds[name])).tolist() == (
            wanted
        )


@pytest.mark.xdist_group("spark")
def test_files_that_spark_has_bucketed(spark: SparkSession, tmp_path: Path) -> None:
    """Written by Spark, read by three cells of the data source: the answer of Spark's own join."""
    penstock.spark.register(spark)
    reader = (
        spark.read.format("penstock")
        .option("cells", "auto")
        .option("cores", "3")
        .option(
            "query",
            "SELECT A.id AS a, B.id AS b FROM A [RANGE 1 HOUR], B [RANGE 1 HOUR] WHERE A.x = B.x",
        )
    )
    for name, count in (("A", 40), ("B", 30)):
        folder, table = str(tmp_path / name), f"bucketed_{name.lower()}"
        rows = spark.range(count).selectExpr(
            "id", "timestamp_seconds(1700000000 + id) AS ts", f"id * {len(table)} % 7 AS x"
        )
        rows.write.bucketBy(4, "x").option("path", folder).saveAsTable(table)
        given = {"path": folder, "partitionedBy": "x", "buckets": "4", "schema": COLUMNS}
        reader = reader.options(**{f"{name}.{key}": value for key, value in given.items()})
    try:
        joined = "SELECT a.id, b.id FROM bucketed_a a JOIN bucketed_b b ON a.x = b.x"
        expected = sorted(map(tuple, spark.sql(joined).collect()))
        assert len(expected) > 100
        answer = reader.load()
        assert sorted(map(tuple, answer.collect())) == expected
        assert answer.rdd.getNumPartitions() == 3
    finally:
        spark.sql("DROP TABLE bucketed_a")
        spark.sql("DROP TABLE bucketed_b")
