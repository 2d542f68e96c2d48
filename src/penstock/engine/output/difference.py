"""Set difference: results of the first block with no partner alive in a later one (JISC 4.7).

A result *r* is in the answer if no equal result *s* of a later block is alive at *r*'s birth, and
it dies just before the first equal *s* that is born after it, or at its own death. With lifespans
both questions are probes: the first one with *r* as the point ``[birth, birth]``, the second one
with *s* as a point inside ``[r.birth + 1, r.death]``.

When is the answer to the first question known? The paper's tuples come in order. Here an *s* may
arrive after the *r* that it removes, so under a declared lateness *r* waits until the watermark
has passed its birth: no *s* that was alive then can still arrive. A *s* is kept until the watermark
has passed its death; an *r* that is undecided was born at or after the watermark, so no *s* that
matters is gone. NULL equals nothing: an *s* with a NULL is not stored, an *r* with one stays.

**The order** of the blocks is that of the plan, and each is asked only for results that those
before it have left. The paper stores what is left after each block (its states AD and ADB), and has
to complete these when the order changes, since a new tuple removes from them what it equals. Here a
result is not removed from anything: its lifespan is cut when it is decided, against all blocks. So
what is left after some of them is never stored, there is nothing to complete, and another order
holds from the next push.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.output.projection import Projection
from penstock.engine.recovery.columns import booleans
from penstock.engine.recovery.verify import check_columns
from penstock.engine.state.clock import Clock
from penstock.engine.state.composite_state import renumber
from penstock.engine.state.composites import Composites, SavedRows, concatenate, none_of
from penstock.engine.state.hash_factor import SEED
from penstock.engine.state.leaf_window import date
from penstock.engine.state.probing import probe_all
from penstock.engine.state.rows import BIRTH, DEATH, Rows
from penstock.engine.tree.join_tree import JoinTree
from penstock.errors import CheckpointError
from penstock.kernels import pairs, ring
from penstock.kernels.lifespan import FOREVER
from penstock.query.join_graph import Emission, JoinGraph
from penstock.values.interner import Interner
from penstock.values.key_types import key_type_of

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]


class _Removers:
    """The living results of one later block: what they equal, and how long."""

    def __init__(self, block: JoinGraph, tree: JoinTree, width: int, by_rows: bool) -> None:
        self.tree = tree
        self.rows = Rows()
        self.by_rows = by_rows
        self.project = Projection([item.expression for item in block.select], tree.leaves)
        self._ids = {alias: self.rows.add_column(np.int64) for alias in tree.leaves}
        self.values = [self.rows.add_column(np.int64) for _ in range(width)]
        self.index = self.rows.add_index()
        self.counts = [0, 0]
        """Results that were tested against it when they were born, and those that it removed."""

    def append(self, new: Composites, values: list[Int64s]) -> None:
        rows, start = self.rows, self.rows.head
        rows.reserve(len(new))
        rows.put(BIRTH, start, new.births)
        rows.put(DEATH, start, new.deaths)
        for alias, column in self._ids.items():
            rows.put(column, start, new.ids[alias])
        for column, each in zip(self.values, values, strict=True):
            rows.put(column, start, each)
        hashes = _hash(values)
        rows.head = start + len(new)
        rows.insert(self.index, start, hashes)

    def partners(
        self, values: list[Int64s], births: Int64s, deaths: Int64s, as_points: bool
    ) -> tuple[Int64s, Int64s]:
        """Pairs of equal rows that live together: positions in the batch, births of the partners.

        ``as_points`` takes the stored results at their birth only.
        """
        rows, index = self.rows, self.index
        at, row, _, _ = probe_all(
            _hash(values),
            births,
            deaths,
            rows,
            index,
            rows.head,
            len(births),
            BIRTH if as_points else DEATH,
        )
        keep = np.ones(len(at), np.bool_)
        for column, each in zip(self.values, values, strict=True):
            keep &= ring.pick(each, at) == rows.take(column, row)
        return at[keep], rows.take(BIRTH, row[keep])

    def present(self) -> Composites:
        """All stored results."""
        living = np.arange(self.rows.tail, self.rows.head, dtype=np.int64)
        return Composites(
            {alias: self.rows.take(column, living) for alias, column in self._ids.items()},
            self.rows.take(BIRTH, living),
            self.rows.take(DEATH, living),
        )

    def refresh(self) -> None:
        """On the arrival line: bring deaths down to what is known by now."""
        if self.by_rows and len(self.rows):
            present = self.present()
            present.deaths[:] = FOREVER
            self.tree.shorten(present)
            self.rows.put(DEATH, self.rows.tail, present.deaths)

    def expire(self, before: int) -> None:
        rows = self.rows
        rows.expire(before)
        if rows.is_worth_a_check():
            alive = ring.alive_rows(rows.deaths, rows.mask, rows.tail, rows.head, before)
            if rows.is_worth_packing(alive):
                rows.pack(alive)
        rows.fit()

    def renumber(self, alias: str, mapping: Int64s, first: int) -> None:
        renumber(self.rows, self._ids[alias], mapping, first)


class Difference:
    """Decides which results of the first block leave, and when."""

    def __init__(
        self,
        graph: JoinGraph,
        tree: JoinTree,
        minus: Sequence[tuple[JoinGraph, JoinTree]],
    ) -> None:
        self._emission: Emission = graph.emission
        self._by_rows = graph.by_rows
        self._tree = tree
        types = [item.expression.type for item in graph.select]
        self._encoders = [key_type_of(type_) for type_ in types]
        self._interners = [Interner() if e.needs_interner else None for e in self._encoders]
        self._project = Projection([item.expression for item in graph.select], tree.leaves)
        self._removers = [
            _Removers(block, each, len(types), graph.by_rows) for block, each in minus
        ]
        self._order: Sequence[int] = range(len(self._removers))
        self._streams = tuple(tree.leaves)
        self._held = none_of(self._streams)
        self._decided = np.empty(0, np.bool_)
        self._staged: tuple[Composites, Bools] | None = None
        self._marks: list[tuple[int, list[int]]] = []
        self._behind: list[tuple[_Removers | None, str, Int64s, int]] = []
        """New numbers of rows that removers, or what is held (None), have not made their own."""

    def __len__(self) -> int:
        return len(self._held)

    def subtract_in(self, places: Sequence[int]) -> None:
        """Subtract the blocks in this order from now on."""
        self._order = places

    @property
    def subtractions(self) -> list[dict[str, Any]]:
        """Counts of what each block has removed, in the order in which they are subtracted."""
        found = []
        for place in self._order:
            tested, removed = self._removers[place].counts
            streams = str(self._removers[place].tree.root.streams)
            found.append({"streams": streams, "tested": tested, "removed": removed})
        return found

    def save(self, saved: SavedRows) -> pa.Table:
        """The results that wait or live, and which of them are decided."""
        self._catch_up()
        return self._held.save(saved).append_column("decided", pa.array(self._decided))

    def load(
        self,
        table: pa.Table,
        counts: Mapping[str, int],
        removing: Sequence[Composites],
        clock: Clock,
    ) -> None:
        """Take in, after a restart, what :meth:`save` wrote and the living results to subtract."""
        what = "what is held"
        check_columns(table.select(["decided"]), {"decided": pa.bool_()}, what)
        held = Composites.load(table.drop_columns(["decided"]), self._streams, counts, what)
        if not held.dated:
            raise CheckpointError("the checkpoint is damaged: what is held has no lifespans")
        if not self._are_alive(held, clock):
            raise CheckpointError("the checkpoint is damaged: what is held is not alive")
        self._held, self._decided = held, booleans(table, "decided")
        self._store(removing)

    def _are_alive(self, held: Composites, clock: Clock) -> bool:
        """Whether results that were held at ``clock`` live as long as their rows, and still do:
        else windows would let go of rows that are read later."""
        dated = date(held.ids, self._tree.leaves)
        if self._by_rows:  # Deaths are known when they come.
            return bool((dated.births == held.births).all() and (held.deaths >= clock.now).all())
        own = np.array_equal(dated.births, held.births) and np.array_equal(
            dated.deaths, held.deaths
        )
        return own and bool((held.deaths >= clock.watermark).all())

    @property
    def nbytes(self) -> int:
        held = 8 * (2 + len(self._streams)) * len(self._held)
        interned = sum(i.nbytes for i in self._interners if i is not None)
        return held + interned + sum(r.rows.nbytes for r in self._removers)

    def stage(
        self, new: Composites, removing: Sequence[Composites], clock: Clock
    ) -> tuple[Composites, Int64s]:
        """Results that leave now, and the instants by which they are ordered."""
        self._catch_up()
        self._marks = [(r.rows.head, r.counts.copy()) for r in self._removers]
        self._store(removing)
        held = concatenate([self._held, new]) if len(self._held) else new
        decided = np.concatenate([self._decided, np.zeros(len(new), np.bool_)])
        if self._by_rows and self._emission != "istream":
            held = Composites(held.ids, held.births, held.deaths.copy())
            self._tree.shorten(held)
        if self._emission == "rstream":
            return self._snapshot(held, clock)
        held, decided, fresh = self._decide(held, decided, clock)
        if self._emission == "istream":
            leaving = held.pick(np.flatnonzero(fresh))
            stay = ~decided
            self._staged = (held.pick(np.flatnonzero(stay)), decided[stay])
            return leaving, leaving.births
        # An instant is over when it is settled: `settled` itself is, under a declared lateness;
        # without one, `now` still goes on.
        over = clock.settled + 1 if clock.strict else clock.now
        deaths = self._deaths(held)
        gone = decided & (deaths < over)
        leaving = held.pick(np.flatnonzero(gone))
        self._staged = (held.pick(np.flatnonzero(~gone)), decided[~gone])
        return leaving, deaths[gone]

    def _snapshot(self, held: Composites, clock: Clock) -> tuple[Composites, Int64s]:
        """RSTREAM: what is in the answer now, by all that is known. Nothing is ever decided."""
        stay = ~self._has_partner(held) & (self._deaths(held) >= clock.now)
        living = held.pick(np.flatnonzero(stay))
        self._staged = (living, np.zeros(len(living), np.bool_))
        return living, living.births

    def _store(self, removing: Sequence[Composites]) -> None:
        for remover, composites in zip(self._removers, removing, strict=True):
            remover.refresh()
            values, valid = self._encode(remover.project(composites))
            if valid is not None and not valid.all():
                positions = np.flatnonzero(valid)
                composites = composites.pick(positions)
                values = [ring.pick(each, positions) for each in values]
            if len(composites):
                remover.append(composites, values)

    def _decide(
        self, held: Composites, decided: Bools, clock: Clock
    ) -> tuple[Composites, Bools, Bools]:
        """Drop those with a partner at birth whose birth is settled; mark the others decided."""
        ripe = ~decided & (held.births <= clock.settled)
        if not clock.strict:
            ripe = ~decided
        fresh = np.zeros(len(held), np.bool_)
        positions = np.flatnonzero(ripe)
        if len(positions) == 0:
            return held, decided, fresh
        removed = self._has_partner(held.pick(positions))
        decided = decided.copy()
        decided[positions] = True
        fresh[positions] = ~removed
        stay = np.ones(len(held), np.bool_)
        stay[positions[removed]] = False
        if stay.all():
            return held, decided, fresh
        return held.pick(np.flatnonzero(stay)), decided[stay], fresh[stay]

    def _has_partner(self, results: Composites) -> Bools:
        """Whether an equal result of a later block is alive at the birth of each: each block tests
        what those before it have left."""
        found = np.zeros(len(results), np.bool_)
        values, valid = self._encode(self._project(results))
        births, left = results.births, np.arange(len(results), dtype=np.int64)
        keep = None if valid is None else np.flatnonzero(valid)
        for place in self._order:
            if keep is not None and len(keep) < len(left):
                values = [ring.pick(each, keep) for each in values]
                births, left = ring.pick(births, keep), ring.pick(left, keep)
            if len(left) == 0:
                break
            remover = self._removers[place]
            at, _ = remover.partners(values, births, births, as_points=False)
            remover.counts[0] += len(left)
            keep = None
            if len(at):
                found[left[at]] = True
                keep = np.flatnonzero(~found[left])
                remover.counts[1] += len(left) - len(keep)
        return found

    def _deaths(self, results: Composites) -> Int64s:
        """Own death, or just before the first partner born later."""
        deaths = results.deaths.copy()
        values, valid = self._encode(self._project(results))
        for remover in self._removers:
            later = np.minimum(results.births, np.iinfo(np.int64).max - 1) + 1
            at, births = remover.partners(values, later, results.deaths, as_points=True)
            if valid is not None:
                keep = valid[at]
                at, births = at[keep], births[keep]
            np.minimum.at(deaths, at, births - 1)
        return deaths

    def _encode(self, columns: list[pa.Array]) -> tuple[list[Int64s], Bools | None]:
        values: list[Int64s] = []
        valid: Bools | None = None
        for array, encoder, interner in zip(columns, self._encoders, self._interners, strict=True):
            each, present = encoder.encode(array, interner)
            values.append(np.ascontiguousarray(each))
            if present is not None:
                valid = present if valid is None else valid & present
        return values, valid

    def commit(self) -> None:
        assert self._staged is not None
        self._held, self._decided = self._staged
        self._staged = None
        self._marks = []

    def tidy(self, watermark: int) -> None:
        """Let go of stored results that have died, and of values that no stored result has."""
        self._catch_up()
        for remover in self._removers:
            remover.expire(watermark)
        self._sweep()

    def rollback(self) -> None:
        """Take back what :meth:`stage` stored, if it came that far."""
        self._staged = None
        for remover, (head, counts) in zip(self._removers, self._marks, strict=False):
            remover.rows.truncate(head)
            remover.counts = counts
        self._marks = []

    def renumber(self, alias: str, mapping: Int64s, first: int) -> None:
        """Rows have new numbers. What cannot follow for lack of memory does so before it is read:
        unlike other tops, this one cannot be computed again from the windows."""
        self._behind += [
            (remover, alias, mapping, first)
            for remover in self._removers
            if alias in remover.tree.leaves
        ]
        if alias in self._held.ids:
            self._behind.append((None, alias, mapping, first))
        with suppress(MemoryError):
            self._catch_up()

    def _catch_up(self) -> None:
        """Let everything follow that could not."""
        while self._behind:
            remover, alias, mapping, first = self._behind[0]
            if remover is not None:
                remover.renumber(alias, mapping, first)
            else:
                ids = dict(self._held.ids)
                ids[alias] = mapping[ids[alias] - first]
                self._held = Composites(ids, self._held.births, self._held.deaths)
            self._behind.pop(0)

    def _sweep(self) -> None:
        """Forget interned values that no stored result has."""
        for position, interner in enumerate(self._interners):
            if interner is None:
                continue
            living = sum(len(r.rows) for r in self._removers)
            if len(interner) > 2 * living + 1024:
                kept = [
                    r.rows.take(
                        r.values[position], np.arange(r.rows.tail, r.rows.head, dtype=np.int64)
                    )
                    for r in self._removers
                ]
                interner.sweep(np.concatenate(kept))


def _hash(values: list[Int64s]) -> Int64s:
    count = len(values[0])
    hashes = np.full(count, SEED)
    everyone = np.arange(count, dtype=np.int64)
    for each in values:
        pairs.mix_into(hashes, each, -1, everyone)
    return hashes
