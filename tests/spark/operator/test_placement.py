"""Placement: every result in exactly one cell, and all cells together give the oracle's answer."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from case_deliveries import deliveries_of, settings_of, spark_oracle

import penstock
from penstock import JoinGraph
from penstock.cells.placement import MOST_HOT, Placement, joined_columns, place
from penstock.cells.router import Router
from penstock.cells.shares import best_shares
from penstock.cells.survey import survey
from penstock.engine.push.dropped import Dropped
from penstock.errors import OptionError
from penstock.query.expression import Column
from penstock.spark.cells.cell import Cell, with_static
from penstock.spark.rows.side_rows import told_once
from penstock.testing import Case, Knobs, difference, generate, rows_of
from penstock.testing.compare import inexact_columns
from penstock.testing.time_rules import with_time_rules
from penstock.values.value_hash import value_hashes

KNOBS = Knobs(streams=(2, 4)).without(["watermark", "watermark ahead"])
SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("x", pa.int64()), ("y", pa.int64())])


def parse(text: str) -> penstock.JoinGraph:
    return penstock.parse(text, schemas=dict.fromkeys("ABCR", SCHEMA))


def run_in_cells(case: Case, placement: Placement) -> list[list[tuple[object, ...]]]:
    """The rows of each push and of ``finish()``, of one engine per cell and no Spark."""
    graph = case.graph()
    settings = settings_of(case, graph, placement)
    cells = [Cell(settings, settings.engine()) for _ in range(placement.cells)]
    answers = []
    told: Counter[tuple[object, ...]] = Counter()
    got: list[Counter[tuple[object, ...]]] = [Counter() for _ in cells]
    for push, deliveries in enumerate(deliveries_of(case, graph, placement)):
        rows: list[tuple[object, ...]] = []
        for number, (cell, delivery) in enumerate(zip(cells, deliveries, strict=True)):
            whole = with_static(settings, number, delivery) if push == 0 else delivery
            rows += rows_of(cell.push(whole))
            dropped = cell.engine.drain_dropped()
            got[number].update(late_rows(dropped))
            told.update(late_rows(told_once(settings, number, dropped)))
        answers.append(rows)
    everywhere: Counter[tuple[object, ...]] = Counter()
    for each in got:
        everywhere |= each
    assert told == everywhere  # Each late row is told once, whoever got it.
    return [*answers, [row for cell in cells for row in rows_of(cell.finish())]]


def late_rows(dropped: list[Dropped]) -> Iterator[tuple[object, ...]]:
    return ((each.source, repr(row)) for each in dropped for row in rows_of(each.rows))


def random_hot(case: Case, graph: JoinGraph, chance: random.Random) -> dict[str, Any]:
    """Values of a join column that are in the data, with or without shares, or nothing."""
    columns = [
        (s.source, expression)
        for each in joined_columns(graph)
        for s in graph.streams
        if isinstance(expression := each.get(s.alias), Column)
    ]
    if not columns or chance.random() < 0.3:
        return {}
    source, expression = chance.choice(columns)
    tables = [push[source] for push in case.pushes if source in push]
    values = [v for t in tables for v in t.column(expression.name).unique().to_pylist()]
    values = [v for v in values if v is not None]
    hot = chance.sample(values, min(len(values), chance.choice([1, 2])))
    if chance.random() < 0.5:
        return {str(expression): hot}
    return {str(expression): {value: {source: chance.choice([0.0, 0.2, 0.9])} for value in hot}}


@pytest.mark.parametrize("block", range(6))
def test_cells_give_the_oracles_answer(block: int) -> None:
    chance = random.Random(block)
    cut = spread = 0
    for number in range(15):
        case = generate(1_000 * block + number, KNOBS)
        graph = case.graph()
        if number % 2 and not graph.by_rows:
            case = with_time_rules(case, random.Random(number))
        rates = {source: chance.choice([1.0, 10.0, 100.0]) for source in graph.sources}
        hot = random_hot(case, graph, chance)
        placement = place(graph, chance.choice([2, 3, 4, 7, 12]), rates, hot)
        spread += bool(placement.hot)
        cut += placement.cells > 1
        oracle = spark_oracle(case, graph)
        found = run_in_cells(case, placement)
        expected = [*(oracle.push(p) for p in case.pushes), oracle.finish()]
        for push, (rows, wanted) in enumerate(zip(found, expected, strict=True)):
            wrong = difference(rows, wanted, inexact_columns(graph))
            assert wrong is None, f"push {push}\n{placement.describe()}\n{wrong}\n{case}"
    assert cut >= 3
    assert spread >= 2


def test_one_common_key_is_plain_hash_partitioning() -> None:
    query = parse(
        "SELECT A.id AS a FROM A [RANGE 9 SECONDS], B [RANGE 9 SECONDS], C [RANGE 9 SECONDS] "
        "WHERE A.x = B.x AND B.x = C.y"
    )
    placement = place(query, 7)
    assert placement.cells == 7
    assert set(placement.replicas.values()) == {1}
    assert placement.describe() == "7 cells, by A.x = B.x = C.y: each row goes to one of them"


def test_a_chain_is_a_grid_that_depends_on_the_rates() -> None:
    query = parse(
        "SELECT A.id AS a FROM A [RANGE 9 SECONDS], B [RANGE 9 SECONDS], C [RANGE 9 SECONDS] "
        "WHERE A.x = B.x AND B.y = C.y"
    )
    assert [d.share for d in place(query, 4).dimensions] == [2, 2]
    rare = place(query, 4, {"A": 1.0, "B": 100.0, "C": 100.0})
    assert [str(d) for d in rare.dimensions] == ["B.y = C.y"]
    assert rare.replicas == {"A": 4, "B": 1, "C": 1}


def test_a_theta_join_has_random_coordinates() -> None:
    query = parse("SELECT A.id AS a FROM A [RANGE 9 SECONDS], B [RANGE 9 SECONDS] WHERE A.x < B.x")
    placement = place(query, 4, {"A": 100.0, "B": 1.0})
    assert [str(d) for d in placement.dimensions] == ["random A"]
    assert placement.replicas == {"A": 1, "B": 4}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT A.id AS a FROM A [ROWS 5], B [ROWS 5] WHERE A.x = B.x", "ROWS windows"),
        (
            "SELECT A.x + B.y AS x FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] WHERE A.x = B.x "
            "EXCEPT SELECT C.x AS x FROM C [RANGE 1 SECOND]",
            "EXCEPT",
        ),
        (
            "SELECT COUNT(*) AS n FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] WHERE A.x = B.x",
            "without GROUP BY",
        ),
        (
            "SELECT A.y AS y, COUNT(*) AS n FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] "
            "WHERE A.x = B.x GROUP BY A.y",
            "in GROUP BY",
        ),
        (
            "SELECT a.id AS a FROM A [RANGE 1 SECOND] AS a, A [RANGE 1 SECOND] AS b "
            "WHERE a.x = b.y",
            "twice",
        ),
    ],
)
def test_one_cell_where_results_depend_on_each_other(text: str, reason: str) -> None:
    placement = place(parse(text), 4)
    assert placement.cells == 1
    assert placement.describe().startswith("1 cell: ")
    assert reason in placement.describe()


def test_a_group_that_is_joined_by_is_cut() -> None:
    query = parse(
        "SELECT B.x AS x, COUNT(*) AS n FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] "
        "WHERE A.x = B.x GROUP BY B.x"
    )
    assert place(query, 4).cells == 4


def test_a_self_join_by_one_column_is_cut() -> None:
    query = parse(
        "SELECT a.id AS a FROM A [RANGE 1 SECOND] AS a, A [RANGE 1 SECOND] AS b WHERE a.x = b.x"
    )
    assert place(query, 4).cells == 4


def test_equal_values_have_equal_hashes() -> None:
    nan, other_nan = float("nan"), -float("nan")
    hashes, _ = value_hashes(pa.array([0.0, -0.0, nan, other_nan, 1.0]))
    assert hashes[0] == hashes[1]
    assert hashes[2] == hashes[3]
    assert hashes[0] != hashes[4]
    plain, _ = value_hashes(pa.array(["a", None, "ä", "a" * 40]))
    sliced, valid = value_hashes(pa.array(["z", "a", None, "ä", "a" * 40]).slice(1))
    assert valid is not None
    assert valid.tolist() == [True, False, True, True]
    assert plain[valid].tolist() == sliced[valid].tolist()
    coded, _ = value_hashes(pa.array(["a", None, "ä", "a" * 40]).dictionary_encode())
    assert coded[valid].tolist() == plain[valid].tolist()


def test_routing_never_changes() -> None:
    """These cells are in checkpoints: a change needs a new ``value_hash.VERSION``."""
    query = parse("SELECT A.id AS a FROM A [RANGE 9 SECONDS], B [RANGE 9 SECONDS] WHERE A.x = B.x")
    router = Router(query, place(query, 4))
    columns = {name: pa.array(range(8)) for name in SCHEMA.names}
    shares = router.route("A", columns, 8)
    cells = {int(row): s.cells[0] for s in shares if s.rows is not None for row in s.rows}
    assert [cells[row] for row in range(8)] == [3, 1, 2, 1, 2, 2, 0, 3]


def test_shares_are_near_the_wanted_number() -> None:
    chain = [frozenset("AB"), frozenset("BC")]
    rates = dict.fromkeys("ABC", 1.0)
    assert best_shares(chain, rates, 1) == (1, 1)
    assert sorted(best_shares(chain, rates, 7)) == [2, 3]
    assert sorted(best_shares(chain, rates, 64)) == [8, 8]


def test_options_are_checked() -> None:
    query = parse("SELECT A.id AS a FROM A [RANGE 9 SECONDS], B [RANGE 9 SECONDS] WHERE A.x = B.x")
    with pytest.raises(OptionError, match="cells is a number of 1 or more"):
        place(query, 0)
    with pytest.raises(OptionError, match="'Z', which the query does not read"):
        place(query, 2, {"Z": 1.0})


PAIR = "SELECT A.id AS a FROM A [RANGE 9 SECONDS], B [RANGE 9 SECONDS] WHERE A.x = B.x"


def test_a_hot_value_is_spread() -> None:
    query = parse(PAIR)
    placement = place(query, 4, hot={"A.x": [7]})
    assert placement.cells == 8
    assert placement.describe().splitlines()[:3] == [
        "8 cells in a grid of 4 + 4",
        "  4 by A.x = B.x",
        "  4 for A.x = B.x = 7: 2 by random A, 2 by random B",
    ]
    count = 4_000
    columns = {name: pa.array(np.arange(count)) for name in SCHEMA.names}
    columns["x"] = pa.array(np.where(np.arange(count) % 10 < 8, 7, np.arange(count)))
    received = np.zeros(8)
    for share in Router(query, placement).route("A", columns, count):
        received[list(share.cells)] += count if share.rows is None else len(share.rows)
    assert received[:4].sum() == 0.2 * count
    assert received[4:].sum() == 2 * 0.8 * count
    assert received.max() < 0.5 * count


def test_partitioned_rows_and_except_are_cut() -> None:
    rows = parse(
        "SELECT A.id AS a FROM A [PARTITION BY x, y ROWS 3], B [PARTITION BY x ROWS 2] "
        "WHERE A.x = B.x"
    )
    assert place(rows, 4).describe().startswith("4 cells, by A.x = B.x: ")
    other = parse(
        "SELECT A.id AS a FROM A [PARTITION BY y ROWS 3], B [PARTITION BY x ROWS 2] WHERE A.x = B.x"
    )
    assert "not all partitioned by" in place(other, 4).describe()
    difference = parse(
        "SELECT A.y AS y, A.x AS x FROM A [RANGE 1 SECOND], R [RANGE 1 SECOND] WHERE A.x = R.x "
        "EXCEPT SELECT B.y AS y, B.x AS x FROM B [RANGE 1 SECOND]"
    )
    assert place(difference, 4).describe().startswith("4 cells, by A.x = R.x = B.x: ")


def test_hot_values_are_checked() -> None:
    query = parse(PAIR)
    with pytest.raises(OptionError, match=r"columns that can have some are: A\.x, B\.x"):
        place(query, 4, hot={"A.y": [1]})
    with pytest.raises(OptionError, match=r"the hot value 'seven' of A\.x is no int64"):
        place(query, 4, hot={"A.x": ["seven"]})
    with pytest.raises(OptionError, match=r"said to be 20 of 'A'.*\(A, B\).*from 0 to 1"):
        place(query, 4, hot={"A.x": {7: {"A": 20}}})
    with pytest.raises(OptionError, match=r"said to be 0.2 of 'Z'"):
        place(query, 4, hot={"A.x": {7: {"Z": 0.2}}})
    with pytest.raises(OptionError, match="17 values are hot; give the 16"):
        place(query, 4, hot={"B.x": list(range(MOST_HOT + 1))})
    weighed: dict[int, dict[str, float]] = {value: {"A": 0.001} for value in range(101)}
    with pytest.raises(OptionError, match="101 values are hot; give the 100"):
        place(query, 4, hot={"B.x": weighed})
    del weighed[0]
    # A cell for each, since there must be one, and three for all others.
    assert place(query, 103, hot={"B.x": weighed}).cells == 103
    chain = parse(
        "SELECT A.id AS a FROM A [RANGE 9 SECONDS], B [RANGE 9 SECONDS], C [RANGE 9 SECONDS] "
        "WHERE A.x = B.x AND B.y = C.y"
    )
    with pytest.raises(OptionError, match="give them for the one where they weigh most"):
        place(chain, 4, hot={"A.x": [1], "C.y": [2]})


def test_a_survey_finds_rates_and_hot_values() -> None:
    query = parse(PAIR)
    a = pa.table({name: [1, 2, 3, 4, 5, 5, 5, 5] for name in SCHEMA.names})
    b = pa.table({name: [1, 9, 9, 5] for name in SCHEMA.names})
    found = survey(query, {"A": a, "B": b}, 4)
    assert found.rates == {"A": 8.0, "B": 4.0}
    assert found.hot == {"A.x": [5, 9]}
    assert place(query, 4, found.rates, found.hot).cells == 12
    assert found.weights == {"A.x": {5: {"A": 0.5, "B": 0.25}, 9: {"A": 0.0, "B": 0.5}}}
    assert place(query, 4, found.rates, found.weights).cells == 4
    assert survey(query, {"A": a.slice(0, 4)}, 4).hot == {}
    assert survey(query, {"A": a.slice(0, 4)}, 4).weights == {}


def test_cells_are_divided_by_the_shares_of_hot_values() -> None:
    query = parse(PAIR)
    count = 8_000
    x = np.where(np.arange(count) % 8 < 4, 7, np.arange(count))
    columns = {name: pa.array(x if name == "x" else np.arange(count)) for name in SCHEMA.names}
    others = columns | {"x": pa.array(np.arange(count) + 1_000_000)}
    placement = place(query, 100, hot={"A.x": {7: {"A": 0.5}}})
    # A quarter of all tuples is hot, all of A: none of them need be sent twice.
    assert placement.describe().splitlines()[0] == "100 cells in a grid of 76 + 24"
    received = np.zeros(100)
    for source, rows in (("A", columns), ("B", others)):
        for share in Router(query, placement).route(source, rows, count):
            received[list(share.cells)] += count if share.rows is None else len(share.rows)
    assert received.sum() == 2 * count
    assert received.max() < 1.5 * received.mean()
    # Without the share, the hot grid is cut for streams that are hot on both sides.
    assert place(query, 100, hot={"A.x": [7]}).cells == 200


def test_a_placement_as_plain_values() -> None:
    values = place(parse(PAIR), 2, hot={"A.x": [7]}).to_json()
    assert values["cells"] == 4
    assert values["dimensions"] == [{"share": 2, "by": "A.x = B.x"}]
    assert values["hot"][0]["value"] == "7"
    assert values["replicas"] == {"A": 1, "B": 1}
