"""Matrix products: accumulated in FP32 or INT32, rounded once at the end."""

from __future__ import annotations

import re

from ...ir.dtypes import DataType
from ..dtypes import settle, torch_name
from .table import Site, register, wrapped


def _acc_type(site: Site, k: int) -> DataType:
    dtype = site.args[k].dtype
    return DataType.FP32 if dtype is None or dtype.is_float() else DataType.INT32


_WINDOW = re.compile(r"_tensor_slice\((\w+), ")


def _factor(site: Site, k: int, trans: bool = False) -> str:
    """Operand `k` in the type the product accumulates in; `wide` has names for those converted before the loop."""
    wide_names = site.facts.get("wide") or {}
    if site[k] in wide_names:
        return f"{wide_names[site[k]]}.mT" if trans else str(wide_names[site[k]])
    window = _WINDOW.match(site[k])
    if window and window[1] in wide_names and not site.partial(k):
        text = f"_tensor_slice({wide_names[window[1]]}{site[k][window.end(1) :]}"
        return f"{text}.mT" if trans else text
    text = f"{wrapped(site[k])}.mT" if trans and not site.partial(k) else site[k]
    if trans and site.partial(k):
        text = f"_transpose({site[k]}, -2, -1)"
    dtype = site.args[k].dtype
    if dtype is None or (torch_name(dtype) in ("torch.float32", "torch.int32") and dtype is not DataType.UINT16):
        return text
    wide = ".float()" if dtype.is_float() else ".to(torch.int32)"
    if site.partial(k):
        return text
    return f"{wrapped(text)}{wide}"


def _product(site: Site, a: int, b: int, a_trans: bool = False, b_trans: bool = False) -> str:
    """The product of operands `a` and `b` in the accumulator type."""
    left, right = _factor(site, a, a_trans), _factor(site, b, b_trans)
    if site.partial(a, b):
        return f"_matmul({left}, {right})"
    return f"torch.matmul({left}, {right})"


@register("tensor.matmul", region="own")
def _tensor_matmul(site: Site) -> str:
    text = _product(site, 0, 1, bool(site.kwargs.get("a_trans")), bool(site.kwargs.get("b_trans")))
    out = site.kwargs.get("out_dtype")
    out = out if isinstance(out, DataType) else site.out
    acc = _acc_type(site, 0)
    if out is None or (out is acc and (not site.kwargs.get("out_dtype") or site.args[0].dtype is not acc)):
        return text
    if site.partial(0, 1):
        source = site.hoist(text)
        return settle(f"_copy_region_attrs({source}, {source}.to({torch_name(out)}))", out)
    return settle(f"{text}.to({torch_name(out)})", out)


def _widened(text: str, site: Site, a: int) -> str:
    """The product of a tile operator; `.float()` marks the accumulator type of operands that are FP32 already."""
    given = site.args[a].dtype
    return f"{text}.float()" if given in (None, DataType.FP32) and not site.partial(a, a + 1) else text


def _accumulated(site: Site, product: str, start: int) -> str:
    if site.facts.get("write_through"):
        condition = f", {site[start]}" if site.given(start) else ""
        return f"_accumulate({site[0]}, {product}{condition})"
    if site.given(start):
        return f"({product} if {site[start]} else {site[0]} + {product})"
    if site.partial(0):
        acc = site.named(0)
        return f"_copy_region_attrs({acc}, {acc} + {product})"
    return f"{site[0]} + {product}"


@register("tensor.matmul_acc", region="own")
def _tensor_matmul_acc(site: Site) -> str:
    product = _product(site, 1, 2, bool(site.kwargs.get("a_trans")), bool(site.kwargs.get("b_trans")))
    return _accumulated(site, product, 3)


@register("tile.matmul_acc", "tile.batch_matmul_acc", region="own", view=None)
def _tile_matmul_acc(site: Site) -> str:
    return _accumulated(site, _widened(_product(site, 1, 2), site, 1), 3)


@register("tile.matmul", "tile.batch_matmul", region="own")
def _tile_matmul(site: Site) -> str:
    return _widened(_product(site, 0, 1), site, 0)


@register("tile.matmul_bias", region="own")
def _tile_matmul_bias(site: Site) -> str:
    product = _widened(_product(site, 0, 1), site, 0)
    if site.partial(0, 1):
        source = site.hoist(product)
        return f"_copy_region_attrs({source}, {source} + {site[2]})"
    return f"({product} + {site[2]})"


@register("tile.gemv", region="always")
def _gemv(site: Site) -> str:
    return f"_gemv({site[0]}, {site[1]})"


@register("tile.gemv_acc", region="always")
def _gemv_acc(site: Site) -> str:
    if site.facts.get("write_through"):
        return f"_gemv_into({site[0]}, {site[1]}, {site[2]})"
    return f"_gemv({site[1]}, {site[2]}, {site[0]})"


@register("tile.gemv_bias", region="always")
def _gemv_bias(site: Site) -> str:
    return f"_gemv({site[0]}, {site[1]}, {site[2]})"


@register("tile.matmul_mx", region="own")
def _mx(site: Site) -> str:
    return f"_matmul_mx({site[0]}, {site[1]}, {site[2]}, {site[3]})"


@register("tile.matmul_mx_acc", region="own")
def _mx_acc(site: Site) -> str:
    product = f"_matmul_mx({site[1]}, {site[2]}, {site[3]}, {site[4]})"
    return _accumulated(site, product, 5)


@register("tile.matmul_mx_bias", region="own")
def _mx_bias(site: Site) -> str:
    source = site.hoist(f"_matmul_mx({site[0]}, {site[1]}, {site[2]}, {site[3]})")
    return f"_copy_region_attrs({source}, {source} + {site[4]})"
