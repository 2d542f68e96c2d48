"""Cases with hundreds or thousands of rows per stream, for which a brute-force oracle is too slow.

What goes wrong only when rings wrap, grow and are packed, or when hundreds of rows wait for one
stream, does not show in cases of a few rows.
"""

from __future__ import annotations

import itertools
import random

import numpy as np
import pyarrow as pa

from penstock.testing.case import Case
from penstock.testing.random_plan import random_plan

LARGE_ROWS = 6_000
"""Rows per stream of a large case."""
RANGED_ROWS = 400
"""Rows per stream of a case in which rows wait for a range."""
_SPARSE = 16
"""Rows of which one is kept in a stream that is compared by ranges alone: all others meet it."""


def ranged_case(chance: random.Random) -> Case:
    """A chain of two or three streams, and one that is compared with some of them by ranges."""
    streams = "ABCD"[: chance.randint(3, 4)]
    last, rows = streams[-1], chance.randint(RANGED_ROWS // 2, RANGED_ROWS)
    schema = _schema(pa.int64())
    links = [f"{a}.k = {b}.k" for a, b in itertools.pairwise(streams[:-1])]
    for stream in chance.sample(streams[:-1], chance.randint(1, 2)):
        operator, offset = chance.choice(["<", "<=", ">", ">="]), chance.choice([0, 30, 45])
        mine, theirs = f"{stream}.j", f"{last}.j"
        if operator[0] == "<":
            mine += f" + {offset}"
        else:
            theirs += f" + {offset}"
        by_time = f"{stream}.id {operator} {last}.id"
        links.append(by_time if chance.random() < 0.3 else f"{mine} {operator} {theirs}")
    text = _text_of(chance, streams, links, rows)
    lateness = chance.choice([None, 0, 50])
    pushes = _large_pushes(chance, streams, schema, rows, lateness or 0, most=40)
    for push in pushes:
        push[last] = push[last].take(np.arange(0, len(push[last]), _SPARSE))
    plan = random_plan(chance, list(streams))
    return Case(text, dict.fromkeys(streams, schema), "ts", pushes, plan, lateness)


def _schema(kind: pa.DataType) -> pa.Schema:
    return pa.schema(
        [("id", pa.int64()), ("ts", pa.int64()), ("k", kind), ("j", pa.int64()), ("s", pa.string())]
    )


def large_case(chance: random.Random) -> Case:
    """A chain, star or triangle of three or four streams with thousands of rows each."""
    streams = "ABCD"[: chance.randint(2, 4)]
    kinds = [pa.int64(), pa.int64(), pa.string(), pa.int32(), pa.float64()]
    kind = chance.choice(kinds)
    schema = _schema(kind)
    rows = chance.randint(LARGE_ROWS // 2, LARGE_ROWS)
    links = [f"{a}.k = {b}.k" for a, b in itertools.pairwise(streams)]
    links += [f"{streams[0]}.j = {streams[-1]}.j"] if chance.random() < 0.5 else []
    if chance.random() < 0.3:
        links.append(f"{streams[0]}.id + {streams[-1]}.id > 100")
    if chance.random() < 0.3:
        links.append(f"{streams[0]}.j <> {streams[-1]}.j")
    if chance.random() < 0.3:
        links.append(f"{streams[0]}.j < 40")
    text = _text_of(chance, streams, links, rows)
    lateness = chance.choice([None, 0, 50, 500])
    pushes = _large_pushes(chance, streams, schema, rows, lateness or 0)
    plan = random_plan(chance, list(streams))
    return Case(text, dict.fromkeys(streams, schema), "ts", pushes, plan, lateness)


def _text_of(chance: random.Random, streams: str, links: list[str], rows: int) -> str:
    """A query over windows of an eighth to a half of ``rows``."""
    payload = ", ".join(f"{s}.{chance.choice(['id', 's', 'j'])} AS {s.lower()}" for s in streams)
    select = chance.choice([payload, payload, "COUNT(*) AS n", f"DSTREAM {payload}"])
    kind_of_window = chance.choice(["RANGE"] * 6 + ["ROWS"])
    windows = [chance.randint(rows // 8, rows // 2) for _ in streams]
    unit = "MILLISECONDS" if kind_of_window == "RANGE" else ""
    sources = ", ".join(
        f"{s} [{kind_of_window} {w} {unit}]" for s, w in zip(streams, windows, strict=True)
    )
    return f"SELECT {select} FROM {sources} WHERE {' AND '.join(links)}"


def _large_pushes(
    chance: random.Random,
    streams: str,
    schema: pa.Schema,
    rows: int,
    lateness: int,
    most: int | None = None,
) -> list[dict[str, pa.Table]]:
    random_rows = np.random.default_rng(chance.randrange(1 << 30))
    domain = rows // chance.choice([2, 4, 8])
    tables = {}
    nulls = chance.choice([0.0, 0.0, 0.05])
    for stream in streams:
        times = np.arange(rows, dtype=np.int64)
        if chance.random() < 0.5:
            times = np.maximum(0, times - random_rows.integers(0, lateness + 20, rows))
        keys = random_rows.integers(0, domain, rows)
        if chance.random() < 0.3:
            keys[random_rows.random(rows) < 0.5] += 1 << 40
        if pa.types.is_int32(schema.field("k").type):
            keys %= 1 << 30
        column = pa.array(keys, mask=random_rows.random(rows) < nulls)
        tables[stream] = pa.Table.from_arrays(
            [
                pa.array(np.arange(rows)),
                pa.array(times, mask=random_rows.random(rows) < nulls / 10),
                column.cast(schema.field("k").type),
                pa.array(random_rows.integers(0, 50, rows)),
                pa.array(keys % 100, mask=random_rows.random(rows) < nulls).cast(pa.string()),
            ],
            schema=schema,
        )
    pushes = []
    start = 0
    largest = most or chance.choice([50, 200, 800])
    while start < rows:
        count = chance.randint(1, largest)
        pushes.append({name: table.slice(start, count) for name, table in tables.items()})
        start += count
    return _in_waves(chance, pushes) if chance.random() < 0.4 else pushes


def _in_waves(
    chance: random.Random, pushes: list[dict[str, pa.Table]]
) -> list[dict[str, pa.Table]]:
    """The same rows, those of one stream held back and then all at once, again and again: others
    wait for them by the hundred, and wake in one push. The clock waits for that stream, too."""
    name = chance.choice(list(pushes[0]))
    held, every = [], chance.choice([4, 8, 16])
    for number, push in enumerate(pushes, 1):
        held.append(push[name])
        if number % every and number < len(pushes):
            push[name] = push[name].slice(0, 0)
        else:
            push[name] = pa.concat_tables(held)
            held = []
    return pushes
