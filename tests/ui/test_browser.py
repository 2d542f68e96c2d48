"""The page in a browser: it shows, moves, explains, takes commands, and runs nobody's script."""

from __future__ import annotations

import io
import os
import queue
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import synthetic_run as synthetic
from playwright.sync_api import Browser, Page, expect, sync_playwright
from rich.console import Console

from penstock.cli.demo.progress import Progress
from penstock.cli.demo.run import run_demo
from penstock.cli.live_page import LivePage
from penstock.ui.hub import Command, Hub
from penstock.ui.model import Seen
from penstock.ui.page import exported_page
from penstock.ui.server import PageServer

pytestmark = pytest.mark.xdist_group("browser")

LONG = 600.0
"""Seconds after which something hangs, however busy the machine is."""
QUIET = Console(file=io.StringIO())
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

ATTACK = (
    "<img src=x onerror=\"document.title='broken in'\"><script>document.title='broken in'</script>"
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, or a skip that says what was looked for."""
    given = os.environ.get("PENSTOCK_CHROMIUM")
    found = given or next((path for name in NAMES if (path := shutil.which(name))), None)
    with sync_playwright() as driver:
        own = Path(driver.chromium.executable_path)
        program = found or (str(own) if own.exists() else None)
        if program is None:
            pytest.skip(f"no browser: none of {', '.join(NAMES)}, and PENSTOCK_CHROMIUM is not set")
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page on which no script may fail, and that asks nobody but its server."""
    context = browser.new_context(viewport={"width": 1280, "height": 1600})
    page = context.new_page()
    page.set_default_timeout(1_000 * LONG)
    expect.set_options(timeout=1_000 * LONG)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "console",
        lambda message: (
            problems.append(message.text)
            if message.type == "error" and "status of 400" not in message.text
            else None
        ),
    )
    page.on(
        "request",
        lambda request: (
            problems.append(request.url)
            if not request.url.startswith(("http://localhost:", "file:", "data:", "blob:"))
            else None
        ),
    )
    yield page
    context.close()
    assert problems == []


class Run:
    """A hub with its server, and what the page has sent."""

    def __init__(self) -> None:
        self.sent: list[Command] = []
        self.hub = Hub(self.sent.append)
        self.server = PageServer(self.hub, port=0)


@pytest.fixture
def run() -> Iterator[Run]:
    run = Run()
    run.hub.note(synthetic.start(accepts=["pin", "undo"]))
    run.hub.note_all(synthetic.batch(number) for number in range(1, 20))
    with run.server:
        yield run


def test_the_tree_shows_with_its_numbers(run: Run, page: Page) -> None:
    page.goto(run.server.address)
    nodes = page.locator("#plan-picture .node")
    expect(nodes).to_have_count(6)
    expect(page.locator('[data-key="{A, B}"]')).to_contain_text("rows")
    expect(page.locator('[data-key="{A}"]')).to_contain_text("asleep")
    expect(page.locator("#plan-picture .rate").first).to_have_text(re.compile(r"/s$"))
    expect(page.locator("#status")).to_have_text("running")
    page.locator('[data-key="{A, B}"]').click()
    expect(page.locator("#plan-detail")).to_contain_text("probes")


def test_numbers_move(run: Run, page: Page) -> None:
    page.goto(run.server.address)
    total = page.locator("#facts div", has_text="rows in all").locator("dd")
    expect(total).not_to_have_text("")
    rate = page.locator("#plan-picture .rate >> nth=0")
    before = total.inner_text(), rate.text_content()
    run.hub.note_all(synthetic.batch(number) for number in range(20, 40))
    expect(total).not_to_have_text(before[0])
    expect(rate).not_to_have_text(before[1] or "")


