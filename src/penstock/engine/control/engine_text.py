"""EXPLAIN of a running engine: its plan with what it costs, and with ANALYZE what was observed."""

from __future__ import annotations

from typing import Any, Protocol

from penstock.engine.options import Options
from penstock.explain.disk_text import disk_text
from penstock.explain.eddy_text import eddy_text
from penstock.explain.execution_text import execution_text
from penstock.explain.explanation import explain
from penstock.explain.feedback_text import feedback_text
from penstock.explain.history_text import history_text
from penstock.explain.observation import observed_in
from penstock.explain.overload_text import overload_text
from penstock.explain.silence_text import silence_text
from penstock.explain.text import text
from penstock.plan.plan import Plan
from penstock.planning.calibrated import calibrated_costs
from penstock.planning.problem import Problem
from penstock.planning.statistics import Statistics
from penstock.planning.unit_costs import UnitCosts
from penstock.query.join_graph import JoinGraph

ANALYSES = (
    disk_text,
    eddy_text,
    history_text,
    feedback_text,
    overload_text,
    execution_text,
    silence_text,
)
"""What stands below the plan, each if it has something to say."""


class Explained(Protocol):
    """An engine, as far as it is explained."""

    query: JoinGraph
    options: Options

    @property
    def plan(self) -> Plan:
        """The plan that runs, or is going to."""

    @property
    def seconds(self) -> float:
        """Event time since the first row, in seconds."""

    def metrics(self) -> dict[str, Any]:
        """Counts since the start and sizes by now."""

    def statistics(self, pushes: float = 0.0, brief: bool = False) -> Statistics:
        """What was observed of the streams."""


def engine_text(engine: Explained, why: str, running: float, analyze: bool) -> str:
    """The plan that has been ``running`` for so many seconds of event time, and ``why`` it is."""
    seconds, metrics = engine.seconds, engine.metrics()
    observed = None
    if analyze and seconds > 0:
        observed = observed_in(metrics, seconds, metrics["seconds"], running)
    statistics = engine.statistics(brief=True)
    # Not the costs that fit this query: what is told of the same streams is the same.
    costs = calibrated_costs() or UnitCosts()
    problem = Problem(engine.query, statistics, costs=costs, join=engine.options.join)
    told = text(explain(problem, engine.plan, engine.options.limits, why, observed))
    parts = ANALYSES if analyze else (disk_text,)
    return "\n\n".join([told, *filter(None, (part(metrics) for part in parts))])
