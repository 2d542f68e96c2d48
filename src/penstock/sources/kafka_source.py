"""Kafka topics as a stream, with the rules that Spark's Kafka source has.

A portion is ranges of offsets, one for each partition that has news. Offsets that a query has taken
are its own: nothing is committed to Kafka, and no group is balanced. Options have Spark's names;
those that begin with ``kafka.`` go to the client (:mod:`penstock.sources.kafka_client`).

- The first batch begins at ``startingOffsets``. ``latest`` is looked up once and written down as an
  empty portion, so that a restart does not skip what came meanwhile. A partition that appears later
  is read from its beginning.
- ``maxOffsetsPerTrigger`` is shared by the partitions in proportion to what they have.
- Rows that Kafka has removed before they were taken are an error that says which, or a warning
  where ``failOnDataLoss`` is ``false``. The same for windows that are read again.
- A broker that is gone is waited for, as long as ``kafkaConsumer.pollTimeoutMs`` says.

Rows of a portion are in the order of topic, partition, offset: the same whenever they are read.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.errors import InputError, PenstockWarning
from penstock.sources.json_lines import Choice, with_texts
from penstock.sources.kafka_client import Assigned, Ends, KafkaClient, Records
from penstock.sources.kafka_values import MESSAGE, decoded
from penstock.sources.partitioned import Partitioned
from penstock.sources.portion import UNLIMITED, Admission, Brief, Part, Portion

EARLIEST, LATEST = -2, -1
"""Offsets that stand for the ends of a partition, as in Spark's ``startingOffsets``."""


class OffsetRange(NamedTuple):
    """Offsets ``start`` to ``end``, which is not among them, of a partition."""

    topic: str
    partition: int
    start: int
    end: int


