"""From bound arguments to a call of one operator of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import expr as e
from ..op_table import OMITTED, REQUIRED, OpSpec, Param, find_op, infer_type
from ..span import Span
from . import values


def ir_name(path: str) -> str:
    """Operator name of `tile.and_`: operators whose last part is a Python keyword are called with an underscore."""
    return path[:-1] if path.endswith("_") else path


def spec_of(name: str) -> OpSpec:
    """The record of an operator that must exist."""
    spec = find_op(name)
    assert spec is not None, name
    return spec


def make(name: str, operands: Sequence[Any], keywords: Mapping[str, Any], span: Span) -> e.Call:
    """The call `name(operands, **keywords)`.

    Trailing operands may be None (not given). An operand that may be a tensor or the list after it leaves its place to
    that list.

    Raises:
        TypeError, ValueError: what the conversion or the type rule refuses.
    """
    spec = spec_of(name)
    given = list(operands)
    while given and given[-1] is None and len(given) > spec.required:
        given.pop()
    typed = keywords.get("dtype")
    context = {"dtype": values.element_type(given), "typed": None if typed is None else values.dtype(typed, "dtype")}
    params = [*spec.params]
    if params and params[-1].variadic:
        params += [params[-1]] * (len(given) - len(params))
    given = [v for k, v in enumerate(given) if v is not None or k >= len(params) or params[k].kind != "tensor|tuple"]
    if len(given) > len(params):
        raise TypeError(f"{_short(name)}() takes {len(params)} operands but {len(given)} were given")
    args = [_operand(spec, p, v, context, span) for p, v in zip(params, given, strict=False)]
    kwargs = _keywords(spec, keywords)
    return e.Call(e.Op(name), args, kwargs, infer_type(name, args, kwargs, span), span)


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _operand(spec: OpSpec, param: Param, value: Any, context: Mapping[str, Any], span: Span) -> e.Expr:
    if value is None:
        if "tuple" in param.kind:
            return e.MakeTuple((), span)
        raise TypeError(f"{_short(spec.name)}() needs '{param.name}'")
    try:
        return values.operand(spec, param, value, context, span)
    except TypeError as error:
        raise TypeError(f"{_short(spec.name)}() argument '{param.name}': {error}") from None


def _keywords(spec: OpSpec, given: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords in the order of the record; those that say nothing are left out."""
    made: dict[str, Any] = {}
    for kw in spec.kwargs:
        value = given.get(kw.name)
        if value is None:
            if kw.default is REQUIRED and kw.name not in given:
                raise TypeError(f"{_short(spec.name)}() missing 1 required keyword-only argument: '{kw.name}'")
            value = None if kw.default is REQUIRED else kw.default
        if value is None:
            continue
        value = values.keyword(kw.name, kw.kind, value)
        if kw.default is OMITTED and (value is False or (kw.name == "atomic" and value == 0)):
            continue
        made[kw.name] = value
    return made


def plain(name: str, bound: Mapping[str, Any], span: Span) -> e.Call:
    """A call whose operands are the bound arguments that are no keywords of the record, in their order."""
    known = {k.name for k in spec_of(name).kwargs}
    operands = [v for k, v in bound.items() if k not in known and k != "span"]
    return make(name, operands, {k: v for k, v in bound.items() if k in known}, span)


def printed(name: str, args: Sequence[Any], kwargs: Mapping[str, Any], span: Span) -> e.Call | None:
    """The call in the layout of the printed form (all operands positional), or None when it does not fit."""
    spec = find_op(name)
    if spec is None or not spec.required <= len(args) <= len(spec.params):
        return None
    if not set(kwargs) <= {k.name for k in spec.kwargs}:
        return None
    return make(name, args, kwargs, span)
