"""The server of the page: a few addresses, one stream of updates per page, nothing else.

=============  ==================================================================================
``/``          the page, ``page.js`` and ``page.css``
``/stream``    server-sent events: everything first, then what changed, at most four times a second
``/export``    the page as one file that needs nothing else
``/metrics``   numbers of the run for Prometheus
``/command``   POST with the token: pin a plan, undo the last change
=============  ==================================================================================

On this machine everybody can look, as with Spark's own page. From elsewhere, and for changing the
query, it takes the token that was printed at the start. It is behind the ``#`` of the address,
which browsers do not send; the script of the page, which tells nothing, sends it on. Requests that
came by a foreign name are refused (:mod:`penstock.ui.allowed_host`), as are commands that a page of
another origin sent.

Nothing that a client does costs more than a bounded part of the run's machine: connections and
streams are bounded in number and requests in time (:mod:`penstock.ui.connections`), heads and
bodies in size, requests per connection in number, and a client that does not read is left after
:attr:`_Handler.timeout`.
"""

from __future__ import annotations

import hmac
import io
import ipaddress
import json
import os
import secrets
import socket
import threading
import time
from http import HTTPStatus
from http.client import LineTooLong
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from penstock.errors import OptionError, PenstockError, PlanError
from penstock.plan.notation import read
from penstock.ui.allowed_host import host_is_allowed
from penstock.ui.connections import STREAMS, Connections, Rank
from penstock.ui.hub import Command, Hub
from penstock.ui.model import Seen
from penstock.ui.page import POLICY, exported_page, json_in_markup, live_page, script, style
from penstock.ui.prometheus import KIND, prometheus_text

PORT = 4747
TOKEN = "PENSTOCK_UI_TOKEN"
"""The variable with a token of the user's own, for what reads a page again and again."""
_SHORTEST_TOKEN = 16
"""Characters of a token: fewer could be tried one after another."""
_TRIED = 20
_PAUSE = 0.25
"""Seconds between two messages to a page."""
_LOOK = 1.0
"""Seconds after which a stream looks whether it still has its place."""
_HEARTBEAT = 10.0
"""Seconds of silence after which a page is told that the run is still there."""
_LARGEST_COMMAND = 16_384
"""Bytes of a command. Plans of 20 streams with all probe orders have some thousand."""
_LARGEST_HEAD = 32_768
"""Bytes of the first line of a request and its headers; browsers send one or two thousand."""
_REQUESTS_PER_CONNECTION = 100
"""Requests that one connection may make; then its client has to queue for a place again."""
_WAITING_TO_BE_ACCEPTED = 1024
"""Connections that the system keeps for us until they are accepted: more than the places there
are, so that a crowd that comes at once is not turned away."""


