"""Minimal non-demanded sub-tuples, and the buffer where a join keeps those of one input.

The buffer is a hash table for each kind of component (a set of streams), keyed by the values that
are compared with the opposite input. Producers below share it: a sub-tuple is suspended as long as
it is in the buffer. An MNS therefore lives as long as the youngest tuple that sleeps for it. (In
the paper it expires with the tuple in which it was found; later tuples of equal values, asleep
under the same entry, would then sleep for good.)

**The rule.** Two MNSs of both inputs of a join *agree* if no predicate between their streams tells
them apart. A result that contains both needs them both, and each waits for the other: nobody would
ever wake them. So an MNS is not suspended while one on the other side agrees with it. That is
enough. Suppose that a result is not made. Then a part of it sleeps, for want of a partner at some
join; the partner is another part of the same result, and it, or a part of it, sleeps as well, and
so on: a finite number of parts waits in a circle. Let J be the highest join for which somebody in
the circle waits. The circle leaves the one input of J and comes back to it, so it holds an MNS of
either input of J; both belong to the same result, hence they agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.plan.stream_set import StreamSet
from penstock_studies.jit.columns import Equality, Name, Pick, Values, picker
from penstock_studies.jit.ledger import Ledger
from penstock_studies.jit.part import Part, Span

if TYPE_CHECKING:
    from penstock_studies.jit.join_input import JoinInput


class Mns:
    """A sub-tuple that nobody wants now, named after the tuple in which it was found."""

    __slots__ = ("blacklists", "expires", "ids", "kind", "since", "values")

    def __init__(
        self, kind: Kind, values: Values, ids: dict[str, int], since: int, expires: int
    ) -> None:
        self.kind = kind
        self.values = values
        self.ids = ids
        self.since = since
        self.expires = expires
        self.blacklists: dict[JoinInput, list[Part]] = {}
        """Tuples that sleep for it, at each input below."""

    def name(self, streams: StreamSet) -> str:
        """As the paper writes it, as far as it belongs to ``streams``."""
        return name_of({s: i for s, i in self.ids.items() if s in streams})


def name_of(ids: dict[str, int]) -> str:
    """``a1c1``, or ∅."""
    return "".join(f"{stream.lower()}{number}" for stream, number in sorted(ids.items())) or "∅"


class Kind:
    """The MNSs over ``streams`` among the components of an input."""

    def __init__(self, streams: StreamSet, equalities: list[Equality], opposite: StreamSet) -> None:
        """``equalities`` are all those between the input and its ``opposite``."""
        self.streams = streams
        self.compared = [i for i, each in enumerate(equalities) if each.side(streams) is not None]
        self.columns: list[Name] = []
        self.opposite_columns: list[Name] = []
        for number in self.compared:
            mine, theirs = equalities[number].side(streams), equalities[number].side(opposite)
            assert mine is not None
            assert theirs is not None
            self.columns.append(mine)
            self.opposite_columns.append(theirs)
        self.entries: dict[Values, Mns] = {}
        self._withheld: dict[Values, tuple[int, list[Span]]] = {}
        self._agreement: dict[Kind, tuple[Pick, Pick, Counter[Values]]] = {}
        """For a kind of the other input: what to compare, of ours and of theirs, and our values."""

    @property
    def size(self) -> int:
        """Bytes of an entry."""
        return 8 * (len(self.columns) + 1)

    def add(self, mns: Mns) -> None:
        self.entries[mns.values] = mns
        for ours, _, counts in self._agreement.values():
            counts[ours(mns.values)] += 1

    def remove(self, mns: Mns, tick: int, matters_until: int) -> None:
        """Where it was of Type II, it ``matters_until`` then that it kept pairs apart."""
        del self.entries[mns.values]
        if len(self.streams) > 1:
            spans = [*self.withheld_before(mns.values), (mns.since, tick)]
            self._withheld[mns.values] = matters_until, spans
        for ours, _, counts in self._agreement.values():
            left = counts[ours(mns.values)] - 1
            if left:
                counts[ours(mns.values)] = left
            else:
                del counts[ours(mns.values)]

    def withheld_before(self, values: Values) -> list[Span]:
        """When pairs with these values were kept apart by entries that are gone."""
        return self._withheld[values][1] if values in self._withheld else []

    def forget(self, now: int) -> None:
        """Everything that does not matter any more."""
        self._withheld = {v: each for v, each in self._withheld.items() if each[0] >= now}

    def agrees(self, other: Kind, values: Values) -> bool:
        """Whether an entry agrees with ``values`` of ``other``, a kind of the other input."""
        if not self.entries:
            return False
        if other not in self._agreement:
            common = [number for number in self.compared if number in other.compared]
            ours = picker(self.compared, common)
            theirs = picker(other.compared, common)
            self._agreement[other] = ours, theirs, Counter(ours(each) for each in self.entries)
        _, theirs, counts = self._agreement[other]
        return theirs(values) in counts


class MnsBuffer:
    """The MNSs of one input of a join that wait for partners in ``opposite``."""

    def __init__(
        self,
        streams: StreamSet,
        opposite: StreamSet,
        equalities: list[Equality],
        level: int,
        ledger: Ledger,
    ) -> None:
        mine = [each.side(streams) for each in equalities]
        names = dict.fromkeys(side[0] for side in mine if side is not None)
        self.components = [StreamSet.of(stream) for stream in names]
        self.kinds = {
            mask: Kind(
                StreamSet.union_of(c for i, c in enumerate(self.components) if mask >> i & 1),
                equalities,
                opposite,
            )
            for mask in range(1 << len(self.components))
            if mask.bit_count() <= level
        }
        self._ledger = ledger

    def add(self, mns: Mns) -> None:
        mns.kind.add(mns)
        self._ledger.buffer(mns.kind.size)

    def remove(self, mns: Mns, tick: int, matters_until: int) -> None:
        mns.kind.remove(mns, tick, matters_until)
        self._ledger.buffer(-mns.kind.size)

    def agrees(self, kind: Kind, values: Values) -> bool:
        """Whether an MNS here agrees with one of ``kind`` on the other side."""
        return any(mine.agrees(kind, values) for mine in self.kinds.values())

    def entries(self) -> Iterator[Mns]:
        for kind in self.kinds.values():
            yield from kind.entries.values()
