"""WHERE and ON: conjuncts, hash-join predicates, and whether the streams hang together."""

from __future__ import annotations

import pytest
from query_schemas import accept, pointed_at, refuse

from penstock.query.connectivity import parts
from penstock.query.join_graph import EquiPredicate

FROM = "SELECT A.id FROM A [NOW], B [NOW], C [NOW] WHERE "
LINKED = " AND A.id = B.id AND B.id = C.id"


@pytest.mark.parametrize(
    ("where", "equi", "theta"),
    [
        ("A.x = B.x", ["A.x = B.x"], []),
        ("A.x = B.x AND B.x = A.x AND A.x = B.x", ["A.x = B.x"], []),
        ("A.x + 1 = B.x * 2", ["(A.x + 1) = (B.x * 2)"], []),
        ("A.y = B.x", ["CAST(A.y AS int64) = B.x"], []),
        ("NOT A.x <> B.x", ["A.x = B.x"], []),
        ("A.x IN (B.x)", ["A.x = B.x"], []),
        ("(A.x = B.x AND (A.y = B.x AND B.x = C.x))", None, []),
        ("A.x = 5", [], ["A.x = 5"]),
        ("A.x = A.y", [], ["A.x = CAST(A.y AS int64)"]),
        ("A.x = B.x + C.x", [], ["A.x = (B.x + C.x)"]),
        ("A.x - B.x = 0", [], ["(A.x - B.x) = 0"]),
        ("A.x < B.x", [], ["A.x < B.x"]),
        ("(A.x = B.x OR A.y = 1)", [], ["(A.x = B.x OR A.y = 1)"]),
        ("A.x BETWEEN B.x AND C.x", [], ["A.x >= B.x", "A.x <= C.x"]),
        ("A.x BETWEEN B.x AND B.x AND TRUE", [], ["A.x >= B.x", "A.x <= B.x"]),
        ("NOT (A.x < 1 OR A.y = 2)", [], ["A.x >= 1", "A.y <> 2"]),
        ("A.flag AND NOT A.flag", [], ["A.flag", "NOT A.flag"]),
        ("1 = 1 AND A.flag AND 'a' < 'b'", [], ["A.flag"]),
        ("A.flag AND A.flag AND (A.flag)", [], ["A.flag"]),
    ],
)
def test_conjuncts(where: str, equi: list[str] | None, theta: list[str]) -> None:
    graph = accept(FROM + where + LINKED)
    linked = ["A.id = B.id", "B.id = C.id"]
    found = [str(p) for p in graph.predicates if isinstance(p, EquiPredicate)]
    assert [str(p) for p in graph.predicates if not isinstance(p, EquiPredicate)] == theta
    if equi is not None:
        assert found == equi + linked


def test_sides_of_an_equi_predicate() -> None:
    (predicate,) = accept("SELECT A.x FROM A [NOW], B [NOW] WHERE B.x + 1 = A.x").predicates
    assert isinstance(predicate, EquiPredicate)
    assert predicate.left_stream == "B"
    assert str(predicate.side("A")) == "A.x"
    assert predicate.streams == {"A", "B"}


def test_on_is_where() -> None:
    joined = accept(
        "SELECT A.id FROM A [NOW] JOIN B [NOW] ON A.x = B.x AND A.y > 3 INNER JOIN C [NOW] AS c "
        "ON B.id = c.id WHERE A.flag"
    )
    listed = accept(
        "SELECT A.id FROM A [NOW], B [NOW], C [NOW] AS c "
        "WHERE A.x = B.x AND A.y > 3 AND B.id = c.id AND A.flag"
    )
    assert joined.predicates == listed.predicates
    assert joined.streams == listed.streams


@pytest.mark.parametrize(
    ("where", "place", "says"),
    [
        ("FALSE", "FALSE", "always false"),
        ("A.flag AND 1 = 2", "1 = 2", "always false"),
        ("NULL", "NULL", "always NULL"),
        ("A.x = NULL", "A.x = NULL", "always NULL"),
        ("CAST('5' AS INT) = 5", "CAST('5' AS INT) = 5", "reads no stream"),
        ("A.x", "A.x", "WHERE needs a condition"),
        ("COUNT(*) > 5", "COUNT(*)", "stands only in SELECT"),
    ],
)
def test_refused_condition(where: str, place: str, says: str) -> None:
    error = refuse(FROM + where + LINKED if where != "A.x" else FROM + where)
    assert says in error.message
    assert pointed_at(error) == place


@pytest.mark.parametrize(
    "query",
    [
        "FROM A [NOW], B [NOW], C [NOW] WHERE A.x = B.x AND B.x < C.x",
        "FROM A [NOW], B [NOW], C [NOW] WHERE A.x + B.x = C.x",
        "FROM A [NOW], B [NOW], C [NOW] WHERE A.x = B.x OR C.x = 1",
        "FROM A [NOW] CROSS JOIN B [NOW], C [NOW] WHERE A.x = C.x",
        "FROM A [NOW] CROSS JOIN B [NOW] CROSS JOIN C [NOW]",
        "FROM A [NOW] JOIN B [NOW] ON A.x = B.x CROSS JOIN D",
    ],
)
def test_connected(query: str) -> None:
    accept("SELECT A.x " + query)


@pytest.mark.parametrize(
    ("query", "place", "says"),
    [
        ("FROM A [NOW], B [NOW]", "B [NOW]", "no predicate links B to A:"),
        (
            "FROM A [NOW], B [NOW] b, C [NOW] WHERE A.x = C.x AND b.x = 1",
            "B [NOW] b",
            "no predicate links b to A and C:",
        ),
        (
            "FROM A [NOW], D, B [NOW], C [NOW] WHERE A.x = D.k AND B.x = C.x",
            "B [NOW]",
            "no predicate links B and C to A and D:",
        ),
        ("FROM A [NOW] JOIN B [NOW] ON TRUE", "B [NOW]", "no predicate links B to A:"),
    ],
)
def test_cross_product(query: str, place: str, says: str) -> None:
    error = refuse("SELECT A.x " + query)
    assert says in error.message
    assert pointed_at(error) == place
    assert "CROSS JOIN" in (error.hint or "")
    accept("SELECT A.x " + query, cross_products=True)


def test_each_block_of_except_is_connected_by_itself() -> None:
    error = refuse("SELECT x FROM A [NOW] EXCEPT SELECT B.x FROM B [NOW], C [NOW]")
    assert "no predicate links C to B" in error.message


def test_parts() -> None:
    assert parts("abcde", ["ab", "d", "ce", "ea"]) == [["a", "b", "c", "e"], ["d"]]
    assert parts("ab", []) == [["a"], ["b"]]
