"""Nothing grows but what is alive: fifty windows take no more memory than three."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock import Engine, Limits, parse

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("v", pa.int64()), ("s", pa.string())])
WINDOW = 10_000
PUSHES_PER_WINDOW = 5
ROWS = 40
FEW, MANY = 3, 51
SLACK = 1.4
"""Rings are of sizes that are powers of two, and tables are swept when half of them is not used."""
ROOM = 320 << 10
"""Bytes that caches, interners and tables may take before they are swept at all."""

THREE = "FROM A [RANGE 10 SECONDS], B [RANGE 10 SECONDS], C [RANGE 10 SECONDS] "
ON = "WHERE A.k = B.k AND B.v = C.v"
PLANS = ("((A B) C)", "(A (B C))", "(A B C)")


def rows(push: int, source: str) -> pa.RecordBatch:
    """Rows of ever-new keys, strings and groups; ``v`` has few values."""
    draw = np.random.RandomState(17 * push + ord(source))
    times = np.sort(draw.randint(0, WINDOW // PUSHES_PER_WINDOW, ROWS))
    keys = draw.randint(0, ROWS, ROWS) + ROWS * push
    columns = [
        pa.array(times + push * WINDOW // PUSHES_PER_WINDOW),
        pa.array(keys),
        pa.array(draw.randint(0, 30, ROWS)),
        pa.array([f"a text that never comes again {key}" for key in keys]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def migrate(engine: Engine, push: int) -> None:
    engine.migrate(PLANS[push % len(PLANS)], strategy="jisc")


def drain(engine: Engine, push: int) -> None:
    engine.drain_events()
    engine.drain_dropped()


def nothing(engine: Engine, push: int) -> None:
    pass


FEATURES: dict[str, tuple[str, dict[str, Any], Callable[[Engine, int], None]]] = {
    "plain": (f"SELECT A.k AS k {THREE}{ON}", {}, nothing),
    "reference": (f"SELECT A.k AS k {THREE}{ON}", {"execution": "reference"}, nothing),
    "strings": (f"SELECT A.s AS a, C.s AS c {THREE}WHERE A.s = B.s AND B.v = C.v", {}, nothing),
    "feedback": (f"SELECT A.k AS k {THREE}{ON}", {"plan": "((A B) C)"}, nothing),
    "migrations": (f"SELECT A.s AS s {THREE}{ON}", {"plan": PLANS[0]}, migrate),
    "adaptation": (f"SELECT A.k AS k {THREE}{ON}", {"adapt": "on"}, nothing),
    "groups": (
        f"SELECT A.s AS s, COUNT(*) AS n, MIN(B.s) AS m, SUM(C.v) AS v {THREE}{ON} GROUP BY A.s",
        {},
        nothing,
    ),
    "rows and groups": (
        "SELECT A.s AS s, MAX(B.s) AS m FROM A [ROWS 50], B [ROWS 50] WHERE A.v = B.v GROUP BY A.s",
        {},
        nothing,
    ),
    "except": (
        "SELECT A.s AS s FROM A [RANGE 10 SECONDS] EXCEPT SELECT B.s AS s FROM B [RANGE 5 SECONDS]",
        {},
        nothing,
    ),
    "answers": (f"SELECT RSTREAM A.s AS s {THREE}{ON}", {}, nothing),
    "deaths": (f"SELECT DSTREAM A.s AS s {THREE}{ON}", {}, nothing),
    "shed": (
        f"SELECT A.k AS k {THREE}{ON}",
        {"overload": "shed", "limits": Limits(probes=40.0)},
        nothing,
    ),
    "defer": (
        f"SELECT A.k AS k {THREE}{ON}",
        {"overload": "defer", "limits": Limits(probes=40.0)},
        nothing,
    ),
    "dropped": (
        f"SELECT A.k AS k {THREE}{ON}",
        {"keep_dropped": True, "lateness": 0, "max_ahead": "1 DAY"},
        drain,
    ),
    "partitions": (
        "SELECT A.s AS s FROM A [ROWS 60], B [PARTITION BY v ROWS 4] WHERE A.v = B.v",
        {},
        nothing,
    ),
}


def used() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def run(name: str, look: Callable[[Engine, int], None]) -> None:
    """Push for many windows; ``look`` at the engine after each."""
    text, options, between = FEATURES[name]
    engine = Engine(parse(text, dict.fromkeys("ABC", SCHEMA)), **options)
    for push in range(MANY * PUSHES_PER_WINDOW):
        engine.push({source: rows(push, source) for source in engine.query.sources})
        between(engine, push)
        window, rest = divmod(push + 1, PUSHES_PER_WINDOW)
        if rest == 0:
            look(engine, window)


@pytest.mark.parametrize("name", FEATURES)
def test_fifty_windows_take_no_more_than_three(name: str) -> None:
    sizes: dict[int, tuple[int, int]] = {}

    def look(engine: Engine, window: int) -> None:
        if window in (FEW, MANY):
            sizes[window] = used(), engine.metrics()["state"]["bytes"]

    run(name, lambda engine, window: None)  # Modules and kernels are loaded when they are needed.
    tracemalloc.start()
    try:
        run(name, look)
    finally:
        tracemalloc.stop()
    (before, held_before), (after, held_after) = sizes[FEW], sizes[MANY]
    assert held_after <= SLACK * held_before + ROOM, sizes
    assert after - before <= max(0, held_after - held_before) + ROOM, sizes


def test_partitions_that_never_come_again_take_what_their_rows_do() -> None:
    """The last rows of every partition are alive for ever: memory is in proportion to them."""
    text = "SELECT A.v AS v FROM A [ROWS 10], B [PARTITION BY k ROWS 1] WHERE A.v = B.v"
    engine = Engine(parse(text, dict.fromkeys("AB", SCHEMA)))
    per_row = []
    for push in range(60):
        engine.push({source: rows(push, source) for source in "AB"})
        if push in (19, 59):
            state = engine.metrics()["state"]
            living = len(
                {int(k) for p in range(push + 1) for k in rows(p, "B").column(1).to_numpy()}
            )
            per_row.append(state["bytes"] / living)
    assert per_row[1] < 2 * per_row[0]


def test_a_change_of_plan_leaves_little_for_the_garbage_collector() -> None:
    """What is left in cycles is gone with the next look of the collector, and is not much."""
    engine = Engine(
        parse(f"SELECT A.k AS k {THREE}{ON}", dict.fromkeys("ABC", SCHEMA)), adapt="off"
    )
    sizes = []
    tracemalloc.start()
    try:
        for push in range(60):
            engine.push({source: rows(push, source) for source in "ABC"})
            migrate(engine, push)
            engine.push({})
            if push >= 20:
                sizes.append(used())
    finally:
        tracemalloc.stop()
    assert sizes[-1] - sizes[0] <= ROOM
