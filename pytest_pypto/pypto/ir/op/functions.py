"""The builder functions `pypto.ir.op.tensor.add(...)`, ...: Python functions on IR expressions, made on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from ..op_table import find_op
from ..span import UNKNOWN
from . import level, signatures
from .build import ir_name
from .signature import Signature, parse

_GROUPS = {
    "tensor": signatures.TENSOR,
    "tile": signatures.TILE,
    "system": signatures.SYSTEM,
    "array": signatures.ARRAY,
}


def arguments(sig: Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Bound arguments as the handlers take them."""
    if sig.var_args or sig.var_kwargs:
        return {"args": args, "kwargs": {k: v for k, v in kwargs.items() if k != "span"}}
    return sig.bind(args, kwargs)


def _builder(path: str, params: str, module: str) -> Callable[..., Any]:
    sig, handle = parse(f"{path.rpartition('.')[2]}({params})"), level.handler(path)
    assert handle is not None, path

    def call(*args: Any, **kwargs: Any) -> Any:
        bound = arguments(sig, args, kwargs)
        return handle(bound, kwargs.get("span") or bound.get("span") or UNKNOWN)

    spec = find_op(ir_name(path))
    call.__name__ = call.__qualname__ = sig.name
    call.__module__ = module
    call.__doc__ = f"{spec.doc[:1].upper()}{spec.doc[1:]}." if spec else f"Build `{path}`."
    call.__signature__ = sig.inspected()  # type: ignore[attr-defined]
    return call


def namespace(module: str, space: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of the module of builders for `<space>.*` operators."""
    table = {name: params for params, names in _GROUPS[space] for name in names.split()}

    def get(name: str) -> Any:
        if name not in table:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        made = _builder(f"{space}.{name}", table[name], module)
        setattr(sys.modules[module], name, made)
        return made

    listed = sorted(table)
    return listed, get, lambda: sorted({*vars(sys.modules[module]), *listed})
