"""An edge of the running tree: from a leaf or a join to the join that consumes it.

What comes along an edge goes into the input that the consumer probes. With feedback, rows pass
*guards* on the way (:mod:`penstock.engine.feedback.guard`): a row enters the input when every guard
of the edge knows a partner for it, and waits until then. To the join, a row arrives when it is let
in. So the join is the join it always was, over rows in the order of their admission: two rows meet
exactly once, when the later of them is admitted, and a row that was never wanted costs no probe.
(Rows that are let in late must not stand in the order of arrival: a walk along a chain ends at the
first row that is too old.) A leaf whose edge has a guard therefore keeps its rows twice: the window
itself, without the consumer's index, and the admitted rows with it.

**Which guards there may be.** Let X be an input on the way to join J, V the input of J that X is in
(X itself or an ancestor), and O another input of J. A row of X may wait for a partner in O only if
O comes *before* V in an order of the inputs of J. Which order that is does not matter, as long as
all guards with whom rows wait agree on it: it follows from the guards that are on
(:func:`order_for`), and a guard that would close a circle may not be turned on (:func:`agrees`).
Guards that are always on follow the order of :func:`in_order`: leaves come first, as they are
complete.

**Why nothing is lost.** Visit the tree depth first, the inputs of each join in that order: all of O
is visited before all of V. Take a result r, at the end of the push that brought its last tuple, and
suppose that a part of r on some edge X is not admitted. It exists, or else one of its own parts is
missing: take that one instead. So a guard holds it up, for want of a partner in some O. But the
part of r over O would be a partner; hence it, or a part of it, is not admitted either, and lies on
an edge inside O, which is visited before X. Go on with that one: the chain never ends, yet moves
towards the front of a finite order. So all parts of r are admitted, and r was made. Guards are
worked in the order of the visit, so one pass per push is enough.

The published algorithm suspends on both sides, and loses results in bushy plans: with
((A B)(C D)), c can sleep because no ab matches and a because no cd does, where the cd that would
match is not made as c is asleep. A b that completes (a, b, c, d) then wakes neither. The order
above makes this circle impossible. It may change between two pushes: who is asleep by then is so
at a guard that is still open, with which the new order agrees, and the argument holds for any order
that agrees with all open guards at the end of a push.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.engine.feedback.feedback import Detection
from penstock.engine.feedback.guard import Guard, User
from penstock.engine.feedback.waiting import Waiting
from penstock.engine.join.join_operator import JoinOperator
from penstock.engine.join.join_step import Input
from penstock.engine.state.composite_state import CompositeState
from penstock.engine.state.composites import Composites
from penstock.engine.state.leaf_window import LeafWindow
from penstock.plan.plan import Node
from penstock.plan.stream_set import StreamSet
from penstock.values.wiring import Wiring

Int64s = NDArray[np.int64]
Ids = Mapping[str, Int64s]


class Edge:
    """Feeds what comes from ``source`` to a join."""

    def __init__(
        self,
        node: Node,
        source: Input,
        leaves: Mapping[str, LeafWindow],
        children: Sequence[Edge],
        counts: list[int],
    ) -> None:
        """``counts`` is the tally of the whole tree; two places at its end are this edge's."""
        self.node = node
        self.streams = node.streams
        self.source = source
        self.children = list(children)
        self.producer: JoinOperator | None = None
        self.input: Input = source
        """The input that the consumer probes: the source, or what has been admitted of a leaf."""
        self.users: list[User] = []
        self.guards: list[Guard] = []
        self.delta: Composites | None = None
        """Rows that were let in by the push at hand."""
        self.old_head = 0
        """The head of the input before it."""
        self._counts = counts
        self.place = len(counts)
        counts += [0, 0]
        self.leaves = leaves
        self._leaving: list[Guard] = []
        """Guards that were turned off while rows waited."""
        self._open: list[Guard] = []
        """Guards that are on or leaving, in the order in which rows pass them."""
        self.is_guarded = False
        """Whether any guard is on, or rows still have to be fetched from one that was."""

    @property
    def came(self) -> int:
        """Rows that came from the source since the start."""
        return self._counts[self.place]

    @property
    def admitted(self) -> int:
        """Rows that were let in."""
        return self._counts[self.place + 1]

    @property
    def is_leaf(self) -> bool:
        return isinstance(self.source, LeafWindow)

    @property
    def is_static(self) -> bool:
        return isinstance(self.source, LeafWindow) and self.source.stream.is_static

    @property
    def open_guards(self) -> list[Guard]:
        """Guards that are on, or from which rows still have to be fetched."""
        return [*self._open]

    @property
    def is_leaving(self) -> bool:
        """Whether rows still have to be fetched from a guard that was turned off."""
        return bool(self._leaving)

    @property
    def kept(self) -> list[CompositeState]:
        """What the edge keeps besides its source."""
        more: list[CompositeState] = [
            guard.waiting
            for guard in self.guards
            if isinstance(guard.waiting, Waiting) and (guard.is_on or len(guard.waiting.rows))
        ]
        if isinstance(self.input, CompositeState) and self.input is not self.source:
            more.append(self.input)
        return more

    # -- a push ------------------------------------------------------------------------------

    def admit(self, fresh: Composites | None) -> None:
        """Let in what may pass of ``fresh`` and of those who have waited."""
        count = 0 if fresh is None else len(fresh)
        if count == 0:
            fresh = None
        self.old_head = self.input.rows.head
        if not self.is_guarded:
            self.delta = fresh
            if fresh is None:
                return
            self.count(count)
            if isinstance(self.source, LeafWindow):
                first = fresh.first
                self.old_head = first if first >= 0 else int(fresh.ids[self.source.stream.alias][0])
            else:
                self.source.append(fresh)
            return
        if fresh is not None and isinstance(self.source, LeafWindow):
            if fresh.first >= 0:
                self.source.asleep.wake_run(fresh.first, count)
            else:
                self.source.asleep.wake_rows(fresh.ids[self.source.stream.alias])
        passed = self._woken()
        nobody = not passed
        if fresh is not None:
            self._counts[self.place] += count
            admitted = self._pass(fresh, None)
            if len(admitted):
                passed.append(admitted)
        if not passed:
            self.delta = None
            return
        self.delta = passed[0] if nobody else _together(passed)
        assert isinstance(self.input, CompositeState)
        self.input.append(self.delta)
        self._counts[self.place + 1] += len(self.delta)

    def count(self, rows: int) -> None:
        """Count ``rows`` that came and were all let in."""
        self._counts[self.place] += rows
        self._counts[self.place + 1] += rows

    def _woken(self) -> list[Composites]:
        """Those who have waited and may come in now."""
        passed = []
        for guard in self._open:
            ids = guard.resume() if guard.is_on else None
            if guard in self._leaving:
                ids = guard.release()
            if ids is not None:
                admitted = self._pass(Composites.undated(ids), guard)
                if len(admitted):
                    passed.append(admitted)
        return passed

    def _pass(self, rows: Composites, passed: Guard | None) -> Composites:
        """The ``rows`` that every guard lets through; the others wait at one that does not."""
        for guard in self._open:
            if guard is passed or not guard.is_on:
                continue
            passing = guard.let_through(rows.ids)
            if passing is not rows.ids:
                rows = Composites.undated(passing)
            if len(rows) == 0:
                break
        return rows

    def commit(self) -> bool:
        """The push is done; whether a guard is gone with it."""
        for guard in self._open:
            guard.commit()
        is_less = bool(self._leaving)
        if is_less:
            for guard in self._leaving:
                guard.waiting.clear()
            self._leaving.clear()
            self._open = [guard for guard in self._open if guard.is_on]
        self.is_guarded = bool(self._open)
        return is_less

    def undo(self) -> None:
        """The push has failed: those who were woken sleep on."""
        for guard in self._open:
            guard.undo()

    # -- on and off, between pushes ----------------------------------------------------------

    def turn_on(self, guard: Guard, detection: Detection, is_first: bool = False) -> None:
        """Let ``guard`` test what comes from now on. What is in already stays in; if the tree
        ``is_first``, that is nothing: rows of windows will come to it as new ones."""
        guard.turn_on(detection)
        if guard not in self._open:
            self._open = [each for each in self.guards if each in self._open or each is guard]
        self.is_guarded = True
        if isinstance(self.source, LeafWindow) and self.input is self.source:
            admitted = CompositeState(self.streams, self.leaves)
            if not is_first:
                living = self.source.delta_of_all()
                if len(living):
                    admitted.append(living)
            self._move_to(admitted)

    def turn_off(self, guard: Guard) -> None:
        """Let ``guard`` rest. Those who wait at it come in with the next push."""
        guard.turn_off()
        self._leaving.append(guard)

    def settle(self) -> bool:
        """With no guard left, the consumer of a leaf probes the window itself; if that is new."""
        if self.is_guarded or self.input is self.source:
            return False
        self._move_to(self.source)
        return True

    def restore(self, admitted: CompositeState | None, asleep: Ids | None) -> None:
        """After a restart: what had been admitted, and who was asleep and comes in next."""
        if admitted is not None:
            self._move_to(admitted)
        if asleep is not None:
            self.guards[0].waiting.put(asleep)
            self._leaving.append(self.guards[0])
            self._open.append(self.guards[0])
        self.is_guarded = admitted is not None or asleep is not None

    def stay(self) -> None:
        """Keep feeding the same input, also when no guard is left."""
        self.is_guarded |= self.input is not self.source

    def _move_to(self, target: Input) -> None:
        self.input = target
        for user in self.users:
            user.retarget(target)


