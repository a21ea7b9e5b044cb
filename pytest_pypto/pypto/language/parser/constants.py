"""What dotted names such as `pl.FP32` and `pl.Mem.Vec` stand for, and safe evaluation over closure values.

Nothing here calls or imports what a text names: enum members and dtypes come from tables, attributes are followed only
on plain values of the author's own closure, and never private ones.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from enum import Enum
from types import ModuleType
from typing import Any

from ...ir import enums
from ...ir.dtypes import DataType
from ...ir.enums import ArgDirection
from .names import MISSING

ENUMS: dict[str, type[Enum]] = {
    name: getattr(enums, name)
    for name in (
        *("MemorySpace", "Mem", "TensorLayout", "TileLayout", "PadValue", "CompactMode", "FunctionType", "Level"),
        *("Role", "SplitMode", "ForKind", "ScopeMode", "PipeType", "AtomicType", "CoreType", "NotifyOp", "WaitCmp"),
        *("ReduceOp", "ParamDirection", "ArgDirection", "MaskPattern"),
    )
}
ADIR: dict[str, ArgDirection] = {
    "input": ArgDirection.Input,
    "output": ArgDirection.Output,
    "output_existing": ArgDirection.OutputExisting,
    "inout": ArgDirection.InOut,
    "no_dep": ArgDirection.NoDep,
    "scalar": ArgDirection.Scalar,
}
_LAYOUTS = {layout.name: layout for layout in enums.TensorLayout}
_PLAIN: dict[str, Any] = {"AUTO": -1, **_LAYOUTS}

MAX_INT_BITS = 64
MAX_ITEMS = 1024
_BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_UNARY: dict[type[ast.AST], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}
_SAFE_CALLS: dict[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "len": len,
    "abs": abs,
    "int": int,
    "sum": sum,
    "tuple": tuple,
    "list": list,
}


def dotted(node: ast.expr) -> str | None:
    """`a.b.c` as text, or None when the node is anything else."""
    if type(node) is ast.Attribute:
        value = node.value
        if type(value) is ast.Name:
            return f"{value.id}.{node.attr}"
        inner = dotted(value)
        return None if inner is None else f"{inner}.{node.attr}"
    return node.id if type(node) is ast.Name else None


def constant_of(path: str) -> Any:
    """The dtype, enum member or number that `path` (without the `pl.`) names, or `MISSING`."""
    head, _, rest = path.removeprefix("tile.").partition(".")
    if not rest:
        dtype = DataType.from_name(head)
        return dtype if dtype is not None else _PLAIN.get(head, MISSING)
    if head in ENUMS:
        return ENUMS[head].__members__.get(rest, MISSING)
    if head == "adir":
        return ADIR.get(rest, MISSING)
    if head == "DataType":
        dtype = DataType.from_name(rest)
        return MISSING if dtype is None else dtype
    return MISSING


def follow(value: Any, names: list[str]) -> Any:
    """`value.a.b`, for public attributes only; `MISSING` when there is none."""
    for name in names:
        if name.startswith("_"):
            return MISSING
        value = _read(value, name)
        if value is MISSING:
            return MISSING
    return value


def _read(value: Any, name: str) -> Any:
    if isinstance(value, ModuleType) and value.__name__.split(".")[0] in ("os", "sys", "subprocess", "builtins"):
        return MISSING
    try:
        return getattr(value, name, MISSING)
    except Exception:  # a property of the author's own object may raise anything
        return MISSING


class NotConstant(Exception):
    """The expression is no constant; `str()` is its text, `node` the part that is none."""

    def __init__(self, node: ast.AST) -> None:
        super().__init__(ast.unparse(node))
        self.node = node


def evaluate(node: ast.expr, lookup: Callable[[ast.expr], Any]) -> Any:
    """The Python value of an expression over literals and names.

    `lookup` gives the value of a name or dotted name, or `MISSING`. Only arithmetic, indexing, displays and a few pure
    builtins are evaluated, with bounded numbers.

    Raises:
        NotConstant: anything else, or a failing or oversized operation.
    """
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.Name, ast.Attribute)):
        value = lookup(node)
        if value is MISSING:
            raise NotConstant(node)
        return value
    if isinstance(node, (ast.List, ast.Tuple)):
        items = [evaluate(e, lookup) for e in node.elts]
        return items if isinstance(node, ast.List) else tuple(items)
    try:
        value = _compute(node, lookup)
    except NotConstant:
        raise
    except Exception as exc:  # so may indexing it, or taking its length
        raise NotConstant(node) from exc
    return value


def _compute(node: ast.expr, lookup: Callable[[ast.expr], Any]) -> Any:
    if isinstance(node, ast.BinOp):
        return binary(node.op, evaluate(node.left, lookup), evaluate(node.right, lookup), node)
    if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        return _UNARY[type(node.op)](evaluate(node.operand, lookup))
    if isinstance(node, ast.Subscript):
        index: Any = slice(*_bounds(node.slice, lookup)) if isinstance(node.slice, ast.Slice) else None
        return evaluate(node.value, lookup)[evaluate(node.slice, lookup) if index is None else index]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        function = _SAFE_CALLS.get(node.func.id)
        if function is not None and lookup(node.func) is MISSING:
            return function(*(evaluate(a, lookup) for a in node.args))
    raise NotConstant(node)


def _bounds(node: ast.Slice, lookup: Callable[[ast.expr], Any]) -> list[Any]:
    return [None if part is None else evaluate(part, lookup) for part in (node.lower, node.upper, node.step)]


def binary(op: ast.operator, left: Any, right: Any, node: ast.AST) -> Any:
    """`left op right` for Python numbers of bounded size.

    Raises:
        NotConstant: the operator is not one of `+ - * / // % ** << >> & | ^`, or the result would be too large.
        ArithmeticError: Python's own complaint (division by zero).
    """
    if not (_number(left) and _number(right)):
        return _sequence(op, left, right, node)
    if type(op) in _BINARY:
        return _BINARY[type(op)](left, right)
    if isinstance(op, (ast.Pow, ast.LShift)) and 0 <= right <= MAX_INT_BITS:
        made = left**right if isinstance(op, ast.Pow) else left << right
        if not isinstance(made, int) or made.bit_length() <= MAX_INT_BITS:
            return made
    if isinstance(op, ast.RShift) and isinstance(left, int) and isinstance(right, int):
        return left >> right
    raise NotConstant(node)


def _sequence(op: ast.operator, left: Any, right: Any, node: ast.AST) -> Any:
    """`[64] + SHAPE` and `[1] * 3`, up to `MAX_ITEMS` items."""
    both = isinstance(left, (list, tuple)) and type(left) is type(right)
    if isinstance(op, ast.Add) and both and len(left) + len(right) <= MAX_ITEMS:
        return left + right
    repeats = isinstance(op, ast.Mult) and isinstance(left, (list, tuple)) and type(right) is int
    if repeats and len(left) * right <= MAX_ITEMS:
        return left * right
    raise NotConstant(node)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and (not isinstance(value, int) or value.bit_length() <= MAX_INT_BITS)
