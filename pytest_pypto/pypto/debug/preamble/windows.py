"""Windows: loads, stores, slices and element access.

A window of rank r on a tensor of higher rank addresses its last r axes; the offsets of the leading axes, when given,
select the slab. Cells of a read window that lie outside the source read as zero and are padding.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from .regions import _box, _coerce_shape, _copy_region_attrs, _region


def _slab(what: str, t: torch.Tensor, offsets: tuple[int, ...], rank: int) -> tuple[Any, tuple[int, ...]]:
    """The rank-`rank` part of `t` that `offsets` point into, and the offsets inside it."""
    lead = t.dim() - rank
    if lead == 0 and len(offsets) == rank:
        return t, offsets
    if lead < 0 and len(offsets) == rank and not any(offsets[:-lead]):
        return _copy_region_attrs(t, t.reshape((1,) * -lead + tuple(t.shape))), offsets
    if lead < 0 or len(offsets) not in (rank, t.dim()):
        raise ValueError(f"{what}: offsets {offsets} and a window of rank {rank} do not fit the shape {tuple(t.shape)}")
    first = offsets[:lead] if len(offsets) == t.dim() else (0,) * lead
    if not all(0 <= o < s for o, s in zip(first, t.shape, strict=False)):
        raise IndexError(f"{what}: leading offsets {first} lie outside the shape {tuple(t.shape)}")
    inner: Any = t[first] if first else t
    valid = getattr(t, "_pypto_valid_shape", None)
    if valid is not None:
        inner._pypto_valid_shape = valid[lead:]
        inner._pypto_full_shape = tuple(inner.shape)
    return inner, offsets[len(offsets) - rank :]


def _read_window(
    what: str, t: torch.Tensor, offsets: tuple[int, ...], shapes: tuple[int, ...], valid: Iterable[Any] | None
) -> tuple[Any, tuple[int, ...], bool]:
    """The window of `t` cut at its end, the valid extents, and whether the window lies inside `t`."""
    base, at = _slab(what, t, offsets, len(shapes))
    if any(o < 0 for o in at):
        raise IndexError(f"{what}: negative offset in {offsets} on the shape {tuple(t.shape)}")
    reach = [max(0, min(w, s - o)) for o, w, s in zip(at, shapes, _region(base), strict=False)]
    if valid is not None:
        reach = [min(r, max(0, int(v))) for r, v in zip(reach, valid, strict=False)]
    inside = all(o + w <= s for o, w, s in zip(at, shapes, base.shape, strict=False))
    return base[tuple(slice(o, o + w) for o, w in zip(at, shapes, strict=False))], tuple(reach), inside


def _inner(t: torch.Tensor, offsets: Any, shapes: Any) -> Any:
    """The window as a view when `t` is 2-D, valid everywhere and holds all of it; else None."""
    if t.dim() != 2 or len(offsets) != 2 or len(shapes) != 2:
        return None
    (row, col), (height, width) = map(int, offsets), map(int, shapes)
    rows, cols = getattr(t, "_pypto_valid_shape", None) or t.shape
    if row < 0 or col < 0 or row + height > rows or col + width > cols:
        return None
    down, right = t.stride()
    return t.as_strided((height, width), (down, right), t.storage_offset() + row * down + col * right)


def _tile_load(t: torch.Tensor, offsets: Any, shapes: Any, valid: Any = None, shared: bool = False) -> Any:
    """A fresh tile of extent `shapes` read from `t` at `offsets`; zeros outside its valid extents, which are recorded.

    With `shared` the tile may be a view of `t`; asked for where neither is written while the tile lives.
    """
    plain = _inner(t, offsets, shapes) if valid is None or valid == shapes else None
    if plain is not None:
        out = plain if shared else plain.clone(memory_format=torch.contiguous_format)
        out._pypto_valid_shape = out._pypto_full_shape = tuple(out.shape)
        return out
    shape = _coerce_shape(shapes)
    window, reach, _ = _read_window("tile.load", t, _coerce_shape(offsets), shape, valid)
    if reach == shape:
        out = window.clone(memory_format=torch.contiguous_format)
    else:
        out = t.new_zeros(shape)
        box = tuple(slice(0, v) for v in reach)
        out[box] = window[box]
    out._pypto_valid_shape = reach
    out._pypto_full_shape = shape
    return out


def _tensor_slice(
    t: torch.Tensor, offsets: Any, shapes: Any, valid: Any = None, drop: Any = (), what: str = "tensor.slice"
) -> Any:
    """A window of `t`: a view when it lies inside, else a zero-filled copy of the requested extent.

    The valid extents are recorded when `valid` is given, when `t` has padding or when the window was cut. The unit
    axes listed in `drop` are removed.
    """
    plain = _inner(t, offsets, shapes) if valid is None and not drop else None
    if plain is not None:
        return plain
    shape = _coerce_shape(shapes)
    window, reach, inside = _read_window(what, t, _coerce_shape(offsets), shape, valid)
    if not inside:
        if what != "tensor.slice":
            raise IndexError(f"{what}: window {shape} at {_coerce_shape(offsets)} leaves the shape {tuple(t.shape)}")
        cut, window = window, t.new_zeros(shape)
        window[tuple(slice(0, s) for s in cut.shape)] = cut
    kept = [k for k in range(len(shape)) if k not in {d % len(shape) for d in drop}]
    if len(kept) < len(shape):
        window = window.reshape([shape[k] for k in kept])
    if reach != shape or valid is not None:
        window._pypto_valid_shape = tuple(reach[k] for k in kept)
        window._pypto_full_shape = tuple(shape[k] for k in kept)
    return window


def _tile_slice(t: torch.Tensor, offsets: Any, shapes: Any, valid: Any = None, drop: Any = ()) -> Any:
    """A window of a tile, as a view; it must lie inside. The result keeps at least two axes."""
    plain = _inner(t, offsets, shapes) if valid is None and not drop else None
    if plain is not None:
        return plain
    out = _tensor_slice(t, offsets, shapes, valid, drop, "tile.slice")
    if out.dim() >= 2:
        return out
    lead = (1,) * (2 - out.dim())
    wide = out.reshape(lead + tuple(out.shape))
    if getattr(out, "_pypto_valid_shape", None) is not None:
        wide._pypto_valid_shape = lead + out._pypto_valid_shape
        wide._pypto_full_shape = tuple(wide.shape)
    return wide


def _converted(src: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """`src` in the element type of a store: nearest, ties to even; integers saturate when they come from floats."""
    if src.dtype == dtype or not src.dtype.is_floating_point or dtype.is_floating_point or dtype == torch.bool:
        return src
    info = torch.iinfo(dtype)
    return torch.nan_to_num(src.double().round(), nan=0.0).clamp(info.min, info.max)


def _apart(src: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """`src`, copied when it lies in the memory that is about to be written: windows of one tensor may overlap."""
    same = src.untyped_storage().data_ptr() == target.untyped_storage().data_ptr()
    return src.clone() if same else src


def _write_window(what: str, out: torch.Tensor, src: torch.Tensor, offsets: Iterable[Any], atomic: Any) -> Any:
    """Write the valid box of `src` into `out` at `offsets`, in place; returns `out`."""
    box = _box(src)
    target = None if atomic else _inner(out, offsets, box.shape)
    if target is not None:
        target.copy_(_apart(_converted(box, target.dtype), target))
        return out
    if box.numel() == 0:
        return out
    while box.dim() > out.dim() and box.shape[0] == 1:
        box = box[0]
    where = _coerce_shape(offsets)
    base, at = _slab(what, out, where, box.dim())
    if any(o < 0 for o in at):
        raise IndexError(f"{what}: negative offset in {where} on the shape {tuple(out.shape)}")
    if any(o + e > s for o, e, s in zip(at, box.shape, base.shape, strict=False)):
        raise IndexError(f"{what}: box {tuple(box.shape)} at {where} leaves the shape {tuple(out.shape)}")
    target = base[tuple(slice(o, o + e) for o, e in zip(at, box.shape, strict=False))]
    if atomic:
        target.add_(_apart(_converted(box, target.dtype).to(target.dtype), target))
    else:
        target.copy_(_apart(_converted(box, target.dtype), target))
    valid = getattr(out, "_pypto_valid_shape", None)
    if valid is not None and box.dim() == out.dim():
        out._pypto_valid_shape = _union(valid, at, tuple(box.shape))  # type: ignore[attr-defined]
    return out


def _union(valid: tuple[int, ...], at: tuple[int, ...], extent: tuple[int, ...]) -> tuple[int, ...]:
    """The valid extents after a box was written: they grow along the axes where the box adjoins them."""
    if not all(valid):
        return extent if not any(at) else valid
    if not any(at) and all(e >= v for e, v in zip(extent, valid, strict=False)):
        return extent
    over = [k for k, (v, o, e) in enumerate(zip(valid, at, extent, strict=False)) if o + e > v]
    if len(over) != 1 or at[over[0]] > valid[over[0]]:
        return valid
    grown = list(valid)
    grown[over[0]] = at[over[0]] + extent[over[0]]
    return tuple(grown)


def _tile_store(tile: torch.Tensor, offsets: Iterable[Any], out: torch.Tensor, atomic: Any = 0) -> Any:
    """Write the valid box of `tile` into `out` at `offsets` (`atomic=1` adds); returns `out` itself."""
    return _write_window("tile.store", out, tile, offsets, atomic)


def _assemble(target: torch.Tensor, source: torch.Tensor, offsets: Iterable[Any], atomic: Any = 0) -> Any:
    """Write the valid box of `source` into `target` at `offsets`, in place; returns `target`."""
    return _write_window("assemble", target, source, offsets, atomic)


def _place(what: str, t: Any, index: Any) -> tuple[int, ...]:
    """`index` as a tuple of int that lies inside `t`."""
    at = _coerce_shape(index) if isinstance(index, (tuple, list)) else (int(index),)
    if len(at) == t.dim() and all(0 <= i < s for i, s in zip(at, t.shape, strict=False)):
        return at
    raise IndexError(f"{what}: index {at} lies outside the shape {tuple(t.shape)}")


def _read(t: torch.Tensor, index: Any) -> Any:
    """The element of `t` at `index`, as a Python number: later writes do not change it."""
    return t[_place("read", t, index)].item()


def _write_and_return(container: Any, index: Any, value: Any) -> Any:
    """Store `value` at `index` of `container` and return `container`, the same object."""
    if isinstance(container, torch.Tensor):
        container[_place("write", container, index)] = value
    else:
        container[int(index[0] if isinstance(index, (tuple, list)) else index)] = value
    return container
