"""Expressions: names, literals, scalar operators, tuples."""

from __future__ import annotations

import ast
import numbers
import operator
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from ...ir import expr as e
from ...ir import scalar_ops as ops
from ...ir.dtypes import BOOL, DataType
from ...ir.enums import MemorySpace
from ...ir.span import Span
from ...ir.types import ScalarType
from ..typing import DynVar, Scalar
from . import constants
from .constants import dotted
from .context import EXPRESSIONS, TOO_BIG, Ctx, Value
from .diagnostics import ParserSyntaxError, ParserTypeError, UnsupportedFeatureError
from .extents import FREE_SUFFIX, free_symbol, shared_symbol
from .names import MISSING

_HINTS: dict[str, str] = {
    "JoinedStr": "f-strings are allowed in pl.static_print() only",
    "IfExp": "write an if statement that assigns in both branches",
    "Lambda": "write a function decorated with @pl.inline",
    "NamedExpr": "assign on a line of its own",
    "Dict": "dictionaries are allowed as attrs={...} and in pl.func_attr({...}) only",
    "ListComp": "write the items out, or use a loop",
}
_ACCEPTED = "expressions are names, numbers, arithmetic and comparisons of scalars, subscripts, lists and calls"
_NUMBERS = (int, float, bool)
MAX_OPERANDS = 200
_NAME_PARTS = "give parts of it names of their own"


def unsupported(ctx: Ctx, node: ast.expr) -> NoReturn:
    """Raise for an expression kind that the language does not have."""
    kind = type(node).__name__
    ctx.fail(UnsupportedFeatureError, f"Unsupported expression type: {kind}", node, _HINTS.get(kind, _ACCEPTED))


def _name(ctx: Ctx, node: ast.Name) -> Value:
    var = ctx.scopes.find(node.id)
    if var is not None:
        return var
    value = MISSING if node.id in ctx.poisoned else ctx.closure.get(node.id)
    if value is MISSING:
        if node.id.endswith(FREE_SUFFIX) or node.id in ctx.program.symbols:
            return free_symbol(ctx, node)
        ctx.undefined(node.id, node)
    return closure_value(ctx, value, node)


def plain_number(value: Any) -> int | float | None:
    """The number in an enum member, a numpy scalar or a tensor with one integer; None for all else."""
    try:
        return operator.index(value)
    except (TypeError, ValueError):
        return float(value) if isinstance(value, numbers.Real) else None


def closure_value(ctx: Ctx, value: Any, node: ast.expr) -> Value:
    """A value from outside the function as a value of the language."""
    if type(value) in _NUMBERS:
        return value
    if isinstance(value, DynVar):
        return shared_symbol(ctx, value)
    if isinstance(value, Scalar):
        return value.unwrap()
    if isinstance(value, e.Expr):
        return value
    if isinstance(value, (list, tuple)):
        span = ctx.span(node)
        return e.MakeTuple(tuple(ctx.lift(closure_value(ctx, v, node), node) for v in value), span)
    if isinstance(value, MemorySpace):
        return e.index(value.value, ctx.span(node))
    number = plain_number(value)
    if number is not None:
        return number
    ctx.fail(
        UnsupportedFeatureError,
        f"'{ast.unparse(node)}' is a {type(value).__name__} from outside the function; it is no value of the language",
        node,
        "usable values: int, float, bool, lists of these, pl.dynamic symbols, dtypes and enum members as arguments",
    )


def _constant(ctx: Ctx, node: ast.Constant) -> Value:
    value = node.value
    if type(value) in _NUMBERS:
        return value
    if value is None:
        return e.Call(e.Op("system.task_invalid"), (), type=ScalarType(DataType.TASK_ID), span=ctx.span(node))
    ctx.fail(
        ParserTypeError,
        f"Unsupported constant type: {type(value)}",
        node,
        "strings are accepted where an operator documents one, for example mode='round'",
    )


def _attribute(ctx: Ctx, node: ast.Attribute) -> Value:
    value = ctx.constant(node)
    if value is MISSING:
        _unknown_attribute(ctx, node)
    if type(value) in _NUMBERS or isinstance(value, (e.Expr, Scalar, MemorySpace, list, tuple)):
        return closure_value(ctx, value, node)
    hint = f"pass it to an operator as an argument; it is a {type(value).__name__}"
    ctx.fail(UnsupportedFeatureError, f"Standalone attribute access not supported: {ast.unparse(node)}", node, hint)


