"""Scalar expressions as `arith` operations."""

from __future__ import annotations

from ...ir import expr as e
from ...ir.dtypes import DataType
from ...ir.types import ScalarType
from .emitter import Emitter, ScalarValue
from .types import element_text

_INT: dict[type[e.Expr], str] = {
    e.Add: "addi",
    e.Sub: "subi",
    e.Mul: "muli",
    e.BitAnd: "andi",
    e.BitOr: "ori",
    e.BitXor: "xori",
    e.And: "andi",
    e.Or: "ori",
    e.Xor: "xori",
    e.BitShiftLeft: "shli",
}
_SIGNED: dict[type[e.Expr], tuple[str, str]] = {
    e.FloorDiv: ("divsi", "divui"),
    e.FloorMod: ("remsi", "remui"),
    e.Min: ("minsi", "minui"),
    e.Max: ("maxsi", "maxui"),
    e.BitShiftRight: ("shrsi", "shrui"),
}
_FLOAT: dict[type[e.Expr], str] = {
    e.Add: "addf",
    e.Sub: "subf",
    e.Mul: "mulf",
    e.FloatDiv: "divf",
    e.Min: "minimumf",
    e.Max: "maximumf",
}
_COMPARE: dict[type[e.Expr], tuple[str, str, str]] = {
    e.Eq: ("eq", "eq", "oeq"),
    e.Ne: ("ne", "ne", "une"),
    e.Lt: ("slt", "ult", "olt"),
    e.Le: ("sle", "ule", "ole"),
    e.Gt: ("sgt", "ugt", "ogt"),
    e.Ge: ("sge", "uge", "oge"),
}


def scalar(em: Emitter, expr: e.Expr | int, as_type: DataType | None = None) -> ScalarValue:
    """Write the operations that compute `expr`; a bare int is an index.

    `as_type` is the type an untyped literal takes (the element type of the tile it meets).

    Raises:
        CodegenError: an operator that kernels do not have.
    """
    if isinstance(expr, int):
        return ScalarValue(em.index(expr), "index")
    if isinstance(expr, (e.ConstInt, e.ConstFloat, e.ConstBool)):
        return _constant(em, expr, as_type)
    if isinstance(expr, e.Var):
        return _variable(em, expr)
    if isinstance(expr, e.BinaryExpr):
        return _binary(em, expr)
    if isinstance(expr, e.UnaryExpr):
        return _unary(em, expr)
    raise em.fail(f"{type(expr).__name__} cannot be a scalar operand; give the value a name first", expr.span)


def index_of(em: Emitter, expr: e.Expr | int) -> str:
    """The name of an extent, offset, place or loop bound: an index, whatever integer type the expression has."""
    value = scalar(em, expr, DataType.INDEX)
    return value.name if isinstance(expr, int) else convert(em, value, _dtype(expr), DataType.INDEX).name


def element_of(em: Emitter, expr: e.Expr, dtype: DataType) -> ScalarValue:
    """A value as an element of something: in its element type."""
    return convert(em, scalar(em, expr, dtype), _dtype(expr), dtype)


def _constant(em: Emitter, expr: e.ConstInt | e.ConstFloat | e.ConstBool, as_type: DataType | None) -> ScalarValue:
    dtype = as_type or expr.dtype
    text = element_text(dtype)
    if isinstance(expr, e.ConstFloat):
        if not dtype.is_float():
            return ScalarValue(em.constants.integer(int(expr.value), text), text)
        return ScalarValue(em.constants.floating(expr.value, text), text)
    return ScalarValue(em.constants.integer(int(expr.value), text), text)


def _variable(em: Emitter, var: e.Var) -> ScalarValue:
    found = em.scalars.get(var)
    if found is None:
        raise em.fail(f"scalar '{var.name_hint}' is used before it is defined", var.span)
    return found


def _dtype(expr: e.Expr) -> DataType:
    if isinstance(expr.type, ScalarType):
        return expr.type.dtype
    return DataType.INDEX


def arith(em: Emitter, op: str, operands: list[str], type_text: str) -> ScalarValue:
    """One `arith` operation with operands and result of one type."""
    name = em.names.take()
    em.line(f"{name} = arith.{op} {', '.join(operands)} : {type_text}")
    return ScalarValue(name, type_text)


def _binary(em: Emitter, expr: e.BinaryExpr) -> ScalarValue:
    dtype = _common(expr)
    if isinstance(expr, (e.FloorDiv, e.FloorMod)) and dtype.is_signed_int() and not _floors_like_division(em, expr):
        return _floored(em, expr)
    kind = type(expr)
    left = _divisibility(em, expr) or element_of(em, expr.left, dtype)
    right = element_of(em, expr.right, dtype)
    if kind in _COMPARE:
        signed, unsigned, floating = _COMPARE[kind]
        if dtype.is_float():
            op = f"cmpf {floating},"
        else:
            op = f"cmpi {unsigned if dtype.is_unsigned_int() else signed},"
        made = arith(em, op, [left.name, right.name], left.type_text)
        return ScalarValue(made.name, "i1")
    return arith(em, _operator(em, expr, dtype), [left.name, right.name], left.type_text)


def _common(expr: e.BinaryExpr) -> DataType:
    """The type in which both operands are taken: that of the result; the wider one for comparisons."""
    left, right = _dtype(expr.left), _dtype(expr.right)
    if type(expr) in _COMPARE or left is right is DataType.BOOL:
        return left if left.get_bit() >= right.get_bit() else right
    return _dtype(expr)


