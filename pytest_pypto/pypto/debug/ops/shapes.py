"""Operators on windows, shapes, layouts and element types."""

from __future__ import annotations

from ...ir.dtypes import DataType
from ...ir.enums import CAST_MODES, TensorLayout
from ...ir.types import TensorType
from ..dtypes import SETTLED, is_odd, settle, torch_name
from .bits import from_bits, own_bits, own_type
from .memory import declared_shape
from .table import Site, both, register, wrapped


@register("tensor.slice", region="own", view=0, window=True)
def _tensor_slice(site: Site) -> str:
    return _slice(site, "_tensor_slice")


@register("tile.slice", region="own", view=0, window=True)
def _tile_slice(site: Site) -> str:
    return _slice(site, "_tile_slice")


def _indexed(site: Site, offsets: tuple[str, ...], extents: tuple[str, ...]) -> str:
    """Python indexing, for a window of which it is known that it lies inside."""
    parts = []
    for at, extent in zip(offsets, extents, strict=True):
        start = at[1:-1] if at.startswith("(") and at.endswith(")") and at.count("(") == 1 else at
        stop = str(int(at) + int(extent)) if at.isdigit() and extent.isdigit() else f"{start} + {extent}"
        parts.append(f"{start}:{stop}")
    return f"{wrapped(site[0])}[{', '.join(parts)}]"


def _slice(site: Site, helper: str) -> str:
    valid, drop = site.given(3), site.given(4)
    if helper == "_tile_slice" and site.facts.get("inside") and not drop:
        return _indexed(site, site.args[2].items, site.args[1].items)
    tail = f", {site[3]}" if valid else ", None" if drop else ""
    text = f"{helper}({site[0]}, {site[2]}, {site[1]}{tail}{f', {site[4]}' if drop else ''})"
    return f'_held({text}, "{site.out}")' if is_odd(site.out) and not site.facts.get("writable") else text


@register("tile.extract", region="own", view=0, window=True)
def _extract(site: Site) -> str:
    if site.facts.get("inside"):
        return _indexed(site, (site[1], site[2]), site.args[3].items)
    return f"_tile_slice({site[0]}, ({site[1]}, {site[2]}), {site[3]})"


@register(*both("reshape"), region="own", view=0)
def _reshape(site: Site) -> str:
    if site.given(2):
        return f"_reshape({site[0]}, {site[1]}, {site[2]})"
    return f"_reshape({site[0]}, {site[1]})" if site.partial(0) else f"{wrapped(site[0])}.reshape({site[1]})"


@register("tensor.transpose", region="own", view=0)
def _tensor_transpose(site: Site) -> str:
    if site.given(3) or site.partial(0):
        valid = f", {site[3]}" if site.given(3) else ""
        return f"_transpose({site[0]}, {site[1]}, {site[2]}{valid})"
    return f"{wrapped(site[0])}.transpose({site[1]}, {site[2]})"


@register("tile.transpose", region="own")
def _tile_transpose(site: Site) -> str:
    if site.partial(0):
        source = f"_transpose({site[0]}, {site[1]}, {site[2]})"
        return f"_snapshot({source})"
    return f"{wrapped(site[0])}.transpose({site[1]}, {site[2]}).contiguous()"


@register("tile.transpose_view", region="own", view=0)
def _transpose_view(site: Site) -> str:
    return f"_transpose({site[0]}, -2, -1)" if site.partial(0) else f"{wrapped(site[0])}.mT"


def _layout(site: Site) -> TensorLayout:
    """The layout the source of a view has."""
    given = site.args[0].type
    view = given.tensor_view if isinstance(given, TensorType) else None
    return TensorLayout.ND if view is None else view.layout


@register("tensor.view", region="own", view=0)
def _view(site: Site) -> str:
    wanted = site.kwargs.get("layout")
    if site.given(1):
        valid = f", {site[2]}" if site.given(2) else ""
        return f"_tensor_view({site[0]}, {site[1]}, {wanted is TensorLayout.DN}{valid})"
    if wanted is None or wanted is _layout(site):
        return site[0]
    return f"_transpose({site[0]}, -2, -1)" if site.partial(0) else f"{wrapped(site[0])}.mT"


