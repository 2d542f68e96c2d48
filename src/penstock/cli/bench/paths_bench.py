"""``penstock bench paths``: what it costs to have something beside a plain push.

One query (W1, a chain of three streams) is run in a dozen forms side by side in one process: as it
is, with a host's clock, under limits that are never short, with NULLs, strings, late rows, and so
on. The forms take turns, a block of pushes each. A figure is the median over the rounds of the CPU
time of a form against that of the plain form in the same round: whatever else the machine does is
done to both.

A figure says how much dearer a push is, not how many rows it has to do with. Forms that do more
than the plain one by their nature (a static relation more, results that are held until they die)
are there to be watched.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

import penstock
from penstock.cli.bench.engine_run import FILLING, load_kernels
from penstock.cli.bench.push_child import pushes
from penstock.cli.bench.workloads import WORKLOADS, Workload

Tables = dict[str, pa.RecordBatch]

BATCHES = (10_000, 100, 1)
PUSHES = {10_000: 8, 100: 100, 1: 256}
"""Pushes of a block, by their size: some milliseconds of work."""
PLAN = "((A B) C)"
_NULLS = 0.02
_LATE = 0.02


@dataclass(frozen=True)
class Form:
    """One way to ask for W1, and what differs from the plain way."""

    name: str
    change: Callable[[Workload, Tables], Tables] = lambda _, tables: tables
    query: Callable[[str], str] = lambda text: text
    options: Mapping[str, Any] = field(default_factory=dict)
    is_hosted: bool = False
    """Whether the host gives the clock: newest event times and the watermark."""
    static: Callable[[Workload], Tables] | None = None
    plan: str = PLAN


def _nulls(workload: Workload, tables: Tables) -> Tables:
    return _with_keys(tables, lambda column, chance: _some_null(column, chance))


def _some_null(column: pa.Array, chance: np.random.Generator) -> pa.Array:
    return pa.array(column.to_numpy(), mask=chance.random(len(column)) < _NULLS)


def _strings(workload: Workload, tables: Tables) -> Tables:
    return _with_keys(tables, lambda column, _: column.cast(pa.string()))


def _with_keys(
    tables: Tables, made_of: Callable[[pa.Array, np.random.Generator], pa.Array]
) -> Tables:
    """The tables with another column ``x``, the key of A and B."""
    changed = {}
    for number, (name, table) in enumerate(tables.items()):
        place = table.schema.get_field_index("x")
        if place >= 0:
            column = made_of(table.column(place), np.random.default_rng(number))
            table = table.set_column(place, "x", column)
        changed[name] = table
    return changed


def _some_late(workload: Workload, tables: Tables) -> Tables:
    """Some rows are as old as two windows."""
    changed = {}
    for number, (name, table) in enumerate(tables.items()):
        place = table.schema.get_field_index("ts")
        times = np.array(table.column(place))
        late = np.random.default_rng(number).random(len(times)) < _LATE
        times[late] = np.maximum(0, times[late] - 2 * workload.window)
        changed[name] = table.set_column(place, "ts", pa.array(times))
    return changed


def _lookup(workload: Workload) -> Tables:
    values = np.arange(workload.domains["x"], dtype=np.int64)
    return {"S": pa.RecordBatch.from_pydict({"x": values, "z": values % 97})}


def _selecting(what: str) -> Callable[[str], str]:
    return lambda text: f"SELECT {what} FROM {text.split(' FROM ')[1]}"


FORMS = (
    Form("plain"),
    Form("a host's clock", is_hosted=True),
    Form("Limits(cpu=1), never short", options={"limits": penstock.Limits(cpu=1)}),
    Form("Limits(memory), never reached", options={"limits": penstock.Limits(memory="8GB")}),
    Form(
        "Limits(probes), shed, never short",
        options={"limits": penstock.Limits(probes=1e9), "overload": "shed"},
    ),
    Form(
        "FRESHNESS, never stale",
        query=lambda text: text.replace("SECONDS]", "SECONDS] FRESHNESS 10 DAYS"),
    ),
    Form("2 % NULL keys", change=_nulls),
    Form("a string key", change=_strings),
    Form("a residual predicate", query=lambda text: f"{text} AND (A.id + B.id > C.id OR A.id < 0)"),
    Form("COUNT(*)", query=_selecting("COUNT(*) AS n")),
    Form("a computed column", query=_selecting("A.id + B.id AS ab, C.id AS c")),
    Form("2 % late rows", change=_some_late),
    Form(
        "a static relation",
        query=lambda text: text.replace(" WHERE ", ", S WHERE A.x = S.x AND "),
        static=_lookup,
        plan="((A S B) C)",
    ),
    Form(
        "ROWS windows",
        query=lambda text: text.replace("RANGE", "ROWS").replace(" MILLISECONDS]", "]"),
    ),
    Form("DSTREAM", query=lambda text: text.replace("SELECT", "SELECT DSTREAM")),
)
"""The plain one first."""


class _Run:
    """A form that runs: an engine whose windows are full, and what it gets next."""

    def __init__(self, form: Form, workload: Workload, feedback: str) -> None:
        self.form = form
        self._tables = form.change(workload, workload.tables())
        schemas = {name: table.schema for name, table in self._tables.items()}
        static = {} if form.static is None else form.static(workload)
        schemas |= {name: table.schema for name, table in static.items()}
        event_time = dict.fromkeys(self._tables, "ts")
        query = penstock.parse(form.query(workload.query), schemas, event_time=event_time)
        self.engine = penstock.Engine(query, plan=form.plan, feedback=feedback, **form.options)
        self._place = 0
        self._newest: dict[str, int] = {}
        if static:
            self.engine.push(static)
        self.fill((workload.window + workload.window // 10) * len(self._tables))

    def fill(self, rows: int) -> None:
        """Push so many rows, in large pushes."""
        for push in self._next(FILLING, -(-rows // FILLING)):
            self.engine.push(push, *self._told(push))

    def block(self, batch: int) -> float:
        """CPU seconds of a push, in the mean over a block of pushes of ``batch`` rows."""
        block = [(push, self._told(push)) for push in self._next(batch, PUSHES[batch])]
        begin = time.process_time()
        for push, told in block:
            self.engine.push(push, *told)
        return (time.process_time() - begin) / len(block)

    def _next(self, batch: int, count: int) -> list[Tables]:
        end = self._place + batch * count
        if end > len(self._tables) * len(next(iter(self._tables.values()))):
            raise penstock.PenstockError("the input is too short for so many rounds")
        block = list(pushes(self._tables, batch, self._place, end))
        self._place = end
        return block

    def _told(self, push: Tables) -> tuple[Any, ...]:
        """What the host says about time with a push: watermark and newest event times."""
        if not self.form.is_hosted:
            return ()
        for name, table in push.items():
            self._newest[name] = table.column(1)[len(table) - 1].as_py()
        mark = min(self._newest.values()) if len(self._newest) == len(self._tables) else None
        return mark, dict(self._newest)

    def ways(self) -> str:
        """Which way pushes went."""
        execution = self.engine.metrics()["execution"]
        reasons = ", ".join(f"{why}: {n}" for why, n in execution["reasons"].items())
        told = f"{execution['compiled']} compiled, {execution['reference']} reference"
        return f"{told} ({reasons})" if reasons else told


def paths_bench(
    batches: tuple[int, ...] = BATCHES,
    rounds: int = 15,
    feedbacks: tuple[str, ...] = ("off", "jit"),
    names: tuple[str, ...] | None = None,
) -> dict[str, Any]:
    """The figures: by feedback, form and size of pushes."""
    pa.set_cpu_count(1)
    workload = WORKLOADS["W1"]
    forms = [f for f in FORMS if names is None or f is FORMS[0] or any(n in f.name for n in names)]
    found: dict[str, Any] = {}
    for feedback in feedbacks:
        load_kernels(workload, PLAN, feedback)
        runs = [_Run(form, workload, feedback) for form in forms]
        for run in runs:  # What is written down or loaded at the first push of a size.
            for batch in batches:
                run.block(batch)
        gc.collect()
        gc.freeze()
        figures: dict[str, Any] = {form.name: {"ratios": {}, "seconds": {}} for form in forms}
        for batch in batches:
            taken: dict[str, list[float]] = {form.name: [] for form in forms}
            for _ in range(rounds):
                for run in runs:
                    taken[run.form.name].append(run.block(batch))
            plain = taken[forms[0].name]
            for name, each in taken.items():
                ratios = [mine / theirs for mine, theirs in zip(each, plain, strict=True)]
                figures[name]["ratios"][batch] = statistics.median(ratios)
                figures[name]["seconds"][batch] = statistics.median(each)
        for run in runs:
            figures[run.form.name]["ways"] = run.ways()
        found[feedback] = figures
        del runs
        gc.unfreeze()
        gc.collect()
    return found


def show(found: Mapping[str, Any]) -> None:
    """Print the figures as tables."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    for feedback, figures in found.items():
        table = Table(box=None, pad_edge=False, title_justify="left")
        table.title = f"CPU of a push against that of a plain push, feedback {feedback}"
        table.add_column("")
        sizes = list(next(iter(figures.values()))["ratios"])
        for size in sizes:
            table.add_column(f"{size:,} rows", justify="right")
        table.add_column("which way")
        for name, each in figures.items():
            cells = [
                f"{1e6 * each['seconds'][size]:.0f} µs"
                if name == FORMS[0].name
                else f"{each['ratios'][size]:.2f}"
                for size in sizes
            ]
            table.add_row(name, *cells, each["ways"])
        console.print(table)
        console.print()
