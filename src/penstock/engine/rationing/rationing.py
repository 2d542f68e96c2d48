"""Rationed probes: which rows of a push probe, which do not, and how owed probes are made up for.

The unit is a row at an input of a join, a *direction* in the words of
:mod:`penstock.overload.direction`: in an mjoin a row that may probe goes through its whole probe
order, as what is made on the way is stored nowhere. All deltas have been stored before, so a row
that does not probe is still found by others.

Where rows have the same chance, a compiled push draws by itself who probes
(:mod:`penstock.kernels.ration`). Where they have ranks, and when debts are paid, the tree asks this
object to run a join (:meth:`Rationing.run`), which hands the operator a part of each delta only.

``shed`` drops the probes of the other rows. ``defer`` notes them
(:mod:`penstock.engine.rationing.debt`) and makes them up in passes of their own (:meth:`pay`): rows
that owe probe with the bounds of their turn, and all that they make goes on up the tree like
anything new. Rows that wait for demand need no care: to a guard
(:mod:`penstock.engine.feedback.edge`) a row that comes late is a row that comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.engine.feedback.edge import Edge
from penstock.engine.join.join_operator import JoinOperator
from penstock.engine.join.join_step import Input
from penstock.engine.rationing.debt import Debt, Forgotten, Owed
from penstock.engine.rationing.probe_ranking import ProbeRanking
from penstock.engine.state.composites import Composites
from penstock.engine.state.leaf_window import LeafWindow, date
from penstock.overload.missed_results import Stratum
from penstock.overload.probe_choice import Choice, choose_random, choose_ranked
from penstock.plan.stream_set import StreamSet

if TYPE_CHECKING:
    from penstock.engine.compiled.compiled_push import CompiledPush

Int64s = NDArray[np.int64]
Deadlines = Callable[[Mapping[str, Int64s]], Int64s]

UNLIMITED = float("inf")


@dataclass(slots=True)
class Tally:
    """Counts of one push."""

    skipped: dict[StreamSet, int] = field(default_factory=dict)
    """Rows of each input that did not probe."""
    strata: list[tuple[StreamSet, StreamSet, Stratum]] = field(default_factory=list)
    """Findings of a random part of the rows of an input, with its join."""


class Paid(NamedTuple):
    """Probes of one input that were made up for."""

    origin: StreamSet
    owed: Owed
    results: Composites


class Rationing:
    """Decides who probes in one tree."""

    def __init__(
        self,
        deadlines: Deadlines | None,
        ranking: ProbeRanking | None = None,
        audit: float = 0.1,
    ) -> None:
        """With ``deadlines`` probes are put off, without they are dropped."""
        self._deadlines = deadlines
        self._ranking = ranking
        self._audit = audit
        self.debt = Debt()
        self.tally = Tally()
        self.foreseen: Mapping[StreamSet, float] = {}
        """Results that a row of each input leads to by now."""
        self._shares: Mapping[StreamSet, float] | None = None
        self.carried: dict[StreamSet, float] = {}
        """Fractions of a row that an input has not used. It starts with one row, to be known."""
        self._chance = np.random.default_rng(0)
        self._seed: Sequence[int] | None = None
        self._paying: tuple[StreamSet, Owed] | None = None

    # -- a push ------------------------------------------------------------------------------

    @property
    def is_limiting(self) -> bool:
        """Whether not every row probes as soon as it is there, or old rows do."""
        return self._shares is not None or self._paying is not None or bool(self.debt)

    @property
    def is_compiled(self) -> bool:
        """Whether a compiled push can draw who probes: no debts are being paid, and ranks do not
        matter."""
        return not self.is_limiting or (self._paying is None and self._ranking is None)

    def begin(self, shares: Mapping[StreamSet, float] | None, seed: Sequence[int]) -> None:
        """Let these shares of the rows of each input probe; None for all rows."""
        self.tally = Tally()
        self.carried = dict(self.carried)
        self._seed = seed
        self.limit(shares)

    def limit(self, shares: Mapping[StreamSet, float] | None) -> None:
        """The same for what comes next of the push."""
        self._shares = shares
        if shares is not None and self._seed is not None:
            self._chance = np.random.default_rng(self._seed)
            self._seed = None

    def hand_to(self, compiled: CompiledPush) -> None:
        """Let the next push of ``compiled`` draw who probes."""
        seed = 0 if self._shares is None else int(self._chance.integers(1 << 62))
        compiled.ration(self._shares, self.carried, seed)

    def take_from(self, compiled: CompiledPush) -> None:
        """Note who has probed in that push, and what was found."""
        if self._shares is None:
            return
        for each in compiled.rationed():
            edge, origin = each.edge, each.edge.streams
            allowed = self._shares.get(origin, 1.0) * each.total + self.carried.get(origin, 1.0)
            self.carried[origin] = min(1.0, max(0.0, allowed - int(allowed)))
            if each.stratum is None:
                continue
            if self._deadlines is None:
                self._skip(edge, each.stratum.tuples - each.stratum.probed)
                self.tally.strata.append((origin, each.join.streams, each.stratum))
            else:
                rows = each.left_out()
                self._skip(edge, len(rows))
                self._owe(edge, rows, edge.input.resolve(rows), each.bounds)

    def run(self, operator: JoinOperator, inputs: list[Edge]) -> Composites | None:
        """What a join makes of what its inputs have just got, as far as it may."""
        old_heads = [edge.old_head for edge in inputs]
        made: list[Composites] = []
        touched = False
        for position, edge in enumerate(inputs):
            if self._paying is not None and self._paying[0] == edge.streams:
                owed = self._paying[1]
                late = edge.input.resolve(owed.rows)
                made += operator.probe(position, Composites.undated(late), old_heads, owed.bounds)
                touched = True
            if edge.delta is not None:
                touched = True
                if self._shares is None or self._paying is not None:
                    made += operator.probe(position, edge.delta, old_heads)
                else:
                    made += self._limited(operator, inputs, position, old_heads)
        return operator.gather(made) if touched else None

    def _limited(
        self, operator: JoinOperator, inputs: list[Edge], position: int, old_heads: list[int]
    ) -> list[Composites]:
        edge = inputs[position]
        delta = edge.delta
        assert delta is not None
        assert self._shares is not None
        count = len(delta)
        allowed = self._shares.get(edge.streams, 1.0) * count + self.carried.get(edge.streams, 1.0)
        self.carried[edge.streams] = min(1.0, max(0.0, allowed - int(allowed)))
        if allowed >= count or count == 0:
            return operator.probe(position, delta, old_heads)
        choice = self._choose(operator, position, delta, int(allowed))
        rest = np.ones(count, np.bool_)
        rest[choice.positions] = False
        self._leave_out(inputs, position, delta, np.flatnonzero(rest), old_heads)
        sure = delta.pick(choice.sure)
        made = operator.probe(position, sure, old_heads)
        if self._ranking is not None:
            self._ranking.learn(operator, position, sure, made)
        sampled = delta.pick(choice.sampled)
        found = operator.probe(position, sampled, old_heads)
        if self._deadlines is None:
            together = operator.together(found)
            stratum = Stratum.of(choice.others, _matches(sampled, together))
            self.tally.strata.append((edge.streams, operator.streams, stratum))
            found = [together] if len(together) else []
        return made + found

    def _choose(
        self, operator: JoinOperator, position: int, delta: Composites, allowed: int
    ) -> Choice:
        if self._ranking is None:
            return choose_random(len(delta), allowed, self._chance)
        ranks = self._ranking.ranks(operator, position, delta)
        return choose_ranked(ranks, allowed, self._chance, self._audit)

    def _leave_out(
        self,
        inputs: list[Edge],
        position: int,
        delta: Composites,
        rest: Int64s,
        old_heads: list[int],
    ) -> None:
        """The rows of ``delta`` at ``rest`` do not probe now."""
        edge = inputs[position]
        self._skip(edge, len(rest))
        if self._deadlines is None:
            return
        ids = {stream: rows[rest] for stream, rows in delta.ids.items()}
        rows = edge.old_head + rest
        if isinstance(edge.input, LeafWindow):
            rows = ids[edge.input.stream.alias]
        bounds = tuple(
            other.input.rows.head if number < position else old_heads[number]
            for number, other in enumerate(inputs)
        )
        self._owe(edge, rows, ids, bounds)

    def _skip(self, edge: Edge, count: int) -> None:
        skipped = self.tally.skipped
        skipped[edge.streams] = skipped.get(edge.streams, 0) + count

    def _owe(
        self, edge: Edge, rows: Int64s, ids: Mapping[str, Int64s], bounds: tuple[int, ...]
    ) -> None:
        """The ``rows`` of an input, which are made of ``ids``, owe their probes."""
        assert self._deadlines is not None
        dated = date(ids, edge.leaves)
        lived = np.flatnonzero(dated.births <= dated.deaths)
        results = self.foreseen.get(edge.streams, -1.0)
        owed = Owed(rows, dated.births, self._deadlines(ids), bounds, results)
        self.debt.owe(edge.streams, owed.pick(lived))

    # -- debts -------------------------------------------------------------------------------

    def pay(
        self,
        process: Callable[[int], Composites],
        affordable: Callable[[StreamSet], float],
        at_once: int,
    ) -> list[Paid]:
        """Make up for owed probes, the youngest first, as long as a row is affordable.

        ``process`` is a pass through the tree for rows born at an instant or later, ``affordable``
        tells how many rows of an input can probe now, on their way to the root, ``at_once`` is the
        most rows of a pass.
        """
        paid: list[Paid] = []
        while True:
            origin = self.debt.next_origin()
            most = 0.0 if origin is None else affordable(origin)
            if origin is None or most < 1:
                return paid
            owed = self.debt.take(origin, int(min(at_once, most)))
            assert owed is not None
            self._paying = (origin, owed)
            try:
                paid.append(Paid(origin, owed, process(owed.oldest)))
            finally:
                self._paying = None

    def forget_dead(self, edges: Sequence[Edge], now: int) -> dict[StreamSet, Forgotten]:
        """On the arrival line: let go of rows that have been pushed out of their windows."""
        forgotten = {}
        for edge in edges:
            if edge.streams in self.debt.by_input:
                wanted = partial(alive, edge.input, now)
                forgotten[edge.streams] = self.debt.keep(edge.streams, wanted)
        return forgotten

    def follow(self, inputs: Iterable[tuple[Edge, JoinOperator, int]]) -> None:
        """Between pushes: know the inputs by whatever numbers their rows get.

        Of each input: its edge, the join that it feeds, and its place there.
        """
        if bool(self.debt) != self.debt.is_watching:
            known = list(inputs)
            for edge, _, _ in known:
                edge.input.rows.forget_earlier()
            self.debt.watch(
                {
                    edge.streams: (edge.input.rows, consumer.streams, position)
                    for edge, consumer, position in known
                }
            )


def alive(rows: Input, now: int, numbers: Int64s) -> NDArray[np.bool_]:
    """Whether ``rows`` with these numbers live at ``now``."""
    lives: NDArray[np.bool_] = rows.lifespans(numbers)[1] >= now
    return lives


def _matches(sampled: Composites, found: Composites) -> Int64s:
    """How many of ``found`` each of ``sampled`` has."""
    mine, theirs = _codes(sampled, sampled.ids), _codes(found, sampled.ids)
    order = np.argsort(mine, kind="stable")
    at = np.searchsorted(mine[order], theirs)
    counts = np.bincount(at[at < len(mine)], minlength=len(mine))
    return counts.astype(np.int64)


def _codes(composites: Composites, streams: Mapping[str, Int64s]) -> Int64s:
    """One number for the rows of ``streams`` in each composite; chance agreement is no harm."""
    codes = np.zeros(len(composites), np.int64)
    for stream in streams:
        codes = codes * np.int64(0x5851F42D4C957F2D) + composites.ids[stream]
    return codes
