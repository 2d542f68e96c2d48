"""What is pushed into Spark's plan changes no answer and no clock; what cannot be exact stays."""

from __future__ import annotations

import datetime
import io
import random
import sys
from contextlib import redirect_stdout
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from spark_case import SparkCase, cases, in_spark_types

import penstock
import penstock.spark
from penstock.query.join_graph import JoinGraph
from penstock.spark.rows.pushdown import Pushdown, needs_clock, push_down
from penstock.testing import Oracle, difference
from penstock.testing.evaluate_row import evaluate
from penstock.testing.python_values import python_values

pytestmark = pytest.mark.xdist_group("spark")

UTC = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", UTC),
        ("x", pa.int64()),
        ("i", pa.int32()),
        ("h", pa.int16()),
        ("d", pa.float64()),
        ("f", pa.float32()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("day", pa.date32()),
        ("clock", pa.timestamp("us")),
        ("price", pa.decimal128(10, 2)),
        ("an id", pa.int64()),
    ]
)
NAN, INF = float("nan"), float("inf")
VALUES: dict[str, list[Any]] = {
    "x": [0, 1, -1, 7, 2**53 + 1, 2**63 - 1, -(2**63)],
    "i": [0, 1, -5, 2**31 - 1, -(2**31)],
    "h": [0, 1, -3, 2**15 - 1, -(2**15)],
    "d": [0.0, -0.0, 1.5, NAN, INF, -INF, 1e308],
    "f": [0.0, -0.0, 1.5, NAN, INF, -INF],
    "s": ["", "a", "A", "ab", "a%b", "ä", "😀x", "b\nc"],
    "b": [True, False],
    "day": [datetime.date(1969, 12, 31), datetime.date(2026, 1, 1)],
    "clock": [datetime.datetime(1950, 1, 1, 0, 0, 0, 1), datetime.datetime(2026, 1, 1)],
    "price": [Decimal("0.00"), Decimal("-1.50"), Decimal("99999999.99")],
    "an id": [1, 2, 3],
}
ATOMS = [
    "A.x = 1",
    "A.x <> 7",
    "A.x >= 1.5",
    "A.x < 9007199254740993",
    "A.i > A.h",
    "A.i + A.h * 3 - 1 < 40",
    "A.i % 3 = 1",
    "-A.h >= A.i",
    "ABS(A.i) > 5",
    "A.d > 1",
    "A.d <= 0",
    "A.d = 0",
    "A.d <> 1.5",
    "A.d * 2 >= A.f",
    "A.d / 4 < 1",
    "A.f > 1",
    "A.f = 0",
    "A.f <> A.d",
    "A.s = 'a'",
    "A.s > 'a'",
    "A.s LIKE 'a%'",
    "A.s LIKE '_x'",
    "A.s LIKE '%\n_'",
    "A.s IN ('a', 'ä', '')",
    "LENGTH(A.s) = 2",
    "A.b",
    "A.b = FALSE",
    "A.day < DATE '2000-01-01'",
    "A.clock >= TIMESTAMP '1950-01-01 00:00:00.000001'",
    "A.price > 0",
    "A.price = -1.5",
    "A.price >= A.i",
    "A.x IS NULL",
    "A.s IS NOT NULL",
    "COALESCE(A.i, A.h, 4) = 4",
    'A."an id" BETWEEN 2 AND 3',
]
STAYS = [
    "A.x + 1 > 0",
    "A.x / A.i > 1",
    "A.i % A.h = 1",
    "-A.x > 0",
    "ABS(A.x) = 1",
    "LOWER(A.s) = 'a'",
    "CAST(A.s AS BIGINT) = 1",
    "CAST(A.d AS BIGINT) = 1",
    "A.s LIKE 'a\\%b'",
    "A.price * A.price > 1",
]


def parsed(condition: str) -> JoinGraph:
    return penstock.parse(
        f"SELECT A.id AS id FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] WHERE A.id = B.id "
        f"AND ({condition})",
        schemas={"A": SCHEMA, "B": SCHEMA},
        event_time="ts",
    )


def table(rows: int, chance: random.Random) -> pa.Table:
    columns: dict[str, list[Any]] = {
        name: [chance.choice([None, *values]) for _ in range(rows)]
        for name, values in VALUES.items()
    }
    columns["id"] = list(range(rows))
    columns["ts"] = [1_000 * i for i in range(rows)]
    return pa.Table.from_arrays([pa.array(columns[f.name], f.type) for f in SCHEMA], schema=SCHEMA)


