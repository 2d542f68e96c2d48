"""Row groups that are not read have no row that a query needs, and are stood in for exactly."""

from __future__ import annotations

import datetime
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from penstock.sources.file_source import FileSource
from penstock.sources.file_tree import FileTree
from penstock.sources.portion import UNLIMITED
from penstock.sources.row_groups import NeededRows, needed_rows
from penstock.values.evaluate import conjunction
from penstock.values.wiring import wire

DAY = datetime.date(2024, 1, 1)
MOMENT = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
KINDS: dict[str, tuple[pa.DataType, Callable[[int], Any], Callable[[int], str]]] = {
    "whole": (pa.int64(), lambda n: n, str),
    "small": (pa.int16(), lambda n: n, str),
    "text": (pa.string(), lambda n: f"k{n:02}é", lambda n: f"'k{n:02}é'"),
    "day": (
        pa.date32(),
        lambda n: DAY + datetime.timedelta(n),
        lambda n: f"DATE '{DAY + datetime.timedelta(n)}'",
    ),
    "moment": (
        pa.timestamp("us", "UTC"),
        lambda n: MOMENT + datetime.timedelta(seconds=n),
        lambda n: f"TIMESTAMP '2024-01-01 00:00:{n:02}+00:00'",
    ),
    "part": (pa.float64(), lambda n: float("nan") if n % 7 == 3 else n / 2, lambda n: f"{n / 2}"),
}
SCHEMA = pa.schema(
    [("id", pa.int64()), ("ts", pa.int64()), *((n, kind) for n, (kind, *_) in KINDS.items())]
)


