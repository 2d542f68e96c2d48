"""Cells that are short of time: nothing twice, and nothing lost that was only put off."""

from __future__ import annotations

import dataclasses
import random
import re
from collections import Counter
from operator import ge
from typing import Any

import pytest
from case_deliveries import deliveries_of, settings_of, spark_oracle
from memory_store import MemoryStore

from penstock.cells.delivery import Delivery
from penstock.cells.placement import place
from penstock.engine.overload.overload import Overload
from penstock.job.job import Job, Sink
from penstock.planning.limits import Limits
from penstock.spark.cells.trigger_budget import with_trigger_budget
from penstock.spark.state import cell_history
from penstock.spark.state.cell_history import CellHistory
from penstock.spark.state.engine_cache import EngineCache
from penstock.testing import FEATURES, Knobs, canonical, generate, rows_of

KNOBS = Knobs(
    FEATURES
    - {"watermark", "watermark ahead", "except", "group by", "rstream"}
    - {"rows", "partition", "no event time", "arrival"},
    streams=(2, 4),
)


@pytest.mark.parametrize("policy", ["shed", "defer"])
@pytest.mark.parametrize("block", range(3))
def test_failed_attempts_lost_and_foreign_engines(
    block: int, policy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for exact cells, with budgets that no second attempt repeats."""
    chance = random.Random(block)
    short = 0
    for number in range(8):
        monkeypatch.setattr(cell_history, "SMALLEST", chance.choice([0, 300, 1 << 20]))
        case = generate(7_000 + 1_000 * block + number, KNOBS)
        text = re.sub(r"(\[(?:RANGE \d+ \w+|NOW)\])", r"\1 FRESHNESS 10000 DAYS", case.text)
        case = dataclasses.replace(case, text=text)
        graph = case.graph()
        settings = settings_of(case, graph, place(graph, chance.choice([1, 2])))
        option = Overload(policy, probes=1e-6)
        settings = dataclasses.replace(settings, options={"overload": option})
        stores = [MemoryStore() for _ in range(settings.placement.cells)]
        workers = [EngineCache(), EngineCache()]
        oracle = spark_oracle(case, graph)
        found: Counter[Any] = Counter()
        wanted: Counter[Any] = Counter()
        told: dict[int, list[float]] = {}
        for push, deliveries in enumerate(deliveries_of(case, graph, settings.placement)):
            for cell, delivery in enumerate(deliveries):
                while True:
                    if chance.random() < 0.2:
                        workers[chance.randrange(2)].clear()
                    worker = chance.choice(workers)
                    history = CellHistory(stores[cell], settings, cell, "f")
                    history.read()
                    fails = chance.random() < 0.3
                    seen = Delivery(delivery.newest) if fails else delivery
                    taken, _ = history.take(seen, worker)
                    if not fails:
                        break
                    stores[cell].abort()
                stores[cell].commit()
                short += taken.overload["debt"]["probes"] > 0 or taken.overload["skipped"] > 0
                accounts = [taken.overload[name] for name in ("skipped", "probes", "paid", "stale")]
                assert all(map(ge, accounts, told.get(cell, [0] * 4)))
                told[cell] = accounts
                found.update(canonical(row) for row in rows_of(taken.results))
            wanted.update(canonical(row) for row in oracle.push(case.pushes[push]))
        assert not found - wanted
        for cell, store in enumerate(stores):
            history = CellHistory(store, settings, cell, "f")
            history.read()
            last, _ = history._current(None)
            found.update(canonical(row) for row in rows_of(last.finish()))
        wanted.update(canonical(row) for row in oracle.finish())
        assert not found - wanted
        if policy == "defer":
            assert found == wanted
    assert short > 20


def job(**fields: Any) -> Job:
    return Job("j", "SELECT 1", {}, Sink("noop"), "checkpoint", **fields)


def test_the_trigger_is_a_budget_where_there_is_no_other() -> None:
    found = with_trigger_budget({"overload": "shed"}, job(trigger=2000), 4, lambda: 2)
    assert found["overload"] == Overload("shed", seconds=0.5)
    found = with_trigger_budget({"overload": "shed"}, job(trigger=2000), 1, lambda: 8)
    assert found["overload"].seconds == 1.0


@pytest.mark.parametrize(
    ("options", "trigger"),
    [
        ({}, 2000),
        ({"overload": "exact"}, 2000),
        ({"overload": "defer"}, "available-now"),
        ({"overload": "defer"}, 0),
        ({"overload": "defer", "limits": Limits(probes=5)}, 2000),
        ({"overload": Overload("shed", cpu=0.5)}, 2000),
    ],
)
def test_other_budgets_stay(options: dict[str, Any], trigger: Any) -> None:
    assert with_trigger_budget(options, job(trigger=trigger), 2, lambda: 2) == options
