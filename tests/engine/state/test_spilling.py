"""Windows beyond memory: the same answers with nearly all on disk, and a limit that holds."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.running.running_join import RunningJoin
from penstock.engine.state import payload, ring_files, saved_window, windows
from penstock.engine.state import rows as rows_module
from penstock.engine.state.address import address_of
from penstock.testing.compare import difference, rows_of

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("v", pa.float64()), ("s", pa.string())])
TEXTS = {
    "range": "SELECT A.v AS a, B.s AS b, C.v AS c FROM A [RANGE 20 SECONDS], B [RANGE 10 SECONDS], "
    "C [RANGE 5 SECONDS] WHERE A.k = B.k AND B.k = C.k",
    "fixed": "SELECT A.v AS a, B.v AS b FROM A [RANGE 20 SECONDS], B [RANGE 20 SECONDS] "
    "WHERE A.k = B.k AND A.v < B.v",
    "groups": "SELECT A.s AS s, SUM(B.v) AS v FROM A [RANGE 9 SECONDS], B [RANGE 9 SECONDS] "
    "WHERE A.k = B.k GROUP BY A.s",
    "rows": "SELECT A.s AS a, B.v AS b FROM A [ROWS 3000], B [PARTITION BY k ROWS 2] "
    "WHERE A.k = B.k",
    "dstream": "SELECT DSTREAM A.s AS a, B.s AS b FROM A [RANGE 9 SECONDS], B [RANGE 2 SECONDS] "
    "WHERE A.k = B.k",
}


def batch(second: int, rows: int, nulls: bool = False, values: int = 500) -> dict[str, pa.Table]:
    chance = np.random.default_rng(second)
    times = 1000 * second + np.sort(chance.integers(0, 1000, rows))
    tables = {}
    for name in "ABC":
        numbers = pa.array(chance.random(rows), mask=chance.random(rows) < 0.1 if nulls else None)
        keys = chance.integers(0, values, rows)
        texts = [f"{name} {second} {number} " + "x" * (number % 40) for number in range(rows)]
        tables[name] = pa.table([times, keys, numbers, texts], schema=SCHEMA)
    return tables


def engine_of(text: str, **options: Any) -> penstock.Engine:
    schemas = {name: SCHEMA for name in "ABC" if f"{name} [" in text}
    return penstock.Engine(penstock.parse(text, schemas), **options)


def given(engine: penstock.Engine, tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    return {name: table for name, table in tables.items() if name in engine.columns}


@pytest.mark.parametrize("execution", ["auto", "reference"])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_with_a_tiny_limit_answers_are_the_same(text: str, execution: str, tmp_path: Path) -> None:
    free = engine_of(text, execution=execution)
    limits = penstock.Limits(memory=50_000)
    tight = engine_of(text, execution=execution, limits=limits, spill_folder=tmp_path)
    most = 0
    for second in range(26):
        tables = given(free, batch(second, 300, nulls=second > 10))
        if second == 12:
            tight.migrate("(B A C)" if " C " in text else "(B A)", strategy="jisc")
        if second == 18:
            blob = tight.checkpoint()
            tight = penstock.Engine.restore(tight.query, blob, spill_folder=tmp_path)
        expected, found = free.push(tables), tight.push(tables)
        assert difference(rows_of(found), rows_of(expected)) is None
        most = max(most, tight.metrics()["state"]["disk"]["bytes"])
    disk = tight.metrics()["state"]["disk"]
    assert most > 100_000
    assert disk["rows_back"] > 0
    assert disk["folder"] == str(tmp_path)
    assert list(tmp_path.iterdir()) == []
    held, needed = (
        sum(window["bytes"] for window in each.metrics()["state"]["windows"].values())
        for each in (tight, free)
    )
    assert held < needed / 2
    assert "are on disk" in tight.explain()
    assert difference(rows_of(tight.finish()), rows_of(free.finish())) is None


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_checkpoint_is_written_and_read_a_piece_at_a_time(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_window, "PIECE_BYTES", 8_000)
    monkeypatch.setattr(saved_window, "LEAST_PIECE", 16)
    monkeypatch.setattr(windows, "VALUES_IN_A_PIECE", 64)
    free = engine_of(text)
    limits = penstock.Limits(memory=150_000)
    tight = engine_of(text, limits=limits, spill_folder=tmp_path)
    for second in range(12):
        tables = given(free, batch(second, 300))
        free.push(tables)
        tight.push(tables)
    grown: list[tuple[int, int]] = []
    keep = RunningJoin.keep_within_memory

    def recorded(join: RunningJoin) -> None:
        before = join.nbytes
        keep(join)
        grown.append((before, join.nbytes))

    monkeypatch.setattr(RunningJoin, "keep_within_memory", recorded)
    path = tmp_path / "checkpoint"
    with open(path, "wb") as file:
        for part in tight.checkpoint_parts():
            assert len(part) < 60_000
            file.write(part)
    assert path.stat().st_size > 150_000
    again = penstock.Engine.restore(tight.query, path, spill_folder=tmp_path)
    path.unlink()
    assert len(grown) > 15
    moved = [before - after for before, after in grown]
    assert sum(moved) > 100_000
    assert np.count_nonzero(moved) > 1
    for second in range(12, 26):
        tables = given(free, batch(second, 300))
        assert difference(rows_of(again.push(tables)), rows_of(free.push(tables))) is None
    assert again.metrics()["state"]["disk"]["bytes"] > 100_000


def test_a_checkpoint_is_of_one_moment(tmp_path: Path) -> None:
    engine = engine_of(TEXTS["fixed"])
    engine.push(given(engine, batch(0, 10)))
    parts = engine.checkpoint_parts()
    next(parts)
    engine.push(given(engine, batch(1, 10)))
    with pytest.raises(penstock.PenstockError, match="took rows in"):
        next(parts)


def test_a_limit_holds_as_long_as_rows_can_go(tmp_path: Path) -> None:
    engine = engine_of(
        TEXTS["range"], limits=penstock.Limits(memory="1500 KB"), spill_folder=tmp_path
    )
    for second in range(30):
        engine.push(batch(second, 5_000 if second == 15 else 1_000, values=20_000))
        metrics = engine.metrics()
        assert metrics["state"]["bytes"] <= 1_500_000, second
        assert metrics["control"]["exceeded"] == []
    assert sum(window["on_disk"] for window in metrics["state"]["windows"].values()) > 1_000_000
    assert any("go to disk" in event.reason for event in engine.drain_events())


def test_rows_come_back_when_there_is_room_again(tmp_path: Path) -> None:
    engine = engine_of(
        TEXTS["fixed"], limits=penstock.Limits(memory="600 KB"), spill_folder=tmp_path
    )
    for second in range(60):
        engine.push(given(engine, batch(second, 2_000 if second < 20 else 10)))
    disk = engine.metrics()["state"]["disk"]
    assert disk["files"] == disk["bytes"] == 0


def test_without_disk_nothing_is_lost_and_it_is_said(tmp_path: Path) -> None:
    free = engine_of(TEXTS["range"])
    limits = penstock.Limits(memory=50_000)
    engine = engine_of(TEXTS["range"], limits=limits, spill_folder=tmp_path)
    spilling = engine._join.spilling
    assert spilling is not None
    spilling.pushes_after_refusal = 3

    def full(size: int) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    for second in range(30):
        if second == 12:
            vars(spilling.files)["_mapped"] = full
        if second == 24:
            del vars(spilling.files)["_mapped"]
        tables = batch(second, 300)
        assert difference(rows_of(engine.push(tables)), rows_of(free.push(tables))) is None
        if second == 15:
            assert "No space left on device" in engine.metrics()["state"]["disk"]["refused"]
            assert engine.metrics()["control"]["exceeded"] == ["memory"]
            assert "no more rows go to disk: No space left on device" in engine.explain()
    assert engine.metrics()["state"]["disk"]["refused"] is None
    told = [e.reason for e in engine.drain_events() if "no more rows go to disk" in e.reason]
    assert len(told) == 1


@pytest.mark.parametrize("first", [0, 2, 8, 11, 18])
@pytest.mark.parametrize("text", [TEXTS["range"], TEXTS["fixed"]], ids=["range", "fixed"])
def test_a_disk_that_fails_loses_nothing_and_it_is_said(
    text: str, first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From some write on four in a row do not reach the disk: pages of theirs that are let go are
    read again as zeros. Then the disk is well."""
    free = engine_of(text)
    limits = penstock.Limits(memory=50_000)
    engine = engine_of(text, limits=limits, spill_folder=tmp_path)
    spilling = engine._join.spilling
    assert spilling is not None
    spilling.pushes_after_refusal = 3
    files, calls, told = spilling.files, 0, 0
    lost: dict[int, int] = {}

    def losing(part: Any) -> None:
        start = address_of(part) if part.nbytes else 0
        if any(each <= start < each + size for each, size in lost.items()):
            part[...] = 0

    for module in (ring_files, rows_module, payload):
        monkeypatch.setattr(module, "let_go", losing)

    def settled(block: Any) -> bool:
        nonlocal calls
        calls += 1
        start, end = address_of(block), address_of(block) + block.nbytes
        for each, size in list(lost.items()):  # What is gone may lie where this one lies now.
            if each < end and start < each + size:
                del lost[each]
        if calls <= first or calls > first + 4:
            return True
        lost[start] = block.nbytes
        files.refused = "Input/output error while rows were written"
        files.failed = True
        return False

    vars(files)["settled"] = settled
    for second in range(30):
        tables = given(free, batch(second, 300))
        before = calls
        expected = rows_of(free.push(tables))
        assert difference(rows_of(engine.push(tables)), expected) is None, second
        if before <= first + 3 < calls or (first <= before < calls <= first + 4):
            told += 1
            rings = [leaf.rows for leaf in engine._join.all_leaves]
            assert all(rows.on_disk is None for rows in rings), "all is back in memory"
            assert not files.failed
            assert engine.metrics()["control"]["exceeded"] == ["memory"]
    assert told
    reasons = [event.reason for event in engine.drain_events()]
    assert any(
        "no more rows go to disk: Input/output error while rows were written" in reason
        for reason in reasons
    )
    assert engine.metrics()["state"]["disk"]["bytes"] > 0, "and later rows go there again"


