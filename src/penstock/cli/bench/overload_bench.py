"""``penstock bench overload``: what shedding keeps, for the CPU that it takes.

A chain of three streams in which a row leads to several results, in a process of its own time: as
it is (*exact*); with a part of its probes (``shed``, random rows, the default allocator); and with
a part of its rows, dropped at random before the engine sees them (*the door*, the floor that a
policy has to beat). All take turns, push by push, with the same rows. A figure is CPU time or
results against *exact*. The last column is what the door keeps for the same CPU, read between the
parts that were measured.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

import penstock

PLANS = {"tree": "((A B) C)", "mjoin": "(A B C)"}
SHARES = (0.8, 0.6, 0.4, 0.2)
_DOORS = (0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
_SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "x", "y")])
_SECONDS = 10
_WARM = _SECONDS + 2
"""Seconds of event time, one push each: the windows, and until these are full."""
_QUERY = (
    "SELECT A.id AS a, B.id AS b, C.id AS c "
    + "FROM "
    + ", ".join(f"{name} [RANGE {_SECONDS} SECONDS]" for name in "ABC")
    + " WHERE A.x = B.x AND B.y = C.y"
)


@dataclass
class _Run:
    """An engine, the part of probes or rows that it gets, and what came of it."""

    engine: penstock.Engine
    probes: float | None = None
    rows: float = 1.0
    seconds: float = 0.0
    results: int = 0
    made: int = 0
    """Probes so far, where they are counted."""
    chance: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))

    def push(self, batches: Mapping[str, pa.Table], full: int, counts: bool) -> None:
        """One push, for which *exact* needs ``full`` probes."""
        if self.rows < 1:
            kept = {n: self.chance.random(len(t)) < self.rows for n, t in batches.items()}
            begin = time.process_time()
            batches = {n: t.filter(pa.array(kept[n])) for n, t in batches.items()}
        else:
            begin = time.process_time()
        given = None if self.probes is None else self.probes * full
        answer = self.engine.push(batches, probes=given)
        if counts:
            self.seconds += time.process_time() - begin
            self.results += len(answer)


def overload_bench(plan: str, rows: int = 5_000, pushes: int = 40) -> dict[str, Any]:
    """The figures of one plan: ``rows`` per stream and push."""
    pa.set_cpu_count(1)
    query = penstock.parse(_QUERY, dict.fromkeys("ABC", _SCHEMA))

    def engine(**options: Any) -> penstock.Engine:
        return penstock.Engine(query, plan=plan, feedback="off", adapt="off", **options)

    def shedding() -> penstock.Engine:
        return engine(overload={"policy": "shed", "probes": 1e15})

    exact = _Run(engine())
    counting = _Run(shedding(), probes=1.0)
    shed = {share: _Run(shedding(), probes=share) for share in SHARES}
    doors = {share: _Run(engine(), rows=share) for share in _DOORS}
    chance = np.random.default_rng(7)
    for number in range(_WARM + pushes):
        batches = {name: _rows(chance, rows, number) for name in "ABC"}
        counting.push(batches, 1 << 50, False)
        before, counting.made = counting.made, counting.engine.metrics()["overload"]["probes"]
        full = counting.made - before
        for run in (exact, *shed.values(), *doors.values()):
            run.push(batches, full, number >= _WARM)
    found: dict[str, Any] = {"seconds": exact.seconds, "results": exact.results}
    for name, runs in (("shed", shed), ("door", doors)):
        found[name] = {
            share: (run.seconds / exact.seconds, run.results / exact.results)
            for share, run in runs.items()
        }
    return found


def _rows(chance: np.random.Generator, rows: int, second: int) -> pa.Table:
    columns = [
        np.arange(rows) + second * rows,
        np.sort(chance.integers(0, 1_000, rows)) + 1_000 * second,
        *chance.integers(0, 4 * rows, (2, rows)),
    ]
    return pa.table([pa.array(each, pa.int64()) for each in columns], schema=_SCHEMA)


def kept_at_the_door(found: Mapping[str, Any], seconds: float) -> float:
    """Results that the door keeps for so much CPU, both against *exact*."""
    points = np.array(sorted([(0.0, 0.0), (1.0, 1.0), *found["door"].values()]), np.float64)
    return float(np.interp(seconds, points[:, 0], points[:, 1]))


def show(figures: Mapping[str, Mapping[str, Any]]) -> None:
    """Print the figures as a table."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("plan", "probes", "CPU", "results", "the door, for that CPU"):
        table.add_column(heading, justify="left" if heading == "plan" else "right")
    for plan, found in figures.items():
        for share, (seconds, results) in found["shed"].items():
            door = kept_at_the_door(found, seconds)
            table.add_row(plan, f"{share:.0%}", f"{seconds:.2f}", f"{results:.2f}", f"{door:.2f}")
    console = Console(highlight=False)
    console.print("CPU and results against exact, in the same run\n")
    console.print(table)