def _together(parts: list[Composites]) -> Composites:
    """All of ``parts``; rows of one stream in ascending order, as joins expect them."""
    ids = {stream: np.concatenate([part.ids[stream] for part in parts]) for stream in parts[0].ids}
    if len(ids) == 1:
        ids = {stream: np.sort(rows) for stream, rows in ids.items()}
    return Composites.undated(ids)


def in_order(inputs: Sequence[Edge], wiring: Wiring) -> list[Edge]:
    """The inputs of a join in the order in which a later one may wait for an earlier one.

    Static relations and leaves first; among the leaves of an mjoin those with few links first, as
    the others can wait for more. Among joins, those of many streams first: they are the rarer.
    """

    def rank(edge: Edge) -> tuple[int, int]:
        if edge.is_leaf:
            links = sum(
                bool(wiring.between(edge.streams, other.streams).keys)
                for other in inputs
                if other is not edge
            )
            return (0 if edge.is_static else 1), links
        return 2, -len(edge.streams)

    return sorted(inputs, key=rank)


def may_wait_for(waiting: Edge, opposite: Edge, order: Sequence[Edge]) -> bool:
    """Whether what comes along ``waiting`` may wait for a partner from ``opposite``.

    ``order`` are the inputs of the join where they meet.
    """
    return order.index(opposite) < order.index(waiting)


def agrees(guard: Guard, others: Sequence[Guard]) -> bool:
    """Whether there is an order of inputs for ``guard`` and the ``others`` of the same join."""
    before: dict[StreamSet, set[StreamSet]] = {}
    for each in others:
        before.setdefault(each.within, set()).add(each.opposite.streams)
    reached, todo = set(), [guard.opposite.streams]
    while todo:
        one = todo.pop()
        if one == guard.within:
            return False
        if one not in reached:
            reached.add(one)
            todo += before.get(one, ())
    return True


def order_for(order: Sequence[Edge], guards: Sequence[Guard]) -> list[Edge]:
    """The inputs of a join, whoever is waited for by one of its ``guards`` before whoever waits;
    apart from that in the given ``order``."""
    left, ordered = list(order), []
    while left:
        held = {
            guard.within
            for guard in guards
            if any(edge.streams == guard.opposite.streams for edge in left)
        }
        free = next((edge for edge in left if edge.streams not in held), left[0])
        left.remove(free)
        ordered.append(free)
    return ordered
