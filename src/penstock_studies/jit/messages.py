"""What happened, as values: feedback between operators, and the partial results that were made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.plan.stream_set import StreamSet

Command = Literal["suspend", "resume", "mark", "unmark"]


@dataclass(frozen=True, slots=True)
class Message:
    """⟨command, {components}⟩ from the join over ``consumer`` to the join over ``producer``.

    A component is written as the paper does: ``a1``, ``a1c1``, ``∅``.
    """

    command: Command
    consumer: StreamSet
    producer: StreamSet
    components: tuple[str, ...]

    def __str__(self) -> str:
        what = ", ".join(self.components)
        return f"{_short(self.consumer)} to {_short(self.producer)}: {self.command} {what}"


@dataclass(frozen=True, slots=True)
class Made:
    """A join has made a partial result."""

    producer: StreamSet
    name: str

    def __str__(self) -> str:
        return f"{_short(self.producer)} makes {self.name}"


def _short(streams: StreamSet) -> str:
    return "".join(sorted(streams))
