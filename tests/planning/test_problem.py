"""From a query and statistics to numbers: windows, classes, theta joins, EXCEPT, feedback."""

from __future__ import annotations

import pyarrow as pa
import pytest
from planning_graphs import join_query

import penstock
from penstock.errors import OptionError
from penstock.plan import read
from penstock.planning.problem import Problem
from penstock.planning.statistics import Statistics
from penstock.planning.storage import TUPLES
from penstock.planning.unit_costs import UnitCosts

SCHEMA = pa.schema([("ts", pa.int64()), ("x", pa.int64()), ("y", pa.int64()), ("s", pa.string())])
ZERO = dict.fromkeys(UnitCosts().to_json(), 0.0)


def _problem(text: str, statistics: Statistics, **options: object) -> Problem:
    names = dict.fromkeys("ABCD", SCHEMA)
    static = {"T": pa.schema([("x", pa.int64()), ("y", pa.int64())])}
    query = penstock.parse(text, schemas=names | static)
    return Problem(query, statistics, **{"storage": TUPLES, **options})  # type: ignore[arg-type]


def _sizes(problem: Problem, block: int = 0) -> dict[str, float]:
    found = problem.blocks[block]
    return {name: found.cardinality.size(1 << i) for i, name in enumerate(found.names)}


def test_windows_of_all_kinds() -> None:
    rates = {"A": 10, "B": 10, "C": 10}
    timed = _problem(
        """SELECT A.x FROM A [RANGE 5 SECONDS], B [NOW], C [UNBOUNDED], T
           WHERE A.x = B.x AND B.x = C.x AND T.x = A.x""",
        Statistics(rates, sizes={"T": 500}, horizon=100, distinct={("A", "x"): 10}),
    )
    assert _sizes(timed) == pytest.approx({"A": 50, "B": 0.01, "C": 1000, "T": 500})
    turnovers = timed.blocks[0].cardinality.turnovers
    assert list(turnovers) == pytest.approx([1 / 5, 1000, 1 / 100, 0])
    assert any("unbounded window of C" in each for each in timed.assumptions)
    rows = _problem(
        """SELECT A.x FROM A [ROWS 20], B [PARTITION BY y ROWS 3], C [PARTITION BY y ROWS 3]
           WHERE A.x = B.x AND B.x = C.x""",
        Statistics(rates, distinct={("B", "y"): 7, ("B", "x"): 10}),
    )
    assert _sizes(rows) == pytest.approx({"A": 20, "B": 21, "C": 300})
    assert list(rows.blocks[0].cardinality.turnovers) == pytest.approx([0.5, 10 / 21, 10 / 300])
    assert "C.y has 100 values" in rows.assumptions


def test_predicates_on_one_stream_thin_it_out() -> None:
    text = "SELECT A.x FROM A [{0}], B [{0}] WHERE A.x = B.x AND A.y > 3"
    statistics = Statistics({"A": 10, "B": 10}, {("A",): 0.2, ("A", "B"): 0.5})
    timed = _problem(text.format("RANGE 5 SECONDS"), statistics)
    assert _sizes(timed) == pytest.approx({"A": 10, "B": 50})
    assert timed.blocks[0].windows[0].kept == pytest.approx(2)
    rows = _problem(text.format("ROWS 50"), statistics)
    assert _sizes(rows) == pytest.approx({"A": 10, "B": 50})
    assert rows.blocks[0].windows[0].rows == 50  # those that fail push others out, so they stay


def test_windows_may_differ() -> None:
    """|S_AB| = λ_A W_A λ_B W_B σ; born per second: an a meets S_B, a b meets S_A."""
    problem = _problem(
        "SELECT A.x FROM A [RANGE 2 SECONDS], B [RANGE 10 SECONDS] WHERE A.x = B.x",
        Statistics({"A": 3, "B": 5}, {("A", "B"): 0.1}),
    )
    cardinality = problem.blocks[0].cardinality
    assert cardinality.size(3) == pytest.approx(3 * 2 * 5 * 10 * 0.1)
    assert cardinality.rate(3) == pytest.approx(3 * (5 * 10) * 0.1 + 5 * (3 * 2) * 0.1)


CLASS = """SELECT A.x FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND], C [RANGE 1 SECOND],
           D [RANGE 1 SECOND] WHERE A.x = B.x AND B.x = C.x AND C.x = D.x"""
UNIT = {"A": 1, "B": 1, "C": 1, "D": 1}


def test_a_class_of_equal_columns_is_not_counted_twice() -> None:
    same = Statistics(UNIT, dict.fromkeys((("A", "B"), ("B", "C"), ("C", "D")), 0.1))
    cardinality = _problem(CLASS, same).blocks[0].cardinality
    assert cardinality.size(0b0011) == pytest.approx(0.1)
    assert cardinality.size(0b0101) == pytest.approx(0.1)  # A and C are linked through B
    assert cardinality.size(0b0111) == pytest.approx(0.01)
    assert cardinality.size(0b1111) == pytest.approx(0.001)


