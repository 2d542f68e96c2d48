"""What a person wants to know of a push that would make too much: how many results a row makes, and
the key that most rows have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import TooManyResults
from penstock.query.expression import Column
from penstock.query.join_graph import EquiPredicate, JoinGraph

_ADVICE = "push fewer rows at once, make windows shorter, add a predicate, or raise {limit}"
_LONGEST_VALUE = 60
"""Characters of a value that are shown."""


def explosion(query: JoinGraph, batches: Mapping[str, Any], problem: TooManyResults) -> str:
    """The ``problem`` with ``batches``, how many combinations were foreseen of a row, the key
    behind it, and what can be done."""
    told = [str(problem)]
    rows = sum(_rows(batches.get(name)) for name in query.sources)
    if problem.made and rows:
        each = problem.made / rows
        told.append(
            f"its {rows:,} rows make {problem.made:,} or more, {each:,.{0 if each >= 10 else 1}f} "
            "of each row"
        )
    told.append(_frequent_key(query, batches))
    limit = "max_results" if "max_results" in told[0] else "the limit on memory"
    return "; ".join([*told, _ADVICE.format(limit=limit)])


def _rows(batch: Any) -> int:
    return 0 if batch is None else len(batch)


def _frequent_key(query: JoinGraph, batches: Mapping[str, Any]) -> str:
    """The join, and the key of it, that most rows of ``batches`` have."""
    best: tuple[int, str] | None = None
    for block in query.blocks:
        sources = {stream.alias: stream.source for stream in block.streams}
        for predicate in block.predicates:
            if not isinstance(predicate, EquiPredicate):
                continue
            for side in (predicate.left, predicate.right):
                if not isinstance(side, Column):
                    continue
                found = _most_frequent(batches.get(sources[side.stream]), side.name)
                if found is not None and (best is None or found[0] > best[0]):
                    count, rows, value = found
                    best = (
                        count,
                        (
                            f"in the join {predicate}, {count:,} of {rows:,} rows of {side.stream} "
                            f"have {side} = {value}"
                        ),
                    )
    if best is None:
        return "no equality joins these streams, so that each row meets every other"
    return best[1]


def _most_frequent(batch: Any, column: str) -> tuple[int, int, str] | None:
    """Count of the most frequent value of ``column``, the number of rows, and the value."""
    try:
        counts = pc.value_counts(batch.column(column)).flatten()
        place = pc.index(counts[1], pc.max(counts[1])).as_py()
        value = str(counts[0][place])
    except (pa.ArrowException, AttributeError, KeyError, IndexError, TypeError):
        return None
    shown = value if len(value) <= _LONGEST_VALUE else f"{value[: _LONGEST_VALUE - 1]}…"
    return int(counts[1][place].as_py()), len(batch), shown
