"""Arithmetic on columns; overflow and division by zero are errors."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.query.expression import Arithmetic
from penstock.values.arrow_kernel import (
    DIGITS_128,
    DIGITS_256,
    WIDE,
    Kernel,
    fit_decimal,
    kernel_of,
    pair_kernel_of,
    plain_cast,
    same,
)
from penstock.values.arrow_layout import Booleans, numbers_of, validity_of
from penstock.values.cast import caster

_ARITHMETIC = {
    "+": "add_checked",
    "-": "subtract_checked",
    "*": "multiply_checked",
    "/": "divide_checked",
}


def arithmetic(node: Arithmetic) -> Callable[[Any, Any], pa.Array]:
    if pa.types.is_decimal(node.type):
        return _decimal_arithmetic(node)
    if node.operator == "%":
        return _remainder(node)
    return pair_kernel_of(_ARITHMETIC[node.operator])


def _decimal_arithmetic(node: Arithmetic) -> Callable[[Any, Any], pa.Array]:
    """Decimals: exactly, then rounded half up to the type of the node.

    Arrow gives sums one digit more, products and quotients twice as many and one (a quotient is
    cut off after more digits than the result keeps, which rounds half up like the exact one). It
    refuses when that is more than a type can hold, so operands are widened first, and beyond 76
    digits Python computes.
    """
    type, operator = node.type, node.operator
    digits = type.precision + 1 if operator in "+-" else 2 * type.precision + 1
    if operator == "%" or digits > DIGITS_256:
        return _python_decimals(node)
    call = pc.get_function(_ARITHMETIC[operator]).call
    make = pa.decimal128 if digits <= DIGITS_128 else pa.decimal256
    operand_type = make(type.precision, type.scale)
    widen = plain_cast(operand_type) if operand_type != type else same
    scale = {"*": 2 * type.scale, "/": type.precision + 1}.get(operator, type.scale)
    fit = caster(make(digits, scale), type)
    return lambda left, right: fit(call([widen(left), widen(right)]))


def _python_decimals(node: Arithmetic) -> Callable[[Any, Any], pa.Array]:
    type, operator = node.type, node.operator
    compute: Callable[[Decimal, Decimal], Decimal] = {
        "+": WIDE.add,
        "-": WIDE.subtract,
        "*": WIDE.multiply,
        "/": WIDE.divide,
        "%": WIDE.remainder,
    }[operator]

    def of_pair(left: Decimal | None, right: Decimal | None) -> Decimal | None:
        if left is None or right is None:
            return None
        if operator in "/%" and not right:
            raise pa.ArrowInvalid("divide by zero")
        return fit_decimal(compute(left, right), type)

    def run(left: Any, right: Any) -> pa.Array:
        length = len(right) if isinstance(left, pa.Scalar) else len(left)
        lefts = [left.as_py()] * length if isinstance(left, pa.Scalar) else left.to_pylist()
        rights = [right.as_py()] * length if isinstance(right, pa.Scalar) else right.to_pylist()
        return pa.array(map(of_pair, lefts, rights), type, size=length)

    return run


def _remainder(node: Arithmetic) -> Callable[[Any, Any], pa.Array]:
    """``%`` with the sign of the dividend, as C has it."""
    dtype = node.type.to_pandas_dtype()
    width = np.dtype(dtype).itemsize

    def numbers(operand: Any) -> tuple[Any, Booleans | None]:
        if isinstance(operand, pa.Scalar):
            return dtype(operand.as_py()), None
        return numbers_of(operand, dtype, width), validity_of(operand)

    def run(left: Any, right: Any) -> pa.Array:
        dividends, validity = numbers(left)
        divisors, other = numbers(right)
        if validity is None or other is None:
            validity = other if validity is None else validity
        else:
            validity = validity & other
        with np.errstate(all="ignore"):
            remainders = np.fmod(dividends, divisors)
        zeros = np.broadcast_to(divisors == 0, remainders.shape)
        if (zeros if validity is None else zeros & validity).any():
            raise pa.ArrowInvalid("divide by zero")
        return pa.array(remainders, node.type, mask=None if validity is None else ~validity)

    return run


def negative(type: pa.DataType) -> Kernel:
    if not pa.types.is_unsigned_integer(type):
        return kernel_of("negate_checked")
    subtract = pair_kernel_of("subtract_checked")
    zero = pa.scalar(0, type)
    return lambda values: subtract(zero, values)
