"""Arrow's compute functions, as plain functions on arrays, and what several users of them share."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import InputError
from penstock.query.expression import Expression

Kernel = Callable[[pa.Array], pa.Array]

WIDE = Context(prec=400)
DIGITS_128 = 38
DIGITS_256 = 76


def kernel_of(name: str, options: pc.FunctionOptions | None = None) -> Kernel:
    call = pc.get_function(name).call
    return lambda values: call([values], options)


def simple_type(type: pa.DataType) -> pa.DataType:
    """``type``, or the type that kernels know in its place."""
    if pa.types.is_dictionary(type):
        return simple_type(type.value_type)
    if pa.types.is_string_view(type):
        return pa.large_string()
    if pa.types.is_binary_view(type):
        return pa.large_binary()
    return type


def failure(node: Expression, error: Exception) -> InputError:
    reason = str(error).strip().split("\n")[0]
    reason = {"divide by zero": "division by zero"}.get(reason.lower(), reason)
    return InputError(f"cannot compute {node}: {reason}")


def fit_decimal(value: Decimal, type: pa.DataType) -> Decimal:
    rounded = value.quantize(Decimal(1).scaleb(-type.scale), ROUND_HALF_UP, WIDE)
    if rounded and rounded.adjusted() >= type.precision - type.scale:
        raise pa.ArrowInvalid(f"{value} does not fit into {type}")
    return rounded


def same(values: pa.Array) -> pa.Array:
    return values


def then(*kernels: Kernel) -> Kernel:
    """The kernels one after the other."""
    needed = [kernel for kernel in kernels if kernel is not same]
    if len(needed) == 1:
        return needed[0]

    def run(values: pa.Array) -> pa.Array:
        for kernel in needed:
            values = kernel(values)
        return values

    return run


def is_text(type: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_string(type) or types.is_large_string(type) or types.is_string_view(type))


def pair_kernel_of(name: str) -> Callable[[Any, Any], pa.Array]:
    call = pc.get_function(name).call
    return lambda left, right: call([left, right])


COMPARE: dict[str, Callable[[Any, Any], pa.Array]] = {
    "=": pair_kernel_of("equal"),
    "<>": pair_kernel_of("not_equal"),
    "<": pair_kernel_of("less"),
    "<=": pair_kernel_of("less_equal"),
    ">": pair_kernel_of("greater"),
    ">=": pair_kernel_of("greater_equal"),
}


def plain_cast(target: pa.DataType, **options: bool) -> Callable[[Any], Any]:
    return kernel_of("cast", pc.CastOptions(target_type=target, **options))