def test_no_disk_if_none_is_allowed(tmp_path: Path) -> None:
    limits = penstock.Limits(memory=50_000, disk=0)
    engine = engine_of(TEXTS["range"], limits=limits, spill_folder=tmp_path)
    for second in range(10):
        engine.push(batch(second, 300))
    assert "disk" not in engine.metrics()["state"]
    assert engine.metrics()["control"]["exceeded"] == ["memory"]
    limits = penstock.Limits(memory=50_000, disk=200_000)
    engine = engine_of(TEXTS["range"], limits=limits, spill_folder=tmp_path)
    for second in range(10):
        engine.push(batch(second, 300))
        assert engine.metrics()["state"]["disk"]["bytes"] <= 200_000
    assert engine.metrics()["state"]["disk"]["refused"] == "the limit on disk is 200,000 bytes"


def test_states_of_a_plan_that_stays_go_last(tmp_path: Path) -> None:
    """A pinned tree whose state alone is far over the limit: the limit holds, answers are right."""
    text = TEXTS["range"]
    free = engine_of(text, plan="((A B) C)")
    limits = penstock.Limits(memory=2_000_000)
    engine = engine_of(text, plan="((A B) C)", limits=limits, spill_folder=tmp_path)
    for second in range(30):
        tables = batch(second, 300, values=300)
        assert difference(rows_of(engine.push(tables)), rows_of(free.push(tables))) is None
        assert engine.metrics()["control"]["exceeded"] == []
    assert free.metrics()["state"]["joins"]["{A, B}"]["bytes"] > 2_000_000
    assert engine.metrics()["state"]["joins"]["{A, B}"]["on_disk"] > 500_000
    assert engine.metrics()["state"]["bytes"] <= limits.memory


