"""What Spark's own process needs to ask a processor for its state variables."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

import penstock
from penstock.cells.placement import place
from penstock.spark.cells.cell import CellSettings
from penstock.spark.operator.cell_processor import CellProcessor
from penstock.spark.operator.cell_work import CellWork

ASKED = """
import sys
import pickle
sys.orig_argv.append("pyspark.sql.streaming.transform_with_state_driver_worker")
processor = pickle.loads(sys.stdin.buffer.read())

class Handle:
    def getMapState(self, name, key, value):
        print(name)

processor.init(Handle())
print([m for m in ("numba", "pandas", "pyarrow", "sqlglot") if m in sys.modules])
"""


def test_its_variables_are_told_without_the_engine() -> None:
    query = penstock.parse(
        "SELECT A.x AS a FROM A [RANGE 1 MINUTE], B [RANGE 1 MINUTE] WHERE A.x = B.x",
        schemas=dict.fromkeys("AB", pa.schema([("x", pa.int64()), ("ts", pa.int64())])),
    )
    work = CellWork(CellSettings(query, place(query, 2)), (0, 1), "mark")
    told = subprocess.run(
        [sys.executable, "-c", ASKED],
        input=pickle.dumps(CellProcessor(work)),
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(penstock.__file__).parent.parent)},
    )
    assert told.stdout.decode().split("\n")[:-1] == ["header", "[]"]
