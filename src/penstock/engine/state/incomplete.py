"""What a state that lacks rows has to offer: completing them on demand.

JIT, JISC and a restart all leave states that do not hold every combination. Whoever probes such a
state completes it first; how is the business of :mod:`penstock.engine.completion`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.values.wiring import KeyColumn, Linking

Int64s = NDArray[np.int64]


class Consumer(Protocol):
    """An incomplete state above another: it needs the rows that the lower one is completed with."""

    def arrive(self, start: int, stop: int) -> None:
        """The lower state was completed with the rows from ``start`` up to ``stop``."""


class Incomplete(Protocol):
    """The rows that a state is missing."""

    above: list[Consumer]

    @property
    def time(self) -> AbstractContextManager[None]:
        """Measures what completing takes."""

    @property
    def completion(self) -> float:
        """Share of the missing rows that were made or have died; 1 when none is missing."""

    @property
    def is_over(self) -> bool:
        """Whether nothing is missing any more."""

    @property
    def share_there(self) -> float:
        """Share of all combinations that the state has."""

    def get_ready(self, keys: tuple[KeyColumn, ...]) -> None:
        """Take the indexes that :meth:`complete` for such ``keys`` will use."""

    def complete(self, keys: tuple[KeyColumn, ...], values: Int64s) -> None:
        """Make what is missing with one of ``values`` in the first of ``keys``."""

    def complete_ranges(self, linking: Linking, ids: Mapping[str, Int64s]) -> None:
        """Make what is missing of what ``ids`` ask for by the comparisons of ``linking``."""

    def complete_all(self) -> None:
        """Make all that is missing."""

    def gap(self, bound: int) -> tuple[int, int] | None:
        """Rows that a probe up to ``bound`` must not see: a half-open range."""

    def dispose(self) -> None:
        """Let go of indexes and inputs."""
