"""SELECT, GROUP BY, EXCEPT and emission: what the answer holds."""

from __future__ import annotations

import pickle

import pytest
from query_schemas import SCHEMAS, WIDE, accept, pointed_at, refuse

import penstock.query
from penstock.query import parse
from penstock.query.expression import GROUPED, walk
from penstock.query.expression import Column as ColumnNode

AB = "FROM A [NOW], B [NOW] WHERE A.id = B.id"


@pytest.mark.parametrize(
    ("select", "names"),
    [
        ("A.id, B.x", ["id", "x"]),
        ("A.id, B.id", ["A_id", "B_id"]),
        ("A.id AS id, B.id", ["id", "B_id"]),
        ("A.id a, B.id b", ["a", "b"]),
        ('A.id AS "the id"', ["the id"]),
        ("A.ID", ["id"]),
        ("B.*", ["id", "x", "ts"]),
        ("b.*, A.id", ["B_id", "x", "ts", "A_id"]),
        ("A.x +  B.x", ["A.x + B.x"]),
        ("A.x +\n B.x, 'a  b'", ["A.x + B.x", "'a b'"]),
        ("COUNT(*), SUM( A.y )", ["COUNT(*)", "SUM( A.y )"]),
    ],
)
def test_names(select: str, names: list[str]) -> None:
    assert accept(f"SELECT {select} {AB}").schema.names == names


def test_star() -> None:
    graph = accept("SELECT * FROM B [NOW], C [NOW] WHERE B.x = C.x")
    assert graph.schema.names == ["B_id", "B_x", "B_ts", "C_id", "C_x", "C_ts"]
    assert [str(i.expression) for i in graph.select][:2] == ["B.id", "B.x"]
    assert accept("SELECT * FROM A [NOW]").schema.equals(WIDE)


@pytest.mark.parametrize(
    ("select", "place", "says"),
    [
        ("A.id AS a, B.id AS a", "a", "two items of SELECT are called a"),
        ("A.id, A.id", "A.id", "two items of SELECT are called A_id"),
        ("A.id + 1, A.id  + 1", "A.id  + 1", "two items of SELECT are called A.id + 1"),
        ("A.id, B.id, 1 AS A_id", "A_id", "two items of SELECT are called A_id"),
        ("id", "id", "column id is ambiguous: A and B have it"),
        ("* AS a", "a", "* cannot be renamed"),
        ("A.* a", "a", "* cannot be renamed"),
        ("C.*", "C", "unknown stream C"),
        ("A.*, *.x", ".", "expected FROM"),
        ("1x", "1x", "not a number"),
        ("A.id AS 5", "5", "a name after AS"),
        ('A.id AS ""', '""', "cannot be empty"),
        ("A.id AS é\x01", "é\x01", "is not a name"),
        ("order", "order", "expected an expression"),
    ],
)
def test_refused_select(select: str, place: str, says: str) -> None:
    error = refuse(f"SELECT {select} {AB}")
    assert says in error.message
    assert pointed_at(error) == place


@pytest.mark.parametrize(
    ("query", "emission"),
    [
        ("SELECT x FROM A [NOW]", "istream"),
        ("SELECT ISTREAM x FROM A [NOW]", "istream"),
        ("SELECT DSTREAM x FROM A [NOW]", "dstream"),
        ("select rstream * from A [NOW]", "rstream"),
        ("SELECT RSTREAM -x AS m FROM A [NOW]", "rstream"),
        ("SELECT RSTREAM (x + 1) AS m FROM A [NOW]", "rstream"),
        ("DSTREAM (SELECT x FROM A [NOW])", "dstream"),
        ("dstream(SELECT x FROM A [NOW]);", "dstream"),
        ("RSTREAM SELECT x FROM A [NOW]", "rstream"),
        ("RSTREAM (SELECT x FROM A [NOW] EXCEPT SELECT x FROM B [NOW])", "rstream"),
        ("RSTREAM (SELECT x FROM A [NOW]) EXCEPT (SELECT x FROM B [NOW])", "rstream"),
        ("SELECT RSTREAM x FROM A [NOW] EXCEPT SELECT x FROM B [NOW]", "rstream"),
        ("((SELECT x FROM A [NOW]))", "istream"),
    ],
)
def test_emission(query: str, emission: str) -> None:
    graph = accept(query)
    assert {block.emission for block in graph.blocks} == {emission}
    assert graph.select[0].name in ("x", "id", "m")


