"""The workloads: what makes a controller go wrong, one at a time.

Each has the expensive join first in ``FROM``, where it has one: what an engine begins with when it
knows nothing. Streams bear letters in the order of ``FROM``.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock_studies.auto.linked import Pair, linked
from penstock_studies.auto.workload import Chance, Columns, Draw, Source, Workload, uniform


def _names(count: int) -> tuple[str, ...]:
    return tuple(string.ascii_uppercase[:count])


def _ids(*streams: str) -> str:
    return ", ".join(f"{each}.id AS {each.lower()}" for each in streams)


ID = 1 << 30
"""Values of a column that no query joins on."""


def chain() -> Workload:
    """Three streams at rest: what looking costs when there is little to find."""
    return linked(
        "chain",
        "three streams, one partner each",
        dict.fromkeys("ABC", 20_000.0),
        {("A", "B"): 1.0, ("B", "C"): 1.0},
    )


def chain_of_six() -> Workload:
    """Partners fall off towards the end of the chain."""
    pairs = dict(zip(pairwise(_names(6)), (4.0, 2.0, 1.0, 0.5, 0.2), strict=True))
    return linked(
        "chain of 6", "4 to 0.2 partners", dict.fromkeys(_names(6), 4_000.0), pairs, slices=5
    )


def triangle() -> Workload:
    """A cycle whose fan-out comes first."""
    return linked(
        "triangle",
        "cycle, fan-out first",
        dict.fromkeys("ABC", 6_000.0),
        {("A", "B"): 40.0, ("B", "C"): 1.0, ("A", "C"): 0.5},
    )


def four_cycle() -> Workload:
    """A longer cycle whose fan-out comes first."""
    return linked(
        "four-cycle",
        "cycle, fan-out first",
        dict.fromkeys("ABCD", 4_000.0),
        {("A", "B"): 100.0, ("B", "C"): 40.0, ("C", "D"): 0.5, ("A", "D"): 0.5},
    )


def rates() -> Workload:
    """One stream is a thousand times slower than the others."""
    return linked(
        "rates 1000:1",
        "A and C fast, B slow",
        {"A": 30_000.0, "B": 30.0, "C": 30_000.0},
        {("A", "C"): 8.0, ("A", "B"): 0.05, ("B", "C"): 5.0},
    )


def star_of_eight() -> Workload:
    """A centre with seven others, of which the first have many partners."""
    names = _names(8)
    partners = (6.0, 3.0, 2.0, 1.0, 0.8, 0.5, 0.05)
    pairs: dict[Pair, float] = {(names[0], n): p for n, p in zip(names[1:], partners, strict=True)}
    return linked("star of 8", "6 to 0.05 partners", dict.fromkeys(names, 3_000.0), pairs, slices=5)


def tree_of_twenty() -> Workload:
    """Twenty streams, each linked to one before it."""
    names = _names(20)
    pairs = {(names[(i - 1) // 2], names[i]): (3.0, 1.0, 0.3)[i % 3] for i in range(1, 20)}
    return linked(
        "tree of 20", "3, 1 or 0.3 partners", dict.fromkeys(names, 1_000.0), pairs, slices=4
    )


def clique_of_sixteen() -> Workload:
    """Sixteen streams, each linked to every other; partners by the distance of two streams."""
    names = _names(16)
    pairs: dict[Pair, float] = {
        (names[i], names[j]): 30.0 / (1 + (i * j) % 5) for j in range(16) for i in range(j)
    }
    return linked("clique of 16", "6 to 30 partners", dict.fromkeys(names, 500.0), pairs, slices=4)


def chain_of_twelve() -> Workload:
    """Twelve streams in a row, the fan-outs first."""
    names = _names(12)
    partners = (3.0, 2.0, 2.0, 1.0, 1.0, 1.0, 0.7, 0.7, 0.5, 0.5, 0.2)
    pairs = dict(zip(pairwise(names), partners, strict=True))
    return linked(
        "chain of 12", "3 to 0.2 partners", dict.fromkeys(names, 2_000.0), pairs, slices=4
    )


def _skewed(values: int, power: float) -> Callable[[Chance, int], NDArray[np.int64]]:
    weights = 1 / np.arange(1, values + 1) ** power
    bounds = np.cumsum(weights / weights.sum())

    def draw(chance: Chance, count: int) -> NDArray[np.int64]:
        return np.searchsorted(bounds, chance.random(count)).astype(np.int64)

    return draw


def skew() -> Workload:
    """Frequent values on one link, none on the other."""
    hot = _skewed(20_000, 1.0)

    def a(chance: Chance, count: int, _: float) -> Columns:
        return {"id": chance.integers(0, ID, count), "x": hot(chance, count)}

    def b(chance: Chance, count: int, _: float) -> Columns:
        return {
            "id": chance.integers(0, ID, count),
            "x": hot(chance, count),
            "y": chance.integers(0, 40_000, count),
        }

    return Workload(
        "skew",
        "Zipf keys on A–B, rare ones on B–C",
        _ids("A", "B", "C"),
        "A.x = B.x AND B.y = C.y",
        {
            "A": Source(2_000, a),
            "B": Source(2_000, b),
            "C": Source(2_000, uniform(id=ID, y=40_000)),
        },
        ("(A B C)", "(A B C | A:B,C B:C,A C:B,A)", "(A (B C))", "((A B) C)"),
    )


def _exclusive(chance: Chance, count: int, _: float) -> Columns:
    """A row that has partners in B has none in C, and the other way round."""
    side = chance.integers(0, 2, count)
    x, y = chance.integers(0, 1_000, count), chance.integers(0, 1_000, count)
    return {
        "id": chance.integers(0, ID, count),
        "x": np.where(side == 0, x, -1 - x),
        "y": np.where(side == 1, y, -1 - y),
        "z": chance.integers(0, 2_000, count),
    }


def correlation() -> Workload:
    """Pairs say that D comes first; B and C exclude each other."""
    return Workload(
        "correlation",
        "partners in B exclude partners in C",
        _ids("A", "B", "C", "D"),
        "A.z = D.z AND A.x = B.x AND A.y = C.y",
        {
            "A": Source(4_000, _exclusive),
            "D": Source(3_000, uniform(id=ID, z=2_000)),
            "B": Source(4_000, uniform(id=ID, x=1_000)),
            "C": Source(4_000, uniform(id=ID, y=1_000)),
        },
        (
            "(A D B C)",
            "(A D B C | A:B,C,D D:A,B,C B:A,C,D C:A,B,D)",
            "(((A B) C) D)",
            "((A B C) D)",
        ),
    )


def alike() -> Workload:
    """The rows with many partners in B are those that have many in C."""

    def a(chance: Chance, count: int, _: float) -> Columns:
        busy = chance.random(count) < 0.1
        x = np.where(busy, chance.integers(0, 40, count), 1_000 + chance.integers(0, ID, count))
        return {
            "id": chance.integers(0, ID, count),
            "x": x,
            "y": np.where(busy, x, x + 1),
            "z": chance.integers(0, 8_000, count),
        }

    return Workload(
        "alike",
        "who has many partners in B has many in C",
        _ids("A", "B", "C", "D"),
        "A.x = B.x AND A.y = C.y AND A.z = D.z",
        {
            "A": Source(3_000, a),
            "B": Source(300, uniform(id=ID, x=40)),
            "C": Source(300, uniform(id=ID, y=40)),
            "D": Source(1_000, uniform(id=ID, z=8_000)),
        },
        (
            "(A B C D)",
            "(A B C D | A:D,B,C B:A,D,C C:A,D,B D:A,B,C)",
            "((A D) B C)",
            "(((A D) B) C)",
        ),
    )


def band() -> Workload:
    """A band without an equality comes first."""
    return Workload(
        "band",
        "A within 5 of B, B = C rare",
        _ids("A", "B", "C"),
        "A.v BETWEEN B.v - 5 AND B.v + 5 AND B.k = C.k",
        {
            "A": Source(1_500, uniform(id=ID, v=10_000)),
            "B": Source(1_500, uniform(id=ID, v=10_000, k=30_000)),
            "C": Source(1_500, uniform(id=ID, k=30_000)),
        },
        ("(A B C)", "(A (B C))", "((A B) C)"),
    )


def two_bands() -> Workload:
    """A wide band comes first, a narrow one after it."""
    return Workload(
        "two bands",
        "A within 500 of B, B within 2 of C",
        _ids("A", "B", "C"),
        "A.v BETWEEN B.v - 500 AND B.v + 500 AND B.w BETWEEN C.w - 2 AND C.w + 2",
        {
            "A": Source(400, uniform(id=ID, v=10_000)),
            "B": Source(400, uniform(id=ID, v=10_000, w=100_000)),
            "C": Source(400, uniform(id=ID, w=100_000)),
        },
        ("(A B C)", "(A B C | A:B,C B:C,A C:B,A)", "(A (B C))", "((A B) C)"),
    )


def residual() -> Workload:
    """A predicate that needs the columns of both lets one pair in two hundred through."""
    return Workload(
        "residual",
        "(B.v + C.v) % 200 = 0 beside an equality",
        _ids("A", "B", "C"),
        "A.x = B.x AND B.y = C.y AND (B.v + C.v) % 200 = 0",
        {
            "A": Source(3_000, uniform(id=ID, x=1_000)),
            "B": Source(3_000, uniform(id=ID, x=1_000, y=300, v=1_000)),
            "C": Source(3_000, uniform(id=ID, y=300, v=1_000)),
        },
        ("(A B C)", "(A B C | A:B,C B:C,A C:B,A)", "(A (B C))", "((A B) C)"),
    )


def residual_of_three() -> Workload:
    """A predicate over three streams decides, and the fourth has many partners."""
    return Workload(
        "residual of 3",
        "(A.v + B.v + C.v) % 100 = 0",
        _ids("A", "B", "C", "D"),
        "A.w = D.w AND A.x = B.x AND B.y = C.y AND (A.v + B.v + C.v) % 100 = 0",
        {
            "A": Source(1_500, uniform(id=ID, w=1_000, x=1_000, v=1_000)),
            "D": Source(2_000, uniform(id=ID, w=1_000)),
            "B": Source(1_500, uniform(id=ID, x=1_000, y=1_000, v=1_000)),
            "C": Source(1_500, uniform(id=ID, y=1_000, v=1_000)),
        },
        ("(A D B C)", "(A D B C | A:B,C,D D:A,B,C B:C,A,D C:B,A,D)", "((A B C) D)"),
    )


def strings() -> Workload:
    """Keys are texts."""

    def texts(**values: int) -> Draw:
        words = {
            name: pa.array([f"customer-{name}-{number:08d}" for number in range(size)])
            for name, size in values.items()
        }

        def draw(chance: Chance, count: int, _: float) -> Columns:
            columns: Columns = {"id": chance.integers(0, ID, count)}
            for name, size in values.items():
                columns[name] = words[name].take(pa.array(chance.integers(0, size, count)))
            return columns

        return draw

    return Workload(
        "strings",
        "text keys, fan-out first",
        _ids("A", "B", "C", "D"),
        "A.x = B.x AND B.y = C.y AND C.z = D.z",
        {
            "A": Source(3_000, texts(x=600)),
            "B": Source(3_000, texts(x=600, y=6_000)),
            "C": Source(3_000, texts(y=6_000, z=20_000)),
            "D": Source(3_000, texts(z=20_000)),
        },
        (
            "(A B C D)",
            "(A B C D | A:B,C,D B:C,D,A C:D,B,A D:C,B,A)",
            "(A (B (C D)))",
            "(((A B) C) D)",
        ),
    )


def groups() -> Workload:
    """Aggregates above a join that has many results."""
    return Workload(
        "GROUP BY",
        "counts and sums of a fan-out",
        "C.k AS k, COUNT(*) AS n, SUM(A.v) AS total",
        "A.x = B.x AND B.y = C.y GROUP BY C.k",
        {
            "A": Source(4_000, uniform(x=2_000, v=100)),
            "B": Source(4_000, uniform(x=2_000, y=16_000)),
            "C": Source(4_000, uniform(y=16_000, k=50)),
        },
        ("(A B C)", "(A B C | A:B,C B:C,A C:B,A)", "(A (B C))", "((A B) C)"),
    )


def by_rows() -> Workload:
    """Windows count rows."""
    return Workload(
        "ROWS",
        "windows of rows, fan-out first",
        _ids("A", "B", "C"),
        "A.x = B.x AND B.y = C.y",
        {
            "A": Source(6_000, uniform(id=ID, x=500)),
            "B": Source(6_000, uniform(id=ID, x=500, y=40_000)),
            "C": Source(6_000, uniform(id=ID, y=40_000)),
        },
        ("(A B C)", "(A B C | A:B,C B:C,A C:B,A)", "(A (B C))", "((A B) C)"),
        window="ROWS 12000",
    )


BURST = 20.0
"""Times faster that a stream is in a burst."""


def bursts() -> Workload:
    """With each window another stream is much faster for half of it."""

    def rate(turn: int) -> Callable[[float], float]:
        def at(seconds: float) -> float:
            number, into = divmod(seconds, 2.0)
            return 1_000.0 * (BURST if int(number) % 3 == turn and into < 1.0 else 1.0)

        return at

    return Workload(
        "bursts",
        "each stream in turn, 20 times faster",
        _ids("A", "B", "C"),
        "A.x = B.x AND B.y = C.y",
        {
            "A": Source(rate(0), uniform(id=ID, x=2_000)),
            "B": Source(rate(1), uniform(id=ID, x=2_000, y=2_000)),
            "C": Source(rate(2), uniform(id=ID, y=2_000)),
        },
        ("(A B C)", "((A B) C)", "(A (B C))"),
    )


def _swapping(period: float, many: int, few: int) -> tuple[Draw, Draw, Draw]:
    """A centre and two others: which link has many partners changes every ``period`` seconds."""

    def values(seconds: float) -> tuple[int, int]:
        return (many, few) if int(seconds // period) % 2 == 0 else (few, many)

    def centre(chance: Chance, count: int, at: float) -> Columns:
        x, y = values(at)
        return {
            "id": chance.integers(0, ID, count),
            "x": chance.integers(0, x, count),
            "y": chance.integers(0, y, count),
        }

    def other(column: str, number: int) -> Draw:
        def draw(chance: Chance, count: int, at: float) -> Columns:
            size = values(at)[number]
            return {"id": chance.integers(0, ID, count), column: chance.integers(0, size, count)}

        return draw

    return centre, other("x", 0), other("y", 1)


def drift() -> Workload:
    """The links of a star swap their selectivities every five windows."""
    centre, left, right = _swapping(10.0, 1_000, 100_000)
    return Workload(
        "drift",
        "selectivities swap every 5 windows",
        _ids("A", "B", "C"),
        "A.x = B.x AND A.y = C.y",
        {"A": Source(10_000, centre), "B": Source(10_000, left), "C": Source(10_000, right)},
        ("(A B C)", "(A B C | A:C,B B:A,C C:A,B)", "((A B) C)", "((A C) B)"),
    )


def one_drift() -> Workload:
    """The links swap once, after a tenth of the run."""
    centre, left, right = _swapping(4.0, 100_000, 500)

    def once(draw: Draw) -> Draw:
        return lambda chance, count, at: draw(chance, count, 0.0 if at < 4.0 else 4.0)

    return Workload(
        "one drift",
        "selectivities swap once",
        _ids("A", "B", "C"),
        "A.x = B.x AND A.y = C.y",
        {
            "A": Source(5_000, once(centre)),
            "B": Source(5_000, once(left)),
            "C": Source(5_000, once(right)),
        },
        ("(A B C)", "(A B C | A:B,C B:A,C C:A,B)", "((A B) C)", "((A C) B)"),
    )


WORKLOADS = (
    chain,
    chain_of_six,
    chain_of_twelve,
    triangle,
    four_cycle,
    clique_of_sixteen,
    star_of_eight,
    tree_of_twenty,
    rates,
    skew,
    correlation,
    alike,
    band,
    two_bands,
    residual,
    residual_of_three,
    strings,
    groups,
    by_rows,
    bursts,
    drift,
    one_drift,
)
"""All workloads, each as a function: some ask planners for their plans by hand."""
