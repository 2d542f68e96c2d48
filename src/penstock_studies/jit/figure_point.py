"""One point of Figures 10 to 17 of JIT: every system on one setting, as rows.

The literal form is the paper's own algorithm, with nested loops; the engine asks *before* it
produces, with nested loops and with hash joins. The planner's best plan is what
:func:`penstock.plan` chooses when it knows the rates and selectivities, run with hash joins. Runs
of the engine are short: the least CPU time of several interleaved rounds counts.
"""

from __future__ import annotations

from typing import Any, cast

import penstock
from penstock_studies.jit.clique import Arrival
from penstock_studies.jit.measured_run import MeasuredRun, run_engine, run_literal
from penstock_studies.jit.setting import Setting
from penstock_studies.lab.experiment import Parameters, Row

LITERAL = {
    "off": "REF",
    "off, as published": "REF as published",
    "as published": "JIT as published",
    "jit": "JIT, exact",
    "bloom": "JIT, Bloom filter",
    "∅ only": "DOE",
}
"""Forms of the literal algorithm, and what a figure calls them."""
ENGINE = {
    "nested-loops": {
        "off": "REF",
        "jit": "JIT, asked first",
        "jit, adaptive": "JIT, adaptive (default)",
    },
    "hash": {
        "off": "REF",
        "jit": "JIT, asked first",
        "bloom": "JIT, Bloom filter",
        "jit, adaptive": "JIT, adaptive (default)",
    },
}
BEST_PLAN = "best plan, REF"


def setting_of(parameters: Parameters) -> Setting:
    given: Any = parameters
    return Setting(
        given["shape"], given["streams"], given["window"], given["rate"], given["largest"]
    )


def measure_setting(parameters: Parameters, seed: int) -> list[Row]:
    """All systems on one setting for ``hours``; a run is stopped after CPU ``seconds``."""
    setting = setting_of(parameters)
    given: Any = parameters
    tuples = setting.tuples(given["hours"], seed)
    seconds = float(given["seconds"])
    run_literal(setting, tuples[:100], "jit", seconds)  # Imports and caches are not the subject.
    rows = [
        _row(setting, "literal", name, run_literal(setting, tuples, form, seconds))
        for form, name in LITERAL.items()
    ]
    for join in ("nested-loops", "hash"):
        rounds = cast(int, given["rounds"]) if join == "hash" else 1
        for name, run in _engine_runs(setting, tuples, join, rounds, given["batch"], seconds):
            rows.append(_row(setting, f"engine, {join}", name, run))
    return rows


def _engine_runs(
    setting: Setting,
    tuples: list[Arrival],
    join: str,
    rounds: int,
    batch: float,
    seconds: float,
) -> list[tuple[str, MeasuredRun]]:
    runs: dict[str, tuple[str, str | None]] = {
        name: (form, None) for form, name in ENGINE[join].items()
    }
    if join == "hash":
        best = str(penstock.plan(setting.query, setting.statistics(1 / batch)))
        runs[BEST_PLAN] = ("off", best)
    found: dict[str, MeasuredRun] = {}
    for form, plan in runs.values():  # Kernels are loaded, plans are made.
        run_engine(setting, tuples[:100], form, join, batch, seconds, plan=plan)
    for _ in range(rounds):
        for name, (form, plan) in runs.items():
            run = run_engine(setting, tuples, form, join, batch, seconds, plan=plan)
            if name not in found or run.cpu < found[name].cpu:
                found[name] = run
    return list(found.items())


def _row(setting: Setting, system: str, name: str, run: MeasuredRun) -> Row:
    return {
        "shape": setting.shape,
        "window": setting.window,
        "rate": setting.rate,
        "streams": setting.streams,
        "largest": setting.largest,
        "system": system,
        "form": name,
        "cpu": run.cpu,
        "comparisons": run.comparisons,
        "partial_results": run.partial_results,
        "results": run.results,
        "memory": run.memory,
        "complete": run.is_complete,
    }


def measure_lost(parameters: Parameters, seed: int) -> list[Row]:
    """How many of the results each form of the algorithm finds, in a setting that has some."""
    setting = setting_of(parameters)
    given: Any = parameters
    tuples = setting.tuples(given["hours"], seed)
    runs = {
        name: run_literal(setting, tuples, form, given["seconds"]).results
        for form, name in (
            ("off", "REF"),
            ("as published", "JIT as published"),
            ("jit", "JIT, exact"),
        )
    }
    engine = run_engine(setting, tuples, "jit", "hash", 1.0, given["seconds"])
    runs["engine, asked first"] = engine.results
    return [
        {"largest": setting.largest, "form": name, "results": results}
        for name, results in runs.items()
    ]
