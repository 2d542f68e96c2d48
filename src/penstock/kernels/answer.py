"""The columns of an answer, of the rows that make up its results, in one call.

``code`` has four numbers for each column: which row of the table of results holds the rows of its
stream, where the ring of the column begins, its mask, and the bytes of a value (1, 2, 4 or 8).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.kernel import kernel
from penstock.kernels.pointer import bytes_at, int64s, uint32s
from penstock.kernels.ring import DIGIT, sort_by_digits, survey

Int64s = NDArray[np.int64]

STREAM, RING, MASK, WIDTH = range(4)
COLUMN = 4


@kernel
def answer(
    code: Int64s,
    results: NDArray[np.int64],
    births: int,
    order: NDArray[np.int64],
    out: NDArray[np.int64],
) -> bool:
    """Fill each row of ``out`` with a column, in the order of row ``births`` of ``results``.

    ``order`` is working space for two numbers for each result. False if the births lie too far
    apart to be put in order here; then nothing has been done.
    """
    lowest, highest, rising = survey(results[births])
    count = results.shape[1]
    bits = 0
    if not rising:
        apart = highest - lowest
        if apart < 0 or apart >> (4 * DIGIT):  # Less than nothing is more than 63 bits.
            return False
        while apart >> bits:
            bits += 1
    passes = -(-bits // DIGIT)
    if passes:
        sort_by_digits(results[births], lowest, -(-bits // passes), passes, order)
    else:
        for i in range(count):
            order[0, np.uint64(i)] = i
    positions = order[passes % 2]
    for number in range(out.shape[0]):
        at = COLUMN * number
        rows, mask, width = results[code[at + STREAM]], code[at + MASK], code[at + WIDTH]
        if width == 8:
            whole = int64s(code[at + RING], mask + 1)
            for i in range(count):
                row = rows[np.uint64(positions[np.uint64(i)])]
                out[number, np.uint64(i)] = whole[np.uint64(row & mask)]
        elif width == 4:
            half, halves = uint32s(code[at + RING], mask + 1), out[number].view(np.uint32)
            for i in range(count):
                row = rows[np.uint64(positions[np.uint64(i)])]
                halves[np.uint64(i)] = half[np.uint64(row & mask)]
        else:
            small = bytes_at(code[at + RING], width * (mask + 1))
            parts = out[number].view(np.uint8)
            for i in range(count):
                slot = width * (rows[np.uint64(positions[np.uint64(i)])] & mask)
                for j in range(width):
                    parts[np.uint64(width * i + j)] = small[np.uint64(slot + j)]
    return True
