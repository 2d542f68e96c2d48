"""Expressions on whole columns.

:func:`compile` turns an expression, once per query, into a tree of closures over Arrow's compute
kernels; running it costs one kernel call per node, so that a batch of one row is cheap. The result
is an Arrow array. :func:`compile_filter` is the same for conditions: its result is a numpy mask of
the rows where the condition is true.

**Constants** are folded when compiling and stay scalars, which kernels broadcast. A constant that
cannot be computed (``1 / 0``) is an error only when it meets a row.

**Comparisons** follow Spark SQL, where floats are totally ordered: NaN equals itself and is greater
than every other number. Arrow follows IEEE 754, where a comparison with NaN is false. So
``a <= b`` is IEEE's, or ``b`` is NaN; ``a >= b`` by symmetry; ``<`` and ``>`` are the negations of
these two; and ``a = b`` is IEEE's, or both are NaN. NULLs survive this, as the kernels used (``or``
and ``and``, not their Kleene forms) give NULL when any input is NULL. -0.0 equals 0.0 in both.

**A filter** needs no NULL at all. A condition is true, false or NULL; the set of rows where it is
true and the set where it is false are computed by the usual recursion: ``AND`` is true where all
operands are true, false where any is false; ``NOT`` swaps the two sets; ``a < b`` is false where
``a >= b`` is true. For types with ordered keys (:mod:`penstock.engine.key_encoding`) a comparison
of values is one of int64 keys, NaN included.

**Errors**: overflow, division by zero and values that a cast cannot convert raise
:class:`~penstock.errors.InputError` with the text of the node. Kernels work on columns and so
evaluate what SQL would not: in ``y <> 0 AND x / y > 2`` the division also sees rows with ``y = 0``.
Hence, when an operand of ``AND`` or ``OR`` fails, it is computed once more, for only those rows on
which the operands to its left have left the answer open. The error stands if it occurs there.

**Casts** are those of Spark SQL in ANSI mode: a fraction is cut off on the way to an integer and
rounded half up on the way to a decimal, a double is the decimal that its shortest text names, text
may have white space around it, a value that does not fit is an error. Timestamps are instants,
printed, parsed and cut into days in UTC; one cast to a coarser unit is rounded down. Casts that
Arrow has, but rounds in another way (doubles and text to decimals, doubles to text), go value by
value and are slow; no comparison implies one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.engine.key_encoding import (
    KeyEncoder,
    booleans_of,
    encoder_for,
    numbers_of,
    validity_of,
)
from penstock.errors import InputError, InvariantBroken
from penstock.query.expression import (
    And,
    Arithmetic,
    Cast,
    Column,
    Comparison,
    Constant,
    Expression,
    Function,
    IsNull,
    Like,
    Negative,
    Not,
    Or,
)

Columns = Callable[[Column], pa.Array]
"""Where an expression finds the array of a column."""
Evaluator = Callable[[Columns, int], pa.Array]
"""Columns and their length, to the values of an expression."""
Booleans = NDArray[np.bool_]
Filter = Callable[[Columns, int], Booleans]
"""Columns and their length, to the rows where a condition is true."""
Kernel = Callable[[pa.Array], pa.Array]


def compile(expression: Expression) -> Evaluator:
    """A function that evaluates ``expression``: given columns and their length, an array."""
    compiled = _compile(expression)
    return _repeated(compiled) if isinstance(compiled, pa.Scalar) else compiled


def compile_filter(expression: Expression) -> Filter:
    """A function that finds the rows where ``expression`` is true; NULL is not true."""
    return _rows_where(expression, True)


def conjunction(expressions: Sequence[Expression]) -> Filter | None:
    """The rows where all of ``expressions`` are true, taken from left to right; None for none."""
    if not expressions:
        return None
    if len(expressions) == 1:
        return compile_filter(expressions[0])
    return compile_filter(And(pa.bool_(), tuple(expressions)))


def evaluate(
    expression: Expression, columns: Columns | Mapping[Column, pa.Array], length: int
) -> pa.Array:
    """The values of ``expression`` on ``columns`` of ``length`` rows."""
    return compile(expression)(_lookup(columns), length)


def is_true(
    expression: Expression, columns: Columns | Mapping[Column, pa.Array], length: int
) -> Booleans:
    """The rows where ``expression`` is true; NULL is not true."""
    return compile_filter(expression)(_lookup(columns), length)


def _lookup(columns: Columns | Mapping[Column, pa.Array]) -> Columns:
    return columns if callable(columns) else columns.__getitem__


# -- values ----------------------------------------------------------------------------------------


def _compile(expression: Expression) -> Evaluator | pa.Scalar:
    """An evaluator, or the value if there is no column in ``expression``."""
    match expression:
        case Column():
            return lambda columns, length: columns(expression)
        case Constant():
            return pa.scalar(expression.value, expression.type)
    takes_any_type = isinstance(expression, Cast | IsNull)
    operands = [
        _compile(child if takes_any_type else _simplified(child)) for child in expression.children()
    ]
    if any(not isinstance(operand, pa.Scalar) for operand in operands):
        return _compile_node(expression, operands)
    lifted = _compile_node(expression, [_repeated(operand) for operand in operands])
    if isinstance(lifted, pa.Scalar):
        return lifted
    try:
        return lifted(_no_columns, 1)[0]
    except InputError:
        return lifted  # An error, but only for a row that needs it.


def _compile_node(
    expression: Expression, operands: list[Evaluator | pa.Scalar]
) -> Evaluator | pa.Scalar:
    """An evaluator for a node whose operands are compiled. Single operands are never scalars."""
    match expression:
        case Cast(operand=operand):
            return _unary(expression, operands[0], _caster(operand.type, expression.type))
        case Negative():
            return _unary(expression, operands[0], _negative(expression.type))
        case Not():
            return _unary(expression, operands[0], _kernel("invert"))
        case IsNull():
            return _unary(expression, operands[0], _kernel("is_null"))
        case Like(pattern=pattern):
            match_like = _kernel("match_like", pc.MatchSubstringOptions(pattern))
            return _unary(expression, operands[0], match_like)
        case Comparison() | Arithmetic() if any(map(_is_null, operands)):
            return pa.scalar(None, expression.type)
        case Comparison(operator=operator, left=left):
            if pa.types.is_null(left.type):
                return pa.scalar(None, expression.type)
            if pa.types.is_floating(left.type):
                return _compare_floats(expression, operator, operands[0], operands[1])
            return _binary(expression, operands[0], operands[1], _COMPARE[operator])
        case Arithmetic():
            kernel = _arithmetic(expression)
            return _binary(expression, operands[0], operands[1], kernel)
        case And():
            return _connect(expression, operands, pc.get_function("and_kleene"))
        case Or():
            return _connect(expression, operands, pc.get_function("or_kleene"))
        case Function(name="coalesce"):
            return _coalesce(expression, operands)
        case Function():
            return _unary(expression, operands[0], _function(expression))
    raise InvariantBroken(f"no rule to evaluate {type(expression).__name__}: {expression}")


def _unary(node: Expression, operand: Evaluator | pa.Scalar, kernel: Kernel) -> Evaluator:
    assert not isinstance(operand, pa.Scalar)

    def run(columns: Columns, length: int) -> pa.Array:
        values = operand(columns, length)
        try:
            return kernel(values)
        except pa.ArrowException as error:
            raise _failure(node, error) from error

    return run


def _binary(
    node: Expression,
    left: Evaluator | pa.Scalar,
    right: Evaluator | pa.Scalar,
    kernel: Callable[[Any, Any], pa.Array],
) -> Evaluator:
    """``kernel`` on two operands, of which one may be a scalar."""

    def scalar_left(columns: Columns, length: int) -> pa.Array:
        values = right(columns, length)
        try:
            return kernel(left, values)
        except pa.ArrowException as error:
            raise _failure(node, error) from error

    def scalar_right(columns: Columns, length: int) -> pa.Array:
        values = left(columns, length)
        try:
            return kernel(values, right)
        except pa.ArrowException as error:
            raise _failure(node, error) from error

    def run(columns: Columns, length: int) -> pa.Array:
        values = left(columns, length)
        others = right(columns, length)
        try:
            return kernel(values, others)
        except pa.ArrowException as error:
            raise _failure(node, error) from error

    if isinstance(left, pa.Scalar):
        return scalar_left
    return scalar_right if isinstance(right, pa.Scalar) else run


def _failure(node: Expression, error: Exception) -> InputError:
    reason = str(error).strip().split("\n")[0]
    reason = {"divide by zero": "division by zero"}.get(reason.lower(), reason)
    return InputError(f"cannot compute {node}: {reason}")


def _repeated(value: Evaluator | pa.Scalar) -> Evaluator:
    """The scalar ``value`` as a column."""
    return lambda columns, length: pa.repeat(value, length)


def _no_columns(column: Column) -> pa.Array:
    raise InvariantBroken(f"{column} in a constant")


def _is_null(operand: Evaluator | pa.Scalar) -> bool:
    return isinstance(operand, pa.Scalar) and not operand.is_valid


def _kernel(name: str, options: pc.FunctionOptions | None = None) -> Kernel:
    call = pc.get_function(name).call
    return lambda values: call([values], options)


def _simple(type: pa.DataType) -> pa.DataType:
    """``type``, or the type that kernels know in its place."""
    if pa.types.is_dictionary(type):
        return _simple(type.value_type)
    if pa.types.is_string_view(type):
        return pa.large_string()
    if pa.types.is_binary_view(type):
        return pa.large_binary()
    return type


def _simplified(expression: Expression) -> Expression:
    """``expression`` in a type that kernels know."""
    simple = _simple(expression.type)
    return expression if simple == expression.type else Cast(simple, expression)


# -- comparisons and logic -------------------------------------------------------------------------


def _pair_kernel(name: str) -> Callable[[Any, Any], pa.Array]:
    call = pc.get_function(name).call
    return lambda left, right: call([left, right])


_COMPARE: dict[str, Callable[[Any, Any], pa.Array]] = {
    "=": _pair_kernel("equal"),
    "<>": _pair_kernel("not_equal"),
    "<": _pair_kernel("less"),
    "<=": _pair_kernel("less_equal"),
    ">": _pair_kernel("greater"),
    ">=": _pair_kernel("greater_equal"),
}
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

_or = _pair_kernel("or")
_and = _pair_kernel("and")
_invert = _kernel("invert")
_is_nan = _kernel("is_nan")


def _compare_floats(
    node: Expression, operator: str, left: Evaluator | pa.Scalar, right: Evaluator | pa.Scalar
) -> Evaluator:
    """A comparison of floats in Spark's order, see the top of this file."""
    if isinstance(left, pa.Scalar):
        left, right, operator = right, left, _MIRRORED[operator]
    ieee = _COMPARE[operator]
    opposite = _COMPARE[_OPPOSITE[operator]]
    if isinstance(right, pa.Scalar) and right.as_py() == right.as_py():
        # No NaN on the right: IEEE 754 says "false" to NaN on the left, right unless it is greater.
        if operator in (">", ">="):
            return _binary(node, left, right, lambda x, y: _invert(opposite(x, y)))
        return _binary(node, left, right, ieee)
    if isinstance(right, pa.Scalar):
        right = _repeated(right)

    def equal(x: pa.Array, y: pa.Array) -> pa.Array:
        return _or(_COMPARE["="](x, y), _and(_is_nan(x), _is_nan(y)))

    kernels: dict[str, Callable[[pa.Array, pa.Array], pa.Array]] = {
        "=": equal,
        "<>": lambda x, y: _invert(equal(x, y)),
        "<=": lambda x, y: _or(ieee(x, y), _is_nan(y)),
        ">=": lambda x, y: _or(ieee(x, y), _is_nan(x)),
        "<": lambda x, y: _invert(_or(opposite(x, y), _is_nan(x))),
        ">": lambda x, y: _invert(_or(opposite(x, y), _is_nan(y))),
    }
    return _binary(node, left, right, kernels[operator])


