"""Figures 7 to 12 of JISC and what goes beyond them as points: one number of joins, window,
domain or frequency at a time."""

from __future__ import annotations

from typing import Any

from penstock_studies.jisc.figures import figure_9, frequency, latency, migration_stage
from penstock_studies.jisc.propositions import propositions_for
from penstock_studies.jisc.setting import Setting, best_case, worst_case
from penstock_studies.jisc.strategies import strategies
from penstock_studies.lab.experiment import Parameters, Row

CASES = {"best": best_case, "worst": worst_case}


def measure_stage(parameters: Parameters, seed: int) -> list[Row]:
    """Figures 7 and 8: CPU seconds of the migration stage."""
    given: Any = parameters
    setting = Setting(given["joins"], given["window"], given["batch"])
    row = migration_stage(setting, CASES[given["case"]], seed, given["rounds"])
    return [{"joins": given["joins"], "case": given["case"], **_seconds(row)}]


def measure_normal(parameters: Parameters, seed: int) -> list[Row]:
    """Figure 9: normal operation."""
    return [{**row} for row in figure_9(bool(parameters["small"]), seed)]


def measure_latency(parameters: Parameters, seed: int) -> list[Row]:
    """Figure 10: CPU seconds from a transition to the first result after it."""
    given: Any = parameters
    setting = Setting(3, given["window"], max(10, given["window"] // 1_000), given["join"])
    return [
        {
            "join": given["join"],
            "window": given["window"],
            **{f"{name} s": latency(setting, name, seed) for name in ("jisc", "moving-state")},
        }
    ]


def measure_frequency(parameters: Parameters, seed: int) -> list[Row]:
    """Figures 11 and 12: CPU seconds for some windows with a transition every so often."""
    given: Any = parameters
    setting = Setting(given["joins"], given["window"], given["batch"])
    case, rounds = CASES[given["case"]], given["rounds"]
    row = frequency(setting, case, given["every"], given["windows"], seed, rounds)
    return [{"every": given["every"], "case": given["case"], **_seconds(row)}]


def measure_strategies(parameters: Parameters, seed: int) -> list[Row]:
    """A change of plan by every strategy: CPU seconds and megabytes."""
    given: Any = parameters
    setting = Setting(given["joins"], given["window"], given["batch"], domain=given["domain"])
    row = strategies(setting, CASES[given["case"]], seed, given["rounds"])
    names = ("case", "domain", "joins", "window", "batch")
    return [{name: given[name] for name in names} | row]


def measure_propositions(parameters: Parameters, seed: int) -> list[Row]:
    """Propositions 1 to 3: complete states after an exchange, by analysis and simulation."""
    given: Any = parameters
    return [propositions_for(given["joins"], given["draws"], seed)]


def _seconds(row: dict[str, Any]) -> dict[str, float]:
    """Of each strategy."""
    return {name: value for name, value in row.items() if name.endswith(" s")}
