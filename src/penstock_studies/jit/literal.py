"""JIT as published: a binary tree of joins, tuple at a time, with reactive feedback.

    >>> run = LiteralJit(query, "((A B) C)", JIT, record=True)       # doctest: +SKIP
    >>> run.arrive("A", {"x": 1, "y": 100}, time=1)               # doctest: +SKIP

Every join is purge, probe, insert by nested loops, oldest first (section II), with the framework of
Figure 6 around it; see :mod:`~penstock_studies.jit.join` for the algorithm and for what had to
be done differently. Tuples must come in the order of their event times. States are purged several
times per window; in between, whoever has died is passed over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from penstock.errors import InputError, PlanError
from penstock.plan.notation import read
from penstock.plan.plan import Join, Leaf, Node
from penstock.query.join_graph import JoinGraph
from penstock_studies.jit.columns import equalities_of, needed_above, window_of
from penstock_studies.jit.form import JIT, Form
from penstock_studies.jit.join import LiteralJoin
from penstock_studies.jit.join_input import JoinInput
from penstock_studies.jit.ledger import Ledger
from penstock_studies.jit.messages import Made, Message
from penstock_studies.jit.part import Part
from penstock_studies.jit.run_state import RunState

PURGES_PER_WINDOW = 16


class LiteralJit:
    """Runs ``plan``, a binary tree in the notation, in one of the forms."""

    def __init__(self, query: JoinGraph, plan: str, form: Form = JIT, record: bool = False) -> None:
        """``record``: keep a log of messages and partial results."""
        tree = read(plan)
        tree.check(query)
        self.query = query
        self._run = RunState(window_of(query), [] if record else None)
        self._form = form
        self._equalities = equalities_of(query)
        self._inputs: dict[str, tuple[LiteralJoin, JoinInput]] = {}
        self._joins: list[LiteralJoin] = []
        self._columns: dict[str, list[str]] = {}
        self._arrived = dict.fromkeys(query.aliases, 0)
        self._found: list[Part] = []
        self._next_purge = -math.inf
        self._top = self._build(tree.root)
        self._top.deliver = self._found.append
        self._rank = [self._top.order.index(alias) for alias in query.aliases]

    @property
    def ledger(self) -> Ledger:
        """What the run has cost so far."""
        return self._run.ledger

    @property
    def log(self) -> list[Message | Made]:
        """Messages and partial results, in the order in which they were sent and made."""
        return self._run.log or []

    def arrive(
        self, stream: str, row: Mapping[str, int], time: int, number: int | None = None
    ) -> list[tuple[int, ...]]:
        """A tuple arrives: the results that it completes.

        Each has the number of its tuple of every stream, in the order of the query. If none is
        given, the tuples of a stream are numbered from 1 on.
        """
        if stream not in self._inputs:
            raise InputError(f"unknown stream {stream!r}, expected one of {self.query.aliases}")
        run = self._run
        if time < run.now and any(self._arrived.values()):
            raise InputError(f"time {time} after {run.now}: tuples must come in order")
        run.now = time
        if time >= self._next_purge:
            self._purge()
            self._next_purge = time + max(1, run.window // PURGES_PER_WINDOW)
        self._arrived[stream] += 1
        join, source = self._inputs[stream]
        values = tuple(int(row[name]) for name in self._columns[stream])
        part = Part((self._arrived[stream] if number is None else number,), values, time, time)
        join.process(source, part, join.deliver)
        found = [tuple(each.ids[i] for i in self._rank) for each in self._found]
        too_wide = sum(each.oldest < run.since for each in self._found)
        run.ledger.results += len(found) - too_wide
        run.ledger.too_wide += too_wide
        self._found.clear()
        return found

    def _build(self, node: Node) -> LiteralJoin:
        if not isinstance(node, Join) or len(node.inputs) != 2:
            raise PlanError("the literal algorithm runs trees of binary joins only")
        left, right = (self._input(each) for each in node.inputs)
        join = LiteralJoin(left, right, self._equalities, self._form, self._run)
        for source in (left, right):
            if source.producer is None:
                (stream,) = source.streams
                self._inputs[stream] = join, source
                continue
            self._connect(source.producer, join, source)
            for kind in source.buffer.kinds.values():
                source.producer.heed(kind)
        self._joins.append(join)
        return join

    def _connect(self, producer: LiteralJoin, consumer: LiteralJoin, source: JoinInput) -> None:
        def deliver(part: Part) -> None:
            consumer.process(source, part, consumer.deliver)

        producer.deliver = deliver

    def _input(self, node: Node) -> JoinInput:
        if isinstance(node, Leaf):
            alias = node.stream
            names = dict.fromkeys(
                name for e in self._equalities for name in (e.left, e.right) if name[0] == alias
            )
            layout = needed_above(names, node.streams, self._equalities)
            self._columns[alias] = [name for _, name in layout]
            return JoinInput(node.streams, layout, None, len(layout) + 1)
        producer = self._build(node)
        return JoinInput(producer.streams, producer.layout, producer, 0)

    def _purge(self) -> None:
        run = self._run
        for join in self._joins:
            for source in join.inputs:
                source.purge(run.since)
                self._purge_buffer(source)

    def _purge_buffer(self, source: JoinInput) -> None:
        run = self._run
        for mns in list(source.buffer.entries()):
            for where, parts in mns.blacklists.items():
                alive = [part for part in parts if part.time >= run.since]
                run.ledger.hold(len(alive) - len(parts), where.size + 8)
                mns.blacklists[where] = alive
            if mns.expires < run.now:
                source.buffer.remove(mns, run.tick(), run.now)
        for kind in source.buffer.kinds.values():
            kind.forget(run.now)
