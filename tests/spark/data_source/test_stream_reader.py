"""The reader of the data source, called as Spark calls it: ledger, restarts, tidying."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from penstock.errors import CheckpointError, InputError, PenstockWarning
from penstock.sources.file_source import FileSource
from penstock.sources.input_file import InputFile
from penstock.spark.data_source import cell_snapshots, engine_cache, stream_reader
from penstock.spark.data_source.batch_reader import BatchAnswer
from penstock.spark.data_source.options import lane_of
from penstock.spark.data_source.sourced_cell import SourcedCell
from penstock.spark.data_source.stream_reader import StreamReader
from penstock.spark.rows.arrow_types import answer_schema
from penstock.testing import Oracle, difference, rows_of

QUERY = "SELECT A.id AS a, B.id AS b FROM A [RANGE 3 SECONDS], B [RANGE 2 SECONDS] WHERE A.x = B.x"
SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("x", pa.int64())])
COLUMNS = "id BIGINT, ts TIMESTAMP, x BIGINT"


class Driver:
    """What Spark does with a reader: an offset log, batches, restarts."""

    def __init__(self, folder: Path, **options: str) -> None:
        self.folder = folder
        self.options = {
            "query": QUERY,
            "A.path": str(folder / "A"),
            "B.path": str(folder / "B"),
            "A.schema": COLUMNS,
            "B.schema": COLUMNS,
            "watermark": "1 SECONDS",
            "checkpointLocation": str(folder / "checkpoint"),
            **options,
        }
        self.now = 2e9
        """Seconds since 1970."""
        self.log: list[dict[str, Any]] = []
        self.start()

    def start(self) -> None:
        """A new process: nothing is left but the log and the files."""
        engine_cache.clear()
        lane = lane_of(self.options)
        schema = answer_schema(lane.emitted)[0]
        self.reader = StreamReader(lane, schema, lambda: self.now)
        if not self.log:
            self.log.append(self.reader.initialOffset())

    def plan(self, everything: bool = False) -> bool:
        """Plan a batch; whether there is anything to do."""
        limit = ReadAllAvailable() if everything else self.reader.getDefaultReadLimit()
        end = self.reader.latestOffset(self.log[-1], limit)
        if end == self.log[-1]:
            return False
        self.log.append(end)
        return True

    def run(self, number: int = -1, commit: bool = True) -> list[tuple[Any, ...]]:
        """Do the last batch, or an earlier one; what it gives."""
        number = len(self.log) - 1 if number < 0 else number
        start, end = self.log[number - 1], self.log[number]
        found: list[tuple[Any, ...]] = []
        for partition in self.reader.partitions(start, end):
            for batch in self.reader.read(partition):
                found += rows_of(pa.table(batch))
        if commit:
            self.reader.commit(end)
        return found


def rows(chance: random.Random, second: float, count: int = 6) -> pa.Table:
    times = [int(1e6 * (1_000_000 + second + chance.uniform(-0.9, 0))) for _ in range(count)]
    ids = [chance.randrange(10**9) for _ in range(count)]
    keys = [chance.randrange(3) for _ in range(count)]
    return pa.table(
        [pa.array(c, t) for c, t in zip((ids, times, keys), SCHEMA.types, strict=True)],
        schema=SCHEMA,
    )


def put(folder: Path, source: str, name: str, table: pa.Table, age: float, **options: Any) -> None:
    file = folder / source / name
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, file, **options)
    os.utime(file, (1_700_000_000 + age,) * 2)


@pytest.mark.parametrize("seed", range(4))
def test_restarts_going_back_and_a_ledger_that_is_made_shorter(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_reader, "TIDY_EVERY", 4)
    monkeypatch.setattr(stream_reader, "RETAINED", 6)
    chance = random.Random(seed)
    driver = Driver(tmp_path, cells=str(1 + seed % 2))
    oracle = Oracle(driver.reader._lane.query, 1_000)
    expected: list[list[tuple[Any, ...]]] = [[]]
    for number in range(40):
        push = {}
        for source in "AB":
            if chance.random() < 0.9:
                push[source] = rows(chance, number / 2)
                put(tmp_path, source, f"{number}.parquet", push[source], chance.uniform(-99, 99))
        if not push:
            continue
        assert driver.plan()
        expected.append(oracle.push(push))
        if chance.random() < 0.2:
            driver.start()  # Between the plan and the batch.
        if chance.random() < 0.2:
            driver.run(commit=False)  # A first attempt whose results are lost.
        assert difference(driver.run(), expected[-1]) is None
        if chance.random() < 0.2:
            driver.start()
        if chance.random() < 0.2:
            back = chance.randint(max(1, len(driver.log) - 5), len(driver.log) - 1)
            del driver.log[back:]
            driver.start()
            while driver.plan():  # The entries that are there are taken again.
                assert difference(driver.run(), expected[len(driver.log) - 1]) is None
            assert len(driver.log) == len(expected)
    files = os.listdir(tmp_path / "checkpoint" / "penstock")
    assert sum(name.endswith(".entry") for name in files) < 30
    assert sum(map(len, expected)) > 100
    driver.options["query"] = QUERY.replace("3 SECONDS", "60 SECONDS")
    driver.start()
    with pytest.raises(CheckpointError, match="reach back"):
        driver.run()


def test_who_goes_back_finds_the_ledger_shorter_than_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To tidy behind the older batch, entries would be looked at that are gone."""
    monkeypatch.setattr(stream_reader, "TIDY_EVERY", 4)
    monkeypatch.setattr(stream_reader, "RETAINED", 6)
    chance = random.Random(6)
    driver = Driver(tmp_path)
    answers = []
    for number in range(28):
        for source in "AB":
            put(tmp_path, source, f"{number}.parquet", rows(chance, 4 * number), number)
        assert driver.plan()
        answers.append(driver.run())
    del driver.log[23:]
    driver.start()
    while driver.plan():
        assert difference(driver.run(), answers[len(driver.log) - 2]) is None
    assert len(driver.log) == 29


