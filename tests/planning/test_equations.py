"""Equations 1 to 7 of the JTree paper, term by term, and what goes beyond them."""

from __future__ import annotations

import math
import random

import pyarrow as pa
import pytest
from planning_graphs import join_query, paper_example

import penstock
from penstock.plan import read
from penstock.planning.block import Block
from penstock.planning.cost_model import join_cost
from penstock.planning.probe_orders import probe_orders
from penstock.planning.problem import Problem
from penstock.planning.statistics import Statistics
from penstock.planning.unit_costs import PAPER, UnitCosts

A, B, C = 1, 2, 4


def _paper(seed: int) -> tuple[Problem, dict[str, float]]:
    """Random values in which A and B is the better pair to begin with, as in Figure 4."""
    chance = random.Random(seed)
    values = {
        "a": chance.uniform(1, 100),
        "b": chance.uniform(1, 100),
        "c": chance.uniform(1, 100),
        "ab": chance.uniform(0.001, 0.2),
        "bc": chance.uniform(0.2, 1),
        "w": float(chance.randint(1, 60)),
        "ci": chance.uniform(1e-7, 1e-6),
        "cd": chance.uniform(1e-7, 1e-6),
        "cj": chance.uniform(1e-7, 1e-6),
    }
    if values["a"] * values["ab"] > values["c"] * values["bc"]:
        values["a"], values["c"] = values["c"] * 0.1, values["a"]
    problem = paper_example(
        {"A": values["a"], "B": values["b"], "C": values["c"]},
        values["ab"],
        values["bc"],
        int(values["w"]),
        UnitCosts.of_paper(values["ci"], values["cd"], values["cj"]),
    )
    return problem, values


def _from_a(block: Block) -> float:
    """The CPU of the tuples of A in the mjoin: its storage, and the probes along its order."""
    order = probe_orders(block, (A, B, C)).orders[0]
    assert order == (1, 2)
    cardinality = block.cardinality
    stored = block.storing(A, 1).cpu
    through_b = cardinality.turnover(A) * cardinality.size(A | B) * block.costs.join
    through_c = cardinality.turnover(A) * cardinality.size(A | B | C) * block.costs.join
    return stored + through_b + through_c


@pytest.mark.parametrize("seed", range(30))
def test_equations_1_to_7(seed: int) -> None:
    problem, v = _paper(seed)
    a, b, c, w = v["a"], v["b"], v["c"], v["w"]
    ab, bc, ci, cd, cj = v["ab"], v["bc"], v["ci"], v["cd"], v["cj"]
    abc = ab * bc
    mjoin, tree = problem.price(read("(A B C)")), problem.price(read("((A B) C)"))

    equation_1 = a * (ci + cd) + a * b * ab * w * cj + a * b * ab * c * bc * w**2 * cj
    assert _from_a(problem.blocks[0]) == pytest.approx(equation_1)

    recomputed = b * c * bc * w * cj
    equation_2 = (
        (a + b + c) * (ci + cd)
        + recomputed
        + 3 * a * b * c * abc * w**2 * cj
        + 2 * a * b * ab * w * cj
    )
    assert mjoin.cpu == pytest.approx(equation_2)

    equation_3 = a * w + b * w + c * w
    assert mjoin.memory == pytest.approx(equation_3)

    equation_4 = (
        (a + b + c) * (ci + cd)
        + 3 * a * b * c * abc * w**2 * cj
        + 2 * a * b * ab * w * (cj + ci + cd)
    )
    assert tree.cpu == pytest.approx(equation_4)

    equation_5 = equation_3 + a * b * ab * w**2
    assert tree.memory == pytest.approx(equation_5)

    equation_6 = recomputed
    equation_7 = 2 * a * b * ab * w * (ci + cd)
    assert mjoin.cpu - tree.cpu == pytest.approx(equation_6 - equation_7, abs=1e-9 * mjoin.cpu)


def test_each_unit_cost_has_its_own_term() -> None:
    """One cost at a time, so that no two terms can stand in for each other."""
    rates = {"A": 20.0, "B": 30.0, "C": 40.0}
    w, ab, bc = 5, 0.05, 0.5
    pairs, triples = 20 * 30 * ab * w, 20 * 30 * 40 * ab * bc * w**2
    expected = {
        "insert": 2 * pairs,
        "delete": 2 * pairs,
        "join": 2 * pairs + 3 * triples,
        "probe": 20 + 30 + 2 * pairs + 40,  # A to B, B to A, AB to C, C to AB
        "compare": 0,
        "index": 0,  # each input is looked up by one list of keys
        "arrival": 90,
        "window": 90,
        "result": 3 * triples,
    }
    names = UnitCosts().to_json()
    for name, value in {**dict.fromkeys(names, 0), **expected}.items():
        costs = UnitCosts.from_json({**dict.fromkeys(names, 0.0), name: 1.0})
        problem = paper_example(rates, ab, bc, w, costs)
        assert problem.price(read("((A B) C)")).cpu == pytest.approx(value), name


