"""Test cases as files and streaming queries."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from case_deliveries import spark_lateness, spark_oracle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

import penstock.spark
from penstock.errors import PenstockError
from penstock.query.join_graph import ARRIVAL, JoinGraph
from penstock.spark.rows.arrow_types import answer_schema, check_type
from penstock.testing import Case, Knobs, difference, generate, rows_of
from penstock.testing.compare import inexact_columns

KNOBS = Knobs(streams=(2, 3)).without(["watermark", "watermark ahead", "payload", "now"])


def in_spark_types(table: pa.Table) -> pa.Table:
    """``table`` as Spark can have it; an error if it cannot."""
    schema, _ = answer_schema(table.schema)
    for name, found, declared in zip(schema.names, schema.types, table.schema.types, strict=True):
        check_type("?", name, found, declared)
    return table.cast(schema)


def cases(*features: str, start: int = 0, pushes: int = 4) -> Iterator[Case]:
    """Random cases with all ``features`` that fit Spark's types, with at most ``pushes``."""
    seed = start
    while True:
        seed += 1
        case = generate(seed, KNOBS)
        if not set(features) <= case.features:
            continue
        try:
            case = merged(case, pushes)
            for table in case.pushes[0].values():
                in_spark_types(table)
            answer_schema(case.graph().schema)
        except (PenstockError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
        oracle = spark_oracle(case, case.graph())
        if sum(len(oracle.push(push)) for push in case.pushes) > 3:
            yield case


def merged(case: Case, pushes: int) -> Case:
    """``case`` with neighbouring pushes made one; every source is in each, maybe empty."""
    size = -(-len(case.pushes) // pushes)
    groups = [case.pushes[i : i + size] for i in range(0, len(case.pushes), size)]
    graph = case.graph()
    has_arrival = any(ARRIVAL in t.schema.names for p in case.pushes for t in p.values())
    found = []
    for group in groups:
        batches = {}
        for source in graph.sources:
            schema = case.schemas[source]
            is_static = any(
                s.is_static for b in graph.blocks for s in b.streams if s.source == source
            )
            if has_arrival and not is_static and ARRIVAL not in schema.names:
                schema = schema.append(pa.field(ARRIVAL, pa.int64()))
            tables = [p[source].cast(schema) for p in group if source in p and len(p[source])]
            batches[source] = pa.concat_tables([schema.empty_table(), *tables]).combine_chunks()
        if any(map(len, batches.values())):
            found.append(batches)
    statics = {s.source for block in graph.blocks for s in block.streams if s.is_static}
    for later in found[1:]:
        for source in statics:
            rows = later.pop(source)
            found[0][source] = pa.concat_tables([found[0][source], rows])
    return replace(case, pushes=tuple(found))


@dataclass
class SparkCase:
    """A case in a folder: one parquet file per source and push."""

    case: Case
    folder: Path
    spark: SparkSession

    def __post_init__(self) -> None:
        self.graph: JoinGraph = self.case.graph()
        self.streams = {s.source: s for block in self.graph.blocks for s in block.streams}
        self.written = 0

    def write(self, count: int) -> None:
        """Write the next ``count`` pushes."""
        for number in range(self.written, min(self.written + count, len(self.case.pushes))):
            for source, table in self.case.pushes[number].items():
                file = self.folder / source / f"{number:04}.parquet"
                file.parent.mkdir(parents=True, exist_ok=True)
                pq.write_table(in_spark_types(table), file)
                os.utime(file, (1_700_000_000 + 10 * number,) * 2)
        self.written += count

    def frames(self, streaming: bool) -> dict[str, DataFrame]:
        frames = {}
        for source, table in self.case.pushes[0].items():
            schema = from_arrow_schema(answer_schema(table.schema)[0])
            folder = str(self.folder / source)
            if streaming and not self.streams[source].is_static:
                stream = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
                frames[source] = stream.parquet(folder)
            else:
                frames[source] = self.spark.read.schema(schema).parquet(folder)
        return frames

    def join(self, cells: int, streaming: bool = True, **options: Any) -> DataFrame:
        lateness = None if self.graph.by_rows else spark_lateness(self.case)
        frames = self.frames(streaming)
        return penstock.spark.join(self.graph, frames, cells, lateness=lateness, **options)

    def run(self, cells: int, **options: Any) -> None:
        """Run the query on what is written and not yet read; results are added to the sink."""
        self.start(cells, **options).awaitTermination()

    def start(self, cells: int, **options: Any) -> StreamingQuery:
        """The query, which has begun to do so."""
        return (
            self.join(cells, **options)
            .writeStream.option("checkpointLocation", str(self.folder / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(self.folder / "results"), format="parquet")
        )

    def results(self) -> pa.Table:
        _, schema = answer_schema(self.graph.schema)
        return self.spark.read.schema(schema).parquet(str(self.folder / "results")).toArrow()

    def check(self, found: pa.Table, expected: Sequence[tuple[Any, ...]]) -> None:
        rows = rows_of(found.cast(self.graph.schema))
        wrong = difference(rows, expected, inexact_columns(self.graph))
        assert wrong is None, f"{wrong}\n{self.case}"

    def expected(self) -> list[tuple[Any, ...]]:
        """The oracle's answer, up to the last push."""
        oracle = spark_oracle(self.case, self.graph)
        return [row for push in self.case.pushes for row in oracle.push(push)]
