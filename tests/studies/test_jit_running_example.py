"""The running example of the paper (Table I, Figure 1), message by message."""

from __future__ import annotations

import pyarrow as pa
import pytest

import penstock
from penstock_studies.jit.form import AS_PUBLISHED, DOE, JIT, REF, Form
from penstock_studies.jit.literal import LiteralJit

TABLE_I = [
    ("C", {"y": 7}, 0, 0),  # Not in the table: with no C at all, everything would be unwanted.
    ("B", {"x": 1}, 0, 1),
    ("B", {"x": 1}, 0, 2),
    ("B", {"x": 1}, 0, 3),
    ("A", {"x": 1, "y": 100}, 1, 1),
    ("B", {"x": 1}, 2, 4),
    ("A", {"x": 1, "y": 100}, 3, 2),
]
C1 = ("C", {"y": 100}, 4, 1)
RESULTS = [(a, b, 1) for a in (1, 2) for b in (1, 2, 3, 4)]


def query() -> penstock.JoinGraph:
    def schema(*names: str) -> pa.Schema:
        return pa.schema([(name, pa.int64()) for name in names])

    return penstock.parse(
        """SELECT A.id AS a, B.id AS b, C.id AS c
           FROM A [RANGE 5 MINUTES], B [RANGE 5 MINUTES], C [RANGE 5 MINUTES]
           WHERE A.x = B.x AND A.y = C.y""",
        schemas={
            "A": schema("id", "x", "y", "ts"),
            "B": schema("id", "x", "ts"),
            "C": schema("id", "y", "ts"),
        },
        event_time="ts",
    )


def start(form: Form, without_c: bool = False) -> LiteralJit:
    run = LiteralJit(query(), "((A B) C)", form, record=True)
    for each in TABLE_I[without_c:]:
        assert run.arrive(*each) == []
    return run


def news(run: LiteralJit, before: int) -> list[str]:
    return [str(each) for each in run.log[before:]]


@pytest.mark.parametrize("form", [JIT, AS_PUBLISHED, Form(level=1)])
def test_one_partial_result_then_silence(form: Form) -> None:
    run = start(form)
    assert news(run, 0) == ["AB makes a1b1", "ABC to AB: suspend a1"]


@pytest.mark.parametrize("form", [JIT, AS_PUBLISHED, Form(level=1)])
def test_seven_partial_results_when_c1_comes(form: Form) -> None:
    run = start(form)
    before = len(run.log)
    results = run.arrive(*C1)
    seven = ["a1b2", "a1b3", "a1b4", "a2b1", "a2b2", "a2b3", "a2b4"]
    assert news(run, before)[:8] == ["ABC to AB: resume a1", *(f"AB makes {s}" for s in seven)]
    assert sorted(results) == RESULTS
    assert run.ledger.partial_results == 8


def test_without_feedback_all_are_made_at_once() -> None:
    run = start(REF)
    assert run.ledger.partial_results == 8
    assert sorted(run.arrive(*C1)) == RESULTS


@pytest.mark.parametrize("form", [DOE, JIT])
def test_nothing_is_wanted_while_there_is_no_c(form: Form) -> None:
    run = start(form, without_c=True)
    assert news(run, 0) == ["AB makes a1b1", "ABC to AB: suspend ∅"]
    before = len(run.log)
    assert sorted(run.arrive(*C1)) == RESULTS
    assert news(run, before)[0] == "ABC to AB: resume ∅"


def test_a_filter_is_as_good_here() -> None:
    run = start(Form(detection="bloom"))
    assert news(run, 0) == ["AB makes a1b1", "ABC to AB: suspend a1"]
    assert sorted(run.arrive(*C1)) == RESULTS


def test_mistakes_are_refused() -> None:
    with pytest.raises(penstock.PlanError, match="binary"):
        LiteralJit(query(), "(A B C)")
    run = LiteralJit(query(), "((A B) C)")
    with pytest.raises(penstock.InputError, match="unknown stream 'D'"):
        run.arrive("D", {}, 0)
    run.arrive("B", {"x": 1}, 5)
    with pytest.raises(penstock.InputError, match="in order"):
        run.arrive("B", {"x": 1}, 4)
    with pytest.raises(penstock.OptionError, match="level"):
        Form(level=-1)


def test_what_sleeps_dies() -> None:
    run = start(JIT)
    assert run.ledger.tuples == 8, "c0, b1 to b4, a1b1; a1 and a2 are asleep"
    late = 5 * 60_000 + 4
    assert run.arrive("C", {"y": 100}, late) == []
    assert run.ledger.tuples == 1
    assert [str(each) for each in run.log if "resume" in str(each)] == []


def test_a_known_sub_tuple_outlives_the_tuple_in_which_it_was_found() -> None:
    run = start(JIT)
    between = 5 * 60_000 + 2  # a1 of time 1 is dead, a2 of time 3 and b4 of time 2 are not
    assert run.arrive("C", {"y": 100}, between, 1) == [(2, 4, 1)]