def test_an_input_looked_up_by_two_keys_has_two_indexes() -> None:
    index = UnitCosts.from_json({**dict.fromkeys(UnitCosts().to_json(), 0.0), "index": 1.0})
    problem = paper_example({"A": 20, "B": 30, "C": 40}, 0.05, 0.5, 5, index)
    assert problem.price(read("(A B C)")).cpu == 30  # B by ab and by bc
    assert problem.price(read("((B C) A)")).cpu == 0


def test_batches_cost_by_their_steps() -> None:
    """Six steps in an mjoin of three, four in two binary joins; a push of each stream."""
    query = join_query("ABC", [("A", "B"), ("B", "C")])
    statistics = Statistics({"A": 1, "B": 1, "C": 1}, pushes=10)
    for name, in_mjoin, in_tree in (("step", 60, 40), ("push", 30, 30), ("call", 10, 10)):
        costs = UnitCosts.from_json({**dict.fromkeys(UnitCosts().to_json(), 0.0), name: 1.0})
        problem = Problem(query, statistics, costs)
        assert problem.price(read("(A B C)")).cpu == pytest.approx(in_mjoin)
        assert problem.price(read("((A B) C)")).cpu == pytest.approx(in_tree)


def _priced(where: str, name: str, select: str = "A.id", join: str = "hash") -> float:
    """The CPU of (A B) with one cost of 1: 20 and 30 tuples per second that live 5 s, 100 values of
    k and of the text t, and a fifth of the pairs that agree on k passes."""
    types = [("ts", pa.int64()), ("id", pa.int64()), ("k", pa.int64()), ("v", pa.int64())]
    schema = pa.schema([*types, ("t", pa.string())])
    query = penstock.parse(
        f"SELECT {select} FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS] WHERE {where}",
        schemas=dict.fromkeys("AB", schema),
    )
    distinct = {(stream, column): 100 for stream in "AB" for column in "kt"}
    statistics = Statistics({"A": 20, "B": 30}, {("A", "B"): 0.002}, distinct=distinct)
    costs = UnitCosts.from_json({**dict.fromkeys(UnitCosts().to_json(), 0.0), name: 1.0})
    return Problem(query, statistics, costs, join=join).price(read("(A B)")).cpu


def test_each_kind_of_work_has_its_term() -> None:
    agree, pass_ = 2 * 20 * 30 * 5 * 0.01, 2 * 20 * 30 * 5 * 0.002
    plain, looks = "A.k = B.k", 20 * 30 * 5 * 2
    assert _priced(plain, "check") == _priced(plain, "residual") == _priced(plain, "text") == 0
    assert _priced(f"{plain} AND A.v < B.v", "check") == pytest.approx(agree)
    assert _priced(f"{plain} AND (A.v + B.v) % 5 = 0", "residual") == pytest.approx(agree)
    # Two share the fifth: the expression sees what the comparison has let through.
    both = f"{plain} AND (A.v + B.v) % 5 = 0 AND A.v < B.v"
    assert _priced(both, "check") == pytest.approx(agree)
    assert _priced(both, "residual") == pytest.approx(agree * 0.2**0.5)
    assert _priced("A.v < B.v", "compare") == pytest.approx(looks)
    assert _priced("A.v BETWEEN B.v - 1 AND B.v + 1", "compare") == pytest.approx(2 * looks)
    assert _priced("A.t = B.t", "text") == pytest.approx(20 + 30)
    wide = "A.id AS a, B.id AS b, A.k AS c, B.k AS d, A.t AS e"
    assert _priced(plain, "column", wide) == pytest.approx(3 * pass_)
    grouped = f"{plain} GROUP BY A.v"
    assert _priced(grouped, "group", "A.v, COUNT(*) AS n") == pytest.approx(pass_)
    assert _priced(grouped, "aggregate", "A.v, COUNT(*) AS n") == 0
    summed = "A.v, COUNT(*) AS n, SUM(B.id) AS s, MAX(B.k) AS m"
    assert _priced(grouped, "aggregate", summed) == pytest.approx(2 * pass_)
    assert _priced(grouped, "result", summed) == 0


def test_set_1_of_table_2_in_numbers() -> None:
    """Set 1 with the costs of Table 3, worked out by hand."""
    problem = paper_example({"A": 20, "B": 20, "C": 20}, 0.05, 0.5, 5, PAPER)
    mjoin, tree = problem.price(read("(A B C)")), problem.price(read("((A B) C)"))
    assert mjoin.memory == pytest.approx(300)
    assert tree.memory == pytest.approx(300 + 500)
    # 60 tuples stored; AB twice 100, BC once 1,000, ABC three times 5,000 per second.
    assert mjoin.cpu == pytest.approx(60 * 4e-7 + (200 + 1000 + 15000) * 2.2e-6)
    assert tree.cpu == pytest.approx(60 * 4e-7 + 200 * 26e-7 + 15000 * 2.2e-6)


def test_costs_are_finite_however_large() -> None:
    problem = paper_example({"A": 1e200, "B": 1e200, "C": 1e200}, 1.0, 1.0, 60, PAPER)
    assert math.isfinite(join_cost(problem.blocks[0], (A, B, C)).cpu)
