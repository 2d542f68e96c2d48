"""JSON of which a few columns are read first: the chosen rows are those of reading everything."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.query.unreadable import CORRUPT
from penstock.sources import json_lines
from penstock.sources.file_source import FileSource
from penstock.sources.file_tree import FileTree
from penstock.sources.json_lines import read_chosen, read_objects

WANTED = pa.schema(
    [("id", pa.int64()), ("x", pa.int64()), ("text", pa.string()), ("f", pa.float64())]
)
FIRST = ("x",)
ODD: dict[str, list[bytes]] = {
    "nothing": [],
    "a blank line": [b""],
    "white space": [b"   "],
    "two in a line": [b'{"x": 1, "id": 7}{"x": 2, "id": 8}'],
    "blank and two": [b"  ", b'{"x": 1, "id": 7}{"x": 2, "id": 8}'],
    "no object": [b'{"x": 1, "id"'],
    "another type": [b'{"x": 1, "id": "many", "text": 5}'],
    "a key that is none": [b'{"x": [1], "id": 1}'],
    "a line end of Windows": [b'{"x": 3, "id": 9}\r'],
    "a return inside": [b'{"x": 3,\r"id": 9}'],
    "a return inside and another type": [b'{"x": 3,\r"id": 9}', b'{"x": 1, "text": 5}'],
    "two in a line and another type": [b'{"x": 1}{"x": 3}', b'{"x": 1, "text": 5}'],
}


def lines(chance: random.Random, count: int) -> list[bytes]:
    found = []
    for number in range(count):
        row: dict[str, Any] = {"id": number, "x": chance.randrange(5), "f": chance.random()}
        row |= {"text": chance.choice(["plain", 'a \\ " quote', "é\u2028", None])}
        for name in list(row):
            if chance.random() < 0.1:
                del row[name]
        found.append(json.dumps(row, ensure_ascii=chance.random() < 0.5).encode())
    return found


def chosen_by(seen: list[pa.Table]) -> Callable[[pa.Table], Any]:
    def choose(table: pa.Table) -> Any:
        seen.append(table)
        assert set(table.column_names) <= {*FIRST, CORRUPT}
        keys = table.column("x").to_pylist()
        return np.array([i for i, key in enumerate(keys) if key in (1, 3)], np.int64)

    return choose


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("end", [b"", b"\n"], ids=["no line end", "a line end"])
def test_the_chosen_rows_are_those_of_reading_everything(
    odd: str, end: bytes, tmp_path: Path
) -> None:
    chance = random.Random(odd)
    for _ in range(5):
        texts = lines(chance, chance.randint(0, 30))
        for text in ODD[odd]:
            texts.insert(chance.randint(0, len(texts)), text)
        content = b"\n".join(texts) + end
        if not content.strip():
            continue
        file = tmp_path / "a.json"
        file.write_bytes(content)
        os.utime(file, (1_700_000_000,) * 2)
        source = FileSource("A", FileTree(str(tmp_path)), "json", WANTED)
        portion = source.everything()
        whole = source.read(portion, WANTED.names)
        seen: list[pa.Table] = []
        found = source.read_chosen(portion, WANTED.names, FIRST, chosen_by(seen))
        assert len(seen) == 1
        rows = chosen_by([])(whole.select(["x"]))
        assert found.equals(whole.select(WANTED.names).take(pa.array(rows)))
        assert seen[0].column("x").equals(whole.column("x"))


@pytest.mark.parametrize(
    "content",
    [
        b'{"x": 1, "id": 1}{"x": 3, "id": 2}\n{"x": 3, "id": 3}\n{"x": 4, "text": 5}',
        b'{"x": 1}\n{"x": 3,\r"id": 2}\n{"x": 3, "text": 5}\n',
        b'{"x": 1}\r{"x": 3}\n',
        b'{"x":\n1}\n{"x": 3}{"x": 4}\n',
        b'{"f": [\n{"x": 1}]}\n{"x": 3}{"x": 4}\n',
    ],
)
def test_objects_that_are_not_lines_are_refused_before_anything_is_chosen(content: bytes) -> None:
    seen: list[pa.Table] = []
    assert read_chosen(pa.py_buffer(content), WANTED, FIRST, chosen_by(seen)) is None
    assert seen == []


def test_windows_lines_are_read_in_two_steps() -> None:
    content = b'{"x": 1, "id": 1}\r\n{"x": 2, "id": 2}\r\n{"x": 3, "id": 3}\r\n'
    found = read_chosen(pa.py_buffer(content), WANTED, FIRST, chosen_by([]))
    assert found is not None
    assert found.column("id").to_pylist() == [1, 3]


def test_others_are_parsed_of_the_chosen_rows_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[tuple[list[str], int]] = []
    before = json_lines.bulk

    def noted(file: Any, size: int, wanted: pa.Schema, *more: Any) -> pa.Table | None:
        table = before(file, size, wanted, *more)
        assert table is not None
        parsed.append((wanted.names, len(table)))
        return table

    monkeypatch.setattr(json_lines, "bulk", noted)
    rows = [{"id": n, "x": n % 4, "text": str(n), "f": n / 2} for n in range(400)]
    content = b"\n".join(json.dumps(row).encode() for row in rows)
    found = read_chosen(pa.py_buffer(content), WANTED, FIRST, chosen_by([]))
    assert found is not None
    assert found.to_pylist() == [row for row in rows if row["x"] in (1, 3)]
    assert parsed == [(["x"], 400), (WANTED.names, 200)]
    none = read_chosen(pa.py_buffer(content), WANTED, FIRST, lambda table: np.zeros(0, np.int64))
    assert none is not None
    assert len(none) == 0
    assert read_objects([], WANTED).schema == none.schema
