"""Files as sources: formats, patterns, columns that differ, files that cannot be read."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from pyarrow import feather, fs

from penstock.errors import InputError, OptionError, PenstockWarning
from penstock.query.column_list import read_columns
from penstock.query.unreadable import CORRUPT
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
    assert source.unreadable(portion, ["id"]) == {}
    patient = FileSource("A", FileTree(str(tmp_path)), "parquet", schema, skip_corrupt=True)
    assert patient.unreadable(portion, ["id"]) == {"bad.parquet": "corrupt"}
    assert patient.unreadable(portion, ["id"], is_decoded=False) == {}
    with pytest.raises(InputError, match=r"bad\.parquet cannot be read"):
        patient.read(portion, ["id"])  # Who reads leaves nothing out by itself.


def test_what_cannot_be_had_for_a_moment_is_neither_corrupt_nor_gone(tmp_path: Path) -> None:
    """An error of the file system is told, and skips nothing."""

    class Shaky(fs.SubTreeFileSystem):  # type: ignore[misc]
        """Opens no file."""

        calls = 0

        def open_input_file(self, path: str, **more: Any) -> Any:
            type(self).calls += 1
            raise OSError("connection reset")

    names = ("0.parquet", "1.parquet")
    for name in names:
        pq.write_table(pa.table({"id": [1]}), tmp_path / name)
    schema = pa.schema([("id", pa.int64())])
    shaky = Shaky("/", fs.LocalFileSystem())
    tree = FileTree(str(tmp_path), file_system=shaky)
    whole = FileSource("A", FileTree(str(tmp_path)), "parquet", schema)
    portion = whole.everything()
    source = FileSource("A", tree, "parquet", schema, skip_missing=True, skip_corrupt=True)
    assert source.unreadable(portion, ["id"]) == {}
    assert Shaky.calls == 2
    with pytest.raises(InputError, match="connection reset"):
        source.read(portion, ["id"])
    (tmp_path / "1.parquet").unlink()
    assert source.unreadable(portion, ["id"]) == {"1.parquet": "missing"}


@pytest.mark.parametrize("kind", ["parquet", "arrow", "json.gz"])
def test_a_file_that_is_damaged_inside_is_corrupt(kind: str, tmp_path: Path) -> None:
    rows = pa.table({"id": list(range(9_000))})
    file = tmp_path / f"a.{kind}"
    if kind == "json.gz":
        lines = "".join(f'{{"id": {n}}}\n' for n in range(9_000))
        file.write_bytes(gzip.compress(lines.encode()))
    else:
        write(kind, rows, file)
    schema, format_ = pa.schema([("id", pa.int64())]), kind.split(".")[0]
    source = FileSource("A", FileTree(str(tmp_path)), format_, schema, skip_corrupt=True)
    portion = source.everything()
    assert source.unreadable(portion, ["id"]) == {}
    content = bytearray(file.read_bytes())
    middle = len(content) // 3
    content[middle : middle + 400] = bytes(400)
    if kind == "arrow":
        content[8:200] = b"\xff" * 192
        content[-200:-10] = b"\xff" * 190
    file.write_bytes(content)
    assert source.unreadable(portion, ["id"]) == {f"a.{kind}": "corrupt"}


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


CUTS = {"parquet": 40, "arrow": 40, "json": 20}
"""Bytes that are missing at the end of a file of which it can be told."""


@pytest.mark.parametrize("kind", CUTS)
def test_a_file_that_is_being_written_is_taken_when_it_is_whole(kind: str, tmp_path: Path) -> None:
    rows = table(FLAT)
    file = tmp_path / f"a.{kind}"
    write(kind, rows, file)
    whole = file.read_bytes()
    source = FileSource("A", FileTree(str(tmp_path)), kind, rows.schema)
    for count in (1, 3, len(whole) // 2, len(whole) - CUTS[kind]):
        file.write_bytes(whole[:count])
        assert source.next_portion(source.progress(), UNLIMITED) is None
        assert source.next_portion(source.progress(), UNLIMITED, is_last=True) is None
        with pytest.raises(InputError, match=rf"A: .*a\.{kind} is being written"):
            source.everything()
    with pytest.raises(InputError, match="no whole file in"):
        infer_schema(FileTree(str(tmp_path)), kind, {})
    file.write_bytes(whole)
    portion = source.next_portion(source.progress(), UNLIMITED)
    assert portion == source.everything()
    assert source.read(portion, ["id", "x"]).equals(rows.select(["id", "x"]))


@pytest.mark.parametrize(("kind", "suffix"), [("json", "gz"), ("csv", "bz2"), ("json", "zst")])
def test_lines_that_are_compressed(kind: str, suffix: str, tmp_path: Path) -> None:
    rows = table(FLAT)
    file = tmp_path / f"a.{kind}.{suffix}"
    write(kind, rows, tmp_path / "_plain")
    with pa.CompressedOutputStream(str(file), pa.Codec.detect(str(file)).name) as stream:
        stream.write((tmp_path / "_plain").read_bytes())
    whole = file.read_bytes()
    options = {"header": "true"} if kind == "csv" else {}
    tree = FileTree(str(tmp_path))
    source = FileSource("A", tree, kind, rows.schema, options=options)
    file.write_bytes(whole[:-4])
    assert source.next_portion(source.progress(), UNLIMITED) is None
    file.write_bytes(whole)
    portion = source.next_portion(source.progress(), UNLIMITED)
    assert source.read(portion, ["id", "x"]).equals(rows.select(["id", "x"]))
    assert infer_schema(tree, kind, options).names == rows.column_names
    file.rename(tmp_path / f"a.{kind}.snappy")
    with pytest.raises(InputError, match=r"snappy is compressed in a way that only Spark reads"):
        source.read(source.everything(), ["id"])


def test_a_file_that_stays_cut_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """A minute after its last change nobody is writing it."""
    rows = table(FLAT)
    write("json", rows, tmp_path / "a.json")
    os.truncate(tmp_path / "a.json", (tmp_path / "a.json").stat().st_size - 20)
    write("parquet", rows, tmp_path / "a.parquet")
    os.truncate(tmp_path / "a.parquet", 100)
    for name in ("a.json", "a.parquet"):
        os.utime(tmp_path / name, (1_700_000_000,) * 2)
    lines = FileSource("A", FileTree(str(tmp_path / "a.json")), "json", rows.schema)
    found = lines.read(lines.next_portion(lines.progress(), UNLIMITED), ["id"])
    assert found.column("id").to_pylist() == [0, 1, 2, 3, None]
    (text,) = found.column(CORRUPT).drop_null().to_pylist()
    assert text.startswith('{"id": 4')
    groups = FileSource("A", FileTree(str(tmp_path / "a.parquet")), "parquet", rows.schema)
    with pytest.raises(InputError, match=r"A: .*a\.parquet cannot be read as parquet: [^\n]*$"):
        groups.read(groups.next_portion(groups.progress(), UNLIMITED), ["id"])


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_lines_without_a_line_end(kind: str, tmp_path: Path) -> None:
    """An object is whole; a last line of values may be cut, unless nothing has come for seconds or
    nobody will look again."""
    rows = table(FLAT)
    file = tmp_path / f"a.{kind}"
    write(kind, rows, file)
    file.write_bytes(file.read_bytes().rstrip())
    source = FileSource("A", FileTree(str(tmp_path)), kind, rows.schema, options={"header": "true"})
    listed = source.available()
    portion = [list(each) for each in listed]
    first = source.next_portion(source.progress(), UNLIMITED, listed)
    assert first == (portion if kind == "json" else None)
    assert source.next_portion(source.progress(), UNLIMITED, listed, is_last=True) == portion
    assert source.everything() == portion
    old = [each._replace(changed=each.changed - 10 * 10**9) for each in listed]
    assert source.next_portion(source.progress(), UNLIMITED, old) is not None
    assert source.read(portion, ["id"]).equals(rows.select(["id"]))


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_a_file_of_lines_that_grows_is_told(kind: str, tmp_path: Path) -> None:
    rows = table(FLAT)
    file = tmp_path / f"a.{kind}"
    write(kind, rows, file)
    source = FileSource("A", FileTree(str(tmp_path)), kind, rows.schema)
    progress = source.progress()
    portion = source.next_portion(progress, UNLIMITED)
    progress.add(portion)
    size = file.stat().st_size
    with file.open("ab") as opened:
        opened.write(b"more\n")
    os.utime(file, ns=(portion[0][2] + 10**9,) * 2)
    for again in (False, True):
        with pytest.raises(InputError, match=f"had {size} when it was taken; leave its first"):
            source.read(portion, ["id"], again)
    with pytest.warns(PenstockWarning, match=r"has changed since it was taken"):
        assert source.next_portion(progress, UNLIMITED) is None


@pytest.mark.parametrize("kind", ["parquet", "arrow", "json", "csv"])
def test_a_file_without_rows(kind: str, tmp_path: Path) -> None:
    rows = table(FLAT)
    write(kind, rows.slice(0, 0), tmp_path / f"a.{kind}")
    if kind == "json":
        (tmp_path / "a.json").write_text("\n \n")
    write(kind, rows, tmp_path / f"b.{kind}")
    options = {"header": "true"} if kind == "csv" else {}
    source = FileSource("A", FileTree(str(tmp_path)), kind, rows.schema, options=options)
    portion = source.next_portion(source.progress(), UNLIMITED)
    assert len(portion) == 2
    assert source.read(portion, ["id", "ts"]).equals(rows.select(["id", "ts"]))
    assert source.read(portion[:1], ["id"]).equals(rows.slice(0, 0).select(["id"]))


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
