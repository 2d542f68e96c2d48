"""The client of Kafka: which offsets there are, and messages in bulk.

Consumers of confluent-kafka (librdkafka) are kept for as long as the process lives, one for each
set of options: to connect takes longer than to read. They are told which partitions to read from
where, batch by batch, so they belong to no group and commit nothing.

Options have the names of Kafka's Java client where Spark's users know those: ``sasl.jaas.config``
with a user and a password, and trust stores in PEM, are said in librdkafka's words.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

from penstock.errors import InputError, OptionError

Ends: TypeAlias = dict[tuple[str, int], tuple[int, int]]
"""The first offset of each partition that is there, and the one behind the last."""

Assigned: TypeAlias = Mapping[str, Sequence[int]]
"""The partitions of topics that are read, where not all of them are."""

_BULK = 100_000
"""Messages that are asked for at once."""
_WAIT = 1.0
"""Seconds to wait for messages before looking whether there is any progress."""
_ANSWER = 10.0
"""Seconds that one question to the broker may take before it is put again."""
_LINGER = "5"
"""Milliseconds that the broker holds back a question for more than there is (500 by default). What
is read is there, but a partition that was read before holds up the next one for as long."""
_PACKAGE = "confluent-kafka"
_REFUSED = {
    "auto.offset.reset": "say startingOffsets instead",
    "enable.auto.commit": "nothing is committed to Kafka: the ledger has the offsets",
    "key.deserializer": "keys are bytes",
    "value.deserializer": "values are bytes, or say decode",
    "interceptor.classes": "there are no Java classes here",
}
_FINAL = (
    "_AUTHENTICATION",
    "_SSL",
    "_INVALID_ARG",
    "_NOT_IMPLEMENTED",
    "_UNSUPPORTED_FEATURE",
    "_FATAL",
)
"""Errors of the client that no patience mends. Others come and go with the connection, some of them
under names that say little: with a broker that is gone, its handle is destroyed; one that has just
come does not know its topics and partitions yet."""
_PASSING = (
    "UNKNOWN_TOPIC_OR_PART",
    "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_FOR_PARTITION",
    "REPLICA_NOT_AVAILABLE",
    "BROKER_NOT_AVAILABLE",
    "REQUEST_TIMED_OUT",
    "NETWORK_EXCEPTION",
    "KAFKA_STORAGE_ERROR",
    "OFFSET_NOT_AVAILABLE",
    "FENCED_LEADER_EPOCH",
    "UNKNOWN_LEADER_EPOCH",
)
"""Errors of a broker that has just come, or is about to go."""
_PAUSE = 0.2
"""Seconds before a question is put again to a broker that is away: some errors come at once."""
_clients: dict[tuple[tuple[str, str], ...], Any] = {}
_refusals: dict[tuple[tuple[str, str], ...], str] = {}
"""What brokers have said to those whom they do not let in. To a question the client answers as if
there was no broker, and tells this aside."""
_there: dict[str, frozenset[str]] = {}
"""Topics that this process has found, by the brokers that have them."""
_known: dict[int, set[str]] = {}
"""Topics that each of them has read from."""
T = TypeVar("T")


class Records(NamedTuple):
    """Messages, column by column, in the order of topic, partition, offset."""

    keys: Sequence[bytes | None] = ()
    values: Sequence[bytes | None] = ()
    topics: Sequence[str] = ()
    partitions: Sequence[int] = ()
    offsets: Sequence[int] = ()
    times: Sequence[int] = ()
    """Milliseconds since 1970."""
    kinds: Sequence[int] = ()
    """Clock of the time stamp: 0 the producer's, 1 the broker's."""


@dataclass(frozen=True)
class KafkaClient:
    """What is needed to connect; it may be secret, and is not printed."""

    options: Mapping[str, str] = field(repr=False)
    patience: float = 120.0
    """Seconds without any progress before the broker is given up."""

    def __reduce__(self) -> tuple[Any, ...]:
        return KafkaClient, (dict(self.options), self.patience)

    @property
    def servers(self) -> str:
        return self.options.get("bootstrap.servers", "")

    def ends(
        self, name: str, topics: Sequence[str], is_pattern: bool, assigned: Assigned | None = None
    ) -> Ends:
        """The offsets of all partitions of ``topics``, or of those that are ``assigned``."""
        until = time.monotonic() + self.patience
        while True:
            listed = self._asked(lambda consumer: consumer.list_topics(timeout=_ANSWER))
            known = {topic: about for topic, about in listed.topics.items() if about.error is None}
            chosen = [t for t in known if re.fullmatch(topics[0], t)] if is_pattern else [*topics]
            missing = [topic for topic in chosen if topic not in known]
            was_there = _there.get(self.servers, frozenset()) & {*missing}
            if not was_there or time.monotonic() > until:
                break
            time.sleep(_PAUSE)  # The broker has just come, and does not know it yet.
        if missing or not chosen:
            have = ", ".join(sorted(t for t in known if not t.startswith("__"))) or "none"
            what = f"topic {missing[0]!r} does not exist" if missing else "no topic matches"
            raise InputError(f"{name}: {what} at {self.servers}; it has: {have}")
        _there[self.servers] = _there.get(self.servers, frozenset()) | {*chosen}
        wanted = {topic: known[topic].partitions for topic in chosen}
        for topic, numbers in (assigned or {}).items():
            absent = next((n for n in numbers if n not in wanted[topic]), None)
            if absent is not None:
                have = ", ".join(map(str, sorted(wanted[topic])))
                raise InputError(
                    f"{name}: topic {topic!r} has no partition {absent} at {self.servers}; it has: "
                    f"{have}"
                )
        return {
            (topic, partition): self.ends_of(topic, partition)
            for topic, numbers in sorted((assigned or wanted).items())
            for partition in sorted(numbers)
        }

    def ends_of(self, topic: str, partition: int) -> tuple[int, int]:
        """The first offset that a partition has, and the one behind the last."""
        from confluent_kafka import TopicPartition

        asked = TopicPartition(topic, partition)
        low, high = self._asked(lambda c: c.get_watermark_offsets(asked, timeout=_ANSWER))
        return int(low), int(high)

    def retention(self, topics: Sequence[str]) -> int | None:
        """Nanoseconds that all of ``topics`` keep messages for; None if for ever, 0 if nobody says:
        they may also go by size, or be compacted."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient, ConfigResource

        wanted = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
        own = {k: v for k, v in self._native().items() if not k.startswith(("enable.", "group."))}
        for name in ("isolation.level", "fetch.wait.max.ms"):  # Of consumers alone.
            own.pop(name, None)
        shortest: int | None = None
        try:
            admin = AdminClient(own)  # Answers come for as long as it is there.
            found = admin.describe_configs(wanted, request_timeout=_ANSWER)
            for each in found.values():
                values = {key: entry.value for key, entry in each.result(_ANSWER).items()}
                if values.get("retention.bytes", "-1") != "-1":
                    return 0
                if "compact" in values.get("cleanup.policy", "delete"):
                    return 0
                kept = int(values.get("retention.ms", "-1"))
                if kept >= 0:
                    shortest = kept if shortest is None else min(shortest, kept)
        except (KafkaException, TimeoutError, ValueError):
            return 0
        return None if shortest is None else shortest * 10**6

    def read(self, name: str, ranges: Sequence[Any]) -> Records:
        """The messages of ``ranges`` of offsets, which are there."""
        from confluent_kafka import TopicPartition

        consumer = self._consumer()
        self._find({each.topic for each in ranges})
        consumer.assign([TopicPartition(r.topic, r.partition, r.start) for r in ranges])
        parts: dict[tuple[str, int], list[Any]] = {(r.topic, r.partition): [] for r in ranges}
        open_ = {(r.topic, r.partition): r.end for r in ranges}
        left = sum(r.end - r.start for r in ranges)
        since, problem = time.monotonic(), ""
        try:
            while open_:
                got = consumer.consume(min(_BULK, max(1, left)), timeout=_WAIT)
                if got:
                    _refusals.pop(self._key, None)  # It was let in after all.
                else:
                    self._check_admitted(name)
                for message in got:
                    error = message.error()
                    where = (message.topic(), message.partition())
                    if error is not None:
                        problem = self._judged(name, error, problem)
                        continue
                    if where in open_ and message.offset() < open_[where]:
                        parts[where].append(message)
                        left -= 1
                before = len(open_)
                for place in consumer.position([TopicPartition(*where) for where in open_]):
                    where = (place.topic, place.partition)
                    if place.offset >= open_[where]:  # Also where a compacted topic has gaps.
                        del open_[where]
                        consumer.incremental_unassign([TopicPartition(*where)])
                if got or len(open_) < before:
                    since = time.monotonic()
                elif time.monotonic() - since > self.patience:
                    raise self._silent(name, problem)
        finally:
            consumer.unassign()
        ordered = [m for where in sorted(parts) for m in parts[where]]
        times = [message.timestamp() for message in ordered]
        return Records(
            [message.key() for message in ordered],
            [message.value() for message in ordered],
            [message.topic() for message in ordered],
            [message.partition() for message in ordered],
            [message.offset() for message in ordered],
            [at for _, at in times],
            [max(0, kind - 1) for kind, _ in times],
        )

    def _find(self, topics: set[str]) -> None:
        """Ask where topics are that this process has not read from: a consumer that is told to read
        finds that out by itself, in a second."""
        known = _known.setdefault(id(self._consumer()), set())
        for topic in topics - known:
            self._asked(partial(_described, topic))
            known.add(topic)

    def _asked(self, question: Callable[[Any], T]) -> T:
        """The answer to a question; the broker may be away for a while."""
        from confluent_kafka import KafkaException

        until = time.monotonic() + self.patience
        while True:
            try:
                answer = question(self._consumer())
            except KafkaException as problem:
                error = problem.args[0]
                text = self._judged("kafka", error, "")
                self._consumer().poll(0)  # It tells what it has to tell aside.
                self._check_admitted("kafka")
                if time.monotonic() > until:
                    raise self._silent("kafka", text) from None
                time.sleep(_PAUSE)
            else:
                _refusals.pop(self._key, None)
                return answer

    def _judged(self, name: str, error: Any, before: str) -> str:
        """The text of an error that may pass; raises one that will not."""
        from confluent_kafka import KafkaError

        if error.code() == KafkaError._PARTITION_EOF:
            return before
        is_local = error.code() < 0  # Of the client, and not of a broker.
        known = error.name() not in _FINAL if is_local else error.name() in _PASSING
        if not (known or error.retriable()):
            raise InputError(f"{name}: Kafka at {self.servers} refuses: {error.str()}")
        return str(error.str())

    def _check_admitted(self, name: str) -> None:
        """An error if a broker has refused user or password."""
        refusal = _refusals.pop(self._key, None)
        if refusal is not None:
            raise InputError(f"{name}: Kafka at {self.servers} refuses: {refusal}")

    def _silent(self, name: str, problem: str) -> InputError:
        said = f": {problem}" if problem else ""
        return InputError(
            f"{name}: Kafka at {self.servers} has not answered for {self.patience:g} s{said}"
        )

    @property
    def _key(self) -> tuple[tuple[str, str], ...]:
        return tuple(sorted(self._native().items()))

    def _consumer(self) -> Any:
        key = self._key
        if key not in _clients:
            try:
                from confluent_kafka import Consumer, KafkaException
            except ImportError:
                raise OptionError(
                    f"reading Kafka needs the package {_PACKAGE}: pip install penstock[kafka]"
                ) from None
            try:
                own = {**self._native(), "error_cb": partial(_note_refusal, key)}
                _clients[key] = Consumer(own, logger=_quiet())
            except (KafkaException, TypeError, ValueError) as problem:
                said = problem.args[0].str() if hasattr(problem.args[0], "str") else str(problem)
                raise OptionError(f"options that begin with kafka.: {said}") from None
        return _clients[key]

    def _native(self) -> dict[str, str]:
        """The options in the words of librdkafka."""
        found = {
            "group.id": f"penstock-source-{_PROCESS}",
            "enable.auto.commit": "false",
            "enable.partition.eof": "true",
            "isolation.level": "read_uncommitted",
            "fetch.wait.max.ms": _LINGER,
        }
        return found | native_options(self.options)


