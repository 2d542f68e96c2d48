"""What a running engine knows about its streams, and how it explains its plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.control import controller
from penstock.plan.stream_set import StreamSet
from penstock.planning import adaptation
from penstock.planning.problem import Problem

SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "x", "y")])
TEXT = """SELECT A.id AS a FROM A [RANGE 4 SECONDS], B [RANGE 8 SECONDS], C [RANGE 4 SECONDS]
    WHERE A.x = B.x AND A.y = C.y AND B.id < C.id"""


def run(plan: str = "((A B) C)", **options: Any) -> penstock.Engine:
    """A and C have a row each ten milliseconds, B one each five."""
    query = penstock.parse(TEXT, schemas=dict.fromkeys("ABC", SCHEMA))
    engine = penstock.Engine(query, plan=plan, **options)
    random = np.random.default_rng(5)
    for second in range(20):
        batches = {}
        for stream, step in (("A", 10), ("B", 5), ("C", 10)):
            times = np.arange(1000 * second, 1000 * (second + 1), step)
            columns = [times, times, random.integers(0, 50, len(times))]
            columns.append(random.integers(0, 200, len(times)))
            batches[stream] = pa.table(columns, schema=SCHEMA)
        engine.push(batches)
    return engine


@pytest.mark.parametrize("feedback", ["off", "jit"])
def test_rates_selectivities_and_sizes(feedback: str) -> None:
    statistics = run(feedback=feedback).statistics()
    assert statistics.rates == pytest.approx({"A": 100, "B": 200, "C": 100}, rel=0.02)
    pairs = {str(streams): share for streams, share in statistics.selectivities.items()}
    assert pairs["{A, B}"] == pytest.approx(1 / 50, rel=0.1)
    assert pairs["{A, C}"] == pytest.approx(1 / 200, rel=0.2)
    assert 0.1 < pairs["{B, C}"] < 0.9
    assert statistics.sizes[StreamSet.of("B")] == pytest.approx(1600, rel=0.02)
    if feedback == "off":
        assert statistics.observed[StreamSet.of("A", "B")] == pytest.approx(1 / 50, rel=0.15)


def test_a_planner_can_use_them() -> None:
    engine = run()
    plan = penstock.plan(engine.query, engine.statistics())
    engine.migrate(plan, strategy="jisc")
    assert engine.plan == plan


def test_explain_shows_what_was_seen_beside_the_estimate() -> None:
    engine = run()
    assert "compiled, " not in engine.explain()
    told = engine.explain(analyze=True)
    for part in ("join (A B)", "A.x = B.x", "[RANGE 8 SECONDS]", "alternatives"):
        assert part in told
    heading = told.splitlines()[4].split()
    assert heading[:4] == ["tuples/s", "estimate", "rows", "estimate"]
    again = penstock.Engine.restore(engine.query, engine.checkpoint())
    assert "estimate" in again.explain(analyze=True)


def test_explain_accounts_for_feedback() -> None:
    engine = run(feedback=penstock.Feedback(adaptive=False))
    told = engine.explain(analyze=True)
    assert "partial results made, about" in told
    assert "{A} waits for {C}: of " in told
    assert "feedback" not in engine.explain()


def test_nothing_came_yet() -> None:
    query = penstock.parse(TEXT, schemas=dict.fromkeys("ABC", SCHEMA))
    engine = penstock.Engine(query, plan="(A B C)")
    assert engine.statistics().rates == {"A": 0, "B": 0, "C": 0}
    assert "(A B C)" in engine.explain(analyze=True)


@pytest.mark.parametrize("domain", [20, 3000, 10_000_000])
def test_distinct_values_are_estimated_from_a_sample(domain: int) -> None:
    """From the few that come again and again to those that come once."""
    query = penstock.parse(TEXT, schemas=dict.fromkeys("ABC", SCHEMA))
    engine = penstock.Engine(query, plan="(A B C)")
    rows = 40_000
    times = np.full(rows, 5)
    values = np.random.default_rng(3).integers(0, domain, rows)
    engine.push({"A": pa.table([times, times, values, values], schema=SCHEMA)})
    true = len(np.unique(values))
    assert engine.statistics().distinct["A", "x"] == pytest.approx(true, rel=0.1)
    assert engine.statistics(brief=True).distinct == {}


def test_demand_is_seen_for_states_of_several_streams() -> None:
    """One C in a hundred has a D, so feedback keeps nearly all of A, B and C from being made."""
    windows = ", ".join(f"{name} [RANGE 4 SECONDS]" for name in "ABCD")
    schema = pa.schema([(name, pa.int64()) for name in ("id", "ts", "x", "y", "z")])
    query = penstock.parse(
        f"SELECT A.id FROM {windows} WHERE A.x = B.x AND B.y = C.y AND C.z = D.z",
        schemas=dict.fromkeys("ABCD", schema),
    )
    found = {}
    for feedback in ("off", penstock.Feedback(adaptive=False)):
        engine = penstock.Engine(query, plan="(((A B) C) D)", feedback=feedback)
        random = np.random.default_rng(5)
        for second in range(10):
            times = np.arange(1000 * second, 1000 * (second + 1), 5)
            batches = {}
            for stream in "ABCD":
                x, y = random.integers(0, 100, (2, len(times)))
                # Values of D are a hundredth of those of C.
                z = random.integers(0, 100 if stream == "D" else 10_000, len(times))
                batches[stream] = pa.table([times, times, x, y, z], schema=schema)
            engine.push(batches)
        found[feedback] = engine
    everything, wanted = found.values()
    three = StreamSet.of("A", "B", "C")
    rows = [engine.metrics()["state"]["joins"][str(three)]["rows"] for engine in found.values()]
    assert everything.statistics().demand == {}
    assert rows[1] < 0.2 * rows[0]
    assert wanted.statistics().demand[three] == pytest.approx(rows[1] / rows[0], rel=0.5)


def test_a_look_knows_groups_texts_and_keys_beside_other_conditions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What costs of groups, of numbered values and of further conditions are reckoned from."""
    types = {"ts": pa.int64(), "x": pa.string(), "y": pa.int64(), "g": pa.int64(), "v": pa.int64()}
    schema = pa.schema(list(types.items()))
    query = penstock.parse(
        """SELECT A.g AS g, count(*) AS n
           FROM A [RANGE 4 SECONDS], B [RANGE 4 SECONDS], C [RANGE 4 SECONDS]
           WHERE A.x = B.x AND B.y = C.y AND B.v < C.v GROUP BY A.g""",
        schemas=dict.fromkeys("ABC", schema),
    )
    problems = []
    look, first_look = adaptation.look, adaptation.first_look

    def seen(problem: Problem, *rest: Any) -> Any:
        problems.append(problem)
        return (look if len(rest) > 2 else first_look)(problem, *rest)

    monkeypatch.setattr(adaptation, "look", seen)
    monkeypatch.setattr(adaptation, "first_look", seen)
    for name, value in (("GLANCE_WORK", 0.0), ("SHARE", 1e6), ("LEAST_ROWS", 1)):
        monkeypatch.setattr(controller, name, value)
    engine = penstock.Engine(query, feedback="off")
    random = np.random.default_rng(5)
    for second in range(6):
        times = np.arange(1000 * second, 1000 * (second + 1), 2)
        batches = {}
        for name in "ABC":
            x, y, g, v = (random.integers(0, n, len(times)) for n in (300, 50, 7, 1000))
            texts = [f"text {each}" for each in x]
            batches[name] = pa.table([times, texts, y, g, v], schema=schema)
        engine.push(batches)
    assert len(problems) > 1
    for problem in problems:
        known = problem.statistics.distinct
        assert known["A", "g"] == 7
        assert known["A", "x"] == pytest.approx(300, rel=0.25)  # Of few rows at first.
        assert known["B", "y"] == known["C", "y"] == 50
        (condition,) = problem.blocks[0].conditions
        # Half of the pairs that agree on y pass v < v, though the share of both is a hundredth.
        assert np.exp(condition.log_share) == pytest.approx(0.5, rel=0.15)
