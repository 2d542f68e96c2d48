"""What a checkpoint adds when probes are owed: what the owed probes may see.

As a rule, a checkpoint has the windows alone, and states are completed again on demand. An owed
probe is a row and bounds on the rows of other inputs (:mod:`penstock.engine.rationing.debt`), so as
long as there is one, the stored joins are written down too, as row numbers into the windows and in
their order. Those who wait for demand are written as well: after the restart they come in with the
next push, as if their guards had been turned off.

Row numbers are written as they will be after the restart: those of a leaf by their place among the
rows that are written, those of a state from zero. A part that is not written is dead: -1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.feedback.edge import Edge
from penstock.engine.rationing.debt import Owed
from penstock.engine.recovery.verify import check_columns, check_rows
from penstock.engine.state.composite_state import CompositeState
from penstock.engine.state.composites import Composites
from penstock.engine.state.leaf_window import LeafWindow
from penstock.errors import CheckpointError
from penstock.plan.stream_set import StreamSet

if TYPE_CHECKING:
    from penstock.engine.engine import Engine
    from penstock.engine.tree.join_tree import JoinTree

Int64s = NDArray[np.int64]
Numbers = Mapping[str, Int64s]

_STORED, _ADMITTED, _ASLEEP = "stored", "admitted", "asleep"


def composites_table(found: Composites, numbers: Numbers) -> pa.Table:
    """Composites as rows of the windows that are written; ``numbers`` are the rows of each."""
    ids = {f"row {a}": pa.array(_renumbered(rows, numbers[a])) for a, rows in found.ids.items()}
    if found.dated:
        ids |= {"birth": pa.array(found.births), "death": pa.array(found.deaths)}
    return pa.table(ids)


def load_composites(
    table: pa.Table, streams: Sequence[str], counts: Mapping[str, int]
) -> Composites:
    """What :func:`composites_table` wrote of ``streams``, whose windows have ``counts`` rows."""
    what = f"the combinations of {' '.join(streams)}"
    expected = {f"row {alias}": pa.int64() for alias in streams}
    dated = "birth" in table.column_names
    if dated:
        expected |= {"birth": pa.int64(), "death": pa.int64()}
    check_columns(table, expected, what)
    ids = {alias: _integers(table, f"row {alias}") for alias in streams}
    for alias, rows in ids.items():
        check_rows(rows, counts[alias], what)
    if not dated:
        return Composites.undated(ids)
    return Composites(ids, _integers(table, "birth"), _integers(table, "death"))


def tree_tables(tree: JoinTree, numbers: Numbers) -> tuple[dict[str, Any], list[pa.Table]]:
    """The states and debts of ``tree``: a header and the tables it speaks of."""
    assert tree.rationing is not None
    tables: list[pa.Table] = []
    held: list[tuple[int, str]] = []
    for number, edge in enumerate(tree.edges):
        for kind, ids in _contents(edge):
            held.append((number, kind))
            tables.append(composites_table(Composites.undated(ids), numbers))
    places = {edge.streams: number for number, edge in enumerate(tree.edges)}
    siblings = _siblings(tree)
    debts = []
    columns: list[Int64s] = []
    for origin, owed in tree.rationing.debt.items():
        inputs = siblings[origin]
        own = next(edge for edge in inputs if edge.streams == origin)
        rows = _row_numbers(own, owed.rows, numbers)
        keep = np.flatnonzero(rows >= 0)
        columns.append(np.stack([rows[keep], owed.births[keep], owed.deadlines[keep]]))
        bounds = [
            _bound(edge, bound, numbers) for edge, bound in zip(inputs, owed.bounds, strict=True)
        ]
        debts.append({"input": places[origin], "count": len(keep), "bounds": bounds})
    together = np.concatenate(columns, axis=1)
    tables.append(pa.table(dict(zip(("row", "birth", "deadline"), together, strict=True))))
    return {"held": held, "debts": debts}, tables


def load_tree(
    engine: Engine,
    header: Mapping[str, Any],
    tables: Iterator[pa.Table],
    counts: Mapping[str, int],
) -> None:
    """Give the first block of ``engine`` the states and debts of a checkpoint."""
    edges = engine._trees[0].edges
    held: dict[tuple[int, str], Mapping[str, Int64s]] = {}
    for number, kind in header["held"]:
        if not 0 <= number < len(edges) or kind not in (_STORED, _ADMITTED, _ASLEEP):
            raise CheckpointError("the checkpoint is damaged: a state of no input")
        streams = tuple(edges[number].streams)
        held[number, kind] = load_composites(next(tables), streams, counts).ids
    carried: dict[StreamSet, CompositeState] = {}
    for number, edge in enumerate(edges):
        if not edge.is_leaf:
            carried[edge.streams] = _filled(edge, held.get((number, _STORED)))
    old = engine._trees[0]
    tree = engine._trees[0] = old.successor(old.root, carried)
    old.dispose()
    for number, edge in enumerate(tree.edges):
        admitted = held.get((number, _ADMITTED))
        asleep = held.get((number, _ASLEEP))
        edge.restore(None if admitted is None else _filled(edge, admitted), asleep)
    tree._take_stock()
    assert engine._overload is not None
    engine._overload.attach(tree)
    assert tree.rationing is not None
    table = next(tables)
    names = ("row", "birth", "deadline")
    check_columns(table, dict.fromkeys(names, pa.int64()), "the debt")
    columns = [_integers(table, name) for name in names]
    start = 0
    for each in header["debts"]:
        stop = start + each["count"]
        rows, births, deadlines = (column[start:stop] for column in columns)
        _check_debt(tree, each, rows)
        origin = tree.edges[each["input"]].streams
        tree.rationing.debt.owe(origin, Owed(rows, births, deadlines, tuple(each["bounds"])))
        start = stop
    tree.rationing.follow(tree.inputs())


def _check_debt(tree: JoinTree, owed: Mapping[str, Any], rows: Int64s) -> None:
    """An owed probe starts from a row that is there, and looks no further than there are rows."""
    if not 0 <= owed["input"] < len(tree.edges) or len(rows) != owed["count"]:
        raise CheckpointError("the checkpoint is damaged: a debt of no input")
    edge = tree.edges[owed["input"]]
    inputs = _siblings(tree)[edge.streams]
    check_rows(rows, edge.input.rows.head, "the debt", 0)
    bounds = owed["bounds"]
    if len(bounds) != len(inputs) or not all(
        isinstance(bound, int) and 0 <= bound <= each.input.rows.head
        for bound, each in zip(bounds, inputs, strict=True)
    ):
        raise CheckpointError("the checkpoint is damaged: the bounds of a debt")


def _contents(edge: Edge) -> Iterator[tuple[str, Mapping[str, Int64s]]]:
    if isinstance(edge.source, CompositeState):
        yield _STORED, _all(edge.source)
    elif isinstance(edge.input, CompositeState):
        yield _ADMITTED, _all(edge.input)
    asleep = [guard.waiting.sleepers() for guard in edge.guards]
    some = [ids for ids in asleep if len(next(iter(ids.values())))]
    if some:
        yield _ASLEEP, {s: np.concatenate([ids[s] for ids in some]) for s in some[0]}


def _all(state: CompositeState) -> dict[str, Int64s]:
    return state.resolve(np.arange(state.rows.tail, state.rows.head, dtype=np.int64))


def _filled(edge: Edge, ids: Mapping[str, Int64s] | None) -> CompositeState:
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


def _row_numbers(edge: Edge, rows: Int64s, numbers: Numbers) -> Int64s:
    if isinstance(edge.input, LeafWindow):
        return _renumbered(rows, numbers[edge.input.stream.alias])
    return rows - edge.input.rows.tail


def _bound(edge: Edge, bound: int, numbers: Numbers) -> int:
    if isinstance(edge.input, LeafWindow):
        return int(np.searchsorted(numbers[edge.input.stream.alias], bound))
    return max(0, bound - edge.input.rows.tail)


def _renumbered(rows: Int64s, written: Int64s) -> Int64s:
    """The places of ``rows`` among those that are written; -1 for those that are not."""
    if len(written) == 0:
        return np.full(len(rows), -1, np.int64)
    at = np.minimum(np.searchsorted(written, rows), len(written) - 1)
    return np.where(written[at] == rows, at, -1)


def _integers(table: pa.Table, name: str) -> Int64s:
    return np.array(table.column(name).to_numpy(), np.int64)
