"""Figures 11, 12 and 13 of JAQPOT as data: throughput and freshness with too little CPU.

Each function runs the simulation of half-way joins (:mod:`penstock.overload.simulation`) over
random scenarios and returns rows; the command prints them as tables, with the ratios that the paper
names. Everything follows from the seed.

The paper gives ranges for its parameters (figure 10) and no more. Taken literally (rates of 300 to
1,200 tuples/s, states of 200 to 5,000 tuples, selectivities of 0.01 to 0.1) a probe finds 140
matches on average, so that nearly all work and all results are at the root and every long path is
about as productive as any other: a throughput well above its share of the resources is then out of
reach for anybody. ``selective`` scenarios have selectivities a hundred times smaller, about one
match per probe, and there the choice of paths matters.

Saturation is what the whole load needs. Resources in figure 11 are fixed at 30 % of what the first
phase needs; the later phases need more.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import numpy as np

import penstock
from penstock.overload import (
    Allocation,
    PathModel,
    Workload,
    allocate,
    observed_model,
    path_model,
)
from penstock.overload.simulation import Phase, Run, States, simulate
from penstock.plan import StreamSet, read

Row = dict[str, str | float]
Family = Literal["figure-10", "tenth", "selective"]
SMALLER: Mapping[Family, float] = {"figure-10": 1.0, "tenth": 0.1, "selective": 0.01}
"""What selectivities are multiplied by."""

SHAPES = {"linear": "(((A B) C) D)", "bushy": "((A B) (C D))"}
JOINS = {
    "linear": (("A", "B"), ("AB", "C"), ("ABC", "D")),
    "bushy": (("A", "B"), ("C", "D"), ("AB", "CD")),
}
"""The inputs of each join, bottom-up."""
FRESHNESS = (1.5, 3.0, 5.0)
SHARES = tuple(round(0.1 * n, 1) for n in range(11))
PHASES = ((180.0, (0.01, 0.01, 0.05)), (240.0, (0.03, 0.03, 0.05)), (180.0, (0.03, 0.03, 0.1)))
"""Seconds and the selectivities of the three joins: SEL1, SEL2 and SEL3 of the paper."""

_TURN = 0.1
"""Short against most windows: ages are known to a turn for each state on the way."""
_SETTLED = 100.0
"""Seconds after which what was in the states at the start is stale if it is still there."""


def scenario(shape: str, chance: np.random.Generator, family: Family) -> PathModel:
    """A plan of 4 streams with parameters drawn from the ranges of figure 10."""
    smaller = SMALLER[family]
    rates = {stream: float(chance.uniform(300, 1200)) for stream in "ABCD"}
    selectivities = [float(chance.uniform(0.01, 0.1)) * smaller for _ in range(3)]
    sizes = {state: float(chance.uniform(200, 5000)) for join in JOINS[shape] for state in join}
    return _model(shape, rates, selectivities, sizes)


def lasting_scenario(shape: str, chance: np.random.Generator) -> PathModel:
    """A plan of 4 streams under lifespans: windows of 2 to 8 s, about one match per probe."""
    rates = {stream: float(chance.uniform(300, 1200)) for stream in "ABCD"}
    windows = {stream: float(chance.uniform(2, 8)) for stream in "ABCD"}
    matches = {pair: float(10 ** chance.uniform(-0.5, 0.5)) for pair in ("AB", "BC", "CD")}
    selectivities = {
        (pair[0], pair[1]): each / (rates[pair[1]] * windows[pair[1]])
        for pair, each in matches.items()
    }
    return path_model(read(SHAPES[shape]), Workload(rates, windows, selectivities))


def freshness_of(model: PathModel, factor: float) -> dict[str, float]:
    """``factor`` times the window for every stream."""
    return {stream: factor * window for stream, window in model.windows.items()}


def fluctuating_selectivities(
    shape: str,
    seed: int,
    allocators: Sequence[str] = ("tree-greedy", "jaqpot", "jdam"),
    slower: float = 1.0,
) -> list[Row]:
    """Figure 11: cumulative fresh results over ten minutes (divided by ``slower``).

    The controller knows the new selectivities at once. Rates are 600 tuples/s, states 1,000 tuples.
    """
    rates = dict.fromkeys("ABCD", 600.0)
    sizes = {state: 1000.0 for join in JOINS[shape] for state in join}
    models = [_model(shape, rates, selectivities, sizes) for _, selectivities in PHASES]
    budget = 0.3 * models[0].saturation_resources
    rows: list[Row] = [{"minute": float(minute)} for minute in range(1, 11)]
    for allocator in allocators:
        phases = []
        for (seconds, _), model in zip(PHASES, models, strict=True):
            freshness = freshness_of(model, 1.5)
            allocation = allocate(model, budget, freshness, allocator)
            phases.append(Phase(model, allocation, freshness, seconds / slower))
        run = simulate(phases, seed, turn=_TURN)
        fresh = np.cumsum(run.results - run.stale)
        for number, row in enumerate(rows, start=1):
            row[allocator] = float(fresh[len(fresh) * number // 10 - 1])
    return rows


def throughput_by_resources(
    shape: str,
    seed: int,
    runs: int,
    family: Family,
    allocators: Sequence[str] = ("grepp", "tree-greedy", "jaqpot", "jdam", "random-shedding"),
) -> list[Row]:
    """Figure 12: fresh results in per cent of saturation, by resources in per cent of saturation.

    Freshness is 1.5 windows. ``grepp`` alone knows nothing of it, and here its stale results
    count: what it gives is the most that anybody could get without freshness.
    """
    chance = np.random.default_rng(seed)
    models = [scenario(shape, chance, family) for _ in range(runs)]
    rows: list[Row] = []
    for share in SHARES:
        row: Row = {"resources": 100 * share}
        for allocator in allocators:
            reached = []
            for number, model in enumerate(models):
                freshness = freshness_of(model, 1.5)
                budget = share * model.saturation_resources
                allocation = allocate(model, budget, freshness, allocator)
                run = _settled(model, allocation, freshness, number, "count")
                fresh = 1.0 if allocator == "grepp" else 1 - run.stale_share
                reached.append(100 * fresh * run.throughput / model.saturation_throughput)
            row[allocator] = float(np.mean(reached))
        rows.append(row)
    return rows


def throughput_under_lifespans(
    shape: str,
    seed: int,
    runs: int,
    allocators: Sequence[str] = (
        "lifespan-greedy",
        "tree-greedy",
        "grepp",
        "jdam",
        "random-shedding",
    ),
) -> list[Row]:
    """The same where states live by lifespans, as in the engine: nothing is stale, but thin."""
    chance = np.random.default_rng(seed)
    models = [lasting_scenario(shape, chance) for _ in range(runs)]
    rows: list[Row] = []
    for share in SHARES:
        row: Row = {"resources": 100 * share}
        for allocator in allocators:
            reached = []
            for number, model in enumerate(models):
                # Refreshing as for 2 windows keeps states filled, where an allocator cares.
                budget = share * model.saturation_resources
                allocation = allocate(model, budget, freshness_of(model, 2.0), allocator)
                run = _settled(model, allocation, {}, number, "lifespan")
                reached.append(100 * run.throughput / model.saturation_throughput)
            row[allocator] = float(np.mean(reached))
        rows.append(row)
    return rows


def stale_results(
    shape: str, seed: int, runs: int, family: Family, budget: float = 300.0
) -> list[Row]:
    """Figure 13 a and b: the share of stale results at µ = 300, without and with a cover."""
    chance = np.random.default_rng(seed)
    models = [scenario(shape, chance, family) for _ in range(runs)]
    rows: list[Row] = []
    for factor in FRESHNESS:
        row: Row = {"freshness": factor}
        for allocator in ("jdam", "grepp", "tree-greedy"):
            shares = []
            for number, model in enumerate(models):
                freshness = freshness_of(model, factor)
                allocation = allocate(model, budget, freshness, allocator)
                if not allocation.feasible:
                    continue
                run = simulate(
                    [Phase(model, allocation, freshness, 1.5 * _SETTLED)], number, turn=_TURN
                ).after(_SETTLED)
                shares.append(100 * run.stale_share)
            row[allocator] = float(np.mean(shares)) if shares else float("nan")
        rows.append(row)
    return rows


def resources_for_freshness(shape: str, seed: int, runs: int, family: Family) -> list[Row]:
    """Figure 13 c, and the share of plans that cannot be fresh.

    Budgets from 10 to 100 % of saturation. Resources are in per cent of the budget, over the
    cases that are feasible.
    """
    chance = np.random.default_rng(seed)
    models = [scenario(shape, chance, family) for _ in range(runs)]
    rows: list[Row] = []
    for factor in FRESHNESS:
        row: Row = {"freshness": factor}
        for allocator in ("jaqpot", "tree-greedy"):
            found = [
                allocate(
                    model,
                    share * model.saturation_resources,
                    freshness_of(model, factor),
                    allocator,
                )
                for model in models
                for share in SHARES[1:]
            ]
            spent = [100 * each.freshness_probes / each.budget for each in found if each.feasible]
            row[f"{allocator} resources"] = float(np.mean(spent)) if spent else float("nan")
            row[f"{allocator} infeasible"] = 100 * (1 - len(spent) / len(found))
        rows.append(row)
    return rows


def _settled(
    model: PathModel,
    allocation: Allocation,
    freshness: Mapping[str, float],
    seed: int,
    states: States,
) -> Run:
    """A run after it has settled: when what was there at the start is dead or stale."""
    wait = 1.6 * max(model.windows.values())
    phase = Phase(model, allocation, freshness, wait + 5.0)
    return simulate([phase], seed, states=states, turn=_TURN).after(wait)


def _model(
    shape: str,
    rates: Mapping[str, float],
    selectivities: Sequence[float],
    sizes: Mapping[str, float],
) -> PathModel:
    """The model with one selectivity for each join, bottom-up."""
    productivities = {}
    for (left, right), selectivity in zip(JOINS[shape], selectivities, strict=True):
        productivities[StreamSet(left), StreamSet(right)] = selectivity * sizes[right]
        productivities[StreamSet(right), StreamSet(left)] = selectivity * sizes[left]
    known = {StreamSet(state): size for state, size in sizes.items()}
    return observed_model(read(SHAPES[shape]), rates, productivities, known)


def ratios(rows: Iterable[Row], better: str, worse: str) -> tuple[float, float]:
    """How many times as much ``better`` gives, on average over 10 to 90 %, and at 40 %."""
    found = {
        round(float(row["resources"])): float(row[better]) / float(row[worse])
        for row in rows
        if 0 < float(row["resources"]) < 100 and float(row[worse]) > 0
    }
    return float(np.mean(list(found.values()))), found.get(40, float("nan"))


def table(rows: Sequence[Row], digits: int = 1) -> str:
    """``rows`` as aligned text, with a line of headings."""
    lines = [list(rows[0])]
    lines += [
        [f"{v:,.{digits}f}" if isinstance(v, float) else str(v) for v in row.values()]
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    )


def figure_11(seed: int, runs: int) -> None:
    for shape in SHAPES:
        print(f"\nFigure 11, {shape}: cumulative fresh results, µ = 30 % of saturation, F = 1.5 W")
        rows = fluctuating_selectivities(shape, seed)
        print(table(rows, digits=0))
        last = rows[-1]
        for allocator in ("tree-greedy", "jaqpot"):
            print(f"{allocator} / jdam: {_quotient(last, allocator, 'jdam')}")


def figure_12(seed: int, runs: int) -> None:
    families: tuple[Family, ...] = ("figure-10", "selective")
    for family in families:
        for shape in SHAPES:
            print(f"\nFigure 12, {shape}, {family} parameters: throughput in % of saturation")
            rows = throughput_by_resources(shape, seed, runs, family)
            print(table(rows))
            for better in ("grepp", "tree-greedy", "jaqpot"):
                mean, at_40 = ratios(rows, better, "jdam")
                print(f"{better} / jdam: {mean:.2f} on average, {at_40:.2f} at 40 %")
    for shape in SHAPES:
        print(f"\nThe same under lifespans, {shape}: throughput in % of saturation")
        rows = throughput_under_lifespans(shape, seed, runs)
        print(table(rows))
        for worse in ("tree-greedy", "grepp", "jdam", "random-shedding"):
            mean, at_40 = ratios(rows, "lifespan-greedy", worse)
            print(f"lifespan-greedy / {worse}: {mean:.2f} on average, {at_40:.2f} at 40 %")


def figure_13(seed: int, runs: int) -> None:
    families: tuple[Family, ...] = ("figure-10", "selective")
    for family in families:
        for shape in SHAPES:
            print(f"\nFigure 13, {shape}, {family} parameters: stale results in %, µ = 300")
            print(table(stale_results(shape, seed, runs, family)))
            print("resources spent for freshness, and infeasible cases, in %")
            print(table(resources_for_freshness(shape, seed, 10 * runs, family)))


FIGURES: Mapping[str, Callable[[int, int], None]] = {
    "11": figure_11,
    "12": figure_12,
    "13": figure_13,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables of one figure, or of all."""
    parser = argparse.ArgumentParser(
        prog="python -m penstock_studies.overload_figures",
        description="Figures 11 to 13 of JAQPOT as tables.",
        epilog="example: python -m penstock_studies.overload_figures --figure 12 --runs 5",
    )
    parser.add_argument("--figure", choices=[*FIGURES, "all"], default="all")
    parser.add_argument("--runs", type=int, default=5, help="random scenarios per point")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    print(
        f"penstock {penstock.__version__}, Python {platform.python_version()}, "
        f"{platform.machine()}, seed {chosen.seed}, {chosen.runs} runs"
    )
    for name, figure in FIGURES.items():
        if chosen.figure in (name, "all"):
            figure(chosen.seed, chosen.runs)


def _quotient(row: Row, better: str, worse: str) -> str:
    below = float(row[worse])
    return f"{float(row[better]) / below:.2f}" if below else "jdam has none"


if __name__ == "__main__":
    main()
