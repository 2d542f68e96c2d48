"""Checks that run something beside the oracle and compare after every push."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import pyarrow as pa

from penstock.query.join_graph import JoinGraph
from penstock.testing.case import Case
from penstock.testing.compare import assert_same_rows


class Runs(Protocol):
    """What an engine has to offer."""

    def push(self, batches: Mapping[str, Any], watermark: int | None = None) -> pa.Table: ...

    def finish(self) -> pa.Table: ...


def check_case(
    case: Case,
    start: Callable[[JoinGraph, Case], Runs],
    between: Callable[[Runs, int], Runs] | None = None,
) -> None:
    """Fail unless the engine of ``start`` answers ``case`` as the oracle does, push by push.

    Rows, their order as far as it is prescribed, and the schema are compared. ``between`` is
    called after each push with the engine and the number of the push, and gives the engine to go
    on with: the place for a migration, or for a checkpoint and a restart.
    """
    graph = case.graph()
    oracle = case.oracle(graph)
    engine = start(graph, case)
    for number, batches in enumerate(case.pushes):
        watermark = case.watermark(number)
        expected = oracle.push(batches, watermark)
        where = f"push {number} of {len(case.pushes)}\n{case}"
        found = engine.push(batches) if watermark is None else engine.push(batches, watermark)
        assert_same_rows(found, expected, graph, instants=oracle.instants, context=where)
        if between is not None:
            engine = between(engine, number)
    expected = oracle.finish()
    found = engine.finish()
    context = f"finish\n{case}"
    assert_same_rows(found, expected, graph, instants=oracle.instants, context=context)
