"""Whatever the text is, the answer is a graph that keeps its promises, or a QueryError in the text.

Three sources of text: good queries cut and stirred, words of the language in any order, and
expressions made by a grammar. What is accepted is checked against the promise of
:mod:`penstock.query.expression`: one type on both sides, conversions that Arrow knows.
"""

from __future__ import annotations

import pickle
import re

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from query_schemas import SCHEMAS

from penstock.errors import QueryError
from penstock.query import JoinGraph, parse
from penstock.query.expression import (
    And,
    Arithmetic,
    Cast,
    Comparison,
    Constant,
    Expression,
    Not,
    Or,
    walk,
)
from penstock.query.join_graph import EquiPredicate
from penstock.query.types import can_cast, is_comparable

GOOD = [
    "SELECT A.id AS a, B.id AS b, C.id AS c FROM A [RANGE 5 MINUTES], B [RANGE 5 MINUTES], "
    "C [RANGE 5 MINUTES] WHERE A.x = B.x AND A.y = C.x",
    "ISTREAM (SELECT a.x, b.* FROM A [PARTITION BY x, s ROWS 3] a JOIN B [ROWS 5] AS b "
    "ON a.x = b.x AND a.s LIKE 'a%' CROSS JOIN D)",
    "SELECT COUNT(*), SUM(a.y) / COUNT(*) AS mean, a.x + 1 AS k2 FROM A [RANGE 1.5 SEC] AS a "
    "FRESHNESS 12 MINUTES, A [NOW] b WHERE a.x = b.x AND b.ts BETWEEN a.ts - INTERVAL 5 SECONDS "
    "AND a.ts + INTERVAL '1 day 2 hours' GROUP BY a.x, k2",
    "SELECT a.s FROM A [UNBOUNDED] a EXCEPT SELECT name FROM D WHERE k IN (1, 2, 3) "
    "AND NOT (k < 2 OR name IS NOT NULL)",
    "SELECT CAST(x AS DECIMAL(10, 2)) + 1.5, -y, ABS(z), COALESCE(s, 'x''y'), \"d\" "
    "FROM A [RANGE UNBOUNDED] WHERE ts > TIMESTAMP '2024-01-01 00:00:00' "
    "AND day <> DATE '2024-01-01' AND u % 3 != 1e3 AND flag AND TRUE",
]
TOKENS = re.compile(r"\w+|'[^']*'|[^\w\s]|\s+")
ODD = "( ) [ ] ' \" ` -- /* */ {# #} :: -> \n \t \x00 é 𝒳 0x 1e5 .. @ ? :x $1 # ! ~ & ^ \\ { } <=>"
WORDS = sorted({word for query in GOOD for word in TOKENS.findall(query)}) + ODD.split(" ")
EXAMPLES = settings(max_examples=300, derandomize=True, deadline=None, database=None)


def check(text: str) -> JoinGraph | None:
    """``text`` gives a sound graph, or an error that points into the text."""
    try:
        graph = parse(text, SCHEMAS)
    except QueryError as error:
        check_error(error, text)
        return None
    check_graph(graph)
    return graph


def check_error(error: QueryError, text: str) -> None:
    assert error.text == text
    assert error.start is not None
    assert error.end is not None
    assert 0 <= error.start < error.end
    assert error.start <= len(text)
    assert str(error).startswith(error.message)


def check_graph(graph: JoinGraph) -> None:
    assert pickle.loads(pickle.dumps(graph)) == graph
    for block in graph.blocks:
        assert [i.expression.type for i in block.select] == graph.schema.types
        for predicate in block.predicates:
            assert predicate.expression.type == pa.bool_()
            assert predicate.streams
            assert predicate.streams <= set(block.aliases)
            check_expression(predicate.expression)
            if isinstance(predicate, EquiPredicate):
                assert predicate.side(predicate.left_stream) == predicate.left
        for item in block.select:
            check_expression(item.expression)
        for key in block.group_by:
            check_expression(key)
        for aggregate in block.aggregates:
            if aggregate.argument is not None:
                check_expression(aggregate.argument)


def check_expression(expression: Expression) -> None:
    for node in walk(expression):
        assert str(node)
        match node:
            case Cast(operand=operand):
                assert operand.type != node.type
                assert can_cast(operand.type, node.type)
            case Comparison(left=left, right=right):
                assert left.type == right.type
                assert is_comparable(left.type)
                assert node.type == pa.bool_()
            case Arithmetic(left=left, right=right):
                kinds = {node.type, left.type, right.type}
                units = {getattr(kind, "unit", None) for kind in kinds}
                assert len(kinds) == 1 or (len(units) == 1 and None not in units)
            case And(operands=operands) | Or(operands=operands):
                assert len(operands) > 1
                assert {o.type for o in operands} == {pa.bool_()}
                assert not any(type(o) is type(node) for o in operands)
            case Not(operand=operand):
                assert operand.type == pa.bool_()
            case Constant():
                pa.scalar(node.value, type=node.type)


