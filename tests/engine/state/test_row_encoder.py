"""Rows that may be in a result, and their keys, against one row at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import penstock
from penstock.engine.state.arrival import SourceRows
from penstock.engine.state.row_encoder import RowEncoder
from penstock.engine.state.windows import Windows
from penstock.values.wiring import wire

A = pa.schema([("ts", pa.int64()), *((name, pa.int64()) for name in "xyz"), ("s", pa.string())])
ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, 1, 2]),
        st.sampled_from([None, 0, 1]),
        st.sampled_from([None, 1, 2]),
        st.sampled_from([None, "", "a"]),
    ),
    max_size=12,
)


def encoder_for(where: str) -> RowEncoder:
    query = penstock.parse(
        f"SELECT A.ts AS t FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] WHERE {where}",
        {"A": A, "B": A},
    )
    wiring = wire(query)
    return Windows(query, wiring, query.by_rows, 1).leaves["A"].encoder


@given(ROWS)
def test_rows_that_fail_or_have_no_key_are_left_out(rows: list[tuple[object, ...]]) -> None:
    """``x / y`` is a key only where ``y <> 0``; ``x`` and ``z`` are in one class with ``B.x``."""
    encoder = encoder_for("A.y <> 0 AND A.x / A.y = B.y AND A.x = B.x AND A.z = B.x AND A.s = B.s")
    columns = {
        name: pa.array([row[n] for row in rows], A.field(name).type)
        for n, name in enumerate(("x", "y", "z", "s"))
    }
    births = np.arange(len(rows), dtype=np.int64)
    chosen, keys = encoder.encode(columns, len(rows))
    expected = [
        number
        for number, (x, y, z, s) in enumerate(rows)
        if y not in (None, 0) and None not in (x, z, s) and x == z
    ]
    assert (list(range(len(rows))) if chosen is None else chosen.tolist()) == expected
    assert encoder.passes(SourceRows(births, columns)).nonzero()[0].tolist() == expected
    assert encoder.direct_keys is None
    for values, expression in zip(keys, encoder.expressions, strict=True):
        name = str(expression).removeprefix("A.")
        if name in ("x", "z"):
            assert values.tolist() == [rows[n][0] for n in expected]
        elif name == "s":
            texts = [rows[n][3] for n in expected]
            same = [[a == b for b in values.tolist()] for a in values.tolist()]
            assert same == [[a == b for b in texts] for a in texts]


def test_plain_columns_need_no_preparation() -> None:
    found = encoder_for("A.x = B.x AND A.s = B.s").direct_keys
    assert found is not None
    assert [(name, kind is None, interner is None) for name, kind, interner in found] == [
        ("x", True, True),
        ("s", False, False),
    ]
    assert encoder_for("A.x = B.x AND A.y > 3").columns == ("x", "y")
