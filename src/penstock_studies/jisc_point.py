"""Figures 7 to 12 of JISC and what goes beyond them as points: one number of joins, window,
domain or frequency at a time."""

from __future__ import annotations

from typing import Any

from penstock_studies.jisc.figures import frequency, latency, migration_stage, normal_operation
from penstock_studies.jisc.propositions import propositions_for
from penstock_studies.jisc.setting import Setting, best_case, worst_case
from penstock_studies.jisc.strategies import strategies
from penstock_studies.lab.experiment import Parameters, Row

CASES = {"best": best_case, "worst": worst_case}


def measure_stage(parameters: Parameters, seed: int) -> list[Row]:
    """Figures 7 and 8: CPU seconds of the migration stage."""
    given: Any = parameters
    setting = Setting(given["joins"], given["window"], given["batch"])
    spent = migration_stage(setting, CASES[given["case"]], seed, given["rounds"])
    return [{"joins": given["joins"], "case": given["case"], **_named(spent)}]


def measure_normal(parameters: Parameters, seed: int) -> list[Row]:
    """Figure 9: normal operation."""
    given: Any = parameters
    spent = normal_operation(_setting(given), seed, given["rounds"])
    return [
        {**_varied(given), "strategy": name, "s": seconds, "of jisc": seconds / spent["jisc"]}
        for name, seconds in spent.items()
    ]


def measure_latency(parameters: Parameters, seed: int) -> list[Row]:
    """Figure 10: CPU seconds from a transition to the first result after it."""
    given: Any = parameters
    setting = _setting(given)
    names, rounds = ("jisc", "moving-state"), given["rounds"]
    spent = {name: latency(setting, name, seed, rounds) for name in names}
    return [{"join": setting.join, "window": setting.window, **_varied(given), **_named(spent)}]


def measure_frequency(parameters: Parameters, seed: int) -> list[Row]:
    """Figures 11 and 12: CPU seconds for some windows with a transition every so often."""
    given: Any = parameters
    case, rounds = CASES[given["case"]], given["rounds"]
    spent = frequency(_setting(given), case, given["every"], given["windows"], seed, rounds)
    return [{"every": given["every"], "case": given["case"], **_varied(given), **_named(spent)}]


def measure_strategies(parameters: Parameters, seed: int) -> list[Row]:
    """A change of plan by every strategy: CPU seconds and megabytes."""
    given: Any = parameters
    row = strategies(_setting(given), CASES[given["case"]], seed, given["rounds"])
    names = ("case", "domain", "joins", "window", "batch")
    return [{name: given[name] for name in names} | row]


def measure_propositions(parameters: Parameters, seed: int) -> list[Row]:
    """Propositions 1 to 3: complete states after an exchange, by analysis and simulation."""
    given: Any = parameters
    return [propositions_for(given["joins"], given["draws"], seed)]


def _setting(given: Any) -> Setting:
    join = given.get("join", "hash")
    return Setting(given["joins"], given["window"], given["batch"], join, given["domain"])


def _varied(given: Any) -> Row:
    return {name: given[name] for name in ("joins", "domain", "batch")}


def _named(spent: dict[str, float]) -> dict[str, float]:
    """The seconds of each strategy, as columns."""
    return {f"{name} s": value for name, value in spent.items()}
