"""The kernels of completing are loaded before the first change of plan.

A kernel is loaded from disk when it is first called, which takes some milliseconds. Those of a push
are loaded by the first push. Those of completing would be by the first push after a change of plan,
which would take fifty times as long as a normal one: so they are called here once, on next to
nothing, beside the first push of a process, which is long for the same reason.
"""

from __future__ import annotations

import functools

import numpy as np

from penstock.engine.completion.asked_values import AskedValues
from penstock.engine.state.probing import probe_keys
from penstock.engine.state.row_bits import RowBits
from penstock.engine.state.rows import Rows
from penstock.kernels import composites, probe, ring


@functools.cache
def load_kernels() -> None:
    """Load what completing will call, once in a process."""
    one, none = np.zeros(1, np.int64), np.empty(0, np.int64)
    AskedValues(1).fresh(one)
    bits = RowBits.zeros(0, 8)
    bits.close(one)
    bits.are_clear(one)
    bits.clear(one)
    bits.put(0, 1, True)
    bits.count_clear(0, 8)
    ring.take_since(one, 0, one, 0, one.copy(), np.ones(1, np.bool_))
    ring.pick(one, one)
    ring.is_run(one)
    composites.append(np.zeros(composites.FIRST, np.int64), 0, 0, 0, none, none)
    rows = Rows(dated=False)
    rows.add_column(np.int64)
    index = rows.add_index()
    rows.insert(index, 0, one)
    for first in (0, 1):
        probe_keys(one, rows, index, 0, 1, first)
        probe_keys(one, rows, index, 0, 1, first, splits=True)
    pairs = np.empty((1, 1), np.int64)
    out = np.empty((4, 1), np.int64)
    probe.nested_loop(one, pairs, one, one, pairs, one, one, one, 1, out)
    births, deaths = one.copy(), one.copy()
    probe.live_together(births, deaths, one, one, one, 0, 0)
    probe.live_together_for(births, deaths, one, one, 0, 0, 0)
