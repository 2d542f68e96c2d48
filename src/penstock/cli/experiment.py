"""``penstock experiment``: figures of the papers on this machine, and studies printed as tables.

The experiments are not in the package that users install: they are ``penstock_studies``, beside it
in the repository.
"""

from __future__ import annotations

import argparse
from typing import Any

from penstock.cli.studies import from_studies


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "experiment",
        help="run an experiment of the papers on this machine",
        description="Run experiments: NAME, several names and patterns (jit-10,jtree-*), or all. "
        "Without a name, or with list, list them. What has been measured is kept: an interrupted "
        "run goes on where it stopped.",
        epilog="example: penstock experiment all --quick",
    )
    parser.add_argument("name", nargs="?", default="list", metavar="NAME")
    parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="…", help="options of the experiment"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    code: int = from_studies("command").run(options.name, options.arguments)
    return code
