"""Operators that make, read and write tensors and tiles."""

from __future__ import annotations

from ...ir.dtypes import DataType
from ...ir.enums import MemorySpace
from ...ir.types import ShapedType, TileType, Type
from ..dtypes import SETTLED, is_odd, settle, torch_name
from .scalars import as_element, element_of
from .table import Site, both, number, register, wrapped


def _dtype(site: Site) -> DataType:
    kwarg = site.kwargs.get("dtype")
    return kwarg if isinstance(kwarg, DataType) else site.out or DataType.FP32


def declared_shape(site: Site) -> tuple[int, ...] | None:
    """The extents of the result's type when all are constants."""
    if not isinstance(site.type, ShapedType):
        return None
    from ...ir.expr import static_dims

    return static_dims(site.type.shape)


@register("tile.load", region="own")
def _load(site: Site) -> str:
    valid = f", {site[3]}" if site.given(3) else ""
    shared = ", shared=True" if site.facts.get("shared") else ""
    text = f"_tile_load({site[0]}, {site[1]}, {site[2]}{valid}{shared})"
    if is_odd(site.out):
        text = f'_held({text}, "{site.out}")'
    window, want = site.args[2].items, declared_shape(site)
    if want is not None and window and len(window) != len(want):
        return f"_reshape({text}, {want})"
    return text


@register("tile.store", writes=2)
def _store(site: Site) -> str:
    tile = f"_reshape({site[0]}, {site[3]})" if site.given(3) else site[0]
    atomic = ", 1" if site.kwargs.get("atomic") else ""
    text = f"_tile_store({tile}, {site[1]}, {site[2]}{atomic})"
    if atomic and site.facts.get("both_lanes") and _of_the_cube(site.args[0].type):
        return f"({site[2]} if _get_subblock_idx() else {text})"
    return text


def _of_the_cube(type_: Type | None) -> bool:
    """True for tiles that the cube computes, of which there is one for both vector lanes."""
    return isinstance(type_, TileType) and type_.memory_space in (MemorySpace.Acc, MemorySpace.Mat)


@register("tensor.assemble", writes=0)
def _assemble(site: Site) -> str:
    atomic = ", 1" if site.kwargs.get("atomic") else ""
    return f"_assemble({site[0]}, {site[1]}, {site[2]}{atomic})"


@register("tile.assemble", writes=0)
def _assemble_tile(site: Site) -> str:
    """The tile form moves the whole source, whatever its valid part."""
    source = f"_whole({site[1]})" if site.partial(1) else site[1]
    return f"_assemble({site[0]}, {source}, {site[2]})"


@register(*both("write"), writes=0)
def _write(site: Site) -> str:
    return f"_write_and_return({site[0]}, {site[1]}, {as_element(site, 2, site.args[0].dtype)})"


@register(*both("read"))
def _read(site: Site) -> str:
    text = f"_read({site[0]}, {site[1]})"
    return f'_cast_scalar({text}, "{site.out}")' if is_odd(site.out) and site.out not in SETTLED else text


@register("tensor.create", "tile.create", "tensor.create_l1")
def _create(site: Site) -> str:
    dtype, init = _dtype(site), site.kwargs.get("init_value")
    if init is not None:
        return f"torch.full({site[0]}, {number(element_of(init, dtype))}, dtype={torch_name(dtype)})"
    return f"torch.zeros({site[0]}, dtype={torch_name(dtype)})"


@register(*both("full"))
def _full(site: Site) -> str:
    dtype = _dtype(site)
    return f"torch.full({site[0]}, {as_element(site, 1, dtype)}, dtype={torch_name(dtype)})"


@register(*both("ci"))
def _ci(site: Site) -> str:
    count = site.args[1].items[-1] if site.args[1].items else f"{site[1]}[-1]"
    start, step = site[0], -1 if site.kwargs.get("descending") else 1
    value = site.args[0].constant
    first, stop = (
        (str(value), f"{value} + {count}") if value is not None else (f"int({start})", f"int({start}) + {count}")
    )
    stop = stop if step == 1 else stop.replace(" + ", " - ")
    text = f"torch.arange({first}, {stop}, {step}).to({torch_name(_dtype(site))}).reshape({site[1]})"
    return settle(text, _dtype(site))


@register("tile.tri", region="always")
def _tri(site: Site) -> str:
    valid = f", {site[2]}" if site.given(2) else ""
    return f"_tri({site[0]}, {site[1]}, {torch_name(_dtype(site))}, {bool(site.kwargs.get('upper'))}{valid})"


@register(*both("random"), region="always")
def _random(site: Site) -> str:
    valid = f", {site[7]}" if site.given(7) else ""
    signed = _dtype(site) is DataType.INT32
    words = ", ".join(site[k] for k in range(2, 6))
    rounds = int(site.kwargs.get("rounds", 10))
    return f"_random(({site[0]}, {site[1]}), ({words}), {site[6]}, {rounds}, {signed}{valid})"


@register(*both("alloc"))
def _alloc(site: Site) -> str:
    return "None"


@register("tensor.dim")
def _dim(site: Site) -> str:
    return f"{wrapped(site[0])}.shape[{site[1]}]"


def _pad(site: Site) -> str:
    value = site.kwargs.get("pad_value", "zero")
    name = getattr(value, "name", value)
    dtype = site.out
    if name in ("min", "max") and dtype is not None and dtype in _LIMITS:
        return number(_LIMITS[dtype][name == "max"])
    return repr(name)


_LIMITS: dict[DataType, tuple[float | int, float | int]] = {
    DataType.UINT16: (0, 65535),
    DataType.UINT32: (0, 4294967295),
    DataType.UINT64: (0, -1),
    DataType.INT4: (-8.0, 7.0),
    DataType.UINT4: (0.0, 15.0),
    DataType.FP8E4M3FN: (-448.0, 448.0),
    DataType.FP8E5M2: (-57344.0, 57344.0),
    DataType.FP8E8M0: (2.0**-127, 2.0**127),
    DataType.FP4: (-6.0, 6.0),
    DataType.HF8: (-32768.0, 32768.0),
}
"""Lowest and highest value of the types that torch holds in a wider one (UINT64: as the 64-bit word)."""


@register(*both("fillpad"))
def _fillpad(site: Site) -> str:
    return f"_fillpad({site[0]}, {_pad(site)})"


@register(*both("fillpad_expand"))
def _fillpad_expand(site: Site) -> str:
    return f"_fillpad_expand({site[0]}, {site[1]}, {_pad(site)})"


@register("tile.fillpad_inplace", writes=0)
def _fillpad_inplace(site: Site) -> str:
    return f"_fillpad_inplace({site[0]}, {_pad(site)})"


@register("tile.move", region="own", view=0)
def _move(site: Site) -> str:
    if site.out is DataType.FP8E8M0 and site.args[0].dtype is DataType.UINT8:
        return f"_power_of_two({site[0]})"
    return site[0]


@register("tile.tget_scale_addr", region="own", view=0)
def _same(site: Site) -> str:
    return site[0]
