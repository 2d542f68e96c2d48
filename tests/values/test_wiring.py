"""What links two sets of streams: classes with a member in both, found without a look at all."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

import penstock
from penstock.values.wiring import wire

SCHEMA = pa.schema([("ts", pa.int64()), *((name, pa.int64()) for name in "xyz")])
WHERES = {
    "clique": "A.x = B.x AND A.y = C.x AND A.z = D.x AND B.y = C.y AND B.z = D.y AND C.z = D.z",
    "one class": "A.x = B.x AND B.x = C.x AND D.z = A.x",
    "columns of one stream": "A.x = A.y AND A.y = B.x AND C.z = B.x AND C.y = D.y AND C.x = A.z",
}


@pytest.mark.parametrize("where", WHERES.values(), ids=WHERES)
def test_keys_are_the_first_members_of_each_class_on_both_sides(where: str) -> None:
    sources = ", ".join(f"{name} [RANGE 1 SECOND]" for name in "ABCD")
    text = f"SELECT A.x AS x FROM {sources} WHERE {where}"
    wiring = wire(penstock.parse(text, dict.fromkeys("ABCD", SCHEMA)))
    sets = [frozenset(s) for count in (1, 2, 3) for s in itertools.combinations("ABCD", count)]
    linked = 0
    for left, right in itertools.permutations(sets, 2):
        expected = []
        for members in wiring.classes:
            mine = next((m for m in members if m.stream in left), None)
            theirs = next((m for m in members if m.stream in right), None)
            if mine is not None and theirs is not None:
                expected.append((mine, theirs))
        assert wiring.between(left, right).keys == tuple(expected)
        linked += len(expected)
    assert linked > 20
