"""Lateness: how late is too late, and what the watermark is.

Nothing is late unless somebody said how late is too late. A source with a *delay* may be out of
order by that much; a source without one is never late. With ``newest`` the newest event time of
each source so far, the watermark is Spark's:

- ``min`` (the default): the least of ``newest − delay`` over the sources that have a delay; there
  is none until each of them has had a row.
- ``max``: the greatest of them, over those that have had a row.

Sources without a delay have no say in it: they neither hold it back nor move it.

**Idle.** Under ``min`` a silent source holds the watermark, and with it all state, for ever. With
``idle`` a source counts as if it had come as far as the newest of all less ``idle``: so it may
fall behind by that much, and the watermark waits no longer. It goes by event time alone, so
whoever takes in the same rows again decides the same.

**What state may go.** A window keeps its rows until no row that may still come can match them. If
some source is never late, such a row may come from there at any time, so nothing goes.

Embedded, a lateness of None takes all streams to be in order: a delay of zero each, with the
difference that instants are settled when they have been seen (docs/notes/answers.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from penstock.engine.state.clock import END, START
from penstock.errors import OptionError

WatermarkPolicy: TypeAlias = Literal["min", "max"]
POLICIES: tuple[str, ...] = get_args(WatermarkPolicy)


@dataclass(frozen=True, slots=True)
class Lateness:
    """The rule by which an engine moves its watermark. Times are in ticks."""

    delays: Mapping[str, int]
    """Ticks by source; a source that is not here is never late."""
    sources: tuple[str, ...]
    """All sources with an event time."""
    is_declared: bool = False
    """Whether somebody gave a lateness; else streams are taken to be in order."""
    policy: WatermarkPolicy = "min"
    idle: int | None = None

    @classmethod
    def of(
        cls,
        given: int | Mapping[str, int] | None,
        sources: Sequence[str],
        ticks: int,
        policy: WatermarkPolicy = "min",
        idle: int | None = None,
    ) -> Lateness:
        """The rule for ``given`` milliseconds, of ``ticks`` each, for all sources or by source."""
        if isinstance(given, Mapping):
            for name in given:
                if name not in sources:
                    known = ", ".join(sources)
                    raise OptionError(
                        f"lateness is given for {name!r}, which is no stream; streams are: {known}"
                    )
            delays = {name: delay * ticks for name, delay in given.items()}
        else:
            delays = dict.fromkeys(sources, (given or 0) * ticks)
        patience = None if idle is None else idle * ticks
        return cls(delays, tuple(sources), given is not None, policy, patience)

    @property
    def is_for_all(self) -> bool:
        """Whether every source has a delay, so that state can go."""
        return len(self.delays) == len(self.sources)

    def watermark(self, newest: Mapping[str, int]) -> int:
        """The watermark when ``newest`` has been seen; START if there is none yet."""
        if self.policy == "min" and self.idle is None:
            least = END
            for name, delay in self.delays.items():
                reached = newest.get(name)
                if reached is None:
                    return START
                if reached - delay < least:
                    least = reached - delay
            return least if self.delays else START
        seen = [name for name in self.delays if name in newest]
        if not seen:
            return START
        if self.policy == "max":
            return max(newest[name] - self.delays[name] for name in seen)
        assert self.idle is not None
        reached = max(newest[name] for name in seen) - self.idle
        return min(
            max(newest.get(name, reached), reached) - delay for name, delay in self.delays.items()
        )

    def waits_for(self, newest: Mapping[str, int]) -> dict[str, int | None]:
        """The sources that hold the watermark back, with the ticks that each is behind the newest
        of all (None: it has not had a row). Empty if no source is behind another."""
        if self.policy == "max" or not self.is_for_all:
            return {}
        seen = [newest[name] for name in self.delays if name in newest]
        if not seen:
            return {}
        reached = max(seen)
        held = self.watermark(newest)
        if held == START:
            return {name: None for name in self.delays if name not in newest}
        return {
            name: reached - newest[name] if name in newest else None
            for name, delay in self.delays.items()
            if newest.get(name, START) < reached and newest.get(name, START) - delay <= held
        }
