"""Scalar arithmetic on expressions, with the promotion rules of the language (both operands of one category)."""

from __future__ import annotations

from . import expr as e
from .dtypes import BOOL, FP32, INDEX, INT64, DataType
from .span import UNKNOWN, Span
from .types import ScalarType

Operand = int | float | e.Expr


def as_scalar(value: Operand | bool, span: Span = UNKNOWN) -> e.Expr:
    """`value` as an expression: bool, INDEX constant or FP32 constant.

    Raises:
        TypeError: not a number and not an expression.
    """
    if isinstance(value, e.Expr):
        return value
    if isinstance(value, bool):
        return e.ConstBool(value, span)
    if isinstance(value, int):
        return e.ConstInt(value, INDEX, span)
    if isinstance(value, float):
        return e.ConstFloat(value, FP32, span)
    raise TypeError(f"expected an int, a float or an IR expression, got {value!r}")


def scalar_dtype(expr: e.Expr, op: str) -> DataType:
    """Element type of a scalar operand of `op`.

    Raises:
        TypeError: the operand is no scalar.
    """
    if not isinstance(expr.type, ScalarType):
        raise TypeError(f"Operator '{op}' requires scalar operands, got {expr.type}")
    return expr.type.dtype


def _category(dtype: DataType) -> str:
    return "float" if dtype.is_float() else "int" if dtype.is_int() else dtype.name


def promote(op: str, left: Operand, right: Operand, span: Span = UNKNOWN) -> tuple[e.Expr, e.Expr, DataType]:
    """Both operands at the wider type (ties: the left one's); INDEX and INT64 mix without a cast.

    Raises:
        TypeError: the operands are of different categories (integer, float).
    """
    a, b = as_scalar(left, span), as_scalar(right, span)
    da, db = scalar_dtype(a, op), scalar_dtype(b, op)
    if da is db:
        return a, b, da
    if _category(da) != _category(db) or _category(da) not in ("int", "float"):
        raise TypeError(f"Operator '{op}' requires same numeric dtype category, got {da} and {db}")
    out = da if da.get_bit() >= db.get_bit() else db
    return _to(a, da, out, span), _to(b, db, out, span), out


def _to(x: e.Expr, have: DataType, want: DataType, span: Span) -> e.Expr:
    if have is want or {have, want} == {INDEX, INT64}:
        return x
    return e.Cast(x, want, span)


def _arith(cls: type[e.BinaryExpr], op: str, left: Operand, right: Operand, span: Span) -> e.Expr:
    for x in (left, right):
        if isinstance(x, bool) or (isinstance(x, e.Expr) and isinstance(x.type, ScalarType) and x.type.dtype is BOOL):
            raise TypeError(f"Operator '{op}' does not accept bool dtype")
    a, b, dtype = promote(op, left, right, span)
    return cls(a, b, dtype, span)


def _compare(cls: type[e.BinaryExpr], op: str, left: Operand, right: Operand, span: Span) -> e.Expr:
    a, b, _ = promote(op, left, right, span)
    return cls(a, b, BOOL, span)


def _bits(cls: type[e.BinaryExpr], op: str, left: Operand, right: Operand, span: Span) -> e.Expr:
    a, b, dtype = promote(op, left, right, span)
    if not dtype.is_int():
        raise TypeError(f"Operator '{op}' requires integer operands, got {dtype}")
    return cls(a, b, dtype, span)


def _logic(cls: type[e.BinaryExpr], left: Operand, right: Operand, span: Span) -> e.Expr:
    return cls(as_scalar(left, span), as_scalar(right, span), BOOL, span)


def add(lhs: Operand, rhs: Operand, span: Span = UNKNOWN) -> e.Expr:
    """lhs + rhs"""
    return _arith(e.Add, "add", lhs, rhs, span)


def sub(lhs: Operand, rhs: Operand, span: Span = UNKNOWN) -> e.Expr:
    """lhs - rhs"""
    return _arith(e.Sub, "sub", lhs, rhs, span)


def mul(lhs: Operand, rhs: Operand, span: Span = UNKNOWN) -> e.Expr:
    """lhs * rhs"""
    return _arith(e.Mul, "mul", lhs, rhs, span)


def truediv(lhs: Operand, rhs: Operand, span: Span = UNKNOWN) -> e.Expr:
    """lhs / rhs"""
    return _arith(e.FloatDiv, "truediv", lhs, rhs, span)


def floordiv(lhs: Operand, rhs: Operand, span: Span = UNKNOWN) -> e.Expr:
    """lhs // rhs, rounding down"""
    return _arith(e.FloorDiv, "floordiv", lhs, rhs, span)


def mod(lhs: Operand, rhs: Operand, span: Span = UNKNOWN) -> e.Expr:
    """lhs % rhs, with the sign of rhs"""
    return _arith(e.FloorMod, "mod", lhs, rhs, span)