def _connect(
    node: Expression, operands: list[Evaluator | pa.Scalar], kernel: pc.Function
) -> Evaluator:
    """AND or OR of all operands."""
    first = operands[0]
    others = operands[1:]
    if isinstance(first, pa.Scalar):
        first = _repeated(first)
    one_by_one: list[Filter] = []

    def run(columns: Columns, length: int) -> pa.Array:
        result = first(columns, length)
        try:
            for other in others:
                operand = other if isinstance(other, pa.Scalar) else other(columns, length)
                result = kernel.call([result, operand])
        except InputError:
            if not one_by_one:
                one_by_one.extend([_rows_where(node, True), _rows_where(node, False)])
            true, false = (rows_where(columns, length) for rows_where in one_by_one)
            return pa.array(true, mask=~(true | false))
        return result

    return run


# -- filters ---------------------------------------------------------------------------------------


def _rows_where(expression: Expression, truth: bool) -> Filter:
    """The rows where ``expression`` is ``truth`` (and not NULL)."""
    match expression:
        case And(operands=operands) | Or(operands=operands):
            parts = [_rows_where(operand, truth) for operand in operands]
            return _all_of(parts) if isinstance(expression, And) == truth else _any_of(parts)
        case Not(operand=operand):
            return _rows_where(operand, not truth)
        case IsNull(operand=operand):
            return _rows_where_null(compile(operand), truth)
        case Comparison(operator=operator, left=left, right=right):
            type = _simple(left.type)
            compiled = _compile(_simplified(left)), _compile(_simplified(right))
            columns = sum(not isinstance(side, pa.Scalar) for side in compiled)
            if columns and not pa.types.is_null(type) and not any(map(_is_null, compiled)):
                name: str = operator if truth else _OPPOSITE[operator]
                if pa.types.is_floating(type) and not pa.types.is_float16(type):
                    return _filter_floats(name, *compiled, type.to_pandas_dtype())
                if _has_ordered_keys(type):
                    return _filter_keys(name, *compiled, encoder_for(type))
    compiled_whole = _compile(expression)
    if isinstance(compiled_whole, pa.Scalar):
        holds = compiled_whole.as_py() is truth
        return lambda columns, length: np.full(length, holds)
    return _filter_values(compiled_whole, truth)


