"""The scenarios of the JISC paper, by name, for every strategy; and what is special to each."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.engine.migration.change_of_plan import STRATEGIES
from penstock.engine.migration.parallel_track import ParallelTracks
from penstock.testing.compare import assert_same_rows
from penstock.testing.oracle import Oracle

OLD = "(((R S) T) U)"
NEW = "(((S T) R) U)"
"""The transition of Figure 2: the join of S and T exists only in the new plan."""

every_strategy = pytest.mark.parametrize("strategy", STRATEGIES)


class Run:
    """An engine over R, S, T, U beside the oracle; windows are 60 seconds, that of S five."""

    def __init__(self, plan: str = OLD, select: str = "SELECT", **options: Any) -> None:
        schema = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("k", pa.int64())])
        self.schemas = dict.fromkeys("RSTU", schema)
        self.graph = penstock.parse(
            f"""{select} R.id AS r, S.id AS s, T.id AS t, U.id AS u
            FROM R [RANGE 60 SECONDS], S [RANGE 5 SECONDS], T [RANGE 60 SECONDS],
                 U [RANGE 60 SECONDS]
            WHERE R.k = S.k AND S.k = T.k AND T.k = U.k""",
            schemas=self.schemas,
        )
        self.engine = penstock.Engine(self.graph, plan=plan, **options)
        self.oracle = Oracle(self.graph, None)
        self.number = 0

    def push(self, second: int, **keys: int) -> int:
        """A row for each of the streams named, at that second; how many rows the answer has."""
        batches = {}
        for stream, key in keys.items():
            self.number += 1
            batches[stream] = pa.table(
                [[self.number], [1000 * second], [key]], schema=self.schemas[stream]
            )
        answer = self.engine.push(batches)
        assert_same_rows(answer, self.oracle.push(batches, None), self.graph)
        return int(answer.num_rows)


@every_strategy
def test_scenario_1_a_result_is_not_missed(strategy: str) -> None:
    """s, t and u came before the transition, r comes after it."""
    run = Run()
    run.push(0, S=7, T=7, U=7)
    run.engine.migrate(NEW, strategy)
    assert run.push(1, R=7) == 1


@every_strategy
def test_scenario_2_a_result_leaves_the_answer_when_a_part_of_it_dies(strategy: str) -> None:
    """The result is there before the transition; then s falls out of its window."""
    run = Run(select="SELECT RSTREAM")
    assert run.push(0, R=7, S=7, T=7, U=7) == 1
    run.engine.migrate(NEW, strategy)
    assert run.push(4, R=8) == 1
    assert run.push(6, R=8) == 0


@every_strategy
def test_scenario_3_no_result_is_made_of_what_has_died(strategy: str) -> None:
    """r, s and t came before the transition, s dies after it, then u comes."""
    run = Run()
    run.push(0, R=7, S=7, T=7)
    run.engine.migrate(NEW, strategy)
    run.push(6, S=8)
    assert run.push(7, U=7) == 0


@every_strategy
def test_figure_4_an_incomplete_state_stays_incomplete_in_the_next_plan(strategy: str) -> None:
    """The second transition comes before ST is complete; ST is also in the third plan."""
    run = Run()
    run.push(0, R=7, S=7, T=7)
    run.push(0, R=9, S=9, T=9)
    run.engine.migrate(NEW, strategy)
    run.push(1, R=7)
    run.engine.migrate("(((S T) U) R)", strategy)
    if strategy == "jisc":
        (tree,) = run.engine.trees
        assert "{S, T}" in {str(missing.state.streams) for missing in tree.missing}
    assert run.push(2, U=9) == 1
    assert run.push(2, U=7) == 2


@every_strategy
@pytest.mark.parametrize("emission", ["SELECT", "SELECT DSTREAM", "SELECT RSTREAM"])
def test_back_and_forth_with_restarts(strategy: str, emission: str) -> None:
    run = Run(select=emission)
    plans = [NEW, OLD, "(R S T U)", "((R S) (T U))", "((R S U) T)"]
    for second in range(20):
        run.push(second, **{s: (second + i) % 3 for i, s in enumerate("RSTU")})
        run.engine.migrate(plans[second % 5], strategy)
        if second % 7 == 6:
            blob = run.engine.checkpoint()
            run.engine = penstock.Engine.restore(run.graph, blob)
            assert str(run.engine.plan) == plans[second % 5]


# -- parallel track ---------------------------------------------------------------------------


def older_plans(engine: penstock.Engine) -> list[str]:
    """The plans that run beside the present one, the oldest first."""
    older = engine.trees[0].older
    return [] if older is None else [str(penstock.Plan(track.root)) for track in older.tracks]


def test_the_old_plan_is_discarded_when_the_old_tuples_have_died() -> None:
    run = Run(feedback="off")
    run.push(0, R=1, S=1, T=1)
    run.engine.migrate(NEW, "parallel-track")
    assert older_plans(run.engine) == [OLD]
    run.push(50, R=1, S=1, T=1, U=1)
    older = run.engine.trees[0].older
    assert isinstance(older, ParallelTracks)
    assert older.duplicates == 1  # The four of second 50 are a result of both plans.
    run.push(61, R=1, S=1, T=1, U=1)
    run.push(62, U=2)
    assert older_plans(run.engine) == []
    assert run.push(63, U=1) == 4


def test_the_new_plan_starts_with_nothing_and_both_plans_are_held() -> None:
    run = Run(feedback="off")
    run.push(0, R=1, S=1, T=1)
    small = run.engine.metrics()["state"]["bytes"]
    run.engine.migrate(NEW, "parallel-track")
    joins = run.engine.metrics()["state"]["joins"]
    assert {name: each["rows"] for name, each in joins.items()} == {"{S, T}": 0, "{R, S, T}": 0}
    assert run.engine.metrics()["state"]["bytes"] > small


def test_overlapping_migrations_run_three_plans_at_once() -> None:
    run = Run()
    run.push(0, R=1, S=1, T=1)
    run.engine.migrate(NEW, "parallel-track")
    run.push(1, R=1, S=1, T=1)
    run.engine.migrate("((R S) (T U))", "parallel-track")
    assert older_plans(run.engine) == [OLD, NEW]
    assert run.push(2, U=1) == 8
    assert run.push(3, R=1, S=1, T=1, U=1) == 3 * 3 * 3 * 2 - 8
    for second in range(60, 66):
        run.push(second, R=1, S=2, T=1, U=1)
    assert older_plans(run.engine) == []


def test_jisc_takes_over_from_parallel_tracks() -> None:
    run = Run()
    run.push(0, R=1, S=1, T=1)
    run.engine.migrate(NEW, "parallel-track")
    run.push(1, R=1, S=1, T=1)
    run.engine.migrate("(((R T) S) U)", "jisc")
    assert older_plans(run.engine) == []
    assert run.push(2, U=1) == 8


def test_parallel_track_refuses_windows_without_an_end() -> None:
    schema = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("k", pa.int64())])
    graph = penstock.parse(
        "SELECT A.id FROM A [UNBOUNDED], B [RANGE 1 SECONDS], C [RANGE 1 SECONDS] "
        "WHERE A.k = B.k AND B.k = C.k",
        schemas=dict.fromkeys("ABC", schema),
    )
    engine = penstock.Engine(graph, plan="((A B) C)")
    with pytest.raises(penstock.OptionError, match=r"those of A \[UNBOUNDED\] never do"):
        engine.migrate("((A C) B)", "parallel-track")
    assert str(engine.plan) == "((A B) C)"


def test_parallel_tracks_over_packed_windows_with_a_static_join() -> None:
    """Partitions that nobody writes to keep the old plan alive, while the window is packed."""
    schema = pa.schema([("id", pa.int64()), ("k", pa.int64()), ("ts", pa.int64())])
    fixed = pa.schema([("id", pa.int64()), ("k", pa.int64())])
    graph = penstock.parse(
        """SELECT A.id AS a, B.id AS b, S.id AS s, T.id AS t
        FROM A [PARTITION BY k ROWS 2], B [PARTITION BY k ROWS 2], S, T
        WHERE A.k = B.k AND A.k = S.k AND S.k = T.k""",
        schemas={"A": schema, "B": schema, "S": fixed, "T": fixed},
        event_time={"A": "ts", "B": "ts", "S": None, "T": None},
    )
    engine = penstock.Engine(graph, plan="(((A B) S) T)")
    oracle = Oracle(graph, None)

    def push(batches: dict[str, pa.Table]) -> None:
        assert_same_rows(engine.push(batches), oracle.push(batches, None), graph)

    keys = list(range(4))
    push({s: pa.table([keys, keys], schema=fixed) for s in "ST"})
    push({"A": pa.table([[1, 2], [0, 1], [1, 2]], schema=schema)})
    engine.migrate("((A B) (S T))", "parallel-track")
    for number in range(3, 400, 4):
        ids = list(range(number, number + 4))
        push({"AB"[number % 8 == 3]: pa.table([ids, [2, 3, 2, 3], ids], schema=schema)})
    assert older_plans(engine) == ["(((A B) S) T)"]
    assert engine.metrics()["state"]["windows"]["A"]["rows"] < 100
    push({"A": pa.table([[900, 901, 902, 903], [0, 1, 0, 1], [900] * 4], schema=schema)})
    push({"B": pa.table([[904], [0], [904]], schema=schema)})
    push({"B": pa.table([[905], [1], [905]], schema=schema)})
    assert older_plans(engine) == []


def test_a_partition_that_nobody_writes_to_does_not_keep_a_window_from_being_packed() -> None:
    schema = pa.schema([("id", pa.int64()), ("k", pa.int64()), ("ts", pa.int64())])
    sources = ", ".join(f"{s} [PARTITION BY k ROWS 2]" for s in "ABC")
    graph = penstock.parse(
        f"SELECT A.id AS a, B.id AS b, C.id AS c FROM {sources} WHERE A.k = B.k AND B.k = C.k",
        schemas=dict.fromkeys("ABC", schema),
    )
    engine = penstock.Engine(graph, plan="((A B) C)", feedback="off")
    twin = penstock.Engine(graph, plan="(A B C)", feedback="off")
    engine.push({s: pa.table([[0], [9], [0]], schema=schema) for s in "AB"})
    twin.push({s: pa.table([[0], [9], [0]], schema=schema) for s in "AB"})
    engine.migrate("((B A) C)", strategy="jisc")
    engine.push({"C": pa.table([[0], [8], [0]], schema=schema)})
    twin.push({"C": pa.table([[0], [8], [0]], schema=schema)})
    engine.migrate("((A C) B)", strategy="jisc")
    for number in range(1, 200):
        ids = list(range(8 * number, 8 * number + 8))
        batches = {"ABC"[number % 3]: pa.table([ids, [1, 2] * 4, ids], schema=schema)}
        assert engine.push(batches).num_rows == twin.push(batches).num_rows
    assert engine.metrics()["state"]["windows"]["A"]["rows"] < 300
    last = {"C": pa.table([[5000], [9], [5000]], schema=schema)}
    assert engine.push(last).num_rows == twin.push(last).num_rows == 1
