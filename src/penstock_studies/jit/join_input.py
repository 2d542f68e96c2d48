"""One input of a join: its state, its MNS buffer, and where its columns are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.plan.stream_set import StreamSet
from penstock_studies.jit.bloom_filter import BITS, BloomFilter
from penstock_studies.jit.columns import Equality, Name, Pick, picker
from penstock_studies.jit.form import Form
from penstock_studies.jit.ledger import Ledger
from penstock_studies.jit.mns import Kind, Mns, MnsBuffer
from penstock_studies.jit.part import Part
from penstock_studies.jit.scanned_state import ScannedState

if TYPE_CHECKING:
    from penstock_studies.jit.join import LiteralJoin


class JoinInput:
    """What ``producer`` (None: a stream) supplies to a join."""

    def __init__(
        self, streams: StreamSet, layout: list[Name], producer: LiteralJoin | None, columns: int
    ) -> None:
        """``columns`` is how many a stream tuple has, its event time included."""
        self.streams = streams
        self.layout = layout
        self.producer = producer
        self.size = 8 * (columns if producer is None else len(streams) + 1)
        self.opposite: JoinInput
        self.state: ScannedState
        self.buffer: MnsBuffer
        self.known: list[tuple[Kind, Pick]] = []
        """Kinds of MNS of joins above that belong to this input alone (Type I)."""

    def connect(
        self, opposite: JoinInput, equalities: list[Equality], form: Form, ledger: Ledger
    ) -> None:
        """Meet ``opposite``, compared by ``equalities``."""
        self.opposite = opposite
        self._ledger = ledger
        self.state = ScannedState(len(self.layout), self.size, ledger)
        mine, theirs = [], []
        for each in equalities:
            here, there = each.side(self.streams), each.side(opposite.streams)
            assert here is not None
            assert there is not None
            mine.append(here)
            theirs.append(there)
        self.key = picker(self.layout, mine)
        self.probed = [opposite.layout.index(name) for name in theirs]
        """Columns of the opposite state that are compared with :attr:`key`."""
        levels = len(self.streams) if form.level is None else form.level
        self.buffer = MnsBuffer(self.streams, opposite.streams, equalities, levels, ledger)
        self.wakes = [
            (kind, picker(opposite.layout, kind.opposite_columns))
            for kind in self.buffer.kinds.values()
        ]
        """How a tuple of the opposite input is looked up in the buffer."""
        self.values_of = {
            kind: picker(self.layout, kind.columns) for kind in self.buffer.kinds.values()
        }
        level_one = MnsBuffer(self.streams, opposite.streams, equalities, 1, ledger).kinds
        self.components = [
            (
                picker(self.layout, kind.columns),
                [opposite.layout.index(name) for name in kind.opposite_columns],
            )
            for mask, kind in level_one.items()
            if mask
        ]
        """The level 1 nodes of the lattice: our values, and the columns they are compared with."""
        self.filters: list[tuple[BloomFilter, Pick]] = []
        """One for each component, over the opposite state."""
        if form.feedback and form.detection == "bloom" and self.producer is not None:
            self.filters = [
                (BloomFilter(), picker(opposite.layout, kind.opposite_columns))
                for mask, kind in level_one.items()
                if mask
            ]
            ledger.buffer(len(self.filters) * BITS // 8)

    def insert(self, part: Part) -> None:
        self.state.insert(part)
        for each, pick in self.opposite.filters:
            each.add(pick(part.values))

    def suspended(self, part: Part) -> Mns | None:
        """A known MNS that ``part`` contains."""
        for kind, pick in self.known:
            if kind.entries:
                self._ledger.comparisons += 1
                mns = kind.entries.get(pick(part.values))
                if mns is not None:
                    return mns
        return None

    def woken_by(self, part: Part) -> list[Mns]:
        """The MNSs in the buffer that ``part``, of the opposite input, matches."""
        found = []
        for kind, pick in self.wakes:
            if kind.entries:
                self._ledger.comparisons += 1
                mns = kind.entries.get(pick(part.values))
                if mns is not None:
                    found.append(mns)
        return found

    def purge(self, since: int) -> None:
        if self.state.purge(since):
            for each, pick in self.opposite.filters:
                each.refill(pick(part.values) for part in self.state.parts)
