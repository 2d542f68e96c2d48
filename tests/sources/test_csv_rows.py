"""CSV rows that cannot be read are rows, with what could be read of them and their text."""

from __future__ import annotations

import datetime
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import InputError
from penstock.query.column_list import read_columns
from penstock.query.unreadable import CORRUPT
from penstock.sources.csv_rows import read_rows, schema_of
from penstock.sources.file_source import FileSource
from penstock.sources.file_tree import FileTree
from penstock.sources.portion import UNLIMITED

SCHEMA = read_columns("id BIGINT, ts TIMESTAMP, x STRING, p DOUBLE")
TIME = datetime.datetime(2023, 1, 1, 0, 0, 5, tzinfo=datetime.UTC)
GOOD = "1,2023-01-01 00:00:05,a,1.5"


def read(text: str | bytes, columns: str = "id ts x p", **options: str) -> dict[str, list[Any]]:
    data = text if isinstance(text, bytes) else text.encode()
    found: dict[str, list[Any]] = read_rows(data, columns.split(), SCHEMA, options).to_pydict()
    return found


def test_a_good_file_has_no_column_of_texts() -> None:
    assert read(f"{GOOD}\n") == {"id": [1], "ts": [TIME], "x": ["a"], "p": [1.5]}
    assert read("1,2023-01-01T02:00:05+02:00,a,1.5\n")["ts"] == [TIME]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x,y", (None, None, None, None)),
        ("7,never,b,2", (7, None, "b", 2.0)),
        ("7,2023-01-01 00:00:05", (7, TIME, None, None)),
        ("7,2023-01-01 00:00:05,b,2,more", (7, TIME, "b", 2.0)),
        ('7,2023-01-01 00:00:05,"b', (7, TIME, "b", None)),
        ("7,2023-01-01 00:00:05,b,", (7, TIME, "b", None)),
        ("7.5,2023-01-01 00:00:05,b,2", (None, TIME, "b", 2.0)),
        ("99999999999999999999,2023-01-01 00:00:05,b,2", (None, TIME, "b", 2.0)),
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_bad_line_between_good_ones(line: str, expected: tuple[Any, ...], ending: str) -> None:
    found = read(ending.join([GOOD, line, "", GOOD, ""]))
    rows = list(zip(*(found[name] for name in SCHEMA.names), strict=True))
    assert rows == [(1, TIME, "a", 1.5), expected, (1, TIME, "a", 1.5)]
    is_good = line.endswith("b,")
    assert found.get(CORRUPT, [None] * 3) == [None, None if is_good else line, None]


def test_an_open_quote_does_not_swallow_lines() -> None:
    """Two of them make one value of two lines, which Arrow takes."""
    found = read('1,2023-01-01 00:00:05,"a\n2,2023-01-01 00:00:05,b",1.5\n' + f"{GOOD}\n")
    assert found["id"] == [1, 2, 1]
    assert [text is None for text in found[CORRUPT]] == [False, False, True]


def test_values_of_several_lines() -> None:
    found = read(
        f'1,2023-01-01 00:00:05,"a\nb",1.5\nx,y\n2,never,"c\nd",1\n{GOOD}\n', multiline="true"
    )
    assert found["x"] == ["a\nb", "c\nd", "a", None]
    assert found[CORRUPT] == [None, '2,never,"c\nd",1', None, "x,y"]


def test_dialects() -> None:
    found = read("p;id\n1.5;1\nno;2\n3\nNA;3\n", "id p", header="true", sep=";", nullvalue="NA")
    assert found == {
        "id": [1, 2, None, 3],
        "p": [1.5, None, 3.0, None],
        CORRUPT: [None, "no;2", "3", None],
    }
    latin = "1,2023-01-01 00:00:05,é,1.5\n2,never,é,1\n".encode("latin1")
    assert read(latin, "id x", encoding="latin1") == {"id": [1, 2], "x": ["é", "é"]}
    assert read(latin, "ts x", encoding="latin1")["x"] == ["é", "é"]
    assert read(latin, "id x")["x"] == ["\ufffd", "\ufffd"]


def test_columns_nobody_reads_may_be_anything() -> None:
    assert read(f"{GOOD}\n7,never,b,2\n", "id x") == {"id": [1, 7], "x": ["a", "b"]}


def test_the_schema_of_a_file_with_bad_lines() -> None:
    found = schema_of(b"id,x\n1,a\n2\n3,b,c\n", {"header": "true"})
    assert found == pa.schema([("id", pa.int64()), ("x", pa.string())])


def test_many_bad_lines_keep_their_places() -> None:
    chance = random.Random(0)
    good = [chance.random() < 0.7 for _ in range(2_000)]
    lines = [
        f'{i},2023-01-01 00:00:05,"q, {i}",1'
        if fits
        else chance.choice([f"x{i}", f'{i},"y', "z,,,,"])
        for i, fits in enumerate(good)
    ]
    found = read("\n".join(lines))
    assert [text is None for text in found[CORRUPT]] == good
    assert [text for text in found[CORRUPT] if text] == [
        line for line, fits in zip(lines, good, strict=True) if not fits
    ]
    assert [x for x, fits in zip(found["x"], good, strict=True) if fits] == [
        f"q, {i}" for i, fits in enumerate(good) if fits
    ]


@pytest.mark.parametrize(("kind", "bad"), [("csv", "x,y"), ("json", "{broken")])
def test_who_wants_to_fail_fails_in_one_line(kind: str, bad: str, tmp_path: Path) -> None:
    good = {"csv": "1,a", "json": '{"id": 1, "x": "a"}'}[kind]
    (tmp_path / f"a.{kind}").write_text(f"{good}\n{bad}\n{good}\n")
    schema = read_columns("id BIGINT, x STRING")
    source = FileSource("A", FileTree(str(tmp_path)), kind, schema, options={"mode": "failfast"})
    portion = source.next_portion(source.progress(), UNLIMITED)
    with pytest.raises(
        InputError, match=rf"a\.{kind}: 1 of 3 rows cannot be read, the first is"
    ) as told:
        source.read(portion, ["id", "x"])
    assert "\n" not in str(told.value)
    patient = FileSource("A", FileTree(str(tmp_path)), kind, schema)
    assert patient.read(portion, ["id"]).num_rows == 3
