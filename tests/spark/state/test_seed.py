"""Windows that are laid out anew: other cells, lateness and queries, and the answer stays exact."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from case_deliveries import deliveries_of, settings_of, spark_oracle
from memory_store import MemoryStore

from penstock.cells.delivery import Delivery
from penstock.cells.placement import HotValues, joined_columns, place
from penstock.engine.overload.overload import Overload
from penstock.errors import CheckpointError
from penstock.query.expression import Column
from penstock.query.join_graph import JoinGraph
from penstock.spark.cells.cell import CellSettings
from penstock.spark.state import archive, cell_history
from penstock.spark.state.archive import Bundle, bundled, merged, unbundled
from penstock.spark.state.cell_history import CellHistory
from penstock.spark.state.engine_cache import EngineCache
from penstock.spark.state.seed import Rules, Seed, seeds
from penstock.testing import Case, Knobs, Oracle, difference, generate, rows_of
from penstock.testing.compare import inexact_columns

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "change-a-running-query.md"
KNOBS = Knobs(streams=(2, 4)).without(["watermark", "watermark ahead", "partition"])


class Cells:
    """The cells of a query that is stopped and goes on with others."""

    def __init__(self, settings: CellSettings, name: str) -> None:
        self.stores: dict[int, MemoryStore] = {}
        self.settings, self.name = settings, name
        self.seeds: list[Seed] = []
        self.worker = EngineCache()

    def history(self, cell: int) -> CellHistory:
        store = self.stores.setdefault(cell, MemoryStore())

        def seed_for(nonce: str | None) -> Seed | None:
            return next((s for s in self.seeds[cell : cell + 1] if s.before == nonce), None)

        history = CellHistory(store, self.settings, cell, self.name, seed_for=seed_for)
        history.read()
        return history

    def take(self, deliveries: Sequence[Delivery]) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        for cell, delivery in enumerate(deliveries):
            for fails in (True, False):  # What failed has changed nothing.
                taken, _ = self.history(cell).take(delivery, self.worker)
                if fails:
                    self.stores[cell].abort()
            self.stores[cell].commit()
            rows += rows_of(taken.results)
        return rows

    def change(self, settings: CellSettings, name: str) -> None:
        stores = [self.stores[cell] for cell in range(self.settings.placement.cells)]
        old = [cell_history.laid_out(str(store.header()), store.read) for store in stores]
        before = []
        for cell in range(settings.placement.cells):
            store = self.stores.setdefault(cell, MemoryStore())
            before.append(cell_history.last_nonce(store.header()))
        made, _ = seeds(old, settings, before)
        self.seeds = [Seed.from_bytes(seed.to_bytes()) for seed in made]
        self.settings, self.name = settings, name


@pytest.mark.parametrize("block", range(4))
def test_other_cells_between_any_two_batches(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(block)
    changes = 0
    for number in range(12):
        monkeypatch.setattr(cell_history, "SMALLEST", chance.choice([0, 300, 1 << 20]))
        case = generate(40_000 + 1_000 * block + number, KNOBS)
        graph = case.graph()
        settings = settings_of(case, graph, place(graph, 2))
        cells = Cells(settings, "0")
        oracle = spark_oracle(case, graph)
        for push, rows in enumerate(case.pushes):
            if push and chance.random() < 0.5:
                settings = replace(settings, placement=place(graph, chance.choice([1, 2, 5, 6])))
                cells.change(settings, str(push))
                changes += 1
            found = cells.take(deliveries_of(case, graph, settings.placement)[push])
            wrong = difference(found, oracle.push(rows), inexact_columns(graph))
            assert wrong is None, f"push {push}\n{settings.placement.describe()}\n{wrong}\n{case}"
    assert changes > 10


def hot_values(case: Case, graph: JoinGraph, chance: random.Random) -> HotValues:
    """A value or two of a column that streams are joined by, if one of integers can have some."""
    for columns in joined_columns(graph):
        for alias, column in columns.items():
            if not isinstance(column, Column) or not pa.types.is_integer(column.type):
                continue
            source = graph.stream(alias).source
            tables = [push[source] for push in case.pushes if source in push]
            found = {v for t in tables for v in t.column(column.name).to_pylist()} - {None}
            if found:
                return {str(column): chance.sample(sorted(found), min(len(found), 2))}
    return {}


def static_sources(graph: JoinGraph) -> set[str]:
    return {s.source for block in graph.blocks for s in block.streams if s.is_static}


def belated(case: Case, graph: JoinGraph, chance: random.Random) -> Case:
    """``case`` with a third of the rows of its streams in one of the two pushes after theirs."""
    static = static_sources(graph)
    pushes: list[dict[str, pa.Table]] = [{} for _ in case.pushes]
    for number, push in enumerate(case.pushes):
        for source, rows in push.items():
            places = [0 if source in static else chance.choice([0, 0, 0, 0, 1, 2]) for _ in rows[0]]
            for shift in range(3):
                some = rows.filter(pa.array([place == shift for place in places], pa.bool_()))
                if not len(some):
                    continue
                there = pushes[min(number + shift, len(pushes) - 1)]
                there[source] = pa.concat_tables([there.get(source, some[:0]), some])
    return replace(case, pushes=pushes)


def other_rules(case: Case, graph: JoinGraph, chance: random.Random) -> Rules:
    """Another lateness, by source or for all, with and without ``idle``; mostly a larger one."""
    moving = [s for s in graph.sources if s not in static_sources(graph)]
    reach = max((t.num_rows for push in case.pushes for t in push.values()), default=1)
    delays = {source: chance.choice([0, 1, 3, reach, 10 * reach]) for source in moving}
    if chance.random() < 0.2:
        del delays[chance.choice(moving)]
    idle = chance.choice([None, None, 5, 50])
    return Rules(delays, chance.choice(["min", "min", "max"]), idle)


def test_other_rates_hot_values_and_lateness_between_any_two_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each row is late or not by the rules of the batch that it came with, however often windows
    are laid out anew."""
    chance = random.Random(1)
    changes = late = hot = 0
    refused = {False: 0, True: 0}
    for number in range(24):
        monkeypatch.setattr(cell_history, "SMALLEST", chance.choice([0, 300, 1 << 20]))
        case = generate(60_000 + number, KNOBS)
        graph = case.graph()
        if graph.by_rows:
            continue
        case = belated(case, graph, chance)
        rules = other_rules(case, graph, chance)
        settings = rules.on(settings_of(case, graph, place(graph, 2)))
        cells = Cells(settings, "0")
        oracle = Oracle(graph, rules.delays, rules.idle, rules.policy)
        for push, rows in enumerate(case.pushes):
            if push and chance.random() < 0.5:
                rates = {source: chance.choice([0.1, 1.0, 20.0]) for source in graph.sources}
                values = hot_values(case, graph, chance) if chance.random() < 0.7 else {}
                placement = place(graph, chance.choice([2, 4, 6]), rates, values)
                rules = other_rules(case, graph, chance)
                changed = rules.on(replace(settings, placement=placement))
                try:
                    cells.change(changed, str(push))
                except CheckpointError as problem:
                    told = str(problem)
                    gone = "has no watermark any more, and may match rows" in told
                    grouped = graph.is_grouped or graph.minus
                    assert gone or ("has its first watermark, and GROUP BY" in told and grouped)
                    refused[gone] += 1
                else:
                    settings = changed
                    oracle.go_on_with(rules.delays, rules.idle, rules.policy)
                    changes += 1
                    hot += bool(placement.hot)
            found = cells.take(deliveries_of(case, graph, settings.placement)[push])
            wrong = difference(found, oracle.push(rows), inexact_columns(graph))
            assert wrong is None, f"push {push}\n{settings.placement.describe()}\n{wrong}\n{case}"
        late += sum(oracle.late.values())
    assert changes > 30
    assert late > 30
    assert hot > 5
    assert all(refused.values())
    assert "| a stream has no watermark any more |" in PAGE.read_text()
    assert "| a stream has its first watermark, with `GROUP BY` or `EXCEPT` |" in PAGE.read_text()


SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "x", "y")])
TEXT = "SELECT A.id AS a, B.id AS b FROM A [{}], B [{}] WHERE A.x = B.x AND A.y <> B.y"
CHANGED = "SELECT B.ts AS t, A.id AS a FROM A [{}], B [{}] WHERE A.x = B.x AND A.y < B.y"


def a_push(number: int) -> dict[str, pa.Table]:
    chance = np.random.default_rng(number)
    times = 100 * number + np.sort(chance.integers(0, 100, 20))
    return {
        name: pa.table(
            [np.arange(20) + 20 * number, times, *chance.integers(0, 6, (2, 20))], SCHEMA
        )
        for name in "AB"
    }


def case_of(text: str, pushes: int) -> Case:
    rows = [a_push(number) for number in range(pushes)]
    return Case(text, dict.fromkeys("AB", SCHEMA), "ts", rows, "(A B)", 0)


@pytest.mark.parametrize(
    "windows",
    [
        ("RANGE 300 MILLISECONDS", "RANGE 500 MILLISECONDS"),
        ("ROWS 15", "ROWS 50"),
        ("UNBOUNDED", "UNBOUNDED"),
        ("UNBOUNDED", "RANGE 300 MILLISECONDS"),
    ],
)
def test_a_changed_query_goes_on(windows: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Another SELECT list and another predicate, and back, for all kinds of windows."""
    monkeypatch.setattr(cell_history, "SMALLEST", 0)
    monkeypatch.setattr(archive, "LARGEST_BYTES", 20_000)
    pushes = 24
    texts = [text.format(*windows) for text in (TEXT, CHANGED)]
    cases = [case_of(text, pushes) for text in texts]
    graphs = [case.graph() for case in cases]
    kinds = [settings_of(c, g, place(g, 2)) for c, g in zip(cases, graphs, strict=True)]
    oracles = [spark_oracle(c, g) for c, g in zip(cases, graphs, strict=True)]
    deliveries = [
        deliveries_of(c, g, k.placement) for c, g, k in zip(cases, graphs, kinds, strict=True)
    ]
    cells, now = Cells(kinds[0], "0"), 0
    for push in range(pushes):
        if push in (7, 14, 21):
            now = 1 - now
            cells.change(kinds[now], str(push))
        found = cells.take(deliveries[now][push])
        wanted = [oracle.push(a_push(push)) for oracle in oracles][now]
        assert difference(found, wanted) is None, push


def test_many_deliveries_are_few_bundles() -> None:
    store = MemoryStore()
    bundles: list[Bundle] = []
    for version in range(3_000):
        value = bundled([str(version).encode()])
        store.write(f"{version}", [value])
        bundles, gone = merged(
            [*bundles, Bundle(f"{version}", version, 1, len(value))],
            lambda first, level: f"{first} level {level}",
            store.read,
            store.write,
        )
        store.let_go(gone)
    assert len(bundles) < 40
    assert len(store.values) == len(bundles)
    found = [bytes(each) for bundle in bundles for each in unbundled(store.read(bundle.name))]
    assert found == [str(version).encode() for version in range(3_000)]
    assert [b.version for b in bundles] == [int(unbundled(store.read(b.name))[0]) for b in bundles]


def test_longer_windows_of_rows_are_refused() -> None:
    case = case_of(TEXT.format("ROWS 15", "ROWS 20"), 3)
    cells = Cells(settings_of(case, case.graph(), place(case.graph(), 1)), "0")
    for deliveries in deliveries_of(case, case.graph(), cells.settings.placement):
        cells.take(deliveries)
    longer = case_of(TEXT.format("ROWS 16", "ROWS 20"), 3)
    with pytest.raises(CheckpointError, match="the window of A had 15 rows before; name another"):
        cells.change(settings_of(longer, longer.graph(), place(longer.graph(), 1)), "1")


@pytest.mark.parametrize(
    "text",
    [
        TEXT.format("PARTITION BY x ROWS 2", "ROWS 20"),
        "SELECT A.x AS x FROM A [ROWS 15] EXCEPT SELECT B.x AS x FROM B [ROWS 20]",
    ],
    ids=["partition by", "except"],
)
def test_rows_by_value_are_refused_once_deliveries_are_gone(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_history, "SMALLEST", 0)
    case = case_of(text, 12)
    graph = case.graph()
    settings = settings_of(case, graph, place(graph, 1))
    cells = Cells(settings, "0")
    for deliveries in deliveries_of(case, graph, settings.placement):
        cells.take(deliveries)
    with pytest.raises(CheckpointError, match=r"PARTITION BY … ROWS, .* cannot be laid"):
        cells.change(replace(settings, options={"idle": 5}), "1")
    assert "| windows of `PARTITION BY … ROWS`, or of `EXCEPT` with `ROWS` |" in PAGE.read_text()


JOINED = "SELECT A.id AS a FROM A [RANGE 300 MILLISECONDS], B [RANGE 1 SECOND] WHERE A.x = B.x"
FRESH = JOINED.replace("MILLISECONDS]", "MILLISECONDS] FRESHNESS 1 DAY")
OTHER_TYPE = SCHEMA.set(2, pa.field("x", pa.int32()))


@pytest.mark.parametrize(
    ("before", "now", "reason", "on_the_page"),
    [
        (
            JOINED,
            {"text": JOINED.replace("300", "301")},
            "the window of A was shorter before",
            "the window of a stream was shorter before",
        ),
        (
            JOINED,
            {"text": JOINED.replace("A.id", "A.y")},
            "A.y was not read before",
            "the query did not read a column before",
        ),
        (
            f"{JOINED} AND A.id > 3",
            {"text": JOINED},
            "rows of A that fail A.id > 3 were not kept",
            "rows that fail a predicate on one stream were not kept",
        ),
        (
            JOINED,
            {"event_time": "id"},
            "A has another event time",
            "a stream has another event time",
        ),
        (
            JOINED,
            {"text": f"{JOINED.replace(' WHERE', ', C [RANGE 1 SECOND] WHERE')} AND B.x = C.x"},
            "the windows of C were not kept",
            "the query did not read a stream before",
        ),
        (
            JOINED,
            {"schemas": dict.fromkeys("ABC", OTHER_TYPE)},
            "A.x was int64 before and is int32",
            "a column had another type before",
        ),
        (
            FRESH,
            {"text": FRESH.replace("1 SECOND", "9 MILLISECONDS")},
            "probes are owed",
            "probes are owed (`defer`)",
        ),
    ],
    ids=["window", "column", "predicate", "time", "stream", "type", "owed"],
)
def test_what_was_not_kept_is_refused_in_one_line_with_the_way_out(
    before: str, now: dict[str, Any], reason: str, on_the_page: str
) -> None:
    first = replace(case_of(before, 3), schemas=dict.fromkeys("ABC", SCHEMA))
    if "not read" in reason:
        pushes = [{n: t.drop(["y"]) for n, t in push.items()} for push in first.pushes]
        first = replace(first, pushes=pushes)
    graph = first.graph()
    settings = settings_of(first, graph, place(graph, 2))
    if "owed" in reason:
        options = {**settings.options, "overload": Overload("defer", probes=1)}
        settings = replace(settings, options=options)
    cells = Cells(settings, "0")
    for deliveries in deliveries_of(first, graph, settings.placement):
        cells.take(deliveries)
    headers = [store.header() for store in cells.stores.values()]
    second = replace(first, **now)
    with pytest.raises(CheckpointError) as refused:
        cells.change(settings_of(second, second.graph(), place(second.graph(), 2)), "1")
    told = str(refused.value)
    assert told.startswith(reason)
    assert told.endswith("; name another checkpoint folder to begin anew")
    assert "\n" not in told
    assert f"| {on_the_page} |" in PAGE.read_text()
    assert [store.header() for store in cells.stores.values()] == headers
