"""``penstock experiment``: lists the experiments, and ``penstock experiment NAME`` runs one."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

EXPERIMENTS = {
    "planners": "planners",
    "sets": "qualified_sets",
    "model": "model_check",
    "jit": "jit.section_vi",
}
"""Names of the command line, and modules of :mod:`penstock.experiments` with ``ABOUT``,
``add_arguments`` and ``run``."""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "experiment",
        help="run an experiment of the papers on this machine",
        description="Run an experiment and print its tables. Everything follows from --seed. "
        "Without a name, list the experiments.",
        epilog="example: penstock experiment planners --streams 3-8 --graphs 20",
    )
    parser.add_argument("name", nargs="?", choices=EXPERIMENTS, metavar="NAME")
    parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="…", help="options of the experiment"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if options.name is None:
        for name, module in EXPERIMENTS.items():
            print(f"{name:10}{_module(module).ABOUT}")
        print("\npenstock experiment NAME --help shows the options of one.")
        return 0
    module = _module(EXPERIMENTS[options.name])
    parser = argparse.ArgumentParser(
        prog=f"penstock experiment {options.name}",
        description=module.ABOUT,
        epilog=f"example: penstock experiment {options.name} --seed 2",
    )
    module.add_arguments(parser)
    module.run(parser.parse_args(options.arguments))
    return 0


def _module(name: str) -> Any:
    return import_module(f"penstock.experiments.{name}")
