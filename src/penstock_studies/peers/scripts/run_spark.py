"""Spark, with its own chained stream-stream joins, or with Penstock in its cells.

Both by :mod:`penstock.spark.bench.bench_run`, which says how each is written: same Parquet files,
one file of each stream per micro-batch, ``availableNow``, results as Parquet files. The peer
``penstock-spark`` is ``penstock.spark.join`` on the query as it stands; ``spark`` is its own joins
in the order given, with an interval of event time on the first stream and watermarks on all, as
https://spark.apache.org/docs/latest/streaming/apis-on-dataframes-and-datasets.html tells for inner
joins with state that can be dropped. State is in its default store, on a heap of half the memory
that a run may take; ``penstock bench spark`` compares that store with RocksDB.
"""

import os
import shutil
from pathlib import Path

import pyarrow.dataset
from hand_over import add_up, serve

from penstock.spark.bench.bench_run import SparkSession, run

# The rehearsal and the join share one session, as a second one in the same JVM does not get far.
SparkSession.stop = lambda session: None


def join(order):
    own = order["peer"] == "penstock-spark"
    work = Path(order["work"])
    shutil.rmtree(work, ignore_errors=True)
    streams = order["streams"]
    told = run(
        {
            "kind": "penstock" if own else "spark",
            "store": "rocksdb" if own else "hdfs",
            "master": f"local[{order['cores']},4]",
            "columns": {s: streams[s]["columns"] for s in order["sequence"]},
            "query": order["query"],
            "pairs": order["pairs"],
            "window": order["window"],
            "heap": f"{order['memory'] >> 21}m",
            "partitions": order["cores"],
            "by_batch": False,
            "rehearsal": None,
            "work": str(work),
            "folder": os.path.dirname(streams[order["sequence"][0]]["file"]),
        }
    )
    results = pyarrow.dataset.dataset(
        [str(file) for file in (work / "results").glob("*.parquet")]
    ).to_table()
    names = [stream.lower() if own else f"{stream}_id" for stream in streams]
    answer = add_up(order, [results.select(names)])
    if answer["results"] != told["results"]:
        raise RuntimeError("the files of results cannot be read")
    return answer


serve(join)
