"""The join problem of one block of a query: its streams as numbers, ready to be priced.

Costs of a join depend on its inputs alone, as sets of streams; so they are computed once per such
list and kept. Nothing else in here changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penstock.planning.bits import bits_of
from penstock.planning.cardinality import Cardinality, Floats, exp
from penstock.planning.storage import Storage
from penstock.planning.unit_costs import UnitCosts

ROWS_OF_A_FULL_BATCH = 1024
"""Rows of a batch that are many for a state: the cost of a batch is paid in full."""


class Cost(NamedTuple):
    """What a plan or a part of it uses per second."""

    cpu: float
    """CPU seconds per second: the share of a core."""
    memory: float
    """Bytes (or tuples, with :data:`~penstock.planning.storage.TUPLES`)."""

    def plus(self, other: Cost) -> Cost:
        return Cost(self.cpu + other.cpu, self.memory + other.memory)


NOTHING = Cost(0.0, 0.0)


class ProbeOrders(NamedTuple):
    """The probe order of each input of a join, as positions, and what all the probes cost."""

    cpu: float
    orders: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Window:
    """One stream: what arrives and what its window holds."""

    name: str
    arrivals: float
    """Tuples per second before the predicates on the stream alone."""
    kept: float
    """Tuples per second that its window takes in."""
    rows: float
    """Tuples in the window."""
    width: float
    """Bytes of a tuple in the window, without indexes."""
    lasts: bool
    """Whether its tuples never die."""
    texts: int = 0
    """Keys of a tuple that are no integers, and so have to be encoded."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A predicate that pairs of rows have to pass beside the equalities between them."""

    mask: int
    log_share: float
    """log of the share of the pairs with equal keys that pass."""
    evaluated: bool
    """Whether it is an expression over whole rows, and no comparison of two columns."""


