"""Two-layer plan generation as the JTree paper has it (Algorithm 2), to compare ours with.

*Layer one*: the best mjoin, unless its memory is too little for it, and then the best binary tree,
unless its CPU is. Either is the answer if it is qualified. The paper takes the mjoin for the plan
with the least memory and the tree for the one with the least CPU, so an mjoin over the memory or a
tree over the CPU means "none" at once. *Layer two*: state-selection from the mjoin, which gives up
at the first state that saves CPU and does not fit; then state-removal from the tree.

Both "none" of layer one can be wrong (:mod:`penstock.planning.two_layer` says why), and what the
hill climbers do not find may exist. So no refusal of this planner is called proven unless a true
bound is exceeded. Two things are not to the letter, as the letter gives no plan at all: Algorithm
3 is left as soon as a plan is qualified and collects its edges anew after each state, and of the
four plans that *Optimize* tries, that with less of both is taken
(:mod:`penstock.planning.state_selection`).
"""

from __future__ import annotations

from penstock.planning.bjtree_ordering import bjtree_ordering
from penstock.planning.limits import Limits
from penstock.planning.mjoin_ordering import mjoin_ordering
from penstock.planning.problem import Candidate, Problem
from penstock.planning.state_removal import state_removal
from penstock.planning.state_selection import state_selection
from penstock.planning.two_layer import impossible
from penstock.planning.verdict import Choice, Refusal, Verdict, is_qualified, nearest


def two_layer_paper(problem: Problem, limits: Limits) -> Verdict:
    """A qualified plan, or a refusal: lines 1 to 17 of Algorithm 2."""
    mjoin = mjoin_ordering(problem)
    if limits.memory is not None and mjoin.cost.memory > limits.memory:
        return _none(problem, limits, [mjoin], "one mjoin needs too much memory")
    if is_qualified(mjoin.cost, limits):
        return Choice(mjoin, "layer one: one mjoin is within both limits")
    bjtree = bjtree_ordering(problem)
    if limits.cpu is not None and bjtree.cost.cpu > limits.cpu:
        return _none(problem, limits, [mjoin, bjtree], "the best binary tree needs too much CPU")
    if is_qualified(bjtree.cost, limits):
        return Choice(bjtree, "layer one: the best binary tree is within both limits")
    selection = state_selection(problem, limits, mjoin, gives_up=True)
    if is_qualified(selection[-1].cost, limits):
        return Choice(selection[-1], f"layer two: {len(selection) - 1} states selected")
    removal = state_removal(problem, limits, bjtree)
    if is_qualified(removal[-1].cost, limits):
        return Choice(removal[-1], f"layer two: {len(removal) - 1} states removed")
    return _none(problem, limits, [*selection, *removal], "neither hill climber found a plan")


def _none(problem: Problem, limits: Limits, seen: list[Candidate], why: str) -> Refusal:
    """The paper's -1."""
    proven = impossible(problem, limits) is not None
    return Refusal(nearest(seen, limits), limits, proven, why)
