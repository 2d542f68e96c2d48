"""The run of the demo: step, push, show, until the time is up."""

from __future__ import annotations

import time

from rich.console import Console

import penstock
from penstock.cli.demo.progress import Progress
from penstock.cli.demo.streams import LATENESS, QUERY, SCHEMAS, AuctionHouse
from penstock.cli.demo.view import LiveView, LogView, View


def run_demo(
    plan: str = "auto",
    seed: int = 1,
    seconds: float | None = None,
    rows: int | None = None,
    console: Console | None = None,
) -> Progress:
    """Run for ``seconds``, or until ``rows`` tuples are in."""
    query = penstock.parse(QUERY, schemas=SCHEMAS)
    _load_kernels(query, plan)
    engine = penstock.Engine(query, plan=plan, lateness=LATENESS)
    house = AuctionHouse(seed)
    console = console or Console(highlight=False)
    view: View = LiveView(console, engine) if console.is_terminal else LogView(console, engine)
    progress = Progress(engine)
    with view:
        while True:
            batches = house.step()
            wall, cpu = time.perf_counter(), time.process_time()
            table = engine.push(batches)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            progress.note(batches, table, wall, cpu)
            view.show(progress)
            if (seconds is not None and progress.elapsed >= seconds) or (
                rows is not None and progress.rows >= rows
            ):
                break
    view.summarise(progress)
    return progress


def _load_kernels(query: penstock.JoinGraph, plan: str) -> None:
    """Compile the kernels, or load them, before the clock starts."""
    engine = penstock.Engine(query, plan=plan, lateness=LATENESS)
    house = AuctionHouse()
    for _ in range(5):
        engine.push(house.step())