@register(*both("reinterpret_view"), region="own", view=0)
def _reinterpret(site: Site) -> str:
    dtype = site.kwargs.get("dtype", site.out)
    assert isinstance(dtype, DataType)
    shape = f", {site[1]}" if site.given(1) else ""
    return from_bits(f"_reinterpret({own_bits(site, 0)}, {own_type(dtype)}{shape})", dtype)


@register(*both("concat"), region="own")
def _concat(site: Site) -> str:
    if site.partial(0, 1):
        return f"_concat({site[0]}, {site[1]})"
    return f"torch.cat([{site[0]}, {site[1]}], dim=-1)"


@register(*both("set_validshape"), region="always", view=0)
def _set_validshape(site: Site) -> str:
    return f"_set_validshape({site[0]}, {site[1]}, {site[2]})"


_EXACT = {
    DataType.FP32: {DataType.FP16, DataType.BF16, DataType.FP8E4M3FN, DataType.FP8E5M2, DataType.FP4, DataType.HF8},
    DataType.FP16: {DataType.FP8E4M3FN, DataType.FP8E5M2, DataType.FP4},
    DataType.BF16: {DataType.FP8E4M3FN, DataType.FP8E5M2, DataType.FP4},
}
"""Float conversions that lose nothing: target -> sources."""


@register(*both("cast"), region="first")
def _cast(site: Site) -> str:
    target = site.kwargs.get("target_type", site.out)
    assert isinstance(target, DataType)
    mode = site.kwargs.get("mode", "round")
    name = mode if isinstance(mode, str) else CAST_MODES[int(mode)]
    source = site.args[0].dtype
    if target is DataType.BOOL:
        return f"({site[0]} != 0)"
    if source is None or not source.is_float():
        return _from_int(site, source, target)
    return _float_to_float(site, source, target, name) if target.is_float() else _float_to_int(site, target, name)


def _from_int(site: Site, source: DataType | None, target: DataType) -> str:
    text = site[0]
    if source is DataType.UINT64 and target.is_float():
        text = f"_u64_float({text})"
    if target in SETTLED:
        return settle(text, target)
    return f"{wrapped(text)}.to({torch_name(target)})"


def _float_to_float(site: Site, source: DataType, target: DataType, mode: str) -> str:
    if target in SETTLED:
        return f'_small_float({site[0]}, "{target}", "{mode}")'
    kind = torch_name(target)
    if mode in ("none", "rint") or source in _EXACT.get(target, ()):
        return f"{wrapped(site[0])}.to({kind})"
    if mode == "round":
        return f"_ties_away({site[0]}, {kind}).to({kind})"
    return f'_rounded({site[0]}, {kind}, "{mode}")'


def _float_to_int(site: Site, target: DataType, mode: str) -> str:
    bits = target.get_bit()
    if target in (DataType.INT4, DataType.UINT4):
        limits = "(-8, 7)" if target is DataType.INT4 else "(0, 15)"
        return f'_float_to_int({site[0]}, torch.int32, "{mode}", {limits}).float()'
    limits = f", (0, {(1 << bits) - 1})" if target in (DataType.UINT16, DataType.UINT32) else ""
    if target is DataType.UINT64:
        return f'_float_to_u64({site[0]}, "{mode}")'
    return f'_float_to_int({site[0]}, {torch_name(target)}, "{mode}"{limits})'


@register(*both("aiv_shard"), region="own")
def _aiv_shard(site: Site) -> str:
    stride = site.kwargs.get("lane_stride")
    text = f"_aiv_shard({site[0]}, {int(site.kwargs.get('split', 0))}{f', {int(stride)}' if stride else ''})"
    want = declared_shape(site)
    return f"_fit({text}, {want})" if want is not None and site.kwargs.get("split") else text


@register(*both("aic_gather"), region="own")
def _aic_gather(site: Site) -> str:
    text = f"(yield _aic_gather({site[0]}, {int(site.kwargs.get('split', 0))}))"
    want = declared_shape(site)
    return f"_fit({text}, {want})" if want is not None and site.kwargs.get("split") else text
