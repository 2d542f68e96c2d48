"""Arrays by their address: a table of numbers stands for any number of columns.

A compiled function is made for a fixed list of arguments, and each array that is passed costs time.
A plan has as many columns as it has, and small pushes are many. So whoever runs a whole plan passes
one table with the addresses of its columns. The caller keeps the arrays alive, and knows when they
have moved (:attr:`penstock.engine.state.rows.Rows.generation`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, types
from numba.core.cgutils import ir, voidptr_t
from numba.extending import intrinsic
from numpy.typing import NDArray

from penstock.kernels.kernel import inlined


@intrinsic
def pointer(typing_context: Any, address: Any) -> Any:
    """``address`` as a pointer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], voidptr_t)

    return types.voidptr(address), generate


@intrinsic
def call(typing_context: Any, function: Any, argument: Any) -> Any:
    """Call the C function at the address ``function`` with a pointer, the address ``argument``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [voidptr_t]).as_pointer()
        function, argument = arguments
        builder.call(builder.inttoptr(function, kind), [builder.inttoptr(argument, voidptr_t)])
        return context.get_dummy_value()

    return types.void(function, argument), generate


@inlined
def int64s(address: int, size: int) -> NDArray[np.int64]:
    """``size`` numbers of 64 bits from ``address`` on."""
    array: NDArray[np.int64] = carray(pointer(address), (size,), np.int64)
    return array


@inlined
def uint64s(address: int, size: int) -> NDArray[np.uint64]:
    """``size`` words of 64 bits from ``address`` on."""
    array: NDArray[np.uint64] = carray(pointer(address), (size,), np.uint64)
    return array


@inlined
def uint32s(address: int, size: int) -> NDArray[np.uint32]:
    """``size`` numbers of 32 bits from ``address`` on."""
    array: NDArray[np.uint32] = carray(pointer(address), (size,), np.uint32)
    return array


@inlined
def bytes_at(address: int, size: int) -> NDArray[np.uint8]:
    """``size`` bytes from ``address`` on."""
    array: NDArray[np.uint8] = carray(pointer(address), (size,), np.uint8)
    return array
