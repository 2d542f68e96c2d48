"""Penstock: adaptive multi-way stream joins on Spark, in Python.

>>> import penstock
>>> query = penstock.parse("SELECT …", schemas={…})   # doctest: +SKIP
>>> engine = penstock.Engine(query)                   # doctest: +SKIP
>>> table = engine.push({"A": batch_a})               # doctest: +SKIP
"""

from penstock.engine.engine import Engine
from penstock.errors import (
    CheckpointError,
    InputError,
    OptionError,
    PenstockError,
    PlanError,
    QueryError,
)
from penstock.plan.plan import Plan
from penstock.query.join_graph import JoinGraph
from penstock.query.parse import parse

__version__ = "0.1.0"

__all__ = [
    "CheckpointError",
    "Engine",
    "InputError",
    "JoinGraph",
    "OptionError",
    "PenstockError",
    "Plan",
    "PlanError",
    "QueryError",
    "parse",
]
