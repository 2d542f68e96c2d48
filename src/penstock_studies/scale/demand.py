"""From measured rows to what a query asks of a cluster, and how its cost grows with windows."""

from __future__ import annotations

from typing import Any

from penstock_studies.lab.experiment import Row, Rows
from penstock_studies.scale.cluster import Demand, Growth


def growth_of(rows: Rows, window: float) -> Growth:
    """Of the joins measured by window, the one that grows most; 1 at ``window``."""
    found: dict[str, dict[float, float]] = {}
    for row in rows:
        if "join" in row:
            found.setdefault(str(row["join"]), {})[_float(row, "window")] = _float(row, "ns")
    curves = []
    for costs in found.values():
        windows = tuple(sorted(costs))
        raw = Growth(windows, tuple(costs[each] for each in windows))
        base = raw.at(window)
        curves.append(Growth(windows, tuple(each / base for each in raw.factors)))
    if not curves:
        return Growth((1.0,), (1.0,))
    return max(curves, key=lambda each: each.factors[-1])


def demands_of(rows: Rows, cells: int) -> dict[str, Demand]:
    """By query, on so many cells: what was measured of both cells and engine."""
    engines = {str(row["query"]): row for row in rows if "engine_ns" in row}
    return {
        str(row["query"]): _demand(row, engines[str(row["query"])])
        for row in rows
        if row.get("cells") == cells and str(row["query"]) in engines
    }


def engine_window(rows: Rows) -> float:
    """The window in which engines were measured."""
    found = [_float(row, "window") for row in rows if "engine_ns" in row and not row["is_theta"]]
    return found[0] if found else 1.0


def _demand(cells: Row, engine: Row) -> Demand:
    cost = _float(engine, "engine_ns")
    return Demand(
        streams=int(_float(engine, "streams")),
        copies=_float(cells, "copies"),
        share=_float(cells, "share"),
        engine_ns=cost,
        compare_ns=cost / _float(engine, "window") if engine["is_theta"] else 0.0,
        pack_ns=_float(cells, "pack_ns"),
        unpack_ns=_float(cells, "unpack_ns"),
        read_bytes=_float(cells, "read_bytes"),
        copy_bytes=_float(cells, "copy_bytes"),
        state_bytes=_float(engine, "state_bytes"),
        results=_float(engine, "results_per_tuple"),
    )


def _float(row: Row, name: str) -> float:
    value: Any = row[name]
    return float(value)
