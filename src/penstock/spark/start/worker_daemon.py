"""The parent of Python workers, with everything loaded before it forks.

Spark starts one daemon per executor (``spark.python.daemon.module``), and the daemon forks a worker
whenever one is needed. Spark's own daemon loads nothing ahead, so each worker reads pyspark out of
a zip file, compiling it anew, then pandas, Arrow and numba, then the kernels: about 3 CPU seconds
and 170 MB for each of five and more workers. Here the daemon does it once, and workers share its
memory.

Spark's daemon avoids this since a forked process has only the thread that forked. The threads that
exist by then are known: BLAS is told to have none, and the one of the allocator jemalloc, which is
prepared for forks. Nothing else is started: kernels are run on batches that are too small for
Arrow to use more than one thread.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from pathlib import Path


def leave_out_zip(paths: list[str]) -> list[str]:
    """``paths`` without Spark's zipped copy of pyspark, if pyspark is installed beside it.

    The installed one has been compiled before.
    """
    zipped = [path for path in paths if Path(path).name == "pyspark.zip"]
    installed = [p for p in paths if p not in zipped and (Path(p) / "pyspark/daemon.py").is_file()]
    same = installed and any(Path(z).is_relative_to(Path(installed[0])) for z in zipped)
    return [path for path in paths if path not in zipped] if same else paths


def preload() -> None:
    """Import what workers use, and load the kernels that most queries need."""
    import pandas  # type: ignore[import-untyped]  # noqa: F401
    import pyarrow as pa

    import penstock.planning.adaptation
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


def main() -> None:
    """Preload, and go on as Spark's daemon."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.path[:] = leave_out_zip(sys.path)
    # What cannot be loaded here is loaded, or reported, where it is needed.
    with contextlib.suppress(Exception), contextlib.redirect_stdout(sys.stderr):
        preload()
    # After every task a worker collects garbage. What is loaded by now is none: to look through it
    # would cost more than a small task, and copy every page that is shared.
    gc.collect()
    gc.freeze()
    from penstock.spark.private_spark import run_worker_daemon

    run_worker_daemon()


if __name__ == "__main__":
    main()
