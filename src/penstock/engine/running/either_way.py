"""A push from the host's call to the answer: compiled if it can be, else step by step.

Both ways are the same transaction. Whichever is taken, the budgets of memory and time begin with
the push, rows that are too far ahead of their arrival are set aside before it, and behind it
somebody looks after the plan.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.engine.control.runaway import RunawayPush
from penstock.engine.join.stopwatch import Stopwatch
from penstock.engine.metrics import COMPILED
from penstock.engine.running.compiled_way import push_compiled
from penstock.engine.running.plan_changes import PlanChanges
from penstock.engine.running.reference_way import push_by_steps
from penstock.engine.running.running_join import RunningJoin
from penstock.engine.state.working_memory import WORKING
from penstock.kernels.held_signals import HELD

_NOTHING_SEEN: Mapping[str, int] = {}


class Told(NamedTuple):
    """Options of one push that a host gives; see ``Engine.push``."""

    watermark: int | None
    newest: Mapping[str, int] | None
    probes: float | None
    seconds: float | None
    again: bool


def push_within(
    join: RunningJoin,
    changes: PlanChanges,
    batches: Mapping[str, Any],
    told: Told,
    arrived: int | None,
) -> pa.Table:
    """A push without the rows that are too far ahead of their arrival: these are set aside.

    They came when they have ``arrived``, in milliseconds since 1970, or now.
    """
    if join.ahead is None:
        return push(join, changes, batches, told)
    split = join.ahead.split(batches, int(1000 * time.time()) if arrived is None else arrived)
    join.set_aside.warn_of_ahead(split.dropped, join.counters.ahead)
    table = push(join, changes, split.batches, told)
    for each in split.dropped:
        join.counters.ahead[each.source] += len(each.rows)
    if join.set_aside.keeps:
        join.set_aside.keep(split.dropped)
    return table


def _keep_within(join: RunningJoin, changes: PlanChanges) -> None:
    """Give up owed probes, the oldest first, if what waits for them does not fit into memory."""
    limits, control = join.options.limits, join.overload
    if limits is None or limits.memory is None or control is None or join.is_torn:
        return
    if changes.nbytes > limits.memory:
        join.expiry.sweep_if_it_can()
    while control.owes and changes.nbytes > limits.memory:
        control.owed.forget_oldest()
        join.expiry.sweep_if_it_can()


def push(
    join: RunningJoin, changes: PlanChanges, batches: Mapping[str, Any], told: Told
) -> pa.Table:
    """A push while signals wait."""
    limits = join.options.limits
    WORKING.begin(None if limits is None else limits.memory)
    began = Stopwatch.clock()
    changes.before_push(batches)
    HELD.may_undo()
    changes.clock.start()
    if join.overload is not None:
        batches = join.overload.start(batches, told.seconds, told.again)
        join.has_begun = False
    # What a host has had before is no news: rows of several pushes may come again as one.
    WORKING.max_results = None if told.again else join.options.max_results
    try:
        made, way = _within_bounds(join, changes, batches, told)
    finally:
        WORKING.max_results = None
    join.counters.note_way(way)
    changes.after_push(join.latest, changes.clock.stop())
    if join.overload is not None:
        if join.overload.owes:
            _keep_within(join, changes)
        join.counters.count_shed(join.overload.close())
    join.counters.seconds += Stopwatch.clock() - began
    join.is_broken = False
    return made


def _within_bounds(
    join: RunningJoin, changes: PlanChanges, batches: Mapping[str, Any], told: Told
) -> tuple[pa.Table, str]:
    """The answer and its way. A push that runs away is taken back, and made once more after a look
    at its rows."""
    HELD.watch = changes.watch_over(batches)
    if HELD.watch is None:
        return _either_way(join, batches, told)
    try:
        return _either_way(join, batches, told)
    except RunawayPush:
        HELD.watch = None
        join.check_usable()
        changes.look_at_runaway(batches)
    finally:
        HELD.watch = None
    WORKING.begin_again()
    HELD.may_undo()
    return _either_way(join, batches, told)


def _either_way(join: RunningJoin, batches: Mapping[str, Any], told: Told) -> tuple[pa.Table, str]:
    """The answer, and the way that it was made; if step by step, the reason for that."""
    newest = told.newest or _NOTHING_SEEN
    made: pa.Table | str = join.never_whole
    if join.whole is not None:
        try:
            made = push_compiled(join, join.whole, batches, told.watermark, newest, told.probes)
        finally:
            join.whole.forget()
    if not isinstance(made, str):
        return made, COMPILED
    return push_by_steps(join, batches, told.watermark, newest, told.probes), made
