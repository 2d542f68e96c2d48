"""The queries of the first-batch experiment: every kind of join and of answer over three streams.

Each row has about one partner in each other stream, so that no case is about large results. The
plans of a case are those between which it goes to and fro.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import sqrt
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import penstock

Kind = Literal["equal", "less", "band"]
_SCALE = 1 << 40
"""Values of a comparison that is not an equality are spread over so many."""
_COLUMNS = ("id", "ts", "x", "y")


@dataclass(frozen=True)
class Case:
    """A query over A, B and C, and how an engine runs it."""

    where: str = "A.x = B.x AND A.y = C.y"
    kind: Kind = "equal"
    select: str = "A.id AS a, B.id AS b, C.id AS c"
    rest: str = ""
    """What follows the predicates; ``{window}`` is that of a stream."""
    streams: str = "ABC"
    window: str = "RANGE {} MILLISECONDS"
    is_text: bool = False
    """Whether keys are strings."""
    plans: tuple[str, str] = ("((A B) C)", "((A C) B)")
    most: int = 1_000_000
    """Rows of a window, at most: nested loops look at all of them for each row."""
    options: Mapping[str, Any] = field(default_factory=lambda: {"feedback": "off"})

    @property
    def schema(self) -> pa.Schema:
        key = pa.string() if self.is_text else pa.int64()
        kinds = (pa.int64(), pa.int64(), key, key)
        return pa.schema(list(zip(_COLUMNS, kinds, strict=True)))

    def query(self, rows: int) -> penstock.JoinGraph:
        """The query with windows of ``rows``."""
        window = self.window.format(rows)
        width = max(1, _SCALE // (2 * rows))
        text = (
            f"SELECT {self.select} FROM {', '.join(f'{s} [{window}]' for s in 'ABC')} "
            f"WHERE {self.where.format(width=width)} {self.rest.format(window=window)}"
        )
        return penstock.parse(text, schemas=dict.fromkeys(self.streams, self.schema))

    def batch(
        self, times: NDArray[np.int64], rows: int, chance: np.random.Generator
    ) -> dict[str, pa.Table]:
        """Rows of each stream born at ``times``, for windows of ``rows``."""
        return {
            name: pa.table(
                [times, times, *(self._values(c, len(times), rows, chance) for c in "xy")],
                schema=self.schema,
            )
            for name in self.streams
        }

    def _values(
        self, column: str, count: int, rows: int, chance: np.random.Generator
    ) -> pa.Array | NDArray[np.int64]:
        if self.kind == "equal":
            drawn = chance.integers(0, rows, count)
            return pa.array(drawn).cast(pa.string()) if self.is_text else drawn
        values = chance.integers(0, _SCALE, count)
        if self.kind == "less" and column == "y":
            # x < y for one pair in so many as a window has rows.
            values += int(_SCALE * sqrt(2 / rows)) - _SCALE
        return values


CASES = {
    "two-columns": Case(),
    "one-column": Case("A.x = B.x AND A.x = C.x"),
    "theta": Case(
        "A.x < B.y AND B.x < C.y",
        "less",
        plans=("((A B) C)", "(A (B C))"),
        most=20_000,
    ),
    "band": Case(
        "A.x BETWEEN B.x - {width} AND B.x + {width} "
        "AND B.y BETWEEN C.y - {width} AND C.y + {width}",
        "band",
        plans=("((A B) C)", "(A (B C))"),
        most=20_000,
    ),
    "except": Case(
        select="A.id AS a",
        rest="EXCEPT SELECT D.x AS a FROM D [{window}]",
        streams="ABCD",
        plans=("((A B) C) - D", "((A C) B) - D"),
    ),
    "group-by": Case(select="A.x AS x, COUNT(*) AS n, SUM(C.id) AS s", rest="GROUP BY A.x"),
    "rows": Case(window="ROWS {}"),
    "strings": Case(is_text=True),
    "feedback": Case(options={"feedback": "jit"}),
    "budget": Case(options={"feedback": "off", "overload": penstock.Overload("shed", cpu=0.9)}),
}