def test_every_file_once_whenever_it_appears(tmp_path: Path) -> None:
    """Also one that is older than those taken before; not one that is being written."""
    chance = random.Random(1)
    driver = Driver(tmp_path, maxFilesPerTrigger="2")
    for number in range(5):
        put(tmp_path, "A", f"{number}.parquet", rows(chance, 1), 10 - number)
    assert driver.plan()
    portions = driver.reader._ledger.entry(_at(driver.log[-1])).portions
    assert [name for name, _, _ in portions["A"]] == ["4.parquet", "3.parquet"]
    put(tmp_path, "A", "late.parquet", rows(chance, 1), -1_000)
    (tmp_path / "A" / "half.parquet").write_bytes(b"PAR1 and no end yet")
    (tmp_path / "A" / "empty.parquet").touch()
    (tmp_path / "A" / "_hidden.parquet").write_bytes(b"PAR1PAR1")
    driver.start()
    assert driver.plan()
    portions = driver.reader._ledger.entry(_at(driver.log[-1])).portions
    assert [name for name, _, _ in portions["A"]] == ["late.parquet", "2.parquet"]
    assert driver.plan(everything=True)
    portions = driver.reader._ledger.entry(_at(driver.log[-1])).portions
    assert [name for name, _, _ in portions["A"]] == ["1.parquet", "0.parquet"]
    assert not driver.plan()


def test_available_now_takes_what_there_was(tmp_path: Path) -> None:
    chance = random.Random(2)
    driver = Driver(tmp_path, maxFilesPerTrigger="1")
    for number in range(3):
        put(tmp_path, "A", f"{number}.parquet", rows(chance, 1), number)
    driver.reader.prepareForTriggerAvailableNow()
    put(tmp_path, "A", "3.parquet", rows(chance, 1), 3)
    while driver.plan():
        driver.run()
    assert len(driver.log) == 4
    driver.start()
    assert driver.plan()


