"""A limit on CPU against the clock on the wall: rows arrive as time passes, and CPU is counted.

A chain of three streams is fed by the wall clock: every tenth of a second come the rows of that
time, with event times that are the clock's. Without a limit the engine needs some share of a core;
limits are set below and above that. CPU is what the thread spends in pushes, measured from
outside, over the seconds after the windows are full. Within a tenth above its limit, or flagged:
in every push at which the last second has cost more than that, ``exceeded`` must have ``cpu``.

``exact`` has plans alone to keep a limit with, so a limit below its need must break and be told;
``shed`` leaves work out and must keep it.
"""

from __future__ import annotations

import argparse
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import penstock
from penstock_studies.text_table import heading, text_table

ABOUT = "a CPU limit paced by the wall clock: measured share of a core, held or flagged"
TOLERATED = 1.1
"""Times the limit that may be used."""
SHARES = (0.4, 0.7, 1.3, 2.0)
"""Limits, in times of what the engine needs without one."""
TICKS = 10
"""Pushes per second of the clock."""
RATE = 150_000
"""Rows per second of each stream."""
WINDOW = 1
"""Seconds."""
SETTLING = 2.5
"""Seconds that are not counted: windows fill, and a budget is found."""

_SCHEMA = pa.schema([("ts", pa.int64()), ("x", pa.int64()), ("y", pa.int64())])
_VALUES = 75_000
"""Values of each key: a row finds two partners in a window."""


@dataclass
class Paced:
    """What a run used."""

    cpu: float = 0.0
    """CPU seconds in pushes per second of the clock."""
    most: float = 0.0
    """The same of the second that cost most."""
    over: int = 0
    """Pushes after which the last second had cost more than tolerated."""
    untold: int = 0
    """Those of them in which the limit was not said to be exceeded."""
    pushes: int = 0
    results: int = 0
    behind: float = 0.0
    """Seconds that the last push came late."""


def query() -> penstock.JoinGraph:
    window = f"[RANGE {WINDOW} SECONDS]"
    return penstock.parse(
        f"SELECT A.ts AS a, B.ts AS b, C.ts AS c FROM A {window}, B {window}, C {window} "
        "WHERE A.x = B.x AND B.y = C.y",
        schemas=dict.fromkeys("ABC", _SCHEMA),
    )


def paced(
    engine: penstock.Engine,
    limit: float | None,
    seconds: float,
    seed: int,
    rate: int = RATE,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    cpu_clock: Callable[[], float] = time.thread_time,
) -> Paced:
    """Feed ``engine`` for ``seconds`` of the clock."""
    chance = np.random.default_rng(seed)
    found = Paced()
    last: deque[tuple[float, float]] = deque()
    spent = 0.0
    begin = clock()
    counted_from: float | None = None
    arrived = now = 0.0
    while now < seconds:
        tick = (int(now * TICKS) + 1) / TICKS
        sleep(max(0.0, begin + tick - clock()))
        now = clock() - begin
        batches = _arrived(chance, arrived, now, rate)
        arrived = now
        start = cpu_clock()
        results = engine.push(batches).num_rows
        took = cpu_clock() - start
        found.behind = max(0.0, clock() - begin - now - 1 / TICKS)
        last.append((now, took))
        while last[0][0] <= now - 1.0 + 0.5 / TICKS:
            last.popleft()
        if now < SETTLING:
            continue
        if counted_from is None:
            # This push is of the time before.
            counted_from = now
            continue
        spent += took
        found.pushes += 1
        found.results += results
        share = sum(each for _, each in last)
        found.most = max(found.most, share)
        found.cpu = spent / (now - counted_from)
        if limit is not None and share > TOLERATED * limit:
            found.over += 1
            found.untold += "cpu" not in engine.metrics()["control"]["exceeded"]
    return found


def _arrived(
    chance: np.random.Generator, since: float, now: float, rate: int
) -> dict[str, pa.Table]:
    """The rows of the time from ``since`` to ``now``."""
    first, last = int(since * rate), int(now * rate)
    times = np.arange(first, last) * 1000 // rate
    return {
        name: pa.table(
            [times, *(chance.integers(0, _VALUES, last - first) for _ in range(2))],
            schema=_SCHEMA,
        )
        for name in "ABC"
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds", type=float, default=6.0, metavar="S", help="of each run (default: 6)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="default: 1")


def run(options: argparse.Namespace) -> bool:
    """Print the table; whether every limit was kept or told, and kept by ``shed``."""
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    try:
        print(heading("pace", options.seed))
        paced(penstock.Engine(query()), None, 1.0, options.seed)  # Kernels are loaded.
        free = paced(penstock.Engine(query()), None, options.seconds, options.seed)
        rows = [["no limit", "", None, free.cpu, None, None, None, 100.0, ""]]
        holds = True
        for policy in ("exact", "shed"):
            for share in SHARES:
                limit = share * free.cpu
                engine = penstock.Engine(
                    query(), limits=penstock.Limits(cpu=limit), overload=policy
                )
                used = paced(engine, limit, options.seconds, options.seed)
                kept = used.cpu <= TOLERATED * limit
                holds &= used.untold == 0 and (kept or (policy == "exact" and used.over > 0))
                rows.append(
                    [
                        policy, f"{share:g} times the need", limit, used.cpu, used.cpu / limit,
                        used.over, used.untold,
                        100 * used.results / max(1, used.pushes) * free.pushes / free.results,
                        "held" if kept else "flagged" if used.over > used.untold else "MISSED",
                    ]
                )  # fmt: skip
    finally:
        pa.set_cpu_count(threads)
    heads = ["policy", "limit", "of a core", "used", "used / limit", "over", "untold"]
    print(text_table([*heads, "results %", ""], rows))
    print(
        f"used: CPU seconds in pushes per second of the clock; over: pushes after which the last "
        f"second had cost more than {TOLERATED:g} times the limit; untold: not flagged in that push"
    )
    return holds
