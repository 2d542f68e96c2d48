"""Predicates on numbers and times, translated for :mod:`penstock.kernels.predicate`.

What a join cannot compare as keys is tested on candidates, and there are many of them: Arrow's
kernels would need the columns of all candidates gathered first, once per push, probe order and
step. So a predicate whose columns lie in rings and whose nodes are comparisons, logic and
arithmetic on integers, floats and times becomes a program that runs inside the compiled walk. What
is not among these (text, decimals, unsigned integers of 64 bits, casts that round) is left to
:mod:`penstock.values.evaluate`, which is also what every rule here has to agree with.

A conjunction is translated part by part: who fails one is not looked at by the next.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from penstock.kernels import predicate as kernel
from penstock.query.expression import (
    And,
    Arithmetic,
    Cast,
    Column,
    Comparison,
    Expression,
    Function,
    IsNull,
    Negative,
    Not,
    Or,
    columns_of,
)
from penstock.values.arrow_kernel import simple_type
from penstock.values.evaluate import OPPOSITE, folded
from penstock.values.wiring import OPERATORS

Place = tuple[int, int, int, int]
"""Of a column: address of its ring, mask, slot of its stream, address of its flags (0: none)."""
Instruction = tuple[int | Column, ...]

_KINDS = {
    pa.int8(): kernel.INT8,
    pa.int16(): kernel.INT16,
    pa.int32(): kernel.INT32,
    pa.int64(): kernel.INT64,
    pa.uint8(): kernel.UINT8,
    pa.uint16(): kernel.UINT16,
    pa.uint32(): kernel.UINT32,
    pa.float32(): kernel.FLOAT32,
    pa.float64(): kernel.FLOAT64,
}
_INTEGERS = {"+": kernel.ADD, "-": kernel.SUBTRACT, "*": kernel.MULTIPLY, "%": kernel.REMAINDER}
_FLOATS = {
    "+": kernel.ADD_FLOATS,
    "-": kernel.SUBTRACT_FLOATS,
    "*": kernel.MULTIPLY_FLOATS,
    "/": kernel.DIVIDE_FLOATS,
    "%": kernel.REMAINDER_OF_FLOATS,
}
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


class _NotForProgramsError(Exception):
    """A node that has no instruction."""


@dataclass(frozen=True, slots=True)
class PredicateProgram:
    """Programs of which all must hold, one after the other."""

    parts: tuple[tuple[Instruction, ...], ...]
    depth: int
    """Places of the stack that they need."""

    def code(self, place_of: Callable[[Column], Place]) -> list[int]:
        """The programs as numbers, the size of each before it, with columns at their places."""
        code: list[int] = []
        for part in self.parts:
            code.append(len(part))
            for operation, *details in part:
                numbers: list[int] = []
                for each in details:
                    numbers += place_of(each) if isinstance(each, Column) else (each,)
                assert isinstance(operation, int)
                padding = [0] * (kernel.INSTRUCTION - 1 - len(numbers))
                code += (operation, *numbers, *padding)
        return code


@lru_cache(maxsize=256)
def program_of(expressions: tuple[Expression, ...]) -> PredicateProgram | None:
    """The program of a conjunction, None if a part of it has none."""
    parts = []
    for expression in expressions:
        operands = expression.operands if isinstance(expression, And) else (expression,)
        for operand in operands:
            part: list[Instruction] = []
            try:
                _condition(operand, True, part)
            except _NotForProgramsError:
                return None
            parts.append(tuple(part))
    return PredicateProgram(tuple(parts), max(map(_depth, parts)))


_PUSHES = (kernel.LOAD, kernel.CONSTANT, kernel.KNOWN)
_IN_PLACE = (
    *(kernel.NEGATE, kernel.ABSOLUTE, kernel.CHECK_RANGE, kernel.NEGATE_FLOAT),
    *(kernel.ABSOLUTE_FLOAT, kernel.TO_FLOAT, kernel.IS_NULL),
)


def _depth(part: Sequence[Instruction]) -> int:
    depth = most = 0
    for operation, *_ in part:
        if operation not in _IN_PLACE:
            depth += 1 if operation in _PUSHES else -1
        most = max(most, depth)
    return most


def _condition(expression: Expression, truth: bool, out: list[Instruction]) -> None:
    """Where ``expression`` is ``truth``; see :func:`penstock.values.evaluate.compile_filter`."""
    constant = folded(expression)
    if constant is not None:
        out.append((kernel.KNOWN, int(constant.as_py() is truth)))
        return
    match expression:
        case And(operands=operands) | Or(operands=operands):
            connective = kernel.ALL if isinstance(expression, And) == truth else kernel.ANY
            for number, operand in enumerate(operands):
                _condition(operand, truth, out)
                if number:
                    out.append((connective,))
        case Not(operand=operand):
            _condition(operand, not truth, out)
        case IsNull(operand=operand):
            _value(operand, out)
            out.append((kernel.IS_NULL, int(truth)))
        case Comparison(operator=operator, left=left, right=right):
            _value(left, out)
            _value(right, out)
            compare = kernel.COMPARE_FLOATS if _is_float(left.type) else kernel.COMPARE
            out.append((compare, OPERATORS[operator if truth else OPPOSITE[operator]]))
        case _:
            raise _NotForProgramsError


def _value(expression: Expression, out: list[Instruction]) -> None:
    """The value of ``expression`` on top of the stack."""
    type_ = expression.type
    if not _has_kind(type_):
        raise _NotForProgramsError
    constant = folded(expression)
    if constant is not None:
        out.append((kernel.CONSTANT, *_bits(constant)))
        return
    if not columns_of(expression):  # It cannot be computed: an error for whoever needs it.
        out.append((kernel.CONSTANT, 0, kernel.FAILED))
        return
    match expression:
        case Column():
            out.append((kernel.LOAD, _kind(type_), expression))
        case Arithmetic(operator=operator, left=left, right=right):
            if pa.types.is_date(type_) or pa.types.is_time(type_):
                raise _NotForProgramsError
            _value(left, out)
            _value(right, out)
            if _is_float(type_):
                out.append((_FLOATS[operator], int(type_ == pa.float32())))
            elif operator in _INTEGERS:
                out.append((_INTEGERS[operator], *_range(type_)))
            else:
                raise _NotForProgramsError
        case Negative(operand=operand) | Function(name="abs", arguments=(operand,)):
            is_negative = isinstance(expression, Negative)
            _value(operand, out)
            if _is_float(type_):
                out.append((kernel.NEGATE_FLOAT if is_negative else kernel.ABSOLUTE_FLOAT,))
            else:
                operation = kernel.NEGATE if is_negative else kernel.ABSOLUTE
                out.append((operation, *_range(type_)))
        case Function(name="coalesce", arguments=arguments):
            _coalesce(arguments, out)
        case Cast(operand=operand):
            _value(operand, out)
            _cast(operand.type, type_, out)
        case _:
            raise _NotForProgramsError


def _coalesce(arguments: Sequence[Expression], out: list[Instruction]) -> None:
    """Those behind the first constant are not looked at, as they are not by the evaluator."""
    count = 0
    for argument in arguments:
        constant = folded(argument)
        if constant is not None and not constant.is_valid:
            continue
        _value(argument, out)
        count += 1
        if count > 1:
            out.append((kernel.COALESCE,))
        if constant is not None:
            break


def _cast(source: pa.DataType, target: pa.DataType, out: list[Instruction]) -> None:
    types = pa.types
    if source == target:
        return
    if types.is_integer(source) and types.is_integer(target):
        out.append((kernel.CHECK_RANGE, *_range(target), 1))
    elif types.is_integer(source) and target == pa.float64():
        out.append((kernel.TO_FLOAT,))
    elif source == pa.float32() and target == pa.float64():
        return
    elif types.is_timestamp(source) and types.is_timestamp(target):
        factor, rest = divmod(_PER_SECOND[target.unit], _PER_SECOND[source.unit])
        if rest:
            raise _NotForProgramsError
        out.append((kernel.CHECK_RANGE, *_range(target), factor))
    else:
        raise _NotForProgramsError


def _is_float(type_: pa.DataType) -> bool:
    return bool(pa.types.is_floating(type_))


def _kind(type_: pa.DataType) -> int:
    """The kind of the values of a column in a ring."""
    if type_ in _KINDS:
        return _KINDS[type_]
    return kernel.INT32 if type_.bit_width == 32 else kernel.INT64


def _has_kind(type_: pa.DataType) -> bool:
    if simple_type(type_) != type_:
        return False
    is_time = pa.types.is_temporal(type_) and not pa.types.is_interval(type_)
    return type_ in _KINDS or bool(is_time)


def _range(type_: pa.DataType) -> tuple[int, int]:
    bits = type_.bit_width
    if pa.types.is_unsigned_integer(type_):
        return 0, (1 << bits) - 1
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def _bits(constant: pa.Scalar) -> tuple[int, int]:
    """A constant as 64 bits, and its status."""
    if not constant.is_valid:
        return 0, kernel.NULL
    if _is_float(constant.type):
        value = constant.as_py()
        packed = struct.pack("=d", math.nan if value != value else value)
        return int.from_bytes(packed, "little", signed=True), kernel.VALUE
    if pa.types.is_integer(constant.type):
        return constant.as_py(), kernel.VALUE
    return int(constant.value), kernel.VALUE
