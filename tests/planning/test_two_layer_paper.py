"""Algorithm 2 as the paper has it: its answers, its two early refusals, and what it misses."""

from __future__ import annotations

import random

import pytest
from planning_graphs import paper_example, random_problem

from penstock.planning.bjtree_ordering import bjtree_ordering
from penstock.planning.jtree_finder import jtree_finder
from penstock.planning.limits import Limits
from penstock.planning.mjoin_ordering import mjoin_ordering
from penstock.planning.planner import decide
from penstock.planning.state_removal import state_removal
from penstock.planning.state_selection import state_selection
from penstock.planning.two_layer import two_layer
from penstock.planning.two_layer_paper import two_layer_paper
from penstock.planning.unit_costs import UnitCosts
from penstock.planning.verdict import Choice, Refusal, is_qualified


@pytest.mark.parametrize("seed", range(60))
def test_line_by_line(seed: int) -> None:
    """What the lines of Algorithm 2 say, with limits around a plan of the front."""
    chance = random.Random(seed)
    problem = random_problem(chance, 3 + seed % 4)
    point = chance.choice(jtree_finder(problem, Limits())).cost
    limits = Limits(
        cpu=point.cpu * chance.choice([0.9, 1.001, 1.3]),
        memory=int(point.memory * chance.choice([0.9, 1.001, 1.3])) + 1,
    )
    assert limits.cpu is not None
    assert limits.memory is not None
    mjoin, bjtree = mjoin_ordering(problem), bjtree_ordering(problem)
    verdict = two_layer_paper(problem, limits)
    if mjoin.cost.memory > limits.memory:
        assert isinstance(verdict, Refusal)
    elif mjoin.cost.cpu <= limits.cpu:
        assert verdict == Choice(mjoin, verdict.why)
    elif bjtree.cost.cpu > limits.cpu:
        assert isinstance(verdict, Refusal)
    elif bjtree.cost.memory <= limits.memory:
        assert verdict == Choice(bjtree, verdict.why)
    else:
        ends = (
            state_selection(problem, limits, mjoin, gives_up=True)[-1],
            state_removal(problem, limits, bjtree)[-1],
        )
        qualified = [each for each in ends if is_qualified(each.cost, limits)]
        if qualified:
            assert verdict == Choice(qualified[0], verdict.why)
        else:
            assert isinstance(verdict, Refusal)
    if isinstance(verdict, Choice):
        assert is_qualified(verdict.candidate.cost, limits)
        assert isinstance(two_layer(problem, limits), Choice), "ours misses nothing of it"
    elif verdict.proven:
        assert jtree_finder(problem.crossing, limits) == []


def test_state_selection_of_the_paper_gives_up_at_the_first_state_that_does_not_fit() -> None:
    stopped = 0
    for seed in range(40):
        problem = random_problem(random.Random(seed), 6)
        mjoin = mjoin_ordering(problem)
        limits = Limits(cpu=1e-12, memory=int(mjoin.cost.memory * 1.05) + 1)
        ours = state_selection(problem, limits, mjoin)
        papers = state_selection(problem, limits, mjoin, gives_up=True)
        assert papers == ours[: len(papers)]
        stopped += len(papers) < len(ours)
    assert stopped


def test_the_two_early_refusals_are_not_proofs() -> None:
    """A tree over the CPU is no reason to refuse, and the paper's planner does."""
    missed = 0
    for seed in range(60):
        problem = random_problem(random.Random(seed), 5)
        least = jtree_finder(problem, Limits())[0].cost
        limits = Limits(cpu=least.cpu * 1.001, memory=int(least.memory) + 1)
        verdict = two_layer_paper(problem, limits)
        if isinstance(verdict, Refusal):
            assert not verdict.proven
            missed += "binary tree needs too much CPU" in verdict.why
    assert missed > 1
    costs = UnitCosts.of_paper(insert=1e-4, delete=1e-4, join=1e-6)
    problem = paper_example({"A": 20, "B": 20, "C": 20}, 0.05, 0.05, 5, costs)
    verdict = decide(problem, Limits(cpu=1.0, memory="1GB"), "two-layer-paper")
    assert verdict == Choice(mjoin_ordering(problem), "layer one: one mjoin is within both limits")
