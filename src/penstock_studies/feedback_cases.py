"""Joins in which demand feedback has something to say: what to run, and what each is for.

Columns are uniform integers, and every stream has one tuple per millisecond unless it is said
otherwise, so a window in milliseconds is also one in tuples.

The *cliques* are the defaults of the JIT paper's section VI. In the *triangle* one A in fifty has
a C, while every B has hundreds: a guard that makes A wait for C saves nearly all, and one that
makes B wait walks through hundreds of rows for every C. The *bushy* tree has a rare side and a
fertile one, and is written both ways; in *turning* they change places half-way. In *perfect* no A
ever has a C, and in *pointless* every A has one. The partner of *dying* has a window of a twelfth
of the others', and another of its key comes twice in the life of a row; in *passing* keys do not
come back. D of *silent* is so after two windows of fifty, and counts as idle after one. In
*jointly* (Type II of the paper) A and C have partners in D, but seldom the same
one: with few keys and a D that is rare, those of A and C come again and again in *jointly, again*;
many composites wait in *jointly, many*, and few, beside a D that comes often, in *jointly, few*.
The *band* is a theta predicate that few rows meet; in *between* few meet both of two predicates,
and most meet either. In *greatest* the answer is a MAX, and rows are told apart by few keys; in
*greatest, all keys* by so many that hardly two are alike. In *bounded* HAVING has a bound that one
A in fifty reaches, in *bounded, in vain* one that all do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import penstock
from penstock.cli.bench.workloads import WORKLOADS
from penstock.cli.bench.workloads import Workload as BenchWorkload
from penstock_studies.jit.clique import in_batches
from penstock_studies.jit.setting import BUSHY, LEFT_DEEP, Setting

Int64s = NDArray[np.int64]
Values = Callable[[np.random.Generator, Int64s], Int64s]
"""Makes a column of the milliseconds of its rows."""
Pushes = list[dict[str, pa.Table]]

_PUSH = 1_000
"""Milliseconds in a push, about three thousand rows."""


@dataclass(frozen=True)
class FeedbackCase:
    """A query with a plan, and its streams cut into pushes."""

    name: str
    plan: str
    made_of: Callable[[int], tuple[penstock.JoinGraph, Pushes]]
    """The query and the pushes, by seed."""
    options: Mapping[str, Any] | None = None
    """Options of the engine besides the plan and feedback."""
    others: tuple[str, ...] = ()
    """Other plans to compare with."""
    literal: bool = False
    """Whether the published algorithm is compared as well."""


def below(values: int, start: int = 0) -> Values:
    """Uniform over so many values from ``start`` on."""
    return lambda random, clock: random.integers(start, start + values, len(clock))


def first_then(first: Values, then: Values, turn: int) -> Values:
    """``first`` until the millisecond ``turn``, ``then`` afterwards."""
    return lambda random, clock: np.where(clock < turn, first(random, clock), then(random, clock))


def made(
    where: str,
    columns: Mapping[str, Mapping[str, Values]],
    windows: Mapping[str, int],
    length: int,
    every: Mapping[str, int] | None = None,
    extreme: str = "",
    bound: int | None = None,
    silent: Mapping[str, int] | None = None,
) -> Callable[[int], tuple[penstock.JoinGraph, Pushes]]:
    """Streams with ``columns`` and ``windows`` for ``length`` milliseconds, a row every so many,
    and none any more from the milliseconds on from which they are ``silent``.
    The answer is all combinations, or the greatest value of the column ``extreme``,
    as long as it is the ``bound`` or more."""

    def make(seed: int) -> tuple[penstock.JoinGraph, Pushes]:
        schemas = {
            name: pa.schema([(c, pa.int64()) for c in ("id", "ts", *own)])
            for name, own in columns.items()
        }
        selected = ", ".join(f"{name}.id AS {name.lower()}" for name in columns)
        selected = f"MAX({extreme}) AS greatest" if extreme else selected
        sources = ", ".join(f"{name} [RANGE {windows[name]} MILLISECONDS]" for name in columns)
        text = f"SELECT {selected} FROM {sources} WHERE {where}"
        text += "" if bound is None else f" HAVING MAX({extreme}) >= {bound}"
        query = penstock.parse(text, schemas=schemas)
        tables = {}
        for number, (name, own) in enumerate(columns.items()):
            random = np.random.default_rng([seed, number])
            until = (silent or {}).get(name, length)
            clock = np.arange(0, until, (every or {}).get(name, 1), dtype=np.int64)
            values = [value(random, clock) for value in own.values()]
            tables[name] = pa.table([clock, clock, *values], schema=schemas[name])
        return query, list(_in_pushes(tables, length))

    return make


def _in_pushes(tables: Mapping[str, pa.Table], length: int) -> Iterator[dict[str, pa.Table]]:
    times = {name: table["ts"].to_numpy() for name, table in tables.items()}
    for start in range(0, length, _PUSH):
        push = {}
        for name, table in tables.items():
            first, stop = np.searchsorted(times[name], [start, start + _PUSH])
            if stop > first:
                push[name] = table.slice(first, stop - first)
        yield push


def _clique(setting: Setting, hours: float) -> Callable[[int], tuple[penstock.JoinGraph, Pushes]]:
    def make(seed: int) -> tuple[penstock.JoinGraph, Pushes]:
        return setting.query, list(in_batches(setting.query, setting.tuples(hours, seed), 10_000))

    return make


def _bench(workload: BenchWorkload) -> Callable[[int], tuple[penstock.JoinGraph, Pushes]]:
    def make(seed: int) -> tuple[penstock.JoinGraph, Pushes]:
        del seed
        tables = {name: pa.table(batch) for name, batch in workload.tables().items()}
        schemas = {name: table.schema for name, table in tables.items()}
        size = 10_000 // len(tables)
        pushes = [
            {name: table.slice(first, size) for name, table in tables.items()}
            for first in range(0, workload.rows, size)
        ]
        return penstock.parse(workload.query, schemas=schemas), pushes

    return make


def _same(streams: str, window: int) -> dict[str, int]:
    return dict.fromkeys(streams, window)


_KEYS_THAT_NEVER_MEET = 1_000_000
_TRIANGLE = made(
    "A.x = B.x AND A.y = C.y AND B.z = C.z",
    {
        "A": {"x": below(400), "y": below(_KEYS_THAT_NEVER_MEET)},
        "B": {"x": below(400), "z": below(20)},
        "C": {"y": below(_KEYS_THAT_NEVER_MEET), "z": below(20)},
    },
    _same("ABC", 10_000),
    60_000,
)
_CHAIN_OF_FOUR = "A.x = B.x AND B.y = C.y AND C.z = D.z"
_BUSHY = made(
    _CHAIN_OF_FOUR,
    {
        "A": {"x": below(400)},
        "B": {"x": below(400), "y": below(_KEYS_THAT_NEVER_MEET)},
        "C": {"y": below(_KEYS_THAT_NEVER_MEET), "z": below(20_000)},
        "D": {"z": below(20_000)},
    },
    _same("ABCD", 10_000),
    60_000,
)
_TURN = 60_000
_TURNING = made(
    _CHAIN_OF_FOUR,
    {
        "A": {"x": first_then(below(400), below(20_000), _TURN)},
        "B": {"x": first_then(below(400), below(20_000), _TURN), "y": below(_KEYS_THAT_NEVER_MEET)},
        "C": {"y": below(_KEYS_THAT_NEVER_MEET), "z": first_then(below(20_000), below(400), _TURN)},
        "D": {"z": first_then(below(20_000), below(400), _TURN)},
    },
    _same("ABCD", 10_000),
    2 * _TURN,
)


def _chain(
    theirs: Values, window: int = 10_000, length: int = 60_000, partner: int | None = None
) -> Callable[[int], tuple[penstock.JoinGraph, Pushes]]:
    """A chain of three whose C has ``theirs`` for its values, and a window of ``partner``."""
    return made(
        "A.x = B.x AND A.y = C.y",
        {
            "A": {"x": below(400), "y": below(2_000)},
            "B": {"x": below(400)},
            "C": {"y": theirs},
        },
        {"A": window, "B": window, "C": partner or window},
        length,
    )


_SILENT = made(
    "A.x = B.x AND B.y = C.y AND A.y = D.y",
    {
        "A": {"x": below(400), "y": below(2_000)},
        "B": {"x": below(400), "y": below(2_000)},
        "C": {"y": below(2_000)},
        "D": {"y": below(2_000)},
    },
    _same("ABCD", 2_000),
    100_000,
    silent={"D": 4_000},
)
_START, _WIDTH, _VALUES = 7_919, 100, 1_000_000
_BETWEEN = made(
    "A.x = B.x AND A.y BETWEEN C.y AND C.z",
    {
        "A": {"x": below(400), "y": below(_VALUES)},
        "B": {"x": below(400)},
        "C": {
            "y": lambda random, clock: clock * _START % _VALUES,
            "z": lambda random, clock: clock * _START % _VALUES + _WIDTH,
        },
    },
    _same("ABC", 10_000),
    30_000,
    {"C": 1_000},
)


def _extreme(
    keys: int, bound: int | None = None
) -> Callable[[int], tuple[penstock.JoinGraph, Pushes]]:
    """The greatest value of a chain of three, joined by so many keys, from a ``bound`` on."""
    return made(
        "A.x = B.x AND A.y = C.y",
        {
            "A": {"x": below(keys), "y": below(keys), "v": below(_KEYS_THAT_NEVER_MEET)},
            "B": {"x": below(keys)},
            "C": {"y": below(keys)},
        },
        _same("ABC", 10_000),
        60_000,
        extreme="A.v",
        bound=bound,
    )


def _jointly(
    name: str,
    keys: int,
    partners: int,
    window: int,
    length: int,
    every: int,
    of_d: int,
    literal: bool = False,
) -> FeedbackCase:
    """A and C have partners in D by columns of their own; a row ``every`` so many milliseconds,
    one ``of_d``."""
    streams = made(
        "A.x = B.x AND B.y = C.y AND A.p = D.p AND C.q = D.q",
        {
            "A": {"x": below(keys), "p": below(partners)},
            "B": {"x": below(keys), "y": below(keys)},
            "C": {"y": below(keys), "q": below(partners)},
            "D": {"p": below(partners), "q": below(partners)},
        },
        _same("ABCD", window),
        length,
        {**dict.fromkeys("ABC", every), "D": of_d},
    )
    others = ("((A B) C D)", "(A B C D)", "auto")
    return FeedbackCase(name, "(((A B) C) D)", streams, None, others, literal)


CASES = {
    case.name: case
    for case in (
        FeedbackCase("clique, left-deep", LEFT_DEEP.plan, _clique(LEFT_DEEP, 2)),
        FeedbackCase("clique, bushy", BUSHY.plan, _clique(BUSHY, 2)),
        FeedbackCase("triangle", "((A B) C)", _TRIANGLE),
        FeedbackCase("bushy, fertile first", "((A B)(C D))", _BUSHY),
        FeedbackCase("bushy, fertile last", "((C D)(A B))", _BUSHY),
        FeedbackCase("turning", "((A B)(C D))", _TURNING),
        FeedbackCase("perfect", "((A B) C)", _chain(below(2_000, _KEYS_THAT_NEVER_MEET))),
        FeedbackCase("pointless", "((A B) C)", _chain(below(2_000))),
        FeedbackCase(
            "dying",
            "((A B) C)",
            made(
                "A.x = B.x AND A.y = C.y",
                {
                    "A": {"x": below(20), "y": below(300)},
                    "B": {"x": below(20)},
                    "C": {"y": below(300)},
                },
                {"A": 60_000, "B": 60_000, "C": 5_000},
                300_000,
                {"A": 100, "B": 100, "C": 100},
            ),
        ),
        FeedbackCase(
            "passing",
            "((A B) C)",
            made(
                "A.x = B.x AND A.y = C.y",
                {
                    "A": {"x": below(400), "y": lambda random, clock: clock // 100},
                    "B": {"x": below(400)},
                    "C": {"y": lambda random, clock: clock // 100},
                },
                {"A": 12_000, "B": 12_000, "C": 1_000},
                60_000,
                {"C": 100},
            ),
        ),
        FeedbackCase("silent", "(((A B) C) D)", _SILENT, {"idle": 2_000}),
        _jointly("jointly", 200, 400, 2_000, 8_000, 4, 4, literal=True),
        _jointly("jointly, again", 40, 20, 1_000, 4_000, 4, 10, literal=True),
        _jointly("jointly, many", 800, 1_000, 8_000, 24_000, 1, 1),
        _jointly("jointly, few", 4_000, 500, 32_000, 96_000, 8, 1),
        FeedbackCase(
            "band",
            "((A B) C)",
            made(
                "A.x = B.x AND A.y > C.y",
                {
                    "A": {"x": below(400), "y": below(_KEYS_THAT_NEVER_MEET)},
                    "B": {"x": below(400)},
                    "C": {"y": below(1_000, _KEYS_THAT_NEVER_MEET - 1_000)},
                },
                _same("ABC", 10_000),
                30_000,
                {"C": 1_000},
            ),
        ),
        FeedbackCase("between", "((A B) C)", _BETWEEN),
        FeedbackCase("greatest", "((A B) C)", _extreme(1_000)),
        FeedbackCase("greatest, all keys", "((A B) C)", _extreme(20_000)),
        FeedbackCase(
            "bounded",
            "((A B) C)",
            _extreme(5_000, _KEYS_THAT_NEVER_MEET - _KEYS_THAT_NEVER_MEET // 50),
        ),
        FeedbackCase("bounded, in vain", "((A B) C)", _extreme(20_000, 0)),
        FeedbackCase(
            "nested loops",
            "((A B) C)",
            made(
                "A.x = B.x AND A.y = C.y",
                {
                    "A": {"x": below(50), "y": below(100_000)},
                    "B": {"x": below(50)},
                    "C": {"y": below(100_000)},
                },
                _same("ABC", 1_000),
                6_000,
            ),
            {"join": "nested-loops"},
        ),
        FeedbackCase("W1", "((A B) C)", _bench(replace(WORKLOADS["W1"], rows=400_000))),
        FeedbackCase("W2s", "((A B)(C D))", _bench(WORKLOADS["W2s"])),
        FeedbackCase("W2j", "((A B)(C D))", _bench(WORKLOADS["W2j"])),
        FeedbackCase("W2u", "((A B)(C D))", _bench(replace(WORKLOADS["W2u"], rows=100_000))),
    )
}
"""By name."""
