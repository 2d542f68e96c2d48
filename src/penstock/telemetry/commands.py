"""Commands for a run, through a file beside its event log.

Who looks at a log may sit in another process than the run. A command is one line of JSON, added to
``NAME.commands`` in one write; the run reads lines from where it began, and never those of an
earlier run.
"""

from __future__ import annotations

import json
import os
from pathlib import Path


def command_file(log: Path) -> Path:
    """The file of commands that belongs to the event log ``log``."""
    return log.with_name(f"{log.name}.commands")


def send_command(log: Path, command: dict[str, str]) -> None:
    """Leave ``command`` for the run that writes ``log``."""
    line = (json.dumps(command, ensure_ascii=False) + "\n").encode()
    file = os.open(command_file(log), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, line)
    finally:
        os.close(file)


class CommandReader:
    """The run's side: commands that were left since it was made."""

    def __init__(self, log: Path) -> None:
        self._file = command_file(log)
        self._place = self._file.stat().st_size if self._file.exists() else 0

    def new(self) -> list[dict[str, str]]:
        """The commands since the last call; what is not a command is passed over."""
        if not self._file.exists() or self._file.stat().st_size <= self._place:
            return []
        with self._file.open("rb") as file:
            file.seek(self._place)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._place += len(whole)
        found = []
        for line in whole.splitlines():
            try:
                command = json.loads(line)
            except ValueError:
                continue
            if isinstance(command, dict) and isinstance(command.get("command"), str):
                found.append({str(name): str(value) for name, value in command.items()})
        return found
