"""A change of plan when all that is missing has died and still lies in the window.

Rows stay until the watermark has passed, and probes skip those that died before: then what was
there at the change may lie wholly among the skipped.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import penstock

SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.int64()), ("y", pa.int64()), ("ts", pa.int64())])
QUERY = """SELECT A.id AS a, B.id AS b, C.id AS c
FROM A [NOW], B [RANGE 10 SECONDS], C [RANGE 10 SECONDS]
WHERE A.x = B.x AND A.y = C.y"""


def second(random: np.random.Generator, number: int) -> dict[str, pa.Table]:
    tables = {}
    for name, count in (("A", 9_000), ("B", 200), ("C", 200)):
        times = 1_000 * number + random.integers(0, 1_000, count)
        columns = [random.integers(0, top, count) for top in (1 << 40, 5_000, 5_000)]
        tables[name] = pa.table([*columns, times], names=SCHEMA.names)
    return tables


@pytest.mark.parametrize("after", [1, 2, 5])
@pytest.mark.parametrize("strategy", ["jisc", "moving-state"])
def test_the_answer_is_that_of_one_plan(after: int, strategy: str) -> None:
    query = penstock.parse(QUERY, schemas=dict.fromkeys("ABC", SCHEMA))
    engines = [penstock.Engine(query, plan="((A B) C)", lateness=3_000) for _ in range(2)]
    random = np.random.default_rng(after)
    answers: list[list[pa.Table]] = [[], []]
    for number in range(12):
        if number == after:
            engines[1].migrate("((A C) B)", strategy=strategy)
        batches = second(random, number)
        for engine, answer in zip(engines, answers, strict=True):
            answer.append(engine.push(batches))
    one, other = (pa.concat_tables(answer) for answer in answers)
    assert one.num_rows > 500
    order = [("a", "ascending"), ("b", "ascending"), ("c", "ascending")]
    assert one.sort_by(order).equals(other.sort_by(order))
