"""Comparing an answer with the oracle's rows: as multisets, and in order up to ties.

Rows are compared in their canonical form (NaN is NaN, -0.0 is 0.0, NULL is NULL, nested values by
content). Columns that hold a sum or an average of floats may differ by a relative 1e-9, since the
order of additions is nobody's promise.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any

import pyarrow as pa

from penstock.query.expression import GROUPED, columns_of
from penstock.query.join_graph import JoinGraph
from penstock.testing.python_values import canonical, python_values

RELATIVE_TOLERANCE = 1e-9
ABSOLUTE_TOLERANCE = 1e-12
SHOWN = 8

_CANONICAL = frozenset({int, str, bool, type(None)})
"""Types whose values are canonical as they are: most of all values."""

Row = tuple[Any, ...]


def rows_of(table: pa.Table | pa.RecordBatch) -> list[Row]:
    """The rows of ``table`` as tuples of Python values."""
    if not table.num_columns:
        return [()] * table.num_rows
    return list(zip(*(python_values(column) for column in table.columns), strict=True))


def inexact_columns(graph: JoinGraph) -> frozenset[int]:
    """The positions in the select list that depend on a SUM or AVG of floats."""
    rounded = {
        f"$aggregate{i}"
        for i, aggregate in enumerate(graph.aggregates)
        if aggregate.function in ("sum", "avg") and pa.types.is_floating(aggregate.type)
    }
    return frozenset(
        position
        for position, item in enumerate(graph.select)
        if any(c.stream == GROUPED and c.name in rounded for c in columns_of(item.expression))
    )


def difference(
    actual: Iterable[Row], expected: Iterable[Row], inexact: Collection[int] = ()
) -> str | None:
    """None if both are one multiset of rows, else what is missing and what is too much."""
    got = Counter(_canonical_row(row) for row in actual)
    wanted = Counter(_canonical_row(row) for row in expected)
    return difference_in_counts(got, wanted, inexact)


def difference_in_counts(
    got: Counter[Any], wanted: Counter[Any], inexact: Collection[int] = ()
) -> str | None:
    """The same for multisets of rows in their canonical form."""
    missing, surplus = wanted - got, got - wanted
    if inexact:
        _cancel_close_rows(missing, surplus, inexact)
    if not missing and not surplus:
        return None
    return "\n".join(
        [
            f"{got.total()} rows, expected {wanted.total()}",
            *_listing("missing", missing),
            *_listing("surplus", surplus),
        ]
    )


def surplus(actual: Iterable[Row], expected: Iterable[Row]) -> str | None:
    """None if ``actual`` has no row that is not ``expected``, each as often at most, else which."""
    got = Counter(_canonical_row(row) for row in actual)
    found = got - Counter(_canonical_row(row) for row in expected)
    return "\n".join(_listing("surplus", found)) if found else None


def assert_same_rows(
    actual: pa.Table | pa.RecordBatch,
    expected: Sequence[Row],
    graph: JoinGraph | None = None,
    *,
    instants: Sequence[float] | None = None,
    context: object = "",
) -> None:
    """Fail with a readable message unless ``actual`` holds just the rows ``expected``.

    With ``graph`` the schema is checked too, and float aggregates are compared with tolerance.
    With ``instants`` (:attr:`Oracle.instants`, one per expected row, ascending) the order is
    checked as well: rows of one instant may come in any order, but not before an earlier one.
    """
    inexact = inexact_columns(graph) if graph is not None else frozenset()
    if graph is not None and not actual.schema.equals(graph.schema):
        raise AssertionError(f"{context}\nschema\n{actual.schema}\nexpected\n{graph.schema}")
    rows = rows_of(actual)
    if rows == expected:  # The usual case, in the same order even; NaN is not equal here.
        return
    found = difference(rows, expected, inexact)
    if found is not None:
        raise AssertionError(f"{context}\n{found}")
    start = 0
    while instants is not None and start < len(rows):
        stop = start
        while stop < len(rows) and instants[stop] == instants[start]:
            stop += 1
        found = difference(rows[start:stop], expected[start:stop], inexact)
        if found is not None:
            at = f"order: rows {start} to {stop - 1} should be those of instant {instants[start]}"
            raise AssertionError(f"{context}\n{at}\n{found}")
        start = stop


def _canonical_row(row: Row) -> tuple[Hashable, ...]:
    return tuple(value if type(value) in _CANONICAL else canonical(value) for value in row)


def _cancel_close_rows(
    missing: Counter[tuple[Hashable, ...]],
    surplus: Counter[tuple[Hashable, ...]],
    inexact: Collection[int],
) -> None:
    """Remove pairs of rows that are equal within the tolerance from both sides."""
    for wanted in list(missing):
        for got in list(surplus):
            if _is_close(wanted, got, inexact):
                both = min(missing[wanted], surplus[got])
                missing[wanted] -= both
                surplus[got] -= both
    for counter in (missing, surplus):
        for row in [row for row, count in counter.items() if not count]:
            del counter[row]


def _is_close(left: Row, right: Row, inexact: Collection[int]) -> bool:
    for position, (a, b) in enumerate(zip(left, right, strict=True)):
        if a == b:
            continue
        if position not in inexact or not (isinstance(a, float) and isinstance(b, float)):
            return False
        if not math.isclose(a, b, rel_tol=RELATIVE_TOLERANCE, abs_tol=ABSOLUTE_TOLERANCE):
            return False
    return True


def _listing(title: str, rows: Counter[tuple[Hashable, ...]]) -> list[str]:
    if not rows:
        return []
    lines = [f"{title}: {rows.total()}"]
    shown = sorted(rows.items(), key=lambda item: repr(item[0]))[:SHOWN]
    lines += [f"  {count} x {row}" for row, count in shown]
    if len(rows) > SHOWN:
        lines.append(f"  … and {len(rows) - SHOWN} more")
    return lines
