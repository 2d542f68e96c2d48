"""A workload in which a few values of some columns are hot.

Of the tuples, ``share`` have one of ``values`` hot values in each of the ``hot`` columns, all
equally likely; the others are uniform. With windows of w tuples on both sides a hot tuple meets
2 w share / values others: few tuples make most of the intermediate results.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.cli.bench.workloads import SEED, Workload


@dataclass(frozen=True)
class HotWorkload(Workload):
    """A workload with hot values."""

    hot: tuple[str, ...] = ()
    share: float = 0.0
    values: int = 1

    def tables(self) -> dict[str, pa.RecordBatch]:
        """The streams, the same in every process. Hot values are negative."""
        tables = super().tables()
        for number, (stream, columns) in enumerate(self.columns.items()):
            random = np.random.default_rng([SEED, number, 1])
            for column in self.hot:
                if column in columns:
                    usual = tables[stream].column(column).to_numpy()
                    hot = -1 - random.integers(0, self.values, self.rows)
                    mixed = np.where(random.random(self.rows) < self.share, hot, usual)
                    at = tables[stream].schema.get_field_index(column)
                    tables[stream] = tables[stream].set_column(at, column, pa.array(mixed))
        return tables

    def to_json(self) -> dict[str, Any]:
        return {
            **super().to_json(),
            "hot": list(self.hot),
            "share": self.share,
            "values": self.values,
        }
