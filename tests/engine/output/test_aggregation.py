"""The grouped relation against a twin that recomputes it from scratch, at every instant."""

from __future__ import annotations

import datetime
import importlib
import math
import pkgutil
import sys
import tracemalloc
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.dispatcher import Dispatcher
from numpy.typing import NDArray

import penstock.kernels
from penstock.engine.output import agenda as agenda_module
from penstock.engine.output import aggregation as aggregation_module
from penstock.engine.output import extremum as extremum_module
from penstock.engine.output.aggregation import Aggregation
from penstock.errors import InputError
from penstock.kernels import aggregate as kernels
from penstock.query.expression import (
    GROUPED,
    Aggregate,
    AggregateFunction,
    Arithmetic,
    Column,
    Comparison,
    Constant,
    Expression,
)
from penstock.query.join_graph import Emission, JoinGraph, SelectItem, Stream
from penstock.query.window import Range, Rows
from penstock.values.key_types import BytesKey, key_type_of

Int64s = NDArray[np.int64]

FOREVER = 2**63 - 1
BEGINNING = -(2**63) + 1
NAN = math.nan
WIDE = Context(prec=200)
BOUNDED = settings(derandomize=True, max_examples=60, deadline=None)


# -- the twin ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    """A join result: values of the GROUP BY expressions and of the arguments, and its lifespan."""

    group: tuple[Any, ...]
    arguments: tuple[Any, ...]
    birth: int
    death: int


class OverflowedError(Exception):
    """A row has no value in its type."""


def canonical(value: Any) -> Hashable:
    """``value`` so that ``==`` means "not distinct"."""
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    if isinstance(value, tuple):
        return tuple(canonical(v) for v in value)
    assert isinstance(value, Hashable)
    return value


def order_key(value: Any) -> Any:
    """NaN is greatest."""
    return (value != value, 0.0 if value != value else value) if isinstance(value, float) else value


def half_up(value: Fraction, scale: int) -> Decimal:
    shifted = abs(value) * 10**scale
    unscaled = math.floor(shifted + Fraction(1, 2))
    digits = Decimal(unscaled if value >= 0 else -unscaled)
    return digits.scaleb(-scale, WIDE)


