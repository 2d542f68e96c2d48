"""Penstock: adaptive multi-way stream joins on Spark, in Python.

>>> import penstock
>>> query = penstock.parse("SELECT …", schemas={…})   # doctest: +SKIP
>>> engine = penstock.Engine(query)                   # doctest: +SKIP
>>> table = engine.push({"A": batch_a})               # doctest: +SKIP

Names are imported when they are first used: ``penstock --help`` does not load the engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.engine.engine import Engine
    from penstock.engine.feedback.feedback import Feedback
    from penstock.engine.overload.overload import Overload
    from penstock.errors import (
        CheckpointError,
        InputError,
        NoQualifiedPlan,
        OptionError,
        PenstockError,
        PenstockWarning,
        PlanError,
        QueryError,
        TooManyResults,
    )
    from penstock.plan.plan import Plan
    from penstock.planning.limits import Limits
    from penstock.planning.planner import plan
    from penstock.planning.statistics import Statistics
    from penstock.query.join_graph import JoinGraph
    from penstock.query.parse import parse

__version__ = "0.1.0"

__all__ = [
    "CheckpointError",
    "Engine",
    "Feedback",
    "InputError",
    "JoinGraph",
    "Limits",
    "NoQualifiedPlan",
    "OptionError",
    "Overload",
    "PenstockError",
    "PenstockWarning",
    "Plan",
    "PlanError",
    "QueryError",
    "Statistics",
    "TooManyResults",
    "parse",
    "plan",
]

_HOME = {
    "Engine": "penstock.engine.engine",
    "Feedback": "penstock.engine.feedback.feedback",
    "JoinGraph": "penstock.query.join_graph",
    "Limits": "penstock.planning.limits",
    "Overload": "penstock.engine.overload.overload",
    "Plan": "penstock.plan.plan",
    "Statistics": "penstock.planning.statistics",
    "parse": "penstock.query.parse",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    if name == "plan":
        return import_module("penstock.plan")  # A package that can be called.
    value = getattr(import_module(_HOME.get(name, "penstock.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__doc__", "__version__"])
