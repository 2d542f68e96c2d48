"""Cells that do something when they have taken their rows in: die, sleep, or hang."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from penstock.spark.operator.cell_processor import CellProcessor


def acting(act: Callable[[CellProcessor], None]) -> type[CellProcessor]:
    """A processor that calls ``act`` when state and live engine have changed."""

    class Acting(CellProcessor):
        def handleInputRows(  # noqa: N802
            self,
            key: Any,
            rows: Iterator[Any],
            timerValues: Any,  # noqa: N803
        ) -> Iterator[Any]:
            yield from super().handleInputRows(key, rows, timerValues)
            act(self)

    return Acting
