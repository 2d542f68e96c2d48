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
from penstock.ui.connections import STREAMS, Connections, Rank
from penstock.ui.hub import Command, Hub
from penstock.ui.log_feed import LogFeed
from penstock.ui.server import PageServer, _Handler

PATIENCE_SECONDS = 600
"""How long an answer may take: a busy machine fails no test, and a server that hangs fails one."""


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
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_SECONDS)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    text = json.dumps(body) if isinstance(body, dict) else body
    connection.request("GET" if body is None else "POST", path, text, named)
    answer = connection.getresponse()
    return answer, answer.read().decode()


def first_message(server: PageServer) -> dict[str, Any]:
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_SECONDS) as connection:
        connection.sendall(b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        lines = connection.makefile("rb")
        for line in lines:
            if line.startswith(b"data: "):
                message: dict[str, Any] = json.loads(line[6:])
                return message
    raise AssertionError("the stream ended")


def test_numbers_for_prometheus(server: PageServer, hub: Hub) -> None:
    hub.note(
        synthetic.batch(2)
        | {
            "dropped": {"A": {"late": 3, "no event time": 2}},
            "filtered": {"A": 7},
            "watermark": 1_700_000_000_500,
            "silent": {"B": 90.0},
            "backlog": {"A": 12},
        }
    )
    answer, text = ask(server, "/metrics")
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = text.splitlines()
    for wanted in (
        'penstock_run_info{job="synthetic",run="r"} 1',
        'penstock_status{status="running"} 1',
        'penstock_status{status="failed"} 0',
        'penstock_dropped_rows_total{source="A",reason="no event time"} 2',
        'penstock_filtered_rows_total{source="A"} 7',
        'penstock_silent_seconds{source="B"} 90',
        'penstock_backlog_rows{source="A"} 12',
        "penstock_watermark_seconds 1700000000.5",
        "penstock_batches_total 2",
    ):
        assert wanted in lines
    names = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(names) == len(set(names))
    assert all("e" not in line.rpartition(" ")[2] for line in lines if line[0] != "#")


def test_a_token_of_ones_own(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_UI_TOKEN", "long enough to be one")
    with PageServer(hub, port=0) as server:
        assert server.has_token("long enough to be one")
    monkeypatch.setenv("PENSTOCK_UI_TOKEN", "short")
    with pytest.raises(OptionError, match="16 or more"):
        PageServer(hub, port=0)


def test_a_relation_is_asked_for(server: PageServer, hub: Hub, sent: list[Command]) -> None:
    hub.note(synthetic.start(accepts=["pin", "refresh"], refreshes=["prices"]))
    token = {"X-Penstock-Token": server.token}
    answer, _ = ask(server, "/command", {"command": "refresh", "source": "prices"}, **token)
    assert answer.status == 200
    answer, text = ask(server, "/command", {"command": "refresh"}, **token)
    assert (answer.status, text) == (400, "refresh needs the name of a static relation\n")
    assert sent == [{"command": "refresh", "source": "prices"}]


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
        ("localhost:4747@evil", False),
        ("evil@localhost:4747", False),
        ("localhost:4747/evil", False),
        ("localhost:evil", False),
        ("localhost:", False),
        ("[localhost]", False),
        ("[127.0.0.1]", False),
        ("[::1", False),
        ("::1", False),
        ("localhost evil", False),
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
        "[" * 16_000,
        '{"command": ' * 1_000,
        '{"command": "pin", "plan": "' + "(" * 16_000 + '"}',
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


def connected(server: PageServer, text: bytes = b"") -> socket.socket:
    wire = socket.create_connection(("127.0.0.1", server.port), PATIENCE_SECONDS)
    wire.sendall(text)
    return wire


def stream_of(server: PageServer, token: str = "") -> socket.socket:
    """A page that listens: it has been told everything."""
    path = f"/stream?token={token}" if token else "/stream"
    wire = connected(server, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    answer = wire.makefile("rb").readline()
    assert b"200" in answer, answer
    return wire


def ended(wire: socket.socket) -> bool:
    """Whether the server ends the connection, whatever it has still sent before."""
    try:
        while wire.recv(65_536):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize("path", ["/stream", "/export"])
@pytest.mark.parametrize("header", ["Forwarded", "X-Forwarded-For", "Via"])
def test_from_elsewhere_looking_takes_the_token(
    server: PageServer, path: str, header: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for elsewhere in ("proxy", "client"):
        headers = {header: "for=192.0.2.7"} if elsewhere == "proxy" else {}
        if elsewhere == "client":
            monkeypatch.setattr(_Handler, "_is_of_this_machine", lambda self: False)
        answer, text = ask(server, path, **headers)
        assert answer.status == 403
        assert "printed at the start" in text
        assert ask(server, f"{path}?token=wrong", **headers)[0].status == 403
        assert ask(server, f"{path}?token=%ff", **headers)[0].status == 403
        if path == "/export":
            assert ask(server, f"{path}?token={server.token}", **headers)[0].status == 200


@pytest.mark.parametrize(
    ("address", "here"),
    [
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("192.168.1.7", False),
        ("fe80::1%eth0", False),
    ],
)
def test_what_is_this_machine(address: str, here: bool) -> None:
    handler = _Handler.__new__(_Handler)
    handler.headers = http.client.HTTPMessage()
    handler.client_address = (address, 1)
    assert handler._is_of_this_machine() is here


def test_streams_without_the_token_make_room(server: PageServer) -> None:
    crowd = [stream_of(server) for _ in range(STREAMS)]
    viewers = [stream_of(server, server.token) for _ in range(3)]
    assert all(ended(wire) for wire in crowd[:3])
    late = stream_of(server)
    assert ended(crowd[3])
    for wire in (*crowd, *viewers, late):
        wire.close()


def test_streams_with_the_token_keep_their_places() -> None:
    ends = [socket.socketpair() for _ in range(4)]
    connections = Connections(most=4, streams=2)
    for one, _ in ends:
        assert connections.admit(one)
    for one, _ in ends[:2]:
        connections.of(one).rank = Rank.KNOWN
        assert connections.may_stream(one)
    assert not connections.may_stream(ends[2][0])
    assert not connections.of(ends[0][0]).ended
    for pair in ends:
        for each in pair:
            each.close()


def test_a_crowd_of_silent_connections_locks_nobody_out(
    server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server._server.connections = Connections(most=20)
    crowd = [connected(server) for _ in range(50)]
    for _ in range(5):
        assert ask(server, "/")[0].status == 200
    assert len(server._server.connections) <= 40
    for wire in crowd:
        wire.close()


def test_a_request_that_comes_in_drops_is_ended(
    server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.ui.connections.SECONDS_FOR_A_REQUEST", 0.3)
    wire = connected(server, b"GET / HTTP/1.1\r\nHost: localhost\r\n")
    wire.settimeout(0.02)
    for _ in range(50 * PATIENCE_SECONDS):  # Each drop comes well inside the timeout of a read.
        try:
            wire.sendall(b"X: y\r\n"[:1])
            if not wire.recv(1):
                break
        except TimeoutError:
            continue
        except OSError:
            break
    else:
        raise AssertionError("the server still waits for the rest of the request")
    wire.close()


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"x" * 60_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 60_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + (b"X: " + b"y" * 5_000 + b"\r\n") * 12 + b"\r\n",
    ],
    ids=["path", "header", "headers"],
)
def test_a_large_head_is_refused(server: PageServer, head: bytes) -> None:
    wire = connected(server)
    try:
        wire.sendall(head)
        answer = wire.recv(100)
    except ConnectionError:
        answer = b""
    assert b" 200 " not in answer
    assert ended(wire)
    wire.close()


def test_requests_of_a_connection_are_counted(server: PageServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_SECONDS)
    for request in range(100):
        connection.request("GET", "/page.css")
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
        assert (answer.headers["Connection"] == "close") is (request == 99)
    connection.close()


def test_commands_do_not_pile_up() -> None:
    options = parser().parse_args(["demo", "--ui", "--ui-port=0"])
    with opened_page(options, Console(file=io.StringIO())) as page:
        assert page is not None
        page._hub.note(synthetic.start(accepts=["undo"]))
        token = {"X_Penstock_Token": page.server.token}
        answers = [
            ask(page.server, "/command", {"command": "undo"}, **token)[0].status for _ in range(66)
        ]
        assert answers == [200] * 64 + [400] * 2
        assert len(page.commands()) == 64