class Block:
    """The streams of one block, in the order of FROM."""

    def __init__(
        self,
        windows: Sequence[Window],
        cardinality: Cardinality,
        classes: Sequence[int],
        links: Sequence[int],
        costs: UnitCosts,
        storage: Storage,
        demand: Mapping[int, float] | None = None,
        pushes: float = 0.0,
        nested_loops: bool = False,
        cross_products: bool = False,
        conditions: Sequence[Condition] = (),
        values: float = 0.0,
    ) -> None:
        """``classes`` are the masks of the streams that each class of equal columns reaches,
        ``links`` those of every other predicate over two or more streams. ``cross_products``:
        whether to consider joins of streams that no predicate links where others can be had.
        ``conditions`` are the predicates over two or more streams that are not equalities,
        ``values`` the bytes of the values of keys that are numbered, such as texts.
        """
        self.windows = tuple(windows)
        self.cardinality = cardinality
        self.costs = costs
        self.storage = storage
        self.demand = dict(demand or {})
        self.pushes = pushes
        self.nested_loops = nested_loops
        self.cross_products = cross_products
        self.everything = (1 << len(windows)) - 1
        self.classes = tuple(classes)
        self.conditions = tuple(conditions)
        self.values = values
        self._looks: dict[tuple[int, int], float] = {}
        self.wide_links = tuple(mask for mask in links if mask.bit_count() > 2)
        """Predicates that need three or more streams."""
        self.hashed = [0] * len(windows)
        self.linked = [0] * len(windows)
        for mask in classes:
            for i in bits_of(mask):
                self.hashed[i] |= mask & ~(1 << i)
                self.linked[i] |= mask & ~(1 << i)
        for mask in links:
            if mask.bit_count() == 2:
                for i in bits_of(mask):
                    self.linked[i] |= mask & ~(1 << i)
        self.hash_matrix = _matrix(self.hashed)
        self.link_matrix = _matrix(self.linked)
        self._lasting = sum(1 << i for i, window in enumerate(windows) if window.lasts)
        self._stored: dict[tuple[int, int], Cost] = {}
        self._key_sets: dict[int, int] = {}
        self._neighbours: dict[int, tuple[int, int]] = {0: (0, 0)}
        self._connected: dict[int, bool] = {}
        self.components = self._components()
        self.join_costs: dict[tuple[int, ...], Cost] = {}
        self.stored_inputs: dict[tuple[int, ...], Cost] = {}
        self.orders: dict[tuple[int, ...], ProbeOrders] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(window.name for window in self.windows)

    def mask_of(self, streams: Iterable[str]) -> int:
        """``streams`` as bits."""
        return sum(1 << self.names.index(stream) for stream in streams)

    # -- links -------------------------------------------------------------------------------

    def neighbours(self, mask: int) -> tuple[int, int]:
        """The streams that an equality, and those that any predicate over two, links to some of
        ``mask``; members of ``mask`` may be among them."""
        found = self._neighbours.get(mask)
        if found is None:
            low = mask & -mask
            i = low.bit_length() - 1
            hashed, linked = self.neighbours(mask ^ low)
            found = self._neighbours[mask] = (hashed | self.hashed[i], linked | self.linked[i])
        return found

    def is_hashed(self, left: int, right: int) -> bool:
        """Whether ``left`` can look up its partners in ``right`` in a hash index."""
        return not self.nested_loops and bool(self.neighbours(left)[0] & right)

    def is_linked(self, left: int, right: int) -> bool:
        """Whether some predicate is decided when ``left`` meets ``right``."""
        if self.neighbours(left)[1] & right:
            return True
        both = left | right
        return any(mask & both == mask and mask & left and mask & right for mask in self.wide_links)

    def is_connected(self, mask: int) -> bool:
        """Whether predicates hold the streams of ``mask`` together."""
        found = self._connected.get(mask)
        if found is None:
            found = self._connected[mask] = self._reach(mask) == mask
        return found

    def _reach(self, mask: int) -> int:
        """The part of ``mask`` that is connected with its first stream."""
        wide = [each for each in self.wide_links if each & mask == each]
        reached, fresh = 0, mask & -mask
        while fresh:
            reached |= fresh
            fresh = self.neighbours(fresh)[1]
            for each in wide:
                if each & reached:
                    fresh |= each
            fresh &= mask & ~reached
        return reached

    def _components(self) -> tuple[int, ...]:
        found, left = [], self.everything
        while left:
            part = self._reach(left)
            found.append(part)
            left &= ~part
        return tuple(found)

    def is_allowed(self, mask: int) -> bool:
        """Whether a plan may join just the streams of ``mask``.

        They are connected, or whole components of a query that falls apart.
        """
        if self.cross_products or self.is_connected(mask):
            return True
        return len(self.components) > 1 and all(
            part & mask in (0, part) for part in self.components
        )

    @property
    def is_clique(self) -> bool:
        """Whether every two streams are linked, so that no plan has a cross product."""
        return all(linked | 1 << i == self.everything for i, linked in enumerate(self.linked))

    # -- looks -------------------------------------------------------------------------------

    def look(self, done: int, part: int) -> float:
        """CPU seconds of one row over ``done`` that looks for its partners in ``part``: an index is
        probed or every row compared, and what agrees is checked against the other conditions that
        are decided here. What passes is joined, which is not counted here."""
        found = self._looks.get((done, part))
        if found is None:
            found = self._looks[done, part] = self._look(done, part)
        return found

    def _look(self, done: int, part: int) -> float:
        costs, size = self.costs, self.cardinality.size
        decided = self._decided(done, part)
        if not self.is_hashed(done, part):
            # All comparisons are made in one loop, expressions on what passed them.
            compared = size(part) * costs.compare
            comparisons = sum(not each.evaluated for each in decided)
            if len(decided) == comparisons:
                return compared * max(1, comparisons)
            passing = min(0.0, sum(each.log_share for each in decided if not each.evaluated))
            return compared * max(1, comparisons) + size(part) * exp(passing) * costs.residual
        if not decided:
            return costs.probe
        log_size = self.cardinality.log_size
        left = log_size(done | part) - log_size(done)
        total = costs.probe
        for each in sorted(decided, key=lambda one: not one.evaluated):
            # Expressions come last: what they see has passed the comparisons before.
            left -= each.log_share
            total += exp(left) * (costs.residual if each.evaluated else costs.check)
        return total

    def _decided(self, done: int, part: int) -> list[Condition]:
        """The conditions that need streams of both sides, and no others."""
        both = done | part
        return [
            each
            for each in self.conditions
            if each.mask & both == each.mask and each.mask & done and each.mask & part
        ]

    # -- windows and states ------------------------------------------------------------------

    def share_made(self, mask: int) -> float:
        """The share of the partial results over ``mask`` that feedback lets through."""
        return self.demand.get(mask, 1.0) if self.demand else 1.0

    def indexes(self, parts: Sequence[int]) -> list[int]:
        """How many indexes each input of a join needs: one for each list of key columns on which
        another input may look it up."""
        if len(parts) == 2:
            return [int(self.is_hashed(*parts))] * 2
        return [len(each) for each in self.index_keys(parts)]

    def index_keys(self, parts: Sequence[int]) -> list[set[int]]:
        """The lists of key columns, each as the classes in it, that each input is indexed on."""
        if self.nested_loops:
            return [set() for _ in parts]
        sets = [self._keys(mask) for mask in parts]
        return [
            {mine & sets[j] for j in range(len(sets)) if j != i} - {0}
            for i, mine in enumerate(sets)
        ]

    def _keys(self, mask: int) -> int:
        """The classes with a member in ``mask``, as bits."""
        found = self._key_sets.get(mask)
        if found is None:
            found = sum(1 << number for number, each in enumerate(self.classes) if each & mask)
            self._key_sets[mask] = found
        return found

    def storing(self, mask: int, indexes: int) -> Cost:
        """A window or state over ``mask``: insertions, deletions, and room."""
        found = self._stored.get((mask, indexes))
        if found is None:
            found = self._stored[mask, indexes] = self._storing(mask, indexes)
        return found

    def _storing(self, mask: int, indexes: int) -> Cost:
        costs = self.costs
        more = max(0, indexes - 1) * costs.index
        if mask & (mask - 1) == 0:
            window = self.windows[mask.bit_length() - 1]
            memory = self.storage.of_window(window.rows, window.width, indexes)
            each = costs.window - (min(costs.delete, costs.window) if window.lasts else 0.0)
            return Cost(window.kept * (each + more), memory)
        each = costs.insert + more
        if mask & ~self._lasting:
            each += costs.delete
        made = self.share_made(mask)
        turnover = self.cardinality.turnover(mask)
        briefest = max(float(self.cardinality.turnovers[i]) for i in bits_of(mask))
        kept = turnover / briefest if briefest > 0 else 1.0
        memory = self.storage.of_state(
            made * self.cardinality.size(mask), mask.bit_count(), indexes, kept
        )
        rate = made * self.cardinality.rate(mask)
        batches = (
            self.pushes * min(1.0, rate / (ROWS_OF_A_FULL_BATCH * self.pushes))
            if self.pushes
            else 0.0
        )
        return Cost(rate * each + batches * costs.state, memory)


def _matrix(rows: Sequence[int]) -> Floats:
    """1 where a bit is set."""
    count = len(rows)
    return np.array([[row >> j & 1 for j in range(count)] for row in rows], float).reshape(
        count, count
    )
