"""The page on a busy query for an hour: sizes of browser and server, a line of JSON a minute.

::

    python tests/ui/hour_of_the_page.py [MINUTES]

Not a test: what it prints is in docs/how-to/watch-a-run.md. The embedded demo runs in a process of
its own, and a plan is pinned, or a change undone, every eight seconds, so that decisions and plans
reach what is kept of them. Garbage is collected in the browser before each look.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

PLANS = ("((bids auctions) persons)", "((bids persons) auctions)", "(bids auctions persons)")
EVERY = 8.0


@contextmanager
def running_demo(minutes: int) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process of the demo, and the address of its page."""
    length = ["--seconds", str(60 * minutes + 120)]
    command = [sys.executable, "-m", "penstock.cli.main", "demo", "--embedded", "--ui", *length]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [*command, "--ui-port", "0"], stdout=subprocess.PIPE, text=True, env=environment
    ) as demo:
        assert demo.stdout is not None
        found = next(match for line in demo.stdout if (match := re.search(r"http://\S+", line)))
        # Whatever else it says must not fill the pipe.
        drain = subprocess.Popen(["cat"], stdin=demo.stdout, stdout=subprocess.DEVNULL)
        try:
            yield demo, found[0]
        finally:
            demo.terminate()
            drain.terminate()


def give_order(address: str, number: int) -> None:
    page, _, token = address.partition("#token=")
    order = {"command": "pin", "plan": PLANS[number % 3]} if number % 4 else {"command": "undo"}
    headers = {"X-Penstock-Token": token}
    request = urllib.request.Request(f"{page}command", json.dumps(order).encode(), headers)
    urllib.request.urlopen(request, timeout=30).read()


def resident(process: int) -> int:
    pages = Path(f"/proc/{process}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def sizes(page: Page, server: int) -> dict[str, object]:
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    heap = session.send("Runtime.getHeapUsage")["usedSize"]
    nodes = session.send("Memory.getDOMCounters")["nodes"]
    session.detach()
    rows = page.locator("#facts div", has_text="rows in all").locator("dd").inner_text()
    return {"heap": heap, "nodes": nodes, "server": resident(server), "rows": rows}


def main(minutes: int) -> None:
    with running_demo(minutes) as (demo, address), sync_playwright() as driver:
        program = shutil.which("chromium")
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 1600})
        page.goto(address)
        page.wait_for_selector("#status.running", timeout=120_000)
        began = time.monotonic()
        orders = itertools.count(1)
        for minute in range(minutes + 1):
            while time.monotonic() < began + 60 * minute:
                give_order(address, next(orders))
                page.wait_for_timeout(1000 * EVERY)
            print(json.dumps({"minute": minute, **sizes(page, demo.pid)}), flush=True)
        browser.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
