"""Runs whose checkpoints are kept for every format that was ever written: ``formats/N/NAME``.

``python tests/engine/recovery/format_cases.py FOLDER`` writes those of this version.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import penstock

SCHEMA = pa.schema(
    [
        ("ts", pa.int64()),
        ("id", pa.int64()),
        ("x", pa.int64()),
        ("name", pa.string()),
        ("price", pa.decimal128(12, 2)),
    ]
)
THREE = "FROM A [RANGE 2 SECONDS], B [RANGE 2 SECONDS], C [RANGE 3 SECONDS] "
ON = "WHERE A.x = B.x AND B.name = C.name"


@dataclass(frozen=True)
class FormatCase:
    """A query and its options; ``BEFORE`` pushes come before the checkpoint, as many after it."""

    text: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def query(self) -> penstock.JoinGraph:
        return penstock.parse(self.text, dict.fromkeys("ABC", SCHEMA))

    def engine(self) -> penstock.Engine:
        return penstock.Engine(self.query, **self.options)


CASES = {
    "plain": FormatCase(
        f"SELECT A.id AS a, B.id AS b, C.id AS c {THREE}{ON}", {"plan": "((A B) C)"}
    ),
    "late": FormatCase(
        f"SELECT A.id AS a, B.id AS b, C.price AS p {THREE}{ON} AND A.id < C.id",
        {"plan": "(A B C)", "lateness": 300, "feedback": "off"},
    ),
    "deaths": FormatCase(f"SELECT DSTREAM A.id AS a, B.id AS b {THREE}{ON}"),
    "answer": FormatCase(f"SELECT RSTREAM A.id AS a, C.name AS n {THREE}{ON}"),
    "groups": FormatCase(
        f"SELECT A.x AS x, COUNT(*) AS n, SUM(B.price) AS s, MIN(C.id) AS m {THREE}{ON} "
        "GROUP BY A.x"
    ),
    "rows": FormatCase(
        "SELECT A.id AS a, B.id AS b FROM A [ROWS 30], B [PARTITION BY x ROWS 4] WHERE A.x = B.x"
    ),
    "difference": FormatCase(
        "SELECT A.x AS x FROM A [RANGE 2 SECONDS], B [RANGE 2 SECONDS] WHERE A.name = B.name "
        "EXCEPT SELECT C.x AS x FROM C [RANGE 2 SECONDS]",
        {"lateness": 200},
    ),
    "debt": FormatCase(
        f"SELECT A.id AS a, B.id AS b, C.id AS c {THREE}{ON}",
        {
            "plan": "((A B) C)",
            "overload": "defer",
            "limits": penstock.Limits(probes=40.0),
        },
    ),
}
BEFORE = 12


def pushes() -> list[dict[str, pa.Table]]:
    """What is pushed, the same in every version."""
    random = np.random.RandomState(20)  # Its streams are frozen for good.
    found = []
    for push in range(2 * BEFORE):
        batches = {}
        for stream in "ABC":
            count = random.randint(0, 9)
            times = np.sort(push * 300 + random.randint(0, 300, count))
            columns = [
                pa.array(times, pa.int64()),
                pa.array(push * 100 + np.arange(count), pa.int64()),
                pa.array(random.randint(0, 5, count), pa.int64(), mask=random.rand(count) < 0.05),
                pa.array([f"n{n}" for n in random.randint(0, 4, count)], pa.string()),
                pa.array(random.randint(0, 9999, count), pa.int32()).cast(pa.decimal128(12, 2)),
            ]
            batches[stream] = pa.Table.from_arrays(columns, schema=SCHEMA)
        found.append(batches)
    return found


def read_by(case: FormatCase, batches: dict[str, pa.Table]) -> dict[str, pa.Table]:
    return {name: batch for name, batch in batches.items() if name in case.query.sources}


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, case in CASES.items():
        engine = case.engine()
        for batches in pushes()[:BEFORE]:
            engine.push(read_by(case, batches))
        (folder / name).write_bytes(engine.checkpoint())
