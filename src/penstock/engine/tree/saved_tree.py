"""What a tree saves while probes are owed: what the owed probes may see.

As a rule, a checkpoint has the windows alone, and states are completed again on demand. An owed
probe is a row and bounds on the rows of other inputs (:mod:`penstock.engine.rationing.debt`), so as
long as there is one, the stored joins are saved too, as row numbers into the windows and in their
order. Rows that wait for demand are saved as well: after the restart they come in with the next
push, as if their guards had been turned off.

Row numbers are saved as they will be after the restart: those of a leaf by their place among the
rows that are saved, those of a state from zero. A part that is not saved is dead: -1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.feedback.edge import Edge
from penstock.engine.rationing.debt import Owed
from penstock.engine.recovery.columns import integers
from penstock.engine.recovery.verify import check_columns, check_rows
from penstock.engine.state.composite_state import CompositeState
from penstock.engine.state.composites import Composites, SavedRows, places_of
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.tree.join_tree import JoinTree
from penstock.errors import CheckpointError
from penstock.plan.stream_set import StreamSet

Int64s = NDArray[np.int64]

STORED, ADMITTED, ASLEEP = "stored", "admitted", "asleep"
"""Contents of an edge: the state of its join, rows past the guards of a leaf, rows that wait."""
_OWED = ("row", "birth", "deadline")


def save_tree(tree: JoinTree, saved: SavedRows) -> tuple[dict[str, Any], list[pa.Table]]:
    """The states and debts of ``tree``: a header and the tables it speaks of."""
    assert tree.rationing is not None
    tables: list[pa.Table] = []
    held: list[tuple[int, str]] = []
    for number, edge in enumerate(tree.numbered):
        for kind, ids in _contents(edge):
            held.append((number, kind))
            tables.append(Composites.undated(ids).save(saved))
    places = {edge.streams: number for number, edge in enumerate(tree.numbered)}
    siblings = _siblings(tree)
    debts = []
    columns: list[Int64s] = []
    for origin, owed in tree.rationing.debt.items():
        inputs = siblings[origin]
        own = next(edge for edge in inputs if edge.streams == origin)
        rows = _saved_numbers(own, owed.rows, saved)
        keep = np.flatnonzero(rows >= 0)
        columns.append(np.stack([rows[keep], owed.births[keep], owed.deadlines[keep]]))
        bounds = [
            _saved_bound(edge, bound, saved)
            for edge, bound in zip(inputs, owed.bounds, strict=True)
        ]
        debts.append(
            {
                "input": places[origin],
                "count": len(keep),
                "bounds": bounds,
                "results": owed.results,
            }
        )
    together = np.concatenate(columns, axis=1)
    tables.append(pa.table(dict(zip(_OWED, together, strict=True))))
    return {"held": held, "debts": debts}, tables


def load_tree(
    old: JoinTree,
    header: Mapping[str, Any],
    tables: Iterator[pa.Table],
    counts: Mapping[str, int],
) -> JoinTree:
    """A tree of the plan of ``old``, over its windows, with the states of a checkpoint.

    The debts are for :func:`load_debts`, when it has been attached to a budget.
    """
    edges = old.numbered
    held: dict[tuple[int, str], Mapping[str, Int64s]] = {}
    for number, kind in header["held"]:
        if not 0 <= number < len(edges) or kind not in (STORED, ADMITTED, ASLEEP):
            raise CheckpointError("the checkpoint is damaged: a state of no input")
        streams = tuple(edges[number].streams)
        held[number, kind] = Composites.load(next(tables), streams, counts).ids
    carried: dict[StreamSet, CompositeState] = {}
    for number, edge in enumerate(edges):
        if not edge.is_leaf:
            carried[edge.streams] = _filled(edge, held.get((number, STORED)))
    tree = old.successor(old.root, carried)
    old.dispose()
    for number, edge in enumerate(tree.numbered):
        admitted = held.get((number, ADMITTED))
        asleep = held.get((number, ASLEEP))
        edge.restore(None if admitted is None else _filled(edge, admitted), asleep)
    tree.take_stock()
    return tree


def load_debts(tree: JoinTree, debts: list[Mapping[str, Any]], table: pa.Table) -> None:
    """Let ``tree`` owe the probes of a checkpoint."""
    assert tree.rationing is not None
    check_columns(table, dict.fromkeys(_OWED, pa.int64()), "the debt")
    columns = [integers(table, name) for name in _OWED]
    start = 0
    for each in debts:
        stop = start + each["count"]
        rows, births, deadlines = (column[start:stop] for column in columns)
        _check_debt(tree, each, rows)
        origin = tree.numbered[each["input"]].streams
        bounds, results = tuple(each["bounds"]), float(each.get("results", -1.0))
        tree.rationing.debt.owe(origin, Owed(rows, births, deadlines, bounds, results))
        start = stop
    tree.rationing.follow(tree.inputs())


def _check_debt(tree: JoinTree, owed: Mapping[str, Any], rows: Int64s) -> None:
    """An owed probe starts from a row that is there, and looks no further than there are rows."""
    if not 0 <= owed["input"] < len(tree.numbered) or len(rows) != owed["count"]:
        raise CheckpointError("the checkpoint is damaged: a debt of no input")
    edge = tree.numbered[owed["input"]]
    inputs = _siblings(tree)[edge.streams]
    check_rows(rows, edge.input.rows.head, "the debt", 0)
    bounds = owed["bounds"]
    if len(bounds) != len(inputs) or not all(
        isinstance(bound, int) and 0 <= bound <= each.input.rows.head
        for bound, each in zip(bounds, inputs, strict=True)
    ):
        raise CheckpointError("the checkpoint is damaged: the bounds of a debt")


def _contents(edge: Edge) -> Iterator[tuple[str, Mapping[str, Int64s]]]:
    """Rows that ``edge`` holds, by kind."""
    if isinstance(edge.source, CompositeState):
        yield STORED, _all(edge.source)
    elif isinstance(edge.input, CompositeState):
        yield ADMITTED, _all(edge.input)
    asleep = [guard.waiting.sleepers() for guard in edge.guards]
    some = [ids for ids in asleep if len(next(iter(ids.values())))]
    if some:
        yield ASLEEP, {s: np.concatenate([ids[s] for ids in some]) for s in some[0]}


def _all(state: CompositeState) -> dict[str, Int64s]:
    return state.resolve(np.arange(state.rows.tail, state.rows.head, dtype=np.int64))


def _filled(edge: Edge, ids: Mapping[str, Int64s] | None) -> CompositeState:
    """A state for ``edge`` that holds ``ids``."""
    state = CompositeState(edge.streams, edge.leaves)
    if ids is not None and len(next(iter(ids.values()))):
        state.append_ids(ids)
    return state


def _siblings(tree: JoinTree) -> dict[StreamSet, list[Edge]]:
    """All inputs of the join that each edge feeds, in their places."""
    joins: dict[StreamSet, dict[int, Edge]] = {}
    feeds: dict[StreamSet, StreamSet] = {}
    for edge, consumer, position in tree.inputs():
        joins.setdefault(consumer.streams, {})[position] = edge
        feeds[edge.streams] = consumer.streams
    return {
        origin: [inputs[place] for place in sorted(inputs)]
        for origin, join in feeds.items()
        for inputs in [joins[join]]
    }


def _saved_numbers(edge: Edge, rows: Int64s, saved: SavedRows) -> Int64s:
    """The numbers that ``rows`` of the input of ``edge`` will have after a restart."""
    if isinstance(edge.input, LeafWindow):
        return places_of(rows, saved[edge.input.stream.alias])
    return rows - edge.input.rows.tail


def _saved_bound(edge: Edge, bound: int, saved: SavedRows) -> int:
    """The same for a ``bound`` on rows."""
    if isinstance(edge.input, LeafWindow):
        return int(np.searchsorted(saved[edge.input.stream.alias], bound))
    return max(0, bound - edge.input.rows.tail)
