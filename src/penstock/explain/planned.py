"""Plans in the notation, explained: the one that was given, or the one that a planner chooses."""

from __future__ import annotations

from penstock.explain.diff import difference, difference_text
from penstock.explain.explanation import Explanation, explain
from penstock.plan.notation import read
from penstock.plan.plan import EDDIES, Plan, first_routes
from penstock.planning.adaptation import best_plan
from penstock.planning.limits import Limits, three_digits
from penstock.planning.migration_cost import migration_cost
from penstock.planning.problem import Problem
from penstock.planning.verdict import Choice


def planned(problem: Problem, plan: str, limits: Limits | None = None) -> Explanation:
    """``plan``, or for ``"auto"`` the plan with the least CPU within ``limits``; the nearest to
    them if there is none."""
    limits = limits or Limits()
    if plan != "auto":
        found = given(problem, plan)
        return explain(problem, found, limits, _why(found))
    verdict = best_plan(problem, limits, cross_products=True)
    candidate = verdict.candidate if isinstance(verdict, Choice) else verdict.nearest
    return explain(problem, problem.plan_of(candidate), limits, verdict.why)


def compared(problem: Problem, before: str, after: str, limits: Limits | None = None) -> str:
    """Two plans side by side, and what it costs to go from one to the other."""
    one, other = given(problem, before), given(problem, after)
    found = difference(explain(problem, one, limits), explain(problem, other, limits))
    seconds = migration_cost(problem, one, other)
    return f"{difference_text(found)}\n  the change: {three_digits(seconds)} CPU seconds"


def given(problem: Problem, plan: str) -> Plan:
    """The plan that ``plan`` names: in the notation, or an eddy with its first routes."""
    return first_routes(plan, problem.query) if plan in EDDIES else read(plan)


def _why(plan: Plan) -> str:
    if not plan.eddy:
        return "given by hand; it is pinned"
    return f"given by hand; {plan.eddy} begins with it and changes its routes as the streams change"
