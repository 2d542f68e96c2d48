"""``penstock ui EVENTS``: the page of a run, finished or running, from its event log."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

EPILOG = """\
example: penstock ui examples/auctions/out/checkpoint.events.jsonl --export run.html

The page is for this machine alone unless --host says otherwise; from elsewhere it takes the
address as it was printed, with its token. A page of a log can look only; pin and undo are for runs
that serve their own page, with --ui."""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "ui",
        help="a page that shows a run, from its event log",
        description="Serve a page that follows the event log of a run, or write the page as one "
        "file that needs nothing else.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "events", metavar="EVENTS", help="the event log, or the folder that it lies in or beside"
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: %(default)s)"
    )
    parser.add_argument(
        "--port", type=int, metavar="N", help="port (default: a free one from 4747)"
    )
    parser.add_argument("--export", metavar="FILE", help="write the page to FILE, and end")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from penstock.ui.hub import Hub
    from penstock.ui.log_feed import LogFeed
    from penstock.ui.model import Seen
    from penstock.ui.page import exported_page
    from penstock.ui.server import PageServer

    log = event_log(Path(options.events))
    hub = Hub()
    feed = LogFeed(log, hub)
    if options.export is not None:
        message, _ = hub.told(Seen())
        file = Path(options.export)
        try:
            file.write_text(exported_page(message), encoding="utf-8")
        except OSError as error:
            from penstock.errors import OptionError

            raise OptionError(f"cannot write {file}: {error.strerror or error}") from None
        print(f"{file}: {feed.events:,} events, {file.stat().st_size / 1e3:,.0f} kB")
        return 0
    from penstock.cli.live_page import wait_for_ctrl_c

    with feed, PageServer(hub, options.host, options.port) as server:
        print(
            f"{log}: {feed.events:,} events\npage: {server.address}  (Ctrl-C ends it)", flush=True
        )
        wait_for_ctrl_c()
    return 0


def event_log(given: Path) -> Path:
    """The log at ``given``; of a folder, the one beside it if it is a checkpoint, or inside it."""
    if not given.is_dir():
        return given
    folder = given.resolve()
    beside = folder.with_name(f"{folder.name}.events.jsonl")
    if beside.is_file():
        return beside
    inside = sorted(given.glob("*.events.jsonl"))
    if len(inside) == 1:
        return inside[0]
    from penstock.errors import InputError

    found = f"has {', '.join(each.name for each in inside)}" if inside else "has no event log in it"
    raise InputError(
        f"{given} is a folder and {found}; name one: a job with the checkpoint folder "
        "out/checkpoint writes out/checkpoint.events.jsonl"
    )
