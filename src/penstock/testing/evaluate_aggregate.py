"""COUNT, SUM, AVG, MIN and MAX over the values of one group, in plain Python.

NULL arguments are skipped; SUM, AVG, MIN and MAX of no values are NULL. Sums are exact and rounded
once, so they do not depend on the order of the results. NaN is the greatest number.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from penstock.query.expression import Aggregate
from penstock.testing.evaluate_row import WIDE, fit, three_way


def evaluate_aggregate(aggregate: Aggregate, values: Iterable[Any]) -> Any:
    """The aggregate of ``values``: its argument on every result of the group.

    For ``COUNT(*)``, which has no argument, every value counts, also None.
    """
    if aggregate.argument is None:
        return sum(1 for _ in values)
    known = [v for v in values if v is not None]
    if aggregate.function == "count":
        return len(known)
    if not known:
        return None
    if aggregate.function == "min":
        return min(known, key=functools.cmp_to_key(three_way))
    if aggregate.function == "max":
        return max(known, key=functools.cmp_to_key(three_way))
    total = _sum(known)
    if aggregate.function == "avg":
        if isinstance(total, Decimal):
            total = WIDE.divide(total, Decimal(len(known)))
        else:
            total = total / len(known)
    return fit(total, aggregate.type)


def _sum(values: list[Any]) -> Any:
    if isinstance(values[0], Decimal):
        return functools.reduce(WIDE.add, values)
    if isinstance(values[0], float):
        if all(math.isfinite(v) for v in values):
            return math.fsum(values)
        return sum(values)  # infinities and NaN absorb the rest, whatever the order
    return sum(values)
