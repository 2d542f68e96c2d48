"""A cell whose state is its sources gives the oracle's answer, whatever became of its engine."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from case_deliveries import spark_oracle
from sourced_case import SourcedCase, with_statics_first

from penstock.cells.placement import place
from penstock.cells.router import Router
from penstock.engine.push.dropped import Dropped
from penstock.errors import PenstockError
from penstock.spark.data_source import cell_snapshots, engine_cache, sourced_cell
from penstock.testing import Case, Knobs, difference, generate, rows_of
from penstock.testing.compare import inexact_columns
from penstock.testing.time_rules import with_time_rules

KNOBS = Knobs(streams=(2, 3)).without(["watermark", "watermark ahead", "payload"])
CELLS = (1, 2, 4, 7)
KINDS = (
    ("lateness", "late"),
    ("self-join",),
    ("static", "key types"),
    ("except", "lateness"),
    ("except",),
    ("group by", "lateness"),
    ("group by",),
    ("rows",),
    ("dstream", "lateness"),
    ("rstream",),
    ("theta",),
    ("splits",),
)


def usable(seed: int, features: tuple[str, ...]) -> Case | None:
    case = generate(seed, KNOBS)
    if not set(features) <= case.features or len(case.pushes) < 3:
        return None
    try:
        case = with_statics_first(case)
        for push in case.pushes:
            for table in push.values():
                sink = pa.BufferOutputStream()
                pq.write_table(table, sink)
                if pq.read_schema(pa.BufferReader(sink.getvalue())) != table.schema:
                    return None
    except (PenstockError, pa.ArrowException):
        return None
    return case


@pytest.fixture(autouse=True)
def every_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of its own, in which every snapshot is worth its while."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("_WORTH_SECONDS", "_WORTH_SAVES", "_SHARE"):
        monkeypatch.setattr(cell_snapshots, name, 0)


def run(case: Case, folder: Path, chance: random.Random) -> int:
    """Run ``case`` with engines that vanish, fall behind, are ahead, and other cells at each
    restart and beside it; how many results there were."""
    sourced = SourcedCase(case, folder, cells=chance.choice(CELLS))
    if chance.random() < 0.6:  # Snapshots in every batch, in the cache or beside the ledger.
        kinds: list[dict[str, Any]] = [{"cache_bytes": 1 << 30}, {"durable_seconds": 0.0}]
        sourced.snapshots = chance.choice([*kinds, kinds[0] | kinds[1]])
    graph = sourced.graph
    oracle = spark_oracle(case, graph)
    expected: list[list[Any]] = []
    total = 0

    def check(number: int, cells: int | None) -> None:
        found = rows_of(sourced.take(number, cells))
        wrong = difference(found, expected[number], inexact_columns(graph))
        assert wrong is None, f"push {number}: {wrong}\n{case}"

    engine_cache.clear()
    is_bounded = not graph.by_rows and chance.random() < 0.3
    for number, push in enumerate(case.pushes):
        latest = bounds(push, sourced, chance) if is_bounded else {}
        sourced.write(number, latest)
        expected.append(oracle.push(within(push, sourced, latest)))
        total += len(expected[-1])
        if not any(map(len, push.values())):
            continue
        fate = chance.random()
        if fate < 0.3:
            engine_cache.clear()
            sourced.cells = chance.choice(CELLS)
            if chance.random() < 0.3:
                damage(folder.parent, chance)
        cells = chance.choice(CELLS) if fate > 0.8 else None
        if chance.random() < 0.9:  # Else the engine falls behind: somebody else did the batch.
            check(number, cells)
        if chance.random() < 0.2:  # The batch is done again.
            check(number, None)
        if chance.random() < 0.15:  # Back to an older one.
            check(chance.randint(0, number), None)
    return total


def bounds(
    push: Mapping[str, pa.Table], case: SourcedCase, chance: random.Random
) -> dict[str, int]:
    """A latest event time for some sources, in milliseconds, which some rows are beyond."""
    found = {}
    for name, table in push.items():
        times = [time for time in nanoseconds(table, case, name) if time is not None]
        if times and chance.random() < 0.5:
            found[name] = chance.choice(times) // 10**6
    return found


def within(
    push: Mapping[str, pa.Table], case: SourcedCase, latest: Mapping[str, int]
) -> dict[str, pa.Table]:
    """The rows of ``push`` that are not beyond ``latest``."""
    found = dict(push)
    for name, most in latest.items():
        times = nanoseconds(push[name], case, name)
        found[name] = push[name].filter(pa.array([t is None or t <= most * 10**6 for t in times]))
    return found


def nanoseconds(table: pa.Table, case: SourcedCase, name: str) -> list[int | None]:
    column = case.streams[name].event_time
    if column is None:
        return []
    times = table.column(column)
    if pa.types.is_timestamp(times.type):
        units = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
        scale = units[times.type.unit]
        return [None if t is None else t * scale for t in times.cast(pa.int64()).to_pylist()]
    return [None if t is None else t * 10**6 for t in times.to_pylist()]


def damage(folder: Path, chance: random.Random) -> None:
    """Some snapshots are gone, others cut off or changed."""
    for file in sorted(folder.rglob("*.snapshot")):
        fate = chance.random()
        if fate < 0.3:
            file.unlink()
        elif fate < 0.6:
            content = bytearray(file.read_bytes())
            content[chance.randrange(len(content))] ^= 1
            file.write_bytes(content[: len(content) if fate < 0.5 else -1])


def test_a_snapshot_saves_reading_and_stands_in_for_files_that_are_gone(tmp_path: Path) -> None:
    """With the files of its windows removed, only a cell with a snapshot goes on."""
    case = next(c for s in range(50_000, 60_000) if (c := usable(s, ("lateness", "late"))))
    oracle = spark_oracle(case, case.graph())
    expected = [oracle.push(push) for push in case.pushes]
    last = len(case.pushes) - 1
    for snapshots in ({"durable_seconds": 0.0}, {"cache_bytes": 1 << 30}, {}):
        sourced = SourcedCase(case, tmp_path / str(len(list(tmp_path.iterdir()))))
        sourced.snapshots = snapshots
        engine_cache.clear()
        for number in range(len(case.pushes)):
            sourced.write(number)
            if number < last:
                sourced.take(number)
        engine_cache.clear()
        for name in sourced.graph.sources:
            for file in (sourced.folder / name).glob("*.parquet"):
                if file.name != f"{last:04}.parquet":
                    file.unlink()
        if snapshots:
            assert difference(rows_of(sourced.take(last)), expected[last]) is None
        else:
            with pytest.raises(PenstockError, match="is gone"):
                sourced.take(last)


@pytest.mark.parametrize("features", KINDS, ids="-".join)
def test_random_queries(features: tuple[str, ...], tmp_path: Path) -> None:
    count = 40 if "PENSTOCK_LONG" in os.environ else 4
    chance = random.Random(repr(features))
    seed, runs, results = 50_000, 0, 0
    while runs < count or results < 10:
        seed += 1
        case = usable(seed, features)
        if case is not None:
            if chance.random() < 0.5 and "rows" not in case.features:
                case = with_time_rules(case, chance)
            results += run(case, tmp_path / str(seed), chance)
            runs += 1


def late_rows(case: Case, folder: Path, cells: int) -> list[Counter[str]]:
    """The late rows that all cells together tell of each push, by source."""
    sourced = SourcedCase(case, folder, cells)
    engine_cache.clear()
    told = []
    for number in range(len(case.pushes)):
        sourced.write(number)
        found: Counter[str] = Counter()
        for each in sourced.taken(number):
            for source, reasons in each.report.dropped.items():
                found[source] += sum(reasons.values())
        told.append(found)
    return told


def test_a_late_row_is_told_by_one_of_the_cells_that_got_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as one cell tells of those rows that can be in a result: others are sent nowhere."""
    seed, rows, copies = 60_000, 0, 0
    while rows < 5 or copies < 2:
        seed += 1
        case = usable(seed, ("lateness", "late"))
        if case is None or (placement := place(case.graph(), 4)).cells < 2:
            continue
        router = Router(case.graph(), placement)

        def sent(
            _settings: object, _number: int, dropped: list[Dropped], router: Router = router
        ) -> list[Dropped]:
            found = []
            for each in dropped:
                table = each.rows.combine_chunks()
                columns = {n: table.column(n).chunk(0) for n in table.column_names}
                first = router.first_cells(each.source, columns, len(table))
                found.append(replace(each, rows=table.filter(pa.array(first >= 0))))
            return found

        folder = tmp_path / str(seed)
        found = late_rows(case, folder / "four", 4)
        with monkeypatch.context() as patch:
            patch.setattr(sourced_cell, "told_once", sent)
            assert found == late_rows(case, folder / "one", 1), str(case)
            # If every cell told what it got, copies would count.
            by_all = late_rows(case, folder / "all", 4)
        rows += sum(map(Counter.total, found))
        copies += sum(map(Counter.total, by_all)) - sum(map(Counter.total, found))


def test_engines_in_memory_have_a_limit_in_bytes(tmp_path: Path) -> None:
    """Those that were not used for longest go; the last one stays, whatever its size."""
    engine_cache.clear()
    most = 0
    for number in range(50):
        live = engine_cache.LiveCell(position=None, cell=None, size=10)  # type: ignore[arg-type]
        engine_cache.put(f"lane {number}", 0, live, most=45)
        most = max(most, sum(each.size for each in engine_cache._engines.values()))
    assert most == 40
    assert [lane for lane, _ in engine_cache._engines] == [f"lane {n}" for n in range(46, 50)]
    large = engine_cache.LiveCell(position=None, cell=None, size=99)  # type: ignore[arg-type]
    engine_cache.put("large", 0, large, most=45)
    assert engine_cache.take("large", 0) is large
    assert not engine_cache._engines