def _filter_values(values: Evaluator, truth: bool) -> Filter:
    def run(columns: Columns, length: int) -> Booleans:
        array = values(columns, length)
        rows = booleans_of(array)
        if not truth:
            rows = ~rows
        validity = validity_of(array)
        if validity is not None:
            rows &= validity
        return rows

    return run


def _rows_where_null(values: Evaluator, truth: bool) -> Filter:
    def run(columns: Columns, length: int) -> Booleans:
        array = values(columns, length)
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        validity = validity_of(array)
        if validity is None:
            return np.full(length, not truth)
        return ~validity if truth else validity

    return run


def _all_of(parts: list[Filter]) -> Filter:
    first, others = parts[0], parts[1:]

    def run(columns: Columns, length: int) -> Booleans:
        rows = first(columns, length)
        for other in others:
            try:
                rows &= other(columns, length)
            except InputError:
                rows = _on_rows(other, columns, rows)
        return rows

    return run


def _any_of(parts: list[Filter]) -> Filter:
    first, others = parts[0], parts[1:]

    def run(columns: Columns, length: int) -> Booleans:
        rows = first(columns, length)
        for other in others:
            try:
                rows |= other(columns, length)
            except InputError:
                rows |= _on_rows(other, columns, ~rows)
        return rows

    return run


