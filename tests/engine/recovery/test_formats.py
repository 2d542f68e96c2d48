"""Checkpoints of every format that was ever written are read, and go on as if nothing had been."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import format_cases
import pyarrow as pa
import pytest

import penstock
from penstock.engine.recovery import checkpoint

FORMATS = Path(__file__).parent / "formats"
KEPT = [(each.parent.name, each.name) for each in sorted(FORMATS.glob("*/*"))]


def test_every_format_is_kept() -> None:
    expected = {
        (str(n + 1), name) for n in range(checkpoint._FORMAT) for name in format_cases.CASES
    }
    assert set(KEPT) == expected, "python tests/engine/recovery/format_cases.py formats/N"


@pytest.mark.parametrize(("version", "name"), KEPT, ids=lambda each: each)
def test_a_checkpoint_that_was_kept_goes_on(version: str, name: str) -> None:
    case = format_cases.CASES[name]
    after = penstock.Engine.restore(case.query, (FORMATS / version / name).read_bytes())
    unbroken = case.engine()
    pushes = [format_cases.read_by(case, each) for each in format_cases.pushes()]
    for batches in pushes[: format_cases.BEFORE]:
        unbroken.push(batches)
    if name == "debt":  # What is owed is paid in some later push, as the budget allows.
        assert after.owes
        complete = pa.concat_tables(map(penstock.Engine(case.query).push, pushes)).to_pylist()
        answers = [after.push(each) for each in pushes[format_cases.BEFORE :]] + [after.finish()]
        paid = pa.concat_tables(answers).to_pylist()
        assert paid
        assert not Counter(map(str, paid)) - Counter(map(str, complete))
        return
    for batches in pushes[format_cases.BEFORE :]:
        found, expected = after.push(batches), unbroken.push(batches)
        assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist()))
