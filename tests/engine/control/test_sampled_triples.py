"""Combinations of three streams by joins of samples, against counting all of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import penstock
from penstock.engine.control.sampled_triples import NEWS, dependence
from penstock.plan.stream_set import StreamSet

SCHEMA = pa.schema([(name, pa.int64()) for name in ("ts", "x", "y", "z")])
ROWS = 900
ABC = StreamSet.of("A", "B", "C")
Table = dict[str, NDArray[np.int64]]


def rows(chance: np.random.Generator, kind: str) -> dict[str, Table]:
    """Rows of A, B and C: who has partners in B has none in C (``apart``), has them there too
    (``alike``), or has them by chance."""
    times = np.arange(ROWS, dtype=np.int64)
    made = {
        name: {"ts": times, **{each: chance.integers(0, 40, ROWS) for each in "xyz"}}
        for name in "ABC"
    }
    if kind != "by chance":
        a, side = made["A"], chance.integers(0, 2, ROWS)
        a["x"] = np.where(side == 0, a["x"], -1)
        a["y"] = np.where(side == (1 if kind == "apart" else 0), a["y"], -1)
    return made


def engine_of(made: dict[str, Table], where: str) -> penstock.Engine:
    windows = ", ".join(f"{name} [RANGE 10 SECONDS]" for name in made)
    query = penstock.parse(
        f"SELECT A.ts FROM {windows} WHERE {where}", schemas=dict.fromkeys(made, SCHEMA)
    )
    plan = f"({' '.join(made)})"
    engine = penstock.Engine(query, plan=plan, adapt="off", feedback="off", max_results=None)
    for start in range(0, ROWS, 100):
        engine.push(
            {
                name: pa.table({k: v[start : start + 100] for k, v in each.items()}, schema=SCHEMA)
                for name, each in made.items()
            }
        )
    return engine


@pytest.mark.parametrize("kind", ["apart", "alike"])
@pytest.mark.parametrize("seed", range(3))
def test_a_share_of_three_streams_is_that_of_all_combinations(kind: str, seed: int) -> None:
    made = rows(np.random.default_rng(seed), kind)
    observed = engine_of(made, "A.x = B.x AND A.y = C.y").statistics().observed
    a = made["A"]
    in_b = (a["x"][:, None] == made["B"]["x"][None, :]).sum(axis=1)
    in_c = (a["y"][:, None] == made["C"]["y"][None, :]).sum(axis=1)
    together = float((in_b * in_c).sum()) / ROWS**3
    # Nothing seen is told as half a combination of the samples.
    assert observed[ABC] == pytest.approx(max(together, 0.5 / ROWS**3), rel=1e-6)


def test_chance_is_no_news_and_neither_is_a_triangle() -> None:
    chance = np.random.default_rng(4)
    assert ABC not in engine_of(rows(chance, "by chance"), "A.x = B.x AND A.y = C.y").statistics(
    ).observed  # fmt: skip
    linked = "A.x = B.x AND A.y = C.y AND B.z = C.z"
    assert ABC not in engine_of(rows(chance, "apart"), linked).statistics().observed
    compared = "A.x = B.x AND A.y < C.y"
    assert ABC not in engine_of(rows(chance, "apart"), compared).statistics().observed


counts = st.integers(0, 9)


@given(st.lists(st.tuples(counts, counts), min_size=1, max_size=200))
def test_a_factor_is_far_from_one_and_what_the_pairs_say(pairs: list[tuple[int, int]]) -> None:
    one, two = (np.array(each, np.int64) for each in zip(*pairs, strict=True))
    factor = dependence(one, two)
    if factor is not None:
        assert not 1 / NEWS < factor < NEWS
        expected = one.sum() * two.sum() / len(pairs)
        assert factor * expected == pytest.approx(max(0.5, sum(b * c for b, c in pairs)))
        assert dependence(two, one) == pytest.approx(factor)


def test_nothing_is_said_of_few_rows() -> None:
    empty = np.array([], np.int64)
    assert dependence(empty, empty) is None
    assert dependence(np.array([1, 0]), np.array([0, 1])) is None
