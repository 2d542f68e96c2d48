"""The bench of recovery: killed processes, results as many in both ways, and figures are told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.cli.main import main


def test_it_tells_both_ways(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "found.json"
    rows = ["--rows", "4000", "--format", "parquet,csv"]
    assert main(["bench", "recovery", *rows, "--json", str(file)]) == 0
    found = json.loads(file.read_text())
    assert [each["format"] for each in found] == ["parquet", "csv"]
    assert len({each["results"] for each in found}) == 1
    assert found[0]["results"] > 0
    assert "with a snapshot" in capsys.readouterr().out
    assert main(["bench", "recovery", "--format", "orc"]) != 0
