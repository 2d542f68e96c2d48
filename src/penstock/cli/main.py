"""The command ``penstock``: reads the command line and hands over to one command.

A command is a module with ``add_parser``. What it needs to run (numba, Arrow, rich, DuckDB) is
imported when it runs, so that help is quick. A mistake of the user is one message on stderr and
exit code 2; an interrupt is silent and exits with 130.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence

from penstock.cli import (
    attack,
    calibrate,
    completion,
    experiment,
    explain,
    fuzz,
    init,
    refresh,
    ui,
    warm_up,
)
from penstock.cli.bench import command as bench
from penstock.cli.demo import command as demo
from penstock.cli.doctor import command as doctor
from penstock.cli.interrupt import send_lost_interrupts_again
from penstock.cli.run import command as run
from penstock.errors import PenstockError
from penstock.job.redaction import redacted

USER_ERROR = 2
INTERRUPTED = 130


EPILOG = """\
example: penstock demo --ui     a running join, live in a browser
         penstock init          a commented job file of your own
         penstock run --help    what a command can do, with an example"""


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Gives commands the room that their indentation takes, which argparse forgets."""

    def add_argument(self, action: argparse.Action) -> None:
        super().add_argument(action)
        names = [each.dest for each in self._iter_indented_subactions(action)]
        width = max(map(len, names), default=0) + 2 * self._current_indent
        self._action_max_length = max(self._action_max_length, width)


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line; a parsed command has ``run``."""
    top = argparse.ArgumentParser(
        prog="penstock",
        description="Adaptive multi-way stream joins.",
        epilog=EPILOG,
        formatter_class=_Formatter,
    )
    top.add_argument("--version", action="store_true", help="print the version and exit")
    commands = top.add_subparsers(title="commands", metavar="COMMAND")
    for command in (
        demo,
        init,
        run,
        ui,
        refresh,
        explain,
        doctor,
        bench,
        calibrate,
        experiment,
        attack,
        fuzz,
        warm_up,
        completion,
    ):
        command.add_parser(commands)
    top.set_defaults(parser=top)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    top = parser()
    chosen = top.parse_args(arguments)
    try:
        if chosen.version:
            import penstock

            print(f"penstock {penstock.__version__}")
            return 0
        if not hasattr(chosen, "run"):
            top.print_help()
            return 0
        code: int = chosen.run(chosen)
        return code
    except PenstockError as error:
        print(f"penstock: {redacted(str(error))}", file=sys.stderr)
        return USER_ERROR
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone (`penstock bench | head`): nothing more to say, and nobody to say it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _one_line(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    """A warning as people read it: where in the code it came from is of no use to them."""
    return f"penstock: {message}\n"


def program() -> None:
    """The program ``penstock``: the command line of this process, to the end."""
    send_lost_interrupts_again()
    warnings.formatwarning = _one_line
    sys.exit(main())


if __name__ == "__main__":
    program()
