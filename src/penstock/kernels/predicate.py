"""A predicate over rows of several streams, as a small program on a stack of columns.

A program is a list of instructions, :data:`INSTRUCTION` numbers each: what to do (the operations
below), and what it needs to know. Candidates are taken :data:`BLOCK` at a time, and every
instruction works on all of them before the next one begins: a compiled loop for each, nothing
allocated in between. A place of the stack has a number of 64 bits for each candidate, floats by
their bits (those of 32 bits widened, which is exact), and a status: :data:`NULL`, :data:`VALUE`, or
:data:`FAILED` where computing it is an error (overflow, division by zero).

The meaning is that of :mod:`penstock.values.evaluate`. Arithmetic on NULL is NULL; an error in an
operand is an error whatever the other one is. A condition is compiled for the one truth that is
asked for (true, or false below NOT), so its answer is :data:`NO`, :data:`YES` or :data:`FAILED`: a
comparison with NULL is neither true nor false, and hence "no" in both cases. Operands of AND and OR
are taken from left to right, and an error in one does not count where those before it have decided.

NaN equals itself and is greater than every number; -0.0 equals 0.0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray
from numpy.typing import NDArray

from penstock.kernels.kernel import kernel
from penstock.kernels.pointer import bytes_at, int64s, pointer, uint32s
from penstock.kernels.probe import holds

Int64s = NDArray[np.int64]
Bytes = NDArray[np.uint8]

(
    LOAD,
    CONSTANT,
    ADD,
    SUBTRACT,
    MULTIPLY,
    REMAINDER,
    NEGATE,
    ABSOLUTE,
    CHECK_RANGE,
    ADD_FLOATS,
    SUBTRACT_FLOATS,
    MULTIPLY_FLOATS,
    DIVIDE_FLOATS,
    REMAINDER_OF_FLOATS,
    NEGATE_FLOAT,
    ABSOLUTE_FLOAT,
    TO_FLOAT,
    COALESCE,
    COMPARE,
    COMPARE_FLOATS,
    IS_NULL,
    KNOWN,
    ALL,
    ANY,
) = range(24)
INSTRUCTION = 6
"""Numbers of an instruction: the operation, and

- ``LOAD``: kind of the values, address of the ring, its mask, the slot that has the rows, and the
  address of the ring of bytes that tell which values are not NULL (0: all);
- ``CONSTANT``: its bits and its status; ``KNOWN``: the answer;
- arithmetic on integers and ``CHECK_RANGE``: the least and the greatest value of the type, and for
  ``CHECK_RANGE`` a factor; arithmetic on floats: whether they have 32 bits;
