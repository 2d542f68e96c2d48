"""A plan lowered to operators: windows below, a state and an operator for each join above them.

Lowering goes down the plan once for the edges (:mod:`penstock.engine.feedback.edge`), each from a
window or a state to the join that it feeds, and then up again for the operators, since an operator
looks at its inputs when it is made. Between the two, guards can be put on the edges. A state that
another plan had is taken instead of a new one.

Here is what a tree consists of, and nothing that happens in a push.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.engine.feedback.edge import Edge, in_order, order_for
from penstock.engine.join.join_operator import JoinOperator
from penstock.engine.join.join_step import Algorithm, JoinStep
from penstock.engine.state.composite_state import CompositeState
from penstock.engine.state.leaf_window import LeafWindow
from penstock.plan.plan import Join, Leaf, Node
from penstock.plan.stream_set import StreamSet
from penstock.values.wiring import Wiring


class OperatorTree:
    """The edges, operators and states of the plan ``root`` over ``leaves``."""

    def __init__(
        self,
        root: Node,
        wiring: Wiring,
        leaves: Mapping[str, LeafWindow],
        algorithm: Algorithm,
        carried: Mapping[StreamSet, CompositeState],
        since: Mapping[str, int],
    ) -> None:
        """``carried`` are states of another plan, ``since`` the first rows of windows
        that this tree is to see, if older rows are left to a tree that runs beside it."""
        self.root = root
        self.wiring = wiring
        self.leaves = {alias: leaves[alias] for alias in leaves if alias in root.streams}
        self.algorithm: Algorithm = algorithm
        self.carried = carried
        self.since = dict(since)
        self.counts: list[int] = []
        """Counts of edges, operators and steps since the start, each at its place in one list: a
        failed push puts it back in one go."""
        self.edges: list[Edge] = []
        """All edges, those first for which others may wait."""
        self.numbered: list[Edge] = []
        """The same in an order that is the same for every tree of the plan."""
        self.operators: list[JoinOperator] = []
        self.states: list[CompositeState] = []
        self.own_kept: list[CompositeState] = []
        """Stores of leaf rows: states, rows that wait, rows that were admitted."""
        self.guarded: list[Edge] = []
        """Edges on which rows may wait."""
        self._inputs: list[Edge] = []
        """The inputs of the last join."""
        self._top: JoinOperator | None = None

    def lower_edges(self) -> None:
        """Make the edges, and new states for joins that have none."""
        if isinstance(self.root, Join):
            self._inputs = [self._edge(each) for each in self.root.inputs]
        self.edges = self.numbered = list(self._in_order_of_visit(self.root, self._inputs))

    def lower_operators(self) -> None:
        """Make the operators, each after those of the joins below it, and the last one last."""
        for edge in self.from_below():
            if isinstance(edge.source, CompositeState):
                edge.producer = self._operator(edge.node, edge.children, edge.source)
        self._top = self._operator(self.root, self._inputs, None)

    def _edge(self, node: Node) -> Edge:
        if isinstance(node, Leaf):
            return Edge(node, self.leaves[node.stream], self.leaves, [], self.counts)
        children = [self._edge(each) for each in node.inputs]
        state = self.carried.get(node.streams) or CompositeState(node.streams, self.leaves)
        return Edge(node, state, self.leaves, children, self.counts)

    def _in_order_of_visit(self, node: Node, inputs: list[Edge]) -> Iterator[Edge]:
        order = in_order(inputs, self.wiring)
        waited = [
            guard
            for edge in self.guarded
            for guard in edge.open_guards
            if guard.consumer == node.streams
        ]
        for edge in order_for(order, waited) if waited else order:
            yield from self._in_order_of_visit(edge.node, edge.children)
            yield edge

    def _operator(
        self, node: Node, inputs: list[Edge], state: CompositeState | None
    ) -> JoinOperator | None:
        """The operator of ``node``, if it is a join."""
        if not isinstance(node, Join):
            return None
        operator = JoinOperator(
            node,
            [edge.input for edge in inputs],
            self.wiring,
            self.leaves,
            self.algorithm,
            state,
            self.counts,
        )
        self._note_users(operator, inputs)
        self.operators.append(operator)
        if state is not None:
            self.states.append(state)
        return operator

    def _note_users(self, operator: JoinOperator, inputs: list[Edge]) -> None:
        for steps in operator.steps:
            for other, step in steps:
                inputs[other].users.append(step)

    def reroute(self, root: Join) -> None:
        """Go on with other probe orders of the same join; everything else stays as it is."""
        assert self._top is not None
        self.root = root
        self._top.reroute(root, [edge.input for edge in self._inputs])
        for edge in self._inputs:
            edge.users = [user for user in edge.users if not isinstance(user, JoinStep)]
        self._note_users(self._top, self._inputs)

    def dispose(self) -> None:
        """Let go of indexes and states; the windows remain."""
        for step in self.steps():
            step.dispose()
        self.operators, self.states, self.own_kept = [], [], []
        self.edges, self.numbered, self._inputs, self.guarded = [], [], [], []
        self._top = None

    def list_kept(self) -> None:
        """Look anew at what edges keep, and at their order: guards have come or gone."""
        self.own_kept = [*self.states, *(each for edge in self.edges for each in edge.kept)]
        before, self.guarded = self.guarded, [edge for edge in self.edges if edge.is_guarded]
        if before or self.guarded:
            self.edges = list(self._in_order_of_visit(self.root, self._inputs))

    def steps(self) -> Iterator[JoinStep]:
        """The steps of all probe orders."""
        for operator in self.operators:
            for steps in operator.steps:
                for _, step in steps:
                    yield step

    def inputs(self) -> Iterator[tuple[Edge, JoinOperator, int]]:
        """Every edge with the join that it feeds, and as which input."""

        def below(
            consumer: JoinOperator | None, edges: list[Edge]
        ) -> Iterator[tuple[Edge, JoinOperator, int]]:
            for position, edge in enumerate(edges):
                assert consumer is not None
                yield edge, consumer, position
                yield from below(edge.producer, edge.children)

        yield from below(self._top, self._inputs)

    def from_below(self, edges: list[Edge] | None = None) -> Iterator[Edge]:
        """Every edge after those below it."""
        for edge in self._inputs if edges is None else edges:
            yield from self.from_below(edge.children)
            yield edge