# ---- GROUP BY ----------------------------------------------------------------------------------


def test_grouping() -> None:
    graph = accept(
        f"SELECT A.s, COUNT(*) AS n, SUM(A.y) / COUNT(*) AS mean, A.x + 1 AS k, 5 AS five {AB} "
        "GROUP BY A.s, a.X + 1"
    )
    assert graph.is_grouped
    assert [str(g) for g in graph.group_by] == ["A.s", "(A.x + 1)"]
    assert [str(a) for a in graph.aggregates] == ["COUNT(*)", "SUM(CAST(A.y AS int64))"]
    assert [str(i.expression) for i in graph.select] == [
        "$group0",
        "$aggregate0",
        "(CAST($aggregate1 AS double) / CAST($aggregate0 AS double))",
        "$group1",
        "5",
    ]
    assert graph.schema.names == ["s", "n", "mean", "k", "five"]
    for item in graph.select:
        for node in walk(item.expression):
            assert not isinstance(node, ColumnNode) or node.stream == GROUPED


@pytest.mark.parametrize(
    ("query", "group_by"),
    [
        ("SELECT x + y AS sum FROM A [NOW] GROUP BY sum", ["(A.x + CAST(A.y AS int64))"]),
        ("SELECT x + y AS sum FROM A [NOW] GROUP BY SUM", ["(A.x + CAST(A.y AS int64))"]),
        ("SELECT COUNT(*) AS n, x FROM A [NOW] GROUP BY 2", ["A.x"]),
        ("SELECT x FROM A [NOW] GROUP BY x, A.x, 1", ["A.x"]),
        ("SELECT COUNT(*) AS n FROM A [NOW] GROUP BY x, s", ["A.x", "A.s"]),
        ("SELECT COUNT(*) AS n FROM A [NOW]", []),
        ("SELECT y AS x, x AS b FROM A [NOW] GROUP BY x, y", ["A.x", "A.y"]),
    ],
)
def test_group_by(query: str, group_by: list[str]) -> None:
    graph = accept(query)
    assert [str(g) for g in graph.group_by] == group_by
    assert graph.is_grouped


@pytest.mark.parametrize(
    ("written", "aggregate", "kind"),
    [
        ("COUNT(*)", "COUNT(*)", "int64"),
        ("COUNT(1)", "COUNT(*)", "int64"),
        ("COUNT(tags)", "COUNT(A.tags)", "int64"),
        ("COUNT(NULL)", "COUNT(NULL)", "int64"),
        ("SUM(x)", "SUM(A.x)", "int64"),
        ("sum(y)", "SUM(CAST(A.y AS int64))", "int64"),
        ("SUM(u)", "SUM(CAST(A.u AS decimal128(20, 0)))", "decimal128(30, 0)"),
        ("SUM(f)", "SUM(CAST(A.f AS double))", "double"),
        ("SUM(d)", "SUM(A.d)", "decimal128(20, 2)"),
        ("SUM(x * 2)", "SUM((A.x * 2))", "int64"),
        ("AVG(x)", "AVG(CAST(A.x AS double))", "double"),
        ("AVG(u)", "AVG(CAST(A.u AS double))", "double"),
        ("AVG(d)", "AVG(A.d)", "decimal128(14, 6)"),
        ("MIN(y)", "MIN(A.y)", "int32"),
        ("MAX(code)", "MAX(CAST(A.code AS string))", "string"),
        ("MAX(flag)", "MAX(A.flag)", "bool"),
        ("MAX(ts)", "MAX(A.ts)", "timestamp[ms]"),
    ],
)
def test_aggregate(written: str, aggregate: str, kind: str) -> None:
    graph = accept(f"SELECT {written} AS value FROM A [NOW]")
    (found,) = graph.aggregates
    assert str(found) == aggregate
    assert str(found.type) == kind
    assert str(graph.select[0].expression) == "$aggregate0"
    assert graph.schema.field("value").type == found.type


