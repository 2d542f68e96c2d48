"""A small job in a folder: three sources of the same shape, in any file format."""

from __future__ import annotations

import datetime
import os
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import penstock
from penstock.job import Job, read_job
from penstock.spark.jobs.job_run import JobRun
from penstock.spark.jobs.prepared_job import prepare
from penstock.telemetry import Batch, Event, read_events

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("x", pa.string())])
DDL = "id BIGINT, ts TIMESTAMP, x STRING"
QUERY = """\
SELECT A.id AS a, B.id AS b, C.id AS c, A.x AS x
FROM A [RANGE 20 SECONDS], B [RANGE 20 SECONDS], C [RANGE 20 SECONDS]
WHERE A.x = B.x AND B.x = C.x"""
_NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)


def some_rows(seed: int, count: int = 40) -> pa.Table:
    """Rows of a minute after noon, with NULLs among their keys."""
    chance = random.Random(seed)
    rows = [
        {
            "id": 1_000 * seed + number,
            "ts": _NOON + datetime.timedelta(milliseconds=chance.randrange(60_000)),
            "x": chance.choice(["k", "l", "m", "n", "o", None]),
        }
        for number in range(count)
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def write_rows(table: pa.Table, file: Path, kind: str) -> None:
    """``table`` as a file that appears whole."""
    draft = file.with_name(f".{file.name}")
    file.parent.mkdir(parents=True, exist_ok=True)
    if kind == "parquet":
        pq.write_table(table, draft)
    elif kind == "csv":
        pyarrow.csv.write_csv(table, draft)
    else:
        frame = table.to_pandas()
        draft.write_text(frame.to_json(orient="records", lines=True, date_format="iso"))
    os.replace(draft, file)


@dataclass
class JobCase:
    """The job file of a folder, and its runs."""

    folder: Path
    spark: SparkSession
    written: dict[str, list[pa.Table]] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        return self.folder / "job.toml"

    def write(
        self,
        kinds: Mapping[str, str],
        top: str = 'trigger = "available-now"',
        query: str = QUERY,
        options: str = "",
        sink: str = 'format = "parquet"\npath = "results"',
        schema: bool = True,
    ) -> JobCase:
        """The job file, with the folders of its sources."""
        text = f'{top}\nquery = """\n{query}"""\ncheckpoint = "state/checkpoint"\n'
        for name, kind in kinds.items():
            (self.folder / name).mkdir(exist_ok=True)
            text += f'[sources.{name}]\nformat = "{kind}"\npath = "{name}"\n{options}\n'
            text += f'schema = "{DDL}"\n' if schema else ""
            text += 'watermark = "5 MINUTES"\n'
            text += "options.header = true\n" if kind == "csv" else ""
        self.file.write_text(f"{text}[sink]\n{sink}\n")
        return self

    def deliver(self, name: str, kind: str, seed: int) -> None:
        table = some_rows(seed)
        self.written.setdefault(name, []).append(table)
        write_rows(table, self.folder / name / f"{seed}.{kind}", kind)

    def job(self) -> Job:
        return read_job(self.file)

    def run(self, watch: Callable[[JobRun, Event], None] | None = None) -> list[Event]:
        """Run until the job ends; ``watch`` may stop it. The events of this run."""
        with JobRun(prepare(self.job(), self.spark)) as run:
            events = [run.start()]
            while not run.ended:
                for event in run.poll(0.1):
                    events.append(event)
                    if watch is not None:
                        watch(run, event)
        return events

    def log(self) -> list[Event]:
        path = self.job().event_log
        return [] if path is None else list(read_events(path))

    def results(self) -> Counter[tuple[Any, ...]]:
        folder = str(self.folder / "results")
        rows = self.spark.read.schema("a BIGINT, b BIGINT, c BIGINT, x STRING").parquet(folder)
        return Counter(tuple(row) for row in rows.collect())

    def expected(self) -> Counter[tuple[Any, ...]]:
        """The answer of one engine to all that was delivered."""
        query = penstock.parse(QUERY, schemas=dict.fromkeys("ABC", SCHEMA))
        pushes = {name: pa.concat_tables(tables) for name, tables in self.written.items()}
        answer = penstock.Engine(query).push(pushes)
        return Counter(tuple(row.values()) for row in answer.to_pylist())


def rows_of(events: list[Event]) -> int:
    return sum(sum(e.rows.values()) for e in events if isinstance(e, Batch))
