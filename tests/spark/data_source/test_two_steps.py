"""Cells that parse keys and event times of all rows, and the rest of their own: answers and what is
told of the rows are those of reading everything at once."""

from __future__ import annotations

import json
import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from test_partitioned_cells import LATENESS, STREAMS, TopicDriver, Topics, of_topics, rows, topics
from test_stream_reader import SCHEMA, Driver

import penstock
from penstock.sources import json_lines
from penstock.sources.file_source import FileSource
from penstock.sources.kafka_source import KafkaSource
from penstock.spark.data_source import batch_rows
from penstock.testing import Oracle, difference

assert topics  # A fixture.
QUERY = """SELECT A.id AS a, B.id AS b FROM A [RANGE 3 SECONDS], B [RANGE 2 SECONDS]
           WHERE A.x = B.x AND A.id > 100000000"""
TOLD = ("read", "filtered", "results", "watermark", "newest", "dropped")


def texts_of(table: pa.Table, chance: random.Random) -> list[bytes]:
    found = [json.dumps(row | {"ts": row["ts"].isoformat()}) for row in table.to_pylist()]
    if chance.random() < 0.5:
        found.insert(chance.randint(0, len(found)), '{"x": 1, "ts": "no time", "id": 5}')
    if chance.random() < 0.5:
        found.insert(chance.randint(0, len(found)), '{"x": 1, "id')
    return [text.encode() for text in found]


def answered(driver: Driver) -> tuple[list[Any], list[Any]]:
    found = driver.run()
    reports = [json.loads(row[2]) for row in found if row[2] is not None]
    return [row[:2] for row in found if row[2] is None], [[r[n] for n in TOLD] for r in reports]


@pytest.mark.parametrize("seed", range(3))
def test_files(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance, cells = random.Random(seed), 2 + seed
    options = {"A.format": "json", "B.format": "json", "query": QUERY, "reports": "true"}
    drivers = [Driver(tmp_path, cells=str(cells), **options) for _ in range(2)]
    drivers[1].options["checkpointLocation"] = str(tmp_path / "other")
    drivers[1].start()
    schemas = dict.fromkeys("AB", SCHEMA)
    oracle = Oracle(penstock.parse(QUERY, schemas=schemas), LATENESS)
    steps: list[str] = []
    before = FileSource.read_chosen

    def noted(self: FileSource, *more: Any) -> pa.Table:
        steps.append(self.name)
        return before(self, *more)

    monkeypatch.setattr(FileSource, "read_chosen", noted)
    total = 0
    for number in range(8):
        push = {name: rows(chance, number / 2, 30) for name in "AB"}
        for name, table in push.items():
            file = tmp_path / name / f"{number}.json"
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(b"\n".join(texts_of(table, chance)))
            os.utime(file, (1_700_000_000 + number,) * 2)
        expected = oracle.push(push)
        total += len(expected)
        told = []
        for place, driver in enumerate(drivers):
            limits = (1_000, 1_000) if place else (2, 1)
            monkeypatch.setattr(batch_rows, "_LEAST_CELLS", limits[0])
            monkeypatch.setattr(batch_rows, "_LEAST_OTHERS", limits[1])
            if number % 3 == 2:
                driver.start()  # Windows are read again.
            assert driver.plan()
            answers, reports = answered(driver)
            assert difference(answers, expected) is None
            told.append(reports)
            assert bool(steps) is not bool(place)
            steps.clear()
        assert told[0] == told[1]
    assert total > 50


def test_topics(topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_rows, "_LEAST_CELLS", 2)
    monkeypatch.setattr(batch_rows, "_LEAST_OTHERS", 1)
    chance = random.Random(5)
    topics.partitions.update({name: [[], []] for name in STREAMS})
    given = of_topics(cells="3")
    for name in STREAMS:
        del given[f"{name}.partitionedBy"]
    driver = TopicDriver(tmp_path, given)
    oracle = Oracle(
        penstock.parse(given["query"], schemas=dict.fromkeys(STREAMS, SCHEMA)), LATENESS
    )
    total = 0
    parsed: list[tuple[int, int]] = []
    before = json_lines.bulk

    def noted(file: Any, size: int, wanted: pa.Schema, *more: Any, **others: Any) -> Any:
        table = before(file, size, wanted, *more, **others)
        parsed.append((len(wanted), 0 if table is None else len(table)))
        return table

    monkeypatch.setattr(json_lines, "bulk", noted)
    for number in range(6):
        push = {name: rows(chance, number / 2, 40) for name in STREAMS}
        for name, table in push.items():
            for row in table.to_pylist():
                text = json.dumps(row | {"ts": row["ts"].isoformat()}).encode()
                topics.partitions[name][chance.randrange(2)].append(text)
        assert driver.plan()
        parsed.clear()
        expected = oracle.push(push)
        assert difference(driver.run(), expected) is None
        total += len(expected)
        assert sum(count for columns, count in parsed if columns == 2) == 3 * 3 * 40
        assert sum(count for columns, count in parsed if columns == 3) <= 3 * 40
    assert total > 100


def test_where_it_does_not_pay_everything_is_read_at_once(topics: Topics, tmp_path: Path) -> None:
    wide = ", ".join(f"c{n} BIGINT" for n in range(11))
    selected = ", ".join(f"A.c{n}" for n in range(11))
    query = f"SELECT A.id, {selected}, B.id AS b, C.id AS c FROM A [RANGE 1 SECOND], "
    query += "B [RANGE 1 SECOND], C [RANGE 1 SECOND] WHERE A.x = B.x AND B.x = C.x"
    topics.partitions.update({name: [[], []] for name in STREAMS})
    given = of_topics(query=query, cells="4")
    given["A.schema"] += f", {wide}"
    for name in STREAMS:
        del given[f"{name}.partitionedBy"]
    lane = TopicDriver(tmp_path, given).reader._lane
    first = {name: batch_rows.BatchReader(lane, 0)._first(name) for name in STREAMS}
    assert first == {"A": ("x", "ts"), "B": None, "C": None}
    for other in (
        TopicDriver(tmp_path / "2", given | {"cells": "3"}).reader._lane,
        replace(lane, dropped="dropped"),
        replace(lane, aligned=frozenset("A")),
    ):
        assert batch_rows.BatchReader(other, 0)._first("A") is None
    source = lane.sources["A"]
    assert isinstance(source, KafkaSource)
    assert not replace(source, decode="avro").can_choose
