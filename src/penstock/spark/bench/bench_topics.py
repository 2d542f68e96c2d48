"""Topics of a broker as the input and the output of ``penstock bench spark --broker``.

A stream is a topic of one partition with JSON values, in the order of event time. Topics have names
of their own for every run, and are removed when it is over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.errors import PenstockError

_SECONDS = 30.0
"""Time that the broker has to answer."""
_FLUSH_SECONDS = 120.0
"""Time that the broker has for the messages of one file."""
_QUEUED = 1_000_000
"""Messages that wait to be sent, at most."""


def topic_name(name: str, folder: str) -> str:
    """The topic of the stream, or the results, ``name`` that goes with ``folder``."""
    return f"penstock-bench-{hashlib.sha256(folder.encode()).hexdigest()[:12]}-{name}"


@contextmanager
def made_topics(broker: str, names: list[str], seconds: float = _SECONDS) -> Iterator[None]:
    """Topics ``names`` with one partition each, while it lasts; the broker has ``seconds`` to
    answer."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": broker, "log_level": 0})
    try:
        made = admin.create_topics(
            [NewTopic(each, 1, 1) for each in names], request_timeout=seconds
        )
        for each in made.values():
            each.result()
    except KafkaException as problem:
        raise PenstockError(f"the broker {broker} makes no topics: {problem}") from None
    try:
        yield
    finally:
        for each in admin.delete_topics(names).values():
            with suppress(KafkaException):
                each.result()


def send_files(broker: str, folder: Path, names: Mapping[str, list[str]]) -> None:
    """The rows of the files of ``folder``, by stream, as JSON to their topics."""
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": broker,
            "queue.buffering.max.messages": _QUEUED,
            "linger.ms": 50,
            "log_level": 0,
        }
    )
    for name in names:
        topic = topic_name(name, str(folder))
        for file in sorted((folder / name).glob("*.parquet")):
            for text in _texts(pq.read_table(file)):
                producer.produce(topic, text)
            if producer.flush(_FLUSH_SECONDS):
                raise PenstockError(f"the broker {broker} does not take messages")


def _texts(table: pa.Table) -> list[str]:
    """The rows as JSON."""
    times = pc.strftime(table.column("ts"), "%Y-%m-%dT%H:%M:%SZ").to_pylist()
    columns = {n: table.column(n).to_pylist() for n in table.column_names if n != "ts"}
    starts = [f'{{"ts":"{time}"' for time in times]
    for name, values in columns.items():
        starts = [f'{start},"{name}":{v}' for start, v in zip(starts, values, strict=True)]
    return [f"{start}}}" for start in starts]


def count_messages(broker: str, topic: str) -> int:
    """Messages that ``topic`` has got so far."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": broker, "group.id": topic, "log_level": 0})
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=_SECONDS)
        return int(high - low)
    finally:
        consumer.close()
