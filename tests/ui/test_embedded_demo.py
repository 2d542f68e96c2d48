"""The embedded demo as events: the page knows what the engine knows, and can change its plan."""

from __future__ import annotations

import io
import queue

from rich.console import Console

from penstock.cli.demo.run import run_demo
from penstock.cli.live_page import LivePage
from penstock.ui.hub import Command, Hub
from penstock.ui.model import Seen
from penstock.ui.server import PageServer


def test_commands_change_the_plan_of_the_running_engine() -> None:
    commands: queue.Queue[Command] = queue.Queue()
    hub = Hub(commands.put)
    with PageServer(hub, port=0) as server:
        for command in (
            {"command": "undo"},
            {"command": "pin", "plan": "((bids persons) auctions)"},
            {"command": "pin", "plan": "((bids X) auctions)"},
            {"command": "undo"},
            {"command": "unpin"},
        ):
            hub.send(command)
        page = LivePage(hub, server, commands)
        quiet = Console(file=io.StringIO())
        progress = run_demo("((bids auctions) persons)", rows=60_000, console=quiet, page=page)
    told, _ = hub.told(Seen())
    assert told["totals"]["rows"] == progress.rows
    assert told["totals"]["results"] == progress.results > 0
    assert told["totals"]["late"] == progress.metrics["late"]
    marks = [(each["kind"], each["title"]) for each in told["decisions"]]
    # Once the plan is let go, the controller may change it.
    passing = (
        *("plan kept", "suspend wave", "resume wave", "migration"),
        *("nothing missing any more", "overtaken by another change"),
    )
    assert [mark for mark in marks if mark[1] not in passing] == [
        ("start", "started"),
        ("order", "order refused"),
        ("decision", "plan pinned"),
        ("order", "order refused"),
        ("decision", "change undone"),
        ("decision", "plan let go"),
        ("stop", "stopped"),
    ]
    undone = next(each for each in told["decisions"] if each["title"] == "change undone")
    assert undone["fields"]["plan"] == "((bids auctions) persons)"
    assert told["sample"]["columns"] == ["ts", "name", "city", "item", "price"]
    numbers = told["trees"][0]["numbers"]
    assert numbers["{persons}"]["rows"] == progress.metrics["state"]["windows"]["persons"]["rows"]
