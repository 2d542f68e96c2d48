"""``penstock.plan``: a plan for a query within limits, or an error that says why there is none.

All planners are pure functions of a :class:`~penstock.planning.problem.Problem` and
:class:`~penstock.planning.limits.Limits`; :data:`PLANNERS` names them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.errors import NoQualifiedPlan, OptionError
from penstock.plan.plan import Plan
from penstock.planning.bjtree_ordering import bjtree_ordering
from penstock.planning.choice_policy import POLICIES, qualified_plans
from penstock.planning.cross_products import with_cross_products
from penstock.planning.jtree_finder import jtree_finder
from penstock.planning.limits import Limits
from penstock.planning.mjoin_ordering import mjoin_ordering
from penstock.planning.problem import Problem
from penstock.planning.state_removal import state_removal
from penstock.planning.state_selection import state_selection
from penstock.planning.statistics import Statistics
from penstock.planning.two_layer import is_small, two_layer
from penstock.planning.two_layer_paper import two_layer_paper
from penstock.planning.verdict import Choice, Refusal, Verdict, is_qualified, nearest, verdict_on
from penstock.query.join_graph import JoinGraph

MOST_FOR_FINDER = 10
"""Streams of a block that JTree-Finder can be asked for; it needs minutes beyond."""


def _mjoin(problem: Problem, limits: Limits) -> Verdict:
    return verdict_on(mjoin_ordering(problem), limits, "one mjoin was asked for")


def _bjtree(problem: Problem, limits: Limits) -> Verdict:
    return verdict_on(bjtree_ordering(problem), limits, "a tree of binary joins was asked for")


def _finder(problem: Problem, limits: Limits) -> Verdict:
    largest = max(len(block.windows) for block in problem.blocks)
    if largest > MOST_FOR_FINDER:
        raise OptionError(
            f"jtree-finder takes exponential time: {largest} streams are more than "
            f"{MOST_FOR_FINDER}. hint: planner='two-layer'"
        )
    qualified = jtree_finder(problem, limits)
    if qualified:
        return Choice(qualified[0], "the least CPU of all plans within the limits")
    front = jtree_finder(problem, Limits())
    return Refusal(nearest(front, limits), limits, True, "no plan is within the limits")


def _selection(problem: Problem, limits: Limits) -> Verdict:
    trail = state_selection(problem, _with_target(limits), mjoin_ordering(problem))
    if is_qualified(trail[-1].cost, limits):
        return Choice(trail[-1], f"state-selection stored {len(trail) - 1} partial results")
    why = "storing partial results saves no more CPU"
    return Refusal(nearest(trail, limits), limits, False, why)


def _removal(problem: Problem, limits: Limits) -> Verdict:
    trail = state_removal(problem, limits, bjtree_ordering(problem))
    if is_qualified(trail[-1].cost, limits):
        return Choice(trail[-1], f"state-removal gave up {len(trail) - 1} states of the tree")
    return Refusal(nearest(trail, limits), limits, False, "no state is left to give up")


def _with_target(limits: Limits) -> Limits:
    """With no limit on CPU, state-selection goes on as long as CPU can be saved."""
    return limits if limits.cpu is not None else Limits(cpu=1e-300, memory=limits.memory)


PLANNERS: dict[str, Callable[[Problem, Limits], Verdict]] = {
    "two-layer": two_layer,
    "jtree-finder": _finder,
    "state-selection": _selection,
    "state-removal": _removal,
    "two-layer-paper": two_layer_paper,
    "mjoin": _mjoin,
    "bjtree": _bjtree,
}


ALL_PLANS = ("two-layer", "jtree-finder")
"""The planners that look for any qualified plan, and so at cross products, too, if they must."""


def decide(
    problem: Problem,
    limits: Limits | None = None,
    planner: str = "two-layer",
    cross_products: bool = True,
) -> Verdict:
    """The verdict of ``planner``.

    ``cross_products``: whether planners that look for any qualified plan also look at those that
    join streams which no predicate links, where nothing else qualifies.
    """
    if planner not in PLANNERS:
        known = ", ".join(map(repr, PLANNERS))
        raise OptionError(f"planner={planner!r} does not exist; choose from: {known}")
    verdict = PLANNERS[planner](problem, limits or Limits())
    if cross_products and planner in ALL_PLANS and isinstance(verdict, Refusal):
        return with_cross_products(problem, verdict)
    return verdict


def decide_by(
    policy: str,
    problem: Problem,
    limits: Limits | None = None,
    planner: str = "two-layer",
    seed: int = 0,
) -> Verdict:
    """The qualified plan that ``policy`` takes of those that ``planner`` comes across."""
    if policy not in POLICIES:
        known = ", ".join(map(repr, POLICIES))
        raise OptionError(f"choice={policy!r} does not exist; choose from: {known}")
    if planner not in ALL_PLANS:
        known = " or ".join(f"planner={name!r}" for name in ALL_PLANS)
        raise OptionError(
            f"choice={policy!r} has one plan of {planner!r} to choose from; use {known}"
        )
    limits = limits or Limits()
    verdict = decide(problem, limits, planner)
    if isinstance(verdict, Refusal):
        return verdict
    space = problem.crossing if verdict.candidate.crosses else problem
    found = qualified_plans(space, limits, planner == "jtree-finder", policy == "random")
    if not is_small(problem):
        found.append(verdict.candidate)
    return Choice(POLICIES[policy](found, seed), f"{policy} of {len(found)} qualified plans")


def plan(
    query: JoinGraph,
    statistics: Statistics,
    limits: Limits | None = None,
    planner: str = "two-layer",
    choice: str | None = None,
    seed: int = 0,
    **options: Any,
) -> Plan:
    """A plan of ``query`` within ``limits``.

    ``planner`` is one of :data:`PLANNERS`. ``choice`` says which of several qualified plans is
    taken (:data:`~penstock.planning.choice_policy.POLICIES`, ``random`` by ``seed``); without it
    the planner has its own rule. ``options`` are those of
    :class:`~penstock.planning.problem.Problem`: ``costs`` (else those of the statistics, else what
    ``penstock calibrate`` has measured on this machine, else defaults), ``join="nested-loops"``,
    ``cross_products=True``. Raises :class:`~penstock.errors.NoQualifiedPlan`, which says why.
    """
    for name, value, expected in (
        ("query", query, JoinGraph),
        ("statistics", statistics, Statistics),
        ("limits", limits or Limits(), Limits),
    ):
        if not isinstance(value, expected):
            raise OptionError(f"{name} is a {expected.__name__}, not {type(value).__name__}")
    if options.get("costs") is None and statistics.costs is None:
        from penstock.planning.calibrated import calibrated_costs

        options["costs"] = calibrated_costs()
    problem = Problem(query, statistics, **options)
    verdict = (
        decide(problem, limits, planner)
        if choice is None
        else decide_by(choice, problem, limits, planner, seed)
    )
    if isinstance(verdict, Choice):
        return problem.plan_of(verdict.candidate)
    raise refused(problem, verdict)


def refused(problem: Problem, refusal: Refusal) -> NoQualifiedPlan:
    """The error that says what ``refusal`` says."""
    closest = problem.plan_of(refusal.nearest)
    hint = "raise the limit, shorten the windows, or let an overload policy shed"
    message = f"{refusal.why}: the nearest, {closest}, needs {refusal.in_words()}\nhint: {hint}"
    return NoQualifiedPlan(
        message,
        exceeded=refusal.exceeded,
        nearest=closest,
        cpu=refusal.nearest.cost.cpu,
        memory=refusal.nearest.cost.memory,
        proven=refusal.proven,
    )
