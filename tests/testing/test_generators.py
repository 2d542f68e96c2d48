"""Generated cases can be parsed, repeated, pasted and run; and the oracles agree on them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from penstock.plan.notation import read
from penstock.plan.stream_set import StreamSet
from penstock.query.join_graph import JoinGraph
from penstock.testing import (
    FEATURES,
    Case,
    Knobs,
    Oracle,
    answer,
    check_case,
    generate,
    shrink,
)
from penstock.testing.case import table
from penstock.testing.compare import rows_of
from penstock.testing.duckdb_oracle import NotTranslatable, duckdb_answer
from penstock.testing.python_values import canonical
from penstock.testing.random_plan import random_plan
from penstock.testing.strategies import cases, plans

SEEDS = range(150)
BY_EVENT_TIME = Knobs().without(
    {"rows", "except", "group by", "dstream", "rstream", "late", "watermark"}
)


@pytest.fixture(scope="module")
def generated() -> list[Case]:
    return [generate(seed) for seed in SEEDS]


def test_a_seed_gives_one_case() -> None:
    for seed in range(20):
        assert str(generate(seed)) == str(generate(seed)), seed
    assert str(generate(1)) != str(generate(2))
    chance = random.Random(5)
    assert str(generate(chance)) == str(generate(5))
    assert str(generate(chance)) != str(generate(5))


def test_queries_parse_and_plans_fit(generated: list[Case]) -> None:
    for case in generated:
        graph = case.graph()
        read(case.plan).check(graph)
        assert 1 <= len(graph.streams) <= 6


def test_a_printed_case_builds_the_same_case(generated: list[Case]) -> None:
    for case in generated[:60]:
        names: dict[str, Any] = {}
        exec(str(case), names)
        again = names["case"]
        assert str(again) == str(case)
        rows = [{s: rows_of(t) for s, t in push.items()} for push in case.pushes]
        rows_again = [{s: rows_of(t) for s, t in push.items()} for push in again.pushes]
        assert canonical(rows_again) == canonical(rows)
        assert again.lateness == case.lateness


def test_all_features_occur_and_most_cases_have_results(generated: list[Case]) -> None:
    found = frozenset().union(*(case.features for case in generated))
    assert found == FEATURES
    sizes = [sum(map(len, case.expected())) for case in generated]
    assert sum(size > 0 for size in sizes) > 0.8 * len(sizes)
    assert max(sizes) < 5_000


def test_features_can_be_switched_off() -> None:
    plain = Knobs(frozenset(), streams=(3, 3))
    for seed in range(30):
        case = generate(seed, plain)
        assert not case.features
        assert len(case.pushes) == 1
        graph = case.graph()
        assert len(graph.streams) == 3
        assert len({s.window for s in graph.streams}) == 1
    with pytest.raises(ValueError, match="unknown feature"):
        Knobs(frozenset({"no such thing"}))


def test_nothing_is_late_unless_asked_for() -> None:
    knobs = Knobs().without({"late", "watermark"})
    for seed in range(60):
        case = generate(seed, knobs)
        oracle = Oracle(case.graph(), case.lateness)
        for push in case.pushes:
            oracle.take(push)
            oracle.push({})
        assert not any(oracle.late.values()), seed


def test_late_cases_have_late_tuples() -> None:
    knobs = Knobs(frozenset({"late", "lateness", "splits"}))
    late = 0
    for seed in range(40):
        case = generate(seed, knobs)
        oracle = Oracle(case.graph(), case.lateness)
        for push in case.pushes:
            oracle.push(push)
        late += any(oracle.late.values())
    assert late >= 6


def test_the_order_of_arrival_and_the_splits_do_not_matter_for_range() -> None:
    for seed in range(40):
        case = generate(seed, BY_EVENT_TIME)
        graph = case.graph()
        whole = {
            source: pa.concat_tables([p[source] for p in case.pushes if source in p])
            for source in graph.sources
            if any(source in p for p in case.pushes)
        }
        assert answer(graph, case.pushes, case.lateness) == answer(graph, [whole]), seed


def test_duckdb_agrees() -> None:
    compared = 0
    for seed in range(80):
        case = generate(seed, BY_EVENT_TIME)
        graph = case.graph()
        try:
            expected = duckdb_answer(graph, case.pushes)
        except NotTranslatable:
            continue
        assert answer(graph, case.pushes, case.lateness) == expected, str(case)
        compared += 1
    assert compared > 70


def test_duckdb_agrees_about_what_leaves_with_dstream() -> None:
    compared = 0
    for seed in range(60):
        case = generate(seed, Knobs(BY_EVENT_TIME.features | {"dstream"}, streams=(1, 3)))
        graph = case.graph()
        if graph.emission != "dstream":
            continue
        try:
            expected = duckdb_answer(graph, case.pushes)
        except NotTranslatable:
            continue
        assert answer(graph, case.pushes, case.lateness) == expected, str(case)
        compared += 1
    assert compared > 4


def test_duckdb_refuses_what_it_cannot_say() -> None:
    case = generate(0, Knobs(frozenset({"rows"}), streams=(2, 2)))
    seed = 0
    while not case.graph().by_rows:
        seed += 1
        case = generate(seed, Knobs(frozenset({"rows"}), streams=(2, 2)))
    with pytest.raises(NotTranslatable):
        duckdb_answer(case.graph(), case.pushes)


def test_random_plans_cover_the_shapes() -> None:
    chance = random.Random(0)
    found = {random_plan(chance, ["A", "B", "C"]) for _ in range(300)}
    for plan in found:
        assert read(plan).streams == StreamSet.of("A", "B", "C")
    assert "(A B C)" in found
    assert "((A B) C)" in found
    assert any("|" in plan for plan in found)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases(Knobs(streams=(1, 3), tuples=8)))
def test_hypothesis_makes_cases(case: Case) -> None:
    assert len(case.expected()) == len(case.pushes) + 1


@settings(max_examples=30, deadline=None)
@given(plans(("A", "B", "C", "D")))
def test_hypothesis_makes_plans(plan: str) -> None:
    assert read(plan).streams == StreamSet.of("A", "B", "C", "D")


class _Replay:
    """An engine that is the oracle, and forgets every row with a given first value."""

    def __init__(self, graph: JoinGraph, case: Case, forgets: int | None = None) -> None:
        self.oracle = Oracle(graph, case.lateness)
        self.forgets = forgets

    def push(self, batches: Mapping[str, Any], watermark: int | None = None) -> pa.Table:
        return self._table(self.oracle.push(batches, watermark))

    def finish(self) -> pa.Table:
        return self._table(self.oracle.finish())

    def _table(self, rows: list[tuple[Any, ...]]) -> pa.Table:
        kept = [row for row in rows if self.forgets is None or row[0] != self.forgets]
        return table(self.oracle.graph.schema, kept)


def test_check_case_passes_what_is_right(generated: list[Case]) -> None:
    for case in generated[:15]:
        check_case(case, _Replay)


def test_check_case_finds_what_is_wrong_and_shrink_makes_it_small() -> None:
    knobs = Knobs(frozenset({"splits"}), streams=(2, 2))

    def fails(case: Case) -> bool:
        try:
            check_case(case, lambda graph, c: _Replay(graph, c, forgets=1))
        except AssertionError:
            return True
        return False

    case = next(c for c in (generate(seed, knobs) for seed in range(50)) if fails(c))
    small = shrink(case, fails)
    assert fails(small)
    assert sum(t.num_rows for push in small.pushes for t in push.values()) == 2
    with pytest.raises(AssertionError, match="missing: 1"):
        check_case(small, lambda graph, c: _Replay(graph, c, forgets=1))
