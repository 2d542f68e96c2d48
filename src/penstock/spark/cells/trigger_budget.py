"""The budget of a cell with a trigger interval: what each micro-batch may take.

A policy without limits of its own is given a part of the trigger interval as wall time per push:
the rest is for reading, shuffling and committing, and a query whose batches end within the interval
is one that does not fall behind. Where more cells than cores share the work they take turns, and
the time is divided. The engine turns it into probes by what these cost it
(:mod:`penstock.engine.overload.probe_cost`), with what it takes to write the rows down and to hand
the results to Spark, which the cell measures. Wall time, since it is the batch that must end in
time: who else is using the machine makes no difference to that.

How long it took until a cell got its rows is not known to it, but Spark starts batches at multiples
of the interval, so a cell knows when the next one is due (:func:`seconds_until_due`). When it is
called late, whether because much was read or because the batch before took too long, it has less
time, so that the batches get back into step.

Under ``defer`` a batch has the time that the one before it had left when its push began, so that
all attempts at it have the same; see :mod:`penstock.spark.state.cell_history`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from penstock.engine.overload.overload import Overload
from penstock.job import Job

SHARE = 0.5
"""Of the interval, for a cell that is called at once."""
_COMMIT = 0.15
"""Of the interval, kept free at its end."""
_LEAST_PART = 0.25
"""Part of the usual time that a cell has at least, when it is called late."""


def with_budget(
    options: dict[str, Any], interval: float | None, cells: int, cores: Callable[[], int]
) -> dict[str, Any]:
    """``options`` with a budget from an ``interval`` in seconds, if they need one.

    ``cores``, the tasks that Spark runs at once, is called only then.
    """
    option = Overload.of(options.get("overload", "exact")).within(options.get("limits"))
    if option.policy == "exact" or option.has_budget or not interval:
        return options
    seconds = SHARE * interval * min(1.0, cores() / cells)
    return options | {"overload": replace(option, seconds=seconds)}


def with_trigger_budget(
    options: dict[str, Any], job: Job, cells: int, cores: Callable[[], int]
) -> dict[str, Any]:
    """``options`` with a budget from the trigger of ``job``, if it needs one and has one."""
    return with_budget(options, interval_of(job), cells, cores)


def interval_of(job: Job) -> float | None:
    """The seconds between the triggers of ``job``, if it has such a trigger."""
    return None if isinstance(job.trigger, str) or not job.trigger else job.trigger / 1000


def seconds_until_due(interval: float, usual: float, now: float) -> float:
    """What a cell may take that is called at ``now``, in seconds since 1970.

    >>> seconds_until_due(10.0, 5.0, now=1000.5), seconds_until_due(10.0, 5.0, now=1006.0)
    (5.0, 2.5)
    """
    left = interval - now % interval - _COMMIT * interval
    return min(usual, max(left, _LEAST_PART * usual))
