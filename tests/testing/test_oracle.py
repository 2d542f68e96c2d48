"""The oracle against examples that were worked out by hand from docs/notes/answers.md.

Times are milliseconds, so a tuple is written ``(id, ts, k)``.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from penstock.errors import InputError
from penstock.query.join_graph import JoinGraph
from penstock.query.parse import parse
from penstock.testing.case import table
from penstock.testing.oracle import Oracle, answer

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("k", pa.int64())])
RELATION = pa.schema([("id", pa.int64()), ("k", pa.int64())])
SCHEMAS = {"A": SCHEMA, "B": SCHEMA, "C": SCHEMA, "S": RELATION}

Rows = list[tuple[Any, ...]]


def query(text: str, **schemas: pa.Schema) -> JoinGraph:
    known = {**SCHEMAS, **schemas}
    used = {name: schema for name, schema in known.items() if f" {name} " in f"{text} "}
    return parse(text, used, event_time="ts")


def push(oracle: Oracle, **rows: Rows) -> Rows:
    return push_until(oracle, None, **rows)


def push_until(oracle: Oracle, watermark: int | None, **rows: Rows) -> Rows:
    schemas = {s.source: s.schema for block in oracle.graph.blocks for s in block.streams}
    tables = {source: table(schemas[source], r) for source, r in rows.items()}
    return oracle.push(tables, watermark)


def run(oracle: Oracle, *pushes: dict[str, Rows]) -> list[Rows]:
    """What leaves in each push, and last at the end."""
    return [*(push(oracle, **p) for p in pushes), oracle.finish()]


class TestLifespans:
    def test_range_is_inclusive(self) -> None:
        oracle = Oracle(
            query(
                "SELECT A.id, B.id AS b FROM A [RANGE 5 MILLISECONDS] , "
                "B [RANGE 5 MILLISECONDS] WHERE A.k = B.k"
            )
        )
        leaving = push(oracle, A=[(1, 10, 7)], B=[(1, 15, 7), (2, 16, 7), (3, 5, 7), (4, 4, 7)])
        # B3 is born first, so it comes with A1 at 10; B1 at 15
        assert leaving == [(1, 3), (1, 1)]

    def test_windows_differ(self) -> None:
        oracle = Oracle(
            query(
                "SELECT A.id, B.id AS b FROM A [RANGE 2 MILLISECONDS] , "
                "B [RANGE 10 MILLISECONDS] WHERE A.k = B.k"
            )
        )
        # A1 [0, 2] · B1 [3, 13] · A2 [13, 15] · A3 [14, 16]
        leaving = push(oracle, A=[(1, 0, 7), (2, 13, 7), (3, 14, 7)], B=[(1, 3, 7)])
        assert leaving == [(2, 1)]

    def test_now_meets_its_own_instant(self) -> None:
        oracle = Oracle(
            query("SELECT A.id, B.id AS b FROM A [NOW] , B [RANGE 5 MILLISECONDS] WHERE A.k = B.k")
        )
        # A1 [5, 5] · B1 [5, 10] · B2 [3, 8] · B3 [6, 11] · B4 [0, 5]
        leaving = push(oracle, A=[(1, 5, 7)], B=[(1, 5, 7), (2, 3, 7), (3, 6, 7), (4, 0, 7)])
        assert sorted(leaving) == [(1, 1), (1, 2), (1, 4)]

    def test_unbounded_never_dies(self) -> None:
        oracle = Oracle(
            query("SELECT A.id, B.id AS b FROM A [UNBOUNDED] , B [NOW] WHERE A.k = B.k")
        )
        assert push(oracle, A=[(1, 0, 7), (2, 10**15 + 1, 7)], B=[(1, 10**15, 7)]) == [(1, 1)]

    def test_rows(self) -> None:
        oracle = Oracle(
            query("SELECT A.id, B.id AS b FROM A [ROWS 2] , B [ROWS 1] WHERE A.k = B.k")
        )
        # places: A1 1, B1 2, A2 3, A3 4, B2 5; A1 dies at 3 (before A3), B1 at 4 (before B2)
        leaving = push(oracle, A=[(1, 0, 7), (2, 2, 7), (3, 3, 7)], B=[(1, 1, 7), (2, 4, 7)])
        assert leaving[:3] == [(1, 1), (2, 1), (3, 1)]
        assert sorted(leaving[3:]) == [(2, 2), (3, 2)]

    def test_places_go_on_from_push_to_push(self) -> None:
        oracle = Oracle(
            query("SELECT A.id, B.id AS b FROM A [ROWS 1] , B [ROWS 1] WHERE A.k = B.k")
        )
        # event time goes back, places do not
        assert push(oracle, A=[(1, 100, 7)]) == []
        assert push(oracle, A=[(2, 50, 7)]) == []
        assert push(oracle, B=[(1, 0, 7)]) == [(2, 1)]

    def test_a_tuple_that_a_predicate_rejects_counts_for_its_window(self) -> None:
        oracle = Oracle(
            query(
                "SELECT A.id, B.id AS b FROM A [ROWS 1] , B [ROWS 1] WHERE A.k = B.k AND A.id <> 2"
            )
        )
        assert push(oracle, A=[(1, 0, 7), (2, 1, 7)], B=[(1, 2, 7)]) == []

    def test_partitions_and_the_partition_of_nulls(self) -> None:
        oracle = Oracle(
            query(
                "SELECT A.id, B.id AS b FROM A [PARTITION BY k ROWS 1] , B [ROWS 1] "
                "WHERE A.id > B.id"
            )
        )
        leaving = push(
            oracle,
            A=[(1, 1, None), (2, 2, 7), (3, 3, None), (4, 4, 7), (5, 5, 8)],
            B=[(0, 6, 0)],
        )
        assert sorted(leaving) == [(3, 0), (4, 0), (5, 0)]

    def test_self_join_by_rows_gives_one_place_to_a_tuple(self) -> None:
        oracle = Oracle(
            query("SELECT x.id, y.id AS b FROM A [ROWS 2] AS x , A [ROWS 1] AS y WHERE x.k = y.k")
        )
        # x: 1 lives to 2, y: 1 lives to 1 and 2 to 2
        leaving = push(oracle, A=[(1, 1, 7), (2, 2, 7), (3, 3, 7)])
        assert leaving[0] == (1, 1)
        assert sorted(leaving[1:3]) == [(1, 2), (2, 2)]
        assert sorted(leaving[3:]) == [(2, 3), (3, 3)]

    def test_ties_of_event_time_go_by_the_order_of_the_sources_then_by_position(self) -> None:
        oracle = Oracle(
            query("SELECT A.id, B.id AS b FROM A [ROWS 1] , B [ROWS 1] WHERE A.k = B.k")
        )
        # A1 1, A2 2, B1 3, B2 4, whatever the order of the mapping
        assert push(oracle, B=[(1, 5, 7), (2, 5, 7)], A=[(1, 5, 7), (2, 5, 7)]) == [(2, 1), (2, 2)]

    def test_the_column_arrival_orders_a_push(self) -> None:
        schema = pa.schema([*SCHEMA, pa.field("arrival", pa.int64())])
        oracle = Oracle(
            query(
                "SELECT A.id, B.id AS b FROM A [ROWS 1] , B [ROWS 1] WHERE A.k = B.k",
                A=schema,
                B=schema,
            )
        )
        # A2 before B1 before A1
        leaving = push(oracle, A=[(1, 0, 7, 3), (2, 9, 7, 1)], B=[(1, 5, 7, 2)])
        assert leaving == [(2, 1), (1, 1)]

    def test_unbounded_beside_rows(self) -> None:
        oracle = Oracle(
            query("SELECT A.id, B.id AS b FROM A [UNBOUNDED] , B [ROWS 1] WHERE A.k = B.k")
        )
        leaving = push(oracle, A=[(1, 0, 7), (2, 3, 7)], B=[(1, 1, 7), (2, 2, 7)])
        # B1 dies before B2 comes, and A2 after both
        assert leaving == [(1, 1), (1, 2), (2, 2)]

    def test_the_finest_unit_is_the_tick(self) -> None:
        nano = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("ns")), ("k", pa.int64())])
        oracle = Oracle(
            query(
                "SELECT A.id, B.id AS b FROM A [RANGE 1 MILLISECONDS] , "
                "B [RANGE 1 MILLISECONDS] WHERE A.k = B.k",
                B=nano,
            )
        )
        # A1 [1 ms, 2 ms]
        leaving = push(oracle, A=[(1, 1, 7)], B=[(1, 2_000_000, 7), (2, 2_000_001, 7)])
        assert leaving == [(1, 1)]


class TestStatic:
    TEXT = "SELECT A.id, S.id AS s FROM A [RANGE 5 MILLISECONDS] , S WHERE A.k = S.k"

    def test_it_never_dies(self) -> None:
        oracle = Oracle(query(self.TEXT))
        assert push(oracle, S=[(1, 7), (2, 8)]) == []
        assert push(oracle, S=[(3, 7)]) == []
        assert sorted(push(oracle, A=[(1, 10**12, 7)])) == [(1, 1), (1, 3)]

    def test_it_may_come_with_the_first_tuple_and_not_after(self) -> None:
        oracle = Oracle(query(self.TEXT))
        assert push(oracle, A=[(1, 0, 7)], S=[(1, 7)]) == [(1, 1)]
        assert push(oracle, S=[]) == []
        with pytest.raises(InputError):
            push(oracle, S=[(2, 7)])


class TestEquality:
    def test_null_matches_nothing(self) -> None:
        graph = query("SELECT A.id, B.id AS b FROM A [UNBOUNDED] , B [UNBOUNDED] WHERE A.k = B.k")
        assert push(Oracle(graph), A=[(1, 0, None)], B=[(1, 0, None)]) == []

    def test_nan_equals_nan_and_the_zeros_are_one(self) -> None:
        double = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("k", pa.float64())])
        graph = query(
            "SELECT A.id, B.id AS b FROM A [UNBOUNDED] , B [UNBOUNDED] WHERE A.k = B.k",
            A=double,
            B=double,
        )
        leaving = push(
            Oracle(graph),
            A=[(1, 0, math.nan), (2, 0, -0.0)],
            B=[(1, 0, math.nan), (2, 0, 0.0), (3, 0, math.inf)],
        )
        assert sorted(leaving) == [(1, 1), (2, 2)]

    def test_a_bag_keeps_duplicates(self) -> None:
        graph = query("SELECT A.k FROM A [UNBOUNDED] , B [UNBOUNDED] WHERE A.k = B.k")
        tables = {"A": table(SCHEMA, [(1, 0, 7), (1, 0, 7)]), "B": table(SCHEMA, [(1, 0, 7)])}
        assert answer(graph, [tables]) == {(7,): 2}


class TestLateness:
    TEXT = (
        "SELECT A.id, B.id AS b FROM A [RANGE 100 MILLISECONDS] , "
        "B [RANGE 100 MILLISECONDS] WHERE A.k = B.k"
    )

    def test_no_watermark_until_every_stream_has_had_a_tuple(self) -> None:
        oracle = Oracle(query(self.TEXT))
        push(oracle, A=[(1, 50, 7)])
        assert oracle.watermark == -math.inf
        push(oracle, A=[(2, 10, 7)])
        push(oracle, B=[(1, 30, 7)])
        assert oracle.watermark == 30
        assert oracle.late == {"A": 0, "B": 0}

    def test_a_tuple_before_the_watermark_is_dropped_and_counted(self) -> None:
        oracle = Oracle(query(self.TEXT), lateness=10)
        push(oracle, A=[(1, 50, 7)], B=[(1, 60, 8)])
        assert oracle.watermark == 40
        assert push(oracle, B=[(2, 39, 7), (3, 40, 7)]) == [(1, 3)]
        assert oracle.late == {"A": 0, "B": 1}

    def test_rows_of_one_push_are_not_late_because_of_each_other(self) -> None:
        oracle = Oracle(query(self.TEXT))
        assert push(oracle, A=[(1, 50, 7), (2, 0, 7)], B=[(1, 50, 7)]) == [(1, 1), (2, 1)]
        assert oracle.late == {"A": 0, "B": 0}

    def test_the_watermark_never_goes_back_and_the_host_may_advance_it(self) -> None:
        oracle = Oracle(query(self.TEXT))
        push_until(oracle, 20, A=[(1, 10, 7)])
        assert oracle.watermark == 20
        push_until(oracle, 15)
        assert oracle.watermark == 20
        assert push(oracle, B=[(1, 19, 7), (2, 20, 7)]) == [(1, 2)]
        assert oracle.late == {"A": 0, "B": 1}

    def test_a_tuple_without_event_time_is_dropped_and_counted(self) -> None:
        oracle = Oracle(query(self.TEXT))
        assert push(oracle, A=[(1, None, 7)], B=[(1, 0, 7)]) == []
        assert oracle.null_time == {"A": 1, "B": 0}


class TestEmission:
    TEXT = (
        "SELECT {} A.id, B.id AS b FROM A [RANGE 5 MILLISECONDS] , "
        "B [RANGE 5 MILLISECONDS] WHERE A.k = B.k"
    )
    PUSHES: tuple[dict[str, Rows], ...] = (
        {"A": [(1, 0, 7)]},
        {"B": [(1, 3, 7), (2, 5, 7)]},  # results (1, 1) on [3, 5] and (1, 2) on [5, 5]
        {"A": [(2, 6, 7)]},  # (2, 1) on [6, 8], (2, 2) on [6, 10]
        {"B": [(3, 9, 9)]},
    )

    def test_istream(self) -> None:
        leaving = run(Oracle(query(self.TEXT.format("ISTREAM"))), *self.PUSHES)
        assert [sorted(rows) for rows in leaving] == [
            [],
            [(1, 1), (1, 2)],
            [(2, 1), (2, 2)],
            [],
            [],
        ]

    def test_dstream(self) -> None:
        leaving = run(Oracle(query(self.TEXT.format("DSTREAM"))), *self.PUSHES)
        assert [sorted(rows) for rows in leaving] == [[], [], [(1, 1), (1, 2)], [(2, 1)], [(2, 2)]]

    def test_rstream(self) -> None:
        leaving = run(Oracle(query(self.TEXT.format("RSTREAM"))), *self.PUSHES)
        assert leaving == [[], [(1, 1), (1, 2)], [(2, 1), (2, 2)], [(2, 2)], []]

    def test_a_result_that_dies_before_now_leaves_at_once(self) -> None:
        oracle = Oracle(query(self.TEXT.format("DSTREAM")))
        assert push(oracle, A=[(1, 0, 7)], B=[(1, 0, 7), (2, 6, 8)]) == [(1, 1)]

    def test_what_never_dies_is_not_in_a_dstream(self) -> None:
        oracle = Oracle(
            query("SELECT DSTREAM A.id, B.id AS b FROM A [ROWS 1] , B [ROWS 1] WHERE A.k = B.k")
        )
        # (1, 1) dies when A2 comes, (2, 1) stays
        assert run(oracle, {"A": [(1, 0, 7)], "B": [(1, 1, 7)]}, {"A": [(2, 2, 7)]}) == [
            [],
            [(1, 1)],
            [],
        ]

    def test_rows_of_a_push_come_by_birth_and_by_death(self) -> None:
        text = "SELECT {} A.id FROM A [RANGE {} MILLISECONDS]"
        births = Oracle(query(text.format("", 5)))
        assert push(births, A=[(1, 9, 7), (2, 3, 7)]) == [(2,), (1,)]
        assert births.instants == [3, 9]
        deaths = Oracle(query(text.format("DSTREAM", 5)))
        assert push(deaths, A=[(1, 9, 7), (2, 3, 7), (3, 99, 7)]) == [(2,), (1,)]
        assert deaths.instants == [8, 14]


class TestExcept:
    TEXT = (
        "{} (SELECT A.k FROM A [RANGE 10 MILLISECONDS] EXCEPT "
        "SELECT B.k FROM B [RANGE 5 MILLISECONDS] )"
    )
    # A: 1 on [0, 10], 1 on [20, 30], 2 on [30, 40]; B: 1 on [4, 9], 1 on [18, 23]
    PUSHES: tuple[dict[str, Rows], ...] = (
        {"A": [(1, 0, 1)]},
        {"B": [(1, 4, 1)]},
        {"B": [(2, 18, 1)]},
        {"A": [(2, 20, 1)]},
        {"A": [(3, 30, 2)]},
    )

    def test_istream(self) -> None:
        leaving = run(Oracle(query(self.TEXT.format("ISTREAM"))), *self.PUSHES)
        assert leaving == [[(1,)], [], [], [], [(2,)], []]

    def test_dstream(self) -> None:
        leaving = run(Oracle(query(self.TEXT.format("DSTREAM"))), *self.PUSHES)
        assert leaving == [[], [(1,)], [], [], [], [(2,)]]

    def test_rstream(self) -> None:
        leaving = run(Oracle(query(self.TEXT.format("RSTREAM"))), *self.PUSHES)
        assert leaving == [[(1,)], [], [], [], [(2,)], []]

    def test_with_a_lateness_it_waits_for_the_watermark(self) -> None:
        # the watermark is 18 − 2 = 16 from the fourth push on
        leaving = run(Oracle(query(self.TEXT.format("ISTREAM")), lateness=2), *self.PUSHES)
        assert leaving == [[], [], [], [(1,)], [], [(2,)]]

    def test_without_one_what_comes_in_a_later_push_came_later(self) -> None:
        a, b = {"A": [(1, 3, 1)]}, {"B": [(1, 3, 1)]}
        assert run(Oracle(query(self.TEXT.format("ISTREAM"))), a, b) == [[(1,)], [], []]
        assert run(Oracle(query(self.TEXT.format("ISTREAM"))), {**a, **b}) == [[], []]
        assert run(Oracle(query(self.TEXT.format("ISTREAM")), 0), a, b) == [[], [], []]

    def test_one_removes_every_equal_one_and_it_does_not_come_back(self) -> None:
        a: Rows = [(1, 0, 1), (2, 1, 1), (3, 8, 1), (4, 0, None)]
        # B 1 on [3, 8]: A1 and A2 die at 2, A3 is born while B lives; NULL equals nothing
        b: Rows = [(1, 3, 1), (2, 0, None)]
        assert run(Oracle(query(self.TEXT.format("ISTREAM"))), {"A": a, "B": b}) == [
            [(1,), (None,), (1,)],
            [],
        ]
        oracle = Oracle(query(self.TEXT.format("DSTREAM")))
        assert run(oracle, {"A": a, "B": b}) == [[(1,), (1,)], [(None,)]]

    def test_two_blocks_and_joins(self) -> None:
        graph = query(
            "SELECT A.k FROM A [ROWS 2] , B [ROWS 2] WHERE A.k = B.k "
            "EXCEPT SELECT x.k FROM C [ROWS 1] AS x EXCEPT SELECT y.id FROM C [ROWS 1] AS y"
        )
        a = table(SCHEMA, [(1, 1, 5), (2, 2, 6), (3, 3, 7)])
        b = table(SCHEMA, [(1, 12, 6), (2, 13, 7), (3, 14, 7)])
        # C holds (k 7, id 6): nothing equal to 6 or 7 gets through, but A1 is gone as well
        assert answer(graph, [{"A": a, "B": b, "C": table(SCHEMA, [(6, 4, 7)])}]) == {}
        # with C gone before, 6 and twice 7
        c = table(SCHEMA, [(6, 4, 7), (0, 5, 0)])
        assert answer(graph, [{"A": a, "B": b, "C": c}]) == {(6,): 1, (7,): 2}


class TestGroupBy:
    COUNT = "SELECT {} COUNT(*) AS n FROM A [RANGE 4 MILLISECONDS]"
    # lifespans [0, 4], [2, 6], [10, 14]: the count is 1 at 0, 2 at 2, 1 at 5, none at 7, 1 at 10
    ROWS: ClassVar[Rows] = [(1, 0, 7), (2, 2, 7), (3, 10, 7)]

    def test_istream(self) -> None:
        oracle = Oracle(query(self.COUNT.format("")))
        assert run(oracle, {"A": self.ROWS}) == [[(1,), (2,), (1,), (1,)], []]
        oracle = Oracle(query(self.COUNT.format("")))
        leaving = run(oracle, *({"A": [row]} for row in self.ROWS))
        assert leaving == [[(1,)], [(2,)], [(1,), (1,)], []]

    def test_dstream(self) -> None:
        oracle = Oracle(query(self.COUNT.format("DSTREAM")))
        assert run(oracle, {"A": self.ROWS}) == [[(1,), (2,), (1,)], [(1,)]]

    def test_rstream(self) -> None:
        oracle = Oracle(query(self.COUNT.format("RSTREAM")))
        leaving = run(oracle, *({"A": [row]} for row in self.ROWS), {})
        assert leaving == [[(1,)], [(2,)], [(1,)], [(1,)], []]

    def test_deaths_after_now_count_when_no_more_tuples_come(self) -> None:
        oracle = Oracle(query(self.COUNT.format("")))
        # at 5 one of the two is left
        assert run(oracle, {"A": self.ROWS[:2]}) == [[(1,), (2,)], [(1,)]]

    def test_with_a_lateness_instants_before_the_watermark_are_settled(self) -> None:
        oracle = Oracle(query(self.COUNT.format("")), lateness=5)
        # watermark 5 after the push: instants 0 and 2 are settled, 5 is not
        assert run(oracle, {"A": self.ROWS}) == [[(1,), (2,)], [(1,), (1,)]]

    def test_what_comes_later_counts_at_the_last_settled_instant(self) -> None:
        text = (
            "SELECT {} COUNT(*) AS n FROM A [RANGE 4 MILLISECONDS] , B [UNBOUNDED] WHERE A.k = B.k"
        )
        pushes: list[dict[str, Rows]] = [
            {"A": [(1, 1, 7)]},
            {"A": [(2, 10, 7)]},
            {"B": [(1, 0, 7)]},  # on [1, 5], which is over, and on [10, 14]
            {"B": [(2, 8, 7)]},
        ]
        assert run(Oracle(query(text.format(""))), *pushes) == [[], [], [(1,)], [(2,)], []]
        assert run(Oracle(query(text.format("DSTREAM"))), *pushes) == [[], [], [], [(1,)], [(2,)]]

    def test_groups_with_nulls_and_every_aggregate(self) -> None:
        graph = query(
            "SELECT RSTREAM A.k, COUNT(*) AS n, COUNT(A.id) AS c, SUM(A.id) AS s, AVG(A.id) AS a, "
            "MIN(A.id) AS low, MAX(A.id) + 1 AS high FROM A [UNBOUNDED] GROUP BY A.k"
        )
        rows: Rows = [(1, 0, 7), (2, 0, 7), (None, 0, 7), (None, 0, None), (5, 0, 8)]
        leaving = push(Oracle(graph), A=rows)
        assert set(leaving) == {
            (7, 3, 2, 3, 1.5, 1, 3),
            (None, 1, 0, None, None, None, None),
            (8, 1, 1, 5, 5.0, 5, 6),
        }

    def test_a_row_that_does_not_change_is_not_emitted(self) -> None:
        graph = query("SELECT MAX(A.k) AS m FROM A [RANGE 4 MILLISECONDS]")
        # 7 on [0, 4], 5 on [1, 5], 7 on [5, 9]: always 7
        oracle = Oracle(graph)
        assert run(oracle, {"A": [(1, 0, 7), (2, 1, 5), (3, 5, 7)]}) == [[(7,)], []]

    def test_rows_window(self) -> None:
        oracle = Oracle(query("SELECT SUM(A.k) AS s FROM A [ROWS 2]"))
        assert run(oracle, {"A": [(1, 0, 1), (2, 1, 2)]}, {"A": [(3, 2, 10)]}) == [
            [(1,), (3,)],
            [(12,)],
            [],
        ]


def test_unknown_streams_and_missing_columns_are_refused() -> None:
    oracle = Oracle(query("SELECT A.id FROM A [UNBOUNDED]"))
    with pytest.raises(InputError):
        oracle.push({"Q": SCHEMA.empty_table()})
    with pytest.raises(InputError):
        oracle.push({"A": table(RELATION, [(1, 2)])})
