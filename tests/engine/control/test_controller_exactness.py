"""An engine that changes its plan all the time gives the oracle's answer, push by push.

The controller is made to look after every push and to change for any gain, so that plans follow
the noise of small samples: random queries and streams, streams that drift, restarts in the middle
of a completion, feedback of every kind.
"""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.control import controller
from penstock.engine.control.plan_event import PlanEvent
from penstock.testing.case import Case
from penstock.testing.checks import Runs, check_case
from penstock.testing.compare import assert_same_rows
from penstock.testing.generators import generate
from penstock.testing.knobs import Knobs
from penstock.testing.oracle import Oracle

CASES = int(os.environ.get("PENSTOCK_CASES", "20"))
BLOCK = 10


@pytest.fixture(autouse=True)
def restless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "SHARE", 1e9)
    monkeypatch.setattr(controller, "AT_REST", 0.0)
    monkeypatch.setattr(controller, "GLANCE_WORK", 0.0)
    monkeypatch.setattr(controller, "GLANCE_PUSHES", 1)
    monkeypatch.setattr(controller, "LEAST_ROWS", 1)
    monkeypatch.setattr("penstock.planning.adaptation.WORTHWHILE", 0.0)
    monkeypatch.setattr("penstock.planning.adaptation.migration_cost", lambda *_: 0.0)


@pytest.mark.parametrize("feedback", ["off", "jit"])
@pytest.mark.parametrize("start", range(0, CASES, BLOCK))
def test_random_queries(start: int, feedback: str) -> None:
    changes: list[PlanEvent] = []
    for seed in range(start, start + BLOCK):
        case = generate(seed, Knobs())
        chance = random.Random(seed)

        def between(engine: Runs, number: int, chance: random.Random = chance) -> Runs:
            assert isinstance(engine, penstock.Engine)
            events = engine.drain_events()
            assert not any(event.action == "fail" for event in events)
            changes.extend(event for event in events if event.is_change)
            if chance.random() < 0.2:
                return penstock.Engine.restore(engine.query, engine.checkpoint())
            return engine

        def begin(graph: Any, case: Case) -> penstock.Engine:
            return penstock.Engine(
                graph, plan=case.plan, feedback=feedback, lateness=case.lateness, adapt="on"
            )

        check_case(case, begin, between)
    assert changes


@pytest.mark.parametrize("seed", range(4))
def test_drifting_streams(seed: int) -> None:
    """Selectivities swap while old tuples are still alive, with restarts in mid-completion."""
    schema = pa.schema([(name, pa.int64()) for name in ("id", "ts", "x", "y", "z")])
    query = penstock.parse(
        """SELECT A.id AS a, B.id AS b, C.id AS c, D.id AS d FROM A [RANGE 3 SECONDS],
           B [RANGE 3 SECONDS], C [RANGE 2 SECONDS], D [RANGE 3 SECONDS]
           WHERE A.x = B.x AND A.y = C.y AND A.z = D.z""",
        schemas=dict.fromkeys("ABCD", schema),
    )
    chance = np.random.default_rng(seed)
    feedback = ("off", "jit")[seed % 2]
    engine = penstock.Engine(query, feedback=feedback, lateness="1 SECONDS")
    oracle = Oracle(query, 1000)
    for second in range(24):
        domains = [2, 8, 30]
        domains = domains[second // 4 % 3 :] + domains[: second // 4 % 3]
        batch = {}
        for name in "ABCD":
            times = np.sort(1000 * second + chance.integers(-800, 1000, 4)).clip(0)
            keys = [chance.integers(0, domain, 4) for domain in domains]
            batch[name] = pa.table([times, times, *keys], schema=schema)
        assert_same_rows(engine.push(batch), oracle.push(batch, None), query)
        if second % 7 == 6:
            engine = penstock.Engine.restore(query, engine.checkpoint())
    assert engine.metrics()["control"]["migrations"] >= 3