def _divisibility(em: Emitter, expr: e.BinaryExpr) -> ScalarValue | None:
    """The remainder in `x % n == 0` and `x % n != 0`, whose sign does not matter; None for anything else."""
    inner = expr.left
    zero = isinstance(expr, (e.Eq, e.Ne)) and e.const_value(expr.right) == 0
    if not zero or not isinstance(inner, e.FloorMod) or not _dtype(inner).is_signed_int():
        return None
    dtype = _common(inner)
    left, right = element_of(em, inner.left, dtype), element_of(em, inner.right, dtype)
    return arith(em, "remsi", [left.name, right.name], left.type_text)


def _operator(em: Emitter, expr: e.BinaryExpr, dtype: DataType) -> str:
    kind = type(expr)
    op: str | None
    if dtype.is_float():
        op = _FLOAT.get(kind)
    elif kind in _SIGNED:
        op = _SIGNED[kind][dtype.is_unsigned_int()]
    else:
        op = _INT.get(kind)
    if op is None:
        raise em.fail(
            f"operator '{expr.symbol}' on {dtype} has no kernel instruction; "
            "compute the value in the orchestration function and pass it as a scalar",
            expr.span,
        )
    return op


def _floors_like_division(em: Emitter, expr: e.BinaryExpr) -> bool:
    """Truncating and flooring division agree: both operands are known not to be negative."""
    return is_nonnegative(em, expr.left) and is_nonnegative(em, expr.right)


def is_nonnegative(em: Emitter, expr: e.Expr) -> bool:
    """True when the value provably cannot be below zero (arithmetic is assumed not to overflow)."""
    if isinstance(expr, e.ConstInt):
        return expr.value >= 0
    if isinstance(expr, e.Var):
        return expr in em.nonnegative
    if isinstance(expr, (e.Add, e.Mul, e.FloorDiv, e.Min, e.BitAnd)):
        return is_nonnegative(em, expr.left) and is_nonnegative(em, expr.right)
    if isinstance(expr, e.Max):
        return is_nonnegative(em, expr.left) or is_nonnegative(em, expr.right)
    if isinstance(expr, e.FloorMod):
        return is_nonnegative(em, expr.right)
    if isinstance(expr, e.Cast):
        return is_nonnegative(em, expr.operand)
    return _dtype(expr).is_unsigned_int() or isinstance(expr, e.Abs)


def _floored(em: Emitter, expr: e.BinaryExpr) -> ScalarValue:
    """Flooring division and its remainder for operands that may be negative."""
    dtype = _common(expr)
    left, right = element_of(em, expr.left, dtype), element_of(em, expr.right, dtype)
    text = left.type_text
    quotient = arith(em, "floordivsi", [left.name, right.name], text)
    if isinstance(expr, e.FloorDiv):
        return quotient
    product = arith(em, "muli", [quotient.name, right.name], text)
    return arith(em, "subi", [left.name, product.name], text)


def _unary(em: Emitter, expr: e.UnaryExpr) -> ScalarValue:
    operand = scalar(em, expr.operand)
    dtype = _dtype(expr.operand)
    if isinstance(expr, e.Cast):
        return convert(em, operand, dtype, expr.dtype)
    text = operand.type_text
    if isinstance(expr, e.Neg):
        return _negated(em, operand, dtype)
    if isinstance(expr, e.Abs):
        minus = _negated(em, operand, dtype)
        return arith(em, "maximumf" if dtype.is_float() else "maxsi", [operand.name, minus.name], text)
    one = em.constants.integer(1 if isinstance(expr, e.Not) else -1, text)
    return arith(em, "xori", [operand.name, one], text)


def _negated(em: Emitter, value: ScalarValue, dtype: DataType) -> ScalarValue:
    if dtype.is_float():
        return arith(em, "negf", [value.name], value.type_text)
    return arith(em, "subi", [em.constants.integer(0, value.type_text), value.name], value.type_text)


def convert(em: Emitter, value: ScalarValue, source: DataType, target: DataType) -> ScalarValue:
    """A scalar in another element type; nothing is written when the types agree."""
    have, want = element_text(source), element_text(target)
    if have == want or value.type_text == want:
        return value
    if want == "i1":
        zero = em.constants.floating(0.0, have) if source.is_float() else em.constants.integer(0, have)
        op = "cmpf une," if source.is_float() else "cmpi ne,"
        made = arith(em, op, [value.name, zero], have)
        return ScalarValue(made.name, "i1")
    if source is DataType.INDEX and target.is_float():
        return convert(em, convert(em, value, source, DataType.INT64), DataType.INT64, target)
    if source.is_float() and target is DataType.INDEX:
        return convert(em, convert(em, value, source, DataType.INT64), DataType.INT64, target)
    name = em.names.take()
    em.line(f"{name} = arith.{_conversion(source, target)} {value.name} : {have} to {want}")
    return ScalarValue(name, want)


def _conversion(source: DataType, target: DataType) -> str:
    if DataType.INDEX in (source, target):
        return "index_cast"
    unsigned = source.is_unsigned_int() or source is DataType.BOOL
    wider = target.get_bit() > source.get_bit()
    if source.is_float() and target.is_float():
        return "extf" if wider else "truncf"
    if source.is_float():
        return "fptoui" if target.is_unsigned_int() else "fptosi"
    if target.is_float():
        return "uitofp" if unsigned else "sitofp"
    return ("extui" if unsigned else "extsi") if wider else "trunci"
