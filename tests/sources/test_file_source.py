"""Files as sources: formats, patterns, columns that differ, files that cannot be read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from penstock.errors import InputError, OptionError
from penstock.query.column_list import read_columns
from penstock.sources.file_format import format_of
from penstock.sources.file_source import FileSource, infer_schema
from penstock.sources.file_tree import FileTree
from penstock.sources.portion import UNLIMITED, Admission

COLUMNS = "id BIGINT, ts TIMESTAMP, x STRING, price DECIMAL(9, 2), tags ARRAY<INT>"
FLAT = "id BIGINT, ts TIMESTAMP, x STRING, price DOUBLE"


def table(text: str, count: int = 5) -> pa.Table:
    schema = read_columns(text)
    values = {
        "id": list(range(count)),
        "ts": [1_700_000_000_000_000 + 1_000_001 * i for i in range(count)],
        "x": [None if i == 2 else f"t{i}, é" for i in range(count)],
        "price": [i + 0.5 for i in range(count)],
        "tags": [[i, None] for i in range(count)],
    }
    arrays = [pa.array(values[f.name]).cast(f.type) for f in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def write(kind: str, rows: pa.Table, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if kind == "parquet":
        pq.write_table(rows, file)
    elif kind == "arrow":
        feather.write_feather(rows, str(file))
    elif kind == "csv":
        pa_csv.write_csv(rows, file)
    else:
        names = rows.column_names
        lines = []
        for row in rows.to_pylist():
            row["ts"] = row["ts"].isoformat()
            lines.append(json.dumps({name: row[name] for name in names}) + "\n")
        file.write_text("".join(lines))


@pytest.mark.parametrize("kind", ["parquet", "arrow", "json", "csv"])
def test_formats_give_back_what_was_written(kind: str, tmp_path: Path) -> None:
    text = COLUMNS if kind in ("parquet", "arrow") else FLAT
    rows = table(text)
    for number in range(2):
        write(kind, rows.slice(number, 3), tmp_path / f"{number}.{kind}")
    options = {"header": "true"} if kind == "csv" else {}
    source = FileSource("A", FileTree(str(tmp_path)), kind, rows.schema, options=options)
    portion = source.next_portion(source.progress(), UNLIMITED)
    found = source.read(portion, ["x", "id", "ts", "price"])
    wanted = pa.concat_tables([rows.slice(0, 3), rows.slice(1, 3)])
    assert found.equals(wanted.select(["x", "id", "ts", "price"]))
    assert source.read(json.loads(json.dumps(portion)), ["id"]).equals(wanted.select(["id"]))


def test_csv_without_names_takes_them_from_the_schema(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1;2023-01-01 00:00:00;x\n2;2023-01-01 00:00:01;\n")
    schema = read_columns("id BIGINT, ts TIMESTAMP, x STRING")
    source = FileSource("A", FileTree(str(tmp_path)), "csv", schema, options={"sep": ";"})
    portion = source.next_portion(source.progress(), UNLIMITED)
    assert source.read(portion, ["id", "x"]).to_pydict() == {"id": [1, 2], "x": ["x", None]}


def test_columns_that_differ_between_files(tmp_path: Path) -> None:
    """A column that is missing is NULL, a narrower type fits, another one is a mistake."""
    schema = pa.schema([("id", pa.int64()), ("x", pa.string())])
    files = {
        "a": pa.table({"id": pa.array([1], pa.int32())}),
        "b": pa.table({"x": ["y"], "more": [1.5], "id": [2]}),
    }
    for name, rows in files.items():
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    source = FileSource("A", FileTree(str(tmp_path)), "parquet", schema)
    portion = source.next_portion(source.progress(), UNLIMITED)
    assert source.read(portion, ["id", "x"]).to_pydict() == {"id": [1, 2], "x": [None, "y"]}
    pq.write_table(pa.table({"id": ["one"]}), tmp_path / "c.parquet")
    portion = source.next_portion(source.progress(), UNLIMITED)
    with pytest.raises(InputError, match=r"c\.parquet: column 'id' is of type string"):
        source.read(portion, ["id"])


def test_a_corrupt_file_is_told_or_skipped(tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nothing in it PAR1")
    pq.write_table(pa.table({"id": [1]}), tmp_path / "good.parquet")
    schema = pa.schema([("id", pa.int64())])
    source = FileSource("A", FileTree(str(tmp_path)), "parquet", schema)
    portion = source.next_portion(source.progress(), UNLIMITED)
    with pytest.raises(InputError, match=r"bad\.parquet cannot be read as parquet.*ignoreCorrupt"):
        source.read(portion, ["id"])
    patient = FileSource("A", FileTree(str(tmp_path)), "parquet", schema, skip_corrupt=True)
    assert patient.read(portion, ["id"]).to_pydict() == {"id": [1]}


@pytest.mark.parametrize("kind", ["parquet", "arrow", "json", "csv"])
def test_an_empty_file_is_taken_when_it_has_something(kind: str, tmp_path: Path) -> None:
    rows = table(FLAT)
    file = tmp_path / f"a.{kind}"
    file.touch()
    os.utime(file, (1_700_000_000,) * 2)
    options = {"header": "true"} if kind == "csv" else {}
    source = FileSource("A", FileTree(str(tmp_path)), kind, rows.schema, options=options)
    assert source.next_portion(source.progress(), UNLIMITED) is None
    write(kind, rows, file)
    portion = source.next_portion(source.progress(), UNLIMITED)
    assert source.read(portion, ["id"]).equals(rows.select(["id"]))


@pytest.mark.parametrize("unit", ["ms", "us", "ns", "int"])
def test_files_tell_their_newest_event_time(unit: str, tmp_path: Path) -> None:
    kind = pa.int64() if unit == "int" else pa.timestamp(unit, "UTC")
    rows = pa.table({"x": ["a"] * 6, "ts": pa.array([5, None, 7, 6, None, None], kind)})
    for name, part in {"a": rows, "b": rows.slice(4), "c": rows.slice(0, 0)}.items():
        pq.write_table(part, tmp_path / f"{name}.parquet", row_group_size=2)
    source = FileSource("A", FileTree(str(tmp_path)), "parquet", rows.schema)
    portion = source.next_portion(source.progress(), UNLIMITED)
    found = source.brief(portion, "ts")
    assert found is not None
    assert found.rows == 8
    assert found.newest == pa.scalar(7, kind if unit == "int" else pa.timestamp(unit))
    assert source.brief(portion, "x") is None
    assert source.brief(portion, "other") is None
    pq.write_table(rows, tmp_path / "d.parquet", write_statistics=False)
    portion = source.next_portion(source.progress(), UNLIMITED)
    assert source.brief(portion, "ts") is None


def test_patterns_folders_and_names(tmp_path: Path) -> None:
    for name in (
        "day=1/a.parquet",
        "day=2/b.parquet",
        "other/c.parquet",
        "d.parquet",
        "_e.parquet",
    ):
        write("parquet", pa.table({"id": [1]}), tmp_path / name)

    def names(address: str, pattern: str | None = None, recursive: bool = False) -> list[str]:
        return sorted(f.name for f in FileTree(address, pattern, recursive).files())

    assert names(str(tmp_path)) == ["d.parquet", "day=1/a.parquet", "day=2/b.parquet"]
    assert len(names(str(tmp_path), recursive=True)) == 4
    assert names(str(tmp_path), "[ab].*") == ["day=1/a.parquet", "day=2/b.parquet"]
    assert names(f"{tmp_path}/day=*") == ["day=1/a.parquet", "day=2/b.parquet"]
    assert names(f"{tmp_path}/{{day=2,other}}/*.parquet") == ["day=2/b.parquet", "other/c.parquet"]
    assert names(f"file://{tmp_path}/d.parquet") == ["d.parquet"]
    assert names(str(tmp_path / "nowhere")) == []


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_columns_in_the_names_of_folders(kind: str, tmp_path: Path) -> None:
    """As Spark reads them, whatever the file says."""
    texts = {"json": '{"id": 1, "n": 9}\n{"id": 2, "n": 9}\n', "csv": "id,n\n1,9\n2,9\n"}
    for day, n in (("2026-01-01", "3"), ("2026-01-02", "__HIVE_DEFAULT_PARTITION__")):
        file = tmp_path / f"day={day}" / f"n={n}" / "town=Graz%2FAT" / f"part.{kind}"
        file.parent.mkdir(parents=True)
        if kind == "parquet":
            pq.write_table(pa.table({"id": [1, 2], "n": [9, 9]}), file)
        else:
            file.write_text(texts[kind])
    tree, options = FileTree(str(tmp_path)), {"header": "true"}
    schema = infer_schema(tree, kind, options)
    assert schema.field("day").type == pa.date32()
    assert schema.field("n").type == pa.int32()
    assert schema.field("town").type == pa.string()
    source = FileSource("A", tree, kind, schema, options=options)
    portion = source.next_portion(source.progress(), UNLIMITED)
    table = source.read(portion, ["id", "town", "n", "day"]).sort_by([("day", "ascending")])
    assert table.column("id").to_pylist() == [1, 2, 1, 2]
    assert table.column("n").to_pylist() == [3, 3, None, None]
    assert set(table.column("town").to_pylist()) == {"Graz/AT"}
    assert [str(day) for day in table.column("day").to_pylist()] == ["2026-01-01"] * 2 + [
        "2026-01-02"
    ] * 2
    assert len(source.read(portion, ["town"])) == 4
    other = read_columns("id BIGINT, day STRING, n BIGINT, town INT")
    wrong = FileSource("A", tree, kind, other, options=options)
    assert str(wrong.read(portion, ["day"]).column("day")[0]).startswith("2026-01-0")
    with pytest.raises(InputError, match="the folder says town=Graz/AT"):
        wrong.read(portion, ["town"])


def test_limits_by_files_and_bytes(tmp_path: Path) -> None:
    for name in "abc":
        pq.write_table(pa.table({"id": [1]}), tmp_path / f"{name}.parquet")
    source = FileSource("A", FileTree(str(tmp_path)), "parquet", pa.schema([("id", pa.int64())]))
    size = source.available()[0].size
    portion = source.next_portion(source.progress(), Admission(size=1))
    assert len(portion) == 1
    assert len(source.next_portion(source.progress(), Admission(size=2 * size))) == 2
    assert len(source.next_portion(source.progress(), Admission(files=2, size=9 * size))) == 2


def test_a_schema_is_found_in_a_whole_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="and no file in"):
        infer_schema(FileTree(str(tmp_path)), "parquet", {})
    with pytest.raises(InputError, match="no such folder"):
        infer_schema(FileTree(str(tmp_path / "a")), "parquet", {})
    (tmp_path / "half.parquet").write_bytes(b"PAR1")
    pq.write_table(table(COLUMNS), tmp_path / "whole.parquet")
    assert infer_schema(FileTree(str(tmp_path)), "parquet", {}) == read_columns(COLUMNS)


def test_mistakes() -> None:
    with pytest.raises(OptionError, match="choose from: parquet"):
        format_of("orc")
    with pytest.raises(OptionError, match="id BIGINT"):
        read_columns("id BIGINT,, x")
    with pytest.raises(OptionError, match="has the type"):
        read_columns("id INTERVAL")
