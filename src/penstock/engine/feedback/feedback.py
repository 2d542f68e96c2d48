"""Feedback, as values: how it is given, and the messages that consumers send to producers.

JIT (Yang and Papadias, ICDE 2008, section III) has a consumer tell its producer which sub-tuples
nobody wants now (``suspend``), and when that has changed (``resume``). Here these messages are
records that can be kept, printed and compared; the work that they stand for is done by
:mod:`penstock.engine.feedback.guard`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from penstock.errors import OptionError
from penstock.plan.stream_set import StreamSet

Detection = Literal["auto", "index", "bloom"]
Command = Literal["suspend", "resume"]


@dataclass(frozen=True, slots=True)
class Feedback:
    """How consumers give feedback to producers.

    ``detection``: whether a partner exists is looked up in a hash index (exact), in a Bloom filter
    (smaller; lets some rows through that nobody wants); ``"auto"`` is an index: the two
    cost the same, within a few nanoseconds a row. ``level``: the largest number of
    streams in a sub-tuple that is looked at; None for no limit. ``adaptive``: every guard that does
    not pay for itself steps aside, and is tried again later. ``record``: keep the messages.
    ``guards``: without ``adaptive``, those that are on, as EXPLAIN names them (``"{A} waits for
    {C, D}"``); None for all that agree on an order. Of two that would wait for each other the
    second is left out, and so are those that the plan of the moment does not have.
    """

    detection: Detection = "auto"
    level: int | None = None
    adaptive: bool = True
    record: bool = False
    guards: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.guards is not None:
            object.__setattr__(self, "guards", tuple(self.guards))
            if self.adaptive:
                raise OptionError("guards= needs adaptive=False: else they come and go")
            for name in self.guards:
                if not re.fullmatch(r"\{[^{}]+\} waits for \{[^{}]+\}", name):
                    raise OptionError(f"guards: {name!r} must be like '{{A}} waits for {{C, D}}'")
        if self.detection not in get_args(Detection):
            raise OptionError(f"detection={self.detection!r}: choose from 'auto', 'index', 'bloom'")
        if self.level is not None and (not isinstance(self.level, int) or self.level < 1):
            raise OptionError(f"level={self.level!r} must be a whole number from 1 on, or None")

    def to_json(self) -> dict[str, Any]:
        """As plain values, which :meth:`of` reads."""
        return asdict(self)

    @classmethod
    def of(cls, option: Any) -> Feedback | None:
        """The meaning of the option ``feedback``; None if there is none."""
        if isinstance(option, Feedback):
            return option
        if isinstance(option, Mapping):
            return cls(**option)
        if option is None or option == "off":
            return None
        if option == "jit":
            return cls()
        if option == "bloom":
            return cls(detection="bloom")
        raise OptionError(
            f"feedback={option!r} does not exist; choose from: 'off', 'jit', 'bloom', "
            "or give a Feedback"
        )


@dataclass(frozen=True, slots=True)
class Message:
    """What the join over ``consumer`` tells those who make ``component`` for it.

    ``values`` are encoded values of the columns on which the component is compared with
    ``opposite``; no columns stand for the empty sub-tuple ∅: nothing at all is wanted.
    """

    command: Command
    consumer: StreamSet
    component: StreamSet
    opposite: StreamSet
    columns: tuple[str, ...]
    values: tuple[tuple[int, ...], ...]

    def __str__(self) -> str:
        what = ", ".join(
            "{" + ", ".join(f"{c}={v}" for c, v in zip(self.columns, each, strict=True)) + "}"
            for each in self.values
        )
        return f"({self.consumer}) {self.command} {self.component} {what or '∅'}"
