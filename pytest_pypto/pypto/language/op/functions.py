"""The functions users see (`pl.add`, `pl.tile.load`, ...): Python functions with real signatures, made on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ...ir.op.build import ir_name
from ...ir.op_table import find_op
from ...ir.span import Span
from ..typing import unwrap, wrap
from . import dispatch

_PACKAGE = __name__.partition(".language.")[0]


def _caller() -> Span:
    """The place of the code outside this package that called the function."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        frame = frame.f_back
    return Span(frame.f_code.co_filename, frame.f_lineno, 1)


def function(path: str, module: str) -> Callable[..., Any]:
    """`pl.<path>` as a function on wrapped values (`pl.Tensor`, `pl.Tile`, ...) or IR expressions.

    Raises:
        AttributeError: there is no such function.
    """
    sig = dispatch.signature(path)
    if sig is None:
        raise AttributeError(f"module {module!r} has no attribute {path.rpartition('.')[2]!r}")

    def call(*args: Any, **kwargs: Any) -> Any:
        span = kwargs.pop("span", None) or _caller()
        return wrap(dispatch.call_op(path, unwrap(args), {k: unwrap(v) for k, v in kwargs.items()}, span))

    call.__name__ = call.__qualname__ = sig.name
    call.__module__ = module
    call.__doc__ = _doc(path)
    call.__signature__ = sig.inspected()  # type: ignore[attr-defined]
    return call


def _doc(path: str) -> str:
    """One line from the op table."""
    name = ir_name(path)
    spaces = [""] if "." in name else ["tensor.", "tile.", "system."]
    for space in spaces:
        spec = find_op(f"{space}{name}")
        if spec is not None:
            return f"{spec.doc[:1].upper()}{spec.doc[1:]}."
    return f"`pl.{path}`."


def namespace(module: str, space: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of the module that holds the functions of `pl.<space>`."""
    prefix = f"{space}." if space else ""

    def get(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        made = function(prefix + name, module)
        setattr(sys.modules[module], name, made)
        return made

    listed = dispatch.names(space)
    return listed, get, lambda: sorted({*vars(sys.modules[module]), *listed})
