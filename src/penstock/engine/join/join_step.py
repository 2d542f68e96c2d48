"""One step of a probe order: a batch of composites meets the rows of one input.

With columns to equate, the step probes a hash index and verifies what the hash of several columns
cannot vouch for. Without (or when nested loops are asked for), it tries every pair, block by
block, or where comparisons leave few of many pairs those alone, in sorted rows. Then come the
conditions that the probe did not check, and the residual predicates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.join.ordered_pairs import (
    PAIRS_WORTH_SORTING,
    OrderedPairs,
    few_pairs,
    pass_all,
)
from penstock.engine.state.composite_state import CompositeState, is_run, key_values
from penstock.engine.state.composites import Composites, concatenate, none_of
from penstock.engine.state.earlier_heads import bound_at, index_before
from penstock.engine.state.hash_index import HashIndex
from penstock.engine.state.leaf_window import LeafWindow, date
from penstock.engine.state.probing import Surplus, probe_all, probe_keys
from penstock.engine.state.working_memory import IN_PARTS_AND_WHOLE, WORKING
from penstock.kernels import pairs, probe, ring
from penstock.kernels.held_signals import HELD
from penstock.query.expression import Column
from penstock.values.evaluate import conjunction
from penstock.values.predicate_program import program_of
from penstock.values.wiring import Condition, KeyColumn, Linking

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]
Gap = tuple[int, int]
Among = Callable[[Int64s], Bools]
Input = LeafWindow | CompositeState
Algorithm = Literal["hash", "nested-loops"]

_ROWS_OF_A_BLOCK = 8192
"""Rows that a batch is compared with at a time, pair by pair: their keys stay in the cache."""
_MATCHES_OF_A_BLOCK = 1 << 18
"""Matches for which there is room meanwhile, at least: 8 MiB."""
_CANDIDATES = 1 << 16
"""Pairs that a probe finds at once, about: their columns are tested while in the cache."""
_FIRST_PROBES = 1024
"""Composites that probe at once before it is known how many partners they find."""
_FIRST_PARTNERS = 4
"""Partners for which there is room then: if there are more, the probe is made twice."""


class JoinStep:
    """Composites over ``left`` meet ``target``."""

    def __init__(
        self,
        target: Input,
        linking: Linking,
        leaves: Mapping[str, LeafWindow],
        algorithm: Algorithm,
        counts: list[int],
        place: int = 0,
    ) -> None:
        """``counts`` is the tally of the whole tree; two places from ``place`` on are this
        step's."""
        self.target = target
        self.linking = linking
        self._counts = counts
        self.place = self._probes = place
        self._matches = place + 1
        self._ratio = float(_CANDIDATES // _FIRST_PROBES)
        """Candidates per probe, lately: how much room the next probe needs."""
        self._has_learned = False
        self._leaves = leaves
        residuals = tuple(p.expression for p in linking.residuals)
        self._residual = conjunction(residuals)
        self.program = program_of(residuals) if residuals else None
        """The residual predicates as a program, if they have one."""
        equalities = tuple(Condition(probe.EQUAL, mine, theirs) for mine, theirs in linking.keys)
        self.hashed = bool(linking.keys) and algorithm == "hash"
        self.index: HashIndex | None = None
        self.left_keys: tuple[KeyColumn, ...] = tuple(mine for mine, _ in linking.keys)
        self._right_keys: tuple[KeyColumn, ...] = tuple(theirs for _, theirs in linking.keys)
        if self.hashed:
            self.index = target.index_on(self._right_keys)
            self.narrow_checks = (equalities if len(equalities) > 1 else ()) + linking.conditions
            self.wide_checks = equalities + linking.conditions
            self.loop: tuple[Condition, ...] = ()
        else:
            self.narrow_checks = self.wide_checks = ()
            self.loop = equalities + linking.conditions

    def retarget(self, target: Input) -> None:
        """The same rows, or those of them that count, are kept in ``target`` from now on."""
        if self.index is not None:
            self.target.release_index(self._right_keys)
            self.index = target.index_on(self._right_keys)
        self.target = target

    def dispose(self) -> None:
        """This step is not needed any more."""
        if self.index is not None:
            self.target.release_index(self._right_keys)

    @property
    def probes(self) -> int:
        """Composites that came to this step since the start."""
        return self._counts[self._probes]

    @property
    def matches(self) -> int:
        """Composites that left it."""
        return self._counts[self._matches]

    @property
    def _checks(self) -> tuple[Condition, ...]:
        """Comparisons that the probe has not made: codes of wide keys may agree by chance."""
        if self.index is None or self.index.narrow:
            return self.narrow_checks
        return self.wide_checks

    def apply(self, left: Composites, bound: int, among: Among | None = None) -> Composites:
        """All matches of ``left`` with the rows of the target before ``bound``.

        With ``among``, only such rows count, and the target has been completed already.
        """
        self._counts[self._probes] += len(left)
        gap = self._complete(left.ids, bound) if among is None else None
        if self.index is not None:
            found = self._hash(left, bound, gap, among)
        else:
            found = self._try_all(left, bound, gap, among)
        self._counts[self._matches] += len(found)
        return found

    def _complete(self, ids: Mapping[str, Int64s], bound: int) -> Gap | None:
        """Complete what the target lacks of what ``ids`` are going to look for.

        What was completed stands behind the rows that the probe may see: the gap in between.
        """
        missing = self.target.missing
        if missing is None:
            return None
        self.complete(ids)
        return missing.gap(bound)

    def complete(self, ids: Mapping[str, Int64s]) -> None:
        """Complete what the target lacks of what ``ids`` are going to look for."""
        missing = self.target.missing
        if missing is None:
            return
        with missing.time:
            if self.left_keys:
                values = key_values(self.left_keys[:1], ids, self._leaves)
                missing.complete(self._right_keys, values)
            else:
                missing.complete_ranges(self.linking, ids)

    def get_ready_to_complete(self) -> None:
        """Take over the indexes that completing the target will use."""
        if self._right_keys and self.target.missing is not None:
            self.target.missing.get_ready(self._right_keys)

    def _hash(
        self,
        left: Composites,
        bound: int,
        gap: Gap | None,
        among: Among | None,
    ) -> Composites:
        """Slice by slice, as frequent keys may have many more partners than pass the tests."""
        rows, index = self.target.rows, self.index
        assert index is not None
        if gap is not None:
            bound = rows.head
        elif rows.is_late:
            if isinstance(self.target, LeafWindow):
                bound = bound_at(rows, bound, left.deaths)
            index = index_before(rows, index, bound)
        found, start, made = [], 0, 0
        while start < len(left):
            stop = start + max(1, int(_CANDIDATES / max(self._ratio, 1e-9)))
            part = left if start == 0 and stop >= len(left) else left.slice(start, stop)
            HELD.go_on()
            try:
                found.append(self._hash_slice(part, index, bound, gap, among))
            except Surplus as many:
                self._ratio = max(2 * self._ratio, many.per_key)
                continue
            made += len(found[-1])
            WORKING.ask(made, len(left.ids) + 3)
            if self._makes_results(left.ids):
                WORKING.ask_results(made)
            start = stop
        found = [part for part in found if len(part)]
        return concatenate(found) if found else self._nothing(left)

    def _makes_results(self, ids: Mapping[str, Int64s]) -> bool:
        """Whether combinations of the streams of ``ids`` are complete with this step."""
        return len(ids) + len(self.target.streams) == len(self._leaves)

    def _hash_slice(
        self, left: Composites, index: HashIndex, bound: int, gap: Gap | None, among: Among | None
    ) -> Composites:
        rows = self.target.rows
        keys = key_values(self.left_keys, left.ids, self._leaves)
        expected = len(left) * self._ratio
        if isinstance(self.target, LeafWindow):
            at, row, births, deaths = probe_all(
                keys, left.births, left.deaths, rows, index, bound, expected, splits=True
            )
            self._learn(len(at), len(left))
            if among is not None:
                keep = among(row)
                at, row, births, deaths = at[keep], row[keep], births[keep], deaths[keep]
            return self._finish(left, at, row, births, deaths)
        at, row = probe_keys(keys, rows, index, bound, expected, splits=True)
        self._learn(len(at), len(left))
        if gap is not None or among is not None:
            keep = _counting(row, gap, among)
            at, row = at[keep], row[keep]
        return self._finish(left, at, row)

    def _learn(self, found: int, probes: int) -> None:
        lately = self._ratio if self._has_learned else found / probes
        self._ratio = 0.5 * lately + 0.5 * found / probes
        self._has_learned = True

    @property
    def asks(self) -> bool:
        """Whether there are residual predicates that are tested on columns alone."""
        return self._residual is not None and self.program is None

    def extend(
        self, ids: Mapping[str, Int64s], bound: int, among: Among | None = None
    ) -> dict[str, Int64s]:
        """All combinations of ``ids`` with rows before ``bound`` that pass every comparison.

        ``among`` is as for :meth:`apply`. Lifespans are not looked at, unless there is a residual
        predicate: the caller tests them when the combination is complete. Only for steps that are
        :attr:`hashed`.
        """
        gap = self._complete(ids, bound) if among is None else None
        try:
            return self._extend(ids, bound, gap, among)
        except Surplus:
            half = len(next(iter(ids.values()))) // 2
            HELD.go_on()
            parts = [
                self.extend({stream: rows[part] for stream, rows in ids.items()}, bound, among)
                for part in (slice(half), slice(half, None))
            ]
            made = sum(len(next(iter(part.values()))) for part in parts)
            WORKING.ask(IN_PARTS_AND_WHOLE * made, len(parts[0]))
            return {stream: np.concatenate([part[stream] for part in parts]) for stream in parts[0]}

    def _extend(
        self, ids: Mapping[str, Int64s], bound: int, gap: Gap | None, among: Among | None
    ) -> dict[str, Int64s]:
        """:meth:`extend` by as many combinations as there can be at once."""
        index = self.index
        assert index is not None
        keys, run = key_values(self.left_keys, ids, self._leaves), _run_of(ids)
        count, rows = len(keys), self.target.rows
        at, row = probe_keys(
            keys,
            rows,
            index,
            bound if gap is None else rows.head,
            count * (self._ratio if self._has_learned else _FIRST_PARTNERS),
            0 if run is None else run[1],
            splits=True,
        )
        self._counts[self._probes] += count
        self._learn(len(at), count)
        if gap is not None or among is not None:
            keep = _counting(row, gap, among)
            at, row = at[keep], row[keep]
        theirs, whole = self.target.resolve_whole(row)
        if whole is not None:
            at = ring.pick(at, whole)
        if run is None:
            found = {stream: ring.pick(each, at) for stream, each in ids.items()}
        else:
            found = {run[0]: at}
        found.update(theirs)
        count = len(at)
        if self._checks and count:
            keep = np.ones(count, np.bool_)
            if self._compare(found, keep):
                positions = np.flatnonzero(keep)
                found = {stream: ring.pick(rows, positions) for stream, rows in found.items()}
                count = len(positions)
        if self._residual is not None and count:
            positions = self.holding(found)
            if len(positions) < count:
                found = {stream: ring.pick(rows, positions) for stream, rows in found.items()}
                count = len(positions)
        self._counts[self._matches] += count
        return found

    def holding(self, ids: Mapping[str, Int64s]) -> Int64s:
        """Positions of the combinations that have lived and pass the residual predicates."""
        assert self._residual is not None
        found = date(ids, self._leaves)
        lived = np.flatnonzero(found.births <= found.deaths)
        if len(lived) < len(found):
            found = found.pick(lived)
        if not len(lived):
            return lived
        return lived[self._residual(ColumnReader(found, self._leaves), len(found))]

    def _try_all(
        self,
        left: Composites,
        bound: int,
        gap: Gap | None,
        among: Among | None,
    ) -> Composites:
        visible = self.target.visible(bound if gap is None else self.target.rows.head)
        if gap is not None or among is not None:
            visible = visible[_counting(visible, gap, among)]
        operators = np.array([c.operator for c in self.loop], np.int64)
        lefts = self._values([c.left for c in self.loop], left.ids, len(left))
        found, made, width = [], 0, len(left.ids) + len(self.target.streams) + 2
        for at, row, births, deaths in self._matching(left, visible, operators, lefts):
            found.append(self._finish(left, at, row, births, deaths))
            made += len(found[-1])
            WORKING.ask(IN_PARTS_AND_WHOLE * made, width)
            if self._makes_results(left.ids):
                WORKING.ask_results(made)
        found = [part for part in found if len(part)]
        return concatenate(found) if found else self._nothing(left)

    def _matching(
        self, left: Composites, visible: Int64s, operators: Int64s, lefts: NDArray[np.int64]
    ) -> Iterator[NDArray[np.int64]]:
        """What of ``left`` and the ``visible`` rows passes all comparisons and lives together, in
        parts: positions, rows, births and deaths."""
        if len(left) * len(visible) >= PAIRS_WORTH_SORTING and not self.linking.keys:
            columns = [c.right for c in self.loop]
            rights = self._values(columns, self.target.resolve(visible), len(visible))
            ordered = few_pairs(operators, lefts, rights)
            if ordered is not None:
                yield from self._in_order(left, visible, operators, lefts, rights, ordered)
                return
        for start in range(0, len(visible), _ROWS_OF_A_BLOCK):
            rows = visible[start : start + _ROWS_OF_A_BLOCK]
            rights = self._values(
                [c.right for c in self.loop], self.target.resolve(rows), len(rows)
            )
            births, deaths = self.target.lifespans(rows)
            out = np.empty((4, max(_MATCHES_OF_A_BLOCK, len(rows))), np.int64)
            first = 0
            while first < len(left):
                count, first = probe.nested_loop(
                    operators,
                    lefts,
                    left.births,
                    left.deaths,
                    rights,
                    births,
                    deaths,
                    rows,
                    first,
                    out,
                )
                HELD.go_on()
                if count:
                    yield out[:, :count].copy()

    def _in_order(
        self,
        left: Composites,
        visible: Int64s,
        operators: Int64s,
        lefts: NDArray[np.int64],
        rights: NDArray[np.int64],
        ordered: OrderedPairs,
    ) -> Iterator[NDArray[np.int64]]:
        """Parts as those of :meth:`_matching`, of the ``ordered`` pairs."""
        row_births, row_deaths = self.target.lifespans(visible)
        for at, row in ordered.parts():
            HELD.go_on()
            births = np.maximum(left.births[at], row_births[row])
            deaths = np.minimum(left.deaths[at], row_deaths[row])
            keep = np.flatnonzero((births <= deaths) & pass_all(operators, lefts, rights, at, row))
            yield np.stack([at[keep], visible[row[keep]], births[keep], deaths[keep]])

    def _values(
        self, columns: list[KeyColumn], ids: Mapping[str, Int64s], count: int
    ) -> NDArray[np.int64]:
        out = np.empty((len(columns), count), np.int64)
        for position, key in enumerate(columns):
            leaf = self._leaves[key.stream]
            out[position] = leaf.rows.take(leaf.key_column(key.position), ids[key.stream])
        return out

    def _nothing(self, left: Composites) -> Composites:
        return none_of([*left.ids, *self.target.streams])

    def _finish(
        self,
        left: Composites,
        at: Int64s,
        row: Int64s,
        births: Int64s | None = None,
        deaths: Int64s | None = None,
    ) -> Composites:
        """Make the pairs composites, and keep those that pass all remaining tests."""
        if len(at) == 0:
            return self._nothing(left)
        ids = {stream: ring.pick(rows, at) for stream, rows in left.ids.items()}
        ids.update(self.target.resolve(row))
        if births is None or deaths is None:
            found = date(ids, self._leaves)
            keep = found.births <= found.deaths
        else:
            found = Composites(ids, births, deaths)
            keep = np.ones(len(found), np.bool_)
        self._compare(ids, keep)
        if not keep.all():
            found = found.pick(np.flatnonzero(keep))
        if self._residual is not None and len(found):
            keep = self._residual(ColumnReader(found, self._leaves), len(found))
            if not keep.all():
                found = found.pick(np.flatnonzero(keep))
        return found

    def _compare(self, ids: Mapping[str, Int64s], keep: NDArray[np.bool_]) -> int:
        """Clear ``keep`` where a comparison fails that the probe did not make; how many failed."""
        rejected = 0
        for check in self._checks:
            left, right = self._leaves[check.left.stream], self._leaves[check.right.stream]
            rejected += pairs.reject(
                check.operator,
                left.rows.columns[left.key_column(check.left.position)],
                left.rows.mask,
                ids[check.left.stream],
                right.rows.columns[right.key_column(check.right.position)],
                right.rows.mask,
                ids[check.right.stream],
                keep,
            )
        return rejected


def _counting(rows: Int64s, gap: Gap | None, among: Among | None) -> Bools:
    """Mask of the ``rows`` that are not in the gap, and among those that count."""
    keep = np.ones(len(rows), np.bool_) if among is None else among(rows)
    if gap is not None:
        keep &= (rows < gap[0]) | (rows >= gap[1])
    return keep


def _run_of(ids: Mapping[str, Int64s]) -> tuple[str, int] | None:
    """Stream and first row, if there is but one stream and its rows are consecutive.

    What matches them is then known by number at once.
    """
    if len(ids) > 1:
        return None
    ((stream, rows),) = ids.items()
    return (stream, int(rows[0])) if is_run(rows) else None


@dataclass(slots=True)
class ColumnReader:
    """Reads a column of a stream for each composite."""

    composites: Composites
    leaves: Mapping[str, LeafWindow]
    _read: dict[Column, pa.Array] = field(default_factory=dict)
    """An expression may name a column several times."""

    def __call__(self, column: Column) -> pa.Array:
        found = self._read.get(column)
        if found is None:
            rows = self.composites.ids[column.stream]
            found = self.leaves[column.stream].payload.take(column.name, rows)
            self._read[column] = found
        return found
