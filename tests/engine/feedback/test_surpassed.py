"""MIN and MAX tell their inputs which rows cannot matter any more."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.feedback import surpassed
from penstock.kernels.surpassed import find_surpassed
from penstock.testing.compare import assert_same_rows
from penstock.testing.oracle import Oracle

SCHEMAS = {
    "A": pa.schema(
        [("ts", pa.int64()), ("x", pa.int64()), ("v", pa.float64()), ("g", pa.string())]
    ),
    "B": pa.schema([("ts", pa.int64()), ("x", pa.int64()), ("y", pa.int32()), ("w", pa.int64())]),
    "C": pa.schema([("ts", pa.int64()), ("y", pa.int32()), ("u", pa.float64())]),
}
FLOATS = (None, -1.5, -0.0, 0.0, 2.0, float("nan"), float("inf"))
WINDOWS = ("RANGE 20 MILLISECONDS", "RANGE 7 MILLISECONDS", "RANGE UNBOUNDED", "NOW")
SELECTS = (
    "A.g AS g, MAX(A.v) AS v",
    "A.g AS g, MIN(A.v) AS v, MAX(B.w) AS w",
    "MIN(A.v) AS v, MAX(A.v) AS m",
    "A.g AS g",
    "B.w AS w, MAX(A.v) AS v, MIN(C.u) AS u",
    "MAX(A.g) AS g, MIN(A.v + B.w) AS s",
)
WHERES = ("A.x = B.x AND B.y = C.y", "A.x = B.x AND B.y = C.y AND A.v < C.u", "A.x <= B.x + C.y")
HAVINGS = ("", "", " HAVING MAX(A.v) > 0", " HAVING MIN(B.w) < 2 AND MAX(A.v) IS NOT NULL")
EMISSIONS = ("{}", "{}", "DSTREAM ({})", "RSTREAM ({})")


def random_text(chance: random.Random) -> str:
    select = chance.choice(SELECTS)
    names = [each for each in select.split(", ") if "(" not in each]
    groups = ", ".join(each.split(" AS ")[0] for each in names)
    sources = ", ".join(f"{name} [{chance.choice(WINDOWS)}]" for name in SCHEMAS)
    text = f"SELECT {select} FROM {sources} WHERE {chance.choice(WHERES)}"
    text += f" GROUP BY {groups}" if groups else ""
    return chance.choice(EMISSIONS).format(text + chance.choice(HAVINGS))


def random_rows(chance: random.Random, name: str, start: int, count: int) -> pa.Table:
    values: dict[str, Any] = {
        "x": lambda: chance.choice([None, 0, 1, 1]),
        "y": lambda: chance.randrange(2),
        "w": lambda: chance.choice([None, 0, 1, 2, 3]),
        "v": lambda: chance.choice(FLOATS),
        "u": lambda: chance.choice(FLOATS),
        "g": lambda: chance.choice(["a", "b", "", None]),
        "ts": lambda: start + chance.randrange(6),
    }
    rows = [{field.name: values[field.name]() for field in SCHEMAS[name]} for _ in range(count)]
    return pa.Table.from_pylist(sorted(rows, key=lambda row: row["ts"]), SCHEMAS[name])


def run_case(seed: int) -> int:
    """Run a case, dropping whatever can go between pushes; how many rows went."""
    chance = random.Random(seed)
    query = penstock.parse(random_text(chance), schemas=SCHEMAS)
    lateness = chance.choice([None, 0, 4])
    feedback = penstock.Feedback(adaptive=chance.random() < 0.5)
    execution = chance.choice(["auto", "auto", "reference"])
    plan = chance.choice(["((A B) C)", "(A (B C))", "(A B C)"])
    engine = penstock.Engine(query, plan, feedback, lateness=lateness, execution=execution)
    oracle = Oracle(query, lateness)
    for number in range(10):
        batches = {
            name: random_rows(chance, name, 5 * number, chance.randint(0, 7)) for name in SCHEMAS
        }
        context = f"seed {seed}, push {number}, {plan}, {lateness}\n{query.text}"
        answer, expected = engine.push(batches), oracle.push(batches)
        assert_same_rows(answer, expected, query, instants=oracle.instants, context=context)
        engine._join.expiry.drop_surpassed()
        if number == 6 and chance.random() < 0.3:
            engine = penstock.Engine.restore(query, engine.checkpoint())
    assert_same_rows(engine.finish(), oracle.finish(), query, instants=oracle.instants)
    return sum(engine.metrics()["feedback"]["surpassed"].values())


def run_cases(seeds: range) -> int:
    """Run these; in how many rows went."""
    return sum(run_case(seed) > 0 for seed in seeds)


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_answers_are_those_of_the_oracle(first: int) -> None:
    assert run_cases(range(first, first + 40)) > 25


def test_a_fault_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows go as soon as a later one of their class comes, whatever its value."""
    merits = surpassed._merits
    monkeypatch.setattr(
        surpassed, "_merits", lambda *given: (np.zeros_like(merits(*given)[0]), merits(*given)[1])
    )
    with pytest.raises(AssertionError, match="seed"):
        run_cases(range(40))