def _on_rows(condition: Filter, columns: Columns, rows: Booleans) -> Booleans:
    """Those of ``rows`` where ``condition`` holds, looking at no other row."""
    chosen = np.flatnonzero(rows)
    indices = pa.array(chosen)

    def taken(column: Column) -> pa.Array:
        array = columns(column)
        simple = _simple(array.type)
        if simple == array.type:
            return array.take(indices)
        return _caster(simple, array.type)(_caster(array.type, simple)(array).take(indices))

    result = np.zeros(len(rows), np.bool_)
    result[chosen] = condition(taken, len(chosen))
    return result


_UFUNC = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def _has_ordered_keys(type: pa.DataType) -> bool:
    try:
        return encoder_for(type).ordered
    except InputError:
        return False


def _filter_keys(
    operator: str,
    left: Evaluator | pa.Scalar,
    right: Evaluator | pa.Scalar,
    encoder: KeyEncoder,
) -> Filter:
    """A comparison by int64 keys."""
    if isinstance(left, pa.Scalar):
        left, right, operator = right, left, _MIRRORED[operator]
    compare = _UFUNC[operator]
    encode = encoder.encode

    if isinstance(right, pa.Scalar):
        constant = int(encode(pa.repeat(right, 1))[0][0])

        def run_constant(columns: Columns, length: int) -> Booleans:
            keys, validity = encode(left(columns, length))
            rows: Booleans = compare(keys, constant)
            if validity is not None:
                rows &= validity
            return rows

        return run_constant

    def run(columns: Columns, length: int) -> Booleans:
        left_keys, left_validity = encode(left(columns, length))
        right_keys, right_validity = encode(right(columns, length))
        rows: Booleans = compare(left_keys, right_keys)
        if left_validity is not None:
            rows &= left_validity
        if right_validity is not None:
            rows &= right_validity
        return rows

    return run


