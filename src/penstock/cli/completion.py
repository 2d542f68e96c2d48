"""``penstock completion SHELL``: commands and options for the Tab key, made of the parser."""

from __future__ import annotations

import argparse
from typing import Any

BASH = """\
_penstock() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" words=""
  case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  [ "$COMP_CWORD" -eq 1 ] && words="{commands}"
  if [ -n "$words" ] && {{ [ "$COMP_CWORD" -eq 1 ] || [ "${{word#-}}" != "$word" ]; }}; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}}
complete -o filenames -F _penstock penstock
"""
ZSH = "autoload -U +X bashcompinit && bashcompinit\n" + BASH
SHELLS = ("bash", "zsh", "fish")
EPILOG = """\
example: penstock completion fish > ~/.config/fish/completions/penstock.fish

For bash, add this line to ~/.bashrc (or, with zsh in place of bash, to ~/.zshrc):
eval "$(penstock completion bash)"
"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "completion",
        help="print what a shell needs to complete commands and options",
        description="Print a script that lets the Tab key complete commands, options and files.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=SHELLS, help="for which shell")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    print(script(options.shell, options.parser), end="")
    return 0


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """The script of ``shell`` for ``parser``."""
    commands = commands_of(parser)
    if shell == "fish":
        lines = ["complete -c penstock -n __fish_use_subcommand -a " + _quoted(" ".join(commands))]
        for name, options in commands.items():
            lines += [
                f"complete -c penstock -n '__fish_seen_subcommand_from {name}' -l {option[2:]}"
                for option in options
                if option.startswith("--")
            ]
        return "\n".join(lines) + "\n"
    cases = "\n".join(
        f'    {name}) words="{" ".join(options)}" ;;' for name, options in commands.items()
    )
    template = BASH if shell == "bash" else ZSH
    return template.format(cases=cases, commands=" ".join(commands))


def commands_of(parser: argparse.ArgumentParser) -> dict[str, list[str]]:
    """The options of each command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return {
                name: [each for inner in command._actions for each in inner.option_strings]
                for name, command in action.choices.items()
            }
    return {}


def _quoted(text: str) -> str:
    return f"'{text}'"
