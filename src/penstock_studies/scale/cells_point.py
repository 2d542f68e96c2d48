"""Cost by cells: one query, from one cell to a thousand; and what its tuples cost an engine."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa

import penstock
from penstock.cells import place, survey
from penstock.cells.placement import HotValues
from penstock_studies.lab.experiment import Parameters, Row
from penstock_studies.scale.cell_query import QUERIES
from penstock_studies.scale.packing_cost import packing_cost
from penstock_studies.scale.spread import spread
from penstock_studies.scale.steady_state import PARTS, steady_state

VALUES = 10
"""Values of a column for each row of the sample: few rows of a stream share one, unless by Zipf."""
_WINDOW = 60_000
"""Milliseconds in the text of the query; the placement does not depend on it."""


def measure_cells(parameters: Parameters, seed: int) -> list[Row]:
    """``query``, ``cells`` (a list as text), ``rows`` of each stream, ``batch`` to be packed."""
    given: Any = parameters
    chosen = QUERIES[given["query"]]
    query = chosen.query(_WINDOW)
    tables = chosen.batch(0, given["rows"], VALUES * given["rows"], seed)
    samples = {name: pa.Table.from_batches([table]) for name, table in tables.items()}
    small = {name: table.slice(0, given["batch"]) for name, table in tables.items()}
    packing_cost(query, place(query, 2), small)  # Loads what is loaded once.
    rows: list[Row] = []
    for cells in map(int, given["cells"].split()):
        hot: HotValues | None = None
        if chosen.hot is not None:
            found_hot = survey(query, samples, cells)
            hot = found_hot.hot if chosen.hot == "values" else found_hot.weights
        start = time.process_time()
        placement = place(query, cells, hot=hot)
        placing = time.process_time() - start
        found = spread(query, placement, tables)
        cost = packing_cost(query, placement, small)
        rows.append(
            {
                "query": chosen.name,
                "cells": cells,
                "placed": placement.cells,
                "grid": " x ".join(str(d.share) for d in placement.dimensions) or "1",
                "hot_values": len(placement.hot),
                "placing_ms": 1000 * placing,
                "copies": found.copies,
                "most_copies": max(found.copies_of(source) for source in tables),
                "skew": found.skew(cells),
                "share": float(found.loads(cells).max()) / sum(found.rows.values()),
                "pack_ns": cost.pack_ns,
                "unpack_ns": cost.unpack_ns,
                "copy_bytes": cost.copy_bytes,
                "read_bytes": cost.read_bytes,
            }
        )
    return rows


def measure_engine(parameters: Parameters, seed: int) -> list[Row]:
    """``query``, ``window`` in rows, ``push`` and ``tuples``, both over all streams."""
    given: Any = parameters
    chosen, window = QUERIES[given["query"]], given["window"]
    push = max(1, given["push"] // len(chosen.columns))
    pushes = max(1, given["tuples"] // (PARTS * push * len(chosen.columns)))
    engine = penstock.Engine(chosen.query(window))

    def batches(start: int, count: int) -> dict[str, pa.RecordBatch]:
        return chosen.batch(start, count, window, seed)

    found = steady_state(engine, batches, window, push, pushes)
    return [
        {
            "query": chosen.name,
            "streams": len(chosen.columns),
            "window": window,
            "is_theta": chosen.is_theta,
            "engine_ns": found.nanoseconds,
            "state_bytes": found.bytes_per_row,
            "results_per_tuple": found.results,
            "plan": str(engine.plan),
        }
    ]
