"""Alerts reach a program and an address, and what they cannot reach is told."""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from penstock.cli.run.alert_sender import AlertSender
from penstock.telemetry import Alert, AlertRules

LATE = Alert("2026-01-01T00:00:00.000Z", "r", "late", "5 % of A came late", False, "A", 0.05, 0.01)
OVER = Alert("2026-01-01T00:01:00.000Z", "r", "late", "1 % of A came late", True, "A", 0.01, 0.01)


def test_a_program_gets_the_alert(tmp_path: Path) -> None:
    file = tmp_path / "told"
    code = (
        "import os, sys; open(sys.argv[1], 'a').write("
        "os.environ['PENSTOCK_ALERT'] + ' ' + os.environ['PENSTOCK_STATE'] + '\\n' "
        "+ sys.stdin.read() + '\\n')"
    )
    complaints: list[str] = []
    rules = AlertRules(command=(sys.executable, "-c", code, str(file)))
    sender = AlertSender(rules, "orders", complaints.append)
    sender.send(LATE)
    sender.send(OVER)
    sender.close()
    assert complaints == []
    first, body, second, _ = file.read_text().splitlines()
    assert (first, second) == ("late begins", "late over")
    told = json.loads(body)
    assert told["text"] == "orders: 5 % of A came late"
    assert (told["job"], told["source"], told["value"], told["limit"]) == (
        "orders",
        "A",
        0.05,
        0.01,
    )


def test_a_webhook_gets_the_alert() -> None:
    posted: list[dict[str, Any]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            posted.append(json.loads(self.rfile.read(size)))
            self.send_response(200 if len(posted) == 1 else 500)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    complaints: list[str] = []
    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/hook"
        sender = AlertSender(AlertRules(webhook=address), "orders", complaints.append)
        sender.send(LATE)
        sender.send(OVER)
        sender.close()
        server.shutdown()
    assert [each["state"] for each in posted] == ["begins", "over"]
    assert posted[1]["text"] == "orders: over: 1 % of A came late"
    (complaint,) = complaints
    assert complaint.startswith("alert not sent: 1 % of A came late: HTTP Error 500")


def test_what_cannot_be_told_is_told_here(tmp_path: Path) -> None:
    complaints: list[str] = []
    rules = AlertRules(command=(str(tmp_path / "nowhere"),), webhook="http://127.0.0.1:9/")
    sender = AlertSender(rules, "orders", complaints.append)
    sender.send(LATE)
    sender.close()
    assert len(complaints) == 2
    assert all(each.startswith("alert not sent: 5 % of A came late: ") for each in complaints)
    failing = AlertRules(command=(sys.executable, "-c", "import sys; sys.exit('no phone')"))
    sender = AlertSender(failing, "orders", complaints.append)
    sender.send(LATE)
    sender.close()
    assert complaints[-1].endswith("the command ended with 1: no phone")
