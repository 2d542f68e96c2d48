"""Random queries as CQL text, with the schemas and the values of their sources.

A query starts from a shape (chain, star, clique, tree) over its streams; each edge becomes one or
more predicates, then come predicates over one and over three streams, the windows and the select
list. From all that follows how often two keys must be equal for a case to have results, and thus
how much more frequent the first value of each key has to be than the others.

Every source has the columns ``id`` (unique), ``v``, ``w`` (small integers), ``d`` (double), ``s``
(string) and its event time, and gets key columns ``k0``, ``k1``, … as edges need them.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.query.join_graph import ARRIVAL
from penstock.testing.feature_chance import FeatureChance
from penstock.testing.key_families import FAMILIES, INTEGER, MIXED, PAYLOADS, Family
from penstock.testing.knobs import Knobs

_MILLISECOND_UNITS = ((1, "MILLISECONDS"), (1_000, "SECONDS"), (60_000, "MINUTES"))
_TIME_TYPES = (
    pa.timestamp("us", "UTC"),
    pa.timestamp("ms"),
    pa.timestamp("us"),
    pa.timestamp("ns"),
    pa.timestamp("ns", "Europe/Vienna"),
    pa.timestamp("s"),
    pa.int64(),
)


@dataclass
class Source:
    """A source under construction: its columns, and for each the values to draw from."""

    name: str
    is_static: bool
    time_type: pa.DataType | None
    time_column: str
    has_arrival: bool
    """Whether the schema has the column ``arrival``, as its last one."""
    pools: dict[str, tuple[pa.DataType, tuple[Any, ...]]] = field(default_factory=dict)
    families: dict[str, Family] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        fields: list[tuple[str, pa.DataType]] = [("id", pa.int64())]
        if self.time_type is not None:
            fields.append((self.time_column, self.time_type))
        fields += [(name, kind) for name, (kind, _) in self.pools.items()]
        if self.has_arrival:
            fields.append((ARRIVAL, pa.int64()))
        return pa.schema(fields)


@dataclass(frozen=True)
class StreamUse:
    """One item of FROM."""

    alias: str
    source: Source
    window: str
    crossed: bool = False

    def __str__(self) -> str:
        text = f"{self.source.name} {self.window}".rstrip()
        return text if self.alias == self.source.name else f"{text} AS {self.alias}"


@dataclass(frozen=True)
class RandomQuery:
    """A query, and what the generator of pushes has to know about it."""

    text: str
    sources: tuple[Source, ...]
    event_time: str | dict[str, str]
    aliases: tuple[str, ...]
    by_rows: bool
    arrival_in_schema: bool
    step: int
    """The grain of event time, in milliseconds: windows are small multiples of it."""
    size: int
    """Tuples per source."""
    heavy: float
    """How often a key column has the first value of its pool."""
    features: frozenset[str]


def random_query(chance: random.Random, knobs: Knobs) -> RandomQuery:
    """A query within ``knobs``."""
    return _Draft(chance, knobs).query()


class _Draft(FeatureChance):
    def __init__(self, chance: random.Random, knobs: Knobs) -> None:
        super().__init__(chance, knobs)
        self.sources: list[Source] = []
        self.keys = 0
        self.blocks = 0
        self.first_value = chance.randrange(8)
        self.equalities = 0
        self.filters = 0

    def query(self) -> RandomQuery:
        chance = self.chance
        count = chance.randint(*self.knobs.streams)
        self.by_rows = self.may("rows", 0.3)
        grouped = self.may("group by", 0.2)
        subtracts = not grouped and self.may("except", 0.2)
        if subtracts:
            count = min(count, chance.choice([1, 2, 2, 3]))
        self.total = count + (2 if subtracts else 0)
        self.size = self.knobs.tuples_for(min(self.total, 6))
        self.domain = self.knobs.domain_for(self.total)
        self.step, self.unit = chance.choice(_MILLISECOND_UNITS)
        self.one_time_column = not self.flip(0.3)
        self.no_time = self.by_rows and self.may("no event time", 0.2)
        self.arrival_in_schema = self.no_time or (self.by_rows and self.may("arrival", 0.15))
        self.common_window = self.window_length()

        main = self.from_items(count, may_be_static=not subtracts)
        where = self.where(main)
        self.main_equalities, self.main_filters = self.equalities, self.filters
        if subtracts:
            select = self.compared_columns()
            blocks = [self.block(self.pick(main, select), main, where)]
            for _ in range(chance.choice([1, 1, 2])):
                items = self.from_items(chance.choice([1, 1, 2]), may_be_static=False)
                condition = self.where(items)
                blocks.append(self.block(self.pick(items, select), items, condition))
        elif grouped:
            blocks = [self.grouped_block(main, where)]
        else:
            blocks = [self.block(self.select(main), main, where)]
        text = self.emission("\nEXCEPT\n".join(blocks))
        event_time: str | dict[str, str] = "ts"
        if not self.one_time_column:
            event_time = {s.name: s.time_column for s in self.sources if s.time_type is not None}
        return RandomQuery(
            text=text,
            sources=tuple(self.sources),
            event_time=event_time,
            aliases=tuple(item.alias for item in main),
            by_rows=self.by_rows,
            arrival_in_schema=self.arrival_in_schema,
            step=self.step,
            size=self.size,
            heavy=self.heavy(main),
            features=frozenset(self.used),
        )

    def emission(self, text: str) -> str:
        chance = self.chance
        if self.may("dstream", 0.2):
            word = "DSTREAM"
        elif self.may("rstream", 0.15):
            word = "RSTREAM"
        else:
            word = chance.choice(["", "", "ISTREAM"])
        if not word:
            return text
        if "EXCEPT" in text or self.flip(0.3):
            return f"{word} (\n{text}\n)"
        return text.replace("SELECT", f"SELECT {word}", 1)

    # Streams

    def from_items(self, count: int, may_be_static: bool) -> list[StreamUse]:
        items: list[StreamUse] = []
        prefix = "" if not self.blocks else "xyz"[self.blocks - 1]
        self.blocks += 1
        for position in range(count):
            alias = prefix + chr(ord("A") + position)
            reusable = [s for s in self.sources if not s.is_static]
            probability = 0.15 if not prefix else 0.4
            if reusable and self.may("self-join", probability):
                source = self.chance.choice(reusable)
                alias += source.name.lower() if alias != source.name else "1"
            else:
                others = any(not i.source.is_static for i in items) or position < count - 1
                static = may_be_static and others and self.may("static", 0.12)
                source = self.source(alias if not prefix else alias.upper(), static)
            items.append(StreamUse(alias, source, self.window(source)))
        if all(item.source.is_static for item in items):
            source = self.source(f"Z{len(self.sources)}", False)
            items[-1] = StreamUse(source.name, source, self.window(source))
        if self.by_rows and not prefix:
            self.need_rows(items)
        if count > 1 and count <= 3 and self.may("cross", 0.06):
            items[-1] = StreamUse(items[-1].alias, items[-1].source, items[-1].window, True)
        return items

    def need_rows(self, items: list[StreamUse]) -> None:
        """At least one window counts rows, so that the time line is the arrival order."""
        if not any("ROWS" in item.window for item in items):
            i = next(i for i, item in enumerate(items) if not item.source.is_static)
            rows = f"[ROWS {self.chance.randint(1, 6)}]"
            items[i] = StreamUse(items[i].alias, items[i].source, rows, items[i].crossed)

    def source(self, name: str, is_static: bool) -> Source:
        chance, domain = self.chance, self.domain
        time_type: pa.DataType | None = pa.timestamp("ms")
        if "time types" in self.knobs.features:
            self.used.add("time types")
            time_type = chance.choice(_TIME_TYPES)
            if self.step == 1 and time_type == pa.timestamp("s"):
                time_type = pa.timestamp("us")
        if is_static or self.no_time:
            time_type = None
        column = "ts" if self.one_time_column else chance.choice(["ts", "at", "timestamp"])
        has_arrival = self.arrival_in_schema and not is_static
        source = Source(name, is_static, time_type, column, has_arrival)
        source.pools["v"] = (pa.int32(), tuple(range(domain)))
        source.pools["w"] = (pa.int64(), tuple(range(-1, domain - 1)))
        doubles: tuple[float, ...] = (0.5, 0.25, 2.0, -1.5)
        if self.may("special floats", 0.3):
            doubles += (math.nan, -0.0, 0.0, math.inf)
        source.pools["d"] = (pa.float64(), doubles)
        source.pools["s"] = (pa.string(), ("a", "ab", "B", "", "é")[: max(2, domain)])
        if self.may("payload", 0.3):
            source.pools["p"] = chance.choice(PAYLOADS)
        self.sources.append(source)
        return source

    def window(self, source: Source) -> str:
        chance = self.chance
        if source.is_static:
            return ""
        if self.by_rows:
            if self.may("unbounded", 0.15):
                return "[UNBOUNDED]"
            if self.may("partition", 0.35):
                columns = [c for c in ("v", "w", "d", "s") if c in source.pools]
                keys = chance.sample(columns, chance.choice([1, 1, 2]))
                return f"[PARTITION BY {', '.join(keys)} ROWS {chance.randint(1, 3)}]"
            return f"[ROWS {chance.randint(1 if self.total <= 3 else 3, 8)}]"
        if self.may("now", 0.08 if self.total <= 3 else 0.03):
            return "[NOW]"
        if self.may("unbounded", 0.08):
            return chance.choice(["[UNBOUNDED]", "[RANGE UNBOUNDED]"])
        length = self.window_length() if self.may("range", 0.6) else self.common_window
        return f"[RANGE {length} {self.unit}]"

    def window_length(self) -> int:
        """In units of the query; all tuples together span about as many units as there are."""
        span = self.span
        small = [1, 2, 3, 5] if self.total <= 3 else [5]
        return self.chance.choice([*small, *(max(1, span // n) for n in (8, 4, 2, 1))])

    @property
    def span(self) -> int:
        return self.size * self.total

    def heavy(self, items: Sequence[StreamUse]) -> float:
        """How frequent the first value of a key must be for a handful of results to be likely."""
        wanted = self.chance.choice([20, 60, 200]) if "rstream" not in self.used else 20
        shares = sorted(self.share(item) for item in items)
        expected = len(items) * math.prod(shares[:-1]) * float(self.size ** len(items))
        expected *= 0.4**self.main_filters
        if not self.main_equalities or expected <= 0:
            return 0.0
        pairs = min(1.0, wanted / expected) ** (1 / self.main_equalities)
        return min(0.95, math.sqrt(pairs)) if pairs > 1 / self.domain else 0.0

    def share(self, item: StreamUse) -> float:
        """The share of the run for which a tuple lives."""
        words = item.window.strip("[]").split()
        if not words or "UNBOUNDED" in words:
            return 1.0
        if words == ["NOW"]:
            return 0.5 / self.span
        if "ROWS" in words:
            partitions = self.domain if "PARTITION" in words else 1
            return min(1.0, int(words[-1]) * partitions / self.size)
        return min(1.0, (int(words[1]) + 0.5) / self.span)

    # Predicates

    def where(self, items: Sequence[StreamUse]) -> list[str]:
        chance = self.chance
        conditions: list[str] = []
        linked = [item for item in items if not item.crossed]
        edges = self.edges(len(linked))
        family = self.family()
        one_attribute = self.flip(0.3)
        for i, j in edges:
            if not one_attribute:
                family = self.family()
            conditions += self.edge(linked[i], linked[j], family, one_attribute)
        if one_attribute:  # equality is transitive
            self.equalities = min(self.equalities, len(linked) - 1)
        for item in items:
            if self.may("single", 0.15 if self.total <= 3 else 0.05):
                self.filters += 1
                conditions.append(self.single(item.alias))
        if len(items) >= 3 and self.may("three", 0.25):
            self.filters += 1
            conditions.append(self.three(*(i.alias for i in chance.sample(list(items), 3))))
        chance.shuffle(conditions)
        return conditions

    def edges(self, count: int) -> list[tuple[int, int]]:
        chance = self.chance
        if count < 2:
            return []
        order = list(range(count))
        chance.shuffle(order)
        shape = chance.choice(["chain", "star", "clique", "tree"])
        if shape == "clique" and count <= 5:
            return [(i, j) for i in range(count) for j in range(i)]
        if shape == "chain":
            return list(itertools.pairwise(order))
        if shape == "star":
            return [(order[0], other) for other in order[1:]]
        edges = [(order[i], order[chance.randrange(i)]) for i in range(1, count)]
        if count > 2 and self.flip(0.3):
            i, j = chance.sample(range(count), 2)
            edges.append((i, j))
        return edges

    def family(self) -> Family:
        if self.may("mixed types", 0.12):
            return self.chance.choice(MIXED)
        if self.may("key types", 0.5):
            return self.chance.choice(FAMILIES)
        return INTEGER

    def edge(
        self, left: StreamUse, right: StreamUse, family: Family, one_attribute: bool
    ) -> list[str]:
        """One or more predicates between two streams."""
        a, b = left.alias, right.alias
        few = 1.0 if self.total <= 4 else 0.3
        if self.may("theta", 0.15 * few):
            self.filters += 1
            return [self.theta(left, right)]
        if self.may("or", 0.08 * few):
            self.filters += 1
            return [self.alternative(a, b)]
        if self.may("key expressions", 0.1 * few):
            self.filters += 2
            return [self.key_expression(a, b)]
        found = [self.equality(left, right, family, one_attribute)]
        self.equalities += 1
        while self.may("multi", 0.15 * few):
            self.equalities += 1
            found.append(self.equality(left, right, self.family(), False))
        if self.may("theta", 0.12 * few):
            self.filters += 1
            found.append(self.theta(left, right))
        if self.may("or", 0.08 * few):
            self.filters += 1
            found.append(self.alternative(a, b))
        return found

    def equality(self, left: StreamUse, right: StreamUse, family: Family, reuse: bool) -> str:
        x = self.key_column(left.source, family, reuse)
        y = self.key_column(right.source, family, reuse)
        return f"{left.alias}.{x} = {right.alias}.{y}"

    def key_column(self, source: Source, family: Family, reuse: bool) -> str:
        chance = self.chance
        known = [name for name, f in source.families.items() if f is family]
        if known and (reuse or self.flip(0.4)):
            return known[0] if reuse else chance.choice(known)
        kind = family.types[0]
        if "key types" in self.knobs.features and self.flip(0.7):
            kind = chance.choice(family.types)
        name = f"k{self.keys}"
        self.keys += 1
        source.families[name] = family
        source.pools[name] = (kind, family.pool(chance, kind, self.domain, self.first_value))
        return name

    def theta(self, left: StreamUse, right: StreamUse) -> str:
        a, b = left.alias, right.alias
        choices = [
            f"{a}.v {self.chance.choice(['<', '<=', '<>', '>', '>='])} {b}.w",
            f"{a}.v BETWEEN {b}.w - 1 AND {b}.w + 1",
            f"{a}.v + 1 < {b}.v * 2",
            f"ABS({a}.v - {b}.w) <= 1",
            f"{a}.d > {b}.d",
            f"{a}.s >= {b}.s",
            f"{a}.v <> {b}.d",
        ]
        times = left.source.time_type, right.source.time_type
        if times[0] is not None and times[0] == times[1]:
            x, y = f"{a}.{left.source.time_column}", f"{b}.{right.source.time_column}"
            choices.append(f"{x} <= {y}")
            if pa.types.is_timestamp(times[0]) and self.step >= 1_000:
                choices.append(f"{x} BETWEEN {y} AND {y} + INTERVAL 5 {self.unit}")
        return self.chance.choice(choices)

    def alternative(self, a: str, b: str) -> str:
        return self.chance.choice(
            [
                f"({a}.v = {b}.v OR {a}.w = {b}.w)",
                f"({a}.v < {b}.v OR {b}.v IS NULL)",
                f"NOT ({a}.v = {b}.w)",
                f"({a}.s = {b}.s OR ({a}.v = {b}.w AND {a}.d IS NOT NULL))",
                f"NOT ({a}.v <> {b}.v AND {a}.s <> {b}.s)",
            ]
        )

    def key_expression(self, a: str, b: str) -> str:
        return self.chance.choice(
            [
                f"{a}.v + 1 = {b}.w",
                f"{a}.w % 3 = {b}.v % 3",
                f"LOWER({a}.s) = LOWER({b}.s)",
                f"{a}.v * 2 = {b}.w + {b}.v",
                f"COALESCE({a}.v, {a}.w) = {b}.v",
                f"-{a}.w = {b}.v - 2",
                f"LENGTH({a}.s) = {b}.v",
            ]
        )

    def single(self, a: str) -> str:
        return self.chance.choice(
            [
                f"{a}.v > 0",
                f"{a}.v IN (0, 1, 3)",
                f"{a}.s LIKE '%a%'",
                f"{a}.s LIKE '_'",
                f"{a}.d IS NOT NULL",
                f"NOT ({a}.w = 1)",
                f"{a}.v + {a}.w <= 3",
                f"{a}.d < 1.5",
                f"{a}.v IS NULL OR {a}.v <> 2",
                f"{a}.id % 4 <> 1",
            ]
        )

    def three(self, a: str, b: str, c: str) -> str:
        return self.chance.choice(
            [
                f"{a}.v + {b}.v <= {c}.w + 1",
                f"{a}.v + {b}.w = {c}.v + 1",
                f"({a}.v = {b}.v OR {a}.v = {c}.v)",
                f"COALESCE({a}.v, {b}.v) <> {c}.v",
                f"{c}.v BETWEEN {a}.w AND {b}.v",
            ]
        )

    # What is selected

    def block(self, select: Sequence[str], items: Sequence[StreamUse], where: list[str]) -> str:
        text = f"SELECT {', '.join(select)}\nFROM {items[0]}"
        for item in items[1:]:
            text += f" CROSS JOIN {item}" if item.crossed else f", {item}"
        return text + (f"\nWHERE {' AND '.join(self.bracketed(where))}" if where else "")

    def bracketed(self, conditions: Sequence[str]) -> list[str]:
        return [f"({c})" if " OR " in c and c[0] != "(" else c for c in conditions]

    def select(self, items: Sequence[StreamUse]) -> list[str]:
        chance = self.chance
        columns = [f"{item.alias}.id AS {item.alias}_id" for item in items]
        if self.flip(0.1):
            columns = [f"{item.alias}.v AS {item.alias}_v" for item in items]
        for item in items:
            if "p" in item.source.pools:
                columns.append(f"{item.alias}.p AS {item.alias}_p")
            if item.source.families and self.flip(0.4):
                key = chance.choice(list(item.source.families))
                columns.append(f"{item.alias}.{key} AS {item.alias}_{key}")
            if item.source.time_type is not None and self.flip(0.2):
                columns.append(f"{item.alias}.{item.source.time_column} AS {item.alias}_time")
        number = 0
        while number < 4 and self.may("select expressions", 0.35):
            a, b = chance.choice(items).alias, chance.choice(items).alias
            columns.append(f"{self.expression(a, b)} AS e{number}")
            number += 1
        drawn = self.apart(columns)
        if drawn.random() < 0.4:
            a, b = drawn.choice(items).alias, drawn.choice(items).alias
            columns.append(f"{self.function(drawn, a, b)} AS f")
        return columns

    def apart(self, written: Sequence[str]) -> random.Random:
        """Chance that follows from what is written, so that it changes no other choice."""
        return random.Random(" ".join(written))

    def function(self, chance: random.Random, a: str, b: str) -> str:
        return chance.choice(
            [
                f"CASE WHEN {a}.v > {b}.w THEN {a}.s WHEN {b}.s IS NULL THEN 'none' END",
                f"CASE {a}.w WHEN 0 THEN NULL WHEN 1 THEN 10 / {a}.w ELSE {b}.v END",
                f"CASE WHEN {a}.w <> 0 THEN {b}.v % {a}.w ELSE -1 END",
                f"{a}.s || '/' || {b}.v",
                f"CONCAT({a}.s, {b}.s)",
                f"SUBSTRING({a}.s, -2, 1)",
                f"REPLACE(TRIM({a}.s), 'a', 'xy')",
                f"GREATEST({a}.v, {b}.w, {a}.d)",
                f"LEAST({a}.d, {b}.d)",
                f"NULLIF({a}.v, {b}.v)",
                f"IF({a}.v = {b}.v, {a}.s, {b}.s)",
                f"ROUND({a}.d, 1)",
                f"SQRT(ABS({a}.d))",
                f"CONTAINS({a}.s, 'a') AND {b}.v > 0",
            ]
        )

    def expression(self, a: str, b: str) -> str:
        return self.chance.choice(
            [
                f"{a}.v + {b}.w",
                f"-{a}.v",
                f"{a}.d * 2",
                f"{a}.v / 2",
                f"{a}.w % 3",
                f"COALESCE({a}.v, {b}.w, 7)",
                f"UPPER({a}.s)",
                f"LENGTH({a}.s)",
                f"ABS({a}.w - {b}.v)",
                f"{a}.v > {b}.w",
                f"{a}.s LIKE 'a%'",
                f"{a}.v IS NULL",
                f"({a}.v = {b}.v OR {a}.w IS NOT NULL)",
                "'x'",
                "1",
                "NULL",
                f"{a}.d + {b}.v",
                f"CAST({a}.v AS DOUBLE)",
            ]
        )

    def compared_columns(self) -> list[str]:
        """The columns that the blocks of EXCEPT compare: all sources have them."""
        return self.chance.choice([["v"], ["w"], ["s"], ["v", "s"], ["d"], ["v", "v"]])

    def pick(self, items: Sequence[StreamUse], columns: Sequence[str]) -> list[str]:
        return [
            f"{self.chance.choice(items).alias}.{column} AS c{i}"
            for i, column in enumerate(columns)
        ]

    def grouped_block(self, items: Sequence[StreamUse], where: list[str]) -> str:
        chance = self.chance
        groups: list[str] = []
        for _ in range(chance.choice([0, 1, 1, 1, 2])):
            item = chance.choice(items)
            columns = [c for c in item.source.pools if c != "p"]
            groups.append(f"{item.alias}.{chance.choice(columns)}")
        if self.flip(0.15):
            groups.append(f"{items[0].alias}.v + 1")
        groups = list(dict.fromkeys(groups))
        number = chance.randint(0 if groups else 1, 4)
        aggregates = [self.aggregate(chance.choice(items)) for _ in range(number)]
        apart = self.apart(aggregates)
        extrema_alone = apart.random() < 0.4
        if extrema_alone:
            aggregates = [extremum(apart, items) for _ in aggregates]
        names = [f"{g} AS g{i}" for i, g in enumerate(groups)]
        names += [f"{text} AS a{i}" for i, text in enumerate(aggregates)]
        chance.shuffle(names)
        text = self.block(names, items, where)
        text += f"\nGROUP BY {', '.join(groups)}" if groups else ""
        drawn = self.apart(names)
        if drawn.random() < 0.4:
            a = drawn.choice(items).alias
            conditions = ["COUNT(*) > 1", "COUNT(*) % 2 = 1", f"MAX({a}.v) >= MIN({a}.w)"]
            conditions += [f"SUM({a}.v) IS NULL OR AVG({a}.w) < 3"]
            conditions += [f"g{i} IS NOT NULL" for i in range(len(groups))]
            if extrema_alone:
                least, most = (f"{each}({a}.v)" for each in ("MIN", "MAX"))
                conditions = [f"{most} >= {least} + 2", f"{most} > 2", f"3 >= {least}"]
                conditions += [f"{each} IS NOT NULL" for each in aggregates]
                numbers = [each for each in aggregates if each.endswith((".v)", ".w)"))]
                conditions += [f"{each} > 1" for each in numbers if "MAX" in each]
                conditions += [f"{each} < 2" for each in numbers if "MIN" in each]
            text += f"\nHAVING {drawn.choice(conditions)}"
        return text

    def aggregate(self, item: StreamUse) -> str:
        a = item.alias
        choices = ["COUNT(*)", f"COUNT({a}.v)"]
        choices += [f"{f}({a}.{c})" for f in ("SUM", "AVG") for c in ("v", "w", "d")]
        choices += [f"{f}({a}.{c})" for f in ("MIN", "MAX") for c in ("v", "d", "s", "id")]
        for key, (kind, _) in item.source.pools.items():
            if pa.types.is_decimal(kind) and key != "p" and kind.precision <= 12:
                choices += [f"{f}({a}.{key})" for f in ("SUM", "AVG", "MIN", "MAX")]
        choices += [f"SUM({a}.v) + 1", "COUNT(*) * 2", f"COALESCE(SUM({a}.v), 0)"]
        return self.chance.choice(choices)


def extremum(chance: random.Random, items: Sequence[StreamUse]) -> str:
    """MIN or MAX of a column."""
    column = chance.choice(["v", "v", "w", "d", "s", "id"])
    return f"{chance.choice(['MIN', 'MAX'])}({chance.choice(items).alias}.{column})"