def rounded(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def aggregate_of(aggregate: Aggregate, values: list[Any]) -> Any:
    """The definition: one aggregate over the arguments of all living results of a group."""
    if aggregate.argument is None:
        return len(values)
    known = [v for v in values if v is not None]
    if aggregate.function == "count":
        return len(known)
    if not known:
        return None
    if aggregate.function in ("min", "max"):
        return (min if aggregate.function == "min" else max)(known, key=order_key)
    if isinstance(known[0], float):
        if all(math.isfinite(v) for v in known):
            total = rounded(sum(map(Fraction, known), Fraction(0)))
        else:
            total = sum(v for v in known if not math.isfinite(v))
        return total / len(known) if aggregate.function == "avg" else total
    exact = sum(map(Fraction, known), Fraction(0))
    if aggregate.function == "avg":
        exact /= len(known)
    if pa.types.is_floating(aggregate.type):
        return rounded(exact)
    if pa.types.is_decimal(aggregate.type):
        found = half_up(exact, aggregate.type.scale)
        if found.copy_abs() >= Decimal(10) ** (aggregate.type.precision - aggregate.type.scale):
            raise OverflowedError
        return found
    if not -(2**63) <= exact < 2**63:
        raise OverflowedError
    return int(exact)


class Twin:
    """All results that ever came, and the relation at any instant."""

    def __init__(self, graph: JoinGraph, shown: Callable[[tuple[Any, ...]], tuple[Any, ...]]):
        self.graph = graph
        self.shown = shown
        self.results: list[Result] = []
        self.settled: int | None = None
        self.rows: dict[Hashable, tuple[Any, ...]] = {}

    def rows_at(self, instant: int) -> dict[Hashable, tuple[Any, ...]]:
        groups: dict[Hashable, list[Result]] = {}
        for result in self.results:
            if result.birth <= instant <= result.death:
                groups.setdefault(canonical(result.group), []).append(result)
        rows = {}
        for key, members in groups.items():
            answers = tuple(
                aggregate_of(aggregate, [m.arguments[i] for m in members])
                for i, aggregate in enumerate(self.graph.aggregates)
            )
            rows[key] = self.shown((*members[0].group, *answers))
        return rows

    def push(self, new: list[Result], settled: int, now: int) -> list[tuple[int, tuple[Any, ...]]]:
        before = (list(self.results), self.settled, self.rows)
        try:
            return self._push(new, settled, now)
        except OverflowedError:
            self.results, self.settled, self.rows = before
            raise

    def _push(self, new: list[Result], settled: int, now: int) -> list[tuple[int, tuple[Any, ...]]]:
        self.results += new
        if self.graph.emission == "rstream":
            return [(now, row) for row in self.rows_at(now).values()]
        instants = {r.birth for r in self.results}
        instants |= {r.death + 1 for r in self.results if r.death < FOREVER}
        instants = {t for t in instants if t <= settled}
        if self.settled is not None:
            instants = {t for t in instants if t > self.settled} | {self.settled}
        leaving = []
        for instant in sorted(instants):
            before, after = self.rows, self.rows_at(instant)
            old, new_rows = (before, after) if self.graph.emission == "istream" else (after, before)
            for group, row in new_rows.items():
                if group not in old or canonical(old[group]) != canonical(row):
                    leaving.append((instant, row))
            self.rows = after
        self.settled = settled if self.settled is None else max(self.settled, settled)
        return leaving


# -- graphs ------------------------------------------------------------------------------------


def graph_of(
    group_types: Iterable[pa.DataType],
    aggregates: Iterable[Aggregate],
    emission: Emission,
    select: list[Expression] | None = None,
    by_rows: bool = False,
) -> JoinGraph:
    group_by = tuple(Column(t, "A", f"k{i}") for i, t in enumerate(group_types))
    aggregates = tuple(aggregates)
    if select is None:
        select = [Column(e.type, GROUPED, f"$group{i}") for i, e in enumerate(group_by)]
        select += [Column(a.type, GROUPED, f"$aggregate{i}") for i, a in enumerate(aggregates)]
    window = Rows(3) if by_rows else Range(10)
    return JoinGraph(
        text="",
        streams=(Stream("A", "A", pa.schema([]), window, "ts"),),
        predicates=(),
        select=tuple(SelectItem(f"c{i}", e) for i, e in enumerate(select)),
        emission=emission,
        group_by=group_by,
        aggregates=aggregates,
    )


def aggregate(
    function: AggregateFunction, argument: pa.DataType | None, answer: pa.DataType | None = None
) -> Aggregate:
    if argument is None:
        return Aggregate(pa.int64(), function, None)
    if answer is None:
        answer = argument
        if function == "count" or (function == "sum" and pa.types.is_integer(argument)):
            answer = pa.int64()
        elif function == "avg" and not pa.types.is_decimal(argument):
            answer = pa.float64()
        elif pa.types.is_decimal(argument) and function == "sum":
            answer = pa.decimal128(min(38, argument.precision + 10), argument.scale)
        elif pa.types.is_decimal(argument) and function == "avg":
            answer = pa.decimal128(min(38, argument.precision + 4), min(38, argument.scale + 4))
    return Aggregate(answer, function, Column(argument, "A", f"x{argument}"))


def columns_of(graph: JoinGraph, results: list[Result]) -> dict[str, Any]:
    groups = [pa.array([r.group[i] for r in results], e.type) for i, e in enumerate(graph.group_by)]
    arguments = [
        None if a.argument is None else pa.array([r.arguments[i] for r in results], a.argument.type)
        for i, a in enumerate(graph.aggregates)
    ]
    return {
        "groups": groups,
        "arguments": arguments,
        "births": np.array([r.birth for r in results], np.int64),
        "deaths": np.array([r.death for r in results], np.int64),
    }


def stage(
    aggregation: Aggregation, graph: JoinGraph, results: list[Result], settled: int, now: int
) -> list[tuple[Any, ...]]:
    table = aggregation.stage(**columns_of(graph, results), ids={}, settled=settled, now=now)
    assert table.schema == graph.schema
    table.validate(full=True)
    return list(zip(*(c.to_pylist() for c in table.columns), strict=True))


def assert_same(found: list[tuple[Any, ...]], expected: list[tuple[int, tuple[Any, ...]]]) -> None:
    """The same rows, ordered by instant; inside an instant in any order."""
    assert len(found) == len(expected)
    by_instant: dict[int, list[str]] = {}
    for instant, row in expected:
        by_instant.setdefault(instant, []).append(repr(canonical(row)))
    start = 0
    for instant in sorted(by_instant):
        rows = by_instant[instant]
        piece = [repr(canonical(row)) for row in found[start : start + len(rows)]]
        assert sorted(piece) == sorted(rows)
        start += len(rows)


# -- random histories --------------------------------------------------------------------------

BIG = 2**62
EMISSIONS: tuple[Emission, ...] = ("istream", "dstream", "rstream")
INTEGERS = [0, 1, -1, 7, 2**53 + 1, -BIG, BIG]
DOUBLES = [0.0, -0.0, 0.1, 0.2, -0.3, 1e16, -1e16, 1e-300, 5e-324, 1e308, math.inf, -math.inf, NAN]
DAY = datetime.date(2026, 1, 31)
POOLS: dict[pa.DataType, list[Any]] = {
    pa.int64(): INTEGERS,
    pa.int8(): [-128, 0, 127],
    pa.float64(): DOUBLES,
    pa.decimal128(5, 2): [Decimal("0.05"), Decimal("-999.99"), Decimal("999.99")],
    pa.decimal128(38, 1): [
        Decimal(d).scaleb(-1, WIDE) for d in (0, 3, 10**38 - 1, -(10**38) + 1, 2**63, 2**64 + 1)
    ],
}
ORDERED: dict[pa.DataType, list[Any]] = {
    **POOLS,
    pa.uint64(): [0, 2**63, 2**64 - 1],
    pa.int32(): [-5, 0, 5],
    pa.float32(): [0.5, -0.0, math.inf, NAN],
    pa.bool_(): [True, False],
    pa.string(): ["", "a", "aa", "a\0", "abcdefgh", "abcdefghi", "abcdefghj", "é", "\U0001f600"],
    pa.large_string(): ["x", "y"],
    pa.binary(): [b"", b"\0", b"\xff", b"12345678\xff", b"12345678\0"],
    pa.binary(3): [b"abc", b"abd", b"\xff\0\0"],
    pa.date32(): [DAY, DAY + datetime.timedelta(1)],
    pa.timestamp("us"): [datetime.datetime(2026, 1, d) for d in (1, 2, 3)],
    pa.decimal256(50, 0): [Decimal(0), Decimal(10**49), Decimal(-(10**49)), Decimal(10**49 + 1)],
}
GROUPS: dict[pa.DataType, list[Any]] = {
    pa.int64(): [1, 2, None],
    pa.string(): ["a", "", None],
    pa.float64(): [0.0, NAN, None],
    pa.decimal128(38, 0): [Decimal(1), Decimal(10**37)],
}


@dataclass(frozen=True)
class Push:
    results: list[Result]
    settled: int
    now: int
    failing: list[Result] | None
    """Results of a push that is rolled back first."""


@dataclass(frozen=True)
class History:
    graph: JoinGraph
    pushes: list[Push]


@st.composite
def histories(draw: st.DrawFn) -> History:
    group_types = draw(st.lists(st.sampled_from(list(GROUPS)), max_size=2))
    aggregates: list[Aggregate] = []
    for _ in range(draw(st.integers(1, 4))):
        function: AggregateFunction = draw(st.sampled_from(("count", "sum", "avg", "min", "max")))
        pool = POOLS if function in ("sum", "avg") else ORDERED
        kinds: list[pa.DataType | None] = list(pool)
        if function == "count":
            kinds.append(None)
        aggregates.append(aggregate(function, draw(st.sampled_from(kinds))))
    graph = graph_of(group_types, aggregates, draw(st.sampled_from(EMISSIONS)))
    arguments: list[st.SearchStrategy[Any]] = []
    for a in aggregates:
        values: list[Any] = [None] if a.argument is None else [*ORDERED[a.argument.type], None]
        arguments.append(st.sampled_from(values))
    # One column is one value, whatever aggregates look at it.
    results = st.lists(
        st.tuples(
            st.tuples(*(st.sampled_from(GROUPS[t]) for t in group_types)),
            st.tuples(*arguments),
            st.integers(0, 8),
            st.one_of(st.integers(0, 12), st.just(FOREVER)),
        ),
        max_size=5,
    )
    lag = draw(st.integers(0, 6))
    now = settled = 0
    pushes = []
    for _ in range(draw(st.integers(1, 6))):
        now += draw(st.integers(0, 6))
        settled = max(settled, now - lag)
        failing = draw(st.one_of(st.none(), results))
        pushes.append(
            Push(
                made(graph, draw(results), now),
                settled,
                now,
                None if failing is None else made(graph, failing, now),
            )
        )
    return History(graph, pushes)


def made(graph: JoinGraph, drawn: list[Any], now: int) -> list[Result]:
    """Results born at ``now`` or up to eight instants before."""
    results = []
    for group, arguments, age, length in drawn:
        birth = now - age
        shared: dict[Any, Any] = {}
        values = tuple(
            shared.setdefault(a.argument, value)
            for a, value in zip(graph.aggregates, arguments, strict=True)
        )
        death = FOREVER if length == FOREVER else birth + length
        results.append(Result(group, values, birth, death))
    return results


@BOUNDED
@given(histories(), st.integers(0, 6), st.booleans())
def test_agrees_with_the_twin(history: History, restart: int, tidy: bool) -> None:
    with tidying(tidy):
        check(history, restart)


@contextmanager
def tidying(at_once: bool) -> Iterator[None]:
    """Whether garbage is packed and swept as soon as there is any."""
    if not at_once:
        yield
        return
    with (
        patch.object(extremum_module, "_FEWEST_NODES_TO_PACK", 0),
        patch.object(aggregation_module, "_FEWEST_GROUPS_TO_SWEEP", 0),
        patch.object(agenda_module, "_FEWEST_ENTRIES", 1),
    ):
        yield


def check(history: History, restart: int) -> None:
    graph = history.graph
    twin = Twin(graph, lambda row: row)
    aggregation = Aggregation(graph)
    for number, push in enumerate(history.pushes):
        if number == restart and aggregation.last_settled is not None:
            aggregation = reloaded(aggregation, graph, twin)
        if push.failing is not None:
            try:
                stage(aggregation, graph, push.failing, push.settled, push.now)
            except InputError:
                pass
            else:
                aggregation.rollback()
        held = len(aggregation)
        try:
            expected = twin.push(push.results, push.settled, push.now)
        except OverflowedError:
            with pytest.raises(InputError, match="overflows"):
                stage(aggregation, graph, push.results, push.settled, push.now)
            assert len(aggregation) == held
            continue
        assert_same(stage(aggregation, graph, push.results, push.settled, push.now), expected)
        assert len(aggregation) == held
        aggregation.commit()
        line = push.now if graph.emission == "rstream" else push.settled
        assert aggregation.last_settled == line
        assert len(aggregation) == sum(r.death >= line for r in twin.results)


def reloaded(aggregation: Aggregation, graph: JoinGraph, twin: Twin) -> Aggregation:
    """A new aggregation with the results that are alive, in another order."""
    settled = aggregation.last_settled
    assert settled is not None
    living = [r for r in reversed(twin.results) if r.death >= settled - 1]
    restored = Aggregation(graph)
    restored.load(**columns_of(graph, living), ids={}, settled=settled)
    assert restored.last_settled == settled
    assert len(restored) == len(aggregation)
    return restored


# -- what the query shows ----------------------------------------------------------------------


def test_a_change_that_is_not_shown_is_none() -> None:
    count = Column(pa.int64(), GROUPED, "$aggregate0")
    many = Comparison(pa.bool_(), ">", count, Constant(pa.int64(), 1))
    graph = graph_of([pa.int64()], [aggregate("count", None)], "istream", [many])
    aggregation = Aggregation(graph)
    results = [Result((1,), (None,), birth, 10 + birth) for birth in range(4)]
    assert stage(aggregation, graph, results, 20, 20) == [(False,), (True,), (False,)]


def test_select_items_are_computed_from_groups_and_aggregates() -> None:
    group = Column(pa.int64(), GROUPED, "$group0")
    count = Column(pa.int64(), GROUPED, "$aggregate0")
    total = Arithmetic(pa.int64(), "+", group, count)
    graph = graph_of([pa.int64()], [aggregate("count", None)], "dstream", [total])
    aggregation = Aggregation(graph)
    results = [Result((40,), (None,), 0, 5), Result((40,), (None,), 1, 5)]
    assert stage(aggregation, graph, results, 5, 5) == [(41,)]
    aggregation.commit()
    assert stage(aggregation, graph, [], 6, 6) == [(42,)]
    aggregation.commit()
    assert len(aggregation) == 0


def test_grouping_without_aggregates() -> None:
    graph = graph_of([pa.string()], [], "istream")
    aggregation = Aggregation(graph)
    results = [Result(("a",), (), 0, 1), Result(("a",), (), 3, 4), Result((None,), (), 0, 9)]
    rows = stage(aggregation, graph, results, 9, 9)
    assert sorted(map(str, rows)) == ["('a',)", "('a',)", "(None,)"]


def test_overflow_names_the_aggregate_and_changes_nothing() -> None:
    graph = graph_of([], [aggregate("count", None), aggregate("sum", pa.int64())], "istream")
    aggregation = Aggregation(graph)
    assert stage(aggregation, graph, [Result((), (None, 2**62), 0, 9)], 0, 0) == [(1, 2**62)]
    aggregation.commit()
    with pytest.raises(InputError, match=r"SUM\(A.xint64\) overflows"):
        stage(aggregation, graph, [Result((), (None, 2**62), 1, 9)], 1, 1)
    assert (len(aggregation), aggregation.last_settled) == (1, 0)
    assert stage(aggregation, graph, [Result((), (None, -1), 1, 9)], 1, 1) == [(2, 2**62 - 1)]


def test_sums_of_doubles_leave_no_residue() -> None:
    graph = graph_of([], [aggregate("sum", pa.float64())], "istream")
    aggregation = Aggregation(graph)
    values = [0.1, 1e300, -1e300, 1e-300, math.inf, NAN]
    results = [Result((), (v,), i, 10) for i, v in enumerate(values)]
    results.append(Result((), (0.1,), 0, 20))
    rows = stage(aggregation, graph, results, 11, 11)
    assert canonical(rows[-2][0]) == "NaN"
    assert rows[-1] == (0.1,)


def test_what_comes_late_counts_at_the_last_settled_instant() -> None:
    graph = graph_of([], [aggregate("count", None)], "istream")
    aggregation = Aggregation(graph)
    assert stage(aggregation, graph, [Result((), (None,), 0, 50)], 10, 10) == [(1,)]
    aggregation.commit()
    late = [Result((), (None,), 2, 10), Result((), (None,), 2, 9)]
    assert stage(aggregation, graph, late, 12, 12) == [(2,), (1,)]


def test_instants_at_the_ends_of_time() -> None:
    graph = graph_of([], [aggregate("count", None)], "istream")
    aggregation = Aggregation(graph)
    results = [Result((), (None,), BEGINNING, FOREVER), Result((), (None,), 5, FOREVER - 1)]
    assert stage(aggregation, graph, results, -(2**63), -(2**63)) == []
    aggregation.commit()
    assert aggregation.last_settled is None
    assert stage(aggregation, graph, [], 5, 5) == [(1,), (2,)]
    aggregation.commit()
    assert stage(aggregation, graph, [], FOREVER, FOREVER) == [(1,)]


# -- many groups, many results -----------------------------------------------------------------


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.float64()])
@pytest.mark.parametrize("lag", [0, 700])
def test_long_runs_sweep_and_pack(kind: pa.DataType, lag: int) -> None:
    """Values rise and fall, groups come and go; memory does not grow, and answers stay right."""
    functions: list[AggregateFunction] = ["min", "max", "count"]
    graph = graph_of([pa.string()], [aggregate(f, kind) for f in functions], "rstream")
    istream = replace(graph, emission="istream")
    aggregation, other = Aggregation(graph), Aggregation(istream)
    generator = np.random.default_rng(1)
    living: list[Result] = []
    sizes = []
    emitted: dict[Any, tuple[Any, ...]] = {}
    for push in range(40):
        now = push * 100
        new = []
        for _ in range(500):
            birth = now - int(generator.integers(100))
            height = int(1e6 * math.sin(birth / 300)) + int(generator.integers(50))
            value: Any = float(height) if kind == pa.float64() else height
            if kind == pa.string():
                value = f"long enough {height + 2 * 10**6}"
            group = f"group {birth // 5 if generator.integers(2) else 0}"
            death = birth + int(generator.integers(900))
            new.append(Result((group,), (value,) * 3, birth, death))
        living = [r for r in (*living, *new) if r.death >= now - lag]

        found = stage(aggregation, graph, new, now - lag, now)
        assert sorted(found) == extremes(living, now)
        aggregation.commit()

        emitted |= {row[0]: row for row in stage(other, istream, new, now - lag, now)}
        other.commit()
        for row in extremes(living, now - lag):
            assert emitted[row[0]] == row
        sizes.append(aggregation.nbytes + other.nbytes)
    assert max(sizes[20:]) <= 2 * max(sizes[10:20])


