"""The running tree of one block: leaf windows below, join operators above.

A push goes through it bottom-up, edge by edge (:mod:`penstock.engine.feedback.edge`). All deltas of
a join's inputs are stored before the join looks at them; bounds on row numbers then give each probe
the old or the new contents (:mod:`penstock.engine.join.join_operator`). Most pushes go through in
one compiled call instead (:mod:`penstock.engine.compiled.compiled_push`).

What it consists of is its :mod:`penstock.engine.tree.operator_tree`. Beside that it has three
parts, each for one concern between and around pushes: the guards
(:mod:`penstock.engine.tree.tree_guards`), what is missing since a change of plan
(:mod:`penstock.engine.tree.tree_completion`), and what probes need not see
(:mod:`penstock.engine.tree.hidden_rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.engine.compiled.arrivals import Arrivals
from penstock.engine.compiled.compiled_push import CompiledPush, Run
from penstock.engine.compiled.written_tree import WrittenTree
from penstock.engine.completion.change_time import ChangeTime
from penstock.engine.completion.missing import Missing
from penstock.engine.completion.trial import Trial
from penstock.engine.feedback.edge import Edge
from penstock.engine.feedback.feedback import Detection, Feedback
from penstock.engine.join.join_operator import JoinOperator
from penstock.engine.join.join_step import Algorithm
from penstock.engine.join.stopwatch import Stopwatch
from penstock.engine.rationing.rationing import Rationing
from penstock.engine.state.arrival import Arrival
from penstock.engine.state.composite_state import CompositeState
from penstock.engine.state.composites import Composites, none_of
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.tree.hidden_rows import HiddenRows
from penstock.engine.tree.operator_tree import OperatorTree
from penstock.engine.tree.tree_completion import TreeCompletion
from penstock.engine.tree.tree_guards import TreeGuards
from penstock.plan.plan import Join, Leaf, Node
from penstock.plan.stream_set import StreamSet
from penstock.values.wiring import Wiring

Int64s = NDArray[np.int64]

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
        """Announce the next slice, as :meth:`JoinTree.begin_slice` does."""

    def process(self, newest: JoinTree, deltas: Mapping[str, Composites]) -> Composites:
        """The results of ``deltas`` from all tracks and ``newest``, each once."""

    def marks(self) -> list[Marks]:
        """Ends of the states of each track as they are now."""

    def undo(self, marks: list[Marks]) -> None:
        """Go back to ``marks``."""

    def commit(self, newest: JoinTree) -> bool:
        """The push is done; whether ``newest`` is alone now."""

    def renumber(self, newest: JoinTree, alias: str, mapping: Int64s, first: int) -> None:
        """Rows of ``alias`` have new numbers, in the same order."""

    def dispose(self) -> None:
        """Another plan takes over from all of them."""


class JoinTree(OperatorTree):
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
        compiles: bool = True,
        time: ChangeTime | None = None,
    ) -> None:
        """``carried`` are states of another plan, if there was one: what is not among them is
        missing. Without it, all rows will come to the tree, also those that windows have already.
        ``since`` are the first rows of windows that this tree is to see, if older rows are left to
        a tree that runs beside it. ``compiles``: whether a push may be one call, and a probe order.
        ``time`` is that of the tree before it."""
        super().__init__(root, wiring, leaves, algorithm, carried or {}, since or {})
        self._compiles = compiles
        self._compiled: CompiledPush | None = None
        self.older: OlderTracks | None = None
        """Older plans that run beside this one."""
        self.guarding = TreeGuards(self, feedback)
        self.completion = TreeCompletion(self, time or ChangeTime())
        self.hidden = HiddenRows(self)
        self.stopwatch = Stopwatch()
        self.rationing: Rationing | None = None
        """The budget of probes of each input, if there is one."""
        self._nothing = none_of(sorted(root.streams))
        self._let_in = 0
        """Rows that came into inputs with the push at hand."""
        self.lower_edges()
        self.guarding.make(self._inputs)
        if carried is None and self.guarding.are_always_on:
            self.guarding.turn_all_on(is_first=True)
        self.lower_operators()
        if carried is not None:
            self.hidden.see_windows()
            self.completion.begin()
        self.guarding.begin()
        self.list_kept()

    # -- a change of plan --------------------------------------------------------------------

    def reroute(self, root: Join) -> None:
        """Go on with other probe orders of the same join; everything else stays as it is."""
        self._forget_compiled()
        super().reroute(root)

    def inherit(self, old: JoinTree) -> None:
        """Take over from ``old``, which is disposed of next. What is missing grows in the memory of
        states that it alone had, and so does what a push finds."""
        if old.older is None and not old.since:
            self.hidden.take_over(old.hidden)
        self.completion.inherit(old.completion, old.states)
        compiled = self.in_one_call()
        if compiled is not None and old._compiled is not None:
            compiled.inherit(old._compiled)

    def complete_states(self) -> dict[StreamSet, CompositeState]:
        """The states that lack nothing. (What is missing below does not matter: it
        was completed where it was needed.)"""
        known = self.known_states().items()
        return {streams: state for streams, state in known if state.missing is None}

    def known_states(self) -> dict[StreamSet, CompositeState]:
        """The states of which it is known what they lack: what was there before a change of plan,
        if anything, and nothing because rows sleep below."""
        if self.older is not None:
            return self.older.oldest.complete_states()

        def is_awake(edge: Edge) -> bool:
            return (
                not any(guard.waiting.asleep for guard in edge.guards)
                and not edge.is_leaving
                and all(is_awake(child) for child in edge.children)
            )

        return {
            edge.streams: edge.source
            for edge in self.edges
            if isinstance(edge.source, CompositeState) and is_awake(edge)
        }

    def successor(
        self,
        root: Node,
        carried: Mapping[StreamSet, CompositeState],
        since: Mapping[str, int] | None = None,
    ) -> JoinTree:
        """A tree for ``root`` over the same windows."""
        return JoinTree(
            root,
            self.wiring,
            self.leaves,
            self.algorithm,
            self.guarding.feedback,
            carried,
            since,
            self._compiles,
            self.completion.time,
        )

    def dispose(self) -> None:
        """Another tree takes over; this one still has the leaves."""
        if self.older is not None:
            self.older.dispose()
        self.guarding.dispose()
        self.completion.dispose()
        super().dispose()

    def take_stock(self) -> None:
        """Look anew at what is kept: guards have come or gone, or states that others needed."""
        self._forget_compiled()
        self.list_kept()

    def list_kept(self) -> None:
        """List what holds leaf rows."""
        super().list_kept()
        self.own_kept += self.completion.remnants

    @property
    def kept(self) -> list[CompositeState]:
        """Everything that holds leaf rows: states, rows that wait, rows that were let in."""
        return self.own_kept if self.older is None else [*self.older.kept, *self.own_kept]

    @property
    def missing(self) -> list[Missing]:
        """States that lack combinations since a change of plan."""
        return self.completion.missing

    @property
    def nbytes(self) -> int:
        """Bytes of all windows, states and filters, of what is spared for these, and of debts."""
        windows = sum(leaf.nbytes for leaf in self.leaves.values())
        states = sum(state.nbytes for state in self.kept)
        spared = self.completion.spare.nbytes
        owed = 0 if self.rationing is None else self.rationing.debt.nbytes
        return windows + states + spared + self.guarding.filter_bytes + owed

    # -- a push ------------------------------------------------------------------------------

    def push(self, arrivals: Mapping[str, Arrival]) -> Composites:
        """Store the new rows of each stream; the results that they complete."""
        deltas = {}
        self.stopwatch.start()
        for alias, new in arrivals.items():
            if len(new):
                deltas[alias] = self.leaves[alias].append(new)
                self.stopwatch.lap(self.leaves[alias].streams)
        return self.process(deltas) if self.older is None else self.older.process(self, deltas)

    def begin_slice(self, first: int, last: int, count: int, watermark: int) -> None:
        """``count`` new rows, born from ``first`` to ``last``, come next."""
        if self.older is None:
            self.look_at_slice(first, last, count, watermark)
        else:
            self.older.begin_slice(first, last, count, watermark)

    def look_at_slice(self, first: int, last: int, count: int, watermark: int) -> None:
        """Get ready for such a slice: what died before can be hidden from its probes."""
        self.hidden.hide_for(self._oldest_probe(first, last, watermark), count)

    def expect_slice(self, first: int, last: int, count: int, watermark: int, expired: int) -> int:
        """The same, except that it is for the caller to hide what died before the returned
        instant, if any, after having let go of what died before ``expired``."""
        return self.hidden.due_for(self._oldest_probe(first, last, watermark), count, expired)

    def _oldest_probe(self, first: int, last: int, watermark: int) -> int:
        """The instant before which no probe of such a slice is born.

        Rows that wait may be let in long after they were born, and what they meet may be wanted by
        any row that is still to come; the same goes for what is completed after a change of plan.
        """
        for operator in self.operators:
            operator.extent = last - first
        return min(first, watermark) if self.guarded or self.missing else first

    def unhidden(self) -> AbstractContextManager[None]:
        """Let probes see all rows, also those that died before what came last."""
        return self.hidden.all_seen()

    def process_late(self, since: int) -> Composites:
        """The results of owed probes of rows that were born at ``since`` or later.

        To be called while all rows are :meth:`unhidden`: those that died before are no partners.
        """
        self.hidden.hide_again_before(since)
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
        self.completion.begin_push()
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
        """The compiled push of the slice at hand, if the tree is fit for it."""
        if not self._compiles:
            return None
        if self.rationing is not None and not self.rationing.is_compiled:
            return None
        if self._compiled is not None and not self._compiled.is_current:
            self._forget_compiled()
        if self._compiled is None and not CompiledPush.why_not(self.edges):
            if self.missing:
                self.completion.get_ready()
            tree = WrittenTree(self.leaves, self.edges, self._top, self._inputs)
            self._compiled = CompiledPush(tree, self.counts, self.completion.time)
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
        self.completion.begin_push()
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
        """Ends of all windows and states as they are now, and the counts."""
        heads = [leaf.rows.head for leaf in self.leaves.values()]
        heads += [state.rows.head for state in self.own_kept]
        beside = [] if self.older is None else self.older.marks()
        return heads, self.counts.copy(), len(self.guarding.messages), beside

    def undo(self, marks: Marks) -> None:
        """Go back to ``marks``."""
        heads = iter(marks[0])
        self.stopwatch.forget()
        self.counts[:] = marks[1]
        del self.guarding.messages[marks[2] :]
        self._let_in = 0
        self.hidden.forget()
        self.guarding.undo()
        for leaf in self.leaves.values():
            leaf.undo(next(heads))
        for state in self.own_kept:
            state.rows.truncate(next(heads))
        self.completion.undo()
        if self.older is not None:
            self.older.undo(marks[3])

    def commit(self) -> None:
        """The push is done. Guards may be turned on and off now."""
        self.stopwatch.commit()
        if self.older is not None and self.older.commit(self):
            self.older = None
            self._welcome_guards()
        if self.completion.may_be_over:
            self._finish_completion()
        if self.guarding.commit(self._let_in, self._owes, not self.missing and not self.since):
            self.take_stock()
        self._let_in = 0

    @property
    def _owes(self) -> bool:
        return self.rationing is not None and bool(self.rationing.debt)

    def switch_guards(self, choose: Callable[[], bool], detection: Detection = "index") -> None:
        """Turn guards on or off, whatever they save, as far as that may be between two pushes."""
        if self.is_whole:
            self.guarding.switch(choose, detection)
            self.take_stock()

    def put_back(self, choose: Callable[[], bool]) -> None:
        """Let rows that have lost their partner go back to sleep at some guards, whatever that
        saves, as far as that may be between two pushes."""
        if self.is_whole:
            self.guarding.put_back(choose)
            self.take_stock()

    @property
    def is_whole(self) -> bool:
        """Whether all inputs are complete, no older plan runs beside, and no probe is owed."""
        return not (self.missing or self.since or self.older is not None or self._owes)

    # -- what is missing ---------------------------------------------------------------------

    def complete_all(self) -> None:
        """Make all that is missing, now; if that fails, nothing has been made."""
        if self.missing:
            with self._as_a_whole():
                self.completion.complete_all()
            self._finish_completion()

    def complete_within(self, seconds: float) -> Trial:
        """Make all that is missing, if that takes no longer than so many ``seconds``, or else some
        of it; if that fails, nothing has been made."""
        with self._as_a_whole():
            trial = self.completion.complete_within(seconds)
        self._finish_completion()
        return trial

    def complete_beside(self, rows: int) -> None:
        """A push of ``rows`` is done: complete some more; if that fails, nothing has been made."""
        if self.missing:
            with self._as_a_whole():
                is_less = self.completion.complete_beside(rows)
            if is_less:
                self._finish_completion()

    @contextmanager
    def _as_a_whole(self) -> Iterator[None]:
        """Between two pushes: what is done here is undone if it fails."""
        marks = self.marks()
        try:
            yield
        except BaseException:
            self.undo(marks)
            raise

    def give_up_missing(self) -> list[StreamSet]:
        """Do without what is missing: states are thin from now on; those of which joins."""
        thin = self.completion.give_up()
        self.take_stock()
        return thin

    def _finish_completion(self) -> None:
        """States that lack nothing any more are like any other; when all are, guards may come."""
        if self.completion.finish():
            self.take_stock()
        self._welcome_guards()

    def _welcome_guards(self) -> None:
        """Guards that are always on may come as soon as all inputs are complete."""
        is_whole = not self.missing and not self.since and self.older is None
        if is_whole and self.guarding.are_always_on:
            self.guarding.turn_all_on()
            self.take_stock()

    # -- windows -----------------------------------------------------------------------------

    def renumberings(self, alias: str, mapping: Int64s, first: int) -> list[Callable[[], None]]:
        """What there is to do when leaf row ``r`` of ``alias`` becomes ``mapping[r - first]``, or
        -1 where it is gone: each is done as a whole, or not at all if there is no memory."""
        steps: list[Callable[[], None]] = [
            partial(state.renumber, alias, mapping, first)
            for state in self.kept
            if alias in state.streams
        ]
        if self.older is not None:
            steps.append(partial(self.older.renumber, self, alias, mapping, first))
        return steps

    def shorten(self, found: Composites) -> None:
        """Bring the deaths of ``found`` down to the present deaths of its leaf rows."""
        for leaf in self.leaves.values():
            leaf.shorten_by_id(found)


def _run(operator: JoinOperator, inputs: list[Edge]) -> Composites | None:
    """Results of a join from the new rows of its inputs."""
    deltas = [edge.delta for edge in inputs]
    if not any(delta is not None for delta in deltas):
        return None
    return operator.process(deltas, [edge.old_head for edge in inputs])
