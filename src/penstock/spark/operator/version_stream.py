"""Which version of a static relation each micro-batch has, as a stream of Spark's.

Cells must agree on the rows of a static relation, and a batch that is done again must find the same
ones. Spark has a place for what a batch is made of: the log of offsets, written before the batch
runs and read when it is done again, after a failure, a restart or a rollback. So versions
(:mod:`penstock.spark.state.static_versions`) are a source of the query like any other: its offset
is the newest number of each relation, and a batch in which one has grown brings every cell a row
that says so. The cell reads the file, takes its share, and has the rows in its state from then on.

The first rows of a relation are version 1, written when the query starts; a query that goes on from
a checkpoint has the rows of now as one more version, if they are others. Both is done where offsets
are asked for, in the driver, so a DataFrame that nobody starts leaves nothing behind.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from penstock.cells.delivery import from_chunk
from penstock.cells.packing import NO_NEWS, PACKED, PACKED_SCHEMA
from penstock.spark.state.static_versions import StaticVersions


@dataclass(frozen=True, slots=True)
class Versioned:
    """The relations of a query that are refreshed.

    ``numbers`` are their numbers among the sources of the query, ``keys`` those of the cells.
    ``rows`` has the rows that each had when the query was made, as a chunk.
    """

    versions: StaticVersions
    numbers: Mapping[str, int]
    keys: Sequence[int]
    rows: Mapping[str, bytes]


def version_stream(spark: SparkSession, versioned: Versioned) -> DataFrame:
    """Packed rows that tell cells which versions hold from a batch on."""
    name = f"penstock_versions_{secrets.token_hex(4)}"
    # Not an option: options are shown on Spark's pages, and the files of a store have keys.
    source = type("StaticVersionSource", (VersionSource,), {"versioned": versioned, "format": name})
    spark.dataSource.register(source)
    return spark.readStream.format(name).load()


class VersionSource(DataSource):
    """A source of versions; a subclass has ``versioned`` and the name of the format."""

    versioned: ClassVar[Versioned]
    format: ClassVar[str]

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        return cls.format

    def schema(self) -> str:
        return PACKED

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return VersionReader(self.versioned)


@dataclass
class NewVersions(InputPartition):
    """Versions that a batch begins to have, by relation."""

    numbers: dict[str, int]


class VersionReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the versions of ``versioned`` as a stream."""

    def __init__(self, versioned: Versioned) -> None:
        self._versions = versioned.versions
        self._numbers = dict(versioned.numbers)
        self._keys = list(versioned.keys)
        self._unwritten: dict[str, bytes] = dict(versioned.rows)
        """The rows of now, until they are written."""
        self._available: dict[str, int] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_unwritten": {}}  # Tasks need none of it.

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's names
        return dict.fromkeys(self._numbers, 0)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._available = self._newest()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        newest = self._newest() if self._available is None else self._available
        return {name: max(newest.get(name, 0), start.get(name, 0)) for name in self._numbers}

    def _newest(self) -> dict[str, int]:
        newest = self._versions.newest()
        for name, chunk in self._unwritten.items():
            newest[name] = self._versions.add(name, from_chunk(chunk), newest.get(name, 0))
        self._unwritten = {}
        return newest

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[NewVersions]:
        grown = {n: int(end[n]) for n in self._numbers if end.get(n, 0) > start.get(n, 0)}
        return [NewVersions(grown)] if grown else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, NewVersions)
        rows = [
            {
                "cell": key,
                "source": self._numbers[name],
                "partition": 0,
                "sequence": version,
                "newest": NO_NEWS,
                "chunk": None,
                "sent": 0,
                "rejected": None,
            }
            for name, version in partition.numbers.items()
            for key in self._keys
        ]
        yield pa.RecordBatch.from_pylist(rows, schema=PACKED_SCHEMA)