@EXAMPLES
@given(st.sampled_from(GOOD), st.data())
def test_good_queries_cut_and_stirred(query: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        words = TOKENS.findall(query)
        place = data.draw(st.integers(0, max(0, len(words) - 1)))
        word = data.draw(st.sampled_from(WORDS))
        change = data.draw(st.sampled_from(["cut", "drop", "put", "swap", "replace", "character"]))
        if change == "cut":
            query = query[: data.draw(st.integers(0, len(query)))]
        elif change == "drop":
            query = "".join(words[:place] + words[place + 1 :])
        elif change == "put":
            query = "".join([*words[:place], word, *words[place:]])
        elif change == "replace":
            query = "".join([*words[:place], word, *words[place + 1 :]])
        elif change == "swap" and words:
            other = data.draw(st.integers(0, len(words) - 1))
            words[place], words[other] = words[other], words[place]
            query = "".join(words)
        else:
            at = data.draw(st.integers(0, len(query)))
            query = query[:at] + data.draw(st.characters()) + query[at:]
    check(query)


@EXAMPLES
@given(st.lists(st.sampled_from(WORDS), max_size=30))
def test_words_in_any_order(words: list[str]) -> None:
    check(" ".join(words))
    check("SELECT " + " ".join(words) + " FROM A [NOW]")
    check("SELECT x FROM A [NOW] WHERE " + " ".join(words))


@EXAMPLES
@given(st.text(max_size=60))
def test_any_text(text: str) -> None:
    check(text)


COLUMNS = [f"A.{name}" for name in SCHEMAS["A"].names]
LITERALS = ["5", "-1", "0.25", "1e2", "'a'", "''", "NULL", "TRUE", "DATE '2026-01-31'"]
LITERALS += ["TIMESTAMP '2026-01-31 12:00:00'", "INTERVAL 5 SECONDS", "18446744073709551615"]
TYPES = ["INT", "BIGINT", "DOUBLE", "STRING", "DECIMAL(12, 3)", "DATE", "TIMESTAMP", "BOOLEAN"]


def _composed(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operator = st.sampled_from(["+", "-", "*", "/", "%", "=", "<>", "<", ">=", "AND", "OR"])
    return st.one_of(
        st.tuples(inner, operator, inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, operator, inner).map(" ".join),
        inner.map("NOT {}".format),
        inner.map("- {}".format),
        inner.map("{} IS NOT NULL".format),
        inner.map("ABS({})".format),
        st.tuples(inner, inner).map(lambda t: f"COALESCE({t[0]}, {t[1]})"),
        st.tuples(inner, inner, inner).map(lambda t: f"{t[0]} BETWEEN {t[1]} AND {t[2]}"),
        st.tuples(inner, inner, inner).map(lambda t: f"{t[0]} IN ({t[1]}, {t[2]})"),
        st.tuples(inner, st.sampled_from(TYPES)).map(lambda t: f"CAST({t[0]} AS {t[1]})"),
    )


EXPRESSIONS = st.recursive(st.sampled_from(COLUMNS + LITERALS), _composed, max_leaves=6)


@EXAMPLES
@given(EXPRESSIONS)
def test_expressions(written: str) -> None:
    check(f"SELECT {written} AS value FROM A [NOW]")
    check(f"SELECT A.x FROM A [NOW] WHERE {written}")
    check(f"SELECT COUNT(*) AS n FROM A [NOW] GROUP BY {written}")
    check(f"SELECT {written} AS a FROM A [NOW] EXCEPT SELECT k FROM D")


def test_good_queries_are_good() -> None:
    assert all(check(query) for query in GOOD)


def test_deep_nesting_is_an_error_and_wide_nesting_is_not() -> None:
    deep = "SELECT x FROM A [NOW] WHERE x = " + "(" * 2_000 + "1" + ")" * 2_000
    assert check(deep) is None
    assert check("SELECT " + "-" + " -" * 3_000 + "x FROM A [NOW]") is None
    assert check("SELECT x FROM A [NOW] WHERE x = 1" + " + 1" * 5_000) is None
    wide = check("SELECT x FROM A [NOW] WHERE x > 0" + " AND x <> 1 OR x = 2" * 1_000)
    assert wide is not None
    many = check("SELECT x FROM A [NOW] WHERE " + " AND ".join(f"x <> {i}" for i in range(2_000)))
    assert many is not None
    assert len(many.predicates) == 2_000
