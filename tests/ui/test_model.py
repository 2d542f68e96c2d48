"""What the page knows: numbers of a run, unknown events, garbage, bounds."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
import synthetic_run as synthetic
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.control.plan_event import Action
from penstock.telemetry.events import KINDS, WaveKind
from penstock.ui.cell_view import ALL_SHOWN, BUSIEST, STEPS
from penstock.ui.decision import LONGEST, decision
from penstock.ui.hub import Hub
from penstock.ui.model import DECISIONS, PLANS, RunModel, Seen
from penstock.ui.page import json_in_markup
from penstock.ui.plan_tree import plan_change, plan_trees
from penstock.ui.series import CAPACITY


def model_of(*events: dict[str, Any]) -> RunModel:
    model = RunModel()
    for event in events:
        model.note(event)
    return model


def told(model: RunModel) -> dict[str, Any]:
    return model.told(Seen())[0]


def test_a_run_in_numbers() -> None:
    events = list(synthetic.run(60))
    message = told(model_of(*events))
    batches = [event for event in events if event["event"] == "batch"]
    assert message["status"] == "stopped"
    assert message["totals"]["rows"] == sum(sum(b["rows"].values()) for b in batches)
    assert message["totals"]["results"] == sum(b["results"] for b in batches)
    assert message["latest"]["batch"] == 60
    assert [each["kind"] for each in message["decisions"]] == [
        "start",
        "migration",
        "overload_on",
        "stop",
    ]
    assert message["decisions"][1]["fields"]["cpu"] == {"now": 0.62, "then": 0.38}
    assert [each["plan"] for each in message["plans"]] == [synthetic.FIRST, synthetic.SECOND]
    assert message["plans"][1]["added"] == ["{B, C}"]
    assert message["plans"][1]["dropped"] == ["{A, B}"]
    assert sum(message["series"]["columns"]["rows"]) == message["totals"]["rows"]


def test_cells_that_part_ways_are_in_the_history() -> None:
    change = {"batch": 1, "action": "migrate", "before": synthetic.FIRST, "plan": synthetic.SECOND}
    decisions = [synthetic.event("decision", 1.5, cell=cell, **change) for cell in (1, 2)]
    kept = synthetic.event("decision", 1.6, cell=3, **change | {"plan": synthetic.FIRST})
    batches = [synthetic.batch(number, synthetic.FIRST) for number in (1, 2, 3)]
    model = model_of(synthetic.start(), batches[0], *decisions, kept, *batches[1:])
    found = [(each["plan"], each["cells"]) for each in told(model)["plans"]]
    assert found == [(synthetic.FIRST, 1), (synthetic.SECOND, 2)]
    model.note(synthetic.batch(4, synthetic.SECOND))
    assert len(told(model)["plans"]) == 2
    assert [each["cells"] for each in told(model)["decisions"]] == [1, 2, 1]


def test_decisions_of_cells_that_alternate_are_still_one_mark_each() -> None:
    plans = {"before": synthetic.FIRST, "plan": synthetic.SECOND}
    pin = plans | {"batch": 1, "action": "pin", "numbers": {"n": 1}}
    undo = {"batch": 1, "action": "undo", "before": plans["plan"], "plan": plans["before"]}
    model = model_of(synthetic.start(), synthetic.batch(1))
    for cell in range(3):
        model.note(synthetic.event("decision", 1.5, cell=cell, **pin))
        model.note(synthetic.event("decision", 1.5, cell=cell, **undo))
    _, *marks = told(model)["decisions"]
    assert [(each["title"], each["cells"]) for each in marks] == [
        ("plan pinned", 3),
        ("change undone", 3),
    ]
    assert marks[0]["fields"]["cell"] == "0–2"
    assert next(iter(marks[0]["fields"])) == "numbers"
    assert marks[0]["fields"]["numbers_are_of"] == "cell 0"
    assert [each["cells"] for each in told(model)["plans"]] == [1, 3, 3]


def test_a_change_that_a_batch_shows_before_its_decision_is_one_change() -> None:
    change = {"batch": 2, "action": "pin", "before": synthetic.FIRST, "plan": synthetic.SECOND}
    batches = [synthetic.batch(1), synthetic.batch(2, synthetic.SECOND)]
    decisions = [synthetic.event("decision", 2, cell=cell, **change) for cell in range(3)]
    found = told(model_of(synthetic.start(), *batches, *decisions))["plans"]
    assert [(each["plan"], each["cells"]) for each in found] == [
        (synthetic.FIRST, 1),
        (synthetic.SECOND, 3),
    ]


def test_every_event_that_a_run_writes_has_a_title_of_its_own() -> None:
    actions = {
        "decision": get_args(Action),
        "order": ("pin", "undo", "unpin", "refresh"),
        "overload": ("short", "recovered"),
        "wave": get_args(WaveKind),
    }
    titles = [
        decision(0, 0.0, synthetic.event(kind, 1, order=did, action=did))["title"]
        for kind in KINDS
        if kind not in ("batch", "idle")
        for did in actions.get(kind, ("",))
    ]
    assert len(set(titles)) == len(titles)
    assert not {*KINDS} & {*titles}


def test_a_restart_goes_on_with_the_plans_of_the_cells() -> None:
    first = [synthetic.start(), synthetic.batch(1, synthetic.SECOND, cells=1)]
    again = synthetic.start() | {"event": "restart", "after": 1, "at": synthetic.at(5)}
    message = told(model_of(*first, again, synthetic.batch(6, synthetic.SECOND, cells=1)))
    assert [each["plan"] for each in message["plans"]] == [synthetic.FIRST, synthetic.SECOND]
    assert message["decisions"][-1]["title"] == "went on after a restart"


def test_cells_that_are_short_of_cpu_are_summed_up() -> None:
    assert told(model_of(synthetic.start(), synthetic.batch(1)))["overload"] == {}
    model = model_of(synthetic.start(), synthetic.overloaded(2, 0.4), synthetic.overloaded(3, None))
    message = told(model)
    assert message["overload"]["short"] == 0
    assert message["series"]["columns"]["short"] == [2, 0]
    model.note(synthetic.overloaded(4, 0.5))
    now = told(model)["overload"]
    assert (now["cells"], now["short"], now["policy"]) == (4, 2, "shed")
    assert now["allowed"] / now["needed"] == 0.5
    assert (now["lost"], now["error"], now["owed"]) == (400, 40, 0)


def test_sources_with_what_did_not_get_in() -> None:
    model = RunModel()
    model.note(synthetic.start())
    first = synthetic.batch(1) | {
        "rows": {"A": 10, "B": 5},
        "dropped": {"A": {"late": 3, "unreadable": 1}},
        "filtered": {"A": 2},
        "newest": {"A": 9_000, "B": 4_000},
        "watermark": 4_000,
        "silent": {"B": 5.0},
        "backlog": {"A": 70},
        "skipped": {"A": {"1.parquet": "corrupt", "2.parquet": "corrupt", "3": "missing"}},
    }
    second = synthetic.batch(2) | {"rows": {"A": 10, "B": 0}, "dropped": {"A": {"late": 1}}}
    model.note(first)
    assert model.told(Seen())[0]["watermark"] == 4_000
    model.note(second)
    message, _ = model.told(Seen())
    a, b = message["sources"]
    assert (a["name"], a["rows"], a["dropped"]) == ("A", 20, {"late": 4, "unreadable": 1})
    assert (a["filtered"], a["newest"], a["backlog"]) == (2, 9_000, None)
    assert (a["skipped"], b["skipped"]) == ({"corrupt": 2, "missing": 1}, {})
    assert b["last"] < a["last"]  # Nothing came of it since.
    assert (b["silent"], message["watermark"]) == (None, None)


def test_an_idle_run_has_no_rates_and_a_failed_one_its_reason() -> None:
    model = RunModel()
    model.note(synthetic.start())
    model.note(synthetic.batch(1))
    assert sum(model.told(Seen())[0]["rates"].values()) > 0
    model.note(synthetic.event("idle", 3))
    message, _ = model.told(Seen())
    assert message["status"] == "idle"
    assert sum(message["rates"].values()) == message["result_rate"] == 0
    assert not [each for each in message["decisions"] if each["kind"] == "idle"]
    model.note(synthetic.batch(4))
    assert model.told(Seen())[0]["status"] == "running"
    model.note(synthetic.event("failure", 5, reason="out of luck", details="a\nstory"))
    message, _ = model.told(Seen())
    assert message["status"] == "failed"
    assert message["failure"]["reason"] == "out of luck"
    model.note(synthetic.start())
    assert model.told(Seen())[0]["failure"] == {}


def test_rates_are_over_the_last_batches() -> None:
    message = told(model_of(synthetic.start(), *(synthetic.batch(n) for n in range(1, 20))))
    (tree,) = message["trees"]
    expected = [synthetic.batch(n) for n in range(15, 20)]
    seconds = expected[-1]["seconds"] + 19 - (14 + synthetic.batch(14)["seconds"])
    rows = sum(each["rows"]["A"] for each in expected)
    assert message["rates"]["A"] == pytest.approx(rows / seconds, rel=1e-3)
    made = tree["numbers"]["{A}"]["made"]
    assert made == pytest.approx(message["rates"]["A"], rel=1e-3)
    assert tree["numbers"]["{A, B}"]["completion"] == 1.0


def test_a_log_without_operators_still_has_a_tree() -> None:
    old = {name: value for name, value in synthetic.batch(1).items() if name != "operators"}
    (tree, *_) = told(model_of(synthetic.start(), old))["trees"]
    assert [root["key"] for root in tree["roots"]] == ["{A, B, C}"]
    assert tree["numbers"]["{A}"]["made"] > 0


def test_new_numbers_of_operators_are_handed_on() -> None:
    batch = synthetic.batch(1)
    batch["operators"][0]["allowance"] = 0.4
    batch["operators"][0]["surprise"] = 7
    (tree,) = told(model_of(synthetic.start(), batch))["trees"]
    assert tree["numbers"]["{A}"]["allowance"] == 0.4
    assert tree["numbers"]["{A}"]["surprise"] == 7


def test_a_page_that_has_seen_some_gets_the_rest() -> None:
    model = model_of(synthetic.start(), synthetic.batch(1))
    first, seen = model.told(Seen())
    assert first["whole"]
    model.note(synthetic.batch(2))
    model.note(synthetic.migration(2.5))
    second, _ = model.told(seen)
    assert not second["whole"]
    assert [each["kind"] for each in second["decisions"]] == ["migration"]
    assert second["series"]["first"] == 0
    assert len(second["series"]["at"]) == 2


def test_an_hour_with_a_thousand_cells_is_no_larger_than_a_minute() -> None:
    model = model_of(synthetic.start(1_000))
    cells = synthetic.batch(1, cells=1_000)["cells"]
    sizes = {}
    for number in range(1, 3_601):
        batch = synthetic.batch(number, cells=1) | {"cells": cells if number % 100 == 0 else []}
        model.note(batch if number % 2 else batch | {"plan": "x"})
        if number % 5 == 0:
            model.note(synthetic.migration(number))
        if number in (2_400, 3_600):
            sizes[number] = len(json.dumps(told(model)))
    message = told(model)
    assert sizes[3_600] < 1.1 * sizes[2_400] < 700_000
    assert len(message["series"]["at"]) <= CAPACITY
    assert len(message["decisions"]) == DECISIONS
    assert len(message["plans"]) <= PLANS
    assert message["cells"]["count"] == 1_000
    assert len(message["cells"]["shown"]) == BUSIEST
    assert len(message["cells"]["load"]) == STEPS
    assert message["totals"]["batches"] == 3_600


def test_few_cells_are_shown_each() -> None:
    cells = told(model_of(synthetic.start(), synthetic.batch(1, cells=ALL_SHOWN)))["cells"]
    assert [each["cell"] for each in cells["shown"]] == list(range(ALL_SHOWN))
    assert cells["skew"] > 2


def test_texts_are_cut() -> None:
    model = model_of(synthetic.start(), synthetic.event("failure", 1, reason="x" * 50_000))
    (_, failure) = told(model)["decisions"]
    assert len(failure["fields"]["reason"]) == LONGEST + 1
    model.note_sample([{"a": "y" * 50_000}] * 1_000)
    assert len(json.dumps(told(model))) < 20_000


_JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=5), inside),
    max_leaves=8,
)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["start", "batch", "stop", "restart", "odd"]),
            st.dictionaries(st.sampled_from(list(synthetic.batch(1))), _JUNK, max_size=6),
        ),
        max_size=4,
    )
)
def test_whatever_a_log_has_the_page_can_be_told(events: list[tuple[str, dict[str, Any]]]) -> None:
    hub = Hub(lambda command: None)
    hub.note_all({"version": 1, **fields, "event": kind} for kind, fields in events)
    json.loads(json_in_markup(hub.told(Seen())[0]))


def test_trees_of_plans() -> None:
    (root,) = plan_trees("((A B) C D | (A B):C,D C:(A B),D D:C,(A B))")
    assert root["name"] == "mjoin"
    assert root["orders"][0] == "A B → C → D"
    assert [each["kind"] for each in root["inputs"]] == ["state", "window", "window"]
    assert len(plan_trees("(A B) - C")) == 2
    assert plan_trees("no plan at all <script>") == ()
    change = plan_change("((A B) C)", "((B C) A)")
    assert change == {"kept": [], "dropped": ["{A, B}"], "added": ["{B, C}"]}
