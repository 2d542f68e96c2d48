"""``penstock bench engine``: rounds over all configurations, and what comes out of them.

A round measures every configuration once, DuckDB among them, so that what disturbs the machine for
a while disturbs all of them. Rates are medians over the rounds, and a ratio compares two medians of
the same run. Peak memory is the largest over the rounds.

DuckDB's counterpart of the engine's state is what its process grows by while it joins.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import penstock
from penstock.cli.bench.duckdb_run import FORMS, INPUTS
from penstock.cli.bench.engine_run import FILLING
from penstock.cli.bench.machine import processor
from penstock.cli.bench.measure import measure
from penstock.cli.bench.report import markdown, print_report
from penstock.cli.bench.workloads import SEED, WORKLOADS, Workload
from penstock.errors import OptionError, PenstockError

BATCHES = (1, 10, 100, 1_000, 10_000, 100_000)
PLANS = ("tree", "mjoin", "tree+jit")
"""With demand feedback after a plus; without, all partial results of a tree are stored."""


@dataclass(frozen=True)
class Settings:
    """What to measure."""

    workloads: tuple[Workload, ...]
    batches: tuple[int, ...]
    plans: tuple[str, ...]
    extra_plans: tuple[str, ...]
    rounds: int
    seconds: float
    """CPU seconds for a configuration that does not run through the whole input."""

    @classmethod
    def of(
        cls,
        workloads: Sequence[str] | None = None,
        batches: Sequence[int] | None = None,
        plans: Sequence[str] | None = None,
        extra_plans: Sequence[str] = (),
        rows: int | None = None,
        rounds: int | None = None,
        quick: bool = False,
    ) -> Settings:
        """Check every choice, and say what exists."""
        for name in workloads or ():
            if name not in WORKLOADS:
                raise OptionError(f"no workload {name!r}; choose from: {', '.join(WORKLOADS)}")
        for name in plans or ():
            if name not in PLANS:
                raise OptionError(
                    f"no plan {name!r}; choose from: {', '.join(PLANS)}, or give one in the "
                    "notation with --plan"
                )
        for number in (*(batches or ()), *(x for x in (rows, rounds) if x is not None)):
            if number < 1:
                raise OptionError(f"batches, rows and rounds are 1 or more, not {number}")
        chosen = [WORKLOADS[name] for name in workloads or WORKLOADS]
        if quick:
            chosen = [replace(w, rows=min(w.rows, 5 * w.window // 2)) for w in chosen]
        if rows is not None:
            chosen = [replace(w, rows=rows) for w in chosen]
        return cls(
            workloads=tuple(chosen),
            batches=tuple(batches or ((1, 100, 10_000) if quick else BATCHES)),
            plans=tuple(plans if plans is not None else () if extra_plans else PLANS),
            extra_plans=tuple(extra_plans),
            rounds=rounds or (1 if quick else 3),
            seconds=0.3 if quick else 0.7,
        )


@dataclass
class Configuration:
    """One line of the report, with what every round measured."""

    workload: Workload
    name: str
    plan: str
    feedback: str
    batch: int
    rounds: list[dict[str, Any]] = field(default_factory=list)

    @property
    def tuples_per_second(self) -> float:
        return _median_rate(self.rounds)

    @property
    def push_us(self) -> float:
        """CPU microseconds per push."""
        return float(statistics.median(1e6 * m["cpu_seconds"] / m["pushes"] for m in self.rounds))

    def largest(self, value: str) -> int:
        return max(int(m[value]) for m in self.rounds)


@dataclass
class Offline:
    """DuckDB on one workload: its variants in the first round, the best one after."""

    workload: Workload
    variants: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def best(self) -> tuple[str, str]:
        return min(
            self.variants,
            key=lambda v: statistics.median(m["cpu_seconds"] for m in self.variants[v]),
        )

    @property
    def rounds(self) -> list[dict[str, Any]]:
        return self.variants[self.best]

    @property
    def tuples_per_second(self) -> float:
        return _median_rate(self.rounds)

    @property
    def growth_bytes(self) -> int:
        return max(1, *(int(m["peak_bytes"] - m["resident_before_bytes"]) for m in self.rounds))

    @property
    def peak_bytes(self) -> int:
        return max(int(m["peak_bytes"]) for m in self.rounds)

    @property
    def results(self) -> int:
        return int(self.rounds[0]["results"])


class EngineBench:
    """Runs the rounds of one benchmark and reports them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._offline = {w.name: Offline(w) for w in settings.workloads}
        self._configurations = [
            Configuration(workload, name, plan, feedback, batch)
            for workload in settings.workloads
            for name, plan, feedback in self._plans_of(workload)
            for batch in settings.batches
        ]
        self._start = time.monotonic()
        self._done = 0

    def _plans_of(self, workload: Workload) -> list[tuple[str, str, str]]:
        """Name, plan and feedback of what is measured."""
        plans = []
        for name in self._settings.plans:
            shape, _, feedback = name.partition("+")
            plans.append((name, workload.plans[shape], feedback or "off"))
        return plans + [(plan, plan, "off") for plan in self._settings.extra_plans]

    def run(self, json_file: str | None, as_markdown: bool = False) -> int:
        """Measure, print, and write ``json_file``; exit code 1 if any answer was wrong."""
        target = None if json_file is None else _writable(json_file)
        _check_duckdb()
        self._progress(
            f"{len(self._configurations)} configurations, rounds: {self._settings.rounds}"
        )
        self._check_plans()
        with tempfile.TemporaryDirectory() as folder:
            wrong = self._measure(Path(folder))
        if target is not None:
            target.write_text(json.dumps(self._to_json(), indent=1) + "\n")
        if as_markdown:
            print(markdown(self._configurations, self._offline))
        else:
            print_report(self._configurations, self._offline)
        for line in wrong:
            print(f"penstock: {line}", file=sys.stderr)
        return 1 if wrong else 0

    def _check_plans(self) -> None:
        """A plan that does not fit is found before the first minute has gone."""
        for workload in self._settings.workloads:
            small = replace(workload, rows=1)
            schemas = {name: table.schema for name, table in small.tables().items()}
            query = penstock.parse(workload.query, schemas=schemas)
            for _, plan, feedback in self._plans_of(workload):
                penstock.Engine(query, plan=plan, feedback=feedback)

    def _measure(self, folder: Path) -> list[str]:
        wrong: dict[str, None] = {}
        expected = {}
        for workload in self._settings.workloads:
            self._progress(f"{workload.name}: the answer by DuckDB")
            file = folder / f"{workload.name}.npy"
            measure({"kind": "births", "workload": workload.to_json(), "file": str(file)})
            expected[workload.name] = np.load(file)
        for number in range(self._settings.rounds):
            for workload in self._settings.workloads:
                self._measure_offline(workload, number)
                for configuration in self._configurations:
                    if configuration.workload is not workload:
                        continue
                    measured = self._measure_engine(configuration, number)
                    answer = int(expected[workload.name][measured["until"]])
                    if measured["results"] != answer:
                        wrong[
                            f"wrong answer: {workload.name} {configuration.name}, batches of "
                            f"{configuration.batch:,}: {measured['results']:,} results, "
                            f"DuckDB has {answer:,}"
                        ] = None
        return list(wrong)

    def _measure_offline(self, workload: Workload, number: int) -> None:
        offline = self._offline[workload.name]
        variants = [(f, i) for f in FORMS for i in INPUTS] if number == 0 else [offline.best]
        for form, source in variants:
            measured = measure(
                {
                    "kind": "duckdb",
                    "workload": workload.to_json(),
                    "form": form,
                    "source": source,
                }
            )
            offline.variants.setdefault((form, source), []).append(measured)
            self._progress(
                f"round {number + 1}, {workload.name}, DuckDB ({form}, {source}): {_rate(measured)}"
            )

    def _measure_engine(self, configuration: Configuration, number: int) -> dict[str, Any]:
        whole = configuration.batch >= FILLING
        measured = measure(
            {
                "kind": "engine",
                "workload": configuration.workload.to_json(),
                "plan": configuration.plan,
                "feedback": configuration.feedback,
                "batch": configuration.batch,
                "seconds": None if whole else self._settings.seconds,
            }
        )
        configuration.rounds.append(measured)
        self._done += 1
        self._progress(
            f"round {number + 1}, {configuration.workload.name}, {configuration.name}, "
            f"batches of {configuration.batch:,}: {_rate(measured)}"
        )
        return measured

    def _progress(self, text: str) -> None:
        total = len(self._configurations) * self._settings.rounds
        share = f"{100 * self._done // max(1, total):3d} %"
        seconds = int(time.monotonic() - self._start)
        print(f"[{share} {seconds:4d} s] {text}", file=sys.stderr, flush=True)

    def _to_json(self) -> dict[str, Any]:
        return {
            "benchmark": "engine",
            "penstock": penstock.__version__,
            "python": platform.python_version(),
            "libraries": _versions(),
            "machine": {
                "system": platform.system(),
                "processor": processor(),
                "cores": os.cpu_count(),
            },
            "seed": SEED,
            "workloads": [w.to_json() for w in self._settings.workloads],
            "duckdb": [
                {"workload": name, "form": form, "input": source, "rounds": rounds}
                for name, offline in self._offline.items()
                for (form, source), rounds in offline.variants.items()
            ],
            "engine": [self._line(c) for c in self._configurations],
        }

    def _line(self, configuration: Configuration) -> dict[str, Any]:
        offline = self._offline[configuration.workload.name]
        rate = configuration.tuples_per_second
        return {
            "workload": configuration.workload.name,
            "plan": configuration.name,
            "notation": configuration.plan,
            "feedback": configuration.feedback,
            "batch": configuration.batch,
            "tuples_per_cpu_second": rate,
            "rate_to_duckdb": rate / offline.tuples_per_second,
            "cpu_us_per_push": configuration.push_us,
            "state_bytes": configuration.largest("state_bytes"),
            "state_to_duckdb": configuration.largest("state_bytes") / offline.growth_bytes,
            "peak_bytes": configuration.largest("peak_bytes"),
            "peak_to_duckdb": configuration.largest("peak_bytes") / offline.peak_bytes,
            "rounds": configuration.rounds,
        }


def _median_rate(rounds: Sequence[dict[str, Any]]) -> float:
    return float(statistics.median(m["tuples"] / max(m["cpu_seconds"], 1e-9) for m in rounds))


def _rate(measured: dict[str, Any]) -> str:
    return f"{_median_rate([measured]) / 1e6:.3g} M tuples/s"


def _check_duckdb() -> None:
    try:
        import duckdb  # noqa: F401
    except ImportError:
        raise PenstockError(
            "the benchmark compares with DuckDB, which is not installed: "
            "pip install 'penstock[bench]'"
        ) from None


def _writable(name: str) -> Path:
    """A mistyped folder is found before the measurement, not after it."""
    target = Path(name)
    try:
        target.touch()
    except OSError as error:
        raise OptionError(f"cannot write {name}: {error.strerror}") from None
    return target


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("duckdb", "numba", "numpy", "pyarrow")}
