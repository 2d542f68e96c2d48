"""Every row is accounted for: late, without a time, too far ahead, filtered, or in a window.

Windows are longer than any stream here, so what came into one is still there, and can be counted.
"""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import penstock

SCHEMA = pa.schema([("ts", pa.int64()), ("x", pa.int64()), ("s", pa.string()), ("v", pa.int64())])
RANGE = "[RANGE 1000 DAYS]"
FILTERS = ("", "A.v > 3", "A.v > 3 AND B.s <> 'b'", "A.v + A.x > 4", "A.s LIKE 'a%'")
KEYS = ("A.x = B.x", "A.s = B.s", "A.x = B.x AND A.s = B.s", "A.x + 1 = B.v", "A.v < B.v")


def rows(chance: random.Random, count: int, around: int) -> pa.Table:
    """Rows with every kind of badness."""

    def some(value: object) -> object:
        return None if chance.random() < 0.2 else value

    return pa.table(
        {
            "ts": [some(around + chance.randint(-4_000, 1_000)) for _ in range(count)],
            "x": [some(chance.randint(0, 3)) for _ in range(count)],
            "s": [some(chance.choice("ab")) for _ in range(count)],
            "v": [some(chance.randint(0, 9)) for _ in range(count)],
        },
        schema=SCHEMA,
    )


@pytest.mark.parametrize("execution", ["auto", "reference"])
@pytest.mark.parametrize("seed", range(40))
def test_what_came_in_adds_up(seed: int, execution: str) -> None:
    chance = random.Random(seed)
    where = " AND ".join(filter(None, [chance.choice(KEYS), chance.choice(FILTERS)]))
    text = f"SELECT A.v AS a, B.v AS b FROM A {RANGE}, B {RANGE} WHERE {where}"
    lateness = chance.choice([500, {"A": 500}])
    engine = penstock.Engine(
        penstock.parse(text, dict.fromkeys("AB", SCHEMA)),
        lateness=lateness,
        execution=execution,
        keep_dropped=True,
    )
    pushed = dict.fromkeys("AB", 0)
    for number in range(6):
        batches = {name: rows(chance, chance.randint(0, 30), 1_000 * number) for name in "AB"}
        engine.push(batches)
        for name, batch in batches.items():
            pushed[name] += len(batch)
    metrics = engine.metrics()
    dropped = dict.fromkeys("AB", 0)
    for each in engine.drain_dropped():
        dropped[each.source] += len(each.rows)
    for name in "AB":
        counts, window = metrics["sources"][name], metrics["state"]["windows"][name]["rows"]
        assert counts["rows"] == pushed[name]
        assert counts["late"] + counts["null_time"] == dropped[name]
        assert window + dropped[name] + counts["filtered"] == pushed[name]
        assert counts["filtered"] > 0
    assert metrics["filtered"] == sum(each["filtered"] for each in metrics["sources"].values())


@pytest.mark.parametrize("execution", ["auto", "reference"])
def test_a_row_is_filtered_if_all_windows_of_its_source_refuse_it(execution: str) -> None:
    text = f"SELECT a.v AS v FROM A {RANGE} AS a, A {RANGE} AS b WHERE a.x = b.x AND a.v > 3"
    text += " AND b.v > 5"
    engine = penstock.Engine(penstock.parse(text, {"A": SCHEMA}), execution=execution)
    values = [1, 2, 4, 5, 6, None, 7]
    table = pa.table(
        {"ts": range(7), "x": [1, 1, 1, 1, None, 1, 1], "s": ["a"] * 7, "v": values}, schema=SCHEMA
    )
    engine.push({"A": table})
    assert engine.metrics()["sources"]["A"]["filtered"] == 4  # 1, 2, NULL, and 6 with no x.


def test_on_the_arrival_line_rows_in_no_result_are_counted() -> None:
    text = "SELECT A.v AS a FROM A [ROWS 100], B [ROWS 100] WHERE A.x = B.x AND A.v > 3"
    engine = penstock.Engine(penstock.parse(text, dict.fromkeys("AB", SCHEMA)))
    chance = random.Random(1)
    table = rows(chance, 40, 0)
    engine.push({"A": table})
    timely = table.filter(table["ts"].is_valid()).to_pylist()
    kept = [r for r in timely if r["x"] is not None and r["v"] is not None and r["v"] > 3]
    assert engine.metrics()["sources"]["A"]["filtered"] == len(timely) - len(kept)


def test_the_count_survives_a_restart() -> None:
    text = f"SELECT A.v AS a FROM A {RANGE}, B {RANGE} WHERE A.x = B.x AND A.v > 3"
    query = penstock.parse(text, dict.fromkeys("AB", SCHEMA))
    engine = penstock.Engine(query)
    engine.push({"A": rows(random.Random(2), 40, 0)})
    counts = engine.metrics()["sources"]
    assert counts["A"]["filtered"] > 0
    assert penstock.Engine.restore(query, engine.checkpoint()).metrics()["sources"] == counts