def rows(chance: random.Random, count: int, spread: int) -> pa.Table:
    """Rows whose values grow, as those of files that somebody has sorted, with NULLs."""
    numbers = [min(59, place * 50 // count + chance.randrange(spread)) for place in range(count)]
    columns: list[Any] = [range(count), [1_000 + chance.randrange(900) for _ in range(count)]]
    for _, make, _ in KINDS.values():
        holes = chance.choice([0.0, 0.1, 0.6])
        columns.append([None if chance.random() < holes else make(n) for n in numbers])
    arrays = [pa.array(each, f.type) for each, f in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def predicate(chance: random.Random) -> str:
    name = chance.choice(list(KINDS))
    value = KINDS[name][2](chance.randrange(60))
    sign = chance.choice(["=", "<", "<=", ">", ">=", "<>"])
    return chance.choice([f"A.{name} {sign} {value}", f"{value} {sign} A.{name}"])


def written(folder: Path, table: pa.Table, name: str = "0.parquet", **options: Any) -> FileSource:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / name, **options)
    return FileSource("A", FileTree(str(folder)), "parquet", SCHEMA)


def needed_by(where: list[str]) -> tuple[NeededRows, Any]:
    """What the predicates say, and the filter that decides for each row."""
    text = "SELECT A.id AS a FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] WHERE A.id = B.id"
    text = " AND ".join([text, *where])
    query = penstock.parse(text, schemas={"A": SCHEMA, "B": SCHEMA})
    filters = [each.expression for each in wire(query.blocks[0]).filters["A"]]
    return needed_rows([filters], "ts"), conjunction(filters)


@pytest.mark.parametrize("seed", range(30 if "PENSTOCK_LONG" not in os.environ else 1_000))
def test_what_is_left_out_is_needed_by_nobody_and_told_exactly(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    table = rows(chance, chance.randrange(1, 200), chance.choice([1, 5, 60]))
    source = written(tmp_path, table, row_group_size=chance.choice([1, 4, 16]))
    needed, passes = needed_by([predicate(chance) for _ in range(chance.choice([1, 1, 2]))])
    portion = source.next_portion(source.progress(), UNLIMITED)
    found, rest = source.read_needed(portion, SCHEMA.names, False, needed or None)
    kept = set(found.column("id").to_pylist())
    columns = {name: table.column(name).combine_chunks() for name in SCHEMA.names}
    right = np.flatnonzero(passes(lambda c: columns[c.name], len(table)))
    assert {int(each) for each in right} <= kept
    assert len(found) + rest.rows == len(table)
    left_out = [t for i, t in enumerate(table.column("ts").to_pylist()) if i not in kept]
    newest = None if rest.newest is None else rest.newest.as_py()
    assert newest == max(left_out, default=None)


def test_a_selective_predicate_leaves_most_of_a_sorted_file_unread(tmp_path: Path) -> None:
    """Bytes of the groups that are left out are destroyed: nobody misses them."""
    table = rows(random.Random(1), 2_000, 1)
    source = written(tmp_path, table, row_group_size=100)
    needed, _ = needed_by(["A.text = 'k17é'", "A.whole >= 17"])
    about = pq.read_metadata(tmp_path / "0.parquet")
    portion = source.next_portion(source.progress(), UNLIMITED)
    before, rest = source.read_needed(portion, SCHEMA.names, False, needed)
    kept = {place // 100 for place in before.column("id").to_pylist()}
    assert len(kept) <= 2
    assert rest.rows == len(table) - len(before) >= 1_800
    content = bytearray((tmp_path / "0.parquet").read_bytes())
    for number in set(range(about.num_row_groups)) - kept:
        for place in range(about.num_columns):
            column = about.row_group(number).column(place)
            first = column.dictionary_page_offset or column.data_page_offset
            content[first : first + column.total_compressed_size] = b"\xff" * (
                column.total_compressed_size
            )
    (tmp_path / "spoiled").write_bytes(content)
    os.replace(tmp_path / "spoiled", tmp_path / "0.parquet")
    again, _ = source.read_needed(portion, SCHEMA.names, True, needed)
    assert again.drop_columns("part").equals(before.drop_columns("part"))  # NaN equals nothing.
    with pytest.raises(penstock.errors.InputError, match="cannot be read"):
        source.read(portion, SCHEMA.names, True)


def test_what_does_not_tell_enough_is_read(tmp_path: Path) -> None:
    """No statistics, event times that are missing, or a column with another type than expected."""
    table = rows(random.Random(2), 100, 1)
    needed, _ = needed_by(["A.whole > 1000"])
    times = pa.array([None, *table.column("ts").to_pylist()[1:]], pa.int64())
    holes = table.set_column(1, "ts", times)
    other = table.set_column(2, "whole", table.column("whole").cast(pa.int32()))
    cases: list[tuple[pa.Table, Any]] = [(table, False), (table, ["whole"])]
    for number, (each, told) in enumerate([*cases, (holes, True), (other, True)]):
        folder = tmp_path / str(number)
        source = written(folder, each, row_group_size=100, write_statistics=told)
        portion = source.next_portion(source.progress(), UNLIMITED)
        found, rest = source.read_needed(portion, SCHEMA.names, False, needed)
        assert (len(found), rest.rows) == (100, 0)


def test_names_of_folders_count_as_statistics(tmp_path: Path) -> None:
    table = rows(random.Random(3), 60, 1).drop_columns("whole")
    for key in range(4):
        source = written(tmp_path, table, f"whole={key}/0.parquet", row_group_size=10)
    needed, _ = needed_by(["A.whole = 2"])
    portion = source.next_portion(source.progress(), UNLIMITED)
    found, rest = source.read_needed(portion, SCHEMA.names, False, needed)
    assert set(found.column("whole").to_pylist()) == {2}
    assert (len(found), rest.rows) == (60, 180)


def test_a_source_with_two_roles_loses_what_both_reject(tmp_path: Path) -> None:
    table = rows(random.Random(4), 500, 1)
    source = written(tmp_path, table, row_group_size=10)
    low, _ = needed_by(["A.small < 5"])
    high, _ = needed_by(["A.small > 45"])
    both = NeededRows((*low.roles, *high.roles), "ts")
    portion = source.next_portion(source.progress(), UNLIMITED)
    found, rest = source.read_needed(portion, SCHEMA.names, False, both)
    values = {v for v in found.column("small").to_pylist() if v is not None}
    assert min(values) < 5
    assert max(values) > 45
    assert rest.rows > 300
    assert not NeededRows((*low.roles, ()), "ts"), "a role without bounds needs everything"
