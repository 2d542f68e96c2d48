"""The budget of a cell with a trigger interval: what each micro-batch may take.

A policy without limits of its own is given a part of the trigger interval as wall time per push: a
half, since reading, shuffling, writing state and committing take their time too, and a query whose
batches end within the interval is one that does not fall behind. Where more cells than cores share
the work they take turns, and the time is divided. The engine turns it into probes by what these
cost it (:mod:`penstock.engine.probe_cost`). Wall time, since it is the batch that must end in time:
who else is using the machine makes no difference to that.

What was decided by the clock cannot be repeated. So when a batch is run again from the state, all
its probes are made (:mod:`penstock.spark.cell_history`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.engine.overload import Overload
from penstock.job import Job

SHARE = 0.5


def with_trigger_budget(
    options: dict[str, Any], job: Job, cells: int, cores: int
) -> dict[str, Any]:
    """``options`` with a budget from the trigger of ``job``, if it needs one and has one."""
    option = Overload.of(options.get("overload", "exact")).within(options.get("limits"))
    interval = job.trigger
    if option.policy == "exact" or option.has_budget or isinstance(interval, str) or not interval:
        return options
    seconds = SHARE * interval / 1000 * min(1.0, cores / cells)
    return options | {"overload": replace(option, seconds=seconds)}
