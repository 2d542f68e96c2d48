"""The literal algorithm gives the oracle's answer, with the rule; without it, it loses results."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

import pytest

import penstock
from penstock.testing import Oracle
from penstock_studies.jit.clique import Arrival, clique_query, column, in_batches
from penstock_studies.jit.form import AS_PUBLISHED, DOE, JIT, REF, REF_AS_PUBLISHED, Form
from penstock_studies.jit.literal import LiteralJit

PLANS = {
    3: ["((A B) C)", "(A (B C))"],
    4: ["((A B)(C D))", "(((A B) C) D)", "((B D)(A C))", "(A ((B C) D))"],
    5: ["(((A B)(C D)) E)", "((((A B) C) D) E)", "(((A B) C)(D E))"],
    6: ["(((A B)(C D))(E F))", "(((A B) C)((D E) F))", "(((((A B) C) D) E) F)"],
}
EXACT = {
    "REF": REF,
    "JIT": JIT,
    "DOE": DOE,
    "Bloom": Form(detection="bloom"),
    "level 1": Form(level=1),
    "level 2": Form(level=2),
}


def random_case(seed: int) -> tuple[penstock.JoinGraph, str, list[Arrival]]:
    """A clique, or part of one, over a small domain."""
    chance = random.Random(seed)
    count = chance.choice([3, 4, 4, 5, 6])
    names = "ABCDEF"[:count]
    links = [
        pair
        for pair in combinations(names, 2)
        if chance.random() < 0.7 or ord(pair[1]) == ord(pair[0]) + 1
    ]
    if chance.random() < 0.5:
        links = list(combinations(names, 2))
    query = clique_query(count, chance.choice([15, 30, 60]), links)
    values = {3: 4, 4: 3, 5: 3, 6: 2}[count]
    return query, chance.choice(PLANS[count]), random_arrivals(query, links, 70, values, chance)


def random_arrivals(
    query: penstock.JoinGraph,
    links: list[tuple[str, str]],
    count: int,
    values: int,
    chance: random.Random,
) -> list[Arrival]:
    found, time = [], 0
    for _ in range(count):
        time += chance.choice([0, 1, 1, 2])
        stream = chance.choice(query.aliases)
        row = {column(*pair): chance.randint(1, values) for pair in links if stream in pair}
        found.append(Arrival(stream, row, time))
    return found


def answer(query: penstock.JoinGraph, tuples: list[Arrival]) -> Counter[tuple[int, ...]]:
    (batch,) = in_batches(query, tuples, 1_000_000)
    return Counter(Oracle(query).push(batch))


def results(
    query: penstock.JoinGraph, plan: str, form: Form, tuples: list[Arrival]
) -> Counter[tuple[int, ...]]:
    """All results; each must leave when its last tuple arrives."""
    run = LiteralJit(query, plan, form)
    found: Counter[tuple[int, ...]] = Counter()
    arrived = dict.fromkeys(query.aliases, 0)
    for each in tuples:
        arrived[each.stream] += 1
        place = query.aliases.index(each.stream)
        for result in run.arrive(each.stream, each.row, each.time):
            assert result[place] == arrived[each.stream]
            found[result] += 1
    return found


@pytest.mark.parametrize("start", range(0, 40, 10))
def test_every_form_with_the_rule_is_exact(start: int) -> None:
    for seed in range(start, start + 10):
        query, plan, tuples = random_case(seed)
        expected = answer(query, tuples)
        for name, form in EXACT.items():
            found = results(query, plan, form, tuples)
            assert found == expected, f"seed {seed}, {plan}, {name}"


def test_as_published_bushy_plans_lose_results_and_the_rule_repairs_it() -> None:
    """Both sides asleep: 4-way cliques with values 1 to 3 and 80 tuples."""
    links = list(combinations("ABCD", 2))
    query = clique_query(4, 1_000, links)
    lost = {"((A B)(C D))": 0, "(((A B) C) D)": 0}
    for seed in range(3):
        tuples = random_arrivals(query, links, 80, 3, random.Random(seed))
        expected = answer(query, tuples)
        assert expected
        for plan in lost:
            found = results(query, plan, AS_PUBLISHED, tuples)
            assert not found - expected, "windows are wider than the run: nothing is too wide"
            lost[plan] += (expected - found).total()
            assert results(query, plan, JIT, tuples) == expected
    assert lost["((A B)(C D))"] > 0
    assert lost["(((A B) C) D)"] == 0, "a stream is never asleep: there is no second side"


def test_the_smallest_loss() -> None:
    """((A B)(C D)) with A–C and B–C: c1 sleeps for want of an ab, c2 as it has the same values,
    then a2 for want of a cd. Results are lost although c1d1 lives as long as the paper has it."""
    query = clique_query(4, 10, [("A", "B"), ("C", "D"), ("A", "C"), ("B", "C")])
    tuples = [
        Arrival("D", {"cd": 1}, 4),
        # So that no state is empty: a1b1 until 15, c3d2 from then on.
        Arrival("A", {"ab": 5, "ac": 8}, 5),
        Arrival("B", {"ab": 5, "bc": 8}, 5),
        # c1d1 is made, and c1 is suspended; c2 is of equal values.
        Arrival("C", {"cd": 1, "ac": 1, "bc": 1}, 5),
        Arrival("C", {"cd": 1, "ac": 1, "bc": 1}, 15),
        Arrival("D", {"cd": 6}, 15),
        Arrival("C", {"cd": 6, "ac": 9, "bc": 9}, 15),
        # c1d1 is dead. a2b2 is made: no cd matches a2, which is suspended.
        Arrival("A", {"ab": 1, "ac": 1}, 16),
        Arrival("B", {"ab": 1, "bc": 2}, 16),
        # The partners of the sleepers, who match each other.
        Arrival("D", {"cd": 1}, 17),
        Arrival("B", {"ab": 1, "bc": 1}, 17),
    ]
    expected: Counter[tuple[int, ...]] = Counter([(2, 3, 2, 3)])
    assert answer(query, tuples) == expected
    assert results(query, "((A B)(C D))", JIT, tuples) == expected
    assert results(query, "((A B)(C D))", REF_AS_PUBLISHED, tuples) == expected
    assert results(query, "((A B)(C D))", AS_PUBLISHED, tuples) == Counter()


def test_the_timestamps_of_the_paper_give_what_no_window_allows() -> None:
    """a1 and c1 are 18 apart. a1b1 has the time of b1, and is still there."""
    query = clique_query(3, 10, [("A", "B"), ("A", "C")])
    tuples = [
        Arrival("A", {"ab": 1, "ac": 1}, 0),
        Arrival("B", {"ab": 1}, 9),
        Arrival("C", {"ac": 1}, 18),
    ]
    assert answer(query, tuples) == Counter()
    run = LiteralJit(query, "((A B) C)", REF_AS_PUBLISHED)
    given = [result for each in tuples for result in run.arrive(each.stream, each.row, each.time)]
    assert given == [(1, 1, 1)]
    assert (run.ledger.results, run.ledger.too_wide, run.ledger.partial_results) == (0, 1, 1)


@pytest.mark.parametrize("seed", range(10))
def test_with_the_timestamps_of_the_paper_all_results_are_among_those_given(seed: int) -> None:
    query, plan, tuples = random_case(seed)
    expected = answer(query, tuples)
    run = LiteralJit(query, plan, REF_AS_PUBLISHED)
    given: Counter[tuple[int, ...]] = Counter()
    for each in tuples:
        given.update(run.arrive(each.stream, each.row, each.time))
    assert not expected - given
    assert run.ledger.results == expected.total()
    assert run.ledger.too_wide == (given - expected).total()