def test_what_did_not_get_in_and_who_is_silent(run: Run, page: Page) -> None:
    run.hub.note(synthetic.start(streams={"A": "bids", "B": "auctions", "C": "persons"}))
    told = synthetic.batch(20) | {
        "rows": {"bids": 900, "persons": 0},
        "dropped": {"bids": {"late": 9, "unreadable": 1}},
        "newest": {"bids": 1_767_268_820_000, "persons": 1_767_268_700_000},
        "watermark": 1_767_268_695_000,
        "silent": {"persons": 120.0},
        "backlog": {"bids": 4_000},
    }
    run.hub.note(told)
    page.goto(run.server.address)
    bids, persons = (
        page.locator("#sources-table tbody tr", has_text=name) for name in ("bids", "persons")
    )
    expect(bids).to_contain_text("9 (1.0 %)")
    expect(bids).to_contain_text("1 (0.1 %)")
    expect(bids).to_contain_text("4.00 k rows")
    expect(persons).to_contain_text("SILENT since the start")
    health = page.locator("#health")
    expect(health).to_contain_text("All state waits for persons: it has sent nothing, 2 min 0 s")
    expect(health).to_contain_text("2 min 5 s behind the newest row")
    expect(page.locator('[data-key="{A}"]')).to_contain_text("bids (A)")
    run.hub.note(synthetic.event("idle", 25))
    expect(page.locator("#status")).to_have_text("idle")
    expect(health).to_contain_text("Idle: all input is taken")
    expect(page.locator("#facts div", has_text="rows now").locator("dd")).to_have_text("0/s")


def test_a_failure_stands_above_everything(run: Run, page: Page) -> None:
    page.goto(run.server.address)
    expect(page.locator("#failure")).to_be_hidden()
    run.hub.note(synthetic.event("failure", 21, reason="out of luck", details="a\nlong story"))
    expect(page.locator("#status")).to_have_text("failed")
    banner, tiles = page.locator("#failure"), page.locator("#facts")
    expect(banner).to_contain_text("out of luck")
    above, below = banner.bounding_box(), tiles.bounding_box()
    assert above is not None
    assert below is not None
    assert above["y"] < below["y"]
    expect(page.locator("#failure-details")).to_be_hidden()
    page.locator("#failure-more summary").click()
    expect(page.locator("#failure-details")).to_contain_text("long story")
    expect(tiles).to_contain_text("rows at the end")


def test_a_relation_is_read_again_by_a_button(run: Run, page: Page) -> None:
    run.hub.note(synthetic.start(accepts=["refresh"], refreshes=["prices"]))
    page.goto(run.server.address)
    page.get_by_role("button", name="Read prices again").click()
    expect(page.locator("#refresh-answer")).to_contain_text("sent")
    assert run.sent == [{"command": "refresh", "source": "prices"}]


def test_a_migration_appears_with_its_reasons(run: Run, page: Page) -> None:
    page.goto(run.server.address)
    expect(page.locator("#plans li")).to_have_count(1)
    run.hub.note(synthetic.migration(19.5))
    expect(page.locator("#plans li").first).to_contain_text("being prepared")
    run.hub.note(synthetic.batch(20, synthetic.SECOND, completion=0.25))
    expect(page.locator('[data-key="{B, C}"]')).to_contain_text("25.0 % complete")
    expect(page.locator("#plans li")).to_have_count(2)
    expect(page.locator("#plans .added")).to_have_text("+ {B, C}")
    expect(page.locator("#plans .dropped")).to_have_text("− {A, B}")
    expect(page.locator("#marks li")).to_have_count(2)
    expect(page.locator("#plans li").first).to_contain_text("runs in 3 of 4 cells")
    page.locator("#time-line .event").last.click()
    detail = page.locator("#mark-detail")
    expect(detail).to_contain_text("saves 38 % of CPU")
    expect(detail).to_contain_text("0.62")
    expect(page.locator("#plan-tabs button")).to_have_count(0)


