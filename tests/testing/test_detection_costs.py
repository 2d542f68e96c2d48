"""The study of what finds partners: all kernels run, on keys that are there and that are not."""

from __future__ import annotations

import argparse

import detection_costs
import pytest


def test_index_and_filter_find_the_same() -> None:
    calls = detection_costs.kernels(3_000, seed=1)
    assert calls["index, no partner"]() == 0
    assert calls["index, partner"]() == calls["filter, partner"]() == 4_096
    assert calls["filter, no partner"]() < 4_096 / 20  # type: ignore[operator]


def test_a_table_of_all_work(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    detection_costs.add_arguments(parser)
    assert detection_costs.run(parser.parse_args(["--rows", "50", "500", "--rounds", "1"]))
    printed = capsys.readouterr().out
    assert "500 rows" in printed
    for name in detection_costs.kernels(50, 1):
        assert name in printed
