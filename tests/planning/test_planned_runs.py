"""Planned queries run: every planner on random queries of all kinds, and the answers are right."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

import penstock
from penstock.explain.as_json import as_json
from penstock.explain.explanation import explain
from penstock.explain.text import text
from penstock.planning.limits import Limits
from penstock.planning.planner import PLANNERS
from penstock.planning.problem import Problem
from penstock.planning.statistics import Statistics
from penstock.testing import Case, check_case, generate


def _statistics(graph: penstock.JoinGraph, chance: random.Random) -> Statistics:
    """Rates and sizes of everything, selectivities of some pairs that a predicate links."""
    streams = [stream for block in graph.blocks for stream in block.streams]
    shares = {}
    for block in graph.blocks:
        for predicate in block.predicates:
            if chance.random() < 0.6:
                shares[frozenset(predicate.streams)] = chance.uniform(0, 1)
    return Statistics(
        {s.alias: chance.uniform(0.1, 100) for s in streams if not s.is_static},
        shares,
        sizes={s.alias: chance.randint(0, 1000) for s in streams if s.is_static},
        pushes=chance.choice([0, 10]),
    )


def _started(graph: penstock.JoinGraph, case: Case) -> penstock.Engine:
    return penstock.Engine(graph, plan=case.plan, lateness=case.lateness)


@pytest.mark.parametrize("seed", range(20))
def test_every_planner_plans_every_query(seed: int) -> None:
    case = generate(seed)
    graph = case.graph()
    statistics = _statistics(graph, random.Random(seed))
    for planner in PLANNERS:
        penstock.plan(graph, statistics, planner=planner).check(graph)
    chosen = penstock.plan(graph, statistics)
    found = explain(Problem(graph, statistics), chosen, Limits(cpu=1.0))
    assert sum(each.cpu for each in found.operators()) == pytest.approx(found.cost.cpu)
    assert text(found, front=True)
    assert as_json(found)["plan"] == str(chosen)
    check_case(replace(case, plan=str(chosen)), _started)
