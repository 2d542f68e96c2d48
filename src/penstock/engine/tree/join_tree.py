"""The running tree of one block: leaf windows below, join operators above.

A push goes through it bottom-up, edge by edge (:mod:`penstock.engine.feedback.edge`). All deltas of
a join's inputs are stored before the join looks at them; bounds on row numbers then give each probe
the old or the new contents (:mod:`penstock.engine.join.join_operator`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.engine.compiled.arrivals import Arrivals
from penstock.engine.compiled.compiled_push import CompiledPush, Run
from penstock.engine.compiled.written_tree import WrittenTree
from penstock.engine.completion.missing import Missing
from penstock.engine.feedback.edge import Edge, in_order, may_wait_for
from penstock.engine.feedback.feedback import Feedback, Message
from penstock.engine.feedback.feedback_policy import FeedbackPolicy
from penstock.engine.feedback.guard import Guard
from penstock.engine.join.join_operator import JoinOperator
from penstock.engine.join.join_step import Algorithm, JoinStep
from penstock.engine.join.stopwatch import Stopwatch
from penstock.engine.rationing.rationing import Rationing
from penstock.engine.state.arrival import Arrival
from penstock.engine.state.bookmark import Bookmark
from penstock.engine.state.clock import END, START
from penstock.engine.state.composite_state import CompositeState
from penstock.engine.state.composites import Composites, none_of
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.page_by_page import clear_in_pieces
from penstock.engine.state.row_bits import Bytes, RowBits
from penstock.engine.state.spare_memory import SpareMemory
from penstock.engine.tree.expected_rows import expected_rows
from penstock.plan.plan import Join, Leaf, Node
from penstock.plan.stream_set import StreamSet
from penstock.values.wiring import Wiring

Int64s = NDArray[np.int64]

_ROWS_WORTH_HIDING = 1024
"""Rows that have come since dead rows were last hidden, at least: hiding is a walk."""
_ROWS_WORTH_COMPLETING = 1024
"""Old rows and combinations that are completed beside a push, at least: fewer wait for the next."""
_COMPLETED_PER_ROW = 2
"""Old rows and combinations that are completed for each row pushed: about half its work."""

Marks = tuple[list[int], list[int], int, list[Any]]


class OlderTracks(Protocol):
    """Plans from before that run beside a tree until they have nothing left to say."""

    tracks: list[JoinTree]
    """The oldest first."""

    @property
    def oldest(self) -> JoinTree:
        """The track that sees everything."""

    @property
    def kept(self) -> list[CompositeState]:
        """The states of all these tracks."""

    def begin_slice(self, first: int, last: int, count: int, watermark: int) -> None:
        """As for a tree: what comes next."""

    def process(self, newest: JoinTree, deltas: Mapping[str, Composites]) -> Composites:
        """The results of ``deltas`` from all tracks and ``newest``, each once."""

    def marks(self) -> list[Marks]:
        """Where the states of each track end now."""

    def undo(self, marks: list[Marks]) -> None:
        """Go back to ``marks``."""

    def commit(self, newest: JoinTree) -> bool:
        """The push is done; whether ``newest`` is alone now."""

    def renumber(self, newest: JoinTree, alias: str, mapping: Int64s, first: int) -> None:
        """Rows of ``alias`` have new numbers, in the same order."""

    def dispose(self) -> None:
        """Another plan takes over from all of them."""


class JoinTree:
    """Runs the plan ``root`` over ``leaves``."""

    def __init__(
        self,
        root: Node,
        wiring: Wiring,
        leaves: Mapping[str, LeafWindow],
        algorithm: Algorithm,
        feedback: Feedback | None = None,
        carried: Mapping[StreamSet, CompositeState] | None = None,
        since: Mapping[str, int] | None = None,
        in_steps: bool = False,
        spare: SpareMemory | None = None,
        compiles: bool = True,
    ) -> None:
        """``carried`` are complete states of another plan, if windows are not empty: what is not
        among them is missing. ``since`` are the first rows of windows that this tree is to see,
        if older rows are left to a tree that runs beside it. ``in_steps``: it is for the caller to
        :meth:`build` it and to :meth:`begin`. ``spare`` is memory that may be used for what is
        missing. ``compiles``: whether a push may be one call, and a probe order."""
        self._compiles = compiles
        self.root = root
        self.since = dict(since or {})
        self.elders: OlderTracks | None = None
        """Older plans that run beside this one."""
        self._is_first = carried is None
        self._carried = {} if carried is None else carried
        self.algorithm: Algorithm = algorithm
        self._feedback = feedback
        self.leaves = {alias: leaves[alias] for alias in leaves if alias in root.streams}
        self.wiring = wiring
        self._counts: list[int] = []
        """Counts of operators and steps, in one list: a failed push puts it back in one go."""
        self._nothing = none_of(sorted(root.streams))
        self._unhidden = 0
        self._hidden = START
        """The instant before which dead rows are hidden from probes; pushes go on from there."""
        self._expired = START
        """The instant before which dead rows are gone."""
        self._worth_hiding = min([leaf.span for leaf in leaves.values()], default=0) >> 5
        """Ticks that have to pass before hiding is worth a walk."""
        self.messages: list[Message] = []
        self.stopwatch = Stopwatch()
        self._inputs: list[Edge] = []
        self.edges: list[Edge] = []
        """All edges, those first for which others may wait."""
        self.guards: list[Guard] = []
        self.operators: list[JoinOperator] = []
        self.states: list[CompositeState] = []
        self._top: JoinOperator | None = None
        self.missing: list[Missing] = []
        """States that lack combinations since a change of plan."""
        self.spare = SpareMemory() if spare is None else spare
        """Memory for what is missing."""
        self._has_given_up = False
        self._allowed = 0
        """Rows and combinations that may be completed beside the next push."""
        self._bounds: dict[str, Bookmark] = {}
        """The ends of windows at the change of plan, while something is missing."""
        self._memory: dict[int, Bytes] = {}
        """Memory for a bit per row that states are completed with, by the edge it comes from."""
        self._policy: FeedbackPolicy | None = None
        self._kept: list[CompositeState] = []
        self._guarded: list[Edge] = []
        self._compiled: CompiledPush | None = None
        self.rationing: Rationing | None = None
        """The budget of probes of each input, if there is one."""
        self._let_in = 0
        """Rows that came into inputs with the push at hand."""
        self._is_in_steps = in_steps
        self._building = self._build()
        if not in_steps:
            while self.build():
                pass
            self.begin()

    # -- construction ------------------------------------------------------------------------

    def build(self) -> bool:
        """Do a part of the construction, about as much work as a push of a row; whether there is
        more to do. Nobody else takes notice of it."""
        return next(self._building, None) is not None

    def _build(self) -> Iterator[bool]:
        root, feedback = self.root, self._feedback
        self._inputs = [self._edge(each) for each in root.inputs] if isinstance(root, Join) else []
        self.edges = list(self._in_order_of_visit(self._inputs))
        if feedback is not None:
            self._set_guards(root, self._inputs, [], feedback)
            if self._is_first and not feedback.adaptive:
                self._turn_all_on()
        yield True
        for edge in _from_below(self._inputs):
            if isinstance(edge.source, CompositeState):
                edge.producer = self._operator(edge.node, edge.children, edge.source)
                yield True
        self._top = self._operator(root, self._inputs, None)
        if self._is_in_steps and self._top is not None:
            yield True
            yield from self._expect_missing()
            self.in_one_call()
            yield True

    def _expect_missing(self) -> Iterator[bool]:
        """Get ready for what will be missing: the way to complete it, and memory."""
        for edge in _from_below(self._inputs):
            if isinstance(edge.source, CompositeState) and edge.streams not in self._carried:
                edge.source.missing = self._missing_of(edge, edge.source)
        self.get_ready_to_complete()
        for edge in _from_below(self._inputs):
            if isinstance(edge.source, CompositeState) and edge.source.missing is not None:
                expected = self._expected_rows(edge)
                yield True
                yield from edge.source.make_room_to_complete(expected, self.spare)
                for child in edge.children:
                    memory = RowBits.memory_for(len(child.source.rows) * 9 // 8)
                    self._memory[id(child)] = memory
                    yield from clear_in_pieces([memory])
                yield True

    def _missing_of(self, edge: Edge, state: CompositeState) -> Missing:
        sources = [child.source for child in edge.children]
        return Missing(state, sources, self.wiring, self.leaves, self.algorithm)

    def _expected_rows(self, edge: Edge) -> int:
        """How many rows the state of ``edge`` is going to have; what that took is not counted."""
        counts = self._counts.copy()
        expected = expected_rows(edge)
        self._counts[:] = counts
        return expected

    def begin(self, old: JoinTree | None = None) -> None:
        """Take over: what is not carried over is missing from now on.

        What the ``old`` tree, if it is known, has hidden of the windows remains hidden; as far as
        it may be wanted, the next slice will see it again (:meth:`look_at_slice`).
        """
        if not self._is_first:
            if old is not None and old.elders is None and not old.since:
                self._hidden, self._expired = old._hidden, old._expired
            else:
                self.see_windows()
            self._bounds = {alias: Bookmark(leaf.rows) for alias, leaf in self.leaves.items()}
            self._note_missing(self._inputs)
        self._memory = {}
        self.guards = [guard for edge in self.edges for guard in edge.guards]
        if self._feedback is not None and self._feedback.adaptive and self.guards:
            self._policy = FeedbackPolicy(self.leaves)
            for edge, consumer, position in self.inputs():
                for guard in edge.guards:
                    self._policy.watch(edge, guard, consumer, position)
        self._list_kept()

    def _edge(self, node: Node) -> Edge:
        if isinstance(node, Leaf):
            return Edge(node, self.leaves[node.stream], self.leaves, [], self._counts)
        children = [self._edge(each) for each in node.inputs]
        state = self._carried.get(node.streams) or CompositeState(node.streams, self.leaves)
        return Edge(node, state, self.leaves, children, self._counts)

    def _in_order_of_visit(self, inputs: list[Edge]) -> Iterator[Edge]:
        for edge in in_order(inputs, self.wiring):
            yield from self._in_order_of_visit(edge.children)
            yield edge

    def _set_guards(
        self, node: Node, inputs: list[Edge], above: list[tuple[Node, Edge]], feedback: Feedback
    ) -> None:
        """Guard the ``inputs`` of the join ``node``.

        ``above`` are the inputs of joins above for which they may wait, each with its join. In an
        mjoin an input may wait for another input of the same join as well: what is found of it
        along a probe order need not be looked up further when a stream to come has no partner.
        Static relations wait for nobody: who finds no partner in them can be dropped for good.
        """
        order = in_order(inputs, self.wiring)
        for edge in inputs:
            siblings = [(node, o) for o in order if o is not edge and may_wait_for(edge, o, order)]
            if not edge.is_static:
                self._guard(edge, above + (siblings if len(inputs) > 2 else []), feedback)
            self._set_guards(edge.node, edge.children, siblings + above, feedback)

    def _guard(self, edge: Edge, opposites: list[tuple[Node, Edge]], feedback: Feedback) -> None:
        for consumer, opposite in opposites:
            keys = self.wiring.between(edge.streams, opposite.streams).keys
            level = len({mine.stream for mine, _ in keys})
            if feedback.level is not None and level > feedback.level:
                continue
            guard = Guard(
                edge.source,
                opposite,
                consumer.streams,
                keys,
                self.leaves,
                feedback.detection,
                self._counts,
                self.messages if feedback.record else None,
            )
            edge.guards.append(guard)

    def _operator(
        self, node: Node, inputs: list[Edge], state: CompositeState | None
    ) -> JoinOperator | None:
        """The operator of ``node``, if it is a join, after those of the joins below it."""
        if not isinstance(node, Join):
            return None
        operator = JoinOperator(
            node,
            [edge.input for edge in inputs],
            self.wiring,
            self.leaves,
            self.algorithm,
            state,
            self._counts,
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
        self._forget_compiled()
        self.root = root
        self._top.reroute(root, [edge.input for edge in self._inputs])
        for edge in self._inputs:
            edge.users = [user for user in edge.users if not isinstance(user, JoinStep)]
        self._note_users(self._top, self._inputs)

    def _note_missing(self, inputs: list[Edge]) -> None:
        """What is not carried over can be made of the inputs of its join."""
        for edge in inputs:
            self._note_missing(edge.children)
            if not isinstance(edge.source, CompositeState):
                continue
            state = edge.source
            state.rows.low = state.rows.tail
            if edge.streams in self._carried or any(s in self.since for s in edge.streams):
                continue
            sources = [child.source for child in edge.children]
            if all(len(each.rows) or each.missing is not None for each in sources):
                missing = state.missing
                if not isinstance(missing, Missing):
                    missing = state.missing = self._missing_of(edge, state)
                missing.note_old_rows(
                    self._bounds, [self._memory.get(id(child)) for child in edge.children]
                )
                self.missing.append(missing)
            elif state.missing is not None:
                state.missing.dispose()
                state.missing = state.rows.spare = None

    def inherit(self, old: JoinTree) -> None:
        """What is missing grows in the memory of states that ``old`` alone had, which is disposed
        of next; and so does what a push finds."""
        if self._compiled is not None and old._compiled is not None:
            self._compiled.inherit(old._compiled)
        if not self.missing:
            self._settle()
            return
        carried = {id(state) for state in self.states}
        dropped = [state.rows.block for state in old.states if id(state) not in carried]
        blocks = [*old.spare.blocks, *(block for block in dropped if block is not None)]
        self.spare = SpareMemory(sorted(blocks, key=len)[-len(self.missing) :])
        for missing in self.missing:
            missing.state.rows.spare = self.spare

    def get_ready_to_complete(self) -> None:
        """Take over the indexes that completing on demand will use, before others let them go."""
        for operator in self.operators:
            for steps in operator.steps:
                for _, step in steps:
                    step.get_ready_to_complete()

    def _turn_all_on(self) -> None:
        for edge in self.edges:
            for guard in edge.guards:
                edge.turn_on(guard)

    def complete_states(self) -> dict[StreamSet, CompositeState]:
        """The states that lack nothing: nothing is missing since a change of plan, and nobody
        sleeps below. (What is missing below does not matter: whoever needed it was given it.)"""
        if self.elders is not None:
            return self.elders.oldest.complete_states()

        def is_awake(edge: Edge) -> bool:
            return (
                not any(guard.waiting.asleep for guard in edge.guards)
                and not edge.is_leaving
                and all(is_awake(child) for child in edge.children)
            )

        return {
            edge.streams: edge.source
            for edge in self.edges
            if isinstance(edge.source, CompositeState)
            and edge.source.missing is None
            and is_awake(edge)
        }

    def successor(
        self,
        root: Node,
        carried: Mapping[StreamSet, CompositeState],
        since: Mapping[str, int] | None = None,
        in_steps: bool = False,
    ) -> JoinTree:
        """A tree for ``root`` over the same windows."""
        return JoinTree(
            root,
            self.wiring,
            self.leaves,
            self.algorithm,
            self._feedback,
            carried,
            since,
            in_steps,
            self.spare if in_steps else None,
            self._compiles,
        )

    def carries(self, complete: Mapping[StreamSet, CompositeState]) -> bool:
        """Whether, of the states that are ``complete`` now, it carries over just what it can."""
        return all(
            complete.get(edge.streams) is self._carried.get(edge.streams)
            for edge in self.edges
            if isinstance(edge.source, CompositeState)
        )

    def dispose(self) -> None:
        """Another tree takes over; whoever knows this one may still ask it for the leaves."""
        if self.elders is not None:
            self.elders.dispose()
        for guard in self.guards:
            guard.dispose()
        for state in self.states:
            if state.missing is not None:
                state.missing.dispose()
        self._forget_bounds()
        for operator in self.operators:
            for steps in operator.steps:
                for _, step in steps:
                    step.dispose()
        self.operators, self.states, self._kept, self.guards = [], [], [], []
        self.edges, self._inputs, self._guarded, self.missing = [], [], [], []
        self._top = self._policy = None

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

    def take_stock(self) -> None:
        """Look anew at what edges keep: guards have come or gone."""
        self._forget_compiled()
        self._list_kept()

    def _list_kept(self) -> None:
        self._kept = [*self.states, *(each for edge in self.edges for each in edge.kept)]
        self._guarded = [edge for edge in self.edges if edge.is_guarded]

    @property
    def kept(self) -> list[CompositeState]:
        """Everything that holds leaf rows: states, those who wait, those who were admitted."""
        return self._kept if self.elders is None else [*self.elders.kept, *self._kept]

    @property
    def counts(self) -> list[int]:
        """What operators and steps have counted since the start, at their places."""
        return self._counts

    @property
    def nbytes(self) -> int:
        """Bytes of all windows and states, and of what is spared for these."""
        windows = sum(leaf.nbytes for leaf in self.leaves.values())
        return windows + sum(state.nbytes for state in self.kept) + self.spare.nbytes

    # -- a push ------------------------------------------------------------------------------

    def push(self, arrivals: Mapping[str, Arrival]) -> Composites:
        """Store the new rows of each stream; the results that they complete."""
        deltas = {}
        self.stopwatch.start()
        for alias, new in arrivals.items():
            if len(new):
                deltas[alias] = self.leaves[alias].append(new)
                self.stopwatch.lap(self.leaves[alias].streams)
        return self.process(deltas) if self.elders is None else self.elders.process(self, deltas)

    def see_windows(self) -> None:
        """Let probes see the rows of the windows that are this tree's."""
        for alias, leaf in self.leaves.items():
            leaf.rows.low = max(leaf.rows.tail, self.since.get(alias, 0))

    def begin_slice(self, first: int, last: int, count: int, watermark: int) -> None:
        """``count`` new rows, born from ``first`` to ``last``, come next."""
        if self.elders is None:
            self.look_at_slice(first, last, count, watermark)
        else:
            self.elders.begin_slice(first, last, count, watermark)

    def look_at_slice(self, first: int, last: int, count: int, watermark: int) -> None:
        """Get ready for such a slice.

        What died before can be hidden from their probes. That shortens chains but costs a walk, so
        it is done only once for many rows, and where time has passed since rows expired. Rows that
        wait may be let in long after they were born, and what they meet may be wanted by any row
        that is still to come; the same goes for what is completed after a change of plan. Then only
        what died before ``watermark``, too, is hidden.
        """
        since = self.expect_slice(first, last, count, watermark, self._expired)
        if since > START:
            self.hide_before(since)

    def expect_slice(self, first: int, last: int, count: int, watermark: int, expired: int) -> int:
        """The same, except that it is for the caller to :meth:`hide_before` the returned instant,
        if any, after having let go of what died before ``expired``."""
        for operator in self.operators:
            operator.extent = last - first
        if self._guarded or self.missing:
            first = min(first, watermark)
        if first < self._hidden:
            self._hidden = START
            self.see_windows()
            for state in self._kept:
                state.rows.low = state.rows.tail
        self._unhidden += count
        passed = first - max(self._hidden, expired)
        if self._unhidden < _ROWS_WORTH_HIDING or passed < self._worth_hiding:
            return START
        self._hidden, self._unhidden = first, 0
        return first

    def hide_before(self, instant: int) -> None:
        """Let probes skip the oldest rows of all windows and states that died before then."""
        for leaf in self.leaves.values():
            leaf.rows.hide_before(instant)
        for state in self._kept:
            state.hide()

    def note_expired(self, before: int) -> None:
        """All windows and states have let go of what died before then."""
        self._expired = before

    @contextmanager
    def unhidden(self) -> Iterator[None]:
        """Let probes see all rows, also those that died before what came last.

        Afterwards the same rows are hidden as before: what is held for owed probes must not make
        the chains longer that everybody else walks.
        """
        rings = [leaf.rows for leaf in self.leaves.values()]
        rings += [state.rows for state in self._kept]
        lows = [rows.low for rows in rings]
        for rows in rings:
            rows.low = rows.tail
            rows.is_late = True
        for operator in self.operators:
            operator.extent = END
        try:
            yield
        finally:
            for rows, low in zip(rings, lows, strict=True):
                rows.low = low
                rows.is_late = False

    def process_late(self, since: int) -> Composites:
        """The results of owed probes of rows that were born at ``since`` or later.

        To be called while all rows are :meth:`unhidden`: those that died before are no partners.
        """
        for leaf in self.leaves.values():
            leaf.rows.low = leaf.rows.tail
            leaf.rows.hide_before(since)
        for state in self._kept:
            state.rows.low = state.rows.tail
            state.hide()
        return self.process({})

    def process(self, deltas: Mapping[str, Composites]) -> Composites:
        """The results of ``deltas``, the newest rows of the leaves, which already hold them."""
        if self._top is None:
            (stream,) = self.leaves
            return deltas.get(stream, self._nothing)
        compiled = self.in_one_call()
        if compiled is not None and all(delta.first >= 0 for delta in deltas.values()):
            news = {alias: (delta.first, len(delta)) for alias, delta in deltas.items()}
            return self.run_compiled(compiled, news)
        for missing in self.missing:
            missing.begin()
        run = _run if self.rationing is None else self.rationing.run
        self.stopwatch.start()
        for edge in self.edges:
            if isinstance(edge.node, Leaf):
                edge.admit(deltas.get(edge.node.stream))
            else:
                assert edge.producer is not None
                edge.admit(run(edge.producer, edge.children))
            self._let_in += 0 if edge.delta is None else len(edge.delta)
            self.stopwatch.lap(edge.streams)
        made = run(self._top, self._inputs) or self._nothing
        self.stopwatch.lap(self.root.streams)
        return made

    @property
    def is_written_down(self) -> bool:
        """Whether the last push could have been one call."""
        return self._compiled is not None

    @property
    def is_torn(self) -> bool:
        """Whether rows have come of which rings do not know: there is no way back."""
        return self._compiled is not None and self._compiled.is_torn

    def in_one_call(self) -> CompiledPush | None:
        """What can work off the slice at hand in one call, if the tree is fit for it."""
        if not self._compiles:
            return None
        if self.rationing is not None and not self.rationing.is_compiled:
            return None
        if self._compiled is not None and not self._compiled.is_current:
            self._forget_compiled()
        if self._compiled is None and not CompiledPush.why_not(self.edges):
            if self.missing:
                self.get_ready_to_complete()
            tree = WrittenTree(self.leaves, self.edges, self._top, self._inputs)
            self._compiled = CompiledPush(tree, self._counts)
        compiled = self._compiled
        return compiled if compiled is not None and compiled.fits else None

    @property
    def why_not_in_one_call(self) -> str:
        """Why :meth:`in_one_call` has nothing to offer."""
        if self.rationing is not None and not self.rationing.is_compiled:
            return "probes that are given out by rank"
        return CompiledPush.why_not(self.edges)

    def run_compiled(
        self, compiled: CompiledPush, news: Mapping[str, Run], lasting: bool = True
    ) -> Composites:
        """The results of the slice at hand, for good or until the next one."""
        self._begin_run(compiled)
        compiled.run(news, self.stopwatch)
        self._note_run(compiled)
        return self.found(compiled, lasting)

    def run_whole(self, compiled: CompiledPush, arrivals: Arrivals, count: int) -> None:
        """Push ``count`` rows that are in no window yet."""
        self._begin_run(compiled)
        compiled.run_whole(arrivals, count, self.stopwatch)
        self._note_run(compiled)

    def _begin_run(self, compiled: CompiledPush) -> None:
        for missing in self.missing:
            missing.begin()
        if self.rationing is not None:
            self.rationing.hand_to(compiled)
        elif compiled.is_rationed:
            compiled.ration(None, {}, 0)

    def _note_run(self, compiled: CompiledPush) -> None:
        self._let_in += compiled.let_in
        if self.rationing is not None:
            self.rationing.take_from(compiled)

    def found(self, compiled: CompiledPush, lasting: bool) -> Composites:
        """The results of the push at hand, for good or until the next one."""
        return compiled.found(lasting) or self._nothing

    def _forget_compiled(self) -> None:
        """The tree is not what was written down."""
        if self._compiled is not None:
            self._compiled.hand_back()
            self._compiled = None

    def marks(self) -> Marks:
        """Where every window and state ends now, and what was counted."""
        heads = [leaf.rows.head for leaf in self.leaves.values()]
        heads += [state.rows.head for state in self._kept]
        beside = [] if self.elders is None else self.elders.marks()
        return heads, self._counts.copy(), len(self.messages), beside

    def undo(self, marks: Marks) -> None:
        """Go back to ``marks``."""
        heads = iter(marks[0])
        self.stopwatch.forget()
        self._counts[:] = marks[1]
        del self.messages[marks[2] :]
        self._hidden = START
        self._let_in = 0
        for edge in self._guarded:
            edge.undo()
        for leaf in self.leaves.values():
            leaf.undo(next(heads))
        for state in self._kept:
            state.rows.truncate(next(heads))
        for missing in self.missing:
            missing.undo()
        if self.elders is not None:
            self.elders.undo(marks[3])

    def commit(self) -> None:
        """The push is done. Guards may be turned on and off now."""
        self.stopwatch.commit()
        self._commit_guards()
        self._let_in = 0

    def _commit_guards(self) -> None:
        if self.elders is not None and self.elders.commit(self):
            self.elders = None
            self._welcome_guards()
        if self.missing or self._has_given_up:
            self._has_given_up = False
            self._finish_completion()
        if not self.guards:
            return
        settled = False
        if self.rationing is not None and self.rationing.debt:
            for edge in self._guarded:  # Owed probes know inputs by their rows: none may move.
                settled |= edge.commit()
                edge.stay()
            if settled:
                self.take_stock()
            return
        for edge in self._guarded:
            settled |= edge.commit()
            settled |= edge.settle()
        if self._policy is not None and not self.missing and not self.since:
            settled |= self._policy.review(self._let_in)
        if settled:
            self.take_stock()

    def complete_all(self) -> None:
        """Make all that is missing, now."""
        for missing in self.missing:
            missing.begin()
        for missing in self.missing:
            missing.complete_all()
        if self.missing:
            self._finish_completion()

    def complete_beside(self, rows: int) -> None:
        """A push of ``rows`` is done: complete some more, about half as much work as it was.

        After small pushes that is put off until it is worth the calls.
        """
        self._allowed += _COMPLETED_PER_ROW * rows
        if self._allowed < _ROWS_WORTH_COMPLETING:
            return
        most, self._allowed = self._allowed, 0
        for missing in self.missing:
            missing.begin()
            most -= missing.complete_beside(most)
            if most <= 0:
                break
        self._finish_completion()

    def give_up_missing(self) -> list[StreamSet]:
        """Do without what is missing: states are thin from now on; those of which joins."""
        thin = [missing.state.streams for missing in self.missing]
        for missing in self.missing:
            missing.state.missing = missing.state.rows.spare = None
            missing.dispose()
        self.missing = []
        self._forget_compiled()
        self._settle()
        self._has_given_up = True
        return thin

    def _finish_completion(self) -> None:
        """States that lack nothing any more are like any other; when all are, guards may come."""
        left = []
        for missing in self.missing:
            missing.commit()
            if missing.is_over:
                missing.state.missing = missing.state.rows.spare = None
                missing.dispose()
            else:
                left.append(missing)
        if len(left) < len(self.missing):
            self._forget_compiled()
        self.missing = left
        if not left:
            self._forget_bounds()
            self._settle()
        self._welcome_guards()

    def expect_change(self) -> None:
        """A change of plan is being prepared: until it is over, pushes have enough to do, and are
        not to wait for huge pages."""
        for each in (*self.leaves.values(), *self.states):
            each.rows.give_page_by_page(True)

    def _settle(self) -> None:
        """Nothing is missing any more."""
        self.spare = SpareMemory()
        for each in (*self.leaves.values(), *self.states):
            each.rows.give_page_by_page(False)

    def _forget_bounds(self) -> None:
        for bound in self._bounds.values():
            bound.dispose()
        self._bounds = {}

    def _welcome_guards(self) -> None:
        """Guards that are always on may come as soon as all inputs are complete."""
        if (
            not self.missing
            and not self.since
            and self.elders is None
            and self._feedback is not None
            and not self._feedback.adaptive
        ):
            self._turn_all_on()
            self.take_stock()

    def renumberings(self, alias: str, mapping: Int64s, first: int) -> list[Callable[[], None]]:
        """What there is to do when leaf row ``r`` of ``alias`` becomes ``mapping[r - first]``, or
        -1 where it is gone: each is done as a whole, or not at all if there is no memory."""
        steps: list[Callable[[], None]] = [
            partial(state.renumber, alias, mapping, first)
            for state in self.kept
            if alias in state.streams
        ]
        if self.elders is not None:
            steps.append(partial(self.elders.renumber, self, alias, mapping, first))
        return steps

    def shorten(self, found: Composites) -> None:
        """Bring the deaths of ``found`` down to the present deaths of its leaf rows."""
        for leaf in self.leaves.values():
            leaf.shorten_by_id(found)


def _from_below(edges: list[Edge]) -> Iterator[Edge]:
    """Every edge after those below it."""
    for edge in edges:
        yield from _from_below(edge.children)
        yield edge


def _run(operator: JoinOperator, inputs: list[Edge]) -> Composites | None:
    """What a join makes of what its inputs have just got."""
    deltas = [edge.delta for edge in inputs]
    if not any(delta is not None for delta in deltas):
        return None
    return operator.process(deltas, [edge.old_head for edge in inputs])
