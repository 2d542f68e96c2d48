"""Random batches of plain rows for tests of the engine."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def streams(
    seed: int, count: int, domain: int, wide: bool, names: str = "ABC"
) -> dict[str, pa.RecordBatch]:
    """A batch of ``count`` rows for each stream, in order of time.

    There are ``domain`` values in each of x, y and z; ``wide`` ones do not fit 32 bits.
    """
    rng = np.random.default_rng(seed)
    values = np.arange(domain) * ((1 << 40) + 1 if wide else 1)
    return {
        name: pa.record_batch(
            {
                **{column: rng.choice(values, count) for column in "xyz"},
                "ts": np.sort(rng.integers(0, 2 * count, count)),
            }
        )
        for name in names
    }
