"""The server: what it serves, to whom, and what it refuses."""

from __future__ import annotations

import http.client
import io
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import synthetic_run as synthetic
from rich.console import Console

from penstock.cli.live_page import opened_page
from penstock.cli.main import parser
from penstock.errors import OptionError
from penstock.telemetry import EventLog, Failure
from penstock.ui.allowed_host import host_is_allowed
from penstock.ui.hub import Command, Hub
from penstock.ui.log_feed import LogFeed
from penstock.ui.server import PageServer


@pytest.fixture
def sent() -> list[Command]:
    return []


@pytest.fixture
def hub(sent: list[Command]) -> Hub:
    hub = Hub(sent.append)
    hub.note(synthetic.start(accepts=["pin", "undo"]), synthetic.batch(1))
    return hub


@pytest.fixture
def server(hub: Hub) -> Iterator[PageServer]:
    with PageServer(hub, port=0) as server:
        yield server


def ask(
    server: PageServer, path: str, body: Any = None, **headers: str
) -> tuple[http.client.HTTPResponse, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    text = json.dumps(body) if isinstance(body, dict) else body
    connection.request("GET" if body is None else "POST", path, text, named)
    answer = connection.getresponse()
    return answer, answer.read().decode()


def first_message(server: PageServer) -> dict[str, Any]:
    with socket.create_connection(("127.0.0.1", server.port), 10) as connection:
        connection.sendall(b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        lines = connection.makefile("rb")
        for line in lines:
            if line.startswith(b"data: "):
                message: dict[str, Any] = json.loads(line[6:])
                return message
    raise AssertionError("the stream ended")


@pytest.mark.parametrize("path", ["/", "/page.js", "/page.css", "/export"])
def test_pages_come_with_a_policy(server: PageServer, path: str) -> None:
    answer, text = ask(server, path)
    assert answer.status == 200
    assert text
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_the_stream_begins_with_everything(server: PageServer) -> None:
    message = first_message(server)
    assert message["whole"]
    assert message["start"]["job"] == "synthetic"
    assert message["accepts"] == ["pin", "undo"]


def test_other_addresses_are_refused(server: PageServer) -> None:
    assert ask(server, "/../../etc/passwd")[0].status == 404
    assert ask(server, "/elsewhere", {"command": "undo"})[0].status == 404


@pytest.mark.parametrize(
    ("host", "fine"),
    [
        ("localhost", True),
        ("localhost:4747", True),
        ("127.0.0.1:4747", True),
        ("[::1]:4747", True),
        ("192.168.1.7:4747", True),
        ("box.example:4747", True),
        ("evil.example", False),
        ("localhost.evil.example:4747", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
        (None, False),
    ],
)
def test_hosts(host: str | None, fine: bool) -> None:
    assert host_is_allowed(host, "box.example") is fine


@pytest.mark.parametrize("path", ["/", "/stream", "/export"])
def test_a_rebound_name_is_refused(server: PageServer, path: str) -> None:
    assert ask(server, path, Host="evil.example")[0].status == 403


def test_a_command_needs_the_token_the_origin_and_the_run(
    server: PageServer, hub: Hub, sent: list[Command]
) -> None:
    pin = {"command": "pin", "plan": "((B C) A)"}
    ours = f"http://127.0.0.1:{server.port}"
    assert ask(server, "/command", pin)[0].status == 403
    assert ask(server, "/command", pin, X_Penstock_Token="wrong")[0].status == 403
    token = {"X_Penstock_Token": server.token}
    assert ask(server, "/command", pin, Origin="http://evil.example", **token)[0].status == 403
    assert ask(server, "/command", pin, Host="evil.example", **token)[0].status == 403
    assert sent == []
    assert ask(server, "/command", pin, Origin=ours, **token)[0].status == 200
    assert ask(server, "/command", {"command": "undo"}, **token)[0].status == 200
    assert sent == [pin, {"command": "undo"}]
    hub.note(synthetic.event("stop", 9, reason="finished"))
    answer, text = ask(server, "/command", pin, **token)
    assert answer.status == 400
    assert "takes: none" in text
    assert len(sent) == 2


@pytest.mark.parametrize(
    "body",
    [
        "",
        "no json",
        "[]",
        '{"command": "drop"}',
        '{"command": "pin"}',
        '{"command": "pin", "plan": "(("}',
    ],
)
def test_what_is_no_command_is_refused(server: PageServer, sent: list[Command], body: str) -> None:
    answer, _ = ask(server, "/command", body, X_Penstock_Token=server.token)
    assert answer.status == 400
    assert sent == []


def test_a_large_command_is_refused(server: PageServer) -> None:
    answer, _ = ask(server, "/command", "x" * 100_000, X_Penstock_Token=server.token)
    assert answer.status == 400


def test_a_port_that_is_taken(server: PageServer) -> None:
    with pytest.raises(OptionError, match="--port"):
        PageServer(Hub(), port=server.port)


def test_only_this_machine_unless_told(server: PageServer) -> None:
    assert server._server.server_address[0] == "127.0.0.1"
    assert server.address == f"http://localhost:{server.port}/#token={server.token}"


def test_a_log_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with EventLog(path) as log:
        log.write(Failure("2026-01-01T00:00:00Z", "r", "one"))
        hub = Hub()
        with LogFeed(path, hub) as feed:
            assert feed.events == 1
            log.write(Failure("2026-01-01T00:00:01Z", "r", "two"))
            assert hub.wait(1, 30) == 2


@pytest.mark.parametrize(
    ("host", "shown"),
    [("127.0.0.1", "localhost"), ("0.0.0.0", "localhost"), ("localhost", "localhost")],
)
def test_the_page_of_a_run_listens_where_it_is_told(host: str, shown: str) -> None:
    for command in ("run job.toml", "demo"):
        options = parser().parse_args([*command.split(), "--ui", "--ui-port=0", "--ui-host", host])
        with opened_page(options, Console(file=io.StringIO())) as page:
            assert page is not None
            assert page.server.address.startswith(f"http://{shown}:")
            assert page.server._server.server_address[0] == (
                "127.0.0.1" if host == "localhost" else host
            )