def _filter_floats(
    operator: str, left: Evaluator | pa.Scalar, right: Evaluator | pa.Scalar, dtype: Any
) -> Filter:
    """A comparison of floats in Spark's order, see the top of this file."""
    if isinstance(left, pa.Scalar):
        left, right, operator = right, left, _MIRRORED[operator]
    width = np.dtype(dtype).itemsize
    compare = _UFUNC[operator]
    opposite = _UFUNC[_OPPOSITE[operator]]

    if isinstance(right, pa.Scalar) and right.as_py() == right.as_py():
        constant = dtype(right.as_py())
        negated = operator in (">", ">=")

        def run_constant(columns: Columns, length: int) -> Booleans:
            array = left(columns, length)
            values = numbers_of(array, dtype, width)
            rows: Booleans = ~opposite(values, constant) if negated else compare(values, constant)
            validity = validity_of(array)
            if validity is not None:
                rows &= validity
            return rows

        return run_constant
    if isinstance(right, pa.Scalar):
        right = _repeated(right)

    def equal(x: NDArray[Any], y: NDArray[Any]) -> Booleans:
        rows: Booleans = (x == y) | ((x != x) & (y != y))
        return rows

    kernels: dict[str, Callable[[NDArray[Any], NDArray[Any]], Booleans]] = {
        "=": equal,
        "<>": lambda x, y: ~equal(x, y),
        "<=": lambda x, y: compare(x, y) | (y != y),
        ">=": lambda x, y: compare(x, y) | (x != x),
        "<": lambda x, y: ~(opposite(x, y) | (x != x)),
        ">": lambda x, y: ~(opposite(x, y) | (y != y)),
    }
    kernel = kernels[operator]

    def run(columns: Columns, length: int) -> Booleans:
        left_array = left(columns, length)
        right_array = right(columns, length)
        rows = kernel(numbers_of(left_array, dtype, width), numbers_of(right_array, dtype, width))
        validity = validity_of(left_array)
        if validity is not None:
            rows &= validity
        validity = validity_of(right_array)
        if validity is not None:
            rows &= validity
        return rows

    return run


# -- arithmetic and functions ----------------------------------------------------------------------


_ARITHMETIC = {
    "+": "add_checked",
    "-": "subtract_checked",
    "*": "multiply_checked",
    "/": "divide_checked",
}
_WIDE = Context(prec=400)
_DIGITS_128 = 38
_DIGITS_256 = 76


def _arithmetic(node: Arithmetic) -> Callable[[Any, Any], pa.Array]:
    if pa.types.is_decimal(node.type):
        return _decimal_arithmetic(node)
    if node.operator == "%":
        return _remainder(node)
    return _pair_kernel(_ARITHMETIC[node.operator])


def _decimal_arithmetic(node: Arithmetic) -> Callable[[Any, Any], pa.Array]:
    """Decimals: exactly, then rounded half up to the type of the node.

    Arrow gives sums one digit more, products and quotients twice as many and one (a quotient is
    cut off after more digits than the result keeps, which rounds half up like the exact one). It
    refuses when that is more than a type can hold, so operands are widened first, and beyond 76
    digits Python computes.
    """
    type, operator = node.type, node.operator
    digits = type.precision + 1 if operator in "+-" else 2 * type.precision + 1
    if operator == "%" or digits > _DIGITS_256:
        return _python_decimals(node)
    call = pc.get_function(_ARITHMETIC[operator]).call
    make = pa.decimal128 if digits <= _DIGITS_128 else pa.decimal256
    operand_type = make(type.precision, type.scale)
    widen = _plain_cast(operand_type) if operand_type != type else _same
    scale = {"*": 2 * type.scale, "/": type.precision + 1}.get(operator, type.scale)
    fit = _caster(make(digits, scale), type)
    return lambda left, right: fit(call([widen(left), widen(right)]))


def _python_decimals(node: Arithmetic) -> Callable[[Any, Any], pa.Array]:
    type, operator = node.type, node.operator
    compute: Callable[[Decimal, Decimal], Decimal] = {
        "+": _WIDE.add,
        "-": _WIDE.subtract,
        "*": _WIDE.multiply,
        "/": _WIDE.divide,
        "%": _WIDE.remainder,
    }[operator]

    def of_pair(left: Decimal | None, right: Decimal | None) -> Decimal | None:
        if left is None or right is None:
            return None
        if operator in "/%" and not right:
            raise pa.ArrowInvalid("divide by zero")
        return _fit_decimal(compute(left, right), type)

    def run(left: Any, right: Any) -> pa.Array:
        length = len(right) if isinstance(left, pa.Scalar) else len(left)
        lefts = [left.as_py()] * length if isinstance(left, pa.Scalar) else left.to_pylist()
        rights = [right.as_py()] * length if isinstance(right, pa.Scalar) else right.to_pylist()
        return pa.array(map(of_pair, lefts, rights), type, size=length)

    return run


