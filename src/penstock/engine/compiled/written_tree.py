"""A tree written down as a table of numbers and addresses, for kernels to work off.

What the items of the table mean is said in :mod:`penstock.kernels.push`. Rings and indexes have
numbers, by which kernels find where they begin and end; the table itself has the addresses of
columns, so it is written anew whenever a ring has moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from penstock.engine.feedback.waiting import Waiting
from penstock.engine.feedback.waiting_in_window import WaitingInWindow
from penstock.engine.join.compiled_order import CompiledOrder, dates_of, flags_of
from penstock.engine.join.join_step import Input
from penstock.engine.state.address import address_of
from penstock.engine.state.composite_state import CompositeState
from penstock.engine.state.hash_index import HashIndex
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.rows import Rows
from penstock.kernels import push as kernel
from penstock.values.wiring import KeyColumn

if TYPE_CHECKING:
    from penstock.engine.feedback.edge import Edge
    from penstock.engine.feedback.guard import Guard
    from penstock.engine.join.join_operator import JoinOperator

Int64s = NDArray[np.int64]


class WrittenTree:
    """The inputs ``edges`` of a tree, in the order of their visit, and then the join ``top``."""

    def __init__(
        self,
        windows: Mapping[str, LeafWindow],
        edges: Sequence[Edge],
        top: JoinOperator | None,
        inputs: Sequence[Edge],
    ) -> None:
        self.edges = edges
        self._guarded = {id(edge): edge.open_guards for edge in edges if edge.is_guarded}
        """The guards of inputs that have any."""
        self.guards = [guard for each in self._guarded.values() for guard in each]
        self.joins = [(edge.producer, edge.children) for edge in edges if edge.producer is not None]
        if top is not None:
            self.joins.append((top, list(inputs)))
        self.top = top
        self.windows = dict(windows)
        self.rings: list[Rows] = []
        self.indexes: list[HashIndex] = []
        self._numbers: dict[int, int] = {}
        for source in (*self.windows.values(), *(edge.source for edge in edges)):
            self._ring(source)
            for index in source.rows.indexes:
                self._index(index)
        for edge in edges:
            self._ring(edge.input)
        for operator, _ in self.joins:
            for steps in operator.steps:
                for _, step in steps:
                    if step.index is not None:
                        self._index(step.index)
        self.stores: list[CompositeState] = []
        for edge in edges:
            if isinstance(edge.input, CompositeState):
                self.stores.append(edge.input)
        for guard in self.guards:
            if isinstance(guard.waiting, Waiting):
                self.stores.append(guard.waiting)
            for used in (guard.waiting.index, guard.index):
                if used is not None:
                    self._index(used)
        for store in self.stores:
            self._ring(store)
            for index in store.indexes:
                self._index(index)
        self.streams = sorted(self.windows)
        self._chooser = next(filter(self._chosen_by, self.guards), None)
        """The guard whose look at the news spares others the same look."""
        self._dates: dict[str, tuple[int, ...]] = {}
        """Addresses of the births and deaths of windows."""
        self.orders: list[list[CompiledOrder]] = []
        """The probe orders of each item."""
        self.joins_by_item: list[tuple[int, JoinOperator]] = []
        """The items that are joins."""

    def ring_number(self, rows: Rows) -> int:
        """The number of a ring."""
        return self._numbers[id(rows)]

    def ring_of(self, alias: str) -> int:
        """The number of the ring of a window."""
        return self._numbers[id(self.windows[alias].rows)]

    def lap_of(self, alias: str) -> int:
        """The lap in which a window gets its new rows."""
        return len(self.edges) + 1 + list(self.windows).index(alias)

    def number_of(self, index: HashIndex) -> int:
        """The number of an index of a window or state."""
        return self._numbers[id(index)]

    @property
    def has_indexes(self) -> bool:
        """Whether all indexes have numbers."""
        return all(id(index) in self._numbers for rows in self.rings for index in rows.indexes)

    def _ring(self, source: Input) -> None:
        if id(source.rows) not in self._numbers:
            self._numbers[id(source.rows)] = len(self.rings)
            self.rings.append(source.rows)

    def _index(self, index: HashIndex) -> None:
        if id(index) not in self._numbers:
            self._numbers[id(index)] = len(self.indexes)
            self.indexes.append(index)

    def write_down(self) -> tuple[Int64s, Int64s]:
        """The tree as a table of addresses and places; and by stream where births lie, with room
        for the earliest in the results."""
        self.orders, self.joins_by_item = [], []
        self._dates = {alias: dates_of(window) for alias, window in self.windows.items()}
        code: list[int] = []
        items: list[int] = []
        orders = 0
        # Places count from the end of the head of the table, which is as long as there are items.
        head = 2 + len(self._guarded) + len(self.joins)
        last = [] if self.top is None else [None]
        for lap, edge in enumerate([*self.edges, *last]):
            guards = 0
            if edge is not None and id(edge) in self._guarded:
                guards = self._write_guards(code, head, edge, lap)
                items.append(guards)
                self.orders.append([])
            if edge is None or edge.producer is not None:
                producer = self.top if edge is None else edge.producer
                inputs = next(inputs for each, inputs in self.joins if each is producer)
                assert producer is not None
                place, orders = self._write_join(code, head, producer, inputs, orders, lap, guards)
                items.append(place)
                self.joins_by_item.append((min(len(self.orders), 62), producer))
                self.orders.append(producer.orders)
        lives = head + len(code)
        code += self._lives()
        births = []
        for stream in self.streams:
            rows = self.windows[stream].rows
            births.append((address_of(rows.births), rows.mask, 0))
        table = np.array([len(items), *items, lives, *code], np.int64)
        return table, np.array(births, np.int64)

    def _lives(self) -> list[int]:
        """Rule by which the rows of rings die: by their own dates, or with a row of a window."""
        lives = [len(self.windows)]
        for window in self.windows.values():
            lives += (self._numbers[id(window.rows)], address_of(window.rows.deaths))
        lives.append(len(self.stores))
        for store in self.stores:
            lives += (self._numbers[id(store.rows)], len(store.id_columns))
            for alias, column in store.id_columns.items():
                lives += (address_of(store.rows.columns[column]), self.ring_of(alias))
        return lives

    def _write_guards(self, code: list[int], head: int, edge: Edge, lap: int) -> int:
        """The item of an input with guards; its place."""
        source, target = edge.source, edge.input
        assert isinstance(target, CompositeState)
        guards = [n for each in self._guarded[id(edge)] for n in self._guard(code, head, each)]
        store = self._write_store(code, head, target)
        place = head + len(code)
        is_window = isinstance(source, LeafWindow)
        beds = address_of(source.asleep.bytes) if isinstance(source, LeafWindow) else 0
        window = self._numbers[id(source.rows)] if is_window else -1
        code += (kernel.GUARDED, lap, window, self._numbers[id(target.rows)], store)
        code += (len(target.id_columns), beds, edge.place, edge.place + 1, flags_of(source))
        code += (len(self._guarded[id(edge)]), *guards)
        return place

    def _guard(self, code: list[int], head: int, guard: Guard) -> tuple[int, ...]:
        """The numbers of a guard; what they point to is written down."""
        opposite, waiting = guard.opposite.input, guard.waiting
        indexes = []
        for index in (waiting.index, guard.index):
            indexes.append(0 if index is None else head + len(code))
            if index is not None:
                code += (address_of(index.heads), address_of(index.entries), index.shift)
                code.append(self._numbers[id(index)])
        keys = []
        columns = list(waiting.id_columns) if isinstance(waiting, Waiting) else []
        for mine in (True, False) if guard.mine else ():
            keys.append(head + len(code))
            code.append(len(guard.mine))
            for key in guard.mine if mine else guard.theirs:
                address, mask, ids = self._key(opposite, key) if not mine else self._own_key(key)
                code += (address, mask, columns.index(key.stream) if mine and columns else ids)
        shelf = shelf_ids = 0
        if isinstance(waiting, Waiting):
            shelf = self._write_store(code, head, waiting)
            shelf_ids = head + len(code)
            code += [address_of(waiting.rows.columns[c]) for c in waiting.id_columns.values()]
        return (
            *(self._numbers[id(opposite.rows)], self._numbers[id(waiting.rows)]),
            *(address_of(waiting.bytes), waiting.number, guard.place, *indexes),
            0 if guard.filter is None else address_of(guard.filter.place),
            *(keys or (0, 0)),
            *(flags_of(opposite), guard is self._chooser, guard.is_final, not guard.is_on),
            *(shelf, shelf_ids),
        )

    def _own_key(self, key: KeyColumn) -> tuple[int, int, int]:
        """Address and mask of a key column of a window, which is read by the rows themselves."""
        leaf = self.windows[key.stream]
        return address_of(leaf.rows.columns[leaf.key_column(key.position)]), leaf.rows.mask, 0

    def _key(self, source: Input, key: KeyColumn) -> tuple[int, int, int]:
        """Address and mask of a key column, and the ids of ``source`` by which it is read."""
        address, mask, ids = self._own_key(key)
        if isinstance(source, CompositeState):
            ids = address_of(source.rows.columns[source.id_columns[key.stream]])
        return address, mask, ids

    def _write_store(self, code: list[int], head: int, state: CompositeState) -> int:
        place = head + len(code)
        code += (len(state.indexes), *(self._numbers[id(index)] for index in state.indexes))
        code += state.table()
        return place

    def _write_join(
        self,
        code: list[int],
        head: int,
        operator: JoinOperator,
        inputs: Sequence[Edge],
        number: int,
        lap: int,
        guards: int,
    ) -> tuple[int, int]:
        places = []
        columns = self.streams if operator.state is None else list(operator.state.id_columns)
        slots: list[int] = []
        for position, order in enumerate(operator.orders):
            table = order.table(self._dates)
            at = head + len(code)
            code += table
            places.append(head + len(code))
            source = inputs[position].input
            ids: list[int] = []
            if isinstance(source, CompositeState):
                ids = [address_of(source.rows.columns[source.id_columns[s]]) for s in order.given]
            code += (self._numbers[id(source.rows)], len(ids), len(order.steps), at, len(table))
            chosen = self._chooser is not None and self._spares(self._chooser, order)
            code += (order.is_dated, len(order.slots), number, chosen, flags_of(source), *ids)
            number += 1
            for other, step in operator.steps[position]:
                ring = self._numbers[id(step.target.rows)]
                index = -1 if step.index is None else self._numbers[id(step.index)]
                code += (ring, index, other < position, step.place)
                code.append(step.target.missing is not None)
            code += [self._numbers[id(self.windows[stream].rows)] for stream in order.slots]
            slots += [order.slots[stream] for stream in columns]
            if operator.state is None:
                slots += (len(order.slots), len(order.slots) + 1)
        slots_at = head + len(code)
        code += slots
        store = 0 if operator.state is None else self._write_store(code, head, operator.state)
        state = -1 if operator.state is None else self._numbers[id(operator.state.rows)]
        place = head + len(code)
        code += (kernel.JOINED, lap, len(inputs), state, store, operator.place, slots_at, guards)
        code += places
        return place, number

    def _chosen_by(self, guard: Guard) -> bool:
        """Whether news that no row of the window meets need not probe what was made of it."""
        return (
            guard.is_on
            and guard.index is not None
            and isinstance(guard.waiting, WaitingInWindow)
            and any(
                self._spares(guard, order)
                for operator, _ in self.joins
                for order in operator.orders
            )
        )

    def _spares(self, guard: Guard, order: CompiledOrder) -> bool:
        """Whether ``order`` begins with the news of ``guard``, and with what it guards."""
        opposite = guard.opposite
        return (
            not opposite.is_guarded
            and isinstance(opposite.input, LeafWindow)
            and order.given == (opposite.input.stream.alias,)
            and guard.streams <= order.steps[0].target.streams
        )