GROUPED = (
    "SELECT A.x, COUNT(*) AS n FROM A [RANGE 3 SECONDS], B [RANGE 2 SECONDS] WHERE A.x = B.x "
    "GROUP BY A.x"
)
FLUSHED = [
    GROUPED,
    f"DSTREAM({GROUPED})",
    "SELECT A.id FROM A [RANGE 3 SECONDS] WHERE A.x = 1 EXCEPT "
    "SELECT B.id FROM B [RANGE 2 SECONDS] WHERE B.x = 1",
]


@pytest.mark.parametrize("query", FLUSHED, ids=["group by", "dstream", "except"])
@pytest.mark.parametrize("seed", range(4))
def test_a_run_that_ends_and_flushes(query: str, seed: int, tmp_path: Path) -> None:
    """Its last batch waits for no older rows; the next run goes on from there, older rows late."""
    chance = random.Random(seed)
    driver = Driver(tmp_path, query=query, flush="true", maxFilesPerTrigger="1")
    driver.options["cells"] = str(1 + seed % 2)
    oracle = Oracle(driver.reader._lane.query, 1_000)
    expected: list[list[tuple[Any, ...]]] = [[]]
    flushed = newest = 0
    for number in range(12):
        driver.start()
        for _ in range(chance.randint(0, 2)):
            push = {}
            for source in "AB":
                push[source] = rows(chance, number / 2, chance.randint(1, 6))
                name = f"{len(expected)}-{flushed}.parquet"
                put(tmp_path, source, name, push[source], len(expected))
                newest = max(newest, pc.max(push[source]["ts"]).value)
            expected.append(oracle.push(push))
        if len(expected) > 1 and len(expected) > len(driver.log):
            expected.append(oracle.push({}, newest // 1000 + 1))
            flushed += len(expected[-1])
        driver.reader.prepareForTriggerAvailableNow()
        while driver.plan():
            assert difference(driver.run(), expected[len(driver.log) - 1]) is None
            if chance.random() < 0.2:
                driver.start()
                driver.reader.prepareForTriggerAvailableNow()
        assert len(driver.log) == len(expected)
        if chance.random() < 0.3:
            del driver.log[chance.randint(1, len(driver.log)) :]
            driver.start()
            driver.reader.prepareForTriggerAvailableNow()
            while driver.plan():
                assert difference(driver.run(), expected[len(driver.log) - 1]) is None
            assert len(driver.log) == len(expected)
    assert flushed


def test_a_run_that_goes_on_flushes_nothing(tmp_path: Path) -> None:
    driver = Driver(tmp_path, query=GROUPED, flush="true")
    put(tmp_path, "A", "0.parquet", rows(random.Random(1), 1), 0)
    assert driver.plan()
    assert not driver.plan()


def test_a_file_that_is_gone_or_has_changed(tmp_path: Path) -> None:
    chance = random.Random(3)
    driver = Driver(tmp_path)
    put(tmp_path, "A", "0.parquet", rows(chance, 1), 0)
    driver.plan()
    driver.run()
    put(tmp_path, "B", "1.parquet", rows(chance, 1), 1)
    driver.plan()
    before = (tmp_path / "A" / "0.parquet").read_bytes()
    driver.start()
    (tmp_path / "A" / "0.parquet").unlink()
    with pytest.raises(InputError, match=r"A: the file .*0.parquet is gone.*ignoreMissingFiles"):
        driver.run()
    (tmp_path / "A" / "0.parquet").write_bytes(before + b"more")
    with pytest.raises(InputError, match="when it was taken"):
        driver.run()
    driver.options |= {"A.ignoreMissingFiles": "true", "reports": "true"}
    (tmp_path / "A" / "0.parquet").unlink()
    driver.start()
    assert told_to_skip(driver.run()) == {"A": {"0.parquet": "missing since it was read"}}
    assert told_to_skip(driver.run()) == {"A": {"0.parquet": "missing since it was read"}}


def told_to_skip(found: list[tuple[Any, ...]]) -> dict[str, dict[str, str]]:
    """The files that reports tell of, each once."""
    reports = [json.loads(row[-1]) for row in found if row[-1] is not None]
    told: dict[str, dict[str, str]] = {}
    for report in reports:
        for source, files in report["skipped"].items():
            for name, why in files.items():
                assert name not in told.get(source, {})
                told.setdefault(source, {})[name] = why
    return told


@pytest.mark.parametrize("cells", ["1", "2"])
def test_files_that_a_batch_leaves_out(cells: str, tmp_path: Path) -> None:
    """Decided once: by all cells and attempts, when it is done again, and in its windows, whatever
    becomes of the files; and the answer is that of the other files."""
    chance = random.Random(11)
    options = {"ignoreMissingFiles": "true", "ignoreCorruptFiles": "true"}
    options = {f"{name}.{option}": value for name in "AB" for option, value in options.items()}
    driver = Driver(tmp_path, cells=cells, reports="true", **options)
    oracle = Oracle(driver.reader._lane.query, 1_000)
    good = {name: rows(chance, 1, 30) for name in "AB"}
    bad, gone = rows(chance, 1, 30), rows(chance, 1, 30)
    for name, table in good.items():
        put(tmp_path, name, "0.parquet", table, 0)
    put(tmp_path, "A", "bad.parquet", bad, 1)
    put(tmp_path, "B", "gone.parquet", gone, 1)
    file = tmp_path / "A" / "bad.parquet"
    file.write_bytes(b"PAR1" + bytes(len(file.read_bytes()) - 8) + b"PAR1")
    assert driver.plan()
    (tmp_path / "B" / "gone.parquet").unlink()
    expected = oracle.push(good)
    skipped = {"A": {"bad.parquet": "corrupt"}, "B": {"gone.parquet": "missing"}}

    def is_as_expected(expected: list[Any], skipped: dict[str, Any]) -> None:
        found = driver.run(commit=False)
        assert told_to_skip(found) == skipped
        answers = [row[:2] for row in found if row[2] is None]
        assert difference(answers, expected) is None

    is_as_expected(expected, skipped)
    put(tmp_path, "A", "bad.parquet", bad, 1)  # Mended and put back: this batch is past.
    put(tmp_path, "B", "gone.parquet", gone, 1)
    is_as_expected(expected, skipped)
    driver.start()
    is_as_expected(expected, skipped)
    second = {name: rows(chance, 1.5, 30) for name in "AB"}
    for name, table in second.items():
        put(tmp_path, name, "2.parquet", table, 2)
    assert driver.plan()
    first, expected = expected, oracle.push(second)
    is_as_expected(expected, {})
    driver.start()  # Windows are read again.
    is_as_expected(expected, {})
    for note in (tmp_path / "checkpoint" / "penstock").glob("*.note"):
        note.unlink()
    driver.start()  # So are notes.
    is_as_expected(expected, {})
    del driver.log[2:]
    for name in options:
        driver.options[name] = "false"
    driver.start()
    is_as_expected(first, skipped)


def test_a_file_that_goes_while_a_batch_is_done(tmp_path: Path) -> None:
    """Behind the decision it is an error; planned again, all cells leave it out."""
    chance = random.Random(12)
    driver = Driver(tmp_path, cells="2", reports="true", **{"A.ignoreMissingFiles": "true"})
    tables = {name: rows(chance, 1, 30) for name in "AB"}
    for name, table in tables.items():
        put(tmp_path, name, "0.parquet", table, 0)
    put(tmp_path, "A", "1.parquet", rows(chance, 1, 30), 1)
    assert driver.plan()
    partitions = driver.reader.partitions(*driver.log)
    list(driver.reader.read(partitions[0]))
    (tmp_path / "A" / "1.parquet").unlink()
    with pytest.raises(InputError, match=r"1\.parquet is gone.*start again"):
        list(driver.reader.read(partitions[1]))
    driver.start()
    found = driver.run()
    assert told_to_skip(found) == {"A": {"1.parquet": "missing"}}
    expected = Oracle(driver.reader._lane.query, 1_000).push(tables)
    assert difference([row[:2] for row in found if row[2] is None], expected) is None


@pytest.mark.parametrize("static", [False, True], ids=["stream", "static"])
@pytest.mark.parametrize("way", ["live", "snapshot", "replayed"])
def test_an_engine_with_rows_of_a_file_that_was_left_out_later(
    way: str, static: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempt has read it in one cell, in memory and in a snapshot; the second has not,
    and it is the one that counts."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("_WORTH_SECONDS", "_WORTH_SAVES", "_SHARE"):
        monkeypatch.setattr(cell_snapshots, name, 0)
    chance = random.Random(15)
    options = {"cells": "2", "A.ignoreMissingFiles": "true"}
    if static:
        query = QUERY.replace("A [RANGE 3 SECONDS]", "A")
        options |= {"A.static": "true", "query": query}
    driver = Driver(tmp_path, **options)
    oracle = Oracle(driver.reader._lane.query, 1_000)
    tables = {name: rows(chance, 1, 30) for name in "AB"}
    for name, table in tables.items():
        put(tmp_path, name, "0.parquet", table, 0)
    put(tmp_path, "A", "1.parquet", rows(chance, 1, 30), 1)
    assert driver.plan()
    partitions = driver.reader.partitions(*driver.log)
    list(driver.reader.read(partitions[0]))
    stale = dict(engine_cache._engines)
    assert len(stale) == 1
    assert list((tmp_path / "cache").rglob("*.snapshot"))
    (tmp_path / "A" / "1.parquet").unlink()
    with pytest.raises(InputError, match="start again"):
        list(driver.reader.read(partitions[1]))
    monkeypatch.setattr(cell_snapshots, "_WORTH_SECONDS", 1e9)
    engine_cache.clear()
    expected = oracle.push(tables)
    assert difference(driver.run(), expected) is None
    last = 3 if way == "replayed" else 2
    for number in range(2, last + 1):
        tables = {name: rows(chance, number / 2 + 0.5, 30) for name in "AB"[static:]}
        for name, table in tables.items():
            put(tmp_path, name, f"{number}.parquet", table, number)
        assert driver.plan()
        if number == last:
            engine_cache.clear()
            engine_cache._engines.update({} if way == "snapshot" else stale)
        expected = oracle.push(tables)
        assert difference(driver.run(), expected) is None
        assert len(expected) > 100


def test_a_bounded_answer_warns_of_files_that_it_leaves_out(tmp_path: Path) -> None:
    chance = random.Random(14)
    driver = Driver(tmp_path, **{"A.ignoreCorruptFiles": "true"})
    tables = {name: rows(chance, 1, 30) for name in "AB"}
    for name, table in tables.items():
        put(tmp_path, name, "0.parquet", table, 0)
    (tmp_path / "A" / "bad.parquet").write_bytes(b"PAR1" + bytes(99) + b"PAR1")
    lane = driver.reader._lane
    reader = BatchAnswer(lane, answer_schema(lane.emitted)[0])
    with pytest.warns(PenstockWarning, match=r"A: left out: bad\.parquet \(corrupt\)"):
        (partition,) = reader.partitions()
    found = [row for batch in reader.read(partition) for row in rows_of(pa.table(batch))]
    assert difference(found, Oracle(lane.query, 1_000).push(tables)) is None


def test_a_static_file_that_is_left_out(tmp_path: Path) -> None:
    """It is told with the first batch, and stays left out."""
    chance = random.Random(13)
    query = "SELECT A.id AS a, B.id AS b FROM A [RANGE 3 SECONDS], B WHERE A.x = B.x"
    options = {"B.static": "true", "B.ignoreCorruptFiles": "true", "reports": "true"}
    driver = Driver(tmp_path, query=query, cells="2", **options)
    tables = {name: rows(chance, 1, 30) for name in "AB"}
    for name, table in tables.items():
        put(tmp_path, name, "0.parquet", table, 0)
    put(tmp_path, "B", "bad.parquet", tables["B"], 1)
    file = tmp_path / "B" / "bad.parquet"
    size = file.stat().st_size
    file.write_bytes(b"PAR1" + bytes(size - 8) + b"PAR1")
    assert driver.plan()
    oracle = Oracle(driver.reader._lane.query, 1_000)
    found = driver.run()
    assert told_to_skip(found) == {"B": {"bad.parquet": "corrupt"}}
    expected = oracle.push(tables)
    assert difference([row[:2] for row in found if row[2] is None], expected) is None
    put(tmp_path, "B", "bad.parquet", tables["B"], 1)
    second = {"A": rows(chance, 2, 30)}
    put(tmp_path, "A", "2.parquet", second["A"], 2)
    driver.start()
    assert driver.plan()
    found = driver.run()
    assert told_to_skip(found) == {}
    expected = oracle.push(second)
    assert difference([row[:2] for row in found if row[2] is None], expected) is None


@pytest.mark.parametrize("cells", ["1", "2"])
def test_a_file_that_is_mended_stays_readable(cells: str, tmp_path: Path) -> None:
    """It was corrupt when it was taken; its window is read again with the size that it has then."""
    chance = random.Random(8)
    driver = Driver(tmp_path, cells=cells)
    oracle = Oracle(driver.reader._lane.query, 1_000)
    first = {name: rows(chance, 1, 20) for name in "AB"}
    for name, table in first.items():
        put(tmp_path, name, "0.parquet", table, 0)
    bad = tmp_path / "A" / "0.parquet"
    bad.write_bytes(bad.read_bytes()[:99])
    os.utime(bad, (1_700_000_000,) * 2)
    assert driver.plan()
    with pytest.raises(InputError, match=r"0\.parquet cannot be read as parquet"):
        driver.run()
    put(tmp_path, "A", "0.parquet", first["A"], 0)
    driver.start()
    expected = oracle.push(first)
    assert difference(driver.run(commit=False), expected) is None
    assert difference(driver.run(), expected) is None
    for number in (1, 2):
        second = {name: rows(chance, 1.5, 20) for name in "AB"}
        for name, table in second.items():
            put(tmp_path, name, f"{number}.parquet", table, number)
        driver.start()  # The window is read again.
        assert driver.plan()
        assert difference(driver.run(), oracle.push(second)) is None
    put(tmp_path, "A", "0.parquet", first["A"].slice(1), 0)
    driver.start()
    with pytest.raises(InputError, match="when it was taken"):
        driver.run()


def test_rows_too_far_ahead_are_the_same_whenever_a_batch_is_done(tmp_path: Path) -> None:
    """What is too far ahead is decided by the time at which the batch was planned."""
    driver = Driver(tmp_path, maxAhead="10 SECONDS", **{"B.maxAhead": "off"})
    driver.now = 1_000_005.0
    times = {"A": [1, 2, 15, 16], "B": [1, 2, 16, 17]}
    for source, seconds in times.items():
        columns = [
            pa.array([10 * s for s in seconds], pa.int64()),
            pa.array([int(1e6 * (1_000_000 + s)) for s in seconds], SCHEMA.field("ts").type),
            pa.array([7] * 4, pa.int64()),
        ]
        put(tmp_path, source, "0.parquet", pa.table(columns, schema=SCHEMA), 0)
    assert driver.plan()
    pairs = {(a, b) for a in (1, 2, 15) for b in times["B"] if -2 <= b - a <= 3}
    expected = sorted((10 * a, 10 * b) for a, b in pairs)
    assert sorted(driver.run(commit=False)) == expected
    driver.now += 100  # By now, nothing is ahead.
    driver.start()
    assert sorted(driver.run()) == expected
    taken = SourcedCell(driver.reader._lane, 0).take(_at(driver.log[-2]), _at(driver.log[-1]))
    assert taken.report.dropped == {"A": {"too far ahead": 1}}
    assert taken.report.read == {"A": 4, "B": 4}


def test_a_cell_reads_the_folders_that_are_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files lie in folders by the key. Each is read by one cell, and of it the others read event
    times where it has no statistics of them; also when windows are read again."""
    chance = random.Random(5)
    driver = Driver(tmp_path, cells="4", dropped="dropped")
    oracle = Oracle(driver.reader._lane.query, 1_000)
    whole: list[str] = []
    brief: list[str] = []
    before = FileSource._read

    def noted(self: FileSource, file: InputFile, columns: Any, again: bool, needed: Any) -> Any:
        if len(columns) > 1:
            whole.append(f"{self.name}/{file.name}")
        else:
            assert columns == ("ts",)
            brief.append(file.name)
        return before(self, file, columns, again, needed)

    monkeypatch.setattr(FileSource, "_read", noted)
    total = 0
    for number in range(8):
        push = {source: rows(chance, number / 2, 30) for source in "AB"}
        nothing = pa.array([chance.random() < 0.1 for _ in range(30)])
        for source, table in push.items():
            none = pa.nulls(30, pa.int64())
            table = table.set_column(2, "x", pc.if_else(nothing, none, table.column("x")))
            push[source] = table
            for key in set(table.column("x").to_pylist()):
                own = pc.is_null(table.column("x")) if key is None else pc.equal(table["x"], key)
                name = "__HIVE_DEFAULT_PARTITION__" if key is None else key
                file = f"x={name}/{number}.parquet"
                part = table.filter(own).drop_columns("x")
                put(tmp_path, source, file, part, number, write_statistics=number % 2 == 0)
        if number % 3 == 2:
            driver.start()
        assert driver.plan()
        whole.clear()
        found = [row[:2] for row in driver.run() if row[2] is None]
        expected = oracle.push(push)
        assert difference(found, expected) is None
        assert len(whole) == len(set(whole))
        total += len(expected)
    assert total > 100
    assert brief
    assert not [name for name in brief if int(name.split("/")[1][0]) % 2 == 0]


@pytest.mark.parametrize("cells", ["1", "3"])
def test_row_groups_that_no_result_needs_are_not_read(
    cells: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers, clocks and what is told of the rows are those of a lane that reads everything."""
    query = QUERY.replace("WHERE", "WHERE A.id >= 900000000 AND")
    options = {"query": query, "cells": cells, "reports": "true"}
    drivers = [Driver(tmp_path, **options), Driver(tmp_path, **options)]
    drivers[1].options["checkpointLocation"] = str(tmp_path / "other")
    drivers[1].start()
    oracle = Oracle(drivers[0].reader._lane.query, 1_000)
    read: list[int] = []
    before = pq.ParquetFile.read_row_groups

    def noted(self: pq.ParquetFile, groups: list[int], *more: Any, **others: Any) -> pa.Table:
        read.append(len(groups))
        return before(self, groups, *more, **others)

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", noted)
    chance, told, total = random.Random(7), [], 0
    for number in range(6):
        push = {source: rows(chance, number / 2, 60).sort_by("id") for source in "AB"}
        for source, table in push.items():
            put(tmp_path, source, f"{number}.parquet", table, number, row_group_size=6)
        expected = oracle.push(push)
        total += len(expected)
        for place, driver in enumerate(drivers):
            if place == 1:
                driver.reader._lane.__dict__["needed"] = {}
            if number == 4:
                driver.start()  # Windows are read again.
            assert driver.plan()
            found = driver.run()
            answers = [row[:2] for row in found if row[2] is None]
            assert difference(answers, expected) is None
            reports = [json.loads(row[2]) for row in found if row[2] is not None]
            names = ("read", "filtered", "results", "watermark", "newest", "dropped")
            told.append([{name: each[name] for name in names} for each in reports])
        assert told[-2] == told[-1]
    assert total > 20
    assert read
    assert sum(read) < 4 * len(read)  # Of ten groups.


def test_a_ledger_that_is_not_the_one_of_the_checkpoint(tmp_path: Path) -> None:
    driver = Driver(tmp_path)
    put(tmp_path, "A", "0.parquet", rows(random.Random(4), 1), 0)
    driver.plan()
    driver.options["checkpointLocation"] = str(tmp_path / "elsewhere")
    driver.start()
    with pytest.raises(CheckpointError, match="checkpointLocation"):
        driver.run()


def _at(offset: dict[str, Any]) -> Any:
    from penstock.sources.ledger import Position

    return Position.of_json(offset)
