"""The key that most rows of a push have in common: what a person wants to know of an explosion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.query.expression import Column
from penstock.query.join_graph import EquiPredicate, JoinGraph

ADVICE = (
    "push fewer rows at once, make windows shorter, add a predicate, or raise the limit on memory"
)
_LONGEST = 60
"""Characters of a value that are shown."""


def frequent_key(query: JoinGraph, batches: Mapping[str, Any]) -> str:
    """Which join and which key of it most rows of ``batches`` have, and what can be done."""
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
        return f"no equality joins these streams, so that each row meets every other; {ADVICE}"
    return f"{best[1]}; {ADVICE}"


def _most_frequent(batch: Any, column: str) -> tuple[int, int, str] | None:
    """How often the most frequent value of ``column`` is there, in how many rows, and the value."""
    try:
        counts = pc.value_counts(batch.column(column)).flatten()
        place = pc.index(counts[1], pc.max(counts[1])).as_py()
        value = str(counts[0][place])
    except (pa.ArrowException, AttributeError, KeyError, IndexError, TypeError):
        return None
    shown = value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…"
    return int(counts[1][place].as_py()), len(batch), shown
