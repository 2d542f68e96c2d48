"""Draws the pictures of the page: real runs of the demo's streams, in a headless browser.

::

    python docs/images/draw_page.py [CHROMIUM]

``page-migration.png`` is a few seconds after another plan was pinned, with windows of a minute for
all streams: the new state is completed as its keys are asked for. ``page-asleep.png`` is the plan
before that, with guards that are told to stay, and bids asleep. ``page-overload.png`` (dark) and
``page-phone.png`` are of ``penstock demo --embedded --ui --overload defer``, in a surge that the
budget does not cover.
"""

from __future__ import annotations

import argparse
import io
import queue
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright
from rich.console import Console

import penstock
from penstock.cli.demo.embedded_events import EmbeddedEvents
from penstock.cli.demo.progress import Progress
from penstock.cli.demo.run import run_demo
from penstock.cli.demo.streams import LATENESS, QUERY, SCHEMAS, AuctionHouse
from penstock.cli.live_page import LivePage
from penstock.ui.hub import Command, Hub
from penstock.ui.server import PageServer

FOLDER = Path(__file__).parent
LAPTOP, PHONE = ViewportSize(width=1280, height=1120), ViewportSize(width=390, height=844)
FIRST, SECOND = "((bids auctions) persons)", "((bids persons) auctions)"
STEP = 0.12
"""Seconds from one push to the next: as many as it takes to see a migration."""


def run_long_windows(page: LivePage) -> None:
    """The demo with windows of a minute or more for all streams."""
    query = penstock.parse(QUERY.replace("[NOW]", "[RANGE 1 MINUTE]"), schemas=SCHEMAS)
    feedback = penstock.Feedback(adaptive=False)  # It would step aside: a bid makes one partial.
    engine = penstock.Engine(query, plan=FIRST, lateness=LATENESS, feedback=feedback)
    house, progress = AuctionHouse(), Progress(engine)
    events = EmbeddedEvents(engine, page)
    while True:
        batches = house.step()
        wall, cpu = time.perf_counter(), time.process_time()
        table = engine.push(batches)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        progress.note(batches, table, wall, cpu)
        events.note(batches, table, cpu, progress)
        time.sleep(max(0.0, STEP - wall))


def run_overload(page: LivePage) -> None:
    quiet = Console(file=io.StringIO())
    run_demo(FIRST, seconds=600, console=quiet, page=page, overload="defer")


@contextmanager
def running(run: Callable[[LivePage], None]) -> Iterator[str]:
    """The address of the page of ``run``, which goes on in this process."""
    commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
    hub = Hub(commands.put)
    with PageServer(hub, port=0) as server:
        page = LivePage(hub, server, commands)
        threading.Thread(target=run, args=(page,), daemon=True).start()
        yield server.address


def opened(browser: Browser, address: str, size: ViewportSize, dark: bool = False) -> Page:
    scheme = "dark" if dark else "light"
    page = browser.new_page(viewport=size, color_scheme=scheme, device_scale_factor=1.5)
    page.goto(address)
    expect(page.locator("#plan-picture .node").first).to_be_visible(timeout=60_000)
    return page


def draw(program: str) -> None:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        with running(run_long_windows) as address:
            page = opened(browser, address, LAPTOP)
            page.wait_for_timeout(16_000)
            page.locator("#plan").screenshot(path=FOLDER / "page-asleep.png")
            page.locator("#pin-plan").fill(SECOND)
            page.locator("#pin").click()
            page.locator("#marks button", has_text="plan pinned").click()
            expect(page.locator("#plan-picture .warn")).to_be_visible(timeout=120_000)
            page.wait_for_timeout(3_500)
            page.screenshot(path=FOLDER / "page-migration.png", full_page=True)
        with running(run_overload) as address:
            page = opened(browser, address, LAPTOP, dark=True)
            phone = opened(browser, address, PHONE)
            expect(page.locator("#overload.short")).to_be_visible(timeout=120_000)
            page.locator("#marks button", has_text="short of CPU").click()
            page.wait_for_timeout(2_000)
            page.screenshot(path=FOLDER / "page-overload.png", full_page=True)
            phone.screenshot(path=FOLDER / "page-phone.png")
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("chromium", nargs="?", default=shutil.which("chromium"))
    given = parser.parse_args().chromium
    sys.exit("no chromium: name one") if given is None else draw(given)
