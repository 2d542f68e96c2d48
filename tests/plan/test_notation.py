"""The notation both ways, and what it says about text that is not a plan."""

from __future__ import annotations

import random

import pytest

from penstock.errors import PlanError
from penstock.plan import Join, Leaf, Plan, read, write
from penstock.testing.random_plan import random_plan


@pytest.mark.parametrize(
    "text",
    [
        "A",
        "(A B)",
        "((A B) C)",
        "(A B C)",
        "((A B) C D)",
        "((A B) (C D))",
        "(A B C | A:B,C B:A,C C:A,B)",
        "((A B) C D | (A B):C,D C:(A B),D D:C,(A B))",
        '("my stream" "say ""hi""")',
        "(A B) - C - (D E)",
        "cacq (A B C | A:B,C B:A,C C:A,B)",
        "stairs ((A B) (C D)) - E",
        "stairs-lazy A - (B C)",
        "(stairs lazy)",
        "stairs - lazy",
        "cacq",
        'cacq "my stream"',
    ],
)
def test_reads_what_it_writes(text: str) -> None:
    assert str(read(text)) == text
    assert read(str(read(text))) == read(text)


def test_tree() -> None:
    a, b, c = Leaf("A"), Leaf("B"), Leaf("C")
    assert read("((A B) C)") == Plan(Join((Join((a, b)), c)))
    assert read(" ( A   B C ) ") == Plan(Join((a, b, c)))
    assert read("(A B C | A:C,B B:A,C C:A,B)").root == Join((a, b, c), ((2, 1), (0, 2), (0, 1)))
    assert read("((A))") == Plan(a)
    assert read("A − B") == Plan(a, (b,))


def test_eddies_stand_before_a_tree() -> None:
    assert read("stairs(A B)") == read(" stairs  (A B)") == Plan(read("(A B)").root, (), "stairs")
    assert read("stairs-lazy (A B)").eddy == "stairs-lazy"
    assert read("cacq").root == Leaf("cacq")  # A stream may have the name of an eddy.
    assert read("cacq - A").minus == (Leaf("A"),)
    assert read("stairs-lazy").minus == (Leaf("lazy"),)
    with pytest.raises(PlanError, match="no eddy is called 'ripple'"):
        Plan(Leaf("A"), eddy="ripple")


def test_random_plans_survive() -> None:
    for seed in range(300):
        text = random_plan(random.Random(seed), ["A", "B", "C", "D", "E"][: 1 + seed % 5])
        assert read(write(read(text))) == read(text)


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("", "expected the name of a stream", 0),
        ("(A B", "this parenthesis is never closed", 0),
        ("cacq ((A B) C)", "cacq stores nothing but windows", 0),
        ("stairs (A $)", "unexpected '$'", 10),
        ("(A B))", "unexpected text after the plan", 5),
        ("(A A)", "stream A occurs twice", 0),
        ("((A B) (B C))", "stream B occurs twice", 0),
        ("(A $ B)", "unexpected '$'", 3),
        ("(A B | A:B)", "no probe order for B", 5),
        ("(A B | A:C B:A)", "C is not an input of this join; they are: A, B", 9),
        ("(A B C | A:B B:A,C C:A,B)", "must name every other input once", 0),
        ("(A B | A:B A:B)", "a second probe order", 11),
    ],
)
def test_errors_point_at_the_place(text: str, message: str, column: int) -> None:
    with pytest.raises(PlanError) as caught:
        read(text)
    shown = str(caught.value)
    assert message in shown
    caret = next(line for line in shown.splitlines() if line.strip(" ") == "^")
    assert caret.index("^") == len("line 1: ") + column
