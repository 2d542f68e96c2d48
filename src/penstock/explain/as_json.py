"""An explanation as plain lists and dictionaries, for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from penstock.explain.explanation import Alternative, Explanation, Operator


def as_json(explanation: Explanation) -> dict[str, Any]:
    """Everything that the other renderers show; CPU is a share of a core, memory bytes."""
    return {
        "plan": explanation.plan,
        "why": explanation.why,
        "cpu": explanation.cost.cpu,
        "memory": explanation.cost.memory,
        "limits": explanation.limits.to_json(),
        "qualified": explanation.qualified,
        "observed": None if explanation.observed is None else asdict(explanation.observed),
        "blocks": [_operator(root) for root in explanation.roots],
        "output": _operator(explanation.output),
        "alternatives": [_alternative(each) for each in explanation.alternatives],
        "front": [_alternative(each) for each in explanation.front],
        "assumptions": list(explanation.assumptions),
    }


def _operator(operator: Operator) -> dict[str, Any]:
    return {
        "kind": operator.kind,
        "streams": sorted(operator.streams),
        "details": operator.details,
        "rate": operator.rate,
        "rows": operator.rows,
        "cpu": operator.cpu,
        "memory": operator.memory,
        "orders": list(operator.orders),
        "observed": None if operator.observed is None else asdict(operator.observed),
        "inputs": [_operator(each) for each in operator.inputs],
    }


def _alternative(each: Alternative) -> dict[str, Any]:
    return {
        "name": each.name,
        "plan": each.plan,
        "cpu": each.cost.cpu,
        "memory": each.cost.memory,
        "qualified": each.qualified,
    }
