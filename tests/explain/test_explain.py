"""One model, many renderers: they agree with the cost model and with each other."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.explain.as_json import as_json
from penstock.explain.diff import difference, difference_text
from penstock.explain.explanation import Explanation, explain
from penstock.explain.front_svg import front_svg
from penstock.explain.front_text import front_text
from penstock.explain.mermaid import mermaid
from penstock.explain.observation import Observation, Observations, observed_in
from penstock.explain.quantities import count_text, memory_text, share_text
from penstock.explain.text import text
from penstock.plan import StreamSet, read
from penstock.planning.limits import Limits
from penstock.planning.problem import Problem
from penstock.planning.statistics import Statistics

SCHEMA = pa.schema([("ts", pa.int64()), ("id", pa.int64()), ("x", pa.int64()), ("y", pa.int64())])
CHAIN = """SELECT A.id AS a, B.id AS b, C.id AS c FROM A [RANGE 10 SECONDS], B [RANGE 5 SECONDS],
           C [RANGE 10 SECONDS] WHERE A.x = B.x AND B.y = C.y AND A.id <= C.id"""
STATISTICS = Statistics(
    {"A": 100, "B": 50, "C": 80}, {("A", "B"): 0.01, ("B", "C"): 0.02, ("A", "C"): 0.5}
)


def _problem(query: str = CHAIN, statistics: Statistics = STATISTICS) -> Problem:
    return Problem(penstock.parse(query, schemas=dict.fromkeys("ABC", SCHEMA)), statistics)


def _explained(plan: str = "((A B) C)", limits: Limits | None = None) -> Explanation:
    return explain(_problem(), read(plan), limits)


@pytest.mark.parametrize("plan", ["((A B) C)", "(A B C)", "(A (B C))", "((A C) B)"])
def test_operators_add_up_to_the_plan(plan: str) -> None:
    found = _explained(plan)
    assert sum(each.cpu for each in found.operators()) == pytest.approx(found.cost.cpu)
    assert sum(each.memory for each in found.operators()) == pytest.approx(found.cost.memory)
    assert found.cost == pytest.approx(_problem().price(read(plan)))


def test_except_and_its_operators_add_up_too() -> None:
    problem = _problem(
        """SELECT A.id FROM A [RANGE 2 SECONDS] EXCEPT
           SELECT B.id FROM B [RANGE 2 SECONDS], C [RANGE 2 SECONDS] WHERE B.x = C.x""",
        Statistics({"A": 5, "B": 3, "C": 4}, {("B", "C"): 0.5}),
    )
    found = explain(problem, read("A - (B C)"))
    assert sum(each.cpu for each in found.operators()) == pytest.approx(found.cost.cpu)
    assert sum(each.memory for each in found.operators()) == pytest.approx(found.cost.memory)
    shown = text(found)
    assert "− join (B C)" in shown
    assert "without 1 other answers" in shown
    assert "-- minus -->" in mermaid(found)


def test_text_shows_everything_at_a_glance() -> None:
    limits = Limits(cpu=0.5, memory="16KiB")
    shown = text(explain(_problem(), read("((A B) C)"), limits, "asked for"), front=True)
    assert shown.splitlines()[0] == "plan ((A B) C)"
    assert "why  asked for" in shown
    assert re.search(r"├─ join \(A B\) +A\.x = B\.x +750 +2\.5k ", shown)
    assert re.search(r"│  ├─ A +\[RANGE 10 SECONDS\] +100 +1k ", shown)
    assert re.search(r"join \(A B C\) +B\.y = C\.y AND A\.id <= C\.id", shown)
    assert "within the limit of 50 %" in shown
    assert "EXCEEDS the limit of 16 KiB" in shown
    assert "← this plan" in shown
    assert "alternatives" in shown
    assert "●" in shown


def test_probe_orders_of_an_mjoin_are_shown() -> None:
    problem = _problem()
    plan = problem.plan_of(problem.evaluate(problem.shapes_of(read("(A B C)"))))
    shown = text(explain(problem, plan))
    assert "probe orders" in shown
    assert shown.count(" → ") == 6


def test_implied_equalities_are_shown() -> None:
    problem = _problem(
        """SELECT A.id FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND], C [RANGE 1 SECOND]
           WHERE A.x = B.x AND B.x = C.x""",
        Statistics({"A": 1, "B": 1, "C": 1}),
    )
    shown = text(explain(problem, read("((A C) B)")))
    assert re.search(r"join \(A C\) +A\.x = C\.x", shown)
    assert "assumed, as statistics do not say" in shown


def test_many_predicates_are_cut_short() -> None:
    predicates = " AND ".join(f"A.{a} + {n} < B.{b}" for n, a in enumerate("xy") for b in "xy")
    problem = _problem(
        f"SELECT A.id FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] WHERE {predicates}",
        Statistics({"A": 1, "B": 1}, {("A", "B"): 0.1}),
    )
    found = explain(problem, read("(A B)"))
    assert re.search(r"AND \d more", text(found))
    assert found.roots[0].details.count("AND") == 3


def test_the_front_is_marked_and_sorted() -> None:
    found = _explained("((A C) B)", Limits(cpu=1.0, memory="1GiB"))
    cpu = [each.cost.cpu for each in found.front]
    memory = [each.cost.memory for each in found.front]
    assert cpu == sorted(cpu)
    assert memory == sorted(memory, reverse=True)
    shown = front_text(found)
    assert shown.count("●") == 3  # title, picture, legend


def test_svg_is_a_document_with_the_chosen_plan() -> None:
    found = _explained(limits=Limits(cpu=1.0, memory="1MiB"))
    root = ElementTree.fromstring(front_svg(found))
    space = "{http://www.w3.org/2000/svg}"
    circles = list(root.iter(f"{space}circle"))
    chosen = [c for c in circles if c.get("class") == "chosen"]
    assert len(chosen) == 1
    assert "((A B) C)" in "".join(chosen[0].itertext())
    assert sum(line.get("class") == "limit" for line in root.iter(f"{space}line")) == 2
    for circle in circles:
        assert 0 < float(circle.get("cx", "nan")) < 640
        assert 0 < float(circle.get("cy", "nan")) < 400


def test_json_holds_what_the_text_shows() -> None:
    found = _explained(limits=Limits(cpu=1.0))
    values = json.loads(json.dumps(as_json(found)))
    assert values["plan"] == "((A B) C)"
    assert values["limits"] == {"cpu": 1.0, "memory": None, "probes": None}
    root = values["blocks"][0]
    assert [each["streams"] for each in root["inputs"]] == [["A", "B"], ["C"]]
    assert root["inputs"][0]["rows"] == pytest.approx(1000 * 250 * 0.01)
    assert {each["name"] for each in values["alternatives"]} >= {"mjoin", "bjtree", "two-layer"}


def test_mermaid_links_every_operator_once() -> None:
    found = _explained()
    shown = mermaid(found)
    assert shown.startswith("flowchart LR\n")
    assert shown.count("-->") == len(list(found.operators())) - 1
    assert "A.id &lt;= C.id" in shown


def test_two_plans_compared() -> None:
    found = difference(_explained("((A B) C)"), _explained("((B C) A)"))
    assert found.dropped == (StreamSet.of("A", "B"),)
    assert found.added == (StreamSet.of("B", "C"),)
    assert found.kept == ()
    shown = difference_text(found)
    assert shown.splitlines()[:2] == ["- ((A B) C)", "+ ((B C) A)"]
    assert "- state {A, B}: " in shown
    assert "+ state {B, C}: " in shown
    assert found.change.cpu == pytest.approx(found.after.cost.cpu - found.before.cost.cpu)
    assert "the plans are the same" in difference_text(difference(_explained(), _explained()))


def test_analyze_puts_what_was_seen_beside_what_was_estimated() -> None:
    seen = Observations(
        {
            StreamSet.of("A", "B"): Observation(rate=77, rows=4321, memory=2048, cpu=0.25),
            StreamSet.of("A"): Observation(rows=999),
        },
        Observation(rate=12, cpu=0.5, memory=1 << 20),
    )
    found = explain(_problem(), read("((A B) C)"), observations=seen)
    shown = text(found)
    line = next(each for each in shown.splitlines() if "─ join (A B) " in each)
    assert re.search(r" 77 .* 4\.32k .* 25 % .* 2 KiB .*B$", line)
    assert "busiest  the join (A B) takes 100 % of the measured CPU, 25 % of a core" in shown
    assert "1 MiB  estimate " in shown
    assert "50 %   estimate " in shown
    assert shown.splitlines()[4].split().count("estimate") == 4
    assert as_json(found)["observed"]["cpu"] == 0.5
    assert "seen: 77/s, 4.32k rows, 2 KiB" in mermaid(found)


def test_observations_from_a_running_engine() -> None:
    """Estimates and observations of a real run agree: same rates, same selectivities."""
    chance = np.random.default_rng(5)
    count, seconds = 6000, 60
    query = penstock.parse(CHAIN, schemas=dict.fromkeys("ABC", SCHEMA))
    engine = penstock.Engine(query, plan="((A B) C)")
    for number in range(6):
        batches = {}
        for name in "ABC":
            ts = np.sort(chance.integers(number * 10_000, (number + 1) * 10_000, count // 6))
            columns = [ts, chance.integers(0, 9, len(ts))]
            columns += [chance.integers(0, 100, len(ts)), chance.integers(0, 50, len(ts))]
            batches[name] = pa.table(dict(zip(SCHEMA.names, columns, strict=True)), schema=SCHEMA)
        engine.push(batches)
    seen = observed_in(engine.metrics(), seconds, cpu_seconds=3.0)
    statistics = Statistics(
        dict.fromkeys("ABC", count / seconds),
        {("A", "B"): 1 / 100, ("B", "C"): 1 / 50, ("A", "C"): 5 / 9},
    )
    found = explain(_problem(statistics=statistics), engine.plan, observations=seen)
    assert found.observed is not None
    assert found.observed.cpu == pytest.approx(0.05)
    for each in found.operators():
        assert each.observed is not None
        if each.kind != "window":
            assert each.observed.rate == pytest.approx(each.rate, rel=0.35)
        if each.kind == "window":
            assert each.observed.rows == pytest.approx(each.rows, rel=0.2)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (0, "0"),
        (999, "999"),
        (1234, "1.23k"),
        (5.5e7, "55M"),
        (1e20, "over 1000T"),
        (999.7, "1k"),
        (0.000_01, "under 0.001"),
    ],
)
def test_counts(value: float | None, shown: str) -> None:
    assert count_text(value) == shown


def test_shares_and_sizes() -> None:
    assert share_text(0.123) == "12.3 %"
    assert share_text(None) == memory_text(None) == "–"
    assert memory_text(10) == "10 B"
    assert memory_text(1536) == "1.5 KiB"
    assert memory_text(1e18) == "over 1000 TiB"
    assert share_text(6.63e-8) == "under 0.001 %"
