"""Sets 1 to 4 of JTree (Table 2) in limited processes: a point of Figures 7 and 8.

This machine is some forty times as fast as the paper's, so that 60 rows a second are nothing to it.
Rates and the numbers of values are multiplied by the same factor: each row finds as many partners
as in the paper, and states are large enough for a limit on the memory of a process to be felt. With
nested loops the cost of a row grows with the factor, so these have a small one, and their states
(under a megabyte) are held against the limit of the engine alone.

Which resource is short in which set is the paper's: none in set 1, CPU in 2, memory in 3, both
in 4. How short it is, is drawn.
"""

from __future__ import annotations

import random
from typing import Any

from penstock_studies.lab.experiment import Parameters, Row
from penstock_studies.limited.contest import contest, over_time
from penstock_studies.limited.workload import Workload
from penstock_studies.qualified_sets import SETTINGS

SETS = {setting.name: setting for setting in SETTINGS if setting.runs}
SHORT: dict[str, tuple[str, ...]] = {
    "1": (),
    "2": ("cpu",),
    "3": ("memory",),
    "4 at 15 s": ("cpu", "memory"),
}
FACTORS: dict[tuple[str, str], tuple[int, int]] = {
    ("1", "nested-loops"): (8, 20),
    ("2", "nested-loops"): (4, 40),
    ("4 at 15 s", "nested-loops"): (3, 50),
    ("1", "hash"): (100, 100),
    ("2", "hash"): (20, 100),
    ("3", "hash"): (100, 500),
    ("4 at 15 s", "hash"): (50, 500),
}
"""By set and join: what rates are multiplied by, and pushes per second."""


def workload_of(name: str, join: str, seconds: int) -> Workload:
    """Set ``name`` on this machine."""
    setting = SETS[name]
    factor, slices = FACTORS[name, join]
    rates = {stream: rate * factor for stream, rate in setting.rates.items()}
    values = {pair: count * factor for pair, count in setting.values.items()}
    return Workload(rates, values, setting.window, seconds, slices, join)


def measure_set(parameters: Parameters, seed: int) -> list[Row]:
    """One set with one kind of join and one draw of bounds: a row for each plan and second."""
    given: Any = parameters
    name, join, part, of = (given[key] for key in ("set", "join", "draw", "draws"))
    chance = random.Random(f"{seed} {name} {join} {part} {of}")
    workload = workload_of(name, join, given["seconds"])
    entries = contest(workload, SHORT[name], chance, part, of, seed)
    return over_time(entries, set=name, join=join, draw=part)
