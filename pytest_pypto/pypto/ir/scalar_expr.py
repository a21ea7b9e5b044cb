"""Scalar operators as IR nodes: two operands, or one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from .dtypes import DataType
from .expr_base import Expr
from .span import UNKNOWN, Span
from .types import ScalarType, Type


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BinaryExpr(Expr):
    """Base of scalar operators with two operands."""

    symbol: ClassVar[str] = ""
    left: Expr
    right: Expr
    dtype: DataType
    span: Span = UNKNOWN
    type: Type = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.left, Expr) or not isinstance(self.right, Expr):
            raise TypeError(f"operands of {type(self).__name__} must be ir.Expr, got {self.left!r} and {self.right!r}")
        object.__setattr__(self, "type", ScalarType(self.dtype))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class UnaryExpr(Expr):
    """Base of scalar operators with one operand."""

    symbol: ClassVar[str] = ""
    operand: Expr
    dtype: DataType
    span: Span = UNKNOWN
    type: Type = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.operand, Expr):
            raise TypeError(f"the operand of {type(self).__name__} must be an ir.Expr, got {self.operand!r}")
        object.__setattr__(self, "type", ScalarType(self.dtype))


class Add(BinaryExpr):
    """a + b"""

    __slots__ = ()
    symbol = "+"


class Sub(BinaryExpr):
    """a - b"""

    __slots__ = ()
    symbol = "-"


class Mul(BinaryExpr):
    """a * b"""

    __slots__ = ()
    symbol = "*"


class FloorDiv(BinaryExpr):
    """a // b"""

    __slots__ = ()
    symbol = "//"


class FloorMod(BinaryExpr):
    """a % b"""

    __slots__ = ()
    symbol = "%"


class FloatDiv(BinaryExpr):
    """a / b"""

    __slots__ = ()
    symbol = "/"


class Min(BinaryExpr):
    """min(a, b)"""

    __slots__ = ()
    symbol = "min"


class Max(BinaryExpr):
    """max(a, b)"""

    __slots__ = ()
    symbol = "max"


class Pow(BinaryExpr):
    """a ** b"""

    __slots__ = ()
    symbol = "**"


class Eq(BinaryExpr):
    """a == b"""

    __slots__ = ()
    symbol = "=="


class Ne(BinaryExpr):
    """a != b"""

    __slots__ = ()
    symbol = "!="


class Lt(BinaryExpr):
    """a < b"""

    __slots__ = ()
    symbol = "<"


class Le(BinaryExpr):
    """a <= b"""

    __slots__ = ()
    symbol = "<="


class Gt(BinaryExpr):
    """a > b"""

    __slots__ = ()
    symbol = ">"


class Ge(BinaryExpr):
    """a >= b"""

    __slots__ = ()
    symbol = ">="


class And(BinaryExpr):
    """a and b"""

    __slots__ = ()
    symbol = "and"


class Or(BinaryExpr):
    """a or b"""

    __slots__ = ()
    symbol = "or"


class Xor(BinaryExpr):
    """exclusive or of two truth values; printed as `^`"""

    __slots__ = ()
    symbol = "^"


class BitAnd(BinaryExpr):
    """a & b"""

    __slots__ = ()
    symbol = "&"


class BitOr(BinaryExpr):
    """a | b"""

    __slots__ = ()
    symbol = "|"


class BitXor(BinaryExpr):
    """a ^ b"""

    __slots__ = ()
    symbol = "^"


class BitShiftLeft(BinaryExpr):
    """a << b"""

    __slots__ = ()
    symbol = "<<"


class BitShiftRight(BinaryExpr):
    """a >> b"""

    __slots__ = ()
    symbol = ">>"


class Abs(UnaryExpr):
    """abs(x)"""

    __slots__ = ()
    symbol = "abs"


class Neg(UnaryExpr):
    """-x"""

    __slots__ = ()
    symbol = "-"


class Not(UnaryExpr):
    """not x"""

    __slots__ = ()
    symbol = "not"


class BitNot(UnaryExpr):
    """~x"""

    __slots__ = ()
    symbol = "~"


class Cast(UnaryExpr):
    """x converted to `dtype`"""

    __slots__ = ()
    symbol = "cast"


BINARY_CLASSES: tuple[type[BinaryExpr], ...] = (
    *(Add, Sub, Mul, FloorDiv, FloorMod, FloatDiv, Min, Max, Pow, Eq, Ne, Lt, Le, Gt, Ge),
    *(And, Or, Xor, BitAnd, BitOr, BitXor, BitShiftLeft, BitShiftRight),
)
UNARY_CLASSES: tuple[type[UnaryExpr], ...] = (Abs, Neg, Not, BitNot, Cast)
