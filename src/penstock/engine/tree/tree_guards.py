"""The guards of a tree: which edges have them, and when they come and go.

An input of a join may wait for every other input of the same join, or of one above, as long as no
two wait for each other (:mod:`penstock.engine.feedback.edge` has the argument). Guards
that are always on come when all inputs are complete: an input that lacks rows since a change of
plan cannot say that a row has no partner. Others come and go with what they save
(:mod:`penstock.engine.feedback.feedback_policy`). Both happens between pushes.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.engine.feedback.back_to_sleep import may_go_back, put_back
from penstock.engine.feedback.demand_range import RANGED
from penstock.engine.feedback.edge import Edge, agrees, in_order, may_wait_for
from penstock.engine.feedback.feedback import Detection, Feedback, Message
from penstock.engine.feedback.feedback_policy import FeedbackPolicy
from penstock.engine.feedback.guard import Guard
from penstock.engine.tree.operator_tree import OperatorTree
from penstock.plan.plan import Node


class TreeGuards:
    """The guards on the edges of ``tree``."""

    def __init__(self, tree: OperatorTree, feedback: Feedback | None) -> None:
        self._tree = tree
        self.feedback = feedback
        self.messages: list[Message] = []
        """Messages of the guards, if they are recorded."""
        self.guards: list[Guard] = []
        """All guards, on or off, from the last join down."""
        self._policy: FeedbackPolicy | None = None

    @property
    def filter_bytes(self) -> int:
        """Bytes of all filters: what else guards keep is in windows and states."""
        return sum(guard.filter.nbytes for guard in self.guards if guard.filter is not None)

    @property
    def are_always_on(self) -> bool:
        """Whether there are guards whenever there may be."""
        return self.feedback is not None and not self.feedback.adaptive

    def make(self, inputs: list[Edge]) -> None:
        """Guard all edges, from the ``inputs`` of the last join down; no guard is on yet."""
        if self.feedback is not None:
            self._guard_inputs(self._tree.root, inputs, [], self.feedback)

    def _guard_inputs(
        self,
        node: Node,
        inputs: list[Edge],
        above: list[tuple[Node, Edge, Edge]],
        feedback: Feedback,
    ) -> None:
        """Guard the ``inputs`` of the join ``node``.

        ``above`` are the inputs of joins above for which they may wait, each with its join and the
        input of that in which they are. In an mjoin an input may wait for another input of the same
        join as well: what is found of it along a probe order need not be looked up further when a
        stream to come has no partner. Static relations wait for nothing: rows without a partner
        in them can be dropped for good. Guards that are always on agree on one order from the
        start.
        """
        order = in_order(inputs, self._tree.wiring)
        both_ways = feedback.adaptive or feedback.guards is not None
        for edge in inputs:
            siblings = [
                (node, other, edge)
                for other in order
                if other is not edge and (both_ways or may_wait_for(edge, other, order))
            ]
            if not edge.is_static:
                self._guard(edge, above + (siblings if len(inputs) > 2 else []), feedback)
            self._guard_inputs(edge.node, edge.children, siblings + above, feedback)

    def _guard(
        self, edge: Edge, opposites: list[tuple[Node, Edge, Edge]], feedback: Feedback
    ) -> None:
        for consumer, opposite, within in opposites:
            linking = self._tree.wiring.between(edge.streams, opposite.streams)
            level = len({mine.stream for mine, _ in linking.keys})
            if feedback.level is not None and level > feedback.level:
                continue
            ranges = [each for each in linking.conditions if each.operator in RANGED]
            for condition in ranges if ranges and not linking.keys else [None]:
                keys, operator = linking.keys, None
                if condition is not None:
                    keys, operator = ((condition.left, condition.right),), condition.operator
                guard = Guard(
                    edge.source,
                    opposite,
                    within.streams,
                    consumer.streams,
                    keys,
                    self._tree.leaves,
                    self._tree.counts,
                    self.messages if feedback.record else None,
                    operator,
                )
                if self._is_wanted(guard, feedback):
                    edge.guards.append(guard)
                    self.guards.append(guard)

    def _is_wanted(self, guard: Guard, feedback: Feedback) -> bool:
        """Whether a guard may be turned on: of those that are given, only who agrees is."""
        if feedback.guards is None:
            return True
        same = [each for each in self.guards if each.consumer == guard.consumer]
        return guard.name in feedback.guards and agrees(guard, same)

    def begin(self) -> None:
        """Pushes come from now on."""
        self.guards = [guard for edge in self._tree.edges for guard in edge.guards]
        if self.feedback is not None and self.feedback.adaptive and self.guards:
            self._policy = FeedbackPolicy(self._tree.leaves, self.feedback.detection)
            self._policy.watch(list(self._tree.inputs()))

    def turn_all_on(self, is_first: bool = False) -> None:
        """Let all guards test what comes from now on, in a tree to which nothing has come yet if it
        ``is_first``."""
        assert self.feedback is not None
        for edge in self._tree.edges:
            for guard in edge.guards:
                edge.turn_on(guard, self.feedback.detection, is_first)

    def switch(self, choose: Callable[[], bool], detection: Detection) -> None:
        """Turn guards on or off as ``choose`` has it, where all inputs that wait agree; all are
        complete, and no probe is owed."""
        edges = self._tree.edges
        for edge in edges:
            for guard in edge.guards:
                if edge.is_leaving or not choose():
                    continue
                open_guards = [each for other in edges for each in other.open_guards]
                same = [each for each in open_guards if each.consumer == guard.consumer]
                if guard.is_on:
                    edge.turn_off(guard)
                elif agrees(guard, same):
                    edge.turn_on(guard, detection)

    def put_back(self, choose: Callable[[], bool]) -> None:
        """Let rows that have lost their partner wait again, at the guards that ``choose`` picks;
        all inputs are complete, and no probe is owed."""
        for edge in self._tree.edges:
            for guard in edge.guards:
                if may_go_back(edge, guard) and choose():
                    put_back(edge, guard, self._tree.edges)

    def undo(self) -> None:
        """The push has failed."""
        for edge in self._tree.guarded:
            edge.undo()

    def commit(self, let_in: int, owing: bool, complete: bool) -> bool:
        """The push is done; whether guards or inputs have come or gone with it.

        ``let_in`` are the rows that came into inputs. While probes are ``owing``, inputs stay as
        they are: these know them by their rows. Guards come only where inputs are ``complete``.
        """
        if not self.guards:
            return False
        changed = False
        for edge in self._tree.guarded:
            changed |= edge.commit()
            if owing:
                edge.stay()
            else:
                changed |= edge.settle()
        if self._policy is not None and complete and not owing:
            changed |= self._policy.review(let_in)
        return changed

    def dispose(self) -> None:
        """Another tree takes over."""
        for guard in self.guards:
            guard.dispose()
        self.guards = []
        self._policy = None
