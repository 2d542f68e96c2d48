"""The streams of a case as files, in the formats that peers can read.

All have the same rows in the order of event time, which is in milliseconds. CSV comes with a header
line, with none, and with another name for ``id``; Parquet as :mod:`penstock.spark.bench.bench_run`
reads it, one file per micro-batch.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from penstock.cli.bench.workloads import Workload

_BATCH = 50_000
"""Rows of a stream in one micro-batch."""
_BATCHES = 4
"""So many micro-batches at least."""


def write_files(workload: Workload, form: str, folder: Path) -> dict[str, str]:
    """Write the streams, unless they are there; the file or folder of each."""
    suffix = "" if form == "parquet" else ".csv"
    paths = {stream: str(folder / f"{stream}{suffix}") for stream in workload.streams}
    if folder.is_dir():
        return paths
    tables = workload.tables()
    if form == "parquet":
        from penstock.spark.bench.bench_run import write_streams

        write_streams(tables, folder, max(_BATCHES, workload.rows // _BATCH))
    else:
        folder.mkdir(parents=True)
        for stream, batch in tables.items():
            names = batch.schema.names
            header = {"csv": names, "csv-bare": [], "csv-tuple-id": ["tuple_id", *names[1:]]}[form]
            with (folder / f"{stream}.csv").open("wb") as file:
                if header:
                    file.write(f"{','.join(header)}\n".encode())
                options = pyarrow.csv.WriteOptions(include_header=False)
                pyarrow.csv.write_csv(pa.Table.from_batches([batch]), file, options)
    return paths