class TakenOffsets:
    """The next offset of each partition."""

    def __init__(self, offsets: Mapping[str, Mapping[str, int]] | None = None) -> None:
        self.next = {
            (topic, int(partition)): int(offset)
            for topic, partitions in (offsets or {}).items()
            for partition, offset in partitions.items()
        }

    def add(self, portion: Portion) -> None:
        for topic, partition, _, end in portion:
            self.next[topic, partition] = end

    def forget(self, available: Ends) -> None:
        """There is one number for each partition, which stays."""

    def to_json(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for (topic, partition), offset in self.next.items():
            found.setdefault(topic, {})[str(partition)] = offset
        return found


@dataclass(frozen=True)
class KafkaSource:
    """Topics as a stream."""

    name: str
    client: KafkaClient
    topics: tuple[str, ...]
    """Names, or one pattern if ``is_pattern``."""
    schema: pa.Schema
    is_pattern: bool = False
    value: pa.Schema | None = None
    """The columns of a value, where values are decoded; None: they are bytes."""
    decode: str | None = None
    """``json`` or ``avro``."""
    avro_schema: str | None = None
    """The schema that Avro values were written with, as JSON."""
    starting: int | Mapping[str, Mapping[str, int]] = LATEST
    admission: Admission = UNLIMITED
    fail_on_loss: bool = True
    kept_nanoseconds: int | None = None
    partitioned: Partitioned | None = None
    assigned: Assigned | None = None
    """The partitions of ``topics`` that are read; None: all, also those that are added."""

    def progress(self, kept: Any = None) -> TakenOffsets:
        return TakenOffsets(kept)

    def available(self) -> Ends:
        return self.client.ends(self.name, self.topics, self.is_pattern, self.assigned)

    def next_portion(
        self,
        progress: TakenOffsets,
        admission: Admission,
        within: Ends | None = None,
        is_last: bool = False,
    ) -> Portion:
        ends = self.available() if within is None else within
        is_first = not progress.next
        found = []
        for (topic, partition), (low, high) in sorted(ends.items()):
            start = progress.next.get((topic, partition))
            if start is None:
                start = self._starting(topic, partition, low, high) if is_first else low
            if start < low or start > high:
                self._lost(topic, partition, start, low, high)
                start = low
            found.append(OffsetRange(topic, partition, start, high))
        for topic, partition in sorted(progress.next.keys() - ends.keys()):
            self._lost(topic, partition, progress.next[topic, partition], 0, 0)
        if admission.rows is not None:
            found = shared_out(found, admission.rows)
        news = [list(each) for each in found if each.end > each.start or is_first]
        return news or None

    def everything(self) -> Portion:
        return self.next_portion(self.progress(), UNLIMITED)

    def waiting(self, progress: TakenOffsets, portion: Portion, available: Ends) -> int | None:
        taken = progress.next | {(topic, number): end for topic, number, _, end in portion or ()}
        left = [high - max(low, taken.get(p, low)) for p, (low, high) in available.items()]
        return sum(max(0, int(each)) for each in left)

    def parts(self, portion: Portion) -> Sequence[Part]:
        if self.partitioned is None:
            return [Part(portion)]
        return [Part([each], {}, each[1]) for each in portion]

    def brief(self, portion: Portion, column: str) -> Brief | None:
        return None

    def read(self, portion: Portion, columns: Sequence[str], again: bool = False) -> pa.Table:
        return self._columns_of(*self._records(portion), columns)

    @property
    def can_choose(self) -> bool:
        """Whether it pays to read a few columns first, and others of few rows."""
        return self.decode == "json"

    def read_chosen(
        self,
        portion: Portion,
        columns: Sequence[str],
        first: Sequence[str],
        choose: Choice,
        again: bool = False,
    ) -> pa.Table:
        """``columns`` of rows that are chosen by those of them that come ``first``."""
        records, where = self._records(portion)
        rows = choose(self._columns_of(records, where, first)).tolist()
        chosen = Records(*([column[row] for row in rows] for column in records))
        return self._columns_of(chosen, where, columns).select(list(columns))

    def _records(self, portion: Portion) -> tuple[Records, str]:
        """The messages of a portion, and where they are from."""
        ranges = [OffsetRange(*each) for each in portion]
        kept = []
        for each in ranges:
            if each.end <= each.start:
                continue
            low, high = self.client.ends_of(each.topic, each.partition)
            if each.start < low or each.end > high:
                self._lost(each.topic, each.partition, each.start, low, high, each.end)
                each = each._replace(start=max(each.start, low), end=min(each.end, high))
            if each.end > each.start:
                kept.append(each)
        records = self.client.read(self.name, kept) if kept else Records()
        return records, f"{self.name}: {', '.join(dict.fromkeys(each.topic for each in kept))}"

    def _columns_of(self, records: Records, where: str, columns: Sequence[str]) -> pa.Table:
        table = decoded(records, self.value, self.decode, self.avro_schema, columns)
        if self.partitioned is not None:
            self.partitioned.check(table, np.asarray(records.partitions, np.int64), where)
        wanted = pa.schema([self.schema.field(name) for name in columns])
        found = table.select(list(columns)).cast(wanted)
        return with_texts(found, table)

    def _starting(self, topic: str, partition: int, low: int, high: int) -> int:
        if isinstance(self.starting, Mapping):
            given = self.starting.get(topic, {}).get(str(partition), EARLIEST)
        else:
            given = self.starting
        return low if given == EARLIEST else high if given == LATEST else given

    def _lost(
        self, topic: str, partition: int, start: int, low: int, high: int, end: int | None = None
    ) -> None:
        """Say that offsets from ``start`` on are not there, as Spark's source does."""
        upto = "" if end is None else f" to {end}"
        text = (
            f"{self.name}: offsets {start}{upto} of {topic}-{partition} are gone: Kafka has {low} "
            f"to {high} (the topic was deleted and made anew, or its retention is shorter than "
            "this query was behind or its windows reach)"
        )
        if self.fail_on_loss:
            raise InputError(f'{text}; set failOnDataLoss to "false" to go on without these rows')
        warnings.warn(text, PenstockWarning, stacklevel=2)


def shared_out(ranges: Sequence[OffsetRange], most: int) -> list[OffsetRange]:
    """``ranges`` cut to ``most`` offsets together, each in proportion to what it has."""
    total = sum(each.end - each.start for each in ranges)
    if total <= most:
        return list(ranges)
    found, seen, given = [], 0, 0
    for each in ranges:
        seen += each.end - each.start
        upto = most * seen // total
        found.append(each._replace(end=each.start + upto - given))
        given = upto
    return found


def topic_names(text: str) -> tuple[str, ...]:
    """The names in a list with commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def message_schema(value: pa.Schema | None) -> pa.Schema:
    """The columns of a row: those of the value, and of the message where their names are free."""
    if value is None:
        return MESSAGE
    others = [each for each in MESSAGE if each.name != "value" and each.name not in value.names]
    return pa.schema([*value, *others])
