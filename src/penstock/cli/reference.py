"""The reference page of all commands, made of the parser: ``python -m penstock.cli.reference``.

It is written from what argparse knows, not from its help texts, whose layout depends on the width
of the terminal and on the version of Python.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

HEAD = """\
# Commands

Made of the parser by `make docs`. Every command has `--help`, with an example.
"""


def markdown(parser: argparse.ArgumentParser) -> str:
    """The page for ``parser`` and all of its commands."""
    return HEAD + "\n" + "\n".join(_sections(parser)).rstrip() + "\n"


def _sections(parser: argparse.ArgumentParser) -> Iterator[str]:
    inner = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    own = [a for a in parser._actions if a not in inner and a.help != argparse.SUPPRESS]
    shown = [a for a in own if "--help" not in a.option_strings]
    yield f"## `{parser.prog}`\n"
    if parser.description:
        yield f"{parser.description}\n"
    if shown:
        yield "| | |\n| --- | --- |"
        yield from (f"| `{_name(action)}` | {_help(parser, action)} |" for action in shown)
        yield ""
    if parser.epilog:
        yield f"```text\n{parser.epilog.strip()}\n```\n"
    for action in inner:
        for each in action.choices.values():
            yield from _sections(each)


def _name(action: argparse.Action) -> str:
    if not action.option_strings:
        return str(action.metavar or action.dest)
    names = ", ".join(action.option_strings)
    if action.nargs == 0:
        return names
    choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else None
    value = str(action.metavar or choices or action.dest.upper())
    return f"{names} [{value}]" if action.nargs == "?" else f"{names} {value}"


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    text = (action.help or "") % {**vars(action), "prog": parser.prog}
    return text.replace("|", "\\|")


if __name__ == "__main__":
    from penstock.cli.main import parser

    print(markdown(parser()), end="")
