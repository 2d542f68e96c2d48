"""Rates and hot values, observed in a sample.

A placement is better the more is known of the data: rates tell which streams are costly to send to
several cells, and a value that makes up more of a stream than the share of one cell would fill its
cell while others wait. Both are guesses for speed; answers do not depend on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    weights: Mapping[str, Mapping[Any, Mapping[str, float]]] = field(default_factory=dict)
    """The same with the share of each source's rows that has them. As ``hot`` they make fewer cells
    and copies: each value gets as many cells as it needs."""


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
    chosen: Mapping[str, Any] = {}
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
        weight = sum(weights[v] for v in ranked)
        if weight > best[0]:
            best, chosen = (weight, name, ranked), columns
    _, name, values = best
    if not values:
        return Survey(rates, {})
    shares: dict[Any, dict[str, float]] = {value: {} for value in values}
    for alias, expression in chosen.items():
        table = tables.get(sources[alias])
        if table is not None and isinstance(expression, Column) and len(table):
            column = table.column(expression.name)
            places = pc.index_in(column, pa.array(values, column.type)).drop_null().to_numpy()
            for value, count in zip(
                values, np.bincount(places, minlength=len(values)), strict=True
            ):
                shares[value][sources[alias]] = float(count) / len(table)
    return Survey(rates, {name: values}, {name: shares})
