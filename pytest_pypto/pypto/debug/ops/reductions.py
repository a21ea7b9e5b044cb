"""Reductions along rows and columns."""

from __future__ import annotations

from ...ir.dtypes import DataType
from ..dtypes import is_narrow_float, settle, torch_name
from .table import Emit, Site, register, wrapped

_PLAIN = {"sum": "sum", "prod": "prod", "max": "amax", "min": "amin"}


def _axis(site: Site, kind: str) -> int:
    """Tensors reduce the axis of their keyword; tiles the last axis for rows and the first one for columns."""
    default = -1 if kind == "row" else -2
    if not site.is_tile:
        return int(site.kwargs.get("axis", default))
    shape = site.args[0].shape
    return 0 if kind == "col" and shape is not None and len(shape) != 2 else default


def _reduction(kind: str, op: str) -> Emit:
    def emit(site: Site) -> str:
        axis, keep = _axis(site, kind), bool(site.kwargs.get("keep_dim", True))
        if site.args[0].dtype is DataType.UINT64 and op in ("max", "min"):
            return _scalar_result(site, f'_reduce({site[0]}, "u{op}", {axis}{"" if keep else ", False"})')
        if site.partial(0):
            return settle(f'_reduce({site[0]}, "{op}", {axis}{"" if keep else ", False"})', site.out)
        source = wrapped(site[0])
        if op in ("sum", "prod") and is_narrow_float(site.args[0].dtype):
            source = f"{source}.float()"
        text = f"{source}.{_PLAIN[op]}(dim={axis}, keepdim={keep})"
        dtype = site.out or site.args[0].dtype
        if op in ("sum", "prod") and dtype is not None and (not dtype.is_float() or is_narrow_float(dtype)):
            text += f".to({torch_name(dtype)})"
        return _scalar_result(site, settle(text, site.out))

    return emit


def _arg_reduction(kind: str, op: str) -> Emit:
    def emit(site: Site) -> str:
        axis, keep = _axis(site, kind), bool(site.kwargs.get("keep_dim", True))
        if site.args[0].dtype is DataType.UINT64:
            return _scalar_result(site, f'_arg_reduce({site[0]}, "u{op}", {axis}{"" if keep else ", False"})')
        if site.partial(0):
            return f'_arg_reduce({site[0]}, "{op}", {axis}{"" if keep else ", False"})'
        return _scalar_result(site, f"{wrapped(site[0])}.arg{op}(dim={axis}, keepdim={keep}).to(torch.int32)")

    return emit


def _scalar_result(site: Site, text: str) -> str:
    """A rank-1 input without a kept axis gives a scalar."""
    from ...ir.types import ScalarType

    return f"{text}.item()" if isinstance(site.type, ScalarType) else text


for _kind in ("row", "col"):
    for _op in _PLAIN:
        register(f"tensor.{_kind}_{_op}", f"tile.{_kind}_{_op}", region="own")(_reduction(_kind, _op))
    for _op in ("max", "min"):
        register(f"tensor.{_kind}_arg{_op}", f"tile.{_kind}_arg{_op}", region="own")(_arg_reduction(_kind, _op))