def test_an_event_that_nobody_knew_is_a_mark_with_its_numbers(run: Run, page: Page) -> None:
    page.goto(run.server.address)
    run.hub.note(synthetic.event("moon_eclipse", 19.8, depth=0.75, seen_from={"Graz": 3}))
    page.locator("#marks button", has_text="moon eclipse").click()
    expect(page.locator("#mark-detail")).to_contain_text("seen from")
    expect(page.locator("#mark-detail")).to_contain_text("0.75")


def test_many_cells_that_decide_the_same_are_one_mark(run: Run, page: Page) -> None:
    page.goto(run.server.address)
    expect(page.locator("#marks li")).to_have_count(1)
    fields = {"batch": 19, "action": "migrate", "before": synthetic.FIRST, "plan": synthetic.SECOND}
    for cell in range(3):
        run.hub.note(synthetic.event("decision", 19.5, cell=cell, reason="cheaper", **fields))
        expect(page.locator("#marks li")).to_have_count(2)
    expect(page.locator("#marks button").first).to_contain_text("migration in 3 cells")
    expect(page.locator("#plans li").first).to_contain_text("in 3 cells")
    expect(page.locator("#plans li").last).to_contain_text("runs")
    run.hub.note(synthetic.event("decision", 20, cell=0, **fields | {"action": "keep"}))
    expect(page.locator("#marks button").first).to_contain_text("plan kept")


def test_the_time_line_can_be_hovered_and_walked(run: Run, page: Page) -> None:
    page.goto(run.server.address)
    line = page.locator("#time-line")
    expect(page.locator("path.curve")).to_have_count(5)
    tip = page.locator("#tip")
    expect(tip).to_be_hidden()
    line.hover(position={"x": 640, "y": 150})
    expect(tip).to_be_visible()
    expect(tip).to_contain_text("batch time")
    page.mouse.move(5, 5)
    expect(tip).to_be_hidden()
    line.focus()
    page.keyboard.press("End")
    last = tip.inner_text()
    page.keyboard.press("ArrowLeft")
    expect(tip).not_to_have_text(last)
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()


def test_limits_are_drawn(run: Run, page: Page) -> None:
    page.goto(run.server.address)
    expect(page.locator(".limit-text")).to_have_count(2)
    expect(page.locator("line.limit")).to_have_count(1)


def test_pin_and_undo_reach_the_run(run: Run, page: Page) -> None:
    page.goto(run.server.address)
    page.locator("#pin-plan").fill("((A C) B)")
    page.locator("#pin").click()
    expect(page.locator("#command-answer")).to_contain_text("sent")
    with page.expect_response(lambda answer: answer.request.method == "POST"):
        page.locator("#undo").click()
    with page.expect_response(lambda answer: answer.request.method == "POST"):
        page.locator("#plans button", has_text="pin").click()
    page.wait_for_function("document.getElementById('command-answer').textContent")
    page.locator("#pin-plan").fill("((A")
    page.locator("#pin").click()
    expect(page.locator("#command-answer")).to_contain_text("never closed")
    assert run.sent == [
        {"command": "pin", "plan": "((A C) B)"},
        {"command": "undo"},
        {"command": "pin", "plan": synthetic.FIRST},
    ]


def test_overload_is_seen_in_words_in_the_tree_and_on_the_time_line(run: Run, page: Page) -> None:
    page.goto(run.server.address)
    line = page.locator("#overload")
    expect(page.locator("#plan-picture .node")).to_have_count(6)
    expect(line).to_be_hidden()
    numbers = {"needed": 2_000, "allowed": 800}
    fields = {"batch": 20, "action": "short", "policy": "shed", "numbers": numbers}
    for cell in (0, 1):
        run.hub.note(synthetic.event("overload", 20, cell=cell, **fields))
    run.hub.note(synthetic.overloaded(20, 0.4))
    expect(line).to_have_text(
        "Short of CPU in 2 of 4 cells for 12.0 s of event time · "
        "40.0 % of the probes fit the budget · probes and results: 75.0 % of the CPU · "
        "about 400 ± 40 results lost in all"
    )
    expect(page.locator('[data-key="{A}"]')).to_contain_text("40.0 % may probe")
    expect(page.locator('[data-key="{A}"]')).to_contain_text("42.0 s stale")
    expect(page.locator("#time-line .band")).to_have_count(1)
    page.locator("#marks button", has_text="short of CPU in 2 cells").click()
    expect(page.locator("#mark-detail")).to_contain_text("2,000")
    run.hub.note(synthetic.event("overload", 21, cell=0, **fields | {"action": "recovered"}))
    run.hub.note(synthetic.overloaded(21, None))
    expect(line).to_contain_text("Within the budget of 1,000 probes per second")
    expect(page.locator("#marks button").first).to_contain_text("recovered")


