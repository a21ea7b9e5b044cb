"""Which function converts which operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ...ir import expr as e
from ...ir import stmt as s
from .._util import PassError
from .kernel import Kernel

Handler = Callable[[Kernel, e.Call, str, s.Stmt], "e.Expr | None"]
"""(kernel, call, base name of the result, statement) -> what the result is; None for operators without result."""
_HANDLERS: dict[str, Handler] = {}
H = TypeVar("H", bound=Handler)
_KEPT = frozenset({"tensor.alloc"})


def handles(*names: str) -> Callable[[H], H]:
    """Register a function for these operators of the `tensor` namespace."""

    def register(handler: H) -> H:
        for name in names:
            _HANDLERS[f"tensor.{name}"] = handler
        return handler

    return register


def find_handler(expr: e.Expr | None) -> Handler | None:
    """The function that converts a call, None when the expression needs no conversion.

    Raises (PassError): a tensor operator that kernels do not have.
    """
    from . import elementwise, memory, products, special  # noqa: F401 - they fill the table

    if not isinstance(expr, e.Call) or isinstance(expr.op, e.GlobalVar):
        return None
    name = expr.op.name
    if not name.startswith("tensor.") or name in _KEPT:
        return None
    handler = _HANDLERS.get(name)
    if handler is None:
        raise PassError(
            f"{name} cannot be used in a kernel; compute it with operators that kernels have, or in the host program",
            expr,
        )
    return handler
