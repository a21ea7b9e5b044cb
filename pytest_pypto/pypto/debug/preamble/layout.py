"""Operators that change the shape or the order of elements; each carries the valid region along."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

import torch

from .regions import _coerce_shape, _copy_region_attrs, _region, _with_valid


def _tensor_view(t: torch.Tensor, shape: Iterable[Any], is_dn: Any, valid: Iterable[Any] | None = None) -> Any:
    """The elements of `t`, in row-major order, under `shape`.

    With `is_dn` the last two axes count column-major: element (i, j) of a `[R, C]` result is flat element `j * R + i`.
    The region is `valid`, or that of `t` mapped to the new shape.
    """
    size = _coerce_shape(shape)
    if is_dn:
        out = t.reshape((*size[:-2], size[-1], size[-2])).mT
    else:
        out = t.reshape(size) if tuple(t.shape) != size else t.view(size) if t.is_contiguous() else t[...]
    if valid is not None:
        return _with_valid(out, valid)
    own = getattr(t, "_pypto_valid_shape", None)
    return out if own is None or is_dn else _with_valid(out, _mapped_region(tuple(t.shape), own, size))


def _mapped_region(shape: tuple[int, ...], valid: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
    """The valid extents after a row-major reshape.

    Unit axes come and go freely; otherwise the valid cells must be a prefix of the row-major order.
    """
    if valid == shape:
        return target
    if not all(valid):
        return (0,) * len(target)
    units = [v for s, v in zip(shape, valid, strict=False) if s != 1]
    if [s for s in shape if s != 1] == [s for s in target if s != 1]:
        rest = iter(units)
        return tuple(1 if s == 1 else next(rest) for s in target)
    free = next((k for k, v in enumerate(valid) if v != 1), len(valid) - 1)
    if valid[free + 1 :] != shape[free + 1 :]:
        raise ValueError(f"reshape of {shape} with valid {valid} to {target}: the valid cells are no row-major prefix")
    count = prod(valid)
    for k, extent in enumerate(target):
        suffix = prod(target[k + 1 :])
        if count % suffix == 0 and count // suffix <= extent:
            return (1,) * k + (count // suffix,) + target[k + 1 :]
    raise ValueError(f"reshape of {shape} with valid {valid} to {target}: {count} valid cells are no box there")


def _reshape(t: torch.Tensor, shape: Iterable[Any], valid: Iterable[Any] | None = None) -> Any:
    """`t` under another shape of as many elements, with its region mapped (and narrowed to `valid`)."""
    size = _coerce_shape(shape)
    own = getattr(t, "_pypto_valid_shape", None)
    out = t.reshape(size)
    out = t.detach() if out is t else out
    if own is not None:
        out = _with_valid(out, _mapped_region(tuple(t.shape), own, size))
    if valid is None:
        return out
    return _with_valid(out, [min(int(v), r) for v, r in zip(valid, _region(out), strict=False)])


def _transpose(t: torch.Tensor, a: int, b: int, valid: Iterable[Any] | None = None) -> Any:
    """`t` with two axes swapped, as a view; the region follows."""
    out = t.transpose(a, b)
    own = getattr(t, "_pypto_valid_shape", None)
    if valid is None and own is None:
        return out
    swapped = list(_region(t))
    swapped[a], swapped[b] = swapped[b], swapped[a]
    return _with_valid(
        out, swapped if valid is None else [min(int(v), s) for v, s in zip(valid, swapped, strict=False)]
    )


def _concat(a: torch.Tensor, b: torch.Tensor) -> Any:
    """The valid columns of `a`, then those of `b`, side by side; the extent is that of both boxes."""
    out = a.new_zeros((*a.shape[:-1], a.shape[-1] + b.shape[-1]))
    left, right = _region(a), _region(b)
    out[..., : left[-1]] = a[..., : left[-1]]
    out[..., left[-1] : left[-1] + right[-1]] = b[..., : right[-1]]
    rows = tuple(min(x, y) for x, y in zip(left[:-1], right[:-1], strict=False))
    return _with_valid(out, (*rows, left[-1] + right[-1]))


def _reinterpret(t: torch.Tensor, dtype: torch.dtype, shape: Iterable[Any] | None = None) -> Any:
    """The bytes of `t` as elements of `dtype`; without `shape` the last axis is scaled by the ratio of the widths."""
    own = getattr(t, "_pypto_valid_shape", None)
    size = tuple(t.shape)
    out = t.contiguous().view(dtype)
    if shape is not None:
        out = out.reshape(_coerce_shape(shape))
    if own is None or own == size:
        return out
    scaled = own[-1] * t.element_size() // dtype.itemsize
    flat = tuple(t.contiguous().view(dtype).shape)
    return _with_valid(out, _mapped_region(flat, (*own[:-1], scaled), tuple(out.shape)))


def _expand_to(v: torch.Tensor, shape: Iterable[Any], region: torch.Tensor | None = None) -> Any:
    """`v` repeated to `shape`, as a fresh tensor, with the region of `region`."""
    out = v.expand(_coerce_shape(shape)).clone()
    return out if region is None else _copy_region_attrs(region, out)


def _row_expand_add(t: torch.Tensor, v: torch.Tensor) -> Any:
    """`t + v` where `v` holds one number per row, or one block per row that is repeated along the columns."""
    if v.shape[-1] in (1, t.shape[-1]):
        return torch.add(t, v)
    times = -(-t.shape[-1] // v.shape[-1])
    return torch.add(t, v.repeat_interleave(1, dim=-1).tile(times)[..., : t.shape[-1]])


def _fit(t: torch.Tensor, shape: Iterable[Any]) -> Any:
    """A tile of extent `shape` that holds `t` in its corner; what was missing is padding."""
    size = _coerce_shape(shape)
    if tuple(t.shape) == size:
        return t
    if t.dim() != len(size) or any(have > want for have, want in zip(t.shape, size, strict=False)):
        raise ValueError(f"a tile of shape {tuple(t.shape)} arrived where {size} was declared")
    out = t.new_zeros(size)
    out[tuple(slice(0, s) for s in t.shape)] = t
    return _with_valid(out, _region(t))
