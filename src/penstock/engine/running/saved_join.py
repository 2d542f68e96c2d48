"""A running join as a checkpoint, and back: every part saves and loads itself, in one order.

The order of the tables is that of the windows, then their values, then what the top of the query
holds, then results and probes that are owed. Windows and values are taken piece by piece while the
checkpoint is written; the rest, which lies in memory, before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.recovery.checkpoint import Checkpoint
from penstock.engine.running.running_join import RunningJoin
from penstock.engine.state.clock import Clock
from penstock.engine.state.composites import Composites
from penstock.engine.state.saved_window import saved_rows
from penstock.engine.tree.saved_tree import load_debts, load_tree, save_tree
from penstock.errors import CheckpointError


def save_join(join: RunningJoin, plan: str, control: Mapping[str, Any]) -> Checkpoint:
    """State of every part to be saved, the name of the ``plan`` and the state of ``control``."""
    if join.output.needs_history:
        join.pay_all()  # What is held is computed again, debts and all.
    saved = _SavedRows(join)
    tables: list[Iterable[pa.Table]] = []
    for windows in join.windows:
        tables += windows.save()
    for windows in join.windows:
        tables += windows.save_values()
    held = join.output.save(saved)
    tables += [] if held is None else [[held]]
    overload: dict[str, Any] = {}
    if join.overload is not None:
        overload["control"] = join.overload.to_json()
    if join.owed_results is not None:
        overload["results"] = {}
        tables.append([join.owed_results.save(saved)])
    if join.overload is not None and join.overload.owes:
        overload["tree"], more = save_tree(join.trees[0], saved)
        tables += [[table] for table in more]
    header = {
        "plan": plan,
        "options": join.options.to_json(),
        "control": control,
        "now": join.clock.now,
        "watermark": join.clock.watermark,
        "late": join.clock.late,
        "newest": join.newest,
        "place": join.place,
        "first": join.first,
        "started": join.has_started,
        "counters": join.counters.to_json(),
        "overload": overload,
    }
    return Checkpoint.of(join.query, header, tables)


class _SavedRows(dict[str, NDArray[np.int64]]):
    """The rows of each window that are saved, made when somebody asks for them."""

    def __init__(self, join: RunningJoin) -> None:
        super().__init__()
        self._leaves = {leaf.stream.alias: leaf for leaf in join.all_leaves}

    def __missing__(self, alias: str) -> NDArray[np.int64]:
        rows = self[alias] = saved_rows(self._leaves[alias])
        return rows


def load_join(join: RunningJoin, found: Checkpoint) -> None:
    """Put what ``found`` has into ``join``, which has just been made with its plan."""
    header = found.header
    overload = header.get("overload", {})
    pieces = iter(found.tables)
    rows = [[next(pieces) for _ in each.leaves] for each in join.windows]
    for windows, its_rows in zip(join.windows, rows, strict=True):
        windows.load(its_rows, [next(pieces) for _ in windows.interners], join.keep_within_memory)
    tables = (pa.concat_tables(each) for each in pieces)
    counts = {alias: len(leaf.rows) for each in join.leaves for alias, leaf in each.items()}
    _load_times(join, header)
    join.counters.load(header["counters"])
    held = next(tables) if join.output.saves else None
    if "results" in overload:
        join.owed_results = Composites.load(next(tables), tuple(join.leaves[0]), counts)
    join.load_output(held, counts)
    if join.overload is not None:
        join.overload.attach(join.trees[0])
    if "tree" in overload:
        _load_owing_tree(join, overload["tree"], tables, counts)
    if join.overload is not None:
        join.overload.load_json(overload["control"], join.clock.now)


def _load_owing_tree(
    join: RunningJoin,
    saved: dict[str, Any],
    tables: Iterator[pa.Table],
    counts: Mapping[str, int],
) -> None:
    """The states of a tree that owes probes, which have to be as they were."""
    assert join.overload is not None
    join.replace_tree(0, load_tree(join.trees[0], saved, tables, counts))
    load_debts(join.trees[0], saved["debts"], next(tables))


def _load_times(join: RunningJoin, header: Mapping[str, Any]) -> None:
    newest, first = header["newest"], header.get("first")
    late = header.get("late", header["watermark"])
    numbers = [header["now"], header["watermark"], header["place"], late, *newest.values()]
    numbers += [] if first is None else [first]
    if not all(type(each) is int for each in numbers) or header["place"] < 0:
        raise CheckpointError("the checkpoint is damaged: a time in it is no number")
    join.clock = Clock(header["now"], header["watermark"], join.strict, late)
    join.newest = dict(newest)
    join.place = header["place"]
    join.first = first
    join.has_started = header["started"]
