"""The cycle counter of the processor: time inside a compiled function, in a unit of its own."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core.cgutils import ir
from numba.extending import intrinsic


@intrinsic
def cycles(typing_context: Any) -> Any:
    """Cycles since some time in the past."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(64), [])
        function = builder.module.declare_intrinsic("llvm.readcyclecounter", (), kind)
        return builder.call(function, [])

    return types.int64(), generate
