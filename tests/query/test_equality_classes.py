"""Classes of what is equal, against reachability in the graph of equalities."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.query.equality_classes import equality_classes

PAIRS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=12)


def reachable(pairs: list[tuple[int, int]], start: int) -> set[int]:
    """Whatever is equal to ``start``, one step after another."""
    found = {start}
    while True:
        more = {m for pair in pairs if found & set(pair) for m in pair} - found
        if not more:
            return found
        found |= more


@given(PAIRS)
def test_classes_are_what_can_be_reached(pairs: list[tuple[int, int]]) -> None:
    classes = equality_classes(pairs)
    members = [member for each in classes for member in each]
    assert sorted(members) == sorted({member for pair in pairs for member in pair})
    for each in classes:
        assert set(each) == reachable(pairs, each[0])
    firsts = [member for pair in pairs for member in pair]
    assert [c[0] for c in classes] == sorted((c[0] for c in classes), key=firsts.index)