def test_spark_decides_as_the_oracle_does(spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(1)
    rows = table(400, chance)
    # Small row groups: many that a scan could skip by their statistics.
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=5)
    frame = spark.read.parquet(str(tmp_path))
    assert penstock.spark.arrow_schema(frame).equals(SCHEMA)
    values = {name: python_values(rows.column(name)) for name in SCHEMA.names}
    texts = [*ATOMS, *(f"NOT ({atom})" for atom in ATOMS)]
    for _ in range(60):
        first, second, third = (chance.choice(texts) for _ in range(3))
        texts.append(f"({first} OR {second}) AND NOT ({third} AND {first})")
    conditions = {}
    for text in texts:
        query = parsed(text)
        pushed = push_down(query, frame, "A", needs_clock=False)
        assert pushed.condition is not None, text
        assert not pushed.kept
        own = [p for p in query.predicates if p.streams == {"A"}]
        held = {
            i
            for i in range(len(rows))
            if all(
                evaluate(p.expression, {"A": {name: values[name][i] for name in values}}) is True
                for p in own
            )
        }
        conditions[text] = (pushed.condition, held)
    flags = [c.alias(f"c{n}") for n, (c, _) in enumerate(conditions.values())]
    decided = {row["id"]: row for row in frame.select("id", *flags).collect()}
    for number, (text, (_, held)) in enumerate(conditions.items()):
        assert {i for i, row in decided.items() if row[f"c{number}"]} == held, text
    # The scan has its own way to decide, by statistics and dictionaries.
    scanned = [frame.where(conditions[a][0]).select("id", sql.lit(n)) for n, a in enumerate(ATOMS)]
    united = scanned[0]
    for each in scanned[1:]:
        united = united.unionAll(each)
    found: dict[int, set[int]] = {n: set() for n in range(len(ATOMS))}
    for i, n in united.collect():
        found[n].add(i)
    for n, atom in enumerate(ATOMS):
        assert found[n] == conditions[atom][1], atom


@pytest.mark.parametrize("condition", STAYS)
def test_what_might_differ_stays(condition: str, spark: SparkSession) -> None:
    frame = spark.createDataFrame(SCHEMA.empty_table())
    pushed = push_down(parsed(condition), frame, "A", needs_clock=False)
    assert pushed.condition is None
    assert len(pushed.kept) == 1
    both = push_down(parsed(f"{condition} AND A.x = 1"), frame, "A", needs_clock=False)
    assert both.pushed == ("A.x = 1",)
    assert both.kept == pushed.kept


def test_columns_that_spark_compares_otherwise_stay(spark: SparkSession) -> None:
    frame = spark.createDataFrame(SCHEMA.empty_table())
    collated = frame.withColumn("s", sql.expr("s COLLATE UTF8_LCASE"))
    narrow = frame.withColumn("x", frame.x.cast("int"))
    for other, condition in [(collated, "A.s = 'a'"), (narrow, "A.x = 1")]:
        assert push_down(parsed(condition), frame, "A", needs_clock=False).condition is not None
        assert push_down(parsed(condition), other, "A", needs_clock=False).condition is None


def plan_of(frame: DataFrame) -> str:
    output = io.StringIO()
    with redirect_stdout(output):
        frame.explain()
    return output.getvalue()


