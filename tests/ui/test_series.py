"""The past in bounded room: sums stay, readers that ask for changes see what others see."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.ui.series import Mark, Series


def all_of(series: Series) -> dict[str, Any]:
    return series.since(Mark())[0]


@given(st.lists(st.integers(0, 1_000), max_size=300), st.sampled_from([2, 4, 10]))
def test_no_more_points_than_wanted_and_nothing_left_out(values: list[int], most: int) -> None:
    series = Series({"sum": "sum", "top": "max", "now": "last"}, capacity=most)
    for number, value in enumerate(values):
        series.add(number, {"sum": value, "top": value, "now": value})
    found = all_of(series)
    columns = found["columns"]
    assert len(found["at"]) == len(series) <= most
    assert sum(columns["sum"]) == sum(values)
    assert max(columns["top"], default=None) == max(values, default=None)
    assert columns["now"][-1:] == values[-1:]
    assert found["at"] == sorted(found["at"])


@given(st.lists(st.lists(st.integers(0, 99), max_size=9), max_size=40))
def test_a_reader_of_changes_has_the_whole(parts: list[list[int]]) -> None:
    series = Series({"sum": "sum"}, capacity=8)
    mark = Mark()
    times: list[float] = []
    sums: list[float] = []
    for number, part in enumerate(parts):
        for place, value in enumerate(part):
            series.add(number + place / 10, {"sum": value})
        news: Any
        news, mark = series.since(mark)
        times = times[: news["first"]] + news["at"]
        sums = sums[: news["first"]] + news["columns"]["sum"]
        whole = all_of(series)
        assert times == whole["at"]
        assert sums == whole["columns"]["sum"]