def _unknown_attribute(ctx: Ctx, node: ast.Attribute) -> NoReturn:
    path = ctx.path(node)
    if path is not None and path[0] == "pl" and "." not in path[1]:
        from .annotations import no_attribute

        no_attribute(ctx, path[1], node)
    root = (dotted(node) or "").split(".")[0]
    hint = "attributes are dtypes, enum members and plain values of names from outside the function"
    if root and ctx.scopes.find(root) is not None:
        hint = f"values have no attributes: use an operator, for example pl.tensor.dim({root}, 0) for an extent"
    message = f"Standalone attribute access not supported: {ast.unparse(node)}"
    ctx.fail(UnsupportedFeatureError, message, node, hint)


_SCALAR: dict[type[ast.AST], Callable[..., e.Expr]] = {
    ast.Add: ops.add,
    ast.Sub: ops.sub,
    ast.Mult: ops.mul,
    ast.Div: ops.truediv,
    ast.FloorDiv: ops.floordiv,
    ast.Mod: ops.mod,
    ast.LShift: ops.bit_shift_left,
    ast.RShift: ops.bit_shift_right,
}
_COMPARE: dict[type[ast.AST], Callable[..., e.Expr]] = {
    ast.Eq: ops.eq,
    ast.NotEq: ops.ne,
    ast.Lt: ops.lt,
    ast.LtE: ops.le,
    ast.Gt: ops.gt,
    ast.GtE: ops.ge,
}
_SIGNS = "operators of scalars are + - * / // % << >>, comparisons, and, or, not"
_OPERATOR_HINTS = {
    "Pow": "multiply instead",
    "BitAnd": "write `and` for conditions; bit operators on tiles are pl.and_, pl.or_, pl.xor",
    "BitOr": "write `or` for conditions; bit operators on tiles are pl.and_, pl.or_, pl.xor",
    "MatMult": "write pl.matmul(a, b)",
}


def _binary(ctx: Ctx, node: ast.BinOp) -> Value:
    left, right = ctx.value(node.left), ctx.value(node.right)
    if type(left) in (int, float) and type(right) in (int, float):
        return _fold(ctx, node, left, right)
    make = _SCALAR.get(type(node.op))
    if make is None and ctx.program.printed:
        return _printed_binary(ctx, node, left, right)
    if make is None:
        kind = type(node.op).__name__
        ctx.fail(
            UnsupportedFeatureError, f"Unsupported binary operator: {kind}", node, _OPERATOR_HINTS.get(kind, _SIGNS)
        )
    return apply_scalar(ctx, make, (_operand(ctx, left, node.left), _operand(ctx, right, node.right)), node)


def _printed_binary(ctx: Ctx, node: ast.BinOp, left: Value, right: Value) -> Value:
    """Operators that only the printed form has; `^` between truth values is the logical one."""
    a, b = _operand(ctx, left, node.left), _operand(ctx, right, node.right)
    both_bool = all(isinstance(x.type, ScalarType) and x.type.dtype is BOOL for x in (a, b))
    if isinstance(node.op, ast.BitXor) and both_bool:
        return e.Xor(a, b, BOOL, ctx.span(node))
    table = {ast.BitXor: ops.bit_xor, ast.BitAnd: ops.bit_and, ast.BitOr: ops.bit_or, ast.Pow: ops.pow}
    make = table.get(type(node.op))
    if make is None:
        ctx.fail(UnsupportedFeatureError, f"Unsupported binary operator: {type(node.op).__name__}", node, _SIGNS)
    return apply_scalar(ctx, make, (a, b), node)


def _fold(ctx: Ctx, node: ast.BinOp, left: Any, right: Any) -> Value:
    """Arithmetic on literals and closure numbers is done here, as Python does it."""
    try:
        value = constants.binary(node.op, left, right, node)
    except constants.NotConstant:
        kind = type(node.op).__name__
        message = f"Unsupported binary operator: {kind}"
        ctx.fail(UnsupportedFeatureError, message, node, "the result does not fit in 64 bits, or is no number")
    except (ArithmeticError, ValueError, TypeError) as exc:
        ctx.fail(ParserTypeError, f"cannot compute {ast.unparse(node)}: {exc}", node, _SIGNS)
    if type(value) is int and value.bit_length() > constants.MAX_INT_BITS:
        ctx.fail(ParserTypeError, "integer constant does not fit in 64 bits", node, TOO_BIG)
    return value


def _operand(ctx: Ctx, value: Value, node: ast.expr) -> e.Expr:
    return value if isinstance(value, e.Expr) else ctx.lift(value, node)