class PageServer:
    """Serves ``hub`` on ``host`` and ``port``; without a port, on the first that is free.

    Use it as a context: inside, it runs in threads of its own.
    """

    def __init__(self, hub: Hub, host: str = "127.0.0.1", port: int | None = None) -> None:
        self.hub = hub
        self.token = os.environ.get(TOKEN) or secrets.token_urlsafe(18)
        if len(self.token) < _SHORTEST_TOKEN:
            raise OptionError(
                f"{TOKEN} has {len(self.token)} characters; expected {_SHORTEST_TOKEN} or more"
            )
        self._host = host
        self._server = _listening(host, port)
        self._server.penstock = self

    def __enter__(self) -> PageServer:
        threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="penstock ui", daemon=True
        ).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.hub.close()
        self._server.shutdown()
        self._server.server_close()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def address(self) -> str:
        """The address for a browser, with the token."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        shown = "localhost" if self._host in ("127.0.0.1", "::1", "0.0.0.0", "::") else host
        return f"http://{shown}:{self.port}/#token={self.token}"

    def allows(self, host: str | None) -> bool:
        return host_is_allowed(host, self._host)

    def has_token(self, given: str | None) -> bool:
        return given is not None and hmac.compare_digest(
            given.encode(errors="replace"), self.token.encode()
        )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = _WAITING_TO_BE_ACCEPTED
    penstock: PageServer

    def __init__(self, address: tuple[str, int], handler: type[_Handler]) -> None:
        self.connections = Connections()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self.connections.admit(request):
            super().process_request(request, client_address)
        else:
            super().shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:
        self.connections.forget(request)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Called by the loop of the server, at least each tenth of a second."""
        self.connections.end_slow(time.monotonic())

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A page that goes away in the middle is no news."""


class _Server6(_Server):
    address_family = socket.AF_INET6


class _BoundedHead(io.RawIOBase):
    """What a client sends, of which lines take at most :data:`_LARGEST_HEAD` bytes per request."""

    def __init__(self, wire: io.BufferedIOBase) -> None:
        self._wire = wire
        self.left = _LARGEST_HEAD

    def readline(self, size: int | None = -1, /) -> bytes:
        line = self._wire.readline(self.left + 1)
        self.left -= len(line)
        if self.left < 0:
            raise LineTooLong("head of a request")
        return line

    def read(self, size: int = -1, /) -> bytes:
        return self._wire.read(size)

    def close(self) -> None:
        self._wire.close()
        super().close()


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 30
    """Seconds that a single read may take, and the whole of a write."""
    disable_nagle_algorithm = True
    """A second request of a connection would wait 40 ms for the client's acknowledgement."""
    server_version = "penstock"
    sys_version = ""

    def setup(self) -> None:
        super().setup()
        self._head_read = _BoundedHead(self.rfile)
        self.rfile = self._head_read  # type: ignore[assignment]
        self._requests = 0

    def handle_one_request(self) -> None:
        self._head_read.left = _LARGEST_HEAD
        self.server.connections.of(self.connection).wait()
        self._requests += 1
        try:
            super().handle_one_request()
        except LineTooLong:  # In the first line, before anything was understood.
            self.close_connection = True

    def do_GET(self) -> None:
        if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            self.close_connection = True  # A body that nobody reads would be the next request.
        if not self._is_ours():
            return
        path, _, given = self.path.partition("?")
        if path in ("/stream", "/export", "/metrics") and not self._may_look(given):
            return
        if path == "/":
            self._answer(HTTPStatus.OK, "text/html; charset=utf-8", live_page())
        elif path == "/page.js":
            self._answer(HTTPStatus.OK, "text/javascript; charset=utf-8", script())
        elif path == "/page.css":
            self._answer(HTTPStatus.OK, "text/css; charset=utf-8", style())
        elif path == "/export":
            message, _ = self.server.penstock.hub.told(Seen())
            self._answer(
                HTTPStatus.OK,
                "text/html; charset=utf-8",
                exported_page(message),
                {"Content-Disposition": 'attachment; filename="penstock.html"'},
            )
        elif path == "/metrics":
            message, _ = self.server.penstock.hub.told(Seen())
            self._answer(HTTPStatus.OK, KIND, prometheus_text(message))
        elif path == "/stream":
            self._stream()
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")

    def do_POST(self) -> None:
        if not self._is_ours():
            return
        ours = self.server.penstock
        if self.path != "/command":
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")
        elif not self._is_same_origin():
            self._refuse(HTTPStatus.FORBIDDEN, "commands come from the page itself")
        elif not ours.has_token(self.headers.get("X-Penstock-Token")):
            self._refuse(HTTPStatus.FORBIDDEN, "open the address that was printed at the start")
        else:
            try:
                command = _command(self._body(), ours.hub.accepts)
                ours.hub.send(command)
            except PenstockError as error:
                self._refuse(HTTPStatus.BAD_REQUEST, str(error))
            else:
                self._answer(HTTPStatus.OK, "application/json", json.dumps({"sent": command}))

    def _stream(self) -> None:
        ours = self.server.penstock
        if not self.server.connections.may_stream(self.connection):
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, f"{STREAMS} pages listen already")
            return
        try:
            self.close_connection = True
            self._head(HTTPStatus.OK, "text/event-stream", {"X-Accel-Buffering": "no"})
            connection = self.server.connections.of(self.connection)
            seen, version, quiet = Seen(), -1, 0.0
            while not ours.hub.closed and not connection.ended:
                now = ours.hub.wait(version, _LOOK)
                if now == version:
                    quiet += _LOOK
                    if quiet < _HEARTBEAT:
                        continue
                    quiet = 0.0
                    self.wfile.write(b":\n\n")
                else:
                    version, quiet = now, 0.0
                    message, seen = ours.hub.told(seen)
                    self.wfile.write(f"data: {json_in_markup(message)}\n\n".encode())
                self.wfile.flush()
                time.sleep(_PAUSE)
        except OSError:
            pass  # The page has gone.

    def _may_look(self, given: str) -> bool:
        """Whether this client may see the run; ``given`` is what follows the ``?``."""
        try:
            tokens = parse_qs(given, max_num_fields=8).get("token", [])
        except ValueError:
            tokens = []
        connection = self.server.connections.of(self.connection)
        if self.server.penstock.has_token(tokens[0] if tokens else None):
            connection.rank = Rank.KNOWN
            return True
        connection.rank = Rank.LOOKING
        if self._is_of_this_machine():
            return True
        self._refuse(HTTPStatus.FORBIDDEN, "open the address that was printed at the start")
        return False

    def _is_of_this_machine(self) -> bool:
        """Whether the client is here, and no proxy that is here asks for somebody elsewhere."""
        if any(name in self.headers for name in ("Forwarded", "X-Forwarded-For", "Via")):
            return False
        address = ipaddress.ip_address(self.client_address[0].partition("%")[0])
        mapped = getattr(address, "ipv4_mapped", None)
        return bool((mapped or address).is_loopback)

    def _is_ours(self) -> bool:
        if self.server.penstock.allows(self.headers.get("Host")):
            return True
        self._refuse(HTTPStatus.FORBIDDEN, "this server is not known by that name")
        return False

    def _is_same_origin(self) -> bool:
        origin = self.headers.get("Origin")
        return origin is None or origin == f"http://{self.headers.get('Host')}"

    def _body(self) -> bytes:
        try:
            size = int(self.headers.get("Content-Length", ""))
        except ValueError:
            size = -1
        if not 0 <= size <= _LARGEST_COMMAND:
            self.close_connection = True
            raise OptionError(f"a command has up to {_LARGEST_COMMAND} bytes, and says how many")
        return self.rfile.read(size)

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        self.close_connection = True
        self._answer(status, "text/plain; charset=utf-8", reason + "\n")

    def _answer(
        self, status: HTTPStatus, kind: str, text: str, more: dict[str, str] | None = None
    ) -> None:
        body = text.encode()
        self._head(status, kind, {"Content-Length": str(len(body)), **(more or {})})
        self.wfile.write(body)

    def _head(self, status: HTTPStatus, kind: str, more: dict[str, str]) -> None:
        connection = self.server.connections.of(self.connection)
        connection.rank = max(connection.rank, Rank.LOOKING)
        if self._requests >= _REQUESTS_PER_CONNECTION:
            self.close_connection = True
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Security-Policy": POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
            **({"Connection": "close"} if self.close_connection else {}),
            **more,
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """The terminal belongs to the run."""