@pytest.mark.parametrize("shares", [(0.5, 0.1, 0.5), (0.1, 0.5, 0.2), (0.3, 0.3, 0.01)])
def test_given_pairs_of_a_class_are_reproduced(shares: tuple[float, float, float]) -> None:
    pairs = dict(zip((("A", "B"), ("B", "C"), ("C", "D")), shares, strict=True))
    cardinality = _problem(CLASS, Statistics(UNIT, pairs)).blocks[0].cardinality
    for mask, share in zip((0b0011, 0b0110, 0b1100), shares, strict=True):
        assert cardinality.size(mask) == pytest.approx(share)
    assert cardinality.size(0b1111) == pytest.approx(shares[0] * shares[1] * shares[2])


def test_different_values_stand_in_for_selectivities() -> None:
    values = {("A", "x"): 10, ("B", "x"): 100, ("C", "x"): 20, ("D", "x"): 5}
    cardinality = _problem(CLASS, Statistics(UNIT, distinct=values)).blocks[0].cardinality
    assert cardinality.size(0b0011) == pytest.approx(1 / 100)
    assert cardinality.size(0b1001) == pytest.approx(1 / 10)
    assert cardinality.size(0b1111) == pytest.approx(1 / 10 / 100 / 20)


def test_what_was_observed_comes_first() -> None:
    text = """SELECT A.x FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND], C [RANGE 1 SECOND],
              D [RANGE 1 SECOND] WHERE A.x = B.x AND B.y = C.y AND C.x = D.y"""
    said = {("A", "B"): 0.1, ("B", "C"): 0.1, ("C", "D"): 0.1}
    seen = {("A", "B"): 0.2, ("A", "B", "C"): 0.1}
    cardinality = _problem(text, Statistics(UNIT, said, seen)).blocks[0].cardinality
    assert cardinality.size(0b0011) == pytest.approx(0.2)
    assert cardinality.size(0b0111) == pytest.approx(0.1)  # correlated: not 0.2 · 0.1
    assert cardinality.size(0b1111) == pytest.approx(0.01)
    assert cardinality.size(0b1110) == pytest.approx(0.01)


def test_theta_joins_cost_a_comparison_for_every_pair() -> None:
    costs = UnitCosts.from_json({**ZERO, "compare": 1.0})
    text = "SELECT A.x FROM A [RANGE 2 SECONDS], B [RANGE 3 SECONDS] WHERE A.x {} B.x"
    statistics = Statistics({"A": 5, "B": 7}, {("A", "B"): 0.5})
    theta = _problem(text.format("<"), statistics, costs=costs)
    pairs = 5 * (7 * 3) + 7 * (5 * 2)
    assert theta.price(read("(A B)")).cpu == pytest.approx(pairs)
    assert theta.blocks[0].indexes((1, 2)) == [0, 0]
    equal = _problem(text.format("="), statistics, costs=costs)
    assert equal.price(read("(A B)")).cpu == 0
    loops = _problem(text.format("="), statistics, costs=costs, join="nested-loops")
    assert loops.price(read("(A B)")).cpu == pytest.approx(pairs)


def test_a_predicate_over_three_streams_waits_for_all_of_them() -> None:
    text = """SELECT A.x FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND], C [RANGE 1 SECOND]
              WHERE A.x = B.x AND B.y = C.y AND A.x + B.y < C.x"""
    shares = {("A", "B"): 0.1, ("B", "C"): 0.1, ("A", "B", "C"): 0.5}
    block = _problem(text, Statistics({"A": 1, "B": 1, "C": 1}, shares)).blocks[0]
    assert block.cardinality.size(0b011) == pytest.approx(0.1)
    assert block.cardinality.size(0b111) == pytest.approx(0.1 * 0.1 * 0.5)


def test_static_relations_never_probe_and_never_die() -> None:
    costs = UnitCosts.from_json({**ZERO, "window": 2.0, "delete": 1.0, "probe": 1.0})
    text = "SELECT A.x FROM A [RANGE 2 SECONDS], T WHERE A.x = T.x"
    problem = _problem(
        text, Statistics({"A": 5}, {("A", "T"): 0.01}, sizes={"T": 300}), costs=costs
    )
    cost = problem.price(read("(A T)"))
    assert cost.cpu == pytest.approx(5 + 5 + 5)
    assert cost.memory == pytest.approx(300 + 10)


def test_except_adds_what_is_subtracted() -> None:
    text = """SELECT A.x FROM A [RANGE 2 SECONDS] EXCEPT
              SELECT B.x FROM B [RANGE 2 SECONDS], C [RANGE 2 SECONDS] WHERE B.x = C.x"""
    costs = UnitCosts.from_json({**ZERO, "window": 1.0, "insert": 1.0, "probe": 1.0, "result": 1.0})
    problem = _problem(text, Statistics({"A": 5, "B": 3, "C": 4}, {("B", "C"): 0.5}), costs=costs)
    removers = problem.blocks[1].cardinality
    cost = problem.price(read("A"))
    assert cost == problem.price(read("A - (C B)"))
    assert cost.memory == pytest.approx(10 + 6 + 8 + removers.size(3))
    # Stored: A, B, C and the removers. Looks: B and C into each other, each A into the removers.
    assert cost.cpu == pytest.approx((5 + 3 + 4 + removers.rate(3)) + (3 + 4 + 5) + 5)


