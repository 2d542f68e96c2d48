"""Pushes of every size and every mistake: the right answer or a clear error, and still usable."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.errors import InputError, OptionError, PenstockError, PlanError

A = pa.schema([("ts", pa.int64()), ("id", pa.int64()), ("x", pa.int64()), ("name", pa.string())])
B = pa.schema([("ts", pa.int64()), ("id", pa.int64()), ("x", pa.int64())])
TEXT = """SELECT A.id AS a, B.id AS b, A.name AS name
          FROM A [RANGE 10 SECONDS], B [RANGE 10 SECONDS] WHERE A.x = B.x"""


def engine(text: str = TEXT, **options: Any) -> penstock.Engine:
    return penstock.Engine(penstock.parse(text, {"A": A, "B": B}), **options)


def a(*rows: tuple[int, int, int]) -> pa.Table:
    return pa.table(
        {
            "ts": [r[0] for r in rows],
            "id": [r[1] for r in rows],
            "x": [r[2] for r in rows],
            "name": [f"n{r[1]}" for r in rows],
        },
        schema=A,
    )


def b(*rows: tuple[int, int, int]) -> pa.Table:
    return pa.table(
        {"ts": [r[0] for r in rows], "id": [r[1] for r in rows], "x": [r[2] for r in rows]},
        schema=B,
    )


def still_usable(running: penstock.Engine) -> None:
    """A tuple of A from before the mistake meets a tuple of B from after it, exactly once."""
    table = running.push({"B": b((1_001, 99, 7))})
    assert table.to_pylist() == [{"a": 1, "b": 99, "name": "n1"}]


def started() -> penstock.Engine:
    running = engine()
    assert running.push({"A": a((1_000, 1, 7))}).num_rows == 0
    return running


def test_empty_pushes() -> None:
    running = started()
    for batches in ({}, {"A": a()}, {"A": a(), "B": b()}):
        table = running.push(batches)
        assert table.num_rows == 0
        assert table.schema == running.schema
    still_usable(running)


def test_one_stream_only() -> None:
    running = engine()
    for i in range(5):
        assert running.push({"B": b((i, i, 1))}).num_rows == 0
    assert sorted(running.push({"A": a((4, 9, 1))})["b"].to_pylist()) == [0, 1, 2, 3, 4]


def test_results_of_a_push_are_ordered_by_birth() -> None:
    running = engine()
    table = running.push(
        {"A": a((5_000, 3, 1), (1_000, 1, 1), (3_000, 2, 1)), "B": b((4_000, 8, 1), (0, 7, 1))}
    )
    births = [
        max({1: 1_000, 2: 3_000, 3: 5_000}[row["a"]], {7: 0, 8: 4_000}[row["b"]])
        for row in table.to_pylist()
    ]
    assert births == sorted(births)
    assert len(births) == 6


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ({"C": b()}, "unknown stream 'C'; the query reads: A, B"),
        ({"a": b()}, "unknown stream 'a'"),
        ({"A": a((1, 1, 1)).drop_columns("x")}, "has no column 'x'; its columns are: ts, id, name"),
        ({"A": a((1, 1, 1)).drop_columns("ts")}, "has no column 'ts'"),
        ({"A": a((1, 1, 1)).drop_columns("name")}, "has no column 'name'"),
        (
            {"B": b((1, 1, 1)).set_column(2, "x", pa.array(["one"]))},
            "column 'x' of B is of type string; the query was given int64",
        ),
        (
            {"B": b((1, 1, 1)).set_column(0, "ts", pa.array([1.5]))},
            "column 'ts' of B is of type double",
        ),
        ({"A": 5}, "type int; give a pyarrow Table or RecordBatch"),
        ({"A": None}, "type NoneType"),
        ([("A", 1)], "push takes a dict"),
        (
            {"B": b((1, 1, 1)).append_column("x", pa.array([1]))},
            "has more than one column 'x'",
        ),
    ],
)
def test_mistakes_are_clear_and_harmless(batches: Any, message: str) -> None:
    running = started()
    with pytest.raises(InputError) as caught:
        running.push(batches)
    assert message in str(caught.value)
    still_usable(running)


def test_a_mistake_in_one_stream_takes_back_the_other() -> None:
    running = started()
    with pytest.raises(InputError):
        running.push({"A": a((1_000, 2, 7)), "B": b((1, 1, 1)).drop_columns("x")})
    still_usable(running)


def test_an_error_in_an_expression_is_harmless() -> None:
    running = engine(
        """SELECT A.id AS a, B.id AS b, A.name AS name FROM A [RANGE 10 SECONDS],
           B [RANGE 10 SECONDS] WHERE A.x = B.x AND A.id * B.id < 9000000000000000000"""
    )
    running.push({"A": a((1_000, 1, 7), (1_000, 2**62, 8))})
    with pytest.raises(InputError, match="overflow"):
        running.push({"B": b((1_001, 98, 7), (1_001, 2**62, 8))})
    still_usable(running)


@pytest.mark.parametrize("window", ["RANGE 10 SECONDS", "ROWS 10"])
def test_what_a_filter_rejects_is_not_computed_with(window: str) -> None:
    running = engine(
        f"""SELECT A.id AS a, B.id AS b FROM A [{window}], B [{window}]
            WHERE A.x <> 0 AND 10 % A.x = 0 AND B.x = 10 % A.x + A.x AND A.id % A.x >= 0"""
    )
    running.push({"A": a((1, 1, 0), (2, 2, 5), (3, 3, 4), (4, 4, 0))})
    assert running.push({"B": b((5, 9, 5), (6, 8, 0))}).to_pylist() == [{"a": 2, "b": 9}]


def test_an_interrupt_is_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    running = started()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(running._join.output), "stage", interrupted)
        with pytest.raises(KeyboardInterrupt):
            running.push({"A": a((1_000, 2, 7)), "B": b((1_000, 3, 7))})
    still_usable(running)


def test_batches_of_other_libraries_and_layouts() -> None:
    running = started()
    batch = b((1_001, 99, 7)).to_batches()[0]

    class FromElsewhere:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pa.table(batch).__arrow_c_stream__(requested_schema)

    assert running.push({"B": batch}).num_rows == 1
    assert running.push({"B": FromElsewhere()}).num_rows == 1
    large = a((1_002, 5, 3)).set_column(3, "name", pa.array(["n5"], pa.large_string()))
    encoded = a((1_002, 6, 3)).set_column(3, "name", pa.array(["n6"]).dictionary_encode())
    running.push({"A": large})
    running.push({"A": encoded})
    table = running.push({"B": b((1_002, 1, 3))})
    assert table.schema.field("name").type == pa.string()
    assert sorted(table["name"].to_pylist()) == ["n5", "n6"]


def test_more_columns_than_declared_are_ignored() -> None:
    running = started()
    extra = b((1_001, 99, 7)).append_column("extra", pa.array(["?"]))
    assert running.push({"B": extra.select(["extra", "x", "id", "ts"])}).num_rows == 1


def test_a_million_tuples_in_one_push() -> None:
    n = 500_000
    rng = np.random.default_rng(3)
    text = """SELECT A.id AS a, B.id AS b FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND]
              WHERE A.x = B.x"""
    tables = {
        name: pa.table(
            {
                "ts": np.sort(rng.integers(0, 1_000_000, n)),
                "id": np.arange(n),
                "x": rng.integers(0, 1_000, n),
                "name": pa.nulls(n, pa.string()),
            }
        )
        for name in "AB"
    }
    whole = engine(text).push(tables)
    parts = engine(text)
    pieces = [
        parts.push({name: t.slice(i, 50_000) for name, t in tables.items()})
        for i in range(0, n, 50_000)
    ]
    split = pa.concat_tables(pieces)
    order = [("a", "ascending"), ("b", "ascending")]
    assert whole.num_rows > 300_000
    assert whole.sort_by(order).equals(split.sort_by(order).combine_chunks())


def test_late_rows_are_dropped_and_counted() -> None:
    running = engine(lateness="2 SECONDS")
    running.push({"A": a((10_000, 1, 7)), "B": b((10_000, 1, 7))})
    running.push({"A": a((8_000, 2, 7), (7_999, 3, 7)), "B": b((1, 5, 7))})
    metrics = running.metrics()
    assert metrics["late"] == 2
    assert metrics["sources"]["A"]["late"] == 1
    assert metrics["watermark"] == 8_000
    assert running.push({"B": b((8_000, 8, 7))})["a"].to_pylist() == [2, 1]


def test_rows_without_a_time_are_dropped_and_counted() -> None:
    running = started()
    running.push({"A": pa.table({"ts": [None], "id": [4], "x": [7], "name": ["z"]}, schema=A)})
    assert running.metrics()["null_time"] == 1
    still_usable(running)


def test_lateness_in_every_form() -> None:
    forms = [2_000, "2 SECONDS", "2 second", "2000 ms".replace("ms", "milliseconds")]
    for form in [*forms, datetime.timedelta(seconds=2)]:
        assert engine(lateness=form).options.lateness == 2_000
    for wrong in ("soon", "5 FORTNIGHTS", -1, 1.5, True):
        with pytest.raises(OptionError, match="lateness"):
            engine(lateness=wrong)


def test_options_say_what_exists() -> None:
    with pytest.raises(OptionError, match="choose from: 'hash', 'nested-loops'"):
        engine(join="merge")
    with pytest.raises(OptionError, match="feedback='maybe' does not exist"):
        engine(feedback="maybe")
    with pytest.raises(OptionError, match="overload"):
        engine(overload="panic")
    with pytest.raises(PlanError, match="leaves out B"):
        engine(plan="A")
    with pytest.raises(OptionError, match=r"penstock\.parse"):
        penstock.Engine("SELECT 1")  # type: ignore[arg-type]


def test_finish_is_the_end() -> None:
    running = started()
    assert running.finish().num_rows == 0
    with pytest.raises(PenstockError, match="finish"):
        running.push({})


def test_static_relations_come_first() -> None:
    schemas = {"A": A, "D": pa.schema([("x", pa.int64()), ("label", pa.string())])}
    graph = penstock.parse(
        "SELECT A.id AS a, D.label AS d FROM A [RANGE 1 SECOND], D WHERE A.x = D.x", schemas
    )
    d = pa.table({"x": [7], "label": ["seven"]})
    for first in ({"D": d}, {}):
        running = penstock.Engine(graph)
        running.push(first)
        rest = {} if first else {"D": d}
        assert running.push({"A": a((1, 1, 7)), **rest}).to_pylist() == [{"a": 1, "d": "seven"}]
        with pytest.raises(InputError, match="static relation D is loaded before"):
            running.push({"D": d})
        running.push({"D": d.slice(0, 0)})
        assert running.push({"A": a((99_999, 2, 7))}).num_rows == 1


def test_what_a_shell_shows_of_an_engine_and_a_query() -> None:
    running = engine(plan="(A B)")
    running.push({"A": a((1_000, 1, 7))})
    assert repr(running) == "<Engine (A B) over A, B: 1 rows taken in>"
    assert not [name for name in dir(running) if name.startswith("_")]
    assert {"push", "explain", "metrics", "migrate", "plan"} <= set(dir(running))
    assert not {"take_over_accounts", "trees", "note_host"} & set(dir(running))
    shown = repr(running.query)
    assert shown.startswith("<JoinGraph SELECT A.id AS a, B.id AS b, A.name AS name FROM A [RANGE")
    assert "\n" not in shown
    assert len(shown) < 200
