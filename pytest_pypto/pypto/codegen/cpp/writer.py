"""Lines, names and scalar expressions of the C++ rendering."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ...ir import expr as e
from ...ir.dtypes import DataType
from ...ir.param_info import plain_name
from ...ir.types import ScalarType

_ILLEGAL = re.compile(r"\W")
_INFIX: dict[type[e.Expr], str] = {
    e.Add: "+",
    e.Sub: "-",
    e.Mul: "*",
    e.FloatDiv: "/",
    e.Eq: "==",
    e.Ne: "!=",
    e.Lt: "<",
    e.Le: "<=",
    e.Gt: ">",
    e.Ge: ">=",
    e.And: "&&",
    e.Or: "||",
    e.BitAnd: "&",
    e.BitOr: "|",
    e.BitXor: "^",
    e.BitShiftLeft: "<<",
    e.BitShiftRight: ">>",
    e.Xor: "!=",
}
_CALLS: dict[type[e.Expr], str] = {
    e.FloorDiv: "floor_div",
    e.FloorMod: "floor_mod",
    e.Min: "std::min<int64_t>",
    e.Max: "std::max<int64_t>",
    e.Pow: "std::pow",
}


@dataclass(slots=True)
class Writer:
    """Collects indented lines; `text_of` maps IR variables to C++ expressions."""

    lines: list[str] = field(default_factory=list)
    depth: int = 0
    text_of: dict[e.Var, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    counters: dict[str, int] = field(default_factory=dict)

    def line(self, text: str = "") -> None:
        """One line at the current depth."""
        self.lines.append("    " * self.depth + text if text else "")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """`head {` ... `}`."""
        self.line(f"{head} {{")
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
            self.line("}")

    def fresh(self, hint: str) -> str:
        """An unused C++ identifier like `hint`."""
        base = _ILLEGAL.sub("_", plain_name(hint)) or "v"
        name, number = base, 0
        while name in self.used:
            number += 1
            name = f"{base}_{number}"
        self.used.add(name)
        return name

    def number(self, kind: str) -> int:
        """0, 1, 2, ... per kind."""
        made = self.counters.get(kind, 0)
        self.counters[kind] = made + 1
        return made

    def name(self, var: e.Var) -> str:
        """The C++ expression a variable stands for; a new identifier when it has none yet."""
        if var not in self.text_of:
            self.text_of[var] = self.fresh(var.name_hint)
        return self.text_of[var]

    def expr(self, x: e.Expr) -> str:
        """A scalar expression."""
        if isinstance(x, e.Var):
            return self.name(x)
        if isinstance(x, e.ConstInt):
            return str(x.value)
        if isinstance(x, e.ConstFloat):
            return f"{x.value!r}f"
        if isinstance(x, e.ConstBool):
            return "true" if x.value else "false"
        if isinstance(x, e.BinaryExpr):
            left, right = self.expr(x.left), self.expr(x.right)
            if type(x) in _CALLS:
                return f"{_CALLS[type(x)]}({left}, {right})"
            return f"({left} {_INFIX[type(x)]} {right})"
        if isinstance(x, e.UnaryExpr):
            return self._unary(x)
        return f"/* {x} */"

    def _unary(self, x: e.UnaryExpr) -> str:
        inner = self.expr(x.operand)
        if isinstance(x, e.Cast):
            return f"static_cast<{x.dtype.to_c_type_string()}>({inner})"
        if isinstance(x, e.Abs):
            return f"std::abs({inner})"
        return {"-": "-", "not": "!", "~": "~"}[x.symbol] + inner

    def numbers(self, x: e.Expr) -> str:
        """`{a, b}` of a shape or offset operand."""
        assert isinstance(x, e.MakeTuple)
        return "{" + ", ".join(self.expr(v) for v in x.elements) + "}"


def scalar_dtype(x: e.Expr) -> DataType:
    """Element type of a scalar expression; INDEX when it is something else."""
    return x.type.dtype if isinstance(x.type, ScalarType) else DataType.INDEX


_TENSOR_DTYPES = {
    DataType.FP32: "FLOAT32",
    DataType.FP16: "FLOAT16",
    DataType.BF16: "BFLOAT16",
    DataType.BOOL: "BOOL",
}


def tensor_dtype(dtype: DataType) -> str:
    """`DataType::FLOAT32`."""
    return f"DataType::{_TENSOR_DTYPES.get(dtype, dtype.name)}"
