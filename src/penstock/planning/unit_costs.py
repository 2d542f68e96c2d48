"""What one operation costs: C_i, C_d, C_j of the JTree paper (Table 1), and what they leave out.

The paper charges an insertion, a deletion and a *pair of tuples that join*. With hash indexes a
probe that finds nothing is then free, and a nested loop would cost as much as a hash probe. So
there are three more: a look into a hash index (``probe``), a comparison of a nested loop
(``compare``), and a further index on a row (``index``). Pairs that agree on their keys may have to
pass more: a further comparison (``check``) or an expression over whole rows (``residual``). Some
are the same for every plan of a query, but not free, and a limit in shares of a core has to count
them: ``arrival`` (a tuple is checked, decoded and encoded), ``window`` (it is kept), ``text`` (a
key that is no integer), ``result`` (a result is dated and two of its columns fetched), ``column``
(one more), ``group`` and ``aggregate`` (it goes into its group instead), ``answer`` (the row of a
group leaves, as it has changed at some instant). And tuples come in batches: ``call``, ``push``,
``step`` and ``grouping`` are paid once per batch, so with small batches a plan with few steps is
better. With all these at zero the model is the paper's, term by term.

All are CPU seconds. The defaults are measurements of ``penstock calibrate`` on one machine (2 cores
of a virtual server, batches of 10,000 tuples), rounded; they are there so that a plan can be made
before anybody has calibrated. Between machines the ratios move less than the values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from penstock.errors import OptionError


@dataclass(frozen=True, slots=True)
class UnitCosts:
    """CPU seconds per operation."""

    insert: float = 20e-9
    """C_i: a row goes into a state with one index."""
    delete: float = 1.5e-9
    """C_d: a row leaves a state."""
    join: float = 17e-9
    """C_j: two rows that match become one."""
    probe: float = 7e-9
    """A row looks for its partners in a hash index."""
    compare: float = 0.8e-9
    """A nested loop makes one comparison of a pair."""
    index: float = 9e-9
    """A row goes into one more index of its state."""
    arrival: float = 11e-9
    """A tuple arrives: checked, decoded, its keys encoded."""
    window: float = 21e-9
    """A tuple goes into its window, with one index, and leaves it; C_i + C_d in the paper."""
    result: float = 19e-9
    """A result leaves, with two columns."""
    text: float = 42e-9
    """A key of an arriving tuple is no integer: a text, a decimal, a timestamp of two parts."""
    column: float = 4e-9
    """One more column of a result is fetched."""
    group: float = 90e-9
    """A result goes into its group, is counted there, and leaves it."""
    answer: float = 60e-9
    """A group has changed at an instant: what is told of it is made and leaves."""
    aggregate: float = 70e-9
    """One more aggregate of a result is kept up: SUM, AVG, MIN, MAX."""
    check: float = 7e-9
    """A pair whose keys agree is compared on another column."""
    residual: float = 25e-9
    """An expression over whole rows is evaluated for a pair whose keys agree."""
    call: float = 60e-6
    """A push, however small."""
    push: float = 10e-6
    """A stream has a batch in a push, however small."""
    step: float = 2e-6
    """A batch, however small, goes through one step of a probe order."""
    grouping: float = 300e-6
    """A push changes groups, however few."""
    state: float = 100e-6
    """The rows of a batch go into a state of several streams, if they are many: room is made, and
    what has died is cleared away."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise OptionError(f"cost {field.name} is CPU seconds, not {value!r}")
            if not math.isfinite(value) or value < 0:
                raise OptionError(f"cost {field.name} is 0 seconds or more, not {value!r}")

    def to_json(self) -> dict[str, float]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> UnitCosts:
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                raise OptionError(f"no cost is called {name!r}; they are: {', '.join(known)}")
        return cls(**values)

    @classmethod
    def of_paper(cls, insert: float, delete: float, join: float) -> UnitCosts:
        """C_i, C_d and C_j alone, as in equations 1 to 7."""
        return cls(insert, delete, join, **{**_NO_MORE, "window": insert + delete})


_NO_MORE = {
    field.name: 0.0 for field in fields(UnitCosts) if field.name not in ("insert", "delete", "join")
}

PAPER = UnitCosts.of_paper(insert=2.0e-7, delete=2.0e-7, join=2.2e-6)
"""Table 3 of the paper: a machine with 1.5 GHz, one tuple at a time, in Java."""

PAPER_NESTED_LOOPS = UnitCosts(
    2.0e-7, 2.0e-7, join=0, **{**_NO_MORE, "window": 4.0e-7, "compare": 2.2e-6}
)
"""Table 3 with C_j charged for every pair that a nested loop looks at."""
