"""The Kafka example against a real broker, if Java packages can be had."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from kafka_broker import CONNECTOR, MODULE, PASSWORD, USER, NoKafka, RealBroker, broker
from maven_jars import NoJars, jars

import penstock.spark.jobs.job_session as job_session
from penstock import parse
from penstock.errors import InputError
from penstock.job import read_job
from penstock.job.job import LANES
from penstock.spark.data_source.batch_reader import BatchAnswer
from penstock.spark.data_source.options import lane_of
from penstock.spark.data_source.stream_reader import StreamReader
from penstock.spark.rows.arrow_types import answer_schema
from penstock.testing import Oracle, difference, rows_of

pytestmark = pytest.mark.xdist_group("spark")

EXAMPLE = Path(__file__).parents[3] / "examples" / "kafka" / "job.toml"


def event(minute: int, **columns: object) -> dict[str, object]:
    return {**columns, "ts": f"2026-01-01T12:{minute:02}:00Z"}


REJECTED = """
[rejected]
format = "kafka"
encode = "json"
options = { "kafka.bootstrap.servers" = "${KAFKA}", topic = "rejected" }
"""
MESSAGES: list[dict[str, list[dict[str, object] | str]]] = [
    {
        "orders": [event(0, id=1, item="atlas"), event(1, id=2, item="globe"), "{no order"],
        "payments": [event(2, order=1, city="Graz")],
        "parcels": [event(3, order=9, city="Oslo")],
    },
    {
        "orders": [event(4, id=3, item="clock")],
        "payments": [event(5, order=2, city="Riga"), event(5, order=3, city="Lyon")],
        "parcels": [event(6, order=1, city="Oslo"), event(7, order=2, city="Kyoto")],
    },
]


@pytest.mark.parametrize("lane", LANES)
def test_from_kafka_to_kafka(lane: str, tmp_path: Path) -> None:
    """Orders of the first run meet payments and parcels of the second; what is no JSON goes to a
    topic of its own."""
    program = Path(__file__).parents[1] / "kafka_round_trip.py"
    job = tmp_path / "job.toml"
    job.write_text(f'lane = "{lane}"\n{EXAMPLE.read_text()}{REJECTED}')
    try:
        connector = jars(CONNECTOR)
        with broker(tmp_path) as address:
            done = subprocess.run(
                [sys.executable, str(program), str(job), json.dumps(MESSAGES)],
                capture_output=True,
                text=True,
                timeout=1_800,
                check=False,
                env={
                    **os.environ,
                    "KAFKA": address,
                    "CHECKPOINT": str(tmp_path / "checkpoint"),
                    "TRIGGER": "available-now",
                    "PENSTOCK_MASTER": "local[2,4]",
                    job_session.ARGUMENTS: f"--jars {','.join(map(str, connector))} pyspark-shell",
                },
            )
    except (NoJars, NoKafka) as reason:
        pytest.skip(str(reason))
    assert done.returncode == 0, done.stderr[-3_000:]
    warned, found, rejected = json.loads(done.stdout.splitlines()[-1])
    assert not [text for text in warned if "how long it keeps rows" in text]  # The broker does.
    ((_, broken),) = rejected
    assert (broken["source"], broken["reason"]) == ("orders", "unreadable")
    assert broken["value"] == "{no order"
    assert sorted(found) == [
        ["1", {"id": 1, "item": "atlas", "paid_in": "Graz", "sent_from": "Oslo"}],
        ["2", {"id": 2, "item": "globe", "paid_in": "Riga", "sent_from": "Kyoto"}],
    ]


@pytest.mark.skipif("PENSTOCK_LONG" not in os.environ, reason="long: set PENSTOCK_LONG=1")
def test_a_broker_that_is_away_for_a_minute(tmp_path: Path) -> None:
    """It is killed between two batches and in the middle of one, and has its data when it is back;
    the plan and the task wait for it."""
    kafka = pytest.importorskip("confluent_kafka")
    rows = [{"id": n, "ts": f"2026-01-01T12:00:{n % 60:02}Z", "x": n % 7} for n in range(300)]
    query = "SELECT A.id AS a, B.id AS b FROM A [RANGE 9 SECONDS], B [RANGE 9 SECONDS]"
    options = {"query": f"{query} WHERE A.x = B.x", "checkpointLocation": str(tmp_path / "c")}
    try:
        running = RealBroker(tmp_path)
    except (NoJars, NoKafka) as reason:
        pytest.skip(str(reason))
    try:
        for name in "AB":
            options |= {f"{name}.format": "kafka", f"{name}.subscribe": name}
            options |= {f"{name}.kafka.bootstrap.servers": running.address}
            options |= {f"{name}.startingOffsets": "earliest", f"{name}.decode": "json"}
            options |= {f"{name}.schema": "id BIGINT, ts TIMESTAMP, x BIGINT"}
            options |= {f"{name}.watermark": "1 MINUTE", f"{name}.maxOffsetsPerTrigger": "150"}
            producer = kafka.Producer({"bootstrap.servers": running.address, "log_level": 0})
            for row in rows:
                producer.produce(name, value=json.dumps(row).encode())
            assert producer.flush(60) == 0
            del producer
        lane = lane_of(options)
        reader = StreamReader(lane, answer_schema(lane.query.schema)[0])
        offset, limit = reader.initialOffset(), reader.getDefaultReadLimit()
        found: list[Any] = []
        for place in ("planning", "reading"):
            with away(running) if place == "planning" else nullcontext():
                end = reader.latestOffset(offset, limit)
            (partition,) = reader.partitions(offset, end)
            with away(running) if place == "reading" else nullcontext():
                for batch in reader.read(partition):
                    found += rows_of(pa.table(batch))
            offset = end
        assert reader.latestOffset(offset, limit) == offset
    finally:
        running.kill()
    schema = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("x", pa.int64())])
    times = [datetime.fromisoformat(str(row["ts"])) for row in rows]
    columns = [[row["id"] for row in rows], times, [row["x"] for row in rows]]
    table = pa.table([pa.array(c, k) for c, k in zip(columns, schema.types, strict=True)], schema)
    oracle = Oracle(parse(options["query"], schemas={"A": schema, "B": schema}), 60_000)
    expected = [
        row for part in (table[:150], table[150:]) for row in oracle.push({"A": part, "B": part})
    ]
    assert len(expected) > 300
    assert difference(found, expected) is None


@pytest.mark.skipif("PENSTOCK_LONG" not in os.environ, reason="long: set PENSTOCK_LONG=1")
def test_a_broker_that_asks_who_one_is(tmp_path: Path) -> None:
    """With a user and a password as Java's client has them; a wrong one is told, and not shown."""
    kafka = pytest.importorskip("confluent_kafka")
    try:
        running = RealBroker(tmp_path)
    except (NoJars, NoKafka) as reason:
        pytest.skip(str(reason))
    query = "SELECT A.id AS a, B.id AS b FROM A [RANGE 9 SECONDS], B [RANGE 9 SECONDS]"
    options = {"query": f"{query} WHERE A.id = B.id", "watermark": "1 MINUTE"}
    try:
        producer = kafka.Producer({"bootstrap.servers": running.address, "log_level": 0})
        for name in "AB":
            for number in range(20):
                row = {"id": number, "ts": "2026-01-01T12:00:00Z"}
                producer.produce(name, value=json.dumps(row).encode())
            options |= {f"{name}.format": "kafka", f"{name}.subscribe": name}
            options |= {f"{name}.decode": "json", f"{name}.schema": "id BIGINT, ts TIMESTAMP"}
            options |= {f"{name}.kafka.{k}": v for k, v in guarded(running, PASSWORD).items()}
        assert producer.flush(60) == 0
        lane = lane_of(options)
        answer = BatchAnswer(lane, answer_schema(lane.query.schema)[0])
        (partition,) = answer.partitions()
        found = [row for batch in answer.read(partition) for row in rows_of(pa.table(batch))]
        assert sorted(found) == [(n, n) for n in range(20)]
        wrong = guarded(running, f"not {PASSWORD}")
        options |= {f"B.kafka.{name}": value for name, value in wrong.items()}
        with pytest.raises(InputError) as told:
            lane_of(options)
    finally:
        running.kill()
    assert f"Kafka at {running.guarded_address} refuses: " in str(told.value)
    assert "Authentication failed: Invalid username or password" in str(told.value)
    assert PASSWORD not in str(told.value)
    assert "\n" not in str(told.value)


def guarded(running: RealBroker, password: str) -> dict[str, str]:
    """Options of the client."""
    return {
        "bootstrap.servers": running.guarded_address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{MODULE} required username="{USER}" password="{password}";',
    }


@contextmanager
def away(running: RealBroker) -> Iterator[None]:
    """The broker is killed, and a minute later it is back."""
    running.kill()
    later = threading.Timer(60, running.start)
    later.start()
    try:
        yield
    finally:
        later.join()


def test_the_connector_is_asked_for_unless_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    job = replace(read_job(EXAMPLE, {}), lane="dataframes")
    monkeypatch.delenv(job_session.ARGUMENTS, raising=False)
    (package,) = job_session.needed_packages(job)
    assert package == CONNECTOR[0]  # The one that the round trip is tested with.
    monkeypatch.setenv(job_session.ARGUMENTS, "--jars spark-sql-kafka-0-10_2.13.jar pyspark-shell")
    assert job_session.needed_packages(job) == []
