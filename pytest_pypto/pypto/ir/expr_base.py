"""What every IR node and every expression has, and the names of operators and functions."""

from __future__ import annotations

from dataclasses import Field, fields, is_dataclass
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeAlias

from .span import Span
from .types import Type

if TYPE_CHECKING:
    from .program import Function, Program
    from .stmt import Stmt

Node: TypeAlias = "Expr | Stmt | Function | Program"
Number: TypeAlias = "int | float | Expr"


class IRNode:
    """Base of expressions, statements, functions and programs."""

    __slots__ = ()
    span: Span

    def same_as(self, other: object) -> bool:
        """Identity."""
        return self is other

    def as_python(self, prefix: str = "pl", concise: bool = False, format: bool = True) -> str:
        """The printed form; see `pypto.ir.python_print`."""
        from .printer import python_print

        return python_print(self, prefix, concise, format)

    def __str__(self) -> str:
        return self.as_python()

    @recursive_repr()
    def __repr__(self) -> str:
        # one method for all nodes: generated ones cost a tenth of the time to import the language
        parts: tuple[Field[Any], ...] = fields(self) if is_dataclass(self) else ()
        shown = ", ".join(f"{part.name}={getattr(self, part.name)!r}" for part in parts)
        return f"{type(self).__qualname__}({shown})"


class Op:
    """An operator, by name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def has_attr(self, key: str) -> bool:
        """True when the operator table has the column `key` for this operator."""
        return key in self.get_attr_keys()

    def get_attr_keys(self) -> list[str]:
        """Names of the keyword arguments that the operator table lists."""
        from .op_table import find_op

        spec = find_op(self.name)
        return [] if spec is None else [k.name for k in spec.kwargs]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class GlobalVar(Op):
    """The name of a function of the program, used as the callee."""

    __slots__ = ()


class Expr(IRNode):
    """Base of all expressions; `type` is the IR type, `span` the source place."""

    __slots__ = ()
    type: Type

    def __bool__(self) -> bool:
        raise TypeError("an IR expression has no truth value in Python; compare nodes with `is` or ir.structural_equal")

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> Any:
        from . import scalar_ops as ops

        return ops.eq(self, other) if isinstance(other, (int, float, Expr)) else NotImplemented

    def __ne__(self, other: object) -> Any:
        from . import scalar_ops as ops

        return ops.ne(self, other) if isinstance(other, (int, float, Expr)) else NotImplemented

    def _binary(self, name: str, other: object, swap: bool = False) -> Expr:
        from . import scalar_ops as ops

        if not isinstance(other, (int, float, Expr)):
            raise TypeError(f"cannot combine an IR expression with {other!r}; use an int, a float or an expression")
        left, right = (other, self) if swap else (self, other)
        made: Expr = getattr(ops, name)(left, right)
        return made

    def __add__(self, other: Number) -> Expr:
        return self._binary("add", other)

    def __radd__(self, other: Number) -> Expr:
        return self._binary("add", other, True)

    def __sub__(self, other: Number) -> Expr:
        return self._binary("sub", other)

    def __rsub__(self, other: Number) -> Expr:
        return self._binary("sub", other, True)

    def __mul__(self, other: Number) -> Expr:
        return self._binary("mul", other)

    def __rmul__(self, other: Number) -> Expr:
        return self._binary("mul", other, True)

    def __truediv__(self, other: Number) -> Expr:
        return self._binary("truediv", other)

    def __rtruediv__(self, other: Number) -> Expr:
        return self._binary("truediv", other, True)

    def __floordiv__(self, other: Number) -> Expr:
        return self._binary("floordiv", other)

    def __rfloordiv__(self, other: Number) -> Expr:
        return self._binary("floordiv", other, True)

    def __mod__(self, other: Number) -> Expr:
        return self._binary("mod", other)

    def __rmod__(self, other: Number) -> Expr:
        return self._binary("mod", other, True)

    def __pow__(self, other: Number) -> Expr:
        return self._binary("pow", other)

    def __lt__(self, other: Number) -> Expr:
        return self._binary("lt", other)

    def __le__(self, other: Number) -> Expr:
        return self._binary("le", other)

    def __gt__(self, other: Number) -> Expr:
        return self._binary("gt", other)

    def __ge__(self, other: Number) -> Expr:
        return self._binary("ge", other)

    def __and__(self, other: Number) -> Expr:
        return self._binary("bit_and", other)

    def __or__(self, other: Number) -> Expr:
        return self._binary("bit_or", other)

    def __xor__(self, other: Number) -> Expr:
        return self._binary("bit_xor", other)

    def __lshift__(self, other: Number) -> Expr:
        return self._binary("bit_shift_left", other)

    def __rshift__(self, other: Number) -> Expr:
        return self._binary("bit_shift_right", other)

    def __neg__(self) -> Expr:
        from . import scalar_ops as ops

        return ops.neg(self)

    def __invert__(self) -> Expr:
        from . import scalar_ops as ops

        return ops.bit_not(self)
