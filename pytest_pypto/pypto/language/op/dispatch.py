"""Calls of the language (`pl.add`, `pl.tile.load`, ...) resolved to operators of the IR.

The parser gives the dotted text and the arguments; the functions that users see are thin covers of the same entry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from ...ir import expr as e
from ...ir.op import level
from ...ir.op.build import ir_name, plain, printed
from ...ir.op.signature import Signature, parse
from ...ir.op_table import find_op
from ...ir.span import UNKNOWN, Span
from . import signatures


class UnknownOperation(LookupError):
    """There is no operation of this name."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"Unknown operation 'pl.{self.path}'"


_GROUPS = {
    "": signatures.UNIFIED,
    "tensor": signatures.TENSOR,
    "tile": signatures.TILE,
    "system": signatures.SYSTEM,
    "array": signatures.ARRAY,
    "prefetch": signatures.PREFETCH,
    "pld": signatures.DISTRIBUTED,
}


@cache
def _table(space: str) -> Mapping[str, str]:
    return {name: params for params, names in _GROUPS[space] for name in names.split()}


def names(space: str) -> list[str]:
    """Names of the functions of `pl` (space "") or of `pl.<space>`."""
    return sorted(_table(space))


@cache
def signature(path: str) -> Signature | None:
    """Signature of `pl.<path>`, or None when there is no such function."""
    space, _, name = path.rpartition(".")
    if space.startswith("pld."):
        space = "pld"
    if space not in _GROUPS or name not in _table(space):
        return None
    return parse(f"{name}({_table(space)[name]})")


def parameters(path: str) -> str | None:
    """The parameter list of `pl.<path>` as its author writes it, or None when there is no such function."""
    sig = signature(path)
    if sig is None or (sig.var_args and not sig.params):
        return None
    space = "pld" if path.startswith("pld.") else path.rpartition(".")[0]
    return _table(space)[path.rpartition(".")[2]]


@cache
def _handler(path: str) -> level.Handler | None:
    from . import unified

    if path in unified.HANDLERS:
        return unified.HANDLERS[path]
    if signature(path) is None:
        return None
    return level.handler(path) if "." in path else unified.handler(path)


def call_op(path: str, args: Sequence[Any], kwargs: Mapping[str, Any], span: Span = UNKNOWN) -> e.Expr:
    """The IR of `pl.<path>(*args, **kwargs)` (`pld.<x>` for the distributed functions).

    Arguments are IR expressions, bare Python numbers (which take the element type of the operand beside them), lists of
    those, dtypes, enum members, strings and None. The layout of the printed form is accepted as well.

    Raises:
        UnknownOperation: there is no such function.
        TypeError, ValueError: the arguments do not fit; the text is the bare reason.
    """
    sig = signature(path)
    try:
        if sig is not None:
            handle = _handler(path)
            assert handle is not None, path
            return handle(_bind(sig, args, kwargs), span)
    except TypeError:
        made = _fallback(path, args, kwargs, span)
        if made is None:
            raise
        return made
    made = _fallback(path, args, kwargs, span)
    if made is None:
        made = _internal(path, args, kwargs, span)
    return made


_REGION_KEYWORDS = ("split", "lane_stride")
"""What the parser adds to `aiv_shard` and `aic_gather`, whose functions do not take it."""


def _bind(sig: Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    if sig.var_args or sig.var_kwargs:
        return {"args": args, "kwargs": kwargs}
    if sig.name in ("aiv_shard", "aic_gather"):
        added = {k: kwargs[k] for k in _REGION_KEYWORDS if k in kwargs}
        return {**sig.bind(args, {k: v for k, v in kwargs.items() if k not in added}), **added}
    return sig.bind(args, kwargs)


def _fallback(path: str, args: Sequence[Any], kwargs: Mapping[str, Any], span: Span) -> e.Expr | None:
    """The printed layout, for names with a namespace."""
    if "." not in path:
        return None
    try:
        return printed(ir_name(path), args, kwargs, span)
    except (TypeError, ValueError):
        return None


def _internal(path: str, args: Sequence[Any], kwargs: Mapping[str, Any], span: Span) -> e.Expr:
    """Operators without a function of their own, such as `tile.mrgsort_format2`."""
    name = ir_name(path)
    spec = find_op(name) if "." in path else None
    if spec is None:
        raise UnknownOperation(path)
    params = [*(p.name for p in spec.params if not p.optional), *(f"{p.name}=None" for p in spec.params if p.optional)]
    keywords = [f"{k.name}=None" for k in spec.kwargs]
    listed = ", ".join([*params, "*", *keywords] if keywords else params)
    return plain(name, parse(f"{path.rpartition('.')[2]}({listed})").bind(args, kwargs), span)
