"""From a block of a query and the statistics of its streams to the numbers of a join problem.

What is not given is derived: a window's rows from its kind (``RANGE w`` holds λ·w, ``ROWS n`` holds
n, so that its tuples live n/λ seconds, ``PARTITION BY k ROWS n`` n for each value of k), a tuple's
bytes from the types that the engine keeps of it, the share of an equality from the numbers of
different values. What cannot be derived is assumed, and each assumption is told in words.

An equality of which nothing is known is taken for one with a key: every row of a window has a value
of its own, so a tuple finds *about one partner* in the larger window, 1/max(|S_A|, |S_B|) of all
pairs. Several equalities over the same streams are one key of several columns. A fixed share of
pairs (System R's tenth) would give a tuple thousands of partners in a window of some ten thousand
rows, and rates that nobody has ever seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from penstock.errors import OptionError
from penstock.plan.stream_set import StreamSet
from penstock.planning.block import Block, Condition, Window
from penstock.planning.cardinality import ABSENT, Cardinality, Floats, log
from penstock.planning.equal_columns import equal_columns
from penstock.planning.statistics import Statistics
from penstock.planning.storage import KEY, LIFESPAN, Storage, is_number_of_64_bits, width_of
from penstock.planning.unit_costs import UnitCosts
from penstock.query.expression import Column, Comparison, Expression, columns_of, streams_of
from penstock.query.join_graph import EquiPredicate, JoinGraph, Predicate, Stream

EQUAL = 0.1
"""The share that an equality with a constant, or one over three streams, lets through."""
OTHER = 1 / 3
"""The same for any other predicate."""
UNEQUAL = 0.9
PARTITIONS = 100
"""Values of a column that groups or partitions are made by, if nobody says how many."""
MOST_VALUES, SPARE_VALUES = 2, 1024
"""Values that are numbered for each row of the windows, and beside these, before those of no row
are forgotten."""


class BlockReader:
    """Reads the block ``graph`` of ``query``; what it assumes is added to ``assumptions``."""

    def __init__(
        self,
        graph: JoinGraph,
        query: JoinGraph,
        statistics: Statistics,
        assumptions: dict[str, None],
    ) -> None:
        self.graph = graph
        self.ticks_per_second = 1000 * query.ticks_per_millisecond
        self.statistics = statistics
        self.assumptions = assumptions
        self.rows: dict[str, float] = {}
        """Rows of each window, as far as they may be in results."""
        self.keyed: set[frozenset[str]] = set()
        """The streams for which a key was assumed."""
        self.number = {alias: i for i, alias in enumerate(graph.aliases)}
        self.classes = equal_columns(graph)
        self.filters = [p for p in graph.predicates if len(p.streams) == 1]
        self.others = [
            p for p in graph.predicates if len(p.streams) > 1 and not isinstance(p, EquiPredicate)
        ]

    def read(
        self, costs: UnitCosts, storage: Storage, nested_loops: bool, cross_products: bool
    ) -> Block:
        statistics = self.statistics
        windows, sizes, turnovers = [], [], []
        for stream in self.graph.streams:
            window, size, turnover = self.window(stream)
            windows.append(window)
            sizes.append(size)
            turnovers.append(turnover)
        self.rows = dict(zip(self.graph.aliases, sizes, strict=True))
        pairs, big = self.selectivities()
        observed = [
            (self.mask(streams), log(share))
            for streams, share in statistics.observed.items()
            if len(streams) > 2 and self.is_here(streams)
        ]
        cardinality = Cardinality(sizes, turnovers, pairs, big, self.together(), observed)
        return Block(
            windows,
            cardinality,
            [self.mask(_streams_in(members)) for members in self.classes],
            [self.mask(p.streams) for p in self.others],
            costs,
            storage,
            {self.mask(s): share for s, share in statistics.demand.items() if self.is_here(s)},
            statistics.pushes,
            nested_loops,
            cross_products,
            [self.condition(predicate) for predicate in self.others],
            sum(storage.of_values(self.numbered(members)) for members in self.classes),
        )

    def numbered(self, members: Sequence[Expression]) -> float:
        """Values of a class of keys that are numbered, such as texts: those seen, until they are
        far more than the rows of the windows can have."""
        if all(is_number_of_64_bits(each.type) for each in members):
            return 0.0
        most = MOST_VALUES * sum(self.rows[each] for each in _streams_in(members)) + SPARE_VALUES
        known = [v for v in (self.values_of(e) for e in members) if v is not None]
        return min(max(known, default=most), most)

    def condition(self, predicate: Predicate) -> Condition:
        """``predicate`` with the share of the pairs that agree on their keys that pass it."""
        streams = predicate.streams
        alike = [each for each in self.others if each.streams == streams]
        share = log(_guess(predicate))
        given = self.given(streams) if len(streams) == 2 else None
        if len(streams) > 2:
            share = log(self.statistics.selectivities.get(StreamSet(streams), _guess(predicate)))
        elif given is not None:
            # All predicates over these streams together; each of the others its part of it.
            keys = 0.0
            for members in self.classes:
                here = [e for e in members if streams_of(e) <= streams]
                values = [v for v in (self.values_of(e) for e in here) if v is not None]
                if len(_streams_in(here)) > 1:
                    keys += log(1 / max(values)) if values else log(self.like(streams))
            share = min(0.0, log(given) - keys) / len(alike)
        return Condition(self.mask(streams), share, not _is_comparison_of_two(predicate.expression))

    def like(self, streams: Iterable[str]) -> float:
        """The share of pairs that agree on a key of which nothing is known."""
        return 1 / max(1.0, *(self.rows[stream] for stream in streams))

    def mask(self, streams: Iterable[str]) -> int:
        return sum(1 << self.number[stream] for stream in streams)

    def is_here(self, streams: StreamSet) -> bool:
        return all(stream in self.number for stream in streams)

    def assume(self, text: str) -> None:
        self.assumptions[text] = None

    # -- streams -----------------------------------------------------------------------------

    def window(self, stream: Stream) -> tuple[Window, float, float]:
        """The window, its rows that may be in results, and its turnover 1/W."""
        alias = stream.alias
        passing = self.passing(stream)
        given = _by_stream(self.statistics.sizes, stream)
        if stream.is_static:
            if given is None:
                raise OptionError(
                    f"how many rows has the static relation {alias}? "
                    f"give Statistics(sizes={{{alias!r}: rows}})"
                )
            rows = given * passing
            return Window(alias, 0.0, 0.0, rows, self.width(stream), True), rows, 0.0
        rate = self.statistics.rates.get(alias, self.statistics.rates.get(stream.source))
        if rate is None:
            known = ", ".join(self.statistics.rates) or "no stream"
            raise OptionError(
                f"no rate for stream {alias}; statistics have rates for {known}. "
                f"hint: Statistics(rates={{{alias!r}: tuples per second, …}})"
            )
        lasts = False
        if stream.window.span is not None:
            seconds = max(stream.window.span / 1000, 1 / self.ticks_per_second)
            kept = rate * passing
            rows = size = kept * seconds
            turnover = 1 / seconds
        elif stream.window.latest is not None:
            # Tuples that fail a predicate still push others out, so they are kept.
            rows = given if given is not None else self.row_count(stream, stream.window.latest)
            kept, size = rate, rows * passing
            turnover = rate / rows if rows else 0.0
        else:
            kept = rate * passing
            rows = size = given if given is not None else kept * self.statistics.horizon
            turnover = kept / rows if rows else 0.0
            lasts = True
            if given is None:
                hours = self.statistics.horizon / 3600
                self.assume(f"the unbounded window of {alias} has collected for {hours:g} hours")
        window = Window(alias, rate, kept, rows, self.width(stream), lasts, self.texts(stream))
        return window, size, turnover

    def row_count(self, stream: Stream, latest: int) -> float:
        """Rows of a window that holds the ``latest`` of each partition."""
        partitions = 1.0
        for column in stream.window.partition_by:
            count = self.distinct(stream, column)
            if count is None:
                count = PARTITIONS
                self.assume(f"{stream.alias}.{column} has {PARTITIONS} values")
            partitions *= count
        return latest * partitions

    def distinct(self, stream: Stream, column: str) -> float | None:
        known = self.statistics.distinct
        return known.get((stream.alias, column), known.get((stream.source, column)))

    def passing(self, stream: Stream) -> float:
        """The share of tuples that pass the predicates on this stream alone."""
        for values in (self.statistics.observed, self.statistics.selectivities):
            given = _by_stream(values, stream)
            if given is not None:
                return given
        share = 1.0
        for predicate in self.filters:
            if predicate.streams == {stream.alias}:
                share *= _guess(predicate)
                self.assume(f"{_guess(predicate):.2g} of {stream.alias} pass {predicate}")
        return share

    def texts(self, stream: Stream) -> int:
        """Key columns of the stream that are no numbers of up to 64 bits."""
        keys = {e for members in self.classes for e in members if streams_of(e) == {stream.alias}}
        return sum(
            isinstance(each, Column) and not is_number_of_64_bits(each.type) for each in keys
        )

    def width(self, stream: Stream) -> float:
        """Bytes of a tuple: what the engine keeps of it."""
        given = self.statistics.widths.get(stream.alias, self.statistics.widths.get(stream.source))
        if given is not None:
            return given
        graph, alias = self.graph, stream.alias
        keys = {e for c in self.classes for e in c if streams_of(e) == {alias}}
        read: list[Expression] = []
        for predicate in self.others:
            if _is_comparison_of_two(predicate.expression):
                assert isinstance(predicate.expression, Comparison)
                sides = (predicate.expression.left, predicate.expression.right)
                keys |= {side for side in sides if streams_of(side) == {alias}}
            else:
                read.append(predicate.expression)
        if graph.is_grouped:
            read += graph.group_by
            read += [a.argument for a in graph.aggregates if a.argument is not None]
        else:
            read += [item.expression for item in graph.select]
        columns = {c for e in read for c in columns_of(e) if c.stream == alias}
        return LIFESPAN + KEY * len(keys) + sum(width_of(column.type) for column in columns)

    # -- selectivities -----------------------------------------------------------------------

    def given(self, streams: Iterable[str]) -> float | None:
        """What is known of the share for exactly these streams; seen comes before said."""
        key = StreamSet(streams)
        statistics = self.statistics
        return statistics.observed.get(key, statistics.selectivities.get(key))

    def selectivities(self) -> tuple[Floats, list[Floats]]:
        """Log factors of pairs, and log shares of the members of classes of three and more."""
        count = len(self.number)
        pairs = np.zeros((count, count))
        big: list[Floats] = []
        factors: dict[frozenset[str], float] = {}
        for members in self.classes:
            streams = sorted(_streams_in(members), key=self.number.__getitem__)
            if len(streams) == 2:
                pair = frozenset(streams)
                factors[pair] = factors.get(pair, 0.0) + self.equality(members, streams)
            elif len(streams) > 2:
                big.append(self.shares(members, streams))
        for predicate in self.others:
            if len(predicate.streams) == 2:
                pair = predicate.streams
                factors.setdefault(pair, 0.0)
                if self.given(pair) is None:
                    factors[pair] += log(_guess(predicate))
                    self.assume(f"{_guess(predicate):.2g} of the pairs pass {predicate}")
        for left in self.number:
            for right in self.number:
                i, j = self.number[left], self.number[right]
                if i >= j:
                    continue
                share = self.given((left, right))
                implied = [min(q[i], q[j]) for q in big if q[i] != ABSENT and q[j] != ABSENT]
                if share is None:
                    factor = factors.get(frozenset((left, right)), 0.0)
                elif (
                    implied
                    or share == 1.0
                    or frozenset((left, right)) in factors
                    # A state over the two was seen: not all of their rows are alive together.
                    or StreamSet((left, right)) in self.statistics.observed
                ):
                    factor = log(share) - sum(implied)
                else:
                    raise OptionError(
                        f"statistics have a selectivity for {left} and {right}, "
                        "but no predicate of the query links them"
                    )
                pairs[i, j] = pairs[j, i] = factor
        return pairs, big

    def equality(self, members: Sequence[Expression], streams: Sequence[str]) -> float:
        """log of the share of pairs that agree, unless the pair as a whole is given."""
        if self.given(streams) is not None:
            return 0.0
        values = [v for v in (self.values_of(e) for e in members) if v is not None]
        if values:
            return log(1 / max(values))
        return log(self.like_a_key(streams))

    def like_a_key(self, streams: Sequence[str]) -> float:
        """The share of pairs that agree if every row of a window has a value of its own."""
        if self.is_more_of_a_key(streams):
            return 1.0
        largest = max(streams, key=self.rows.__getitem__)
        rows = max(1.0, self.rows[largest])
        others = " and ".join(stream for stream in streams if stream != largest)
        self.assume(
            f"a tuple of {others} finds about one partner in {largest}, one pair in {rows:,.0f}"
        )
        return 1 / rows

    def is_more_of_a_key(self, streams: Sequence[str]) -> bool:
        """Whether a key over ``streams`` was assumed before."""
        known = frozenset(streams) in self.keyed
        self.keyed.add(frozenset(streams))
        return known

    def shares(self, members: Sequence[Expression], streams: Sequence[str]) -> Floats:
        """log q of each member of a class that reaches three or more streams."""
        q = np.full(len(self.number), ABSENT)
        more = self.is_more_of_a_key(streams)
        for stream in streams:
            known = [
                share
                for other in streams
                if other != stream and (share := self.given((stream, other))) is not None
            ]
            values = [
                v
                for e in members
                if streams_of(e) == {stream} and (v := self.values_of(e)) is not None
            ]
            if known:
                share = max(known)
            elif values:
                share = 1 / max(values)
            elif more:
                share = 1.0
            else:
                share = 1 / max(1.0, self.rows[stream])
                self.assume(
                    f"a key is found about once in {stream}, in one tuple of {1 / share:,.0f}"
                )
            q[self.number[stream]] = log(share)
        return q

    def values_of(self, expression: Expression) -> float | None:
        if not isinstance(expression, Column):
            return None
        return self.distinct(self.graph.stream(expression.stream), expression.name)

    def together(self) -> list[tuple[int, float]]:
        """Log factors of predicates over three or more streams."""
        found: dict[frozenset[str], float] = {}
        for predicate in self.others:
            streams = StreamSet(predicate.streams)
            if len(streams) <= 2:
                continue
            share = self.statistics.selectivities.get(streams)
            if share is not None:
                found[streams] = log(share)
                continue
            found[streams] = found.get(streams, 0.0) + log(_guess(predicate))
            if streams not in self.statistics.observed:
                self.assume(f"{_guess(predicate):.2g} of the combinations pass {predicate}")
        return [(self.mask(streams), factor) for streams, factor in found.items()]


def _streams_in(members: Iterable[Expression]) -> set[str]:
    return {stream for expression in members for stream in streams_of(expression)}


def _by_stream(values: Mapping[StreamSet, float], stream: Stream) -> float | None:
    return values.get(StreamSet.of(stream.alias), values.get(StreamSet.of(stream.source)))


def _guess(predicate: Predicate) -> float:
    expression = predicate.expression
    if isinstance(expression, Comparison):
        if expression.operator == "=":
            return EQUAL
        if expression.operator == "<>":
            return UNEQUAL
    return OTHER


def _is_comparison_of_two(expression: Expression) -> bool:
    if not isinstance(expression, Comparison):
        return False
    return len(streams_of(expression.left)) == 1 and len(streams_of(expression.right)) == 1