def _command(body: bytes, accepted: list[str]) -> Command:
    """The command in ``body``; :class:`PenstockError` unless it is one that the run takes."""
    try:
        given = json.loads(body)
        name = given["command"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise OptionError('a command is JSON: {"command": "pin", "plan": "((A B) C)"}') from None
    if name not in accepted:
        known = ", ".join(accepted) or "none"
        raise OptionError(f"this run does not take the command {name!r}; it takes: {known}")
    if name == "refresh":
        source = given.get("source")
        if not isinstance(source, str):
            raise OptionError("refresh needs the name of a static relation")
        return {"command": name, "source": source}
    if name != "pin":
        return {"command": name}
    plan = given.get("plan")
    if not isinstance(plan, str):
        raise PlanError("pin needs a plan such as ((A B) C)")
    read(plan)
    return {"command": name, "plan": plan}


def _listening(host: str, port: int | None) -> _Server:
    kind = _Server6 if ":" in host else _Server
    ports = range(PORT, PORT + _TRIED) if port is None else (port,)
    problem: OSError | None = None
    for each in ports:
        try:
            return kind((host, each), _Handler)
        except OSError as error:
            problem = error
    raise OptionError(
        f"cannot serve the page on {host}, port {ports[0]}: {problem}; "
        "choose another one with --port"
    )
