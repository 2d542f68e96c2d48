"""What leaves, and when: the top of every query.

One of four tops sits above the join: ISTREAM (results leave as they are born), DSTREAM and RSTREAM
(results are held), set difference, or aggregates. All follow one protocol, which makes a failed
push harmless: ``stage`` computes what leaves and the state after it, ``commit`` makes that state
the present one, ``rollback`` forgets it. Neither of these two needs memory, so that nothing can
fail. What does, packing what is sparse, is for ``tidy``, which may be left for another time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.compiled.plain_answer import PlainAnswer
from penstock.engine.output.difference import Difference
from penstock.engine.output.held_results import HeldResults
from penstock.engine.output.projection import Projection
from penstock.engine.state.clock import Clock
from penstock.engine.state.composites import Composites, SavedRows
from penstock.engine.state.working_memory import WORKING
from penstock.engine.tree.join_tree import JoinTree
from penstock.kernels import ring
from penstock.query.join_graph import JoinGraph

Int64s = NDArray[np.int64]


class Kept(Protocol):
    """State of a top that outlives a push."""

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def renumber(self, alias: str, mapping: Int64s, first: int) -> None: ...

    @property
    def nbytes(self) -> int: ...


class Output(ABC):
    """The top of a query; as it is here, with nothing to remember beyond a push."""

    needs_history = True
    """Whether it has to know all living results after a restart."""
    saves = False
    """Whether :meth:`save` writes a table."""
    keeps = True
    """Whether it keeps results, or what is made of them, beyond the push."""
    plainly: PlainAnswer | None = None
    """The maker of the answer of a push out of its results alone, if that is simple."""

    def __init__(self, kept: Kept | None = None) -> None:
        """``kept`` is what it remembers."""
        self._kept = kept

    @abstractmethod
    def stage(self, results: Sequence[Composites], clock: Clock, filled: int = 0) -> pa.Table:
        """The rows that leave, given the new results of each block.

        If the columns of :attr:`plainly` have been filled already with so many results, these are
        all, and are not given.
        """

    def subtract_in(self, places: Sequence[int]) -> None:
        """Subtract the blocks after EXCEPT in this order, if there are any."""
        return

    @property
    def subtractions(self) -> list[dict[str, Any]]:
        """What each block after EXCEPT has removed, in the order in which they are subtracted."""
        return []

    def save(self, saved: SavedRows) -> pa.Table | None:
        """State that living results do not tell, as places among the ``saved`` rows of windows."""
        return None

    def load(
        self,
        results: Sequence[Composites],
        clock: Clock,
        table: pa.Table | None,
        counts: Mapping[str, int],
    ) -> None:
        """Take in all living results after a restart, and what :meth:`save` wrote, if it wrote
        anything; windows have ``counts`` rows. Nothing leaves."""
        return

    def commit(self) -> None:
        """The push is done."""
        if self._kept is not None:
            self._kept.commit()

    def rollback(self) -> None:
        """The push has failed."""
        if self._kept is not None:
            self._kept.rollback()

    def tidy(self, watermark: int) -> None:
        """Let go of what is not needed. If there is no memory for that, nothing has changed."""
        return

    def renumber(self, alias: str, mapping: Int64s, first: int) -> None:
        """Leaf row ``r`` of ``alias`` is now ``mapping[r - first]``."""
        if self._kept is not None:
            self._kept.renumber(alias, mapping, first)

    @property
    def nbytes(self) -> int:
        """Bytes of what it remembers."""
        return 0 if self._kept is None else self._kept.nbytes


def output_for(graph: JoinGraph, trees: Sequence[JoinTree]) -> Output:
    """The top that ``graph`` asks for."""
    if graph.is_grouped:
        return GroupedOutput(graph, trees[0])
    if graph.minus:
        return DifferenceOutput(graph, trees)
    if graph.emission == "istream":
        return BornOutput(graph, trees[0])
    return HeldOutput(graph, trees[0])


def empty_table(schema: pa.Schema) -> pa.Table:
    """No rows of ``schema``, whatever its types (pyarrow's own cannot do unions)."""
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


class _Table:
    """Makes the answer's table of composites, in a given order."""

    def __init__(self, graph: JoinGraph, tree: JoinTree) -> None:
        self._schema = graph.schema
        self.empty = empty_table(self._schema)
        self._project = Projection([item.expression for item in graph.select], tree.leaves)
        self.plainly = PlainAnswer.of(graph, tree.leaves)

    def __call__(self, results: Composites, instants: Int64s) -> pa.Table:
        if len(results) == 0:
            return self.empty
        WORKING.ask_bytes(len(results), int(len(results) * self._project.bytes_of_row))
        rows = (results.births, results.deaths)
        by = next((row for row, each in enumerate(rows) if each is instants), -1)
        if self.plainly and results.table is not None and by >= 0:
            streams = list(results.ids)
            table = self.plainly(results.table, streams, len(streams) + by)
            if table is not None:
                return table
        order = ring.order_of(instants)
        if order is not None:
            results = Composites.undated(results.ids).pick(order)
        return pa.Table.from_arrays(self._project(results), schema=self._schema)


class BornOutput(Output):
    """ISTREAM of a join: nothing to remember."""

    needs_history = False
    keeps = False

    def __init__(self, graph: JoinGraph, tree: JoinTree) -> None:
        super().__init__()
        self._table = _Table(graph, tree)
        self.plainly = self._table.plainly

    def stage(self, results: Sequence[Composites], clock: Clock, filled: int = 0) -> pa.Table:
        if filled:
            assert self.plainly is not None
            return self.plainly.table(filled)
        return self._table(results[0], results[0].births)


class HeldOutput(Output):
    """DSTREAM and RSTREAM of a join."""

    def __init__(self, graph: JoinGraph, tree: JoinTree) -> None:
        self.keeps = graph.by_rows
        self._table = _Table(graph, tree)
        self._at_death = graph.emission == "dstream"
        self._shorten = tree.shorten if graph.by_rows else None
        self._held = HeldResults(tuple(tree.leaves), graph.by_rows)
        super().__init__(self._held)

    def stage(self, results: Sequence[Composites], clock: Clock, filled: int = 0) -> pa.Table:
        if self._at_death and len(results[0]) == 0 and self._held.rests(clock.now):
            return self._table.empty
        self._held.begin(results[0], self._shorten)
        dead = self._held.take_dead(clock.now)
        if self._at_death:
            return self._table(dead, dead.deaths)
        living = self._held.all()
        return self._table(living, living.births)

    def load(
        self,
        results: Sequence[Composites],
        clock: Clock,
        table: pa.Table | None,
        counts: Mapping[str, int],
    ) -> None:
        self._held.begin(results[0], self._shorten)
        self._held.take_dead(clock.now)
        self._held.commit()

    def tidy(self, watermark: int) -> None:
        self._held.tidy()


class DifferenceOutput(Output):
    """EXCEPT."""

    saves = True

    def __init__(self, graph: JoinGraph, trees: Sequence[JoinTree]) -> None:
        self._table = _Table(graph, trees[0])
        self._difference = Difference(
            graph, trees[0], list(zip(graph.minus, trees[1:], strict=True))
        )
        super().__init__(self._difference)

    def stage(self, results: Sequence[Composites], clock: Clock, filled: int = 0) -> pa.Table:
        leaving, instants = self._difference.stage(results[0], results[1:], clock)
        return self._table(leaving, instants)

    def subtract_in(self, places: Sequence[int]) -> None:
        self._difference.subtract_in(places)

    @property
    def subtractions(self) -> list[dict[str, Any]]:
        return self._difference.subtractions

    def save(self, saved: SavedRows) -> pa.Table:
        return self._difference.save(saved)

    def load(
        self,
        results: Sequence[Composites],
        clock: Clock,
        table: pa.Table | None,
        counts: Mapping[str, int],
    ) -> None:
        self._difference.load(table, counts, results[1:], clock)

    def tidy(self, watermark: int) -> None:
        self._difference.tidy(watermark)


class GroupedOutput(Output):
    """GROUP BY."""

    def __init__(self, graph: JoinGraph, tree: JoinTree) -> None:
        self._by_rows = graph.by_rows
        self._tree = tree
        from penstock.engine.output.aggregation import Aggregation

        self._aggregation = Aggregation(graph)
        super().__init__(self._aggregation)
        self.keeps = not self._aggregation.is_count
        self._groups = Projection(graph.group_by, tree.leaves)
        arguments = [a.argument for a in graph.aggregates]
        self._arguments = Projection([a for a in arguments if a is not None], tree.leaves)
        self._counts_rows = [argument is None for argument in arguments]

    def _columns(self, results: Composites) -> tuple[list[pa.Array], list[pa.Array | None]]:
        if self._aggregation.is_count:
            return [], []
        given = iter(self._arguments(results))
        arguments = [None if counts else next(given) for counts in self._counts_rows]
        return self._groups(results), arguments

    def stage(self, results: Sequence[Composites], clock: Clock, filled: int = 0) -> pa.Table:
        if self._by_rows:
            self._aggregation.shorten(self._refresh)
        (new,) = results
        groups, arguments = self._columns(new)
        return self._aggregation.stage(
            groups, arguments, new.births, new.deaths, new.ids, clock.settled, clock.now
        )

    def load(
        self,
        results: Sequence[Composites],
        clock: Clock,
        table: pa.Table | None,
        counts: Mapping[str, int],
    ) -> None:
        (new,) = results
        groups, arguments = self._columns(new)
        self._aggregation.load(groups, arguments, new.births, new.deaths, new.ids, clock.settled)

    def _refresh(self, ids: dict[str, Int64s], deaths: Int64s) -> None:
        self._tree.shorten(Composites(ids, deaths, deaths))

    def tidy(self, watermark: int) -> None:
        self._aggregation.tidy()
