"""The run of the demo: step, push, show, until the time is up."""

from __future__ import annotations

import time

from rich.console import Console

import penstock
from penstock.cli.demo.embedded_events import EmbeddedEvents
from penstock.cli.demo.progress import Progress
from penstock.cli.demo.streams import LATENESS, QUERY, SCHEMAS, AuctionHouse
from penstock.cli.demo.surge import SURGE_QUERY, Policy, factor_at, limited
from penstock.cli.demo.view import LiveView, LogView, View
from penstock.cli.kernels_beside import kernels_beside
from penstock.cli.live_page import LivePage

_STEP = 0.05
"""Seconds from one push to the next, with a page."""


def run_demo(
    plan: str = "auto",
    seed: int = 1,
    seconds: float | None = None,
    rows: int | None = None,
    console: Console | None = None,
    page: LivePage | None = None,
    overload: Policy | None = None,
) -> Progress:
    """Run for ``seconds``, or until ``rows`` tuples are in; ``page`` shows the run.

    Without a page the engine goes as fast as it can, with one it leaves room for the browser.
    With a policy for ``overload``, the streams surge beyond a budget now and then.
    """
    query = penstock.parse(QUERY if overload is None else SURGE_QUERY, schemas=SCHEMAS)
    console = console or Console(highlight=False)
    with kernels_beside(console) as wait_for_kernels:
        house = AuctionHouse(seed)
        wait_for_kernels(lambda: False)
    _load_kernels(query, plan)
    engine = penstock.Engine(
        query,
        plan=plan,
        lateness=LATENESS,
        overload="exact" if overload is None else limited(overload),
    )
    view: View = LiveView(console, engine) if console.is_terminal else LogView(console, engine)
    progress = Progress(engine)
    events = EmbeddedEvents(engine, page) if page is not None else None
    with view:
        while True:
            batches = house.step(factor_at(engine.pushes) if overload else 1)
            wall, cpu = time.perf_counter(), time.process_time()
            table = engine.push(batches)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            progress.note(batches, table, wall, cpu)
            view.show(progress)
            if events is not None:
                events.note(batches, table, cpu, progress)
                time.sleep(max(0.0, _STEP - wall))
            if (seconds is not None and progress.elapsed >= seconds) or (
                rows is not None and progress.rows >= rows
            ):
                break
    if events is not None:
        events.end(progress)
    view.summarise(progress)
    return progress


def _load_kernels(query: penstock.JoinGraph, plan: str) -> None:
    """Compile the kernels, or load them, before the clock starts."""
    engine = penstock.Engine(query, plan=plan, lateness=LATENESS)
    house = AuctionHouse()
    for _ in range(5):
        engine.push(house.step())
