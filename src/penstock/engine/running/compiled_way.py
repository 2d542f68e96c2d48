"""The compiled push: everything between intake and answer in few calls of kernels.

It is the same transaction as :mod:`penstock.engine.running.reference_way`. Many rows are taken in
by several such calls, which are one transaction together. Where it cannot be
taken, nothing has changed and the reason is told, for metrics and EXPLAIN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.engine.compiled.compiled_push import CompiledPush
from penstock.engine.push.intake import Batches
from penstock.engine.push.taken import Taken
from penstock.engine.push.whole_push import WholePush
from penstock.engine.running.running_join import RunningJoin
from penstock.engine.state.clock import START, Clock
from penstock.engine.state.composites import Composites, concatenate
from penstock.engine.state.working_memory import WORKING
from penstock.engine.tree.join_tree import Marks
from penstock.kernels.held_signals import HELD


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
    trees = join.trees
    if join.owed_results is not None:
        return "results of a change of plan"
    for tree in trees:
        if not tree.is_written_down and tree.in_one_call() is None:
            return tree.why_not_in_one_call
    control = join.overload
    if control is None and not join.by_rows and whole.is_large(batches):
        return push_in_parts(join, whole, batches, promised, told)
    doors = control.door.pending if control is not None else {}
    why = whole.look(batches, join.clock, join.place, doors)
    if why:
        return why
    if control is not None and doors:
        for source in doors.keys() & whole.seen.keys():
            left_out = whole.left_out.get(source, 0)
            control.door.note(source, whole.on_time[source] + left_out, left_out)
    newest = whole.newest(join.newest)
    for source, instant in told.items():
        if instant > newest.get(source, START):
            newest[source] = instant
    clock = join.advanced(newest, whole.places, promised)
    passes, credit = False, None
    if control is not None:
        credit = control.passing.credit
        if credit is not None and probes is None and not trees[0].missing:
            passes = credit.covers(whole.priced(credit.prices), whole.rows, clock.now)
        if not passes:
            counts = whole.counts(join.leaves[0])
            control.begin(counts, whole.first, join.clock.now, clock.now, probes)
            join.has_begun = True
            if control.why_not_compiled:
                return control.why_not_compiled
    # What is owed may need more than what is alive: then nothing goes in passing.
    passed = START if control is not None and control.may_owe else join.passed
    compiled = whole.get_ready(trees, clock.watermark, passed)
    if not compiled:
        return whole.why_not
    marks = [tree.marks() for tree in trees]
    heads = [leaf.rows.head for leaf in join.all_leaves]
    try:
        after = are_fresh = None
        if control is not None and not passes:
            after, are_fresh = control.after_joins, control.may_leave
        elif control is not None and control.passing.asks_results:
            after, are_fresh = control.passing.drop_stale, control.passing.are_fresh
        asks_age = control is not None and control.passing.asks_age
        table = whole.join(trees, compiled, join.output, clock, after, are_fresh, asks_age)
        dropped = _set_aside(join, whole, batches)
        filtered = _filtered(join, whole, heads, batches)
        HELD.give()
    except BaseException:
        _undo(join, compiled, marks)
        raise
    HELD.undoable = False
    join.is_broken = True
    join.output.commit()
    with join.tearing:
        for tree in trees:
            tree.commit()
    if passes:
        assert credit is not None
        credit.note(whole.rows)
    elif control is not None:
        control.commit(join.clock.now)
    _conclude(join, whole, whole, compiled, clock, newest, table.num_rows, filtered, dropped)
    return table


def push_in_parts(
    join: RunningJoin,
    whole: WholePush,
    batches: Mapping[str, Any],
    promised: int | None,
    told: Mapping[str, int],
) -> pa.Table | str:
    """The same for many rows without a budget, a part of them after the other.

    What a part touches fits the cache. All are one transaction: the clock stands still until the
    end, so that the same rows are late as ever, nothing is let go of but what had passed before the
    push, and if one fails, the rows of all are taken back.
    """
    trees, taken = join.trees, Taken()
    found: list[list[Composites]] = [[] for _ in trees]
    newest, clock = join.newest, join.clock
    compiled: list[CompiledPush] = []
    marks = [tree.marks() for tree in trees]
    heads = [leaf.rows.head for leaf in join.all_leaves]
    try:
        for part in whole.parts_of(batches):
            whole.forget()
            why = whole.look(part, join.clock, join.place)
            if not why:
                newest = whole.newest(newest)
                clock = join.advanced(newest, 0, promised)
                # A later part may be older than this one: only what was settled before is hidden.
                compiled = whole.get_ready(trees, join.clock.watermark, join.passed)
                why = "" if compiled else whole.why_not
            if why:
                join.go_back(marks)
                WORKING.begin_again()
                return why
            taken.add(whole)
            for results, more in zip(found, whole.results(trees, compiled), strict=True):
                results.append(more)
            HELD.go_on()
        for source, instant in told.items():
            newest[source] = max(instant, newest.get(source, START))
        clock = join.advanced(newest, 0, promised)
        made = [concatenate(results) for results in found]
        WORKING.ask(sum(map(len, made)), len(join.all_leaves) + 2)
        table = join.output.stage(made, clock)
        dropped = _set_aside(join, taken, batches)
        filtered = _filtered(join, taken, heads, batches)
        HELD.give()
    except BaseException:
        _undo(join, compiled, marks)
        raise
    HELD.undoable = False
    join.is_broken = True
    join.output.commit()
    with join.tearing:
        for tree in trees:
            tree.commit()
    _conclude(join, whole, taken, compiled, clock, newest, table.num_rows, filtered, dropped)
    return table


def _set_aside(
    join: RunningJoin, taken: WholePush | Taken, batches: Mapping[str, Any]
) -> Batches | None:
    """What was not taken in of ``batches``, if somebody wants it or has to be warned."""
    if not taken.late and not taken.without_time:
        return None
    sources = {**taken.late, **taken.without_time}
    dropped = join.set_aside.looked_at_again(batches, sources, join.clock)
    if dropped is not None:
        join.set_aside.warn_of_disorder(dropped, join.clock.late)
    return dropped


def _undo(join: RunningJoin, compiled: Sequence[CompiledPush], marks: Sequence[Marks]) -> None:
    """The push has failed: go back to ``marks``, if that can be done."""
    HELD.undoable = False
    # They may be written anew in the middle.
    if any(each.is_torn for each in compiled) or any(tree.is_torn for tree in join.trees):
        join.is_broken = True
    else:
        join.go_back(marks)


def _conclude(
    join: RunningJoin,
    whole: WholePush,
    taken: WholePush | Taken,
    compiled: Sequence[CompiledPush],
    clock: Clock,
    newest: dict[str, int],
    results: int,
    filtered: dict[str, int],
    dropped: Batches | None,
) -> None:
    """What was ``taken`` in is there for good: it counts, time moves on, what passed is let go."""
    trees, control, passed = join.trees, join.overload, whole.let_go_before
    join.place += taken.places
    join.has_started = join.has_started or taken.has_rows
    join.latest = taken.rows
    join.counters.count_rows(taken.seen, results)
    if filtered:
        join.counters.count_filtered(filtered)
    if taken.late or taken.without_time:
        join.counters.count_set_aside(taken.late, taken.without_time)
        if dropped is not None:
            join.set_aside.keep(dropped.dropped)
    if whole.has_let_go:
        for tree in trees:
            tree.hidden.note_expired(passed)
        whole.drop_passed()
        join.expiry.note_swept()
    join.conclude(clock, newest, taken.first, taken.rows)
    if join.output.keeps:
        join.tidy_output(
            clock.watermark if control is None else control.keep_all_from(clock.watermark)
        )
    is_due = not taken.rows or (not whole.has_let_go and join.expiry.is_due)
    is_due |= join.expiry.is_due_for_surpassed
    if whole.has_let_go:
        for each in compiled:
            is_due |= each.needs_care
    for windows in join.windows:
        is_due |= windows.have_many_values
    if is_due:
        join.expiry.sweep_if_it_can()


def _filtered(
    join: RunningJoin, whole: WholePush | Taken, heads: Sequence[int], batches: Mapping[str, Any]
) -> dict[str, int]:
    """Rows by source that came into no window; ``heads`` are those of all windows before."""
    if not whole.late and not whole.without_time and join.has_one_window_each:
        grown = sum([leaf.rows.head for leaf in join.all_leaves]) - sum(heads)
        if whole.are_whole or (grown == whole.rows and not join.by_rows):
            return {}
    admitted = {
        leaf.stream.alias: leaf.number_chosen(head, leaf.rows.head)
        for leaf, head in zip(join.all_leaves, heads, strict=True)
    }
    return join.set_aside.filtered(whole.on_time, admitted, batches, join.clock)
