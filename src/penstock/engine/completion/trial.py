"""What there is to complete after a change of plan, and what came of trying to do it at once."""

from __future__ import annotations

from dataclasses import dataclass

COMPLETED_PER_ROW = 8
"""Old rows and combinations that are completed beside a push for each of its rows: one to two times
its work. To ask for what is missing is Python in every push until nothing is, so that it is cheaper
in all to come to an end soon: of windows of 100,000 after 9 pushes of 1,000 rows instead of 25."""
PER_ROW = 36e-9
LEAST_PER_ROW = 15e-9
"""CPU seconds to complete a row: as measured, with one combination, and at least. Where even that
is too much, nothing is tried."""
PER_PAIR = 3e-9
LEAST_PER_PAIR = 1e-9
"""CPU seconds to compare a row with another where a join has no equal columns, and at least."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a change of plan has left to complete."""

    states: int
    """States that lack combinations."""
    rows: int
    """Rows that are to be joined, of all these states."""
    pairs: int
    """Pairs of rows to compare where there are no equal columns."""

    def __add__(self, other: Work) -> Work:
        return Work(self.states + other.states, self.rows + other.rows, self.pairs + other.pairs)

    @property
    def likely(self) -> float:
        """CPU seconds that it takes, about."""
        return self.rows * PER_ROW + self.pairs * PER_PAIR

    @property
    def least(self) -> float:
        """CPU seconds that it takes at least."""
        return self.rows * LEAST_PER_ROW + self.pairs * LEAST_PER_PAIR


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of completing all within a budget."""

    is_done: bool
    """Whether nothing is missing any more."""
    spent: float
    """CPU seconds."""
    ahead: float
    """CPU seconds that the rest would take."""
    is_least: bool = False
    """Whether nothing was tried, as the least that it can take is too much."""
