"""The short form of ``penstock fuzz``; and that it can find something."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from penstock.engine.compiled.compiled_push import CompiledPush
from penstock.testing.fuzz import fuzz, fuzz_large


@pytest.mark.parametrize("start", range(0, 90, 30))
def test_both_ways_and_the_oracle_agree(start: int) -> None:
    ways: Counter[str] = Counter()
    for _, found in fuzz(30, start, large_every=0):
        ways.update(found)
    assert ways["compiled"] > 20


@pytest.mark.parametrize("seed", [49, 99, 149, 199])
def test_both_ways_agree_on_thousands_of_rows(seed: int) -> None:
    fuzz_large(seed)


def test_a_lost_result_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled push loses its last result, if there are several."""
    answered = CompiledPush.answered
    found = CompiledPush.found

    def fewer(self: CompiledPush) -> int:
        count = answered(self)
        return count - 1 if count > 1 else count

    def without_the_last(self: CompiledPush, lasting: bool) -> Any:
        made = found(self, lasting)
        return made if made is None or len(made) < 2 else made.slice(0, len(made) - 1)

    monkeypatch.setattr(CompiledPush, "answered", fewer)
    monkeypatch.setattr(CompiledPush, "found", without_the_last)
    with pytest.raises(AssertionError, match="seed"):
        list(fuzz(100, large_every=0))
