"""What Spark's Python processes need of Penstock, loaded before they are forked.

A forked process has only the thread that forked. The threads that exist by then are known: BLAS is
told to have none, and the one of the allocator jemalloc, which is prepared for forks. Nothing else
is started: kernels are run on batches that are too small for Arrow to use more than one thread.
"""

from __future__ import annotations

import contextlib
import sys
from functools import cache


@cache
def preload() -> None:
    """Import what workers use, and load the kernels that most queries need.

    What cannot be loaded here is loaded, or reported, where it is needed.
    """
    with contextlib.suppress(Exception), contextlib.redirect_stdout(sys.stderr):
        _load()


def _load() -> None:
    import pandas  # type: ignore[import-untyped]  # noqa: F401
    import pyarrow as pa

    import penstock.planning.adaptation
    import penstock.spark.data_source.batch_reader
    import penstock.spark.data_source.source
    import penstock.spark.data_source.stream_reader  # noqa: F401
    from penstock.engine.engine import Engine
    from penstock.query.parse import parse
    from penstock.spark.private_spark import load_worker

    load_worker()

    names = ("id", "ts", "x", "y")
    rows = pa.table({name: pa.array(range(64), pa.int64()) for name in names})
    query = parse(
        "SELECT A.id AS a, B.id AS b, C.id AS c FROM A [RANGE 9 MILLISECONDS], "
        "B [RANGE 9 MILLISECONDS], C [RANGE 9 MILLISECONDS] WHERE A.x = B.x AND A.y = C.y",
        schemas=dict.fromkeys("ABC", rows.schema),
    )
    engine = Engine(query, lateness=0)
    for _ in range(2):
        engine.push(dict.fromkeys("ABC", rows))
    Engine.restore(query, engine.checkpoint())