def test_a_run_that_takes_no_orders_says_why(run: Run, page: Page) -> None:
    page.goto(run.server.address)
    why = page.locator("#no-commands")
    expect(page.locator("#commands")).to_be_visible()
    expect(why).to_be_hidden()
    run.hub.note(synthetic.start(takes_none="the checkpoint is on hdfs://host"))
    expect(why).to_have_text("the checkpoint is on hdfs://host")
    expect(page.locator("#commands")).to_be_hidden()


def test_without_the_token_there_is_nothing_to_press(run: Run, page: Page) -> None:
    page.goto(run.server.address.partition("#")[0])
    expect(page.locator("#plan-picture .node")).to_have_count(6)
    expect(page.locator("#commands")).to_be_hidden()
    expect(page.locator("#no-commands")).to_contain_text("it has the token")
    expect(page.locator("#plans button")).to_have_count(0)


def test_script_in_names_and_values_is_text(run: Run, page: Page, tmp_path: Path) -> None:
    name = ATTACK.replace('"', '""')
    plan = f'(("{name}" B) C)'
    run.hub.note(synthetic.start(plan=plan, job=ATTACK, query=ATTACK, sources={ATTACK: ATTACK}))
    batch = synthetic.batch(21, plan)
    batch["rows"] = {ATTACK: 5}
    for number, operator in enumerate(batch["operators"]):
        operator["streams"] = [f"{{{ATTACK}}}", "{B}", "{C}", "{B, x}", "{y}"][number]
    batch["operators"][0][ATTACK] = 3
    run.hub.note(batch, synthetic.event(ATTACK, 22, **{ATTACK: ATTACK}, reason=ATTACK))
    run.hub.note_sample([{ATTACK: ATTACK}])
    message, _ = run.hub.told(Seen())
    saved = tmp_path / "run.html"
    saved.write_text(exported_page(message))
    for address in (run.server.address, saved.as_uri()):
        page.goto(address)
        expect(page.locator("#results-table td")).to_have_text(ATTACK)
        expect(page.locator("#query")).to_have_text(ATTACK)
        page.locator("#marks button").first.click()
        page.locator("#plan-picture .node.window").first.click()
        expect(page.locator("#mark-detail")).to_contain_text("onerror")
        assert page.locator("img").count() == 0
        assert "broken in" not in page.title().replace(ATTACK, "")
        inside = page.locator("main script, header script, main style")
        assert inside.count() == 0


def test_the_saved_file_shows_the_same_alone(run: Run, page: Page, tmp_path: Path) -> None:
    page.goto(run.server.address)
    expect(page.locator("#plan-picture .node")).to_have_count(6)
    with page.expect_download() as download:
        page.locator("#export").click()
    saved = tmp_path / "saved.html"
    download.value.save_as(saved)
    page.goto(saved.as_uri())
    expect(page.locator("#plan-picture .node")).to_have_count(6)
    expect(page.locator("path.curve")).to_have_count(5)
    expect(page.locator("#export")).to_be_hidden()
    page.locator("#marks button").first.click()
    expect(page.locator("#mark-detail")).to_contain_text("kafka")


