"""What is pressed on the page of a run reaches the run, and what came of it reaches the page."""

from __future__ import annotations

import argparse
import io
import queue
from typing import Any

import pytest
from rich.console import Console

from penstock.cli.live_page import LivePage, opened_page
from penstock.cli.run.progress import Progress
from penstock.cli.run.run_job import _Shown, _watch
from penstock.cli.run.view import LineView
from penstock.errors import PlanError
from penstock.telemetry import Event, Order, PlanDecision, Start, Stop
from penstock.ui.hub import Command, Hub
from penstock.ui.model import Seen
from penstock.ui.server import PageServer

BEFORE, AFTER = "((A B) C)", "((A C) B)"


class Run:
    """A run that obeys in the batch after an order, and ends when it has obeyed."""

    def __init__(self) -> None:
        self.ended = False
        self._orders: list[str] = []

    def start(self) -> Event:
        return Start(
            at="2026-01-01T00:00:00Z",
            run="run",
            job="job",
            query="SELECT …",
            plan=BEFORE,
            cells=1,
            placement="1 cell",
            sources={"A": "parquet"},
            sink="kafka",
            versions={},
            accepts=("pin", "undo"),
        )

    def order(self, command: Command) -> Event:
        plan = command.get("plan", "")
        if plan != AFTER:
            return Order("t", "run", command["command"], plan=plan, refused="no such stream")
        self._orders.append(plan)
        return Order("t", "run", command["command"], 1, plan)

    def poll(self, seconds: float) -> list[Event]:
        if not self._orders:
            return []
        self.ended = True
        decided = PlanDecision("t", "run", 1, 0, "pin", BEFORE, self._orders[0], "", 1.0, 10)
        return [decided, Stop("t", "run", "finished", 1, 10, 0, 1.0)]


def test_an_order_goes_to_the_run_and_comes_back_as_a_decision() -> None:
    commands: queue.Queue[Command] = queue.Queue()
    hub = Hub(commands.put)
    said = io.StringIO()
    with PageServer(hub, port=0) as server:
        page = LivePage(hub, server, commands)
        hub.send({"command": "pin", "plan": "((A X) B)"})
        hub.send({"command": "pin", "plan": AFTER})
        run: Any = Run()
        view = LineView(Console(file=said, width=120))
        progress = Progress()
        _watch(run, run.start(), view, progress, _Shown(page, None), None)
    marks = [each["title"] for each in hub.told(Seen())[0]["decisions"]]
    assert marks == ["started", "order refused", "pin ordered", "plan pinned", "stopped"]
    assert f"ordered: pin {AFTER}\ncell 0: pin: plan {AFTER}\n" in said.getvalue()
    assert "pin ((A X) B): refused: no such stream" in said.getvalue()
    assert progress.changes == 1
    assert progress.end is not None


def test_a_command_is_checked_before_it_is_sent() -> None:
    options = argparse.Namespace(ui=True, ui_host="127.0.0.1", ui_port=0, ui_stay=None)
    with opened_page(options, Console(file=io.StringIO())) as page:
        assert page is not None

        def check(command: Command) -> None:
            if "X" in command["plan"]:
                raise PlanError("unknown stream X")

        page.check = check
        with pytest.raises(PlanError, match="unknown stream X"):
            page.server.hub.send({"command": "pin", "plan": "((A X) B)"})
        page.server.hub.send({"command": "pin", "plan": AFTER})
        assert page.commands() == [{"command": "pin", "plan": AFTER}]
