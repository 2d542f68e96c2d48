"""The stateful processor: Spark's side of a cell.

Called once per cell and micro-batch with all packed rows of the cell. Spark commits the state and
the sink's output of a batch together or not at all; :mod:`penstock.spark.state.cell_history` does
the rest.

Before the first batch Spark starts one more Python process, only to ask which state variables there
are. It would load the engine with all that it needs just to answer that. So the work travels packed
and is opened when there are rows, and this module needs nothing but pyspark.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from penstock.spark.private_spark import batch_number

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

    from penstock.spark.operator.cell_work import CellWork

VARIABLE = "header"
"""The state variable, by cell: see :mod:`penstock.spark.state.cell_store`."""
KEY_SCHEMA = "name STRING, part INT"
VALUE_SCHEMA = "bytes BINARY, plain INT"
"""``plain`` is the number of bytes before compression, NULL where there is none."""


class CellProcessor(StatefulProcessor):
    """Does the ``work`` of cells."""

    def __init__(self, work: CellWork) -> None:
        self._packed = pickle.dumps(work)
        self._mark = hashlib.sha256(self._packed).hexdigest()

    def init(self, handle: StatefulProcessorHandle) -> None:
        # Each variable costs every task the same again to set up, so there is only one.
        self._values = handle.getMapState(VARIABLE, KEY_SCHEMA, VALUE_SCHEMA)
        batch = batch_number()
        self._batch = -1 if batch is None else batch

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        work = _opened(self._packed)
        return work.take(int(key[0]), rows, self._values, self._mark, self._batch)

    def close(self) -> None:
        """Nothing is held beyond the cache."""


@lru_cache(maxsize=8)
def _opened(packed: bytes) -> CellWork:
    """The work, the same one in all batches of a worker."""
    work: CellWork = pickle.loads(packed)
    return work
