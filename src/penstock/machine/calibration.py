"""What operations cost on this machine: small runs of the engine, and differences between them.

:mod:`penstock.machine.calibration_runs` has the runs. In the end all rows of the run called
storing are let go at once, which gives ``delete``. Pushes of one tuple per stream give the fixed
costs: six streams that match take thirty steps of probe orders, the same without a match six, so
the difference is 24 steps; two streams against six give what a stream has in a push, and what is
left of the two is the push itself. Two that match, with and without groups, give ``grouping``.
``insert`` is the cost of a *stored combination*, ``window`` that of a tuple in its own window,
which is another structure and cheaper. ``join`` has in it that the next key of a partial result is
fetched from a window, which happens whether it is stored or goes on.

**Robust.** Rounds go over all runs in turn and the least time of each run counts: what disturbs a
machine only ever makes a run longer. The rounds are dealt to :data:`GROUPS` groups, each of which
gives all costs once more from its own rounds alone; how far these lie apart is the spread that is
told. A cost that is not positive in every group is not resolved by these runs. It is not set to
some least value, as that would be a number that nobody has measured, but to its default times the
speed of this machine (the median over the costs that are resolved, against their defaults), and it
is named as such. While costs are not resolved there are more rounds, up to three times as many.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

import pyarrow as pa

from penstock.machine.calibration_runs import (
    BATCH,
    COLUMNS,
    COMPARED,
    FANOUT,
    calibration_runs,
    small_pushes,
)
from penstock.planning.unit_costs import UnitCosts

GROUPS = 3
"""Groups of rounds that each give all costs by themselves."""
LONGEST = 3
"""Times the rounds that were asked for, if costs stay unresolved."""
NOT_MEASURED = ("state",)
"""Costs that no run is made for: they keep their defaults."""

Times = dict[str, float]
"""Seconds of every run of a round, and of the small pushes, by name."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Unit costs of this machine, and how far they can be trusted."""

    costs: UnitCosts
    spread: Mapping[str, float]
    """The largest less the smallest value of a cost over the groups of rounds, as a share of it;
    for the costs that were resolved."""
    speed: float
    """The costs of this machine against the defaults: below 1, it is faster."""

    @property
    def unresolved(self) -> tuple[str, ...]:
        """The costs that were not measured: defaults times :attr:`speed`."""
        return tuple(f.name for f in fields(UnitCosts) if f.name not in self.spread)


def calibrate(clock: Callable[[], float] = time.process_time, rounds: int = 6) -> Calibration:
    """Measure; some seconds."""
    runs = calibration_runs()
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    times: list[Times] = []
    try:
        while True:
            found: Times = {}
            for name, run in runs.items():
                found[name], end = run.seconds(clock)
                if name == "storing":
                    # The window of A holds a batch or two, and each its stored combinations.
                    found["letting go"] = end / (1.5 * BATCH * (1 + FANOUT))
            found["two apart"] = small_pushes("AB", clock, matching=False)
            found["two together"] = small_pushes("AB", clock, matching=True)
            found["two grouped"] = small_pushes("AB", clock, matching=True, grouped=True)
            found["six apart"] = small_pushes("ABCDEF", clock, matching=False)
            found["six together"] = small_pushes("ABCDEF", clock, matching=True)
            times.append(found)
            if len(times) >= rounds:
                calibration = calibration_from(times)
                resolved = set(calibration.unresolved) <= set(NOT_MEASURED)
                if resolved or len(times) >= LONGEST * rounds:
                    return calibration
    finally:
        pa.set_cpu_count(threads)


def calibration_from(times: Sequence[Times]) -> Calibration:
    """The costs behind the rounds."""
    whole = costs_from(_least(times))
    groups = [costs_from(_least(times[i::GROUPS])) for i in range(GROUPS) if times[i::GROUPS]]
    resolved = {
        name: (max(each[name] for each in groups) - min(each[name] for each in groups)) / value
        for name, value in whole.items()
        if min(value, *(each[name] for each in groups)) > 0
    }
    defaults = UnitCosts().to_json()
    ratios = [whole[name] / defaults[name] for name in resolved]
    speed = statistics.median(ratios) if ratios else 1.0
    costs = {
        name: whole[name] if name in resolved else speed * default
        for name, default in defaults.items()
    }
    return Calibration(UnitCosts(**costs), resolved, speed)


def _least(times: Sequence[Times]) -> Times:
    return {name: min(each[name] for each in times) for name in times[0]}


def costs_from(seconds: Times) -> dict[str, float]:
    """The costs that the differences give, whatever their sign."""
    apart, together = seconds["six apart"], seconds["six together"]
    step = (together - apart) / 24
    push = (apart - seconds["two apart"]) / 4 - step
    delete = seconds["letting go"]
    taken_in, looking = seconds["taken in"], seconds["looking"]
    each = {name: (seconds[name] - looking) / FANOUT for name in seconds}
    join = each["joining"] - (seconds["glancing"] - taken_in)
    insert = each["storing"] - join - delete
    # Of the 2 · m changes of groups by a tuple two fall apart in the one run, all in the other.
    answer = (seconds["spreading"] - seconds["counting"]) / (2 * FANOUT - 2)
    return {
        "insert": insert,
        "delete": delete,
        "join": join,
        "probe": looking - taken_in,
        "compare": (seconds["comparing"] - taken_in) / COMPARED,
        "index": seconds["indexed"] - taken_in,
        "arrival": seconds["dropped"],
        "window": taken_in - seconds["dropped"],
        "result": each["resulting"] - join,
        "text": seconds["reading"] - looking,
        "column": (each["showing"] - each["resulting"]) / COLUMNS,
        "group": each["counting"] - join - 2 * answer / FANOUT,
        "answer": answer,
        "aggregate": each["summing"] - each["counting"],
        "check": each["checking"],
        "residual": each["evaluating"],
        "grouping": seconds["two grouped"] - seconds["two together"],
        "push": push,
        "step": step,
        "call": seconds["two apart"] - 2 * push - 2 * step,
    }