def extremes(results: list[Result], now: int) -> list[tuple[Any, ...]]:
    groups: dict[Any, list[Any]] = {}
    for r in results:
        if r.birth <= now <= r.death:
            groups.setdefault(r.group[0], []).append(r.arguments[0])
    return sorted((group, min(v), max(v), len(v)) for group, v in groups.items())


def test_a_push_costs_what_changes_and_not_what_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: lines of kernels that run, as plain Python, and bytes asked for."""
    functions: list[AggregateFunction] = ["count", "sum", "min", "max"]
    graph = graph_of([pa.int64()], [aggregate(f, pa.int64()) for f in functions], "istream")

    def push(aggregation: Aggregation, numbers: Any, births: Any, deaths: Any, now: int) -> None:
        values = pa.array(numbers)
        aggregation.stage([pa.array(numbers % 10)], [values] * 4, births, deaths, {}, now, now)
        aggregation.commit()

    def filled(held: int) -> Aggregation:
        aggregation = Aggregation(graph)
        numbers = np.arange(held, dtype=np.int64)
        # MIN of rising values with rising deaths: nothing is dominated.
        # Not at zero: between -1 and 0 all digits of an instant change, and an agenda is made anew.
        push(aggregation, numbers, np.ones(held, np.int64), 10**9 + numbers, 1)
        return aggregation

    def work(held: int) -> tuple[int, int]:
        """Lines of kernels in ten pushes of one value, and the least bytes that one asked for."""
        aggregation, lines, asked = filled(held), 0, []

        def count(frame: Any, event: str, argument: Any) -> Any:
            nonlocal lines
            if "kernels" not in frame.f_code.co_filename:
                return None
            lines += event == "line"
            return count

        before = sys.gettrace()
        for i in range(10):
            tracemalloc.start()
            sys.settrace(count)
            try:
                one = np.array([held + i])
                push(aggregation, one, np.array([i + 2]), np.array([2 * 10**9 + i]), i + 2)
            finally:
                sys.settrace(before)
                asked.append(tracemalloc.get_traced_memory()[1])
                tracemalloc.stop()
        return lines, min(asked)

    for module in pkgutil.iter_modules(penstock.kernels.__path__, "penstock.kernels."):
        for name, value in list(vars(importlib.import_module(module.name)).items()):
            if isinstance(value, Dispatcher):
                monkeypatch.setattr(f"{module.name}.{name}", value.py_func)
    with np.errstate(over="ignore"):  # Hashes overflow, which only Python scalars mention.
        (few, little), (many, much) = work(200), work(20_000)
    assert 0 < many < 3 * few
    assert 0 < much < 3 * little


# -- the arrival line --------------------------------------------------------------------------


@st.composite
def arrivals(draw: st.DrawFn) -> tuple[JoinGraph, list[tuple[list[Any], bool]], int]:
    names: tuple[AggregateFunction, ...] = ("count", "sum", "avg", "min", "max")
    functions = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4))
    kind = draw(st.sampled_from((pa.int64(), pa.float64(), pa.string())))
    pool: list[Any] = [1, 2, 3] if kind == pa.int64() else [0.1, 0.2, 1e16, math.inf]
    if kind == pa.string():
        pool = ["a", "abcdefghij", "abcdefghik"]
        functions = [f if f not in ("sum", "avg") else "max" for f in functions]
    emission: Emission = draw(st.sampled_from(EMISSIONS))
    aggregates = [aggregate(f, kind) for f in functions]
    graph = graph_of([pa.string()], aggregates, emission, by_rows=True)
    row = st.tuples(st.sampled_from(["g", "h", None]), st.sampled_from([*pool, None]))
    pushes = draw(
        st.lists(st.tuples(st.lists(row, max_size=5), st.booleans()), min_size=1, max_size=8)
    )
    return graph, pushes, draw(st.integers(0, 8))


@BOUNDED
@given(arrivals(), st.integers(1, 4), st.booleans())
def test_arrival_line(
    drawn: tuple[JoinGraph, list[tuple[list[Any], bool]], int], window: int, tidy: bool
) -> None:
    """A stream of its own, ``ROWS window``: deaths are known only when the killer comes."""
    with tidying(tidy):
        check_arrivals(*drawn, window)


def check_arrivals(
    graph: JoinGraph, pushes: list[tuple[list[Any], bool]], restart: int, window: int
) -> None:
    twin = Twin(graph, lambda row: row)
    aggregation = Aggregation(graph)
    deaths: list[int] = []
    shift = 0
    for number, (rows, failing) in enumerate(pushes):
        if number == restart and deaths:
            settled = aggregation.last_settled
            assert settled is not None
            living = [i for i, r in enumerate(twin.results) if r.death >= settled]
            restored = Aggregation(graph)
            restored.load(
                **columns_of(graph, [twin.results[i] for i in living]),
                ids={"A": np.array(living, np.int64) + shift},
                settled=settled,
            )
            assert len(restored) == len(aggregation)
            aggregation = restored
        if failing:
            before = list(deaths)
            deaths += [FOREVER, FOREVER]
            for i in range(len(before)):
                deaths[i] = min(deaths[i], len(before))
            new = [Result(("g",), (None,) * len(graph.aggregates), len(before) + 1, FOREVER)] * 2
            arrive(aggregation, graph, new, deaths, shift)
            aggregation.rollback()
            deaths = before
        first = len(deaths)
        for place in range(first, first + len(rows)):
            deaths.append(FOREVER)
            if place >= window:
                deaths[place - window] = place
        twin.results = [replace(r, death=deaths[i]) for i, r in enumerate(twin.results)]
        new = [
            Result((g,), (v,) * len(graph.aggregates), first + i + 1, deaths[first + i])
            for i, (g, v) in enumerate(rows)
        ]
        found = arrive(aggregation, graph, new, deaths, shift)
        assert_same(found, twin.push(new, len(deaths), len(deaths)))
        aggregation.commit()
        assert len(aggregation) == sum(d >= len(deaths) for d in deaths)
        if number % 2:
            mapping = np.arange(len(deaths), dtype=np.int64) + shift + 7
            aggregation.renumber("A", mapping, shift)
            shift += 7


def arrive(
    aggregation: Aggregation, graph: JoinGraph, new: list[Result], deaths: list[int], shift: int
) -> list[tuple[Any, ...]]:
    """Leaf row ``shift + i`` has place ``i + 1`` and dies at ``deaths[i]``."""

    def refresh(ids: dict[str, Int64s], present: Int64s) -> None:
        known = np.array(deaths, np.int64)
        np.minimum(present, known[ids["A"] - shift], out=present)

    aggregation.shorten(refresh)
    first = len(deaths) - len(new)
    table = aggregation.stage(
        **columns_of(graph, new),
        ids={"A": np.arange(first, len(deaths), dtype=np.int64) + shift},
        settled=len(deaths),
        now=len(deaths),
    )
    return list(zip(*(c.to_pylist() for c in table.columns), strict=True))


# -- kernels and their twins -------------------------------------------------------------------


@BOUNDED
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=8), st.integers(0, 8))
def test_sums_of_doubles_are_exact(values: list[float], kept: int) -> None:
    """Add all, take some back, round once."""
    limbs = np.zeros(35, np.uint64)
    bits = np.array(values, np.float64).view(np.int64)
    for each in bits:
        kernels.add_double(limbs, 0, each, 1)
    for each in bits[kept:]:
        kernels.add_double(limbs, 0, each, -1)
    exact = sum(map(Fraction, values[:kept]), Fraction(0))
    assert kernels.to_double(limbs, 0, np.zeros(35, np.uint64)) == rounded(exact)


@pytest.mark.parametrize(
    "values",
    [
        [1.0, 2.0**-53],
        [1.0, 2.0**-53, 2.0**-1074],
        [1.0 + 2.0**-52, 2.0**-53],
        [-1.0, -(2.0**-53), -(2.0**-1074)],
        [2.0**1023, 2.0**1023],
        [-(2.0**1023), -(2.0**1023)],
        [5e-324, -1e-323],
        [2.0**53 - 1, 0.5],
        [1.7976931348623157e308, 2.0**969],
        [1.7976931348623157e308, 2.0**970],
    ],
)
def test_sums_are_rounded_half_to_even(values: list[float]) -> None:
    graph = graph_of([], [aggregate("sum", pa.float64())], "rstream")
    aggregation = Aggregation(graph)
    ((found,),) = stage(aggregation, graph, [Result((), (v,), 0, 9) for v in values], 0, 0)
    assert found == rounded(sum(map(Fraction, values), Fraction(0)))


@pytest.mark.parametrize("kind", [*ORDERED, pa.float16(), pa.date64(), pa.time64("us")], ids=str)
def test_values_come_back_from_their_keys(kind: pa.DataType) -> None:
    pool = ORDERED.get(kind, [0, 1, 2])
    if kind == pa.date64():
        pool = [DAY]
    elif kind == pa.float16():
        pool = [np.float16(-1.5), np.float16(2)]
    elif kind == pa.float64():
        pool = [*pool, -16665.0, -5e-324]
    array = pa.array([None, *pool, None], kind).slice(1)
    valid = np.array(array.is_valid().to_numpy(zero_copy_only=False))
    encoder = key_type_of(kind)
    if encoder.ordered:
        found = encoder.decode(encoder.encode(array)[0], valid)
    else:
        assert isinstance(encoder, BytesKey)
        data, offsets = encoder.ordered_bytes(array)
        values = [data[a:b].tobytes() for a, b in pairwise(offsets.tolist())]
        assert [v for v, ok in zip(values, valid, strict=True) if ok] == sorted(
            v for v, ok in zip(values, valid, strict=True) if ok
        ) or pool != sorted(pool)
        found = encoder.from_bytes(data[offsets[0] : offsets[-1]], offsets - offsets[0], valid)
    assert found.type == kind
    assert [canonical(v) for v in found.to_pylist()] == [canonical(v) for v in array.to_pylist()]
