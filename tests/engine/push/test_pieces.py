"""Answers in pieces: the oracle's, however small the pieces; larger than memory; once, whatever
happens between them."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.state.working_memory import WORKING
from penstock.errors import InputError, OptionError, TooManyResults
from penstock.testing.compare import assert_same_rows
from penstock.testing.generators import generate

pytestmark = pytest.mark.filterwarnings("ignore::penstock.errors.PenstockWarning")

SCHEMA = pa.schema([("ts", pa.int64()), ("x", pa.int64()), ("id", pa.int64())])
TWO = "SELECT A.id AS a, B.id AS b FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] WHERE A.x = B.x"


@pytest.mark.parametrize("execution", ["auto", "reference"])
def test_pieces_are_the_oracles_answer(execution: str) -> None:
    chance = random.Random(0)
    pieces = 0
    for number in range(80):
        case = generate(number)
        graph = case.graph()
        engine = penstock.Engine(
            graph,
            plan=case.plan,
            lateness=case.lateness,
            idle=case.idle,
            watermark_policy=case.policy,
            execution=execution,
        )
        oracle = case.oracle(graph)
        rows = chance.choice([1, 2, 5, 40])
        for push, batches in enumerate(case.pushes):
            watermark = case.watermark(push)
            expected = oracle.push(batches, watermark)
            found = list(engine.push_in_pieces(batches, rows, watermark))
            assert all(0 < len(piece) <= rows for piece in found)
            pieces += len(found)
            whole = pa.concat_tables([engine.schema.empty_table(), *found])
            assert_same_rows(whole, expected, graph, context=f"push {push}\n{case}")
        assert_same_rows(engine.finish(), oracle.finish(), graph, context=case)
    assert pieces > 1_000


def rows(count: int, first: int = 0, time: int = 0) -> pa.Table:
    ids = np.arange(first, first + count)
    return pa.table([np.full(count, time), np.full(count, 7), ids], schema=SCHEMA)


@pytest.mark.parametrize("execution", ["auto", "reference"])
@pytest.mark.parametrize("spread", [False, True])
def test_an_answer_larger_than_memory(
    execution: str, spread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All rows are of one instant, or each is of its own."""
    engine = penstock.Engine(penstock.parse(TWO, dict.fromkeys("AB", SCHEMA)), execution=execution)
    monkeypatch.setattr(WORKING, "_machine", 1 << 22)
    batches = {name: rows(900) for name in "AB"}
    if spread:
        batches = {n: b.set_column(0, "ts", pa.array(range(900))) for n, b in batches.items()}
    with pytest.raises(TooManyResults):
        engine.push(batches)
    found: Counter[tuple[int, int]] = Counter()
    largest = 0
    for piece in engine.push_in_pieces(batches, 20_000):
        largest = max(largest, len(piece))
        found.update(zip(*(piece.column(c).to_numpy() for c in "ab"), strict=True))
    assert len(found) == found.total() == 900**2
    assert largest <= 20_000
    assert engine.metrics()["rows"] == 1_800
    assert len(engine.push({"A": rows(1, 900, 900)})) == 900


def test_a_row_that_has_more_partners_than_a_piece() -> None:
    engine = penstock.Engine(penstock.parse(TWO, dict.fromkeys("AB", SCHEMA)))
    engine.push({"A": rows(500)})
    found = [len(piece) for piece in engine.push_in_pieces({"B": rows(2)}, 200)]
    assert sum(found) == 1_000
    assert max(found) == 200


def test_what_fails_between_pieces_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = penstock.Engine(penstock.parse(TWO, dict.fromkeys("AB", SCHEMA)))
    pieces = engine.push_in_pieces({name: rows(60) for name in "AB"}, 100)
    ask, calls = WORKING.ask, 0

    def failing(*arguments: Any) -> None:
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            raise KeyboardInterrupt
        ask(*arguments)

    monkeypatch.setattr(WORKING, "ask", failing)
    found: Counter[tuple[int, int]] = Counter()
    interrupts = 0
    while True:
        try:
            piece = next(pieces)
        except KeyboardInterrupt:
            interrupts += 1
        except StopIteration:
            break
        else:
            found.update(zip(*(piece.column(c).to_pylist() for c in "ab"), strict=True))
    assert interrupts >= 3
    assert len(found) == found.total() == 3_600


def test_mistakes() -> None:
    engine = penstock.Engine(penstock.parse(TWO, dict.fromkeys("AB", SCHEMA)))
    with pytest.raises(OptionError, match="rows of a piece: found 0"):
        engine.push_in_pieces({}, rows=0)
    with pytest.raises(InputError, match="C"):
        next(engine.push_in_pieces({"C": rows(1)}))
    with pytest.raises(InputError, match="takes a dict"):
        next(engine.push_in_pieces([{}]))  # type: ignore[arg-type]