def _fit_decimal(value: Decimal, type: pa.DataType) -> Decimal:
    rounded = value.quantize(Decimal(1).scaleb(-type.scale), ROUND_HALF_UP, _WIDE)
    if rounded and rounded.adjusted() >= type.precision - type.scale:
        raise pa.ArrowInvalid(f"{value} does not fit into {type}")
    return rounded


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


def _negative(type: pa.DataType) -> Kernel:
    if not pa.types.is_unsigned_integer(type):
        return _kernel("negate_checked")
    subtract = _pair_kernel("subtract_checked")
    zero = pa.scalar(0, type)
    return lambda values: subtract(zero, values)


def _function(node: Function) -> Kernel:
    type = _simple(node.arguments[0].type)
    if node.name == "abs":
        unsigned = pa.types.is_unsigned_integer(type)
        return _same if unsigned else _kernel("abs_checked")
    if node.name == "length":
        name = "utf8_length" if _is_text(type) else "binary_length"
        counted = pa.int64() if type in (pa.large_string(), pa.large_binary()) else pa.int32()
        return _then(_kernel(name), _caster(counted, node.type))
    if node.name in ("lower", "upper"):
        return _then(_change_case(node.name), _caster(type, node.type))
    raise InvariantBroken(f"no rule for the function {node.name}")


def _change_case(name: str) -> Kernel:
    """Full case mapping, as Java and Python have it; Arrow's own leaves ``ß`` one letter."""
    ascii_only = _kernel("string_is_ascii")
    change_ascii = _kernel(f"ascii_{name}")
    change = str.lower if name == "lower" else str.upper

    def run(values: pa.Array) -> pa.Array:
        if pc.all(ascii_only(values), min_count=0).as_py():
            return change_ascii(values)
        texts = (None if text is None else change(text) for text in values.to_pylist())
        return pa.array(texts, values.type, size=len(values))

    return run


def _coalesce(node: Expression, operands: list[Evaluator | pa.Scalar]) -> Evaluator | pa.Scalar:
    """The first operand that is not NULL."""
    needed: list[Evaluator | pa.Scalar] = []
    for operand in operands:
        if not _is_null(operand):
            needed.append(operand)
            if isinstance(operand, pa.Scalar):
                break
    call = pc.get_function("coalesce").call
    simple = _simple(node.type)
    finish = _caster(simple, node.type)
    if not needed:
        return pa.scalar(None, node.type)
    if isinstance(needed[0], pa.Scalar):
        return _compile(Cast(node.type, Constant(simple, needed[0].as_py())))

    def run(columns: Columns, length: int) -> pa.Array:
        values = [o if isinstance(o, pa.Scalar) else o(columns, length) for o in needed]
        try:
            return finish(call(values))
        except pa.ArrowException as error:
            raise _failure(node, error) from error

    return run


# -- casts -----------------------------------------------------------------------------------------


_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_TRUE = ("t", "true", "y", "yes", "1")
_FALSE = ("f", "false", "n", "no", "0")


def _same(values: pa.Array) -> pa.Array:
    return values


def _then(*kernels: Kernel) -> Kernel:
    """The kernels one after the other."""
    needed = [kernel for kernel in kernels if kernel is not _same]
    if len(needed) == 1:
        return needed[0]

    def run(values: pa.Array) -> pa.Array:
        for kernel in needed:
            values = kernel(values)
        return values

    return run


def _plain_cast(target: pa.DataType, **options: bool) -> Callable[[Any], Any]:
    return _kernel("cast", pc.CastOptions(target_type=target, **options))


def _caster(source: pa.DataType, target: pa.DataType) -> Kernel:
    """A function that casts arrays of type ``source`` to ``target``."""
    types = pa.types
    if source == target:
        return _same
    if types.is_dictionary(source):
        return _then(lambda values: values.dictionary_decode(), _caster(source.value_type, target))
    if types.is_dictionary(target):
        return _then(_caster(source, target.value_type), _plain_cast(target))
    if types.is_null(source):
        return lambda values: pa.nulls(len(values), target)
    if types.is_string_view(source) or types.is_binary_view(source):
        simple = _simple(source)
        return _then(_plain_cast(simple), _caster(simple, target))
    if _is_text(source):
        return _from_text(source, target)
    if _is_text(target):
        return _to_text(source, target)
    if types.is_boolean(target) and types.is_decimal(source):
        zero = pa.scalar(Decimal(0), source)
        return lambda values: _COMPARE["<>"](values, zero)
    if types.is_float16(source):
        return _then(_plain_cast(pa.float32()), _caster(pa.float32(), target))
    if types.is_decimal(target):
        return _to_decimal(source, target)
    if types.is_floating(target):
        return _to_float(source, target)
    if types.is_integer(target):
        return _to_integer(source, target)
    if types.is_timestamp(target):
        return _to_timestamp(source, target)
    if types.is_timestamp(source):
        return _then(_plain_cast(pa.timestamp(source.unit)), _plain_cast(target))
    if types.is_temporal(target):
        return _plain_cast(target, allow_time_truncate=True)
    return _plain_cast(target)