def apply_scalar(ctx: Ctx, make: Callable[..., e.Expr], operands: tuple[e.Expr, ...], node: ast.AST) -> e.Expr:
    """A scalar operator on `operands`; what the IR refuses becomes a parser error at `node`."""
    for operand in operands:
        if not isinstance(operand.type, ScalarType):
            _no_scalar(ctx, operand, node)
    try:
        return make(*operands, ctx.span(node))
    except (TypeError, ValueError) as exc:
        ctx.wrong(exc, node, _scalar_hint(str(exc)))


def _scalar_hint(text: str) -> str | None:
    if "category" in text:
        return "convert one side with pl.cast(x, dtype), or write the literal as the other kind (1.0 for 1)"
    return "join conditions with `and`, `or`, `not`" if "bool" in text else None


def _no_scalar(ctx: Ctx, operand: e.Expr, node: ast.AST) -> NoReturn:
    if isinstance(operand, e.Var) and operand.name_hint in ctx.poisoned:
        ctx.undefined(operand.name_hint, node)
    kind = type(operand).__name__
    ctx.fail(
        ParserSyntaxError,
        f"Failed to parse function '{ctx.name}': Expression must be ScalarExpr or Var with ScalarType, got {kind} "
        f"with type {type(operand.type).__name__}",
        node,
        "Python operators are for scalars; for tensors and tiles write pl.add, pl.sub, pl.mul, pl.maximum, ...",
    )


def _unary(ctx: Ctx, node: ast.UnaryOp) -> Value:
    value = ctx.value(node.operand)
    op = type(node.op)
    if op is ast.USub:
        if type(value) in (int, float):
            return -value
        if isinstance(value, (e.ConstInt, e.ConstFloat)) and ctx.program.printed:
            return e.Neg(value, value.dtype, ctx.span(node))
        if isinstance(value, e.ConstInt):
            return e.ConstInt(ctx.fitting(-value.value, value.dtype, node), value.dtype, ctx.span(node))
        if isinstance(value, e.ConstFloat):
            return e.ConstFloat(-value.value, value.dtype, ctx.span(node))
        return apply_scalar(ctx, ops.neg, (_operand(ctx, value, node.operand),), node)
    if op is ast.Not:
        return ops.not_(_operand(ctx, value, node.operand), ctx.span(node))
    if op is ast.Invert:
        return apply_scalar(ctx, ops.bit_not, (_operand(ctx, value, node.operand),), node)
    ctx.fail(UnsupportedFeatureError, f"Unsupported unary operator: {op.__name__}", node, "drop the sign")


def _compare(ctx: Ctx, node: ast.Compare) -> Value:
    if len(node.ops) != 1:
        hint = "join two comparisons with `and`"
        ctx.fail(ParserSyntaxError, "Only simple comparisons supported", node, hint)
    make = _COMPARE.get(type(node.ops[0]))
    if make is None:
        kind = type(node.ops[0]).__name__
        ctx.fail(UnsupportedFeatureError, f"Unsupported comparison: {kind}", node, "use == != < <= > >=")
    return apply_scalar(ctx, make, (ctx.expr(node.left), ctx.expr(node.comparators[0])), node)


def _bool(ctx: Ctx, node: ast.BoolOp) -> Value:
    if len(node.values) > MAX_OPERANDS:
        ctx.fail(
            ParserSyntaxError,
            f"a condition of {len(node.values)} parts; up to {MAX_OPERANDS} are accepted",
            node,
            _NAME_PARTS,
        )
    cls = e.And if isinstance(node.op, ast.And) else e.Or
    made = ctx.expr(node.values[0])
    for other in node.values[1:]:
        made = cls(made, ctx.expr(other), BOOL, _joined(ctx, node))
    return made


def _joined(ctx: Ctx, node: ast.BoolOp) -> Span:
    return ctx.span(node)


def _display(ctx: Ctx, node: ast.List | ast.Tuple) -> Value:
    return e.MakeTuple(tuple(ctx.expr(item) for item in node.elts), ctx.span(node))


def warn(ctx: Ctx, message: str, node: ast.AST, category: type[Warning] = UserWarning) -> None:
    """A warning that names the place in the author's file."""
    span = ctx.span(node)
    warnings.warn_explicit(message, category, span.filename, span.begin_line)


EXPRESSIONS.update(
    {
        ast.Name: _name,
        ast.Constant: _constant,
        ast.Attribute: _attribute,
        ast.BinOp: _binary,
        ast.UnaryOp: _unary,
        ast.Compare: _compare,
        ast.BoolOp: _bool,
        ast.List: _display,
        ast.Tuple: _display,
    }
)