def pow(lhs: Operand, rhs: Operand, span: Span = UNKNOWN) -> e.Expr:
    """lhs ** rhs"""
    return _arith(e.Pow, "pow", lhs, rhs, span)


def min_(lhs: Operand, rhs: Operand, span: Span = UNKNOWN) -> e.Expr:
    """The smaller operand."""
    return _arith(e.Min, "min", lhs, rhs, span)


def max_(lhs: Operand, rhs: Operand, span: Span = UNKNOWN) -> e.Expr:
    """The larger operand."""
    return _arith(e.Max, "max", lhs, rhs, span)


def eq(lhs: Operand, rhs: Operand, span: Span = UNKNOWN) -> e.Expr:
    """lhs == rhs"""
    return _compare(e.Eq, "eq", lhs, rhs, span)


def ne(lhs: Operand, rhs: Operand, span: Span = UNKNOWN) -> e.Expr:
    """lhs != rhs"""
    return _compare(e.Ne, "ne", lhs, rhs, span)


def lt(lhs: Operand, rhs: Operand, span: Span = UNKNOWN) -> e.Expr:
    """lhs < rhs"""
    return _compare(e.Lt, "lt", lhs, rhs, span)


def le(lhs: Operand, rhs: Operand, span: Span = UNKNOWN) -> e.Expr:
    """lhs <= rhs"""
    return _compare(e.Le, "le", lhs, rhs, span)


def gt(lhs: Operand, rhs: Operand, span: Span = UNKNOWN) -> e.Expr:
    """lhs > rhs"""
    return _compare(e.Gt, "gt", lhs, rhs, span)


def ge(lhs: Operand, rhs: Operand, span: Span = UNKNOWN) -> e.Expr:
    """lhs >= rhs"""
    return _compare(e.Ge, "ge", lhs, rhs, span)


def bit_and(lhs: Operand, rhs: Operand, span: Span = UNKNOWN) -> e.Expr:
    """lhs & rhs"""
    return _bits(e.BitAnd, "bit_and", lhs, rhs, span)


def bit_or(lhs: Operand, rhs: Operand, span: Span = UNKNOWN) -> e.Expr:
    """lhs | rhs"""
    return _bits(e.BitOr, "bit_or", lhs, rhs, span)


def bit_xor(lhs: Operand, rhs: Operand, span: Span = UNKNOWN) -> e.Expr:
    """lhs ^ rhs"""
    return _bits(e.BitXor, "bit_xor", lhs, rhs, span)


def bit_shift_left(lhs: Operand, rhs: Operand, span: Span = UNKNOWN) -> e.Expr:
    """lhs << rhs"""
    return _bits(e.BitShiftLeft, "bit_shift_left", lhs, rhs, span)


def bit_shift_right(lhs: Operand, rhs: Operand, span: Span = UNKNOWN) -> e.Expr:
    """lhs >> rhs"""
    return _bits(e.BitShiftRight, "bit_shift_right", lhs, rhs, span)


def and_(lhs: Operand, rhs: Operand, span: Span = UNKNOWN) -> e.Expr:
    """lhs and rhs"""
    return _logic(e.And, lhs, rhs, span)


def or_(lhs: Operand, rhs: Operand, span: Span = UNKNOWN) -> e.Expr:
    """lhs or rhs"""
    return _logic(e.Or, lhs, rhs, span)


def not_(operand: Operand, span: Span = UNKNOWN) -> e.Expr:
    """not operand"""
    return e.Not(as_scalar(operand, span), BOOL, span)


def neg(operand: Operand, span: Span = UNKNOWN) -> e.Expr:
    """-operand; a constant is negated at once"""
    x = as_scalar(operand, span)
    if isinstance(x, e.ConstInt):
        return e.ConstInt(-x.value, x.dtype, span)
    if isinstance(x, e.ConstFloat):
        return e.ConstFloat(-x.value, x.dtype, span)
    return e.Neg(x, scalar_dtype(x, "neg"), span)


def bit_not(operand: Operand, span: Span = UNKNOWN) -> e.Expr:
    """~operand

    Raises:
        TypeError: the operand is no integer.
    """
    x = as_scalar(operand, span)
    dtype = scalar_dtype(x, "bit_not")
    if not dtype.is_int():
        raise TypeError(f"Operator 'bit_not' requires an integer operand, got {dtype}")
    return e.BitNot(x, dtype, span)


def cast(operand: Operand, dtype: DataType, span: Span = UNKNOWN) -> e.Expr:
    """operand converted to `dtype`"""
    return e.Cast(as_scalar(operand, span), dtype, span)


def abs_(operand: Operand, span: Span = UNKNOWN) -> e.Expr:
    """The magnitude of operand."""
    x = as_scalar(operand, span)
    return e.Abs(x, scalar_dtype(x, "abs"), span)
