"""The query whose classes are kept.

``python -m penstock.spark.processes.class_archive_run FOLDER ARCHIVE [BASE]``: a small streaming
join, from files to files, in a Spark of its own, once as a data source and once over Spark's. Java
writes ARCHIVE at its end, which is waited for. The classes of
:mod:`penstock.spark.start.local_files` are compiled on the way, into a jar beside it. BASE is the
archive that it stands on, if Java has none of its own.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import penstock
from penstock.spark.data_source.source import answers
from penstock.spark.join import join
from penstock.spark.private_spark import JAVA_ERROR, end_java
from penstock.spark.session import session
from penstock.spark.start.local_files import jar_beside, write_jar

_SECONDS = 300
_BATCHES = 3
_QUERY = """SELECT A.id AS a, B.id AS b, C.id AS c
            FROM A [RANGE 1 MINUTE], B [RANGE 1 MINUTE], C [RANGE 1 MINUTE]
            WHERE A.x = B.x AND A.y = C.y"""


def run(folder: Path, archive: Path, base: Path | None = None) -> None:
    """Run the query in ``folder``, and let Java write ``archive``."""
    java = f"-XX:ArchiveClassesAtExit={archive} -Xlog:disable -Xlog:all=error:stderr"
    if base is not None:
        java += f" -XX:SharedArchiveFile={base}"
    spark = session("local[2,4]", **{"spark.driver.extraJavaOptions": java})
    rows = pa.table({name: pa.array(range(8), pa.int64()) for name in ("id", "ts", "x", "y")})
    columns = ", ".join(f"{name} BIGINT" for name in rows.column_names)
    frames = {}
    for name in "ABC":
        (folder / name).mkdir()
        for number in range(_BATCHES):
            pq.write_table(rows, folder / name / f"{number}.parquet")
        source = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1)
        frames[name] = source.parquet(str(folder / name))
    query = penstock.parse(_QUERY, schemas=dict.fromkeys("ABC", rows.schema))
    options = {"query": _QUERY, "watermark": "0 SECONDS", "maxFilesPerTrigger": "1"}
    options |= {f"{name}.path": str(folder / name) for name in "ABC"}
    options |= {"checkpointLocation": str(folder / "source"), "reports": "true"}
    lanes = {"source": answers(spark, options), "dataframes": join(query, frames, lateness=0)}
    for lane, results in lanes.items():
        started = (
            results.writeStream.option("checkpointLocation", str(folder / lane))
            .trigger(availableNow=True)
            .start(str(folder / f"{lane}-results"), format="parquet")
        )
        started.awaitTermination()
    with suppress(JAVA_ERROR):  # Then Hadoop's own classes remain.
        write_jar(spark, jar_beside(archive))
    end_java(spark, _SECONDS)


if __name__ == "__main__":
    run(*map(Path, sys.argv[1:]))
