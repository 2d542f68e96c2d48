"""Asking for memory before it is needed.

A processor looks a few hundred instructions ahead; a loop that jumps about in memory waits when the
next address is farther away than that, and twice as long when other programs use the same cache.
A prefetch waits for nothing: the loop asks for what it will read :data:`AHEAD` turns later.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core.cgutils import ir
from numba.extending import intrinsic

AHEAD = 32


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Bring ``array[index]``, of a flat array, into the cache."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.gep(data, [arguments[1]])
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
        read, often, of_data = number(0), number(3), number(1)
        builder.call(function, [place, read, often, of_data])
        return context.get_dummy_value()

    return types.void(array, index), generate
