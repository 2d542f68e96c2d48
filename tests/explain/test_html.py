"""What a notebook shows: well-formed, with the numbers, and names as text."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pyarrow as pa
import pytest

import penstock
from penstock.explain.explanation import explain
from penstock.plan.notation import read
from penstock.planning.problem import Problem

SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.int64()), ("ts", pa.int64())])
ODD = "<b>&"


def query() -> penstock.JoinGraph:
    return penstock.parse(
        f'SELECT A.id AS a FROM A [RANGE 1 MINUTE], B [RANGE 1 MINUTE] AS "{ODD}", '
        f'C [RANGE 1 MINUTE] WHERE A.x = "{ODD}".x AND "{ODD}".x = C.x',
        schemas=dict.fromkeys("ABC", SCHEMA),
    )


def texts(html: str) -> list[str]:
    return [text.strip() for text in ElementTree.fromstring(html).itertext() if text.strip()]


@pytest.mark.parametrize("plan", ["((A B) C)", "(A B C D)", "(A B) - (C D)", f'("{ODD}" B)'])
def test_a_plan_draws_itself(plan: str) -> None:
    shown = texts(read(plan)._repr_html_())
    names = [name for name in ("A", "B", "C", "D", ODD) if name in plan]
    assert sorted(text for text in shown if text in names) == sorted(names)
    assert sum(text in ("join", "mjoin") for text in shown) == plan.count("(")


def test_an_explanation_shows_costs_and_alternatives() -> None:
    statistics = penstock.Statistics(rates={"A": 10.0, ODD: 10.0, "C": 10.0})
    explanation = explain(Problem(query(), statistics), read(f'((A "{ODD}") C)'))
    shown = texts(explanation._repr_html_())
    assert ODD in shown
    assert "two-layer" in shown
    assert "results" in shown


def test_an_engine_shows_what_it_holds() -> None:
    engine = penstock.Engine(query(), plan=f'((A "{ODD}") C)', feedback="off")
    rows = pa.table({"id": [1, 2, 3], "x": [1, 1, 2], "ts": [1, 2, 3]})
    engine.push({"A": rows, "B": rows, "C": rows})
    shown = texts(engine._repr_html_())
    assert "9" in shown
    assert f'(A "{ODD}")' in shown