@pytest.mark.parametrize(
    ("query", "place", "says"),
    [
        ("SELECT y FROM A [NOW] GROUP BY x", "y", "A.y is neither grouped nor aggregated"),
        ("SELECT x, COUNT(*) FROM A [NOW]", "x", "A.x is neither grouped nor aggregated"),
        ("SELECT x + y FROM A [NOW] GROUP BY x", "y", "A.y is neither grouped"),
        ("SELECT * FROM A [NOW] GROUP BY x", "*", "A.id is neither grouped"),
        ("SELECT SUM(MAX(x)) FROM A [NOW]", "MAX(x)", "inside an aggregate"),
        ("SELECT COUNT(DISTINCT x) FROM A [NOW]", "DISTINCT", "COUNT(DISTINCT …)"),
        ("SELECT SUM(s) FROM A [NOW]", "SUM(s)", "SUM needs a number"),
        ("SELECT AVG(ts) FROM A [NOW]", "AVG(ts)", "AVG needs a number"),
        ("SELECT MAX(tags) FROM A [NOW]", "MAX(tags)", "can be compared"),
        ("SELECT MAX(*) FROM A [NOW]", "MAX(*)", "MAX(*) does not exist"),
        ("SELECT SUM(x, y) FROM A [NOW]", "SUM(x, y)", "one argument"),
        ("SELECT COUNT(*) FROM A [NOW] GROUP BY 2", "2", "no position of SELECT"),
        ("SELECT COUNT(*) FROM A [NOW] GROUP BY 1", "1", "cannot group by an aggregate"),
        ("SELECT COUNT(*) FROM A [NOW] GROUP BY MAX(x)", "MAX(x)", "cannot group by an agg"),
        ("SELECT COUNT(*) FROM A [NOW] GROUP BY 'a'", "'a'", "one group"),
        ("SELECT COUNT(*) FROM A [NOW] GROUP BY tags", "tags", "can be compared"),
        ("SELECT * FROM A [NOW] GROUP BY 1", "1", "cannot group by *"),
        ("SELECT COUNT(*) FROM A [NOW] GROUP x", "x", "BY after GROUP"),
        ("SELECT COUNT(*) FROM A [NOW] GROUP BY ROLLUP (x)", "ROLLUP", "GROUP BY ROLLUP"),
        ("SELECT x FROM A [NOW] GROUP BY ALL", "ALL", "GROUP BY ALL"),
        ("SELECT x FROM A [NOW] GROUP BY x HAVING y > 1", "y", "neither grouped nor aggregated"),
        ("SELECT x FROM A [NOW] GROUP BY x HAVING COUNT(*)", "COUNT(*)", "needs a condition"),
        ("SELECT x FROM A [NOW] GROUP BY x HAVING 1 = 2", "1 = 2", "always false"),
    ],
)
def test_refused_grouping(query: str, place: str, says: str) -> None:
    error = refuse(query)
    assert says in error.message
    assert pointed_at(error) == place


# ---- EXCEPT ------------------------------------------------------------------------------------


