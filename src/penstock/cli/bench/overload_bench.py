"""``penstock bench overload``: what shedding keeps, for the CPU that it takes.

Seven kinds of work, each with a budget of 80, 60, 40 and 20 % of the CPU that *exact* takes: with
``overload="shed"`` and ``cpu=…``, everything else by default; and, as the floor that a policy has
to beat, with a part of the rows dropped at random before the engine sees them (*the door*). All
take turns, push by push, with the same rows. A figure is CPU time or results against *exact*. The
last column is what the door keeps for the same CPU, read between the parts that were measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import penstock

SHARES = (0.8, 0.6, 0.4, 0.2)
_DOORS = (0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
_SECONDS = 10
_WARM = _SECONDS + 2
"""Seconds of event time, one push each: the windows, and until these are full."""
_TO_KNOW = 20
"""Pushes of full windows from which it is known what *exact* takes, while the doors take turns with
it: four pushes gave a budget of 1.09 of it where 0.8 was meant."""

Keys = Callable[[np.random.Generator, int], NDArray[np.int64]]
"""So many keys."""


def _uniform(share: float) -> Keys:
    """Keys from a domain of ``share`` times the rows of a push."""
    return lambda chance, rows: chance.integers(0, max(1, int(share * rows)), rows)


def _skewed(chance: np.random.Generator, rows: int) -> NDArray[np.int64]:
    """Half of the rows have one of a thousandth of the keys, the others are spread widely."""
    heavy = chance.integers(0, max(1, rows // 40), rows)
    light = rows + chance.integers(0, 40 * rows, rows)
    return np.where(chance.random(rows) < 0.1, heavy, light)


@dataclass(frozen=True)
class Workload:
    """A plan, its predicates, and keys. Each stream has the columns x and y."""

    plan: str
    where: str
    keys: Keys
    part: float = 1.0
    """Of the rows of a push that others have."""

    @property
    def streams(self) -> str:
        return "".join(sorted(each for each in self.plan if each.isalpha()))

    @property
    def query(self) -> penstock.JoinGraph:
        chosen = ", ".join(f"{name}.id AS {name.lower()}" for name in self.streams)
        windows = ", ".join(f"{name} [RANGE {_SECONDS} SECONDS]" for name in self.streams)
        text = f"SELECT {chosen} FROM {windows} WHERE {self.where}"
        return penstock.parse(text, dict.fromkeys(self.streams, _SCHEMA))


WORKLOADS = {
    "chain": Workload("((A B) C)", "A.x = B.x AND B.y = C.y", _uniform(4)),
    "star, one mjoin": Workload("(A B C)", "A.x = B.x AND A.y = C.y", _uniform(4)),
    "bushy": Workload("((A B) (C D))", "A.x = B.x AND B.y = C.y AND C.x = D.x", _uniform(6)),
    "skewed keys": Workload("((A B) C)", "A.x = B.x AND B.y = C.y", _skewed),
    "mostly inserts": Workload("((A B) C)", "A.x = B.x AND B.y = C.y", _uniform(200)),
    "pair": Workload("(A B)", "A.x = B.x", _uniform(50)),
    "small pushes": Workload("(A B)", "A.x = B.x", _uniform(3), part=0.3),
}
_SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "x", "y")])


@dataclass
class _Run:
    """An engine, the part of rows that it gets, and what came of it."""

    engine: penstock.Engine
    rows: float = 1.0
    seconds: float = 0.0
    results: int = 0
    chance: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))

    def push(self, batches: Mapping[str, pa.Table], counts: bool) -> None:
        """One push; at the door rows are drawn before the clock starts."""
        kept = {n: pa.array(self.chance.random(len(t)) < self.rows) for n, t in batches.items()}
        begin = time.process_time()
        if self.rows < 1:
            batches = {n: t.filter(kept[n]) for n, t in batches.items()}
        answer = self.engine.push(batches)
        if counts:
            self.seconds += time.process_time() - begin
            self.results += len(answer)


def overload_bench(workload: Workload, rows: int = 5_000, pushes: int = 40) -> dict[str, Any]:
    """The figures of one kind of work: ``rows`` per stream and push."""
    pa.set_cpu_count(1)
    query = workload.query

    def engine(**options: Any) -> penstock.Engine:
        return penstock.Engine(query, plan=workload.plan, feedback="off", adapt="off", **options)

    exact = _Run(engine())
    doors = {share: _Run(engine(), share) for share in _DOORS}
    chance, count = np.random.default_rng(7), max(1, round(workload.part * rows))
    known = _WARM + _TO_KNOW
    made = [
        {name: _rows(chance, workload.keys, count, number) for name in workload.streams}
        for number in range(known + _WARM + pushes)
    ]
    for number, batches in enumerate(made[:known]):
        for run in (exact, *doors.values()):
            run.push(batches, run is exact and number >= _WARM)
    each = exact.seconds / _TO_KNOW
    exact.seconds, exact.results = 0.0, 0
    shed = {
        share: _Run(engine(overload={"policy": "shed", "cpu": share * each})) for share in SHARES
    }
    for number, batches in enumerate(made[known:]):
        for run in (exact, *shed.values(), *doors.values()):
            run.push(batches, number >= _WARM)
    found: dict[str, Any] = {
        "seconds": exact.seconds,
        "results": exact.results,
        "budget": each * pushes / exact.seconds,
    }
    for name, runs in (("shed", shed), ("door", doors)):
        found[name] = {
            share: (run.seconds / exact.seconds, run.results / exact.results)
            for share, run in runs.items()
        }
    found["lost"] = {
        share: (
            run.engine.metrics()["overload"]["lost"],
            run.engine.metrics()["results"],
        )
        for share, run in shed.items()
    }
    return found


def _rows(chance: np.random.Generator, keys: Keys, rows: int, second: int) -> pa.Table:
    columns = [
        np.arange(rows) + second * rows,
        np.sort(chance.integers(0, 1_000, rows)) + 1_000 * second,
        keys(chance, rows),
        keys(chance, rows),
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
    for heading in ("work", "budget", "CPU", "results", "the door, for that CPU"):
        table.add_column(heading, justify="left" if heading == "work" else "right")
    for name, found in figures.items():
        for share, (seconds, results) in found["shed"].items():
            door = kept_at_the_door(found, seconds)
            budget = share * found["budget"]
            table.add_row(name, f"{budget:.2f}", f"{seconds:.2f}", f"{results:.2f}", f"{door:.2f}")
    console = Console(highlight=False)
    console.print("CPU and results against exact, in the same run\n")
    console.print(table)
