"""An input file as the ledger knows it: its name below the source's folder, bytes, and age."""

from __future__ import annotations

from typing import Any, NamedTuple


class InputFile(NamedTuple):
    """One file of a source."""

    name: str
    """The path below the root of the source, with slashes."""
    size: int
    """Bytes."""
    changed: int
    """Nanoseconds since 1970 at which it was last modified."""

    @property
    def place(self) -> tuple[int, str]:
        """Files are read in this order."""
        return self.changed, self.name

    @classmethod
    def of_json(cls, value: Any) -> InputFile:
        name, size, changed = value
        return cls(str(name), int(size), int(changed))