def test_what_is_not_settled_has_to_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = surpassed._kept
    monkeypatch.setattr(surpassed, "_kept", lambda watch, settled: kept(watch, 1 << 60))
    with pytest.raises(AssertionError, match="seed"):
        run_cases(range(120))


def test_the_kernel_does_what_its_twin_does() -> None:
    random = np.random.default_rng(3)
    for _ in range(50):
        count = int(random.integers(0, 30))
        classes, merits = random.integers(0, 4, count), random.integers(0, 5, count)
        known, gone = random.random(count) < 0.7, np.zeros(count, np.bool_)
        find_surpassed(classes, merits, known, np.full(4, -1, np.int64), gone)
        merit = [(bool(known[i]), int(merits[i]) if known[i] else 0) for i in range(count)]
        assert gone.tolist() == [
            any(classes[j] == classes[i] and merit[j] >= merit[i] for j in range(i + 1, count))
            for i in range(count)
        ]


# -- where it pays, and where it may not be ------------------------------------------------------

STREAMS = "A [RANGE 3 SECONDS], B [RANGE 3 SECONDS]"
NUMBERS = {name: pa.schema([(c, pa.int64()) for c in ("ts", "x", "v")]) for name in "AB"}


def pushes(keys: int, count: int = 12) -> list[dict[str, pa.Table]]:
    """A thousand rows of each stream a push, one in a millisecond."""
    random = np.random.default_rng(5)
    return [
        {
            name: pa.table(
                [
                    np.arange(1000 * number, 1000 * (number + 1)),
                    random.integers(0, keys, 1000),
                    random.integers(0, 1_000_000, 1000),
                ],
                NUMBERS[name],
            )
            for name in "AB"
        }
        for number in range(count)
    ]


def measured(text: str, given: list[dict[str, pa.Table]], feedback: str) -> tuple[Any, Any]:
    engine = penstock.Engine(penstock.parse(text, schemas=NUMBERS), feedback=feedback)
    answers = [sorted(map(str, engine.push(push).to_pylist())) for push in given]
    return answers, engine.metrics()


def test_a_join_of_many_makes_less() -> None:
    text = f"SELECT A.x AS x, MAX(A.v) AS v FROM {STREAMS} WHERE A.x = B.x GROUP BY A.x"
    given = pushes(keys=40)
    (expected, off), (found, told) = (measured(text, given, each) for each in ("off", "jit"))
    assert found == expected
    assert told["joins"][0]["made"] < 0.5 * off["joins"][0]["made"]
    assert told["state"]["windows"]["B"]["rows"] < off["state"]["windows"]["B"]["rows"] / 2
    assert told["feedback"]["surpassed"]["B"] > 5_000


def test_nothing_is_looked_at_where_little_is_made() -> None:
    text = f"SELECT A.x AS x, MAX(A.v) AS v FROM {STREAMS} WHERE A.x = B.x GROUP BY A.x"
    _, told = measured(text, pushes(keys=1_000_000), "jit")
    assert told["feedback"]["surpassed"] == {"A": 0, "B": 0}


def test_an_unbounded_window_stops_to_grow() -> None:
    text = "SELECT A.x AS x, MIN(A.v) AS v FROM A [RANGE UNBOUNDED], B [RANGE UNBOUNDED] "
    text += "WHERE A.x = B.x GROUP BY A.x"
    (_, few), (_, many) = (measured(text, pushes(200, count), "jit") for count in (12, 36))
    for name in "AB":
        rows = [told["state"]["windows"][name]["rows"] for told in (few, many)]
        assert max(rows) < 4_000


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT A.x AS x, COUNT(*) AS n FROM {STREAMS} WHERE A.x = B.x GROUP BY A.x",
        f"SELECT MAX(A.v) AS v, SUM(B.v) AS s FROM {STREAMS} WHERE A.x = B.x",
        f"SELECT A.x AS x FROM {STREAMS} WHERE A.x = B.x",
        "SELECT MAX(A.v) AS v FROM A [ROWS 5], B [ROWS 5] WHERE A.x = B.x",
        "SELECT MAX(A.v) AS v FROM A [RANGE 5 SECONDS]",
    ],
)
def test_where_rows_have_to_stay(text: str) -> None:
    engine = penstock.Engine(penstock.parse(text, schemas=NUMBERS), feedback="jit")
    assert engine._join.surpassed is None


def test_explain_tells_how_many_have_gone() -> None:
    text = f"SELECT A.x AS x, MAX(A.v) AS v FROM {STREAMS} WHERE A.x = B.x GROUP BY A.x"
    engine = penstock.Engine(penstock.parse(text, schemas=NUMBERS), feedback="jit")
    for push in pushes(keys=40):
        engine.push(push)
    assert "rows went as MIN and MAX need later ones alone" in engine.explain(analyze=True)
