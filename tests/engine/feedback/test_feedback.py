"""Demand feedback: who waits for whom, what is said, what is saved, and when it steps aside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.feedback import edge
from penstock.engine.feedback.feedback import Feedback
from penstock.engine.state.hash_index import HashIndex
from penstock.engine.state.probing import exists
from penstock.engine.state.rows import Rows
from penstock.engine.tree import tree_guards
from penstock.kernels import demand
from penstock.testing.compare import assert_same_rows
from penstock.testing.generators import generate
from penstock.testing.knobs import FEATURES, Knobs
from penstock.testing.oracle import Oracle

ALWAYS = Feedback(adaptive=False, record=True)
MINUTE = 60_000
COLUMNS = {"A": "id ts x y", "B": "id ts x", "C": "id ts y", "R": "y name"}
SCHEMAS = {
    name: pa.schema([(column, pa.int64()) for column in columns.split()])
    for name, columns in COLUMNS.items()
}
FIGURE_1 = """SELECT A.id AS a, B.id AS b, C.id AS c
    FROM A [RANGE 5 MINUTES], B [RANGE 5 MINUTES], C [RANGE 5 MINUTES]
    WHERE A.x = B.x AND A.y = C.y"""


def rows(stream: str, *values: tuple[int, ...]) -> dict[str, pa.Table]:
    names = SCHEMAS[stream].names
    table = pa.Table.from_pylist(
        [dict(zip(names, each, strict=True)) for each in values], schema=SCHEMAS[stream]
    )
    return {stream: table}


def figure_1(**options: Any) -> penstock.Engine:
    query = penstock.parse(FIGURE_1, schemas=SCHEMAS)
    return penstock.Engine(query, plan="((A B) C)", **options)


def said(engine: penstock.Engine) -> list[str]:
    return [str(message) for message in engine.messages]


def test_the_running_example() -> None:
    """Table I. Asked before it is used, a1 makes not even a1b1; a2 is a known MNS."""
    engine = figure_1(feedback=ALWAYS)
    engine.push(rows("C", (0, 0, 7)))
    engine.push(rows("B", (1, 0, 1), (2, 0, 1), (3, 0, 1)))
    assert said(engine) == []
    engine.push(rows("A", (1, 1 * MINUTE, 1, 100)))
    assert said(engine) == ["({A, B, C}) suspend {A} {A.y=100}"]
    engine.push(rows("B", (4, 2 * MINUTE, 1)))
    engine.push(rows("A", (2, 3 * MINUTE, 1, 100)))
    assert len(said(engine)) == 1
    assert engine.metrics()["feedback"]["made"] == 0
    assert engine.metrics()["feedback"]["asleep"] == 2
    results = engine.push(rows("C", (1, 4 * MINUTE, 100)))
    assert said(engine)[1:] == ["({A, B, C}) resume {A} {A.y=100}"]
    pairs = sorted(zip(results["a"].to_pylist(), results["b"].to_pylist(), strict=True))
    assert pairs == [(a, b) for a in (1, 2) for b in (1, 2, 3, 4)]
    assert engine.metrics()["feedback"]["made"] == 8
    assert engine.metrics()["feedback"]["asleep"] == 0


def test_an_empty_opposite_suspends_everything() -> None:
    """∅ is the smallest sub-tuple: with no C at all even B waits, though it never meets C."""
    engine = figure_1(feedback=ALWAYS)
    engine.push(rows("B", (1, 0, 1)))
    assert said(engine) == ["({A, B, C}) suspend {B} ∅"]
    engine.push(rows("B", (2, 1, 1)) | rows("A", (1, 1, 1, 5)))
    assert said(engine)[1:] == ["({A, B, C}) suspend {A} {A.y=5}"]
    engine.push(rows("C", (1, 2, 6)))
    assert said(engine)[2:] == ["({A, B, C}) resume {B} ∅"]
    assert engine.push(rows("C", (2, 3, 5))).num_rows == 2


def test_what_no_static_row_wants_is_dropped_for_good() -> None:
    text = """SELECT A.id AS a, B.id AS b FROM A [RANGE 5 MINUTES], B [RANGE 5 MINUTES], R
        WHERE A.x = B.x AND A.y = R.y"""
    query = penstock.parse(text, schemas=SCHEMAS)
    engine = penstock.Engine(query, plan="((A B) R)", feedback=ALWAYS)
    engine.push(rows("R", (5, 1)))
    results = engine.push(rows("A", (1, 0, 1, 5), (2, 0, 1, 6)) | rows("B", (1, 1, 1)))
    assert results["a"].to_pylist() == [1]
    feedback = engine.metrics()["feedback"]
    assert (feedback["dropped"], feedback["asleep"], feedback["made"]) == (1, 0, 1)


def test_sleepers_expire() -> None:
    engine = figure_1(feedback=ALWAYS)
    engine.push(rows("C", (0, 0, 7)))
    for minute in range(60):
        now = minute * MINUTE
        engine.push(rows("A", (minute, now, 1, 100)) | rows("B", (minute, now, 1)))
        engine.push(rows("C", (minute, now, 7)))
    assert engine.metrics()["feedback"]["asleep"] <= 3 * 6 + 64
    assert engine.push(rows("C", (99, 60 * MINUTE, 100))).num_rows == 5 * 5


def test_a_failed_push_wakes_nobody_and_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = figure_1(feedback=ALWAYS)
    engine.push(rows("C", (0, 0, 7)) | rows("B", (1, 0, 1)) | rows("A", (1, 0, 1, 100)))
    before = said(engine), engine.metrics()["feedback"]
    with monkeypatch.context() as patch:
        patch.setattr(type(engine._join.output), "stage", _fail)
        with pytest.raises(ZeroDivisionError):
            engine.push(rows("C", (1, 1, 100)) | rows("A", (2, 1, 1, 200)))
    assert (said(engine), engine.metrics()["feedback"]) == before
    assert engine.push(rows("C", (1, 1, 100))).num_rows == 1


def _fail(*_: Any) -> None:
    raise ZeroDivisionError


def test_guards_can_be_given() -> None:
    """Whichever of both directions; of two that would wait for each other, the first."""
    given = ("{A} waits for {C, D}", "{C} waits for {A, B}", "{B} waits for {D}")
    text = """SELECT A.id AS a, B.id AS b, C.id AS c, D.id AS d
        FROM A [RANGE 20 MILLISECONDS], B [RANGE 20 MILLISECONDS], C [RANGE 20 MILLISECONDS],
             D [RANGE 20 MILLISECONDS]
        WHERE A.x = B.x AND C.x = D.x AND A.y = C.y AND B.y = D.y"""
    schema = pa.schema([(name, pa.int64()) for name in ("id", "ts", "x", "y")])
    query = penstock.parse(text, schemas=dict.fromkeys("ABCD", schema))
    random, oracle = np.random.default_rng(3), Oracle(query)
    engines = {
        guards: penstock.Engine(
            query, plan="((A B)(C D))", feedback=Feedback(adaptive=False, guards=guards)
        )
        for guards in (given, given[1:2], ())
    }
    for start in range(0, 400, 20):
        clock = np.sort(random.integers(start, start + 20, 20))
        push = {
            name: pa.table(
                [clock, clock, random.integers(0, 4, 20), random.integers(0, 60, 20)],
                schema=schema,
            )
            for name in "ABCD"
        }
        expected = oracle.push(push)
        for engine in engines.values():
            assert_same_rows(engine.push(push), expected)
    found = {
        guards: [
            (each["input"], each["waits_for"], each["on"], each["slept"] > 0)
            for each in engine.metrics()["feedback"]["guards"]
        ]
        for guards, engine in engines.items()
    }
    assert found == {
        given: [("{A}", "{C, D}", True, True)],
        given[1:2]: [("{C}", "{A, B}", True, True)],
        (): [],
    }


# -- the hazard: both sides asleep -----------------------------------------------------------


def clique_answers(seed: int) -> tuple[int, int]:
    """Results of a bushy clique of four, and how many the oracle has."""
    features = FEATURES - {"except", "group by", "dstream", "rstream", "key types", "theta"}
    case = generate(seed, Knobs(features=features, streams=(4, 4), domain=3, tuples=20))
    graph = case.graph()
    one, two, three, four = graph.aliases
    engine = penstock.Engine(
        graph,
        plan=f"(({one} {two}) ({three} {four}))",
        lateness=case.lateness,
        feedback=Feedback(adaptive=False),
    )
    oracle = Oracle(graph, case.lateness)
    made = expected = 0
    for number, batches in enumerate(case.pushes):
        made += engine.push(batches, watermark=case.watermark(number)).num_rows
        expected += len(oracle.push(batches, case.watermark(number)))
    return made, expected


def test_both_sides_asleep_would_lose_results(monkeypatch: pytest.MonkeyPatch) -> None:
    with_rule = [clique_answers(seed) for seed in range(16)]
    assert all(made == expected for made, expected in with_rule)
    assert sum(expected for _, expected in with_rule) > 20

    def both_ways(waiting: edge.Edge, opposite: edge.Edge, order: Any) -> bool:
        del waiting, opposite, order
        return True

    monkeypatch.setattr(tree_guards, "may_wait_for", both_ways)
    without = [clique_answers(seed) for seed in range(16)]
    assert any(made < expected for made, expected in without)


def test_the_hazard_of_the_design() -> None:
    """((A B)(C D)), A-C and B-C: c waits for ab, a for cd; a later b completes the result."""
    schemas = {n: pa.schema([(c, pa.int64()) for c in ("ts", "p", "q", "r")]) for n in "ABCD"}
    query = penstock.parse(
        "SELECT A.ts AS t FROM A [RANGE 9 SECONDS], B [RANGE 9 SECONDS], C [RANGE 9 SECONDS], "
        "D [RANGE 9 SECONDS] WHERE A.p = B.p AND C.r = D.r AND A.q = C.p AND B.q = C.q",
        schemas=schemas,
    )
    engine = penstock.Engine(query, plan="((A B) (C D))", feedback=ALWAYS)
    oracle = Oracle(query, None)
    for number, stream in enumerate("CDAB"):
        batch = {stream: pa.table([[number], [1], [1], [1]], schema=schemas[stream])}
        assert_same_rows(engine.push(batch), oracle.push(batch, None), query)
    assert engine.metrics()["results"] == 1


# -- it pays or it steps aside ---------------------------------------------------------------


def streams(seed: int, count: int, values: int) -> dict[str, pa.Table]:
    """As many rows of A, B and C; A.y meets C.y in about one of ``values`` cases."""
    random = np.random.default_rng(seed)
    clock = np.arange(count) + count * seed
    return {
        "A": pa.table(
            [clock, clock, random.integers(0, 2000, count), random.integers(0, values, count)],
            schema=SCHEMAS["A"],
        ),
        "B": pa.table([clock, clock, random.integers(0, 2000, count)], schema=SCHEMAS["B"]),
        "C": pa.table([clock, clock, random.integers(0, values, count)], schema=SCHEMAS["C"]),
    }


def run(engine: penstock.Engine, values: int, first: int = 0) -> dict[str, Any]:
    for seed in range(first, first + 12):
        engine.push(streams(seed, 2000, values))
    return engine.metrics()


def short_windows(**options: Any) -> penstock.Engine:
    query = penstock.parse(FIGURE_1.replace("5 MINUTES", "4 SECONDS"), schemas=SCHEMAS)
    return penstock.Engine(query, plan="((A B) C)", **options)


def test_a_guard_that_pays_comes_on_and_saves() -> None:
    plain, told = (run(short_windows(feedback=kind), 200_000) for kind in ("off", "jit"))
    assert told["results"] == plain["results"] > 0
    (guard,) = [g for g in told["feedback"]["guards"] if g["on"]]
    assert (guard["input"], guard["waits_for"]) == ("{A}", "{C}")
    assert told["joins"][0]["made"] < plain["joins"][0]["made"] / 3
    assert told["feedback"]["avoided"] > plain["joins"][0]["made"] / 3
    assert told["state"]["joins"]["{A, B}"]["bytes"] < plain["state"]["joins"]["{A, B}"]["bytes"]


def test_a_guard_that_does_not_pay_stays_off() -> None:
    told = run(short_windows(feedback="jit"), 500)
    assert not any(guard["on"] for guard in told["feedback"]["guards"])


def test_a_guard_follows_the_streams() -> None:
    engine = short_windows(feedback="jit")
    assert any(g["on"] for g in run(engine, 200_000)["feedback"]["guards"])
    assert not any(g["on"] for g in run(engine, 500, first=12)["feedback"]["guards"])
    assert engine.metrics()["feedback"]["asleep"] == 0
    assert any(g["on"] for g in run(engine, 200_000, first=24)["feedback"]["guards"])


BUSHY = """SELECT A.id AS a FROM A [RANGE 4 SECONDS], B [RANGE 4 SECONDS], C [RANGE 4 SECONDS],
    D [RANGE 4 SECONDS] WHERE A.x = B.x AND B.y = C.y AND C.z = D.z"""


def bushy(plan: str, is_turned: bool = False) -> dict[str, Any]:
    """A run of a chain of four with a fertile and a rare side; half-way they may change places."""
    columns = {"A": "id ts x", "B": "id ts x y", "C": "id ts y z", "D": "id ts z"}
    schemas = {n: pa.schema([(c, pa.int64()) for c in own.split()]) for n, own in columns.items()}
    engine = penstock.Engine(penstock.parse(BUSHY, schemas=schemas), plan=plan)
    for number in range(24):
        random = np.random.default_rng(number)
        clock = np.arange(1000) + 1000 * number
        sizes = {"x": 200, "y": 400_000, "z": 8_000}
        if is_turned and number >= 12:
            sizes |= {"x": 8_000, "z": 200}
        engine.push(
            {
                name: pa.table(
                    [clock, clock, *(random.integers(0, sizes[c], 1000) for c in own.split()[2:])],
                    schema=schemas[name],
                )
                for name, own in columns.items()
            }
        )
    return engine.metrics()


def waiting(metrics: dict[str, Any]) -> set[tuple[str, str]]:
    return {(g["input"], g["waits_for"]) for g in metrics["feedback"]["guards"] if g["on"]}


def test_both_spellings_of_a_tree_do_the_same() -> None:
    one, other = bushy("((A B) (C D))"), bushy("((C D) (A B))")
    assert ("{B}", "{C, D}") in waiting(one)
    assert waiting(one) == waiting(other)
    assert one["feedback"]["made"] == other["feedback"]["made"]
    assert one["results"] == other["results"] > 0


def test_the_side_that_waits_changes_with_the_streams() -> None:
    turned = bushy("((A B) (C D))", is_turned=True)
    assert ("{C}", "{A, B}") in waiting(turned)
    assert ("{B}", "{C, D}") not in waiting(turned)


def test_a_guard_that_avoids_everything_stays_on() -> None:
    engine = short_windows(feedback="jit")
    for seed in range(24):
        batches = streams(seed, 2000, 200_000)
        nowhere = pa.array(np.full(2000, -1))
        engine.push(batches | {"C": batches["C"].set_column(2, "y", nowhere)})
    feedback = engine.metrics()["feedback"]
    (guard,) = [g for g in feedback["guards"] if g["on"]]
    assert (guard["input"], guard["resumed"]) == ("{A}", 0)
    assert guard["slept"] > 20 * 2000


def test_avoided_counts_when_nobody_was_let_in() -> None:
    engine = short_windows(feedback=Feedback(adaptive=False))
    for seed in range(4):
        batches = streams(seed, 2000, 200_000)
        nowhere = pa.array(np.full(2000, -1))
        engine.push(batches | {"C": batches["C"].set_column(2, "y", nowhere)})
    feedback = engine.metrics()["feedback"]
    assert feedback["made"] == 0
    assert feedback["avoided"] > 8_000


def test_filters_are_in_the_bytes_of_the_state() -> None:
    engines = [
        short_windows(feedback=Feedback(adaptive=False, detection="bloom")) for _ in range(2)
    ]
    for engine in engines:
        run(engine, 20_000)
    for tree in engines[1].trees:
        for guard in tree.guarding.guards:
            guard.filter = None
    with_filters, without = (engine.metrics()["state"]["bytes"] for engine in engines)
    assert with_filters - without > 4_000


def test_guards_that_wait_for_each_other_do_not_agree() -> None:
    engine = penstock.Engine(
        penstock.parse(
            BUSHY,
            schemas={
                n: pa.schema([(c, pa.int64()) for c in ("id", "ts", "x", "y", "z")]) for n in "ABCD"
            },
        ),
        plan="((A B) (C D))",
    )
    (tree,) = engine.trees
    found = {(str(g.streams), str(g.opposite.streams)): g for g in tree.guarding.guards}
    one, other = found["{B}", "{C, D}"], found["{C}", "{A, B}"]
    assert edge.agrees(one, [])
    assert edge.agrees(one, [found["{A}", "{C, D}"]])
    assert not edge.agrees(one, [other])
    ordered = {each.streams: each for each in tree.edges}
    sides = [ordered[one.within], ordered[one.opposite.streams]]
    assert edge.order_for(sides, [one]) == sides[::-1]
    assert edge.order_for(sides, [other]) == sides


def test_a_bloom_filter_lets_through_but_keeps_nobody_out() -> None:
    exact = run(short_windows(feedback=Feedback(adaptive=False)), 20_000)
    bloom = run(short_windows(feedback=Feedback(adaptive=False, detection="bloom")), 20_000)
    assert bloom["results"] == exact["results"]
    assert exact["joins"][0]["made"] <= bloom["joins"][0]["made"]


@pytest.mark.parametrize(
    "feedback", ["jit", Feedback(adaptive=False), Feedback(adaptive=False, detection="bloom")]
)
def test_a_silent_stream_does_not_keep_sleepers_when_idle_is_given(feedback: Any) -> None:
    """C is heard of once. The watermark goes on without it, and so do those who wait for it."""

    def held_after(windows: int) -> int:
        engine = short_windows(feedback=feedback, idle=8_000, lateness=0)
        engine.push(rows("C", (0, 0, -1)))
        for seed in range(4 * windows):
            batches = streams(seed, 1000, 200_000)
            engine.push({name: batches[name] for name in "AB"})
        metrics = engine.metrics()
        assert metrics["feedback"]["asleep"] > 0
        return int(metrics["state"]["bytes"])

    assert held_after(50) <= held_after(3)


# -- kernels and options ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_exists_is_what_a_search_finds(seed: int) -> None:
    random = np.random.default_rng(seed)
    wide = 2**40 if seed % 2 else 1
    ring = Rows(dated=False)
    index: HashIndex = ring.add_index()
    held = random.integers(0, 300, 500) * wide
    ring.reserve(500)
    ring.head = 500
    ring.insert(index, 0, held)
    ring.low = 250
    sought = random.integers(0, 400, 1000) * wide
    found = np.empty(1000, np.bool_)
    number = exists(sought, ring, index, found)
    assert number == found.sum()
    assert (found | ~np.isin(sought, held[250:])).all()
    if index.narrow:
        assert (found == np.isin(sought, held[250:])).all()


def test_a_filter_has_all_that_was_put_in() -> None:
    random = np.random.default_rng(1)
    table = np.zeros(256, np.uint64)
    held = random.integers(-(2**62), 2**62, 1000)
    demand.add(table, held)
    found = np.empty(1000, np.bool_)
    assert demand.may_contain(table, held, found) == 1000
    others = random.integers(-(2**62), 2**62, 1000)
    assert demand.may_contain(table, others, found) < 100


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"detection": "magic"}, "detection='magic'"),
        ({"level": 0}, "level=0"),
        ({"guards": ["{A} waits for {C}"]}, "adaptive=False"),
        ({"guards": ["A:C"], "adaptive": False}, "'A:C' must be like"),
    ],
)
def test_wrong_options_say_so(options: dict[str, Any], message: str) -> None:
    with pytest.raises(penstock.OptionError, match=message):
        Feedback(**options)
