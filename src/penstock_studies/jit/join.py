"""A join of the literal algorithm: consumer (Figure 6, Process_Input) and producer (section IV.B).

Messages are calls. A partial result is handed to the consumer at once; whatever the consumer has to
say about it is dealt with before the producer makes the next one, which is the pre-emption of
section III.B. A scan that is interrupted looks again, for each of its matches, whether it is still
wanted. Inputs that were asked for by a resumption are collected and handed over as a set.

Where this departs from the paper, because as written it would lose or repeat results:

- Figure 6 looks for MNSs of t (line 11) before the inputs S_Π that t itself has woken are there
  (line 15), and would call sub-tuples of t unwanted whose partners are in S_Π. Here lines 11 and 12
  come last.
- Only new inputs are compared with the MNS buffer. A tuple that comes back from a blacklist is as
  good a partner as a new one: it is compared, too. (Tuples of S_Π need not be: by the rule in
  :mod:`~penstock_studies.jit.mns`, nobody on the other side waits for them.)
- Who contains several suspended sub-tuples sleeps on when one of them is resumed.
- Which pairs were joined before is kept exactly; see :mod:`~penstock_studies.jit.part`.
- A composite leaves when its oldest tuple dies. The paper purges by the timestamp of the composite,
  which is that of its newest (``Form.leaves_with``).

Marks are not carried by tuples. A pair is marked if its values are those of an MNS of Type II, and
that is looked up when the pair is found; ``mark`` and ``unmark`` are sent and passed on all the
same. ∅ is handled like a sub-tuple of the left input, and passed on to both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from penstock_studies.jit.columns import Equality, Name, Pick, Values, needed_above, picker
from penstock_studies.jit.form import Form
from penstock_studies.jit.join_input import JoinInput
from penstock_studies.jit.lattice import minimal_unmatched
from penstock_studies.jit.messages import Command, Made, Message
from penstock_studies.jit.mns import Kind, Mns, name_of
from penstock_studies.jit.part import Part
from penstock_studies.jit.run_state import RunState

Sink = Callable[[Part], None]


class LiteralJoin:
    """Joins ``left`` and ``right``."""

    def __init__(
        self,
        left: JoinInput,
        right: JoinInput,
        equalities: Sequence[Equality],
        form: Form,
        run: RunState,
    ) -> None:
        """``equalities`` are those of the whole query."""
        self.inputs = (left, right)
        self.streams = left.streams | right.streams
        self.order: list[str] = [
            *(left.producer.order if left.producer else left.streams),
            *(right.producer.order if right.producer else right.streams),
        ]
        """Streams in the order of the ids of a part."""
        between = [e for e in equalities if e.side(left.streams) and e.side(right.streams)]
        left.connect(right, between, form, run.ledger)
        right.connect(left, between, form, run.ledger)
        both = [*left.layout, *right.layout]
        self.layout: list[Name] = needed_above(both, self.streams, equalities)
        self._project = picker(both, self.layout)
        self.deliver: Sink
        """Hands a result to the consumer."""
        self._both = both
        self._split: list[tuple[Kind, Pick]] = []
        """Kinds of MNS of joins above with streams of both inputs (Type II)."""
        self._form = form
        self._stamp = min if form.leaves_with == "oldest" else max
        self._run = run
        self._current: tuple[JoinInput, Part] | None = None
        self._suspensions = 0
        """How many have reached this join: a scan that sees a new one looks again."""

    def heed(self, kind: Kind) -> None:
        """MNSs of ``kind``, of a join above, concern this join and those below it."""
        left, right = self.inputs
        for each in self.inputs:
            if not kind.streams <= each.streams:
                continue
            if kind.streams or each is left:
                each.known.append((kind, picker(each.layout, kind.columns)))
            if each.producer is not None:
                each.producer.heed(kind)
        if kind.streams & left.streams and kind.streams & right.streams:
            self._split.append((kind, picker(self._both, kind.columns)))

    # -- the consumer ------------------------------------------------------------------------

    def process(self, source: JoinInput, part: Part, sink: Sink, only: Part | None = None) -> None:
        """Process_Input: a new ``part`` arrives.

        ``sink`` takes the results. ``only`` is the tuple that has asked for the part, if one has:
        then no other can match.
        """
        mns = source.suspended(part)
        if mns is not None:
            self._lay_down(source, part, mns)
        else:
            self._activate(source, part, sink, only, is_new=True)

    def _activate(
        self, source: JoinInput, part: Part, sink: Sink, only: Part | None, is_new: bool
    ) -> None:
        opposite = source.opposite
        wanted: list[Part] = []
        if only is None and opposite.producer is not None:
            wanted = self._resume(opposite, opposite.woken_by(part))  # Lines 4 to 9.
        looks_for_mns = (
            self._form.feedback and is_new and only is None and source.producer is not None
        )
        unwanted: list[Kind] = []
        if only is not None:
            self._run.ledger.comparisons += 1
            is_match = only.asleep is None and source.key(part.values) == opposite.key(only.values)
            partners = [only] if is_match else []
        elif looks_for_mns and not wanted:
            partners, unwanted = self._scan_for_mns(source, part)
        else:
            partners = self._scan(source, part)  # Line 10.
        self._join(source, part, partners, sink, is_new)
        for each in wanted:  # Lines 14 to 17.
            self.process(opposite, each, sink, only=part)
        if wanted and looks_for_mns and part.asleep is None:
            _, unwanted = self._scan_for_mns(source, part)
        if unwanted:
            self._suspend(source, part, unwanted)  # Lines 11 and 12.

    def _scan(self, source: JoinInput, part: Part) -> list[Part]:
        return source.opposite.state.find(source.probed, source.key(part.values), self._run.since)

    def _join(
        self, source: JoinInput, part: Part, partners: list[Part], sink: Sink, is_new: bool
    ) -> None:
        """Join with those of ``partners`` that are wanted and were not met before; then store."""
        before, self._current = self._current, (source, part)
        suspensions = self._suspensions
        made: list[Part] = []
        for other in partners:
            if other.asleep is not None or self._is_withheld(source, part, other):
                continue
            if not is_new and self._have_met(source, part, other):
                continue
            made.append(other)
            self._make(source, part, other, sink)
            if part.asleep is not None:
                break
        self._current = before
        if suspensions != self._suspensions:
            part.has_met(made)
        if part.asleep is None:
            part.since = self._run.tick()
            source.insert(part)  # Line 13.

    def _make(self, source: JoinInput, part: Part, other: Part, sink: Sink) -> None:
        left, right = (part, other) if source is self.inputs[0] else (other, part)
        made = Part(
            left.ids + right.ids,
            self._project(left.values + right.values),
            min(left.oldest, right.oldest),
            self._stamp(left.time, right.time),
        )
        self._run.ledger.made += 1
        if self._run.log is not None:
            name = name_of(dict(zip(self.order, made.ids, strict=True)))
            self._run.log.append(Made(self.streams, name))
        sink(made)

    def _scan_for_mns(self, source: JoinInput, part: Part) -> tuple[list[Part], list[Kind]]:
        """Line 10 with Identify_MNS: partners, and the kinds of MNS that ``part`` contains."""
        kinds, state = source.buffer.kinds, source.opposite.state
        since = self._run.since
        if state.is_empty(since):
            return [], [kinds[0]]
        if self._form.level == 0 or not source.components:
            return self._scan(source, part), []
        if source.filters:
            partners = self._scan(source, part)
            absent = [] if partners else self._absent_by_filter(source, part)
            return partners, [kinds[1 << i] for i in absent]
        places = [
            state.scan(columns, pick(part.values), since) for pick, columns in source.components
        ]
        matched = [i for i, found in enumerate(places) if len(found)]
        count = len(places)
        if not matched or (len(matched) == 1 < count):
            seen = frozenset(1 << i for i in matched)
            return [], [kinds[m] for m in minimal_unmatched(count, seen, self._form.level)]
        masks = np.zeros(len(state.parts), np.int64)
        for i in matched:
            masks[places[i]] |= 1 << i
        full = np.flatnonzero(masks == (1 << count) - 1)
        if len(full):
            return [state.parts[place] for place in full.tolist()], []
        seen = frozenset(np.unique(masks).tolist())
        return [], [kinds[m] for m in minimal_unmatched(count, seen, self._form.level)]

    def _absent_by_filter(self, source: JoinInput, part: Part) -> list[int]:
        self._run.ledger.comparisons += len(source.filters)
        return [
            i
            for i, ((pick, _), (each, _)) in enumerate(
                zip(source.components, source.filters, strict=True)
            )
            if not each.may_contain(pick(part.values))
        ]

    def _suspend(self, source: JoinInput, part: Part, kinds: list[Kind]) -> None:
        """Tell the producer of ``part`` not to make more with its components of ``kinds``."""
        assert source.producer is not None
        order = source.producer.order
        found: list[Mns] = []
        for kind in kinds:
            values = source.values_of[kind](part.values)
            if values in kind.entries:
                continue
            if self._form.guarded and source.opposite.buffer.agrees(kind, values):
                continue
            ids = {s: i for s, i in zip(order, part.ids, strict=True) if s in kind.streams}
            mns = Mns(kind, values, ids, self._run.tick(), part.time + self._run.window)
            source.buffer.add(mns)
            found.append(mns)
        self._send("suspend", source, found)
        if found:
            source.producer.suspend(found)

    def _resume(self, source: JoinInput, woken: list[Mns]) -> list[Part]:
        """What the producer of ``source`` has withheld because of ``woken``."""
        if not woken:
            return []
        assert source.producer is not None
        tick = self._run.tick()
        for mns in woken:
            source.buffer.remove(mns, tick, self._run.now + self._run.window)
        self._send("resume", source, woken)
        return source.producer.resume(woken, tick)

    # -- the producer ------------------------------------------------------------------------

    def suspend(self, found: list[Mns]) -> None:
        """Handle_Feedback: make nothing that contains one of ``found``."""
        self._suspensions += 1
        self._propagate("suspend", "mark", found)
        for source in self.inputs:
            for kind, pick in source.known:
                for mns in found:
                    if mns.kind is kind:
                        self._blacklist(source, mns, pick)

    def _blacklist(self, source: JoinInput, mns: Mns, pick: Pick) -> None:
        columns = [source.layout.index(name) for name in mns.kind.columns]
        for part in source.state.find(columns, mns.values, self._run.since):
            source.state.remove(part)
            self._lay_down(source, part, mns)
        if self._current is not None and self._current[0] is source:
            part = self._current[1]
            if part.asleep is None and pick(part.values) == mns.values:
                self._lay_down(source, part, mns)

    def _lay_down(self, source: JoinInput, part: Part, mns: Mns) -> None:
        part.fall_asleep(mns, self._run.tick())
        mns.blacklists.setdefault(source, []).append(part)
        mns.expires = max(mns.expires, part.time + self._run.window)
        self._run.ledger.hold(1, source.size + 8)

    def resume(self, woken: list[Mns], tick: int) -> list[Part]:
        """Handle_Feedback: everything that was withheld because of ``woken`` until ``tick``."""
        made: list[Part] = []
        inputs = self._propagate("resume", "unmark", woken, tick)
        for mns in woken:
            for source in self.inputs:
                for part in mns.blacklists.pop(source, ()):
                    self._run.ledger.hold(-1, source.size + 8)
                    if part.time >= self._run.since:
                        self._get_up(source, part, made.append)
        for source, parts in zip(self.inputs, inputs, strict=True):
            for part in parts:
                self.process(source, part, made.append)
        self._make_withheld([mns for mns in woken if self._is_split(mns)], tick, made.append)
        return made

    def _is_split(self, mns: Mns) -> bool:
        """Whether it is of Type II here."""
        return all(mns.kind.streams & source.streams for source in self.inputs)

    def _get_up(self, source: JoinInput, part: Part, sink: Sink) -> None:
        part.asleep = None
        mns = source.suspended(part)
        if mns is not None:
            self._lay_down(source, part, mns)
        else:
            self._activate(source, part, sink, None, is_new=False)

    def _make_withheld(self, woken: list[Mns], tick: int, sink: Sink) -> None:
        """Join the pairs that MNSs of Type II have kept apart until ``tick``."""
        left = self.inputs[0]
        done: set[tuple[Part, Part]] = set()
        for mns in woken:
            for part, other in self._pairs_of(mns):
                if (part, other) in done or self._is_withheld(left, part, other):
                    continue
                if not self._have_met(left, part, other, tick):
                    done.add((part, other))
                    self._make(left, part, other, sink)

    def _pairs_of(self, mns: Mns) -> Iterator[tuple[Part, Part]]:
        """The pairs, stored on both sides, that contain ``mns``, which is of Type II."""
        left, right = self.inputs
        own = dict(zip(mns.kind.columns, mns.values, strict=True))
        on_left = [name for name in own if name[0] in left.streams]
        on_right = [name for name in own if name[0] in right.streams]
        since = self._run.since
        for part in left.state.find(
            [left.layout.index(n) for n in on_left], [own[n] for n in on_left], since
        ):
            columns = [*left.probed, *(right.layout.index(n) for n in on_right)]
            values = [*left.key(part.values), *(own[n] for n in on_right)]
            for other in right.state.find(columns, values, since):
                yield part, other

    def _propagate(
        self, command: Command, of_two: Command, about: list[Mns], tick: int = 0
    ) -> list[list[Part]]:
        """Pass ``about`` on to the producers of both inputs; what they make of a resumption.

        An MNS of Type II is decomposed: its halves are sent with the command ``of_two``.
        """
        made: list[list[Part]] = []
        for source in self.inputs:
            inside = [mns for mns in about if mns.kind.streams <= source.streams]
            across = [
                mns for mns in about if mns not in inside and mns.kind.streams & source.streams
            ]
            new: list[Part] = []
            if source.producer is not None:
                self._send(command, source, inside)
                if inside and command == "suspend":
                    source.producer.suspend(inside)
                elif inside:
                    new = source.producer.resume(inside, tick)
                self._send(of_two, source, across)
                source.producer.mark(of_two, across)
            made.append(new)
        return made

    def mark(self, command: Command, about: list[Mns]) -> None:
        """Pass marks on to whoever makes the components."""
        for source in self.inputs:
            mine = [mns for mns in about if mns.kind.streams & source.streams]
            if source.producer is not None and mine:
                self._send(command, source, mine)
                source.producer.mark(command, mine)

    def _send(self, command: Command, source: JoinInput, about: list[Mns]) -> None:
        if self._run.log is not None and about:
            names = tuple(mns.name(source.streams) for mns in about)
            self._run.log.append(Message(command, self.streams, source.streams, names))

    # -- pairs -------------------------------------------------------------------------------

    def _pair(self, source: JoinInput, part: Part, other: Part) -> Values:
        if source is self.inputs[0]:
            return part.values + other.values
        return other.values + part.values

    def _is_withheld(self, source: JoinInput, part: Part, other: Part) -> bool:
        """Whether an MNS of Type II keeps the two apart. It must not expire before them."""
        is_withheld = False
        for kind, pick in self._split:
            if kind.entries:
                mns = kind.entries.get(pick(self._pair(source, part, other)))
                if mns is not None:
                    is_withheld = True
                    time = self._stamp(part.time, other.time)
                    mns.expires = max(mns.expires, time + self._run.window)
        return is_withheld

    def _have_met(
        self, source: JoinInput, part: Part, other: Part, before: float = math.inf
    ) -> bool:
        """Whether the two have been joined.

        They have if they were present together at a time when nothing kept them apart. Only times
        ``before`` count, unless one of them was stored later: then they met on that occasion.
        """
        if part.knows(other):
            return True
        apart: list[tuple[int, float]] = []
        for kind, pick in self._split:
            values = pick(self._pair(source, part, other))
            apart += kind.withheld_before(values)
            if values in kind.entries:
                apart.append((kind.entries[values].since, math.inf))
        for start, end in part.together(other):
            if start >= before:
                return True
            free: float = start
            for begins, ends in sorted(apart):
                if begins > free:
                    break
                free = max(free, ends)
            if free < min(end, before):
                return True
        return False
