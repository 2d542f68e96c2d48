"""A campaign of random cases goes on where it was, and stops at a case that differs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import OptionError
from penstock.testing import campaign
from penstock.testing.campaign import Campaign


@pytest.fixture
def seeds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Seeds that were run; 7 differs as long as it is the first time."""
    run: list[int] = []

    def fuzz(cases: int, seed: int, large_every: int) -> Iterator[tuple[int, dict[str, int]]]:
        for each in range(seed, seed + cases):
            run.append(each)
            assert each != 7 or run.count(7) > 1, "seed 7"
            yield each, {}

    monkeypatch.setattr(campaign, "fuzz", fuzz)
    return run


def test_it_goes_on_where_it_was(tmp_path: Path, seeds: list[int]) -> None:
    path = tmp_path / "cases.json"
    ticks = iter(range(100))
    Campaign.read(path, 2, 50).go_on(path, 10, seconds=3, clock=lambda: next(ticks))
    first = list(seeds)
    assert 0 < len(first) < 5
    with pytest.raises(AssertionError):
        Campaign.read(path, 2, 50).go_on(path, 10)
    again = Campaign.read(path, 2, 50)
    assert again.next == 7
    again.go_on(path, 10)
    assert seeds == [2, 3, 4, 5, 6, 7, 7, 8, 9, 10, 11]
    assert Campaign.read(path, 2, 50).cases == 10
    Campaign.read(path, 2, 50).go_on(path, 10)
    assert len(seeds) == 11


def test_a_file_of_something_else_is_refused(tmp_path: Path, seeds: list[int]) -> None:
    path = tmp_path / "cases.json"
    Campaign.read(path, 0, 50).go_on(path, 1)
    with pytest.raises(OptionError, match="is about --seed 0 --large-every 50, not --seed 1"):
        Campaign.read(path, 1, 50)
    path.write_text("[1]")
    with pytest.raises(OptionError, match="is no record of a campaign"):
        Campaign.read(path, 0, 50)
