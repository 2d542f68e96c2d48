"""Plans refuse what is no plan of the query."""

from __future__ import annotations

import pyarrow as pa
import pytest

import penstock
from penstock.errors import PlanError
from penstock.plan import Join, Leaf, StreamSet, read, walk

SCHEMA = pa.schema([("ts", pa.int64()), ("x", pa.int64())])


def query(text: str) -> penstock.JoinGraph:
    return penstock.parse(text, dict.fromkeys("ABCD", SCHEMA))


ABC = """SELECT A.x FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND], C [RANGE 1 SECOND]
         WHERE A.x = B.x AND B.x = C.x"""


def test_every_stream_occurs_once() -> None:
    graph = query(ABC)
    read("((A B) C)").check(graph)
    with pytest.raises(PlanError, match="leaves out C"):
        read("(A B)").check(graph)
    with pytest.raises(PlanError, match="names D, which the query does not have"):
        read("(A B C D)").check(graph)


def test_blocks_after_except() -> None:
    graph = query("SELECT x FROM A [RANGE 1 SECOND] EXCEPT SELECT B.x FROM B [RANGE 1 SECOND]")
    read("A").check(graph)
    read("A - B").check(graph)
    with pytest.raises(PlanError, match="no block after EXCEPT"):
        read("A - C").check(graph)
    with pytest.raises(PlanError, match="subtracts 2 blocks"):
        read("A - B - C").check(graph)


def test_join_needs_two_inputs() -> None:
    with pytest.raises(PlanError, match="at least two"):
        Join((Leaf("A"),))


def test_walk_visits_children_first() -> None:
    root = read("((A B) C)").root
    assert [str(node.streams) for node in walk(root)] == [
        "{A}",
        "{B}",
        "{A, B}",
        "{C}",
        "{A, B, C}",
    ]


def test_stream_set() -> None:
    both = StreamSet.of("B") | StreamSet.of("A")
    assert isinstance(both, StreamSet)
    assert both == StreamSet.of("A", "B") == StreamSet.union_of([StreamSet.of("A"), both])
    assert str(both) == "{A, B}"
    assert eval(repr(both)) == both
    assert {both: 1}[StreamSet.of("A", "B")] == 1


def test_plans_are_values() -> None:
    assert hash(read("((A B) C)")) == hash(read("((A B)   C)"))
    with pytest.raises(AttributeError):
        Leaf("A").stream = "C"  # type: ignore[misc]