def _is_text(type: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_string(type) or types.is_large_string(type) or types.is_string_view(type))


def _to_integer(source: pa.DataType, target: pa.DataType) -> Kernel:
    if pa.types.is_floating(source):
        return _then(_kernel("trunc"), _plain_cast(target))
    if pa.types.is_decimal(source):
        return _then(_plain_cast(_wider(source)), _kernel("trunc"), _plain_cast(target))
    if pa.types.is_timestamp(source):
        return _then(_to_timestamp(source, pa.timestamp("s")), _plain_cast(target))
    return _plain_cast(target)


def _to_float(source: pa.DataType, target: pa.DataType) -> Kernel:
    if not pa.types.is_decimal(source):
        return _plain_cast(target, allow_float_truncate=True)
    narrow = _plain_cast(target) if target != pa.float64() else _same
    if source.precision <= 15 and 0 <= source.scale <= 22:
        # Both are exact as doubles, so the one rounding of the division is the right one.
        # Arrow multiplies by an inexact power of ten instead.
        divisor = float(10**source.scale)
        encode = encoder_for(source).encode

        def divided(values: pa.Array) -> pa.Array:
            unscaled, validity = encode(values)
            return pa.array(unscaled / divisor, mask=None if validity is None else ~validity)

        return _then(divided, narrow)
    return _then(_plain_cast(pa.string()), _plain_cast(pa.float64()), narrow)


def _to_decimal(source: pa.DataType, target: pa.DataType) -> Kernel:
    types = pa.types
    if types.is_boolean(source):
        return _then(_plain_cast(pa.int8()), _to_decimal(pa.int8(), target))
    if types.is_integer(source):
        whole = pa.decimal128(20, 0)
        return _then(_plain_cast(whole), _to_decimal(whole, target))
    if types.is_floating(source):

        def from_double(values: pa.Array) -> pa.Array:
            doubles = values.to_pylist()
            decimals = (
                None if x is None or x - x != 0 else _fit_decimal(Decimal(repr(x)), target)
                for x in doubles
            )
            return pa.array(decimals, target, size=len(doubles))

        return from_double
    if types.is_decimal(source) and target.scale < source.scale:
        options = pc.RoundOptions(target.scale, "half_towards_infinity")
        return _then(_plain_cast(_wider(source)), _kernel("round", options), _plain_cast(target))
    return _plain_cast(target)


def _wider(type: pa.DataType) -> pa.DataType:
    """``type`` with a digit more, where there is one."""
    if type.precision < _DIGITS_128:
        return pa.decimal128(type.precision + 1, type.scale)
    return pa.decimal256(min(type.precision + 1, _DIGITS_256), type.scale)


def _to_timestamp(source: pa.DataType, target: pa.DataType) -> Kernel:
    types = pa.types
    if types.is_integer(source):
        seconds = pa.timestamp("s")
        return _then(_plain_cast(pa.int64()), _plain_cast(seconds), _to_timestamp(seconds, target))
    if not types.is_timestamp(source):
        return _then(_plain_cast(pa.timestamp(target.unit)), _plain_cast(target))
    factor = _PER_SECOND[source.unit] // _PER_SECOND[target.unit]
    if factor <= 1:
        return _plain_cast(target)

    def rounded_down(values: pa.Array) -> pa.Array:
        ticks = numbers_of(values, np.int64, 8) // factor
        validity = validity_of(values)
        return pa.array(ticks, mask=None if validity is None else ~validity).view(target)

    return rounded_down


def _to_text(source: pa.DataType, target: pa.DataType) -> Kernel:
    types = pa.types
    if types.is_floating(source):
        shortest = np.float32 if types.is_float32(source) else float
        return _by_value(lambda x: _java_text(x, str(shortest(x))), target)
    if types.is_decimal(source) and not 0 <= source.scale <= 6:
        return _by_value(lambda x: f"{x:f}", target)
    if types.is_timestamp(source):
        return _then(
            _plain_cast(pa.timestamp(source.unit)),
            _plain_cast(pa.string()),
            _kernel("replace_substring_regex", pc.ReplaceSubstringOptions(r"\.(\d*?)0*$", r".\1")),
            _kernel("utf8_rtrim", pc.TrimOptions(".")),
            _caster(pa.string(), target),
        )
    return _plain_cast(target)


