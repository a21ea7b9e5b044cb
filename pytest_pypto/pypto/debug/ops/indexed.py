"""Gather, scatter and sort."""

from __future__ import annotations

from ...ir.dtypes import DataType
from ...ir.types import ShapedType, TupleType
from ..dtypes import torch_name
from .bits import from_bits, own_bits, own_type
from .scalars import as_element
from .table import Site, both, register


@register("tensor.gather", region="own")
def _gather(site: Site) -> str:
    return f"_gather({site[0]}, {site[1]}, {int(site.kwargs.get('dim', -1))})"


@register("tile.gather", region="own")
def _gather_flat(site: Site) -> str:
    return f"_gather_flat({site[0]}, {site[1]})"


def _output(site: Site) -> DataType | None:
    """The type that the bits are to be read as, when it is another one."""
    dtype = site.kwargs.get("output_dtype")
    return dtype if isinstance(dtype, DataType) and dtype is not site.args[0].dtype else None


@register(*both("gather_mask"), region="own")
def _gather_mask(site: Site) -> str:
    pattern, dtype = int(site.kwargs.get("mask_pattern", 7)), _output(site)
    if dtype is None:
        return f"_gather_mask({site[0]}, {pattern})"
    return from_bits(f"_gather_mask({own_bits(site, 0)}, {pattern}, {own_type(dtype)})", dtype)


@register("tile.gatherb", region="own")
def _gather_bytes(site: Site) -> str:
    dtype = _output(site) or site.args[0].dtype or DataType.FP32
    return from_bits(f"_gather_bytes({own_bits(site, 0)}, {site[1]}, {own_type(dtype)})", dtype)


@register(*both("gather_compare"), region="own")
def _gather_compare(site: Site) -> str:
    count = site.kwargs.get("count_dtype", DataType.INT32)
    mode, cols = int(site.kwargs.get("cmp_mode", 0)), int(site.kwargs.get("out_cols", 0))
    offset = int(site.kwargs.get("offset", 0))
    value = as_element(site, 1, site.args[0].dtype)
    values = site[0]
    if site.args[0].dtype is DataType.UINT64:
        source = site.named(0)
        values, value = f"_copy_region_attrs({source}, _unsigned({source}))", f"_unsigned({value})"
    return f"_gather_compare({values}, {value}, {mode}, {cols}, {offset}, {torch_name(count)})"


@register(*both("gather_row"), writes=0)
def _gather_row(site: Site) -> str:
    valid = site[5] if site.given(5) else "None"
    tail = f", {valid}, True" if site.kwargs.get("transpose") else f", {valid}" if valid != "None" else ""
    return f"_gather_row({site[0]}, {site[1]}, {site[2]}, {site[3]}, {site[4]}{tail})"


@register("tensor.paged_gather")
def _paged_gather(site: Site) -> str:
    k = site.kwargs
    numbers = f"{int(k['block_size'])}, {int(k['size'])}, {int(k.get('col_off', 0))}, {int(k['max_indices'])}"
    return f"_paged_gather({site[0]}, {site[1]}, {site[2]}, {numbers}, {bool(k.get('is_trans'))})"


@register("tile.mgather", region="always")
def _mgather(site: Site) -> str:
    valid = next((a.text for a in site.args[2:] if a.items), None)
    element, bounds = bool(int(site.kwargs.get("coalesce", 0))), int(site.kwargs.get("gather_oob", 0))
    return f"_mem_gather({site[0]}, {site[1]}, {element}, {bounds}{f', {valid}' if valid else ''})"


@register("tile.mscatter", writes=2)
def _mscatter(site: Site) -> str:
    return f"_scatter_flat({site[2]}, {site[0]}, {site[1]})"


@register("tile.scatter", writes=0)
def _scatter_flat(site: Site) -> str:
    return f"_scatter_flat({site[0]}, {site[1]}, {site[2]})"


@register("tensor.scatter", region="first")
def _scatter(site: Site) -> str:
    return f"_scatter_rows({site[0]}, {site[1]}, {site[2]})"


@register("tensor.scatter_mask", region="first", main=1)
def _tensor_scatter_mask(site: Site) -> str:
    return f"_scatter_mask({site[0]}, {site[1]}, {int(site.kwargs.get('mask_pattern', 7))})"


@register("tile.scatter_mask", region="first")
def _tile_scatter_mask(site: Site) -> str:
    return f"_scatter_mask({site[1]}, {site[0]}, {int(site.kwargs.get('mask_pattern', 7))})"


@register(*both("scatter_update"), region="first")
def _scatter_update(site: Site) -> str:
    return f"_scatter_update({site[0]}, {site[1]}, {site[2]})"


@register(*both("sort32"))
def _sort32(site: Site) -> str:
    return f"_sort32({site[0]}, {site[1]})"


@register(*both("mrgsort_format1"))
def _merge_runs(site: Site) -> str:
    return f"_mrgsort_runs({site[0]}, {site[1]})"


@register("tensor.mrgsort_format2")
def _merge_tensors(site: Site) -> str:
    return _merge(site, len(site))


@register("tile.mrgsort_format2")
def _merge_tiles(site: Site) -> str:
    """The last operand of the tile form is scratch of the size of the result."""
    return _merge(site, len(site) - 1)


def _merge(site: Site, lists: int) -> str:
    sources = ", ".join(site[k] for k in range(lists))
    width = f"{site[0]}.shape[-1] * {lists}"
    if isinstance(site.type, ShapedType) and not isinstance(site.type, TupleType):
        from ...ir.expr import const_value

        last = const_value(site.type.shape[-1])
        width = width if last is None else str(last)
    return f"_mrgsort_lists(({sources},), {width}, {bool(site.kwargs.get('exhausted'))})"