def test_feedback_makes_a_state_smaller_and_cheaper() -> None:
    query = join_query("ABC", [("A", "B"), ("B", "C")])
    shares = {("A", "B"): 0.05, ("B", "C"): 0.001}
    rates = {"A": 20, "B": 20, "C": 20}
    costs = UnitCosts.from_json({**ZERO, "insert": 1.0, "join": 1.0, "probe": 1.0})
    without = Problem(query, Statistics(rates, shares), costs, TUPLES)
    under = Problem(query, Statistics(rates, shares, demand={("A", "B"): 0.1}), costs, TUPLES)
    plan = read("((A B) C)")
    made = without.blocks[0].cardinality.rate(3)
    assert without.price(plan).memory - under.price(plan).memory == pytest.approx(
        0.9 * without.blocks[0].cardinality.size(3)
    )
    # Not made: joined, inserted, and sent to look for a C.
    assert without.price(plan).cpu - under.price(plan).cpu == pytest.approx(0.9 * made * 3)
    mjoin = read("(A B C)")
    assert without.price(mjoin) == under.price(mjoin)


def test_bytes_follow_the_types() -> None:
    text = "SELECT A.s, B.y FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] WHERE A.x = B.x"
    problem = _problem(text, Statistics({"A": 1, "B": 1}), storage=None)
    a, b = problem.blocks[0].windows
    assert a.width == 16 + 8 + 24
    assert b.width == 16 + 8 + 8
    given = _problem(text, Statistics({"A": 1, "B": 1}, widths={"A": 1000}), storage=None)
    assert given.blocks[0].windows[0].width == 1000


TWO = "SELECT A.x FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] WHERE A.x = B.x"


@pytest.mark.parametrize(
    ("text", "statistics", "message"),
    [
        (TWO, Statistics({"A": 1}), "no rate for stream B; statistics have rates for A"),
        (TWO, Statistics({"A": 1, "B": 1, "Z": 1}), "name Z, which the query does not have"),
        (TWO, Statistics({"A": 1, "B": 1}, {("A", "Z"): 0.1}), "streams are A, B"),
        (
            "SELECT A.x FROM A [RANGE 1 SECOND], T WHERE A.x = T.x",
            Statistics({"A": 1}),
            "how many rows has the static relation T",
        ),
        (
            CLASS.replace("B.x = C.x", "B.y = C.y"),
            Statistics(UNIT, {("A", "D"): 0.5}),
            "no predicate of the query links them",
        ),
        (
            "SELECT A.x FROM A [RANGE 1 SECOND] EXCEPT SELECT B.x FROM B [RANGE 1 SECOND]",
            Statistics({"A": 1, "B": 1}, {("A", "B"): 0.5}),
            "two sides of EXCEPT",
        ),
    ],
)
def test_statistics_that_do_not_fit(text: str, statistics: Statistics, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        _problem(text, statistics)


def test_a_self_join_takes_the_rate_of_its_source() -> None:
    text = "SELECT a.x FROM A [RANGE 1 SECOND] AS a, A [RANGE 2 SECONDS] AS b WHERE a.x = b.x"
    problem = _problem(text, Statistics({"A": 7}, {("a", "b"): 0.5}))
    assert _sizes(problem) == pytest.approx({"a": 7, "b": 14})


def test_assumptions_are_told() -> None:
    problem = _problem(TWO, Statistics({"A": 10, "B": 1}))
    assert problem.assumptions == ("a tuple of B finds about one partner in A, one pair in 10",)
    assert not _problem(TWO, Statistics({"A": 1, "B": 1}, {("A", "B"): 0.3})).assumptions


def test_an_unknown_equality_is_like_one_with_a_key() -> None:
    """A tuple has about one partner in the larger window, however large that is."""
    text = "SELECT A.x FROM A [RANGE 10 SECONDS], B [RANGE 2 SECONDS] WHERE A.x = B.x"
    problem = _problem(text, Statistics({"A": 1000, "B": 300}))
    assert problem.assumptions == ("a tuple of B finds about one partner in A, one pair in 10,000",)
    both = problem.blocks[0].cardinality
    assert both.size(3) == pytest.approx(both.size(2))
    composite = _problem(f"{text} AND A.y = B.y", Statistics({"A": 1000, "B": 300}))
    assert composite.blocks[0].cardinality.size(3) == pytest.approx(both.size(3))


def test_an_unknown_class_of_equal_columns_is_a_key_of_every_window() -> None:
    windows = ", ".join(f"{name} [RANGE 10 SECONDS]" for name in "ABC")
    text = f"SELECT A.x FROM {windows} WHERE A.x = B.x AND B.x = C.x"
    rates = Statistics({"A": 10, "B": 20, "C": 30})
    found = _problem(text, rates).blocks[0].cardinality
    # Of 100 A, each has one B in 200 and one C in 300.
    assert found.size(7) == pytest.approx(100)
    more = f"{text} AND A.y = B.y AND B.y = C.y"
    assert _problem(more, rates).blocks[0].cardinality.size(7) == pytest.approx(100)
