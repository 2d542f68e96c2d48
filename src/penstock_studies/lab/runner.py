"""Measures the points of experiments, one at a time, and tells how far it is.

A point that the store has is not measured again, so a run that was interrupted goes on where it
stopped. A point that fails, or exceeds its time or memory, is told with its reason and the run goes
on; it is tried again next time.

The time left is what the points that remain are said to take, times how much longer than said the
points of this run have taken so far.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from penstock_studies.lab.experiment import Experiment, Point, Row, Scale
from penstock_studies.lab.store import Measured, Store


@dataclass(frozen=True)
class Bounds:
    """Of one point."""

    seconds: float
    megabytes: int = 10_000
    """Of address space; what is really used is a fraction."""


BOUNDS: Mapping[Scale, Bounds] = {"quick": Bounds(600.0), "full": Bounds(7200.0)}


def in_a_process(point: Point, seed: int, bounds: Bounds) -> tuple[list[Row] | None, str]:
    """Measure by a worker: the rows, or None and the reason."""
    request = {
        "function": point.function,
        "parameters": dict(point.parameters),
        "seed": seed,
        "megabytes": bounds.megabytes,
    }
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "penstock_studies.lab.worker"],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            timeout=bounds.seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, f"stopped after {bounds.seconds:g} s"
    if ended.returncode:
        lines = [line for line in ended.stderr.splitlines() if line.strip()]
        return None, lines[-1] if lines else f"ended with code {ended.returncode}"
    rows: list[Row] = json.loads(ended.stdout)
    return rows, ""


@dataclass(frozen=True)
class Bench:
    """Where, by which clocks and how is measured."""

    machine: Mapping[str, str]
    clock: Callable[[], float]
    today: Callable[[], str]
    measure: Callable[[Point, int, Bounds], tuple[list[Row] | None, str]]
    """The rows, or None and the reason; :func:`in_a_process`."""


@dataclass(frozen=True)
class Progress:
    """A point is about to be measured, is done or has failed."""

    experiment: str
    point: str
    number: int
    of: int
    state: Literal["running", "done", "failed"]
    left: float
    """Seconds until the end of the run."""
    seconds: float = 0.0
    """That the point took."""
    reason: str = ""


@dataclass(frozen=True)
class Outcome:
    """The points of an experiment that were measured, and why the others were not."""

    experiment: Experiment
    scale: Scale
    seed: int
    measured: tuple[Measured, ...]
    failures: Mapping[str, str] = field(default_factory=dict)
    """By the label of the point."""

    @property
    def rows(self) -> list[Row]:
        return [row for each in self.measured for row in each.rows]


def run(
    experiments: Sequence[Experiment],
    scale: Scale,
    seed: int,
    store: Store,
    bench: Bench,
    tell: Callable[[Progress], None] = lambda progress: None,
    bounds: Bounds | None = None,
    again: bool = False,
) -> list[Outcome]:
    """Measure what the store does not have; with ``again``, everything."""
    bounds = bounds or BOUNDS[scale]
    work: dict[str, tuple[str, Point]] = {}
    for experiment in experiments:
        for point in experiment.points(scale):
            if again or store.get(point, seed) is None:
                work.setdefault(_key(point), (experiment.name, point))
    wanted = list(work.values())
    failures: dict[str, str] = {}
    spent, said = 0.0, 0.0
    for number, (name, point) in enumerate(wanted, start=1):
        left = sum(each.seconds for _, each in wanted[number - 1 :])
        pace = spent / said if said else 1.0
        tell(Progress(name, point.label, number, len(wanted), "running", pace * left))
        start = bench.clock()
        rows, reason = bench.measure(point, seed, bounds)
        took = bench.clock() - start
        spent, said = spent + took, said + point.seconds
        if rows is None:
            failures[_key(point)] = reason
        else:
            measured = Measured(
                point.function,
                dict(point.parameters),
                seed,
                store.code,
                bench.today(),
                round(took, 1),
                dict(bench.machine),
                rows,
            )
            store.put(point, measured)
        left = spent / said * (left - point.seconds)
        state: Literal["done", "failed"] = "failed" if rows is None else "done"
        tell(Progress(name, point.label, number, len(wanted), state, left, took, reason))
    return [collect(each, scale, seed, store, failures) for each in experiments]


def collect(
    experiment: Experiment,
    scale: Scale,
    seed: int,
    store: Store,
    failures: Mapping[str, str] | None = None,
) -> Outcome:
    """What the store has of an experiment; ``failures`` says why it has no more."""
    found = [(point, store.get(point, seed)) for point in experiment.points(scale)]
    known = failures or {}
    return Outcome(
        experiment,
        scale,
        seed,
        tuple(each for _, each in found if each is not None),
        {
            point.label: known.get(_key(point), "not measured yet")
            for point, each in found
            if each is None or _key(point) in known
        },
    )


def _key(point: Point) -> str:
    return json.dumps([point.function, dict(point.parameters)], sort_keys=True)