- comparisons: the operator (:mod:`~penstock.kernels.probe`); ``IS_NULL``: the truth asked for."""

INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, FLOAT32, FLOAT64 = range(9)
"""Kinds of values in rings."""
NULL, VALUE, FAILED = range(3)
NO, YES = range(2)
BLOCK = 1024
"""Candidates that an instruction works on at a time: a stack of four takes 36 KiB."""
_FACTOR_LIMIT = 1 << 31
"""Products of integers below that fit 64 bits."""
_LEAST_INT64 = np.int64(-(2**63))


@kernel
def _read(
    kind: int, address: int, mask: int, rows: Int64s, values: Int64s, floats: NDArray[np.float64]
) -> None:
    count = rows.shape[0]
    if kind == INT64:
        column = int64s(address, mask + 1)
        for i in range(count):
            values[np.uint64(i)] = column[np.uint64(rows[np.uint64(i)] & mask)]
    elif kind == FLOAT64:
        doubles = carray(pointer(address), (mask + 1,), np.float64)
        for i in range(count):
            floats[np.uint64(i)] = doubles[np.uint64(rows[np.uint64(i)] & mask)]
    elif kind == FLOAT32:
        singles = carray(pointer(address), (mask + 1,), np.float32)
        for i in range(count):
            floats[np.uint64(i)] = singles[np.uint64(rows[np.uint64(i)] & mask)]
    elif kind == INT32:
        words = carray(pointer(address), (mask + 1,), np.int32)
        for i in range(count):
            values[np.uint64(i)] = words[np.uint64(rows[np.uint64(i)] & mask)]
    elif kind == UINT32:
        wholes = uint32s(address, mask + 1)
        for i in range(count):
            values[np.uint64(i)] = np.int64(wholes[np.uint64(rows[np.uint64(i)] & mask)])
    else:
        _read_short(kind, address, mask, rows, values)


@kernel
def _read_short(kind: int, address: int, mask: int, rows: Int64s, values: Int64s) -> None:
    count = rows.shape[0]
    is_byte = kind in (INT8, UINT8)
    bits = 8 if is_byte else 16
    sign = np.int64(1) << (bits - 1) if kind in (INT8, INT16) else np.int64(0)
    parts = bytes_at(address, (mask + 1) * (bits >> 3))
    for i in range(count):
        row = rows[np.uint64(i)] & mask
        if is_byte:
            value = np.int64(parts[np.uint64(row)])
        else:
            value = np.int64(parts[np.uint64(2 * row)])
            value |= np.int64(parts[np.uint64(2 * row + 1)]) << 8
        values[np.uint64(i)] = (value ^ sign) - sign


@kernel
def _multiply(x: int, y: int) -> tuple[np.int64, bool]:
    """The product, and whether it fits 64 bits. That signed numbers overflow is something that a
    compiler may take to be impossible; unsigned ones may."""
    product = np.int64(np.uint64(x) * np.uint64(y))
    if -_FACTOR_LIMIT < x < _FACTOR_LIMIT and -_FACTOR_LIMIT < y < _FACTOR_LIMIT:
        return product, True
    if x == 0 or y == 0:
        return product, True
    if (x == -1 and y == _LEAST_INT64) or (y == -1 and x == _LEAST_INT64):
        return product, False
    if y == -1:
        return product, True
    return product, bool(product // y == x and product % y == 0)


@kernel
def _compute(
    operation: int, least: int, most: int, x: Int64s, y: Int64s, own: Bytes, other: Bytes
) -> None:
    """Arithmetic on integers: ``x`` becomes the answer, ``own`` its status."""
    for k in range(x.shape[0]):
        i = np.uint64(k)
        a, b = x[i], y[i]
        fits = True
        if operation == ADD:
            answer = np.int64(np.uint64(a) + np.uint64(b))
            fits = ((a ^ answer) & (b ^ answer)) >= 0
        elif operation == SUBTRACT:
            answer = np.int64(np.uint64(a) - np.uint64(b))
            fits = ((a ^ b) & (a ^ answer)) >= 0
        elif operation == MULTIPLY:
            answer, fits = _multiply(a, b)
        else:
            fits = b != 0
            answer = np.int64(0)
            if fits and b != -1:
                answer = a % b
                if answer != 0 and (a < 0) != (b < 0):
                    answer -= b
        fits = bool(fits and least <= answer <= most)
        x[i] = answer
        own[i] = _together(own[i], other[i], fits)


@kernel
def _together(own: int, other: int, fits: bool) -> int:
    if own == VALUE and other == VALUE:
        return VALUE if fits else FAILED
    return FAILED if own == FAILED or other == FAILED else NULL


@kernel
def _compute_floats(
    operation: int,
    is_short: bool,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    own: Bytes,
    other: Bytes,
) -> None:
    """The same on floats. Rounded to 64 bits and then to 32, they are rounded right: 53 bits are
    more than twice 24."""
    for k in range(x.shape[0]):
        i = np.uint64(k)
        a, b = x[i], y[i]
        fits = True
        if operation == ADD_FLOATS:
            answer = a + b
        elif operation == SUBTRACT_FLOATS:
            answer = a - b
        elif operation == MULTIPLY_FLOATS:
            answer = a * b
        else:
            fits = b != 0.0
            answer = 0.0
            if fits:
                answer = a / b if operation == DIVIDE_FLOATS else np.fmod(a, b)
        x[i] = np.float64(np.float32(answer)) if is_short else answer
        own[i] = _together(own[i], other[i], fits)


@kernel
def _change(
    operation: int, least: int, most: int, factor: int, x: Int64s, f: Any, own: Bytes
) -> None:
    """Operations on one operand."""
    for k in range(x.shape[0]):
        i = np.uint64(k)
        if operation == NEGATE_FLOAT:
            f[i] = -f[i]
        elif operation == ABSOLUTE_FLOAT:
            f[i] = abs(f[i])
        elif operation == TO_FLOAT:
            f[i] = np.float64(x[i])
        else:
            value = x[i]
            fits = True
            if operation == NEGATE or (operation == ABSOLUTE and value < 0):
                fits = value != _LEAST_INT64
                value = -value if fits else value
            elif operation == CHECK_RANGE and factor != 1:
                value, fits = _multiply(value, factor)
            x[i] = value
            if own[i] == VALUE and not (fits and least <= value <= most):
                own[i] = FAILED


@kernel
def _compare_floats(operator: int, a: float, b: float) -> bool:
    """By the order of Spark: as integers, with NaN the greatest."""
    first = np.int64(2) if a != a else np.int64(a > b) - np.int64(a < b)
    second = np.int64(0)
    if b != b:
        second = np.int64(2)
        if a == a:
            first = np.int64(0)
    return bool(holds(operator, first, second))


@kernel
def _combine(
    operation: int,
    operator: int,
    x: Int64s,
    y: Int64s,
    f: NDArray[np.float64],
    g: NDArray[np.float64],
    own: Bytes,
    other: Bytes,
) -> None:
    """Logic, comparisons and COALESCE: ``own`` becomes the answer, or ``x`` with its status."""
    for k in range(x.shape[0]):
        i = np.uint64(k)
        if operation == ALL:
            if own[i] == YES:
                own[i] = other[i]
        elif operation == ANY:
            if own[i] == NO:
                own[i] = other[i]
        elif own[i] == FAILED or other[i] == FAILED:
            own[i] = FAILED
        elif operation == COALESCE:
            if own[i] != VALUE:
                x[i], own[i] = y[i], other[i]
        elif own[i] == NULL or other[i] == NULL:
            own[i] = NO
        elif operation == COMPARE:
            own[i] = holds(operator, x[i], y[i])
        else:
            own[i] = _compare_floats(operator, f[i], g[i])


@kernel
def _run(
    code: Int64s,
    at: int,
    size: int,
    made: NDArray[np.int64],
    keep: Int64s,
    rows: Int64s,
    values: NDArray[np.int64],
    status: NDArray[np.uint8],
) -> None:
    """Run a program of ``size`` instructions on the candidates ``keep``: the answer is in
    ``status[0]``."""
    count = keep.shape[0]
    floats = values.view(np.float64)
    top = -1
    for step in range(size):
        place = at + INSTRUCTION * step
        operation, first, second = code[place], code[place + 1], code[place + 2]
        if operation == LOAD:
            top += 1
            slot, flags = made[code[place + 4]], code[place + 5]
            mask = code[place + 3]
            for i in range(count):
                rows[np.uint64(i)] = slot[np.uint64(keep[np.uint64(i)])]
            _read(first, second, mask, rows[:count], values[top, :count], floats[top, :count])
            if flags == 0:
                status[top, :count] = VALUE
            else:
                valid = bytes_at(flags, mask + 1)
                for i in range(count):
                    status[top, np.uint64(i)] = valid[np.uint64(rows[np.uint64(i)] & mask)] != 0
        elif operation in (CONSTANT, KNOWN):
            top += 1
            values[top, :count] = first
            status[top, :count] = second if operation == CONSTANT else first
        elif operation <= REMAINDER:
            top -= 1
            _compute(
                operation,
                first,
                second,
                values[top, :count],
                values[top + 1, :count],
                status[top, :count],
                status[top + 1, :count],
            )
        elif ADD_FLOATS <= operation <= REMAINDER_OF_FLOATS:
            top -= 1
            _compute_floats(
                operation,
                first != 0,
                floats[top, :count],
                floats[top + 1, :count],
                status[top, :count],
                status[top + 1, :count],
            )
        elif operation <= TO_FLOAT:
            _change(
                operation,
                first,
                second,
                code[place + 3],
                values[top, :count],
                floats[top, :count],
                status[top, :count],
            )
        elif operation == IS_NULL:
            for k in range(count):
                found = status[top, np.uint64(k)]
                if found != FAILED:
                    status[top, np.uint64(k)] = (found == NULL) == (first != 0)
        else:
            top -= 1
            _combine(
                operation,
                first,
                values[top, :count],
                values[top + 1, :count],
                floats[top, :count],
                floats[top + 1, :count],
                status[top, :count],
                status[top + 1, :count],
            )


@kernel
def keep_where(
    code: Int64s,
    at: int,
    parts: int,
    depth: int,
    made: NDArray[np.int64],
    keep: Int64s,
    count: int,
    failed: Int64s,
) -> tuple[int, int]:
    """Keep, of the first ``count`` positions in ``keep``, those where all ``parts`` hold.

    ``code[at]`` is the size of the first part, its program follows, and so on. A candidate for
    which a part fails, where those before it hold, goes into ``failed`` instead. How many were
    kept, and how many failed.
    """
    room = min(count, BLOCK)
    values = np.empty((depth, room), np.int64)
    status = np.empty((depth, room), np.uint8)
    rows = np.empty(room, np.int64)
    kept, wrong = 0, 0
    for start in range(0, count, BLOCK):
        left = min(BLOCK, count - start)
        open_ = keep[start : start + left]
        place = at
        for _ in range(parts):
            size = code[place]
            _run(code, place + 1, size, made, open_[:left], rows, values, status)
            place += 1 + INSTRUCTION * size
            staying = 0
            for k in range(left):
                position, answer = open_[np.uint64(k)], status[0, np.uint64(k)]
                if answer == FAILED:
                    failed[np.uint64(wrong)] = position
                    wrong += 1
                open_[np.uint64(staying)] = position
                staying += int(answer == YES)
            left = staying
            if left == 0:
                break
        for k in range(left):
            keep[np.uint64(kept)] = open_[np.uint64(k)]
            kept += 1
    return kept, wrong
