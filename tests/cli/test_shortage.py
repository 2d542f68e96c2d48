"""A shortage of CPU in words."""

from __future__ import annotations

import pytest

from penstock.cli.run.shortage import shortage


@pytest.mark.parametrize(("seconds", "told"), [(0.0, "since this batch"), (5.0, "for 5.0 s")])
def test_since_when_and_at_what_price(seconds: float, told: str) -> None:
    cell = {
        "short": True,
        "short_for": seconds,
        "lost": {"results": 846},
        "debt": {"probes": 0, "age": 0.0},
        "policy": "shed",
    }
    assert shortage([{"short": False}, cell]) == f"{told}, about 846 results lost"
    assert shortage([{"short": False}]) == ""
