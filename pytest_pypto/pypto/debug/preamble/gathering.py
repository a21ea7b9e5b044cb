"""Gather and scatter by index, by mask pattern and by row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from .regions import _box, _coerce_shape, _copy_region_attrs, _region, _with_valid

_PATTERNS = {1: (0, 2), 2: (1, 2), 3: (0, 4), 4: (1, 4), 5: (2, 4), 6: (3, 4), 7: (0, 1)}


def _marked(pattern: int) -> tuple[int, int]:
    """Start and stride of the columns that mask pattern 1..7 marks."""
    if pattern not in _PATTERNS:
        raise ValueError(f"mask pattern must be 1..7, got {pattern}")
    return _PATTERNS[pattern]


def _inside(what: str, index: torch.Tensor, extent: int) -> torch.Tensor:
    """`index` as int64, checked against `extent`."""
    flat = index.to(torch.int64)
    if flat.numel() and not (int(flat.min()) >= 0 and int(flat.max()) < extent):
        raise IndexError(
            f"{what}: an index lies outside 0..{extent - 1} (smallest {int(flat.min())}, largest {int(flat.max())})"
        )
    return flat


def _gather(x: torch.Tensor, index: torch.Tensor, dim: int) -> Any:
    """`out[.., k, ..] = x[.., index[.., k, ..], ..]` along `dim`, over the valid part of `index`."""
    box = _box(index)
    part = torch.gather(x, dim, _inside("gather", box, x.shape[dim]))
    return _placed(index, part)


def _gather_flat(x: torch.Tensor, index: torch.Tensor) -> Any:
    """`out[i, j] = x.flat[index[i, j]]` over the valid part of `index`."""
    box = _box(index)
    return _placed(index, x.reshape(-1)[_inside("gather", box, x.numel())])


def _placed(index: torch.Tensor, part: torch.Tensor) -> Any:
    """`part` in the corner of a tensor of the shape of `index`, with its region."""
    if part.shape == index.shape:
        return part
    out = part.new_zeros(index.shape)
    out[tuple(slice(0, s) for s in part.shape)] = part
    return _copy_region_attrs(index, out)


def _gather_mask(x: torch.Tensor, pattern: int, dtype: torch.dtype | None = None) -> Any:
    """The marked columns of each row packed to the left; `dtype` reinterprets their bits."""
    start, stride = _marked(pattern)
    out = x[..., start::stride].contiguous()
    valid = _region(x)
    if valid != tuple(x.shape):
        out = _with_valid(out, (*valid[:-1], max(0, -(-(valid[-1] - start) // stride))))
    return out if dtype is None or dtype == out.dtype else _copy_region_attrs(out, out.view(dtype))


def _gather_bytes(src: torch.Tensor, offset: torch.Tensor, dtype: torch.dtype) -> Any:
    """Blocks of 32 bytes of `src` at the byte offsets `offset`, side by side, as elements of `dtype`."""
    raw = src.contiguous().view(torch.uint8).reshape(-1)
    box = _box(offset)
    at = _inside("gatherb", box, raw.numel() - 31).unsqueeze(-1) + torch.arange(32)
    part = raw[at].reshape(box.shape[0], -1).view(dtype)
    per = 32 // dtype.itemsize
    out = torch.zeros((offset.shape[0], offset.shape[1] * per), dtype=dtype)
    out[: part.shape[0], : part.shape[1]] = part
    full = box.shape == offset.shape
    return out if full else _with_valid(out, (box.shape[0], box.shape[1] * per))


def _gather_compare(
    x: torch.Tensor, value: Any, mode: int, out_cols: int, offset: int, dtype: torch.dtype
) -> tuple[Any, Any]:
    """Per row the positions whose element compares true with `value`, at most `out_cols`, and how many there are."""
    names = ("eq", "ne", "lt", "le", "gt", "ge")
    hits = getattr(torch, names[mode])(_box(x), value)
    positions = torch.zeros((x.shape[0], out_cols), dtype=torch.int32)
    counts = torch.zeros((1, x.shape[0]), dtype=dtype)
    for i, row in enumerate(hits):
        found = row.nonzero().flatten()[:out_cols] + int(offset)
        positions[i, : found.numel()] = found.to(torch.int32)
        counts[0, i] = int(row.sum())
    return positions, counts


def _gather_row(
    dst: torch.Tensor,
    src: torch.Tensor,
    dst_offset: Iterable[Any],
    src_offset: Iterable[Any],
    shapes: Iterable[Any],
    valid: Iterable[Any] | None = None,
    transpose: bool = False,
) -> Any:
    """Copy a window of `src` into `dst` in place (`transpose`: as a column); returns `dst`."""
    size = _coerce_shape(shapes if valid is None else valid)
    lead = src.dim() - len(size)
    at = _coerce_shape(src_offset)
    base = src[at[:lead]] if lead > 0 else src
    window = base[tuple(slice(o, o + s) for o, s in zip(at[len(at) - len(size) :], size, strict=False))]
    part = window.reshape(window.shape[-2:] if window.dim() > 2 else window.shape)
    part = part.mT if transpose else part
    to = _coerce_shape(dst_offset)[-part.dim() :]
    target = dst[tuple(slice(o, o + s) for o, s in zip(to, part.shape, strict=False))]
    if target.shape != part.shape or tuple(window.shape) != size:
        raise IndexError(
            f"gather_row: window {size} does not fit (source {tuple(src.shape)}, target {tuple(dst.shape)})"
        )
    target.copy_(part)
    return dst


def _paged_gather(
    src: torch.Tensor,
    indices: torch.Tensor,
    table: torch.Tensor,
    block: int,
    size: int,
    col: int,
    rows: int,
    trans: bool,
) -> Any:
    """Row i is row `table[x // block] * block + x % block` of `src` for x = indices[i], columns `col` to `col + size`.

    Rows beyond the real count, up to `rows`, are zero.
    """
    wanted = _box(indices).reshape(-1).to(torch.int64)[:rows]
    pages = table.reshape(-1).to(torch.int64)
    at = pages[_inside("paged_gather", wanted // block, pages.numel())] * block + wanted % block
    flat = src.reshape(-1, src.shape[-1])
    out = src.new_zeros((rows, size))
    out[: wanted.numel()] = flat[_inside("paged_gather", at, flat.shape[0])][:, col : col + size]
    return out.mT.contiguous() if trans else out


def _mem_gather(
    mem: torch.Tensor, index: torch.Tensor, by_element: bool, out_of_bounds: int, valid: Iterable[Any] | None = None
) -> Any:
    """Rows (or, `by_element`, flat elements) of `mem` by index.

    Indices count as unsigned; `out_of_bounds` is 0 undefined (zero here), 1 clamp, 2 wrap or 3 zero.
    """
    source = mem.reshape(-1) if by_element else mem.reshape(-1, mem.shape[-1])
    at = index.to(torch.int64) & 0xFFFFFFFF
    extent = source.shape[0]
    outside = at >= extent
    at = at % extent if out_of_bounds == 2 else at.clamp(max=extent - 1)
    if not by_element:
        at, outside = at.reshape(-1), outside.reshape(-1)
    out = source[at]
    if out_of_bounds in (0, 3):
        out[outside] = 0
    own = getattr(index, "_pypto_valid_shape", None)
    if valid is not None:
        return _with_valid(out, _coerce_shape(valid))
    if own is None or own == tuple(index.shape):
        return out
    return _with_valid(out, own if by_element else (max(own) if all(own) else 0, out.shape[-1]))


def _scatter_flat(dst: torch.Tensor, src: torch.Tensor, index: torch.Tensor) -> Any:
    """`dst.flat[index[i, j]] = src[i, j]` in place, in row-major order (the last one wins); returns `dst`."""
    box = _box(index)
    flat = _inside("scatter", box, dst.numel()).reshape(-1)
    values = src[tuple(slice(0, s) for s in box.shape)].reshape(-1)
    row, width = torch.div(flat, dst.shape[-1], rounding_mode="floor"), dst.shape[-1]
    rows = dst.view(-1, width) if dst.is_contiguous() else dst
    for k in range(flat.numel()):
        rows[int(row[k]), int(flat[k]) % width] = values[k]
    return dst


def _scatter_rows(x: torch.Tensor, index: torch.Tensor, src: torch.Tensor) -> Any:
    """A copy of `x` with `out[b, index[b, k]] = src[b, k]` along the last axis (the last one wins)."""
    box = _box(index)
    out = x.clone()
    at = _inside("scatter", box, x.shape[-1])
    for k in range(box.shape[-1]):
        column = at[..., k : k + 1]
        out[: box.shape[0]].scatter_(-1, column, src[: box.shape[0], k : k + 1].to(out.dtype))
    return _copy_region_attrs(x, out)


def _scatter_mask(src: torch.Tensor, dst: torch.Tensor, pattern: int) -> Any:
    """A copy of `dst` whose marked columns hold the columns of `src`."""
    start, stride = _marked(pattern)
    out = dst.clone()
    box = _box(src)
    out[: box.shape[0], start : start + box.shape[1] * stride : stride] = box
    return _copy_region_attrs(dst, out)


def _scatter_update(x: torch.Tensor, index: torch.Tensor, src: torch.Tensor) -> Any:
    """A copy of `x` in which row `index.flat[p]` is row p of `src`, for the valid part of `index`; a later p wins."""
    out = x.clone()
    width = x.shape[-1]
    rows, new = out.view(-1, width), src.reshape(-1, width)
    places = _box(_copy_region_attrs(index, torch.arange(index.numel()).reshape(index.shape))).reshape(-1)
    for p, row in zip(places.tolist(), _inside("scatter_update", _box(index).reshape(-1), rows.shape[0]), strict=True):
        rows[int(row)] = new[p]
    return _copy_region_attrs(x, out)
