"""What the numbers of JAQPOT's Figure 12 need: no cap on a path, and a JDAM with one way a join."""

from __future__ import annotations

import pytest

from penstock_studies.overload_as_written import throughput_as_written
from penstock_studies.overload_figures import Family


def at(share: int, family: Family) -> dict[str, float]:
    rows = throughput_as_written("linear", 1, 60, family)
    found = next(row for row in rows if row["resources"] == share)
    return {name: float(value) for name, value in found.items()}


def test_80_per_cent_at_60_needs_paths_beyond_the_rates_of_their_streams() -> None:
    found = at(60, "figure-10")
    assert found["grepp"] == pytest.approx(60, abs=1)
    assert found["grepp, no cap"] > 70
    assert at(100, "figure-10")["grepp"] == pytest.approx(100)


def test_six_times_jdam_at_40_needs_a_jdam_with_one_way() -> None:
    found = at(40, "tenth")
    assert found["grepp"] / found["jdam"] < 3
    assert found["grepp"] / found["jdam, one way"] > 4
