"""The best mjoin, the best binary tree, a jtree and ``plan="auto"`` under the same bounds.

The cost model with the costs of this machine gives the bounds
(:mod:`penstock_studies.limited.bounds`) and says of each plan whether it is qualified; then each
runs in a process that is limited to them (:mod:`penstock_studies.limited.limited_process`). Engines
are told the same limits. ``auto`` gets no statistics, and no disk: it has plans alone to keep them
with.

A plan *keeps* its bounds if its process lives to the end, never holds more than the memory limit
(by more than a twentieth), and at most one second of arrivals waits at the end.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from penstock.machine.calibration import calibrate
from penstock.planning.limits import Limits
from penstock.planning.planner import decide
from penstock.planning.unit_costs import UnitCosts
from penstock.planning.verdict import Choice
from penstock_studies.lab.experiment import Row
from penstock_studies.limited.bounds import Bounds, draw
from penstock_studies.limited.limited_process import SHARE, Ended, run_limited
from penstock_studies.limited.workload import Workload
from penstock_studies.qualified_sets import plans_of

_CORE = 0
"""Number of the core that processes are pinned to, among those that there are."""
_ROUNDS = 3
"""Rounds of the calibration."""


@dataclass(frozen=True)
class Entry:
    """A plan of a contest: what the model says of it, and what its run was."""

    name: str
    """``mjoin``, ``bjtree``, ``jtree`` or ``auto``."""
    cpu: float | None
    """CPU seconds per second that the model gives it; None for ``auto``."""
    memory: float | None
    """Bytes that the model gives it."""
    is_qualified: bool
    """What the model says; of ``auto``, that it finds a qualified plan."""
    ended: Ended
    bounds: Bounds
    waits: float
    """Rows that may wait at the end."""

    @property
    def keeps(self) -> bool:
        """What the run says."""
        end = self.ended.end
        return bool(
            end
            and not end["ended"]
            and end["over"] == 0
            and self.ended.rows
            and self.ended.rows[-1]["queue"] <= self.waits
        )

    def summary(self) -> dict[str, Any]:
        """How it ended; the columns of a row."""
        end = self.ended.end
        last = self.ended.rows[-1] if self.ended.rows else {"second": 0, "results": 0, "queue": 0}
        return {
            "plan": self.name,
            "runs": end.get("plan"),
            "model_cpu": self.cpu,
            "model_memory": self.memory,
            "says": self.is_qualified,
            "keeps": self.keeps,
            "cpu": end.get("need"),
            "peak": end.get("peak"),
            "capacity": self.bounds.cpu,
            "limit": self.bounds.memory,
            "over": end.get("over"),
            "untold": end.get("untold"),
            "changes": end.get("changes"),
            "ended": "memory" if end.get("ended") else None if end else f"code {self.ended.code}",
            "end": last["second"],
            "total": last["results"],
            "waiting": last["queue"],
        }


def contest(
    workload: Workload,
    short: Collection[str],
    chance: random.Random,
    part: int,
    of: int,
    seed: int,
    costs: UnitCosts | None = None,
) -> list[Entry]:
    """Draw bounds for ``workload`` and run all plans under them, one after the other."""
    problem = workload.problem(costs or calibrate(rounds=_ROUNDS).costs)
    found = plans_of(problem)
    bounds = draw(chance, {name: each.cost for name, each in found.items()}, short, part, of)
    plans = {name: str(problem.plan_of(each)) for name, each in found.items()}
    limits = Limits(cpu=bounds.cpu, memory=bounds.memory)
    entries = []
    for name, plan in {**plans, "auto": "auto"}.items():
        request = {
            "workload": workload.to_json(),
            "plan": plan,
            "warm": list(plans.values()),
            "limits": {"cpu": bounds.cpu, "memory": bounds.memory, "disk": 0},
            "room": bounds.room,
            "speed": SHARE / bounds.cpu,
            "seed": seed,
            "core": _CORE,
        }
        cost = found[name].cost if name in found else None
        entries.append(
            Entry(
                name,
                cost.cpu if cost else None,
                cost.memory if cost else None,
                bounds.admits(cost) if cost else isinstance(decide(problem, limits), Choice),
                run_limited(request),
                bounds,
                sum(workload.rates.values()),
            )
        )
    return entries


def over_time(entries: list[Entry], **columns: Any) -> list[Row]:
    """A row for each plan and second of event time; one at second 0 if it has none."""
    rows: list[Row] = []
    for entry in entries:
        same = {**columns, **entry.summary()}
        seconds = entry.ended.rows or [{"second": 0, "results": 0, "queue": 0, "memory": 0}]
        rows += [{**same, **each} for each in seconds]
    return rows
