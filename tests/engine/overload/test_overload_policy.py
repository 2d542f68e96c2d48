"""What an overload policy does, one thing at a time: budget, loss, debt, freshness, recovery."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.overload.overload import Overload
from penstock.engine.overload.probe_budget import ProbeBudget
from penstock.engine.overload.probe_cost import ProbeCost
from penstock.overload import ALLOCATORS

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("k", pa.int64())])
SCHEMAS = dict.fromkeys("ABC", SCHEMA)
PATIENT = "FRESHNESS 1 DAYS"
PLANS = ("(A B C)", "((A B) C)")


def query(freshness: str = "", seconds: int = 5) -> Any:
    streams = ", ".join(f"{s} [RANGE {seconds} SECONDS] {freshness}" for s in "ABC")
    return penstock.parse(
        f"SELECT A.id AS a, B.id AS b, C.id AS c, A.ts AS ta, B.ts AS tb, C.ts AS tc "
        f"FROM {streams} WHERE A.k = B.k AND B.k = C.k",
        schemas=SCHEMAS,
    )


def seconds_of(
    pushes: int, rows: int, keys: int = 20, start: int = 0
) -> Iterator[dict[str, pa.Table]]:
    """One push per second, with ``rows`` of each stream."""
    chance = np.random.default_rng(start)
    for push in range(start, start + pushes):
        yield {
            stream: pa.table(
                [
                    np.arange(rows) + 100_000 * push,
                    np.sort(1000 * push + chance.integers(0, 1000, rows)),
                    chance.integers(0, keys, rows),
                ],
                schema=SCHEMA,
            )
            for stream in "ABC"
        }


def pushed(engine: penstock.Engine, batches: Iterator[dict[str, pa.Table]]) -> pa.Table:
    return pa.concat_tables([engine.push(each) for each in batches])


def rows(table: pa.Table) -> set[tuple[int, ...]]:
    found = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    assert len(found) == len(set(found))
    return set(found)


def test_without_a_budget_and_without_freshness_nothing_stands_in_the_way() -> None:
    engine = penstock.Engine(query())
    assert engine._join.overload is None
    assert engine.trees[0].rationing is None
    assert engine.metrics()["overload"] == {"policy": "exact", "short": False, "since": None}


@pytest.mark.parametrize("plan", PLANS)
def test_probes_stay_within_the_budget(plan: str) -> None:
    engine = penstock.Engine(query(), plan, overload=Overload("shed", probes=200))
    pushed(engine, seconds_of(30, 30))
    report = engine.metrics()["overload"]
    # 30 s at 200, what was saved before, and what the last push may have gone over.
    assert report["probes"] <= 200 * 30 + 400
    assert report["probes"] >= 0.7 * 200 * 30
    assert report["short"]
    assert report["since"] is not None


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("choice", ["random", "newest"])
def test_what_was_lost_is_known_within_its_error(plan: str, choice: Any) -> None:
    truth = rows(pushed(penstock.Engine(query(), plan), seconds_of(40, 60)))
    option = Overload("shed", probes=400, choice=choice, audit=0.3)
    engine = penstock.Engine(query(), plan, overload=option)
    found = rows(pushed(engine, seconds_of(40, 60)))
    assert found < truth
    lost = engine.metrics()["overload"]["lost"]
    missing = len(truth) - len(found)
    assert missing > 0.2 * len(truth)
    assert abs(lost["results"] - missing) < max(4 * lost["error"], 0.2 * missing)
    assert lost["error"] < 0.4 * missing


@pytest.mark.parametrize("window", ["RANGE 5 SECONDS", "ROWS 200"])
@pytest.mark.parametrize("plan", PLANS)
def test_a_compiled_push_sheds_as_the_reference_does(plan: str, window: str) -> None:
    """As many probes and about as many results, and about the same is said of the loss; and it
    stays a compiled push."""
    streams = ", ".join(f"{s} [{window}]" for s in "ABC")
    text = f"SELECT A.id AS a, B.id AS b, C.id AS c FROM {streams} WHERE A.k = B.k AND B.k = C.k"
    graph = penstock.parse(text, schemas=SCHEMAS)
    found = {}
    for execution in ("auto", "reference"):
        option = Overload("shed", probes=250)
        engine = penstock.Engine(graph, plan=plan, overload=option, execution=execution)
        results = [engine.push(each, probes=150) for each in seconds_of(40, 40)]
        found[execution] = engine.metrics(), sum(map(len, results))
    (one, made), (other, also_made) = found["auto"], found["reference"]
    assert one["execution"]["compiled"] == 40
    assert other["execution"]["compiled"] == 0
    # Not just as many: shares follow what the first of them have found, which is drawn.
    for name in ("probes", "skipped"):
        assert one["overload"][name] == pytest.approx(other["overload"][name], rel=0.25)
    assert one["overload"]["skipped"] > 1_000
    assert made == pytest.approx(also_made, rel=0.3)
    lost, also_lost = one["overload"]["lost"], other["overload"]["lost"]
    error = max(lost["error"], also_lost["error"])
    assert lost["error"] == pytest.approx(also_lost["error"], rel=0.5)
    assert abs(lost["results"] - also_lost["results"]) < 5 * error


def test_limits_are_the_budget_of_a_policy_without_one() -> None:
    engine = penstock.Engine(query(), overload="shed", limits=penstock.Limits(probes=70))
    assert engine.options.overload.probes == 70
    engine = penstock.Engine(query(), overload="shed", limits=penstock.Limits(cpu=0.25))
    assert engine.options.overload.cpu == 0.25


def test_exact_skips_nothing_and_says_that_it_falls_behind() -> None:
    truth = pushed(penstock.Engine(query()), seconds_of(8, 30))
    engine = penstock.Engine(query(), limits=penstock.Limits(probes=50))
    assert pushed(engine, seconds_of(8, 30)).equals(truth)
    report = engine.metrics()["overload"]
    assert report["short"]
    assert report["skipped"] == 0
    assert "exact, SHORT of CPU since" in engine.explain(analyze=True)
    assert "falling behind" in engine.explain(analyze=True)


@pytest.mark.parametrize("plan", PLANS)
def test_a_burst_is_made_up_for_when_it_has_passed(plan: str) -> None:
    truth, engine = (
        penstock.Engine(query(PATIENT), plan),
        penstock.Engine(query(PATIENT), plan, overload=Overload("defer", probes=300)),
    )
    calm, burst, after = (10, 4, 0), (5, 60, 10), (60, 1, 15)
    expected = found = set[tuple[int, ...]]()
    owed = []
    for pushes, count, start in (calm, burst, after):
        expected = expected | rows(pushed(truth, seconds_of(pushes, count, start=start)))
        found = found | rows(pushed(engine, seconds_of(pushes, count, start=start)))
        owed.append(engine.metrics()["overload"]["debt"]["probes"])
    assert owed[0] == 0
    assert owed[1] > 100
    assert owed[2] == 0
    assert found == expected
    report = engine.metrics()["overload"]
    assert not report["short"]
    assert [event["event"] for event in report["events"]] == ["short", "recovered"]
    assert 0 < report["paid"] <= report["skipped"]  # Some had no partner alive, ever.
    assert report["lost"]["results"] == 0


def test_windows_are_held_for_owed_probes_only_as_long_as_results_are_fresh() -> None:
    engine = penstock.Engine(query("FRESHNESS 8 SECONDS"), overload=Overload("defer", probes=1))
    sizes = []
    for batch in seconds_of(60, 20):
        engine.push(batch, probes=0)
        sizes.append(engine.metrics()["state"]["windows"]["A"]["rows"])
    assert max(sizes) <= 20 * 10
    report = engine.metrics()["overload"]
    assert report["debt"]["probes"] <= 3 * 20 * 10
    assert report["forgotten"] > 0
    assert report["debt"]["age"] <= 8.0


@pytest.mark.parametrize("policy", ["shed", "defer"])
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("seconds", [0, 6, 9])
def test_no_result_is_stale(policy: Any, plan: str, seconds: int) -> None:
    """Windows of 5 seconds and pushes of one: only what is late can be stale."""
    freshness = f"FRESHNESS {seconds} SECONDS" if seconds else ""
    engine = penstock.Engine(query(freshness), plan, overload=Overload(policy, probes=150))
    newest = late = 0
    for number, batch in enumerate([*seconds_of(12, 20), *seconds_of(12, 2, start=12)]):
        newest = max(newest, *(max(t["ts"].to_pylist()) for t in batch.values()))
        for row in rows(engine.push(batch)):
            tuples = row[3:]
            born_now = max(tuples) >= 1000 * number
            late += not born_now
            limit = 1000 * (seconds or 5)
            assert min(tuples) >= newest - limit or (born_now and not seconds)
    assert (late > 0) == (policy == "defer")
    ages = engine.metrics()["overload"]["staleness"]
    assert set(ages) == (set("ABC") if seconds or policy == "defer" else set())


def test_freshness_counts_in_exact_as_well() -> None:
    """A tuple that comes late for FRESHNESS: its results are counted and do not leave."""
    text = (
        "SELECT A.id AS a FROM A [RANGE 5 SECONDS] FRESHNESS 5 SECONDS, B [RANGE 5 SECONDS] "
        "WHERE A.k = B.k"
    )
    engine = penstock.Engine(penstock.parse(text, schemas={"A": SCHEMA, "B": SCHEMA}))

    def one(ts: int) -> pa.Table:
        return pa.table([[ts], [ts], [1]], schema=SCHEMA)

    engine.push({"A": one(1000)})
    assert engine.push({"B": one(5000)}).num_rows == 1
    engine.push({"A": one(20_000)})
    assert engine.push({"B": one(5500)}).num_rows == 0
    assert engine.metrics()["overload"]["stale"] == 1
    assert "1 results made too late" in engine.explain(analyze=True)


def test_a_stale_result_is_in_no_aggregate_after_a_restart() -> None:
    """It has died before now, but not before the last instant that is settled. Instants are not
    settled as long as C is behind; B is late for A."""
    text = (
        "SELECT COUNT(*) AS n FROM A [RANGE 5 SECONDS] FRESHNESS 5 SECONDS, B [RANGE 5 SECONDS], "
        "C [RANGE 5 SECONDS] WHERE A.k = B.k AND B.k = C.k"
    )
    graph = penstock.parse(text, schemas=SCHEMAS)
    engine = penstock.Engine(graph, lateness="20 SECONDS")
    restarted = penstock.Engine(graph, lateness="20 SECONDS")

    def one(ts: int) -> pa.Table:
        return pa.table([[ts], [ts], [1]], schema=SCHEMA)

    pushes = [("C", 500), ("A", 1_000), ("A", 15_000), ("B", 2_000), ("B", 14_000), ("C", 16_000)]
    for stream, ts in pushes:
        for each in (engine, restarted):
            assert each.push({stream: one(ts)}).num_rows == 0
        restarted = penstock.Engine.restore(graph, restarted.checkpoint())
    assert engine.metrics()["overload"]["stale"] == 1
    assert rows(engine.finish()) == {(1,)}
    assert rows(restarted.finish()) == {(1,)}


def test_a_checkpoint_keeps_the_debt() -> None:
    engine = penstock.Engine(query(PATIENT), "((A B) C)", overload=Overload("defer", probes=100))
    truth = penstock.Engine(query(PATIENT), "((A B) C)")
    expected = rows(pushed(truth, seconds_of(12, 25)))
    found = rows(pushed(engine, seconds_of(12, 25)))
    before = engine.metrics()["overload"]
    restored = penstock.Engine.restore(engine.query, engine.checkpoint())
    after = restored.metrics()["overload"]
    assert after["debt"]["probes"] == before["debt"]["probes"] > 0
    assert after["since"] == before["since"]
    assert after["skipped"] == before["skipped"]
    found |= rows(restored.finish())
    assert found == expected


def test_a_change_of_plan_pays_the_debt_first() -> None:
    engine = penstock.Engine(query(PATIENT), "((A B) C)", overload=Overload("defer", probes=100))
    truth = penstock.Engine(query(PATIENT))
    expected = rows(pushed(truth, seconds_of(8, 20)))
    found = rows(pushed(engine, seconds_of(8, 20)))
    assert engine.metrics()["overload"]["debt"]["probes"] > 0
    engine.migrate("((B C) A)", strategy="jisc")
    assert engine.metrics()["overload"]["debt"]["probes"] == 0
    found |= rows(engine.push({}))
    assert found == expected


def test_thin_states_say_nothing_about_selectivities() -> None:
    engine = penstock.Engine(
        query(), "((A B) C)", feedback="off", overload=Overload("shed", probes=10)
    )
    pushed(engine, seconds_of(3, 30))
    assert not engine.statistics().observed
    pushed(engine, seconds_of(60, 1, start=30))
    assert engine.statistics().observed


def account(share: float, burst: float = 0.0) -> tuple[ProbeBudget, Any]:
    """A budget of a ``share`` of a core, and what makes a push of rows that take 1 ms each, and
    work that takes 2 ms a unit, after the clock has stood still for so long."""
    wall = cpu = 0.0
    budget = ProbeBudget(Overload("shed", cpu=share, burst=burst), lambda: cpu, lambda: wall)

    def push(rows: int, wanted: int, seconds: float | None = 1.0, idle: float = 0.0) -> float:
        nonlocal wall, cpu
        wall += idle
        budget.start()
        grant = budget.begin(rows, seconds, None)
        used = int(max(0.0, min(grant.probes, wanted)))
        took = 0.001 * rows + 0.002 * used
        cpu += took
        wall += took
        budget.end(grant, used)
        budget.close()
        return grant.probes

    return budget, push


def test_a_share_of_a_core_becomes_work_by_what_it_costs() -> None:
    budget, push = account(0.5)
    allowed = []
    for turn in range(90):
        arriving = (100, 60, 150)[turn % 3]
        allowed.append((arriving, push(arriving, (4, 1, 2)[turn % 3] * arriving)))
    _, row, probe = budget.cost.costs
    assert row == pytest.approx(0.001, rel=0.3)
    assert probe == pytest.approx(0.002, rel=0.1)
    for arriving, probes in allowed[-3:]:
        assert probes == pytest.approx((0.5 - 0.001 * arriving) / 0.002, rel=0.25)


def test_pushes_that_are_faster_than_their_events_are_never_short() -> None:
    """A replay: 10 s of events in 0.3 s, at once after the push before."""
    _, push = account(0.1)
    for turn in range(30):
        assert turn < 3 or push(100, 100, seconds=10.0) > 400


def test_who_is_slow_gets_no_more_for_it() -> None:
    """A second of events wants 3 s: what pushes use does not count as time that has passed."""
    _, push = account(0.5)
    allowed = [push(100, 1500, idle=0.0) for _ in range(120)]
    assert max(allowed[-8:]) == pytest.approx(200, rel=0.15)


def test_where_event_time_stands_still_the_clock_does_not() -> None:
    _, push = account(0.5)
    allowed = [push(100, 1000, seconds=0.0, idle=2.0) for _ in range(40)]
    assert np.mean(allowed[-8:]) == pytest.approx(450, rel=0.15)


def test_a_deficit_is_made_good_and_does_not_stop_the_query() -> None:
    budget, push = account(0.5)
    for turn in range(40):
        push(100, 150 if turn % 2 else 50)
    budget._balance = -3.0
    allowed = [push(100, 1000) for _ in range(30)]
    assert allowed[0] == pytest.approx(150, rel=0.2)  # Four fifths of 0.5 s, less the rows.
    assert budget._balance > -1.5
    allowed += [push(100, 1000) for _ in range(60)]
    assert allowed[-1] == pytest.approx(200, rel=0.2)
    assert budget._balance > -0.1


def test_rows_alone_may_fill_the_time() -> None:
    cost = ProbeCost()
    for count in (100, 200, 300):
        cost = cost.observe(count, 10 * count, 0.01 * count)
    assert cost.probes_in(0.0, 100) < 0
    assert cost.probes_in(float("inf"), 100) == float("inf")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"policy": "drop"}, "choose from: 'defer', 'exact', 'shed'"),
        ({"policy": "shed", "probes": 0}, "probes=0"),
        ({"policy": "shed", "probes": 5, "cpu": 1}, "one budget; probes and cpu"),
        ({"policy": "shed", "choice": "oldest"}, "'correlated', 'newest', 'random'"),
        ({"policy": "shed", "audit": 2}, "audit=2"),
        ({"policy": "shed", "burst": -1}, "burst=-1"),
        ({"policy": "shed", "seed": 0.5}, "seed=0.5"),
        ({"policy": "shed", "allocator": "random-shedding"}, "a budget of cpu"),
        ({"policy": "shed", "allocator": "best"}, "'grepp', 'jaqpot', 'jda', 'jdam', 'knapsack'"),
    ],
)
def test_mistakes_are_told(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(penstock.OptionError, match=said):
        Overload(**arguments)


def test_an_unknown_policy_is_told() -> None:
    with pytest.raises(penstock.OptionError, match="or give an Overload"):
        penstock.Engine(query(), overload="drop")
    with pytest.raises(penstock.OptionError, match="'cpus' does not exist; choose from: 'alloc"):
        Overload.of({"policy": "shed", "cpus": 1})
    with pytest.raises(penstock.OptionError, match=r"penstock\.Limits"):
        penstock.Engine(query(), limits=3)


@pytest.mark.parametrize("plan", ["((A B) C)", "(A B C)"])
@pytest.mark.parametrize("allocator", sorted(set(ALLOCATORS) - {"random-shedding"}))
def test_every_allocator_runs(allocator: str, plan: str) -> None:
    truth = rows(pushed(penstock.Engine(query()), seconds_of(6, 30)))
    option = Overload("shed", probes=100, allocator=allocator)
    engine = penstock.Engine(query("FRESHNESS 9 SECONDS"), plan, overload=option)
    assert rows(pushed(engine, seconds_of(6, 30))) <= truth
    known = "jdam" if allocator == "jda" and plan != "(A B C)" else allocator
    assert known in engine.explain(analyze=True)
    assert engine.metrics()["overload"]["skipped"] > 0
