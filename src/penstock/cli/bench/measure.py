"""One measurement in a process of its own, so that its peak memory is its own.

The order comes as JSON on stdin and the measurement goes as JSON to stdout:
``python -m penstock.cli.bench.measure < order.json``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from penstock.errors import PenstockError


def measure(order: dict[str, Any]) -> dict[str, Any]:
    """Carry out ``order`` in a new process."""
    process = subprocess.run(
        [sys.executable, "-m", "penstock.cli.bench.measure"],
        input=json.dumps(order),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        start_new_session=True,  # An interrupt reaches this process alone, which ends the other.
    )
    if process.returncode < 0:
        raise PenstockError(
            f"a measurement was ended by signal {-process.returncode} (out of memory?)"
        )
    if process.returncode:
        raise PenstockError(process.stdout.strip() or "a measurement failed, see above")
    measured: dict[str, Any] = json.loads(process.stdout)
    return measured


def carry_out(order: dict[str, Any]) -> dict[str, Any]:
    """Carry out ``order`` here."""
    from penstock.cli.bench.workloads import Workload

    workload = Workload.from_json(order["workload"])
    if order["kind"] == "engine":
        from penstock.cli.bench.engine_run import run_engine

        return run_engine(
            workload, order["plan"], order["batch"], order["seconds"], order["feedback"]
        )
    from penstock.cli.bench import duckdb_run

    if order["kind"] == "births":
        import numpy as np

        np.save(order["file"], duckdb_run.births(workload))
        return {}
    return duckdb_run.run_duckdb(workload, order["form"], order["source"])


if __name__ == "__main__":
    try:
        json.dump(carry_out(json.load(sys.stdin)), sys.stdout)
    except PenstockError as error:
        print(error)
        sys.exit(1)
