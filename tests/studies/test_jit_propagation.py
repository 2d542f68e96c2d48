"""The 5-way example of Figure 5: feedback goes on to those who make the component.

The figure starts with c1d1 in S_CD and nothing in S_AB. By line 2 of Figure 8 the join of the two
then has told CD that it wants nothing (∅), and takes that back when a1b1 arrives: two messages that
the paper's account leaves out.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import penstock
from penstock_studies.jit.form import AS_PUBLISHED, JIT, Form
from penstock_studies.jit.literal import LiteralJit

PLAN = "(((A B)(C D)) E)"


def query() -> penstock.JoinGraph:
    """Figure 5b: Op4 compares x, y, z, w; all tuples below it match each other."""
    columns = {
        "A": ("b", "x"),
        "B": ("b", "c", "y"),
        "C": ("c", "d", "z"),
        "D": ("d", "w"),
        "E": ("x", "y", "z", "w"),
    }
    return penstock.parse(
        """SELECT A.id AS a, B.id AS b, C.id AS c, D.id AS d, E.id AS e
           FROM A [RANGE 1 MINUTES], B [RANGE 1 MINUTES], C [RANGE 1 MINUTES],
                D [RANGE 1 MINUTES], E [RANGE 1 MINUTES]
           WHERE A.b = B.b AND C.d = D.d AND B.c = C.c
             AND A.x = E.x AND B.y = E.y AND C.z = E.z AND D.w = E.w""",
        schemas={
            name: pa.schema([(each, pa.int64()) for each in ("id", "ts", *more)])
            for name, more in columns.items()
        },
        event_time="ts",
    )


def start(form: Form, *others: dict[str, int]) -> LiteralJit:
    """b1, c1 and d1 are there, and the E tuples ``others``; a1 comes at time 1."""
    run = LiteralJit(query(), PLAN, form, record=True)
    for number, row in enumerate(others):
        run.arrive("E", row, 0, 100 + number)
    run.arrive("B", {"b": 1, "c": 1, "y": 1}, 0)
    run.arrive("C", {"c": 1, "d": 1, "z": 1}, 0)
    run.arrive("D", {"d": 1, "w": 1}, 0)
    assert run.arrive("A", {"b": 1, "x": 1}, 1) == []
    assert [str(each) for each in run.log[:5]] == [
        "CD makes c1d1",
        "ABCD to CD: suspend ∅",
        "AB makes a1b1",
        "ABCD to CD: resume ∅",
        "ABCD makes a1b1c1d1",
    ]
    return run


def messages(run: LiteralJit) -> list[str]:
    """Those after a1b1c1d1 was made."""
    return [str(each) for each in run.log[5:] if "makes" not in str(each)]


E1 = {"x": 1, "y": 1, "z": 1, "w": 1}


@pytest.mark.parametrize("form", [JIT, AS_PUBLISHED])
def test_level_one_components_are_suspended_where_they_are_made(form: Form) -> None:
    """S_E has partners of b1 and d1 (in one tuple), but not of a1 and c1."""
    run = start(form, {"x": 9, "y": 1, "z": 9, "w": 1})
    assert messages(run) == [
        "ABCDE to ABCD: suspend a1, c1",
        "ABCD to AB: suspend a1",
        "ABCD to CD: suspend c1",
    ]
    before = len(run.log)
    run.arrive("B", {"b": 1, "c": 1, "y": 1}, 1)
    run.arrive("D", {"d": 1, "w": 1}, 1)
    assert len(run.log) == before, "a1 is not joined with b2, nor c1 with d2"
    results = run.arrive("E", E1, 2, 1)
    assert messages(run)[3:] == [
        "ABCDE to ABCD: resume a1, c1",
        "ABCD to AB: resume a1",
        "ABCD to CD: resume c1",
    ]
    assert sorted(results) == [(1, b, 1, d, 1) for b in (1, 2) for d in (1, 2)]


@pytest.mark.parametrize("form", [JIT, AS_PUBLISHED])
def test_a_component_of_both_inputs_is_marked(form: Form) -> None:
    """Every component has a partner, and so has every two of them but a1 and c1: Type II."""
    run = start(
        form,
        {"x": 1, "y": 1, "z": 9, "w": 1},
        {"x": 9, "y": 1, "z": 1, "w": 1},
    )
    assert messages(run) == [
        "ABCDE to ABCD: suspend a1c1",
        "ABCD to AB: mark a1",
        "ABCD to CD: mark c1",
    ]
    before = len(run.log)
    run.arrive("D", {"d": 1, "w": 1}, 1)
    assert [str(each) for each in run.log[before:]] == ["CD makes c1d2"], "but not a1b1c1d2"
    before = len(run.log)
    run.arrive("A", {"b": 1, "x": 2}, 1)
    assert "ABCD makes a2b1c1d1" in [str(each) for each in run.log[before:]]
    results = run.arrive("E", E1, 2, 1)
    assert "ABCDE to ABCD: resume a1c1" in messages(run)
    assert "ABCD to AB: unmark a1" in messages(run)
    assert "ABCD to CD: unmark c1" in messages(run)
    assert sorted(results) == [(1, 1, 1, 1, 1), (1, 1, 1, 2, 1)]


def test_a_level_limit_leaves_pairs_alone() -> None:
    run = start(
        Form(level=1),
        {"x": 1, "y": 1, "z": 9, "w": 1},
        {"x": 9, "y": 1, "z": 1, "w": 1},
    )
    assert messages(run) == []