def test_another_plan_comes_before_the_disk(tmp_path: Path) -> None:
    """A tree whose state is too large gives way to an mjoin, which fits without any file."""
    schema = pa.schema([("ts", pa.int64()), ("k", pa.int64())])
    text = (
        "SELECT A.k AS a, C.ts AS c FROM A [RANGE 20 SECONDS], B [RANGE 20 SECONDS], "
        "C [RANGE 20 SECONDS] WHERE A.k = B.k AND B.k = C.k"
    )
    query = penstock.parse(text, dict.fromkeys("ABC", schema))

    def run(plan: str, **options: Any) -> penstock.Engine:
        engine = penstock.Engine(query, plan, feedback="off", **options)
        for second in range(60):
            chance = np.random.default_rng(second)
            times = 1000 * second + np.arange(100) * 10
            engine.push(
                {
                    name: pa.table(
                        [times, chance.integers(0, 20 if name != "C" else 900, 100)], schema=schema
                    )
                    for name in "ABC"
                }
            )
        return engine

    small = run("(A B C)", adapt="off").metrics()["state"]["bytes"]
    large = run("((A B) C)", adapt="off").metrics()["state"]["bytes"]
    assert large > 3 * small
    limits = penstock.Limits(memory=int(1.8 * small))
    engine = run("((A B) C)", adapt="on", limits=limits, spill_folder=tmp_path)
    assert str(engine.plan).startswith("(A B C")
    assert engine.metrics()["state"]["bytes"] <= limits.memory