def test_filters_and_columns_reach_the_scan(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(table(10, random.Random(2)), tmp_path / "rows.parquet")
    frame = spark.read.parquet(str(tmp_path))
    plan = plan_of(penstock.spark.join(parsed("A.x = 1 AND A.s = 'a'"), {"A": frame, "B": frame}))
    assert "PushedFilters: [Or(And(EqualTo(x,1),EqualTo(s,a)),IsNull(ts))]" in plan
    assert "ReadSchema: struct<id:bigint,ts:timestamp,x:bigint,s:string>" in plan
    assert "ReadSchema: struct<id:bigint,ts:timestamp>" in plan


def test_rejected_rows_vanish_only_where_the_clock_does_not_matter() -> None:
    text = "FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] WHERE A.id = B.id AND A.x = 1"
    schemas = {"A": SCHEMA, "B": SCHEMA}
    plain = penstock.parse(f"SELECT A.id AS id {text}", schemas, event_time="ts")
    assert not needs_clock(plain, "A", streaming=True, delays={})
    assert not needs_clock(plain, "A", streaming=True, delays={"B": 5})
    assert needs_clock(plain, "A", streaming=True, delays={"A": 0})
    assert not needs_clock(plain, "A", streaming=False, delays={"A": 0})
    for select in ("DSTREAM A.id AS id", "RSTREAM A.id AS id", "COUNT(*) AS n"):
        query = penstock.parse(f"SELECT {select} {text}", schemas, event_time="ts")
        assert needs_clock(query, "A", streaming=True, delays={})
    rstream = penstock.parse(f"SELECT RSTREAM A.id AS id {text}", schemas, event_time="ts")
    assert needs_clock(rstream, "A", streaming=False, delays={})


@pytest.mark.parametrize(
    ("seed", "emission", "late"),
    [
        (0, "ISTREAM", True),
        (1, "ISTREAM", False),
        (2, "DSTREAM", True),
        (3, "RSTREAM", False),
        (4, "ISTREAM", True),
        (5, "ISTREAM", True),
    ],
)
def test_with_and_without_the_same_answer_and_the_same_late_rows(
    seed: int,
    emission: str,
    late: bool,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chance = random.Random(seed)
    schema = pa.schema([("id", pa.int64()), ("ts", UTC), ("x", pa.int64()), ("kind", pa.string())])
    pushes = []
    for number in range(4):
        push = {}
        for source in "AB":
            columns: dict[str, list[Any]] = {name: [] for name in schema.names}
            for i in range(40):
                kind = chance.choice(["a", "a", "A", "b", "c", None])
                # Rows of other kinds are ahead of those that the query wants.
                ahead = (3 if emission == "RSTREAM" else 20) * (kind in ("b", "c"))
                columns["id"].append(100 * number + i)
                time = 1_000_000 * (12 * number + ahead + chance.randint(-25, 12))
                columns["ts"].append(None if chance.random() < 0.05 else time)
                columns["x"].append(chance.randint(1, 3))
                columns["kind"].append(kind)
            push[source] = pa.table(columns, schema)
        pushes.append(push)
        for source, rows in push.items():
            (tmp_path / source).mkdir(exist_ok=True)
            pq.write_table(rows, tmp_path / source / f"{number}.parquet", row_group_size=6)
    group = " GROUP BY A.x" if seed == 4 else ""
    selected = "A.x AS x, COUNT(*) AS n" if group else "A.id AS a, B.id AS b"
    # One predicate that is pushed, and one that is not.
    query = penstock.parse(
        f"SELECT {emission} {selected} FROM A [RANGE 9 SECONDS], B [RANGE 9 SECONDS] "
        f"WHERE A.x = B.x AND A.kind = 'a' AND LOWER(B.kind) = 'a' AND B.x % 2 = 0{group}",
        {"A": schema, "B": schema},
        event_time="ts",
    )
    lateness: Any = 35_000 if late else {} if seed == 1 else 100_000
    if seed == 5:
        lateness = {"B": 35_000}  # Rows of A are never late, so those that are rejected just go.
    answers, lates, timeless = [], [], []
    for way in ("with", "without"):
        if way == "without":
            monkeypatch.setattr(sys.modules["penstock.spark.join"], "push_down", _nothing)
        frames = {
            source: spark.readStream.schema("id BIGINT, ts TIMESTAMP, x BIGINT, kind STRING")
            .option("maxFilesPerTrigger", 1)
            .parquet(str(tmp_path / source))
            for source in "AB"
        }
        running = (
            penstock.spark.join(query, frames, cells=3, lateness=lateness)
            .writeStream.option("checkpointLocation", str(tmp_path / way / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / way / "results"), format="parquet")
        )
        running.awaitTermination()
        found = spark.read.parquet(str(tmp_path / way / "results")).toArrow()
        answers.append(list(zip(*(c.to_pylist() for c in found.columns), strict=True)))
        reports = [
            r
            for progress in running.recentProgress
            for r in penstock.spark.cell_reports(progress.observedMetrics)
        ]
        lates.append({s: sum(r.dropped.get(s, {}).get("late", 0) for r in reports) for s in "AB"})
        timeless.append(sum(sum(d.values()) for r in reports for d in r.dropped.values()))
    oracle = Oracle(query, lateness)
    expected = [row for push in pushes for row in oracle.push(push)]
    assert difference(answers[0], expected) is None
    assert difference(answers[1], expected) is None
    assert len(expected) > 3
    assert lates[0] == lates[1]
    nulls = sum(rows.column("ts").null_count for push in pushes for rows in push.values())
    assert timeless == [sum(lates[0].values()) + nulls] * 2
    assert (sum(lates[0].values()) > 0) == late


def _nothing(*_: Any, **__: Any) -> Pushdown:
    return Pushdown(None, (), (), False)


@pytest.mark.parametrize(("features", "cells"), [(("late", "splits"), 1), (("lateness",), 3)])
def test_random_queries_with_predicates_on_one_stream(
    features: tuple[str, ...], cells: int, spark: SparkSession, tmp_path: Path
) -> None:
    found = (SparkCase(case, tmp_path, spark) for case in cases(*features, start=7_000))
    case = next(filter(is_pushed, found))
    case.write(len(case.case.pushes))
    case.run(cells)
    case.check(case.results(), case.expected())


def is_pushed(case: SparkCase) -> bool:
    """Whether something of ``case`` is pushed to a stream."""
    return not case.graph.by_rows and any(
        push_down(
            case.graph,
            case.spark.createDataFrame(in_spark_types(rows.slice(0, 0))),
            name,
            needs_clock=True,
        ).is_masked
        for name, rows in case.case.pushes[0].items()
        if not case.streams[name].is_static
    )