_PROCESS = uuid.uuid4().hex
"""Tells the consumers of this process apart."""


def native_options(options: Mapping[str, str]) -> dict[str, str]:
    """Options of the Java client as librdkafka has them; a mistake if it has none such."""
    found = {}
    for name, value in options.items():
        if name in _REFUSED:
            raise OptionError(f"kafka.{name} is not for this source: {_REFUSED[name]}")
        if name == "sasl.jaas.config":
            match = re.search(r'username="([^"]*)"\s+password="([^"]*)"', value)
            if match is None:
                raise OptionError(
                    "kafka.sasl.jaas.config has no username and password; other mechanisms are "
                    "said in the words of librdkafka, such as kafka.sasl.oauthbearer.config"
                )
            found["sasl.username"], found["sasl.password"] = match.groups()
        elif name in ("ssl.truststore.location", "ssl.keystore.location"):
            kind = options.get(name.replace("location", "type"), "JKS").upper()
            if kind == "PEM":
                found[f"ssl.{'ca' if 'trust' in name else 'key'}.location"] = value
            elif kind == "PKCS12" and "key" in name:
                found[name] = value
            else:
                raise OptionError(
                    f"kafka.{name} is a {kind} file, which only Java reads: give certificates in "
                    "PEM, as kafka.ssl.ca.location"
                )
        elif not name.endswith("store.type") and name != "ssl.truststore.password":
            found[name] = value
    return found


def _note_refusal(key: tuple[tuple[str, str], ...], error: Any) -> None:
    """What a broker has said, kept. A connection that breaks while user and password are exchanged
    has the same name, and a reason that begins with ``Local:``; it passes."""
    if error.name() == "_AUTHENTICATION" and "Local:" not in error.str():
        _refusals[key] = str(error.str())


def _described(topic: str, consumer: Any) -> Any:
    return consumer.list_topics(topic, timeout=_ANSWER)


def _quiet() -> Any:
    """Where the client's own log goes: to Python's, at the level of debugging."""
    import logging

    logger = logging.getLogger("penstock.kafka")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
    return logger