def test_the_running_demo_and_a_pin(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo runs until the page has shown everything, however long that takes."""
    ending = threading.Event()
    note = Progress.note

    def noted(progress: Progress, *push: Any) -> None:
        note(progress, *push)
        if ending.is_set():
            progress.elapsed = LONG

    monkeypatch.setattr(Progress, "note", noted)
    commands: queue.Queue[Command] = queue.Queue()
    hub = Hub(commands.put)
    with PageServer(hub, port=0) as server:
        shown = LivePage(hub, server, commands)
        ended = threading.Event()

        def demo() -> None:
            run_demo("((bids auctions) persons)", seconds=LONG, console=QUIET, page=shown)
            ended.set()

        threading.Thread(target=demo, daemon=True).start()
        page.goto(server.address)
        expect(page.locator('[data-key="{auctions, bids}"]')).to_be_visible()
        page.locator("#pin-plan").fill("((bids persons) auctions)")
        page.locator("#pin").click()
        expect(page.locator('[data-key="{bids, persons}"]')).to_be_visible()
        expect(page.locator("#marks button", has_text="plan pinned")).to_have_count(1)
        expect(page.locator("#results-table tbody tr")).not_to_have_count(0)
        ending.set()
        assert ended.wait(LONG)
        expect(page.locator("#status")).to_have_text("stopped")
        expect(page.locator("#commands")).to_be_hidden()


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (800, "light"), (1440, "dark")])
def test_nothing_is_wider_than_the_screen(
    run: Run, browser: Browser, width: int, scheme: str
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    page.goto(run.server.address)
    expect(page.locator("#plan-picture .node")).to_have_count(6)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    picture = page.locator("#plan-picture")
    assert picture.evaluate("each => each.scrollWidth <= each.clientWidth + 1")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(14, 19, 24)") is (scheme == "dark")
    context.close()


def test_everything_can_be_reached_by_keyboard(run: Run, page: Page) -> None:
    page.goto(run.server.address)
    expect(page.locator("#plan-picture .node")).to_have_count(6)
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "document.activeElement.id || document.activeElement.getAttribute('data-key')"
                " || document.activeElement.getAttribute('class') || document.activeElement.tagName"
            )
        )
    assert {
        "theme",
        "export",
        "output",
        "{A}",
        "{A, B}",
        "pin-plan",
        "undo",
        "time-line",
    } <= reached
    assert any(str(each).startswith("event") for each in reached)
    page.locator('[data-key="{A}"]').focus()
    page.keyboard.press("Enter")
    expect(page.locator("#plan-detail")).to_contain_text("asleep")


def test_an_hour_of_a_thousand_cells_leaves_the_page_small(run: Run, page: Page) -> None:
    """Sizes of document and heap after half of the events and after all of them."""
    page.goto(run.server.address)
    cells = synthetic.batch(1, cells=1_000)["cells"]
    session = page.context.new_cdp_session(page)
    sizes = []
    for number in range(20, 420):
        plan = synthetic.FIRST if number // 20 % 2 else synthetic.SECOND
        batch = synthetic.batch(number, plan, cells=1) | {"at": synthetic.at(9 * number)}
        for cell in cells[:700]:
            cell["plan"] = plan
        run.hub.note(batch | {"cells": cells})
        run.hub.note(synthetic.migration(9 * number))
        if number in (219, 419):
            mark = f'#marks button[data-id="{number - 19}"]'
            page.wait_for_selector(mark, state="attached")
            session.send("HeapProfiler.collectGarbage")
            heap = session.send("Runtime.getHeapUsage")["usedSize"]
            sizes.append((page.evaluate("document.querySelectorAll('*').length"), heap))
    expect(page.locator("#cells-summary")).to_contain_text("1,000 cells")
    expect(page.locator("#cells-table tbody tr")).to_have_count(8)
    assert sizes[1][0] < 1.2 * sizes[0][0] < 3_000
    assert sizes[1][1] < 1.5 * sizes[0][1]
