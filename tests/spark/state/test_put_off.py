"""Probes that are put off: all attempts at a batch put off the same, however fast they are.

Spark may take the answer of one attempt and the state of another: copies of slow tasks, a crash
between the commit of the sink and its own. Nothing may leave twice then, and nothing be forgotten.
"""

from __future__ import annotations

import dataclasses
import random
import re
import time
from collections import Counter
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from case_deliveries import deliveries_of, settings_of, spark_oracle
from memory_store import MemoryStore

from penstock.cells.delivery import Delivery
from penstock.cells.placement import place
from penstock.engine.overload import limited_join
from penstock.engine.overload.overload import Overload
from penstock.engine.overload.probe_budget import ProbeBudget
from penstock.query.join_graph import JoinGraph
from penstock.spark.cells.cell import CellSettings
from penstock.spark.state import cell_history
from penstock.spark.state.cell_history import CellHistory
from penstock.spark.state.engine_cache import EngineCache
from penstock.spark.state.live_cell import HandedOn, Taken
from penstock.testing import FEATURES, Case, Knobs, canonical, generate, rows_of

KNOBS = Knobs(
    FEATURES
    - {"watermark", "watermark ahead", "except", "group by", "rstream"}
    - {"rows", "partition", "no event time", "arrival"},
    streams=(2, 4),
)
BLOCKS = 4


class Clock:
    """A machine of its own speed at every look."""

    def __init__(self, chance: random.Random) -> None:
        self._chance, self._now = chance, 0.0
        self.speed = 1.0

    def __call__(self) -> float:
        self._now += self.speed * self._chance.random()
        return self._now

    def change(self) -> None:
        self.speed = 10 ** self._chance.uniform(-6, 1)


def tree_of(graph: JoinGraph, chance: random.Random) -> str:
    """A plan of binary joins in any order, or whatever the engine chooses."""
    if chance.random() < 0.4:
        return "auto"
    nodes = [s.alias for s in graph.streams]
    while len(nodes) > 1:
        chance.shuffle(nodes)
        nodes.append(f"({nodes.pop()} {nodes.pop()})")
    return nodes[0]


def divided(delivery: Delivery, chance: random.Random) -> Delivery:
    """The same rows as Spark may bring them next time: in other pieces, in another order."""
    found = Delivery(dict(delivery.newest))
    for source, rows in delivery.tables().items():
        places = chance.sample(range(len(rows)), len(rows))
        cut = chance.randint(0, len(rows))
        for part in (places[:cut], places[cut:]):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, rows.schema) as writer:
                writer.write_table(rows.take(pa.array(part, pa.int64())))
            found.add(source, None, bytes(sink.getvalue()))
    return found


def a_case(number: int, chance: random.Random) -> tuple[Case, JoinGraph, CellSettings]:
    case = generate(number, KNOBS)
    text = re.sub(r"(\[(?:RANGE \d+ \w+|NOW)\])", r"\1 FRESHNESS 10000 DAYS", case.text)
    case = dataclasses.replace(case, text=text)
    graph = case.graph()
    settings = settings_of(case, graph, place(graph, chance.choice([1, 2])))
    budget = chance.choice(
        [
            Overload("defer", seconds=10 ** chance.uniform(-7, 0)),
            Overload("defer", cpu=10 ** chance.uniform(-6, 0)),
            Overload("defer", probes=1e-6),
        ]
    )
    options = {**settings.options, "overload": budget}
    plan = tree_of(graph, chance)
    return case, graph, dataclasses.replace(settings, options=options, plan=plan)


@dataclasses.dataclass
class Attempts:
    """Attempts at batches of a case, each on a machine of another speed."""

    settings: CellSettings
    chance: random.Random
    clock: Clock
    workers: list[EngineCache]

    def attempt(self, store: MemoryStore, cell: int, delivery: Delivery) -> Taken:
        """What a delivery led to; it is in ``store``."""
        self.clock.change()
        if self.chance.random() < 0.3:
            self.chance.choice(self.workers).clear()
        history = CellHistory(store, self.settings, cell, "f")
        history.read()
        due = None if self.chance.random() < 0.2 else self.chance.uniform(-1, 1)
        taken, live = history.take(
            divided(delivery, self.chance) if self.chance.random() < 0.5 else delivery,
            self.chance.choice(self.workers),
            None if due is None else time.perf_counter() + due,
        )
        live.handed_on = HandedOn(10, self.chance.random(), 10, self.chance.random())
        store.commit()
        return taken


@pytest.mark.parametrize("block", range(BLOCKS))
def test_attempts_of_different_speed_put_off_the_same(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(block)
    clock = Clock(chance)
    slow = partial(ProbeBudget, cpu_time=clock, wall_time=clock)
    monkeypatch.setattr(limited_join, "ProbeBudget", slow)
    short = 0
    for number in range(10):
        monkeypatch.setattr(cell_history, "SMALLEST", chance.choice([0, 300, 1 << 20]))
        case, graph, settings = a_case(11_000 + 1_000 * block + number, chance)
        attempts = Attempts(settings, chance, clock, [EngineCache(), EngineCache()])
        stores = [MemoryStore() for _ in range(settings.placement.cells)]
        oracle = spark_oracle(case, graph)
        found: Counter[Any] = Counter()
        wanted: Counter[Any] = Counter()
        for push, deliveries in enumerate(deliveries_of(case, graph, settings.placement)):
            for cell, delivery in enumerate(deliveries):
                copies = []
                for _ in range(chance.choice([1, 2, 3])):
                    copy = stores[cell].copy()
                    taken = attempts.attempt(copy, cell, delivery)
                    copies.append((copy, taken))
                    short += taken.overload["debt"]["probes"] > 0
                answers = [Counter(map(canonical, rows_of(taken.results))) for _, taken in copies]
                assert all(each == answers[0] for each in answers), f"push {push}\n{case}"
                owed = [taken.overload["debt"]["inputs"] for _, taken in copies]
                assert all(each == owed[0] for each in owed), f"push {push}\n{case}"
                stores[cell] = chance.choice(copies)[0]
                found += answers[0]
            wanted.update(canonical(row) for row in oracle.push(case.pushes[push]))
        assert not found - wanted, f"{settings.plan}\n{case}"
        for cell, store in enumerate(stores):
            history = CellHistory(store, settings, cell, "f")
            history.read()
            last, _ = history._current(None)
            found.update(canonical(row) for row in rows_of(last.finish()))
        wanted.update(canonical(row) for row in oracle.finish())
        assert found == wanted, f"{settings.plan}\n{case}"
    assert short > 20
