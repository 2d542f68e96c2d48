"""Draws page and terminal of four runs of the demo on Spark: healthy, short of CPU, with a silent
stream, failed.

::

    python docs/images/draw_runs.py healthy|short|silent|failed [CHROMIUM]

Needs Pillow beside what tests need, to cut the pictures and make them small.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from PIL import Image, ImageChops
from playwright.sync_api import sync_playwright
from rich.console import Console

from penstock.cli.demo import spark_demo
from penstock.cli.demo.spark_demo import Arrivals, run_spark_demo
from penstock.cli.live_page import opened_page
from penstock.cli.run import run_job
from penstock.cli.run.progress import Progress
from penstock.cli.run.view import LiveView, show_summary
from penstock.telemetry import Event, Failure

FOLDER = Path(__file__).parent
SECONDS = {"healthy": 20, "short": 5, "silent": 30, "failed": 2}
"""Seconds after the first micro-batch, or what else is waited for."""
HEIGHTS = {"healthy": 740, "short": 860, "silent": 760, "failed": 900}
"""Pixels of the page that are shown: what matters stands at its top."""
_TICKS = 6
"""Deliveries before something happens to a stream."""
_PATIENCE = 180


class Silent(Arrivals):
    """persons sends nothing any more."""

    def _deliver(self) -> None:
        if self._deliveries == _TICKS:
            step = self._house.step

            def without(*factor: float) -> dict[str, Any]:
                found = step(*factor)
                return {**found, "persons": found["persons"].slice(0, 0)}

            self._house.step = without  # type: ignore[method-assign]
        super()._deliver()


class Broken(Arrivals):
    """A page of an error among the files of auctions."""

    def _deliver(self) -> None:
        super()._deliver()
        if self._deliveries == 2 * _TICKS:
            (self._folder / "auctions" / "broken.parquet").write_bytes(b"<html>502</html>\n")


class Recorded:
    """The latest screen of the terminal, and what the run has come to."""

    def __init__(self) -> None:
        self.screen = ""
        self.began: float | None = None
        self.is_short = self.is_silent = False
        self.has_failed = False

    def note(self, view: LiveView, progress: Progress) -> None:
        self.screen = _svg(lambda console: console.print(view.screen(progress)))
        if progress.batches and self.began is None:
            self.began = time.monotonic()
        self.is_short = any(cell.overload.get("short_for") for cell in progress.cells)
        self.is_silent = progress.latest is not None and bool(progress.latest.silent)

    def sum_up(self, console: Console, progress: Progress, *rest: Any) -> None:
        show_summary(console, progress, *rest)
        if isinstance(progress.end, Failure):
            self.screen = _svg(lambda paper: show_summary(paper, progress, *rest))
            self.has_failed = True

    def is_ready(self, case: str) -> bool:
        if case == "failed":
            return self.has_failed
        is_long = self.began is not None and time.monotonic() - self.began > SECONDS[case]
        is_shown = {"short": self.is_short, "silent": self.is_silent}.get(case, True)
        return is_long and is_shown


RECORDED = Recorded()


class RecordedView(LiveView):
    def show(self, progress: Progress, events: list[Event]) -> None:
        super().show(progress, events)
        RECORDED.note(self, progress)


def _svg(draw: Any) -> str:
    paper = Console(record=True, width=104, force_terminal=True, file=io.StringIO())
    draw(paper)
    return paper.export_svg(title="penstock run")


def _kept(picture: Path, name: str, height: int | None, scale: float) -> None:
    """``picture``, cut and made small, as ``name``."""
    image = Image.open(picture).convert("RGB")
    white = Image.new("RGB", image.size, (255, 255, 255))
    box = (0, 0, image.width, height) if height else ImageChops.difference(image, white).getbbox()
    cut = image.crop(box)
    small = cut.resize((int(cut.width * scale), int(cut.height * scale)))
    small.quantize(128).save(FOLDER / name, optimize=True)


def draw(case: str, address: str, program: str) -> None:
    """Wait until the run shows what it is to show, draw it, and end it."""
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.goto(address)
        for _ in range(2 * _PATIENCE):
            if RECORDED.is_ready(case):
                break
            page.wait_for_timeout(500)
        page.wait_for_timeout(1_500)
        picture = Path(folder) / "picture.png"
        page.screenshot(path=picture, full_page=True)
        _kept(picture, f"page-{case}.png", HEIGHTS[case], 0.7)
        (Path(folder) / "screen.svg").write_text(RECORDED.screen)
        page.set_viewport_size({"width": 1300, "height": 1000})
        page.goto(f"file://{folder}/screen.svg")
        page.screenshot(path=picture)
        _kept(picture, f"terminal-{case}.png", None, 0.62)
        browser.close()
    os.kill(os.getpid(), signal.SIGINT)


def main(case: str, program: str) -> int:
    run_job.LiveView = RecordedView  # type: ignore[misc]
    run_job.show_summary = RECORDED.sum_up
    arrivals = {"silent": Silent, "failed": Broken}.get(case, Arrivals)
    spark_demo.Arrivals = arrivals  # type: ignore[misc]
    console = Console(highlight=False, force_terminal=True, width=104, file=io.StringIO())
    options = argparse.Namespace(ui=True, ui_host="127.0.0.1", ui_port=0, ui_stay=60)
    with opened_page(options, console) as page:
        assert page is not None
        threading.Thread(target=draw, args=(case, page.server.address, program)).start()
        policy: Any = "shed" if case == "short" else None
        return run_spark_demo("auto", 1, 600, None, console=console, page=page, overload=policy)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("case", choices=list(SECONDS))
    parser.add_argument("chromium", nargs="?", default=shutil.which("chromium"))
    given = parser.parse_args()
    sys.exit("no chromium: name one" if not given.chromium else main(given.case, given.chromium))
