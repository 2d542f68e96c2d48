"""A mistake in a very long line is shown with what is around it, not with all of the line."""

from __future__ import annotations

import pytest

import penstock
from penstock.errors import QueryError, point_at


def test_a_long_line_is_cut_around_the_mistake() -> None:
    columns = ", ".join(f"A.x AS c{i}" for i in range(100_000))
    with pytest.raises(QueryError) as raised:
        penstock.parse(f"SELECT {columns}, A.wrong AS w FROM A [RANGE 1 SECOND]", {})
    assert len(str(raised.value)) < 2_000


@pytest.mark.parametrize("start", [0, 5, 99, 100, 101, 450, 899, 900])
def test_the_caret_is_below_its_place(start: int) -> None:
    text = "".join(chr(ord("a") + i % 26) for i in range(900))
    shown, carets = point_at(text, start).split("\n")
    at = carets.index("^")
    assert shown[at : at + 1] == text[start : start + 1]
    assert len(shown) < 230