def test_except() -> None:
    graph = accept(
        "SELECT A.y AS key, A.s FROM A [NOW] EXCEPT SELECT k, k2.name FROM D AS k2 EXCEPT "
        "(SELECT 5, 'a' FROM B [NOW] WHERE x = 1)"
    )
    assert [block.aliases for block in graph.blocks] == [("A",), ("k2",), ("B",)]
    assert [block.schema for block in graph.minus] == [graph.schema, graph.schema]
    assert [[str(i.expression) for i in block.select] for block in graph.blocks] == [
        ["CAST(A.y AS int64)", "A.s"],
        ["k2.k", "CAST(k2.name AS string)"],
        ["5", "'a'"],
    ]
    assert all(block.minus == () for block in graph.minus)
    assert graph.sources == ("A", "D", "B")


def test_except_allows_columns_that_share_a_name_after_it() -> None:
    graph = accept("SELECT id, x FROM A [NOW] EXCEPT SELECT k, k FROM D")
    assert graph.minus[0].schema.names == ["id", "x"]


@pytest.mark.parametrize(
    ("query", "place", "says"),
    [
        ("SELECT x FROM A [NOW] EXCEPT SELECT k, name FROM D", "k, name", "has 2 columns"),
        ("SELECT x, y FROM A [NOW] EXCEPT SELECT k FROM D", "k", "has 1 column,"),
        ("SELECT x, y FROM A [NOW] EXCEPT SELECT k, name FROM D", "name", "cannot be compared"),
        ("SELECT x, y FROM A [NOW] EXCEPT SELECT * FROM D", "*", "cannot be compared"),
        ("SELECT tags FROM A [NOW] EXCEPT SELECT tags FROM A [NOW] b", "tags", "cannot be compa"),
        ("SELECT NULL FROM A [NOW] EXCEPT SELECT NULL FROM D", "NULL", "cannot be compared"),
        ("SELECT x FROM A [NOW] EXCEPT SELECT x FROM A [NOW]", "A", "both sides of EXCEPT"),
        ("SELECT x FROM A [NOW] EXCEPT ALL SELECT k FROM D", "ALL", "EXCEPT ALL"),
        ("SELECT x FROM A [NOW] EXCEPT DISTINCT SELECT k FROM D", "DISTINCT", "EXCEPT DISTINCT"),
        ("SELECT x FROM A [NOW] EXCEPT (SELECT k FROM D EXCEPT SELECT x FROM B [NOW])", "(", "on"),
        ("SELECT x FROM A [NOW] GROUP BY x EXCEPT SELECT k FROM D", "GROUP", "grouping"),
        ("SELECT x FROM A [NOW] EXCEPT SELECT COUNT(*) FROM D", "COUNT(*)", "grouping"),
        ("SELECT x FROM A [NOW] EXCEPT ISTREAM (SELECT k FROM D)", "ISTREAM", "only once"),
        ("ISTREAM (SELECT RSTREAM x FROM A [NOW])", "RSTREAM", "only once"),
        ("SELECT x FROM A [NOW], A [NOW] WHERE 1 = 1", "A", "twice in FROM"),
    ],
)
def test_refused_except(query: str, place: str, says: str) -> None:
    error = refuse(query)
    assert says in error.message
    assert pointed_at(error) == place


# ---- the graph as a value ------------------------------------------------------------------------


def test_graph_is_a_value() -> None:
    text = f"SELECT A.s, COUNT(*) AS n {AB} AND A.x > 1.5 AND A.ts > DATE '2026-01-31' GROUP BY A.s"
    graph = accept(text)
    assert graph == accept(text)
    assert hash(graph) == hash(accept(text))
    assert pickle.loads(pickle.dumps(graph)) == graph
    assert graph.text == text


def test_package_exports() -> None:
    assert penstock.query.parse is parse
    assert parse("SELECT x FROM A [NOW]", SCHEMAS).aliases == ("A",)


def test_names_match_exactly_before_they_match_in_another_case() -> None:
    graph = accept("SELECT a.id, A.x FROM A [NOW], B [NOW] AS a WHERE A.id = a.id")
    assert [str(i.expression) for i in graph.select] == ["a.id", "A.x"]
    assert graph.stream("a").source == "B"
