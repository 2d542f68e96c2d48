"""The compiled push: everything between intake and answer in few calls of kernels.

It is the same transaction as :mod:`penstock.engine.running.reference_way`. Where it cannot be
taken, nothing has changed and the reason is told, for metrics and EXPLAIN.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from penstock.engine.push.whole_push import WholePush
from penstock.engine.running.running_join import RunningJoin
from penstock.engine.state.clock import START
from penstock.engine.state.held_signals import HELD


def push_compiled(
    join: RunningJoin,
    whole: WholePush,
    batches: Mapping[str, Any],
    promised: int | None,
    told: Mapping[str, int],
    probes: float | None,
) -> pa.Table | str:
    """The answer to ``batches``; or the reason why this push has to go the other way.

    The watermark ``promised`` and the newest event times ``told`` are the host's.
    """
    (tree,) = join.trees
    if join.owed_results is not None:
        return "results of a change of plan"
    if not tree.is_written_down and tree.in_one_call() is None:
        return tree.why_not_in_one_call
    why = whole.look(batches, join.clock)
    if why:
        return why
    newest = whole.newest(join.newest)
    for source, instant in told.items():
        if instant > newest.get(source, START):
            newest[source] = instant
    clock = join.advanced(newest, None, promised)
    control = join.overload
    passes, credit = False, None
    if control is not None:
        credit = control.credit
        if credit is not None and probes is None and not tree.missing:
            passes = credit.covers(whole.priced(credit.prices), whole.rows, clock.now)
        if not passes:
            control.begin(whole.counts(), whole.first, join.clock.now, clock.now, probes)
            join.has_begun = True
            if not control.is_idle:
                return "probes that are limited or owed"
    passed = join.passed
    compiled = whole.get_ready(tree, clock.watermark, passed)
    if compiled is None:
        return whole.why_not
    marks = tree.marks()
    heads = {alias: leaf.rows.head for alias, leaf in tree.leaves.items()}
    try:
        after = are_fresh = None
        if control is not None and not passes:
            after = control.after_joins
        elif control is not None and control.asks_age:
            after, are_fresh = control.drop_stale, control.are_fresh
        table = whole.join(tree, compiled, join.output, clock, after, are_fresh)
        dropped = None
        if whole.late or whole.without_time:
            sources = {**whole.late, **whole.without_time}
            dropped = join.set_aside.looked_at_again(batches, sources, join.clock)
        if dropped is not None:
            join.set_aside.warn_of_disorder(dropped, join.clock.late)
        admitted = {alias: leaf.rows.head - heads[alias] for alias, leaf in tree.leaves.items()}
        filtered = join.set_aside.filtered(whole.on_time, admitted, batches, join.clock)
        HELD.give()
    except BaseException:
        HELD.undoable = False
        if compiled.is_torn or tree.is_torn:  # It may be written anew in the middle.
            join.is_broken = True
        else:
            join.go_back([marks])
        raise
    HELD.undoable = False
    join.is_broken = True
    join.output.commit()
    with join.tearing():
        tree.commit()
    if passes:
        assert credit is not None
        credit.note(whole.rows)
    elif control is not None:
        control.commit(join.clock.now)
    join.has_started = join.has_started or whole.has_rows
    join.latest = whole.rows
    join.counters.count_rows(whole.seen, table.num_rows)
    join.counters.count_filtered(filtered)
    if whole.late or whole.without_time:
        join.counters.count_set_aside(whole.late, whole.without_time)
        if dropped is not None:
            join.set_aside.keep(dropped.dropped)
    if whole.has_let_go:
        tree.note_expired(passed)
        whole.drop_passed()
        join.expiry.note_swept()
    join.conclude(clock, newest, whole.first, whole.rows)
    if join.output.keeps:
        join.tidy_output(clock.watermark)
    if (
        not whole.rows
        or (compiled.needs_care if whole.has_let_go else join.expiry.is_due)
        or join.windows[0].have_many_values
    ):
        join.expiry.sweep_if_it_can()
    return table
