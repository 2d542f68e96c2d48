"""The page beside a run in this process: ``--ui`` of ``penstock run`` and ``penstock demo``."""

from __future__ import annotations

import argparse
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from penstock.telemetry import Event
    from penstock.ui.hub import Command, Hub
    from penstock.ui.server import PageServer

_COMMANDS_WAITING = 64
"""Commands of the page that the run has not looked at yet: more than a person presses."""


def add_page_options(parser: argparse.ArgumentParser) -> None:
    """Options of every command that can show its run in a browser."""
    parser.add_argument(
        "--ui", action="store_true", help="show the run in a browser; the address is printed"
    )
    parser.add_argument(
        "--ui-port", type=int, metavar="N", help="port of the page (default: a free one from 4747)"
    )
    parser.add_argument(
        "--ui-host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="let others look: listen on this address (default: %(default)s, this machine alone)",
    )
    parser.add_argument(
        "--ui-stay",
        type=float,
        metavar="SECONDS",
        help="how long the page stays when the run has ended or failed (default: until Ctrl-C)",
    )


class LivePage:
    """What a run tells its page, and what the page tells the run."""

    def __init__(
        self,
        hub: Hub,
        server: PageServer,
        commands: queue.Queue[Command],
        stays: float | None = None,
    ) -> None:
        """``stays`` is how many seconds the page stays after the run; None: until Ctrl-C."""
        self.server = server
        self.stays = stays
        self._hub = hub
        self._commands = commands
        self.check: Callable[[Command], object] | None = None
        """Raises what is wrong with a command, before it is said to be sent."""

    def show(self, events: Sequence[Event]) -> None:
        """Show events of the run."""
        from penstock.telemetry.events import to_plain

        self._hub.note_all([to_plain(event) for event in events])

    def show_plain(self, event: Mapping[str, Any]) -> None:
        """Show an event that is a plain object already."""
        self._hub.note(event)

    def show_results(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Show the latest results."""
        self._hub.note_sample(rows)

    def commands(self) -> list[Command]:
        """What the page has asked for since the last call."""
        found = []
        while not self._commands.empty():
            found.append(self._commands.get_nowait())
        return found

    def stay(self, console: Console) -> None:
        """Keep the page there until Ctrl-C, or as long as was said."""
        if self.stays == 0:
            return
        until = "Ctrl-C ends it" if self.stays is None else f"for {self.stays:g} s, or until Ctrl-C"
        console.print(f"the page stays: {self.server.address}  ({until})", soft_wrap=True)
        wait_for_ctrl_c(self.stays)


@contextmanager
def opened_page(options: argparse.Namespace, console: Console) -> Iterator[LivePage | None]:
    """The page of a run, if ``options`` ask for it; its address is printed."""
    if not options.ui:
        yield None
        return
    from penstock.ui.hub import Hub
    from penstock.ui.server import PageServer

    commands: queue.Queue[Command] = queue.Queue(_COMMANDS_WAITING)

    page: LivePage

    def send(command: Command) -> None:
        if page.check is not None:
            page.check(command)
        try:
            commands.put_nowait(command)
        except queue.Full:
            from penstock.errors import OptionError

            raise OptionError(
                f"{_COMMANDS_WAITING} commands wait for the run already; it looks at them between "
                "its micro-batches"
            ) from None

    hub = Hub(send)
    with PageServer(hub, options.ui_host, options.ui_port) as server:
        console.print(f"page: {server.address}", soft_wrap=True, highlight=False)
        page = LivePage(hub, server, commands, options.ui_stay)
        yield page


def wait_for_ctrl_c(seconds: float | None = None) -> None:
    """Wait for Ctrl-C, at most so many ``seconds``."""
    try:
        threading.Event().wait(seconds)
    except KeyboardInterrupt:
        return
