"""Pushes that pass by credit: the same answers, the same accounts, the budget kept."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.engine.overload.credit import MOST_PUSHES, Credit
from penstock.engine.overload.overload import Overload
from penstock.engine.overload.probe_budget import Grant, ProbeBudget
from penstock.plan.stream_set import StreamSet

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("k", pa.int64())])


def query(freshness: str = "") -> Any:
    streams = ", ".join(f"{s} [RANGE 5 SECONDS] {freshness}" for s in "ABC")
    return penstock.parse(
        f"SELECT A.id AS a, B.id AS b, C.id AS c FROM {streams} WHERE A.k = B.k AND B.k = C.k",
        schemas=dict.fromkeys("ABC", SCHEMA),
    )


def rows_one_by_one(
    count: int, step: int = 20, keys: int = 8, ahead: int = 0
) -> Iterator[dict[str, pa.Table]]:
    """A push for every row, ``step`` milliseconds apart; A is ``ahead`` of the others."""
    chance = random.Random(7)
    for number in range(count):
        time = step * number + (0 if number % 3 else ahead)
        row = [[number], [time], [chance.randrange(keys)]]
        yield {"ABC"[number % 3]: pa.table(row, schema=SCHEMA)}


def engine(text: str = "", **options: Any) -> penstock.Engine:
    return penstock.Engine(query(text), "((A B) C)", **options)


OPTIONS: list[dict[str, Any]] = [
    {"limits": penstock.Limits(cpu=1.0)},
    {"limits": penstock.Limits(probes=1e9)},
    {"overload": Overload("shed", probes=1e9)},
    {"overload": Overload("defer", probes=1e9)},
    {"overload": Overload("shed", probes=3000.0)},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_looks_are_rare_and_nothing_else_changes(options: dict[str, Any]) -> None:
    limited, plain = engine(**options), engine()
    control = limited._join.overload
    assert control is not None
    looks = 0
    begin = control.begin

    def counted(*given: Any) -> None:
        nonlocal looks
        looks += 1
        begin(*given)

    vars(control)["begin"] = counted
    control.budget._wall_time = lambda: 0.0  # However busy the machine is, it is now.
    for push in rows_one_by_one(600):
        assert limited.push(push).equals(plain.push(push))
    assert looks < 600 // 8
    report = limited.metrics()["overload"]
    probes = sum(
        step.probes
        for operator in plain.trees[0].operators
        for steps in operator.steps
        for _, step in steps
    )
    assert report["probes"] == probes
    assert report["skipped"] == 0
    assert limited.metrics()["execution"]["reference"] == 0


def test_a_budget_that_gets_short_is_kept_as_if_every_push_were_looked_at() -> None:
    """Calm pushes pass; then rows come ten times as fast, and each makes many more probes."""
    used = []
    for gives_credit in (True, False):
        limited = engine(overload=Overload("shed", probes=60.0))
        control = limited._join.overload
        assert control is not None
        control.budget._wall_time = lambda: 0.0
        if not gives_credit:
            vars(control)["_give_credit"] = lambda: None
        for push in rows_one_by_one(500, step=50, keys=200):
            limited.push(push)
        calm = limited.metrics()["overload"]
        assert not calm["short"]
        assert calm["skipped"] == 0
        chance = random.Random(3)
        for number in range(1500):  # 3 seconds, 500 rows in each, of two keys.
            row = [[number], [25_000 + 2 * number], [chance.randrange(2)]]
            limited.push({"ABC"[number % 3]: pa.table(row, schema=SCHEMA)})
        report = limited.metrics()["overload"]
        assert report["short"]
        assert report["skipped"] > 500
        used.append(report["probes"])
    assert used[0] <= used[1] + 60  # A second's worth: what may be saved.


def test_exact_tells_that_it_falls_behind_though_pushes_pass() -> None:
    behind = engine(limits=penstock.Limits(probes=5))
    behind._join.overload.budget._wall_time = lambda: 0.0  # type: ignore[union-attr]
    for push in rows_one_by_one(400):
        behind.push(push)
    assert behind.metrics()["overload"]["short"]


@pytest.mark.parametrize("freshness", [5, 10])
def test_stale_results_are_dropped_from_pushes_that_pass(freshness: int) -> None:
    text = f"FRESHNESS {freshness} SECONDS"
    compiled, reference = engine(text), engine(text, execution="reference")
    compiled._join.overload.budget._wall_time = lambda: 0.0  # type: ignore[union-attr]
    for push in rows_one_by_one(500, ahead=3000):
        assert compiled.push(push).equals(reference.push(push))
    ours, theirs = compiled.metrics()["overload"], reference.metrics()["overload"]
    assert ours["stale"] == theirs["stale"]
    assert (ours["stale"] > 0) == (freshness == 5)
    assert ours["staleness"] == theirs["staleness"]


def test_a_push_that_fails_uses_up_no_credit() -> None:
    limited = engine("FRESHNESS 5 SECONDS", limits=penstock.Limits(cpu=1.0))
    plain = engine("FRESHNESS 5 SECONDS")
    limited._join.overload.budget._wall_time = lambda: 0.0  # type: ignore[union-attr]
    output = limited._join.output
    for number, push in enumerate(rows_one_by_one(300, ahead=3000)):
        if number % 5 == 4:
            vars(output)["stage"] = lambda *_: 1 / 0
            with pytest.raises(ZeroDivisionError):
                limited.push(push)
            del vars(output)["stage"]
        assert limited.push(push).equals(plain.push(push))
    report, expected = limited.metrics(), plain.metrics()
    assert report["pushes"] == 300
    for name in ("probes", "stale", "staleness"):
        assert report["overload"][name] == expected["overload"][name]
    assert report["rows"] == 300


def test_credit_is_what_looking_at_every_push_would_have_left_or_less() -> None:
    """The tokens of min(most, T + R·t) - U against those of a bucket that is always looked at."""
    chance = random.Random(11)
    for _ in range(200):
        most, rate = chance.uniform(1, 50), chance.uniform(0, 3)
        tokens = chance.uniform(0, most)
        used: list[int] = []
        now = 0
        credit = Credit(
            {"A": 1.0},
            10,
            False,
            True,
            tokens,
            rate,
            most,
            0.0,
            0.0,
            1.0,
            0.0,
            0.0,
            0,
            lambda: 0.0,
            used.__len__,
        )
        while credit.pushes < MOST_PUSHES:
            before = now
            now += chance.randrange(3)
            need = chance.randrange(4)
            if not credit.covers(need, 1, now):
                break
            tokens = min(most, tokens + rate * (now - before) - need)
            assert tokens >= -1e-9
            used += [0] * need
            credit.note(1)
        assert tokens >= -1e-9


def test_pushes_that_passed_count_as_one() -> None:
    budget = ProbeBudget(Overload("shed", probes=10.0), wall_time=lambda: 0.0)
    grant = budget.begin(1, 1.0, None)
    budget.end(grant, 4)
    assert budget.settle(9, 20, 3.0, 0.0, 0.0, 25) == Grant(10.0 + 30.0, 10.0)
    assert budget.begin(1, 0.0, None).probes == 10.0  # No more than can be saved.


def test_prices_are_those_of_the_path_model() -> None:
    running = engine(overload=Overload("shed", probes=1e6))
    for push in rows_one_by_one(200):
        running.push(push)
    control = running._join.overload
    assert control is not None
    control.settle()
    coming = {"A": 5, "B": 3, "C": 1}
    model = control.join.counts.model(dict.fromkeys("ABC", 1.0), lambda _: 0.5, {}, coming)
    expected: dict[StreamSet, tuple[float, float]] = {}
    for direction in reversed(model.directions):
        cost, output = expected.get(direction.result, (0.0, 1.0))
        expected[direction.origin] = (
            direction.cost + direction.output * cost,
            direction.output * output,
        )
    found = control.join.counts.prices(lambda _: 0.5, coming)
    assert found.keys() == expected.keys()
    for origin, price in expected.items():
        assert found[origin] == pytest.approx(price)
