"""Bits of validity as Arrow lays them out, against what Arrow says of each value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from penstock.kernels import arrow_struct


@pytest.mark.parametrize("seed", range(20))
def test_null_is_where_arrow_has_it(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = int(random.integers(1, 300))
    nulls = random.random(rows) < random.choice([0.0, 0.01, 0.5])
    nulls[random.integers(0, rows)] = True  # So that there is a buffer.
    whole = pa.array(np.arange(rows), mask=nulls)
    for _ in range(20):
        start = int(random.integers(0, rows))
        part = whole.slice(start, int(random.integers(1, rows - start + 1)))
        (validity, _), offset = part.buffers(), part.offset
        found = [bool(arrow_struct.is_valid(validity.address, offset, i)) for i in range(len(part))]
        assert found == part.is_valid().to_pylist()
        has_null = arrow_struct.has_null(validity.address, offset, len(part))
        assert has_null == (part.null_count > 0)
