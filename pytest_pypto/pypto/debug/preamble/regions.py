"""Valid regions: the box of a tensor that holds data; cells outside it are padding.

A region travels as two attributes of the tensor object, `_pypto_valid_shape` and `_pypto_full_shape` (tuples of int).
A tensor without them is valid everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch


def _coerce_shape(shape: Iterable[Any]) -> tuple[int, ...]:
    """Extents or offsets (ints or 0-d integer tensors) as a tuple of int."""
    return tuple(int(s) for s in shape)


def _region(t: torch.Tensor) -> tuple[int, ...]:
    """The valid extents of `t`; its shape when nothing else is recorded."""
    valid = getattr(t, "_pypto_valid_shape", None)
    return tuple(t.shape) if valid is None else valid


def _with_valid(t: Any, valid: Iterable[Any]) -> Any:
    """`t`, a fresh tensor, with the valid extents `valid` recorded on it."""
    t._pypto_valid_shape = tuple(min(int(v), s) for v, s in zip(valid, t.shape, strict=False))
    t._pypto_full_shape = tuple(t.shape)
    return t


def _default_valid(t: Any, valid: Iterable[Any]) -> Any:
    """`t` itself when it carries a region, otherwise another name of its storage with the region `valid`."""
    if getattr(t, "_pypto_valid_shape", None) is not None:
        return t
    return _with_valid(t.detach(), valid)


def _copy_region_attrs(src: torch.Tensor, dst: Any) -> Any:
    """`dst` with the region of `src`, if it has one; axes that broadcasting stretched are valid in full."""
    valid = getattr(src, "_pypto_valid_shape", None)
    if valid is None:
        return dst
    full = getattr(src, "_pypto_full_shape", tuple(src.shape))
    if src.shape != dst.shape:
        lead = dst.dim() - len(valid)
        if lead < 0:
            return dst
        pairs = list(zip((1,) * lead + tuple(src.shape), (1,) * lead + tuple(valid), dst.shape, strict=False))
        valid = tuple(v if s == d else d for s, v, d in pairs)
        full = tuple(dst.shape)
    dst._pypto_valid_shape = valid
    dst._pypto_full_shape = full
    return dst


def _common_region(a: torch.Tensor, b: torch.Tensor, dst: Any) -> Any:
    """`dst` with the region that `a` and `b` share; valid in full when theirs differ."""
    valid = getattr(a, "_pypto_valid_shape", None)
    if valid is None or a.shape != b.shape or getattr(b, "_pypto_valid_shape", None) != valid:
        return dst
    return _copy_region_attrs(a, dst)


def _box(t: torch.Tensor) -> torch.Tensor:
    """The valid part of `t`, as a view."""
    valid = getattr(t, "_pypto_valid_shape", None)
    if valid is None or valid == tuple(t.shape):
        return t
    return t[tuple(slice(0, v) for v in valid)]


def _whole(t: torch.Tensor) -> torch.Tensor:
    """`t` under a name that counts every cell as valid."""
    return t if getattr(t, "_pypto_valid_shape", None) is None else t.detach()


def _set_validshape(t: torch.Tensor, rows: Any, cols: Any) -> Any:
    """Another name of the storage of the 2-D `t` whose valid part is `rows` x `cols`."""
    valid = (int(rows), int(cols))
    if not all(0 <= v <= s for v, s in zip(valid, t.shape, strict=False)):
        raise ValueError(f"set_validshape: {valid} does not lie inside the shape {tuple(t.shape)}")
    return _with_valid(t.detach(), valid)


def _snapshot(t: torch.Tensor) -> Any:
    """A private copy of `t` with its region."""
    return _copy_region_attrs(t, t.clone())


def _pad_scalar(t: torch.Tensor, mode: Any) -> Any:
    """The number that fills padding: 0, the lowest or highest finite value of the element type, or `mode` itself.

    The device writes infinities for `min` and `max` of floats; the finite limits are kept here.
    """
    if mode in ("zero", "null"):
        return 0
    if isinstance(mode, (int, float)) and abs(mode) != float("inf"):
        return mode
    lowest = mode == "min" or mode == float("-inf")
    if not lowest and mode != "max" and mode != float("inf"):
        raise ValueError(f"unknown pad value {mode!r}; use zero, min, max or a number")
    if t.dtype == torch.bool:
        return not lowest
    info: Any = torch.finfo(t.dtype) if t.dtype.is_floating_point else torch.iinfo(t.dtype)
    return info.min if lowest else info.max


def _mask_valid_region(t: torch.Tensor, shapes: Iterable[Any], valid: Iterable[Any]) -> Any:
    """A copy of `t` with zeros outside the box `[0:valid]`."""
    box = tuple(slice(0, min(int(v), int(s))) for s, v in zip(shapes, valid, strict=False))
    out = torch.zeros_like(t)
    out[box] = t[box]
    return out


def _fillpad(t: torch.Tensor, mode: Any = "zero") -> Any:
    """`t` at its full extent with the pad number outside the valid box; the result is valid everywhere."""
    return _fillpad_expand(t, getattr(t, "_pypto_full_shape", t.shape), mode)


def _fillpad_expand(t: torch.Tensor, shape: Iterable[Any], mode: Any = "zero") -> Any:
    """A tensor of extent `shape` with the valid box of `t` in the corner and the pad number elsewhere."""
    out = torch.full(_coerce_shape(shape), _pad_scalar(t, mode), dtype=t.dtype)
    box = _box(t)
    out[tuple(slice(0, s) for s in box.shape)] = box
    return out


def _fillpad_inplace(t: torch.Tensor, mode: Any = "zero") -> Any:
    """`t` with the pad number written over its padding; another name of the same storage, valid everywhere."""
    if getattr(t, "_pypto_valid_shape", None) is None:
        return t
    box = _box(t).clone()
    whole = t.detach()
    whole.fill_(_pad_scalar(t, mode))
    whole[tuple(slice(0, s) for s in box.shape)] = box
    return whole
