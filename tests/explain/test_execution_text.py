"""Which way pushes went, in words."""

from __future__ import annotations

from penstock.explain.execution_text import execution_text


def test_nothing_is_said_if_all_were_compiled() -> None:
    execution = {"compiled": 7, "reference": 0, "reasons": {}}
    assert execution_text({"execution": execution}) == ""


def test_the_most_frequent_reason_comes_first() -> None:
    reasons = {"plans side by side": 2, "a theta join": 1_200}
    execution = {"compiled": 3, "reference": 1_202, "reasons": reasons}
    assert execution_text({"execution": execution}).splitlines() == [
        "pushes: 3 compiled, 1,202 step by step",
        "  1,200 because of a theta join",
        "  2 because of plans side by side",
    ]
