"""The query of the kill tests as a program, so that there is a driver to kill.

``python kill_run.py FOLDER MASTER`` runs it on the files of FOLDER that are not yet read, and ends.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa

import penstock
import penstock.spark

STREAMS = ("A", "B", "C")
SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("x", pa.int64()), ("y", pa.int64())])
LATENESS = 500
"""More than there is: after a restart Spark may put more files into a batch, and then other rows
would be late."""
CELLS = 3
QUERY = """SELECT A.id AS a, B.id AS b, C.id AS c
           FROM A [RANGE 400 MILLISECONDS], B [RANGE 400 MILLISECONDS], C [RANGE 400 MILLISECONDS]
           WHERE A.x = B.x AND A.y = C.y"""


def graph() -> penstock.JoinGraph:
    return penstock.parse(QUERY, schemas=dict.fromkeys(STREAMS, SCHEMA))


def run(folder: Path, master: str) -> None:
    spark = penstock.spark.session(master, spark__driver__memory="1g")
    columns = ", ".join(f"{name} BIGINT" for name in SCHEMA.names)
    frames = {
        name: spark.readStream.schema(columns)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder / name))
        for name in STREAMS
    }
    results = penstock.spark.join(
        graph(), frames, CELLS, lateness=LATENESS, state_folder=folder / "state"
    )
    query = (
        results.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "results"), format="parquet")
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2])
