"""The parent of Python workers, with everything loaded before it forks.

Spark starts one daemon per executor (``spark.python.daemon.module``), and the daemon forks a worker
whenever one is needed. Spark's own daemon loads nothing ahead, so each worker reads pyspark out of
a zip file, compiling it anew, then pandas, Arrow and numba, then the kernels: about 3 CPU seconds
and 170 MB for each of five and more workers. Here the daemon does it once, and workers share its
memory.

Spark's daemon avoids this since a forked process has only the thread that forked; what is loaded
here starts none (:mod:`penstock.spark.processes.preload`).

On one machine the daemon itself is forked (:mod:`penstock.spark.processes.python_parent`).
"""

from __future__ import annotations

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


def main() -> None:
    """Preload, and go on as Spark's daemon."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.path[:] = leave_out_zip(sys.path)
    from penstock.spark.processes.preload import preload  # From the chosen path.

    preload()
    # After every task a worker collects garbage. What is loaded by now is none: to look through it
    # would cost more than a small task, and copy every page that is shared.
    gc.collect()
    gc.freeze()
    from penstock.spark.private_spark import run_worker_daemon

    run_worker_daemon()


if __name__ == "__main__":
    main()
