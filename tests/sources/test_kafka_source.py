"""Kafka as a source: against the mock cluster that the client library brings along."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest

from penstock import parse
from penstock.errors import InputError, OptionError, PenstockWarning
from penstock.query.unreadable import CORRUPT
from penstock.sources import kafka_client
from penstock.sources.kafka_client import Assigned, Ends, KafkaClient, native_options
from penstock.sources.kafka_source import (
    EARLIEST,
    LATEST,
    KafkaSource,
    OffsetRange,
    message_schema,
    shared_out,
)
from penstock.sources.partitioned import Partitioned
from penstock.sources.portion import UNLIMITED, Admission
from penstock.values.partitioner import Partitioner

kafka = pytest.importorskip("confluent_kafka")

BROKER = """
import sys
from confluent_kafka import Producer
mock = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "mock", "log_level": 0})
for broker in mock.list_topics(timeout=30).brokers.values():
    print(f"{broker.host}:{broker.port}", flush=True)
sys.stdin.read()
"""
VALUE = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("x", pa.string())])


@dataclass
class Broker:
    """A mock cluster in a process of its own, which can be halted."""

    process: subprocess.Popen[str]
    address: str

    def send(self, topic: str, values: list[Any], partition: int = 0) -> None:
        producer = kafka.Producer({"bootstrap.servers": self.address, "log_level": 0})
        for value in values:
            text = value if isinstance(value, bytes | None) else json.dumps(value).encode()
            producer.produce(topic, value=text, key=b"k", partition=partition)
        assert producer.flush(60) == 0

    def client(self, **options: Any) -> KafkaClient:
        return KafkaClient({"bootstrap.servers": self.address}, **options)

    def source(self, *topics: str, **options: Any) -> KafkaSource:
        options.setdefault("client", self.client())
        value = options.get("value", VALUE)
        options |= {"value": value, "decode": options.get("decode", "json") if value else None}
        options.setdefault("starting", EARLIEST)
        return KafkaSource("A", topics=topics, schema=message_schema(value), **options)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    command = [sys.executable, "-c", BROKER]
    with subprocess.Popen(
        command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        yield Broker(process, process.stdout.readline().strip())
        process.kill()


def row(number: int) -> dict[str, Any]:
    return {"id": number, "ts": f"2026-01-01T00:00:{number % 60:02}Z", "x": f"x{number}"}


def test_every_message_once_in_portions_that_can_be_read_again(broker: Broker) -> None:
    chance = random.Random(1)
    source = broker.source("many")
    progress, sent, taken = source.progress(), 0, []
    for _ in range(6):
        for partition in range(3):
            count = chance.randrange(60)
            broker.send("many", [row(sent + n) for n in range(count)], partition)
            sent += count
        while True:
            portion = source.next_portion(progress, Admission(rows=50))
            if portion is None:
                break
            assert sum(end - start for _, _, start, end in portion) <= 50
            table = source.read(portion, ["id", "ts", "x", "partition", "offset"])
            assert table == source.read(portion, ["id", "ts", "x", "partition", "offset"], True)
            taken += table.column("id").to_pylist()
            progress.add(portion)
            progress = source.progress(json.loads(json.dumps(progress.to_json())))
    assert sorted(taken) == list(range(sent))
    assert source.next_portion(progress, UNLIMITED) is None


def test_raw_messages_have_the_columns_of_sparks_source(broker: Broker) -> None:
    broker.send("raw", [b"one", None, b"three"])
    source = broker.source("raw", value=None)
    portion = source.next_portion(source.progress(), UNLIMITED)
    table = source.read(portion, source.schema.names)
    assert table.column("value").to_pylist() == [b"one", None, b"three"]
    assert table.column("key").to_pylist() == [b"k"] * 3
    assert table.column("topic").to_pylist() == ["raw"] * 3
    assert table.column("offset").to_pylist() == [0, 1, 2]
    assert table.column("timestamp").null_count == 0
    assert table.column("timestampType").to_pylist() == [0] * 3


def test_values_that_cannot_be_read_are_rows_of_nulls(broker: Broker) -> None:
    values = [row(1), b"{broken", row(2), b"", None, b"7", b'{"id": "no number"}', row(3)]
    values += [b'{"id": 4,\n "other": [1, 2], "x": "a"}', b'{"id": 5} {"id": 6}']
    broker.send("odd", values)
    source = broker.source("odd")
    table = source.read(source.next_portion(source.progress(), UNLIMITED), ["id", "x"])
    expected = [1, None, 2, None, None, None, None, 3, 4, None]
    assert table.column("id").to_pylist() == expected
    assert table.column("x").to_pylist()[8] == "a"


def test_avro_with_and_without_a_registrys_heading(broker: Broker) -> None:
    fastavro = pytest.importorskip("fastavro")
    import io

    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "id", "type": "long"}, {"name": "x", "type": ["null", "string"]}],
    }

    def encoded(value: dict[str, Any]) -> bytes:
        file = io.BytesIO()
        fastavro.schemaless_writer(file, fastavro.parse_schema(schema), value)
        return file.getvalue()

    values = [encoded({"id": 1, "x": "a"}), b"\0\0\0\0\7" + encoded({"id": 2, "x": None}), b"\xff"]
    broker.send("avro", values)
    source = broker.source("avro", decode="avro", avro_schema=json.dumps(schema))
    table = source.read(source.next_portion(source.progress(), UNLIMITED), ["id", "x"])
    expected = {"id": [1, 2, None], "x": ["a", None, None], CORRUPT: [None, None, "ff"]}
    assert table.to_pydict() == expected


def test_latest_is_looked_up_once(broker: Broker) -> None:
    """What comes between the first look and the first rows is not skipped."""
    broker.send("late", [row(1), row(2)])
    source = broker.source("late", starting=LATEST)
    progress = source.progress()
    first = source.next_portion(progress, UNLIMITED)
    assert source.read(first, ["id"]).num_rows == 0
    progress.add(first)
    broker.send("late", [row(3)])
    again = source.progress(progress.to_json())
    portion = source.next_portion(again, UNLIMITED)
    assert source.read(portion, ["id"]).column("id").to_pylist() == [3]


def test_starting_offsets_by_partition_and_topics_by_pattern(broker: Broker) -> None:
    for partition in range(2):
        broker.send("part.a", [row(10 * partition + n) for n in range(5)], partition)
    broker.send("part.b", [row(50)])
    starting = {"part.a": {"0": 3, "1": -1}}
    source = broker.source("part.*", is_pattern=True, starting=starting)
    table = source.read(source.next_portion(source.progress(), UNLIMITED), ["id"])
    assert table.column("id").to_pylist() == [3, 4, 50]


def test_partitions_that_are_assigned(broker: Broker) -> None:
    for partition in range(3):
        broker.send("some", [row(10 * partition + n) for n in range(2)], partition)
    source = broker.source("some", assigned={"some": [0, 2]})
    progress = source.progress()
    portion = source.next_portion(progress, UNLIMITED)
    assert [each[:2] for each in portion] == [["some", 0], ["some", 2]]
    assert source.read(portion, ["id"]).column("id").to_pylist() == [0, 1, 20, 21]
    progress.add(portion)
    broker.send("some", [row(99)], 1)
    assert source.next_portion(progress, UNLIMITED) is None
    with pytest.raises(InputError, match=r"topic 'some' has no partition 9 at .*it has: 0, 1"):
        broker.source("some", assigned={"some": [0, 9]}).available()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "give one of subscribe"),
        ({"A.subscribe": "some", "A.assign": '{"some": [0]}'}, "give one of subscribe"),
        ({"A.subscribePattern": "so.*", "A.assign": '{"some": [0]}'}, "give one of subscribe"),
        ({"A.assign": '["some"]'}, "A.assign is partitions by topic"),
        ({"A.assign": "{}"}, "A.assign is partitions by topic"),
        ({"A.assign": '{"some": []}'}, "A.assign is partitions by topic"),
        ({"A.assign": '{"some": [-1]}'}, "A.assign is partitions by topic"),
        ({"A.assign": '{"some": ["first"]}'}, "A.assign is partitions by topic"),
        ({"A.assign": '{"some": [0]}', "A.partitionedBy": "key"}, "topics that are read whole"),
    ],
)
def test_mistakes_in_what_is_read(more: dict[str, str], message: str, broker: Broker) -> None:
    pytest.importorskip("pyspark")
    from penstock.spark.data_source.options import lane_of

    options = {"query": QUERY, "B.path": "b", "B.schema": "id BIGINT, ts TIMESTAMP, x BIGINT"}
    options |= {"A.format": "kafka", "A.kafka.bootstrap.servers": broker.address}
    with pytest.raises(OptionError) as told:
        lane_of(options | more)
    assert message in str(told.value)
    assert "\n" not in str(told.value)


def test_assigned_partitions_as_an_option(broker: Broker) -> None:
    pytest.importorskip("pyspark")
    from penstock.spark.data_source.options import lane_of

    broker.send("chosen", [row(1)], 1)
    options = {"query": QUERY, "B.path": "b", "B.schema": "id BIGINT, ts TIMESTAMP, x STRING"}
    options |= {"A.format": "kafka", "A.kafka.bootstrap.servers": broker.address}
    options |= {"A.assign": '{"chosen": [1]}', "A.decode": "json"}
    options |= {"A.schema": "id BIGINT, ts TIMESTAMP, x STRING"}
    assert [*lane_of(options).sources["A"].available()] == [("chosen", 1)]


def test_a_topic_that_does_not_exist(broker: Broker) -> None:
    broker.send("there", [row(1)])
    with pytest.raises(InputError, match=r"A: topic 'nowhere' does not exist at .*there"):
        broker.source("nowhere").available()
    with pytest.raises(InputError, match="no topic matches"):
        broker.source("nothing.*", is_pattern=True).available()


def test_a_topic_that_does_not_exist_is_told_once_when_a_query_is_loaded(broker: Broker) -> None:
    pytest.importorskip("pyspark")
    from penstock.spark.data_source.options import lane_of

    broker.send("there", [row(1)])
    options = {"query": QUERY, "A.path": "a", "A.schema": "id BIGINT, ts TIMESTAMP, x BIGINT"}
    options |= {"B.format": "kafka", "B.subscribe": "there,nowhere"}
    options |= {"B.kafka.bootstrap.servers": broker.address}
    with pytest.raises(InputError) as told:
        lane_of(options)
    said = f"B: topic 'nowhere' does not exist at {broker.address}; it has: "
    assert str(told.value).startswith(said)
    assert "there" in str(told.value)
    assert "\n" not in str(told.value)


def test_a_broker_that_goes_away_and_comes_back(broker: Broker) -> None:
    broker.send("gone", [row(n) for n in range(100)])
    source = broker.source("gone", client=broker.client(patience=300.0))
    portion = source.next_portion(source.progress(), UNLIMITED)
    os.kill(broker.process.pid, signal.SIGSTOP)
    back = subprocess.Popen(
        [sys.executable, "-c", f"import time, os; time.sleep(3); os.kill({broker.process.pid}, 18)"]
    )
    try:
        assert source.read(portion, ["id"]).column("id").to_pylist() == list(range(100))
    finally:
        os.kill(broker.process.pid, signal.SIGCONT)
        back.wait()


def test_a_broker_that_never_answers() -> None:
    client = KafkaClient({"bootstrap.servers": "localhost:1", "log_level": "0"}, 0.1)
    with pytest.raises(InputError, match=r"Kafka at localhost:1 has not answered for 0\.1 s"):
        KafkaSource("A", client, ("t",), message_schema(None)).available()


REFUSED = kafka.KafkaError(kafka.KafkaError._AUTHENTICATION, "SASL: invalid credentials")
BROKEN = kafka.KafkaError(
    kafka.KafkaError._AUTHENTICATION,
    "SASL PLAIN mechanism handshake failed: Local: Broker transport failure",
)


def noted(client: KafkaClient, error: Any) -> KafkaClient:
    """``client``, which was told ``error`` aside."""
    kafka_client._note_refusal(client._key, error)
    return client


def test_a_broker_that_refuses_a_user_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kafka_client, "_ANSWER", 0.1)
    client = KafkaClient({"bootstrap.servers": "localhost:1", "log_level": "0"}, 300.0)
    with pytest.raises(InputError, match="refuses: SASL: invalid credentials"):
        KafkaSource("A", noted(client, REFUSED), ("t",), message_schema(None)).available()


def test_a_connection_that_breaks_while_a_user_is_checked_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kafka_client, "_ANSWER", 0.1)
    client = KafkaClient({"bootstrap.servers": "localhost:1", "log_level": "0"}, 0.1)
    with pytest.raises(InputError, match=r"has not answered for 0\.1 s"):
        KafkaSource("A", noted(client, BROKEN), ("t",), message_schema(None)).available()


def test_a_refusal_is_forgotten_with_the_first_answer(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_client, "_WAIT", 300.0)  # All that is asked for is there.
    broker.send("let in", [row(n) for n in range(5)])
    client = noted(broker.client(), REFUSED)
    source = broker.source("let in", client=client)
    portion = source.next_portion(source.progress(), UNLIMITED)
    assert client._key not in kafka_client._refusals
    for _ in range(2):  # The second time nobody asks where the topic is.
        noted(client, REFUSED)
        assert source.read(portion, ["id"]).column("id").to_pylist() == list(range(5))
        assert client._key not in kafka_client._refusals


@dataclass(frozen=True)
class Trimmed(KafkaClient):
    """A client of a topic that has lost its first messages."""

    low: Ends = field(default_factory=dict)

    def ends(
        self, name: str, topics: Any, is_pattern: bool, assigned: Assigned | None = None
    ) -> Ends:
        return self.low

    def ends_of(self, topic: str, partition: int) -> tuple[int, int]:
        return self.low[topic, partition]


@pytest.mark.parametrize(("theirs", "ours"), [("consistent", "crc32"), ("murmur2", "murmur2")])
def test_partitions_are_those_of_a_producer(theirs: str, ours: str, broker: Broker) -> None:
    """Keys that a client has put into partitions lie where the function says, and others do not."""
    options = {"bootstrap.servers": broker.address, "log_level": 0, "partitioner": theirs}
    producer = kafka.Producer(options)
    for number in range(200):
        producer.produce(f"by.{ours}", value=json.dumps(row(number)), key=f"x{number}")
    assert producer.flush(60) == 0
    source = broker.source(f"by.{ours}")
    count = len(source.available())
    said = replace(source, partitioned=Partitioned("x", Partitioner(ours, count)))
    portion = said.next_portion(said.progress(), UNLIMITED)
    parts = said.parts(portion)
    assert len({part.partition for part in parts}) == count > 1
    assert sum(len(said.read(part.portion, ["x"])) for part in parts) == 200
    other = replace(source, partitioned=Partitioned("x", Partitioner(ours, count + 1)))
    with pytest.raises(InputError, match=rf"A: by\.{ours}: a row with x = 'x\d+' is in partition"):
        other.read(portion, ["x"])


def test_lost_data_is_reported(broker: Broker) -> None:
    broker.send("lost", [row(n) for n in range(9)])
    options = {"bootstrap.servers": broker.address}
    ends = {("lost", 0): (5, 9)}
    source = broker.source("lost", client=Trimmed(options, low=ends))
    behind = source.progress({"lost": {"0": 2}})
    with pytest.raises(InputError, match="offsets 2 of lost-0 are gone: Kafka has 5 to 9"):
        source.next_portion(behind, UNLIMITED)
    with pytest.raises(InputError, match="offsets 2 to 7 of lost-0 are gone"):
        source.read([["lost", 0, 2, 7]], ["id"], again=True)
    lenient = broker.source("lost", client=Trimmed(options, low=ends), fail_on_loss=False)
    with pytest.warns(PenstockWarning, match="are gone"):
        assert lenient.next_portion(behind, UNLIMITED) == [["lost", 0, 5, 9]]
    with pytest.warns(PenstockWarning, match="are gone"):
        found = lenient.read([["lost", 0, 2, 7]], ["id"])
    assert found.column("id").to_pylist() == [5, 6]


def test_a_limit_is_shared_in_proportion() -> None:
    chance = random.Random(2)
    for _ in range(200):
        ranges = [
            OffsetRange("t", n, start, start + chance.randrange(50))
            for n, start in enumerate(chance.randrange(100) for _ in range(chance.randint(1, 6)))
        ]
        most, total = chance.randint(1, 100), sum(r.end - r.start for r in ranges)
        found = shared_out(ranges, most)
        assert sum(r.end - r.start for r in found) == min(most, total)
        for given, cut in zip(ranges, found, strict=True):
            assert given.start == cut.start <= cut.end <= given.end


def test_options_in_the_words_of_java() -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    jaas = f'{module} required username="me" password="secret";'
    given = {
        "bootstrap.servers": "b:1",
        "security.protocol": "SASL_SSL",
        "sasl.jaas.config": jaas,
        "ssl.truststore.location": "/ca.pem",
        "ssl.truststore.type": "PEM",
    }
    assert native_options(given) == {
        "bootstrap.servers": "b:1",
        "security.protocol": "SASL_SSL",
        "sasl.username": "me",
        "sasl.password": "secret",
        "ssl.ca.location": "/ca.pem",
    }
    assert "secret" not in repr(KafkaClient(given))
    with pytest.raises(OptionError, match="only Java reads"):
        native_options({"ssl.truststore.location": "/ca.jks"})
    with pytest.raises(OptionError, match="startingOffsets"):
        native_options({"auto.offset.reset": "latest"})
    with pytest.raises(OptionError, match="No such configuration property"):
        KafkaClient({"bootstrap.servers": "b:1", "no.such": "1"}).ends_of("t", 0)


QUERY = "SELECT A.id AS a, B.id AS b FROM A [RANGE 3 SECONDS], B [RANGE 2 SECONDS] WHERE A.x = B.x"


def test_a_query_over_topics_gives_the_oracles_answer(
    broker: Broker, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planned and read as Spark does, with restarts between; windows are read again from Kafka."""
    pytest.importorskip("pyspark")
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    from penstock.spark.data_source import engine_cache
    from penstock.spark.data_source.options import lane_of
    from penstock.spark.data_source.stream_reader import StreamReader
    from penstock.spark.rows.arrow_types import answer_schema
    from penstock.testing import Oracle, difference, rows_of

    monkeypatch.setattr(KafkaClient, "retention", lambda *_: 0)  # The mock does not say.
    chance = random.Random(3)
    options = {"query": QUERY, "watermark": "1 SECONDS", "checkpointLocation": str(tmp_path)}
    for name in "AB":
        broker.send(f"query.{name}", [])
        broker.send(f"query.{name}", [b"not an object"], partition=1)
        options |= {
            f"{name}.format": "kafka",
            f"{name}.kafka.bootstrap.servers": broker.address,
            f"{name}.subscribe": f"query.{name}",
            f"{name}.startingOffsets": "earliest",
            f"{name}.decode": "json",
            f"{name}.schema": "id BIGINT, ts TIMESTAMP, x BIGINT",
        }
    position, oracle, total, reader = None, None, 0, None
    for number in range(12):
        push = {}
        for name in "AB":
            rows = [
                {
                    "id": 100 * number + n,
                    "ts": 1_000 * number + chance.randrange(-900, 0),
                    "x": n % 3,
                }
                for n in range(5)
            ]
            for each in rows:
                at = f"2026-01-01T00:00:{(30_000 + each['ts']) / 1000:06.3f}Z"
                broker.send(f"query.{name}", [each | {"ts": at}], chance.randrange(3))
            base = 1_767_225_600_000_000
            kinds = [("id", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("x", pa.int64())]
            columns = [
                pa.array([each["id"] for each in rows]),
                pa.array([base + (30_000 + each["ts"]) * 1_000 for each in rows], kinds[1][1]),
                pa.array([each["x"] for each in rows]),
            ]
            push[name] = pa.table(columns, schema=pa.schema(kinds))
        if reader is None or chance.random() < 0.4:  # A new process.
            engine_cache.clear()
            with pytest.warns(PenstockWarning, match="how long it keeps rows"):
                lane = lane_of(options)
            reader = StreamReader(lane, answer_schema(lane.query.schema)[0])
        schemas = {name: table.schema for name, table in push.items()}
        oracle = oracle or Oracle(parse(QUERY, schemas=schemas), 1_000)
        position = position or reader.initialOffset()
        end = reader.latestOffset(position, ReadAllAvailable())
        found: list[Any] = []
        for partition in reader.partitions(position, end):
            for batch in reader.read(partition):
                found += rows_of(pa.table(batch))
        expected = oracle.push(push)
        assert difference(found, expected) is None
        total += len(found)
        position = end
    assert total > 50