def _java_text(value: float, shortest: str) -> str:
    """``value`` as Java prints it, given its shortest text in any notation."""
    if value - value != 0:
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = f"{Decimal(shortest):f}"
        return text if "." in text else text + ".0"
    sign, digits, _ = Decimal(shortest).normalize().as_tuple()
    mantissa = "".join(map(str, digits))
    exponent = Decimal(shortest).adjusted()
    return f"{'-' * sign}{mantissa[0]}.{mantissa[1:] or '0'}E{exponent}"


def _by_value(convert: Callable[[Any], Any], target: pa.DataType) -> Kernel:
    def run(values: pa.Array) -> pa.Array:
        converted = (None if v is None else convert(v) for v in values.to_pylist())
        return pa.array(converted, target, size=len(values))

    return run


def _from_text(source: pa.DataType, target: pa.DataType) -> Kernel:
    types = pa.types
    trim = _kernel("utf8_trim_whitespace")
    if _is_text(target) or types.is_binary(target) or types.is_large_binary(target):
        return _plain_cast(target)
    if types.is_integer(target):
        without_plus = pc.ReplaceSubstringOptions(r"^\+(\d)", r"\1")
        return _then(
            trim,
            _only_matching(r"^[+-]?\d+$", target),
            _kernel("replace_substring_regex", without_plus),
            _plain_cast(target),
        )
    if types.is_float16(target):
        return _then(_from_text(source, pa.float32()), _plain_cast(target))
    if types.is_decimal(target):
        return _then(trim, _by_value(lambda text: _parse_decimal(text, target), target))
    if types.is_boolean(target):
        lower = _kernel("utf8_lower")
        words = _only_matching(f"^({'|'.join(_TRUE + _FALSE)})$", target)
        true = _kernel("is_in", pc.SetLookupOptions(pa.array(_TRUE, source)))
        null = pa.scalar(None, pa.bool_())

        def parse(values: pa.Array) -> pa.Array:
            return pc.if_else(values.is_valid(), true(values), null)

        return _then(trim, lower, words, parse)
    if types.is_date(target):
        day = pc.ReplaceSubstringOptions(r"^(\d{4}-\d{2}-\d{2})[ T].*$", r"\1")
        return _then(trim, _kernel("replace_substring_regex", day), _plain_cast(target))
    if types.is_timestamp(target):
        return _then(trim, _parse_timestamps(target))
    if types.is_fixed_size_binary(target) or types.is_binary_view(target):
        return _then(_plain_cast(pa.binary()), _plain_cast(target))
    return _then(trim, _plain_cast(target))


def _only_matching(pattern: str, target: pa.DataType) -> Kernel:
    matches = _kernel("match_substring_regex", pc.MatchSubstringOptions(pattern))

    def check(values: pa.Array) -> pa.Array:
        matching = matches(values)
        if not pc.all(matching, min_count=0).as_py():
            first = values[matching.index(False).as_py()].as_py()
            raise pa.ArrowInvalid(f"'{first}' is not a value of type {target}")
        return values

    return check


def _parse_decimal(text: str, target: pa.DataType) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or "_" in text:
        raise pa.ArrowInvalid(f"'{text}' is not a value of type {target}")
    return _fit_decimal(value, target)


def _parse_timestamps(target: pa.TimestampType) -> Kernel:
    """Text with a zone offset names an instant; text without one is taken to be in UTC."""
    unit = "ns" if target.unit == "ns" else "us"
    has_zone = _kernel(
        "match_substring_regex", pc.MatchSubstringOptions(r":\d\d(\.\d*)?(Z|[+-]\d\d(:?\d\d)?)$")
    )
    zoned = _then(_plain_cast(pa.timestamp(unit, "UTC")), _plain_cast(pa.timestamp(unit)))
    plain = _plain_cast(pa.timestamp(unit))
    finish = _to_timestamp(pa.timestamp(unit), target)

    def parse(values: pa.Array) -> pa.Array:
        with_zone = has_zone(values)
        nothing = pa.scalar(None, values.type)
        return finish(
            pc.coalesce(
                zoned(pc.if_else(with_zone, values, nothing)),
                plain(pc.if_else(with_zone, nothing, values)),
            )
        )

    return parse
