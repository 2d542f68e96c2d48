"""Rates and hot values, observed in a sample.

A placement is better the more is known of the data: rates tell which streams are costly to send to
several cells, and a value that makes up more of a stream than the share of one cell would fill its
cell while others wait. Both are guesses for speed; answers do not depend on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.cells.placement import MOST_HOT, joined_columns
from penstock.query.expression import Column
from penstock.query.join_graph import JoinGraph


@dataclass(frozen=True, slots=True)
class Survey:
    """What :func:`penstock.spark.join` takes as ``rates`` and ``hot``."""

    rates: Mapping[str, float]
    """Rows by source, all over the same time."""
    hot: Mapping[str, list[Any]]
    """The hot values of the join column where they weigh most, if there are any."""


def survey(query: JoinGraph, samples: Mapping[str, Any], cells: int) -> Survey:
    """Look at ``samples`` of the sources: Arrow tables or batch DataFrames over the same time.

    A value is hot for ``cells`` cells if it is in more than one row out of ``cells`` of a stream.
    """
    tables = {
        name: sample if isinstance(sample, pa.Table) else sample.toArrow()
        for name, sample in samples.items()
    }
    rates = {name: float(len(table)) for name, table in tables.items()}
    sources = {s.alias: s.source for s in query.streams}
    best: tuple[int, str, list[Any]] = (0, "", [])
    for columns in joined_columns(query):
        weights: dict[Any, int] = {}
        name = ""
        for alias, expression in columns.items():
            table = tables.get(sources[alias])
            if table is None or not isinstance(expression, Column) or not len(table):
                continue
            name = name or str(expression)
            counted = pc.value_counts(table.column(expression.name).combine_chunks())
            counts = counted.field("counts").to_numpy(zero_copy_only=False)
            for place in np.flatnonzero(counts * cells > len(table)):
                value = counted.field("values")[int(place)].as_py()
                if value is not None:
                    weights[value] = weights.get(value, 0) + int(counts[place])
        ranked = sorted(weights, key=lambda v: (-weights[v], str(v)))[:MOST_HOT]
        best = max(best, (sum(weights[v] for v in ranked), name, ranked), key=lambda b: b[0])
    return Survey(rates, {best[1]: best[2]} if best[2] else {})
