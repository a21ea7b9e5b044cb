"""Reductions, argmax and argmin over the valid cells."""

from __future__ import annotations

from typing import Any

import torch

from .elements import _unsigned
from .regions import _box, _region, _with_valid


def _reduce(t: torch.Tensor, op: str, axis: int, keepdim: bool = True) -> Any:
    """Sum, prod, max or min of the valid cells along `axis`; the element type stays, sums of floats use FP32.

    `umax` and `umin` take 64-bit words as unsigned numbers.
    Cells of the result whose line holds no valid cell are padding.
    """
    axis %= t.dim()
    box = _box(t)
    out = t.new_zeros([1 if k == axis else s for k, s in enumerate(t.shape)])
    if box.numel():
        part = _reduced(box, op, axis)
        out[tuple(slice(0, s) for s in part.shape)] = part
    return _collapsed(t, out, axis, keepdim)


def _reduced(box: torch.Tensor, op: str, axis: int) -> Any:
    if op[0] == "u":
        return _unsigned(_reduced(_unsigned(box), op[1:], axis))
    if op == "max":
        return box.amax(dim=axis, keepdim=True)
    if op == "min":
        return box.amin(dim=axis, keepdim=True)
    wide = box.float() if box.dtype in (torch.float16, torch.bfloat16) else box
    result = wide.sum(dim=axis, keepdim=True) if op == "sum" else wide.prod(dim=axis, keepdim=True)
    return result.to(box.dtype)


def _arg_reduce(t: torch.Tensor, op: str, axis: int, keepdim: bool = True) -> Any:
    """Position (INT32) of the first largest ("max") or smallest ("min") valid cell along `axis`.

    `umax` and `umin` take 64-bit words as unsigned numbers.
    """
    axis %= t.dim()
    box = _unsigned(_box(t)) if op[0] == "u" else _box(t)
    out = torch.zeros([1 if k == axis else s for k, s in enumerate(t.shape)], dtype=torch.int32)
    if box.numel():
        part = box.argmax(dim=axis, keepdim=True) if op.endswith("max") else box.argmin(dim=axis, keepdim=True)
        out[tuple(slice(0, s) for s in part.shape)] = part.to(torch.int32)
    return _collapsed(t, out, axis, keepdim)


def _collapsed(t: torch.Tensor, out: torch.Tensor, axis: int, keepdim: bool) -> Any:
    valid = getattr(t, "_pypto_valid_shape", None)
    if not keepdim:
        out = out.squeeze(axis)
    if valid is None:
        return out
    kept = tuple(min(v, 1) if k == axis else v for k, v in enumerate(_region(t)))
    return _with_valid(out, kept if keepdim else kept[:axis] + kept[axis + 1 :])


def _part(a: torch.Tensor, b: torch.Tensor, op: str) -> Any:
    """`a op b` where both are valid, the one valid element elsewhere; the region of the result is that of `a`.

    `op` is add, mul, max or min, and umax or umin for 64-bit words taken as unsigned numbers. Cells valid in neither
    operand stay zero.
    """
    shape = torch.broadcast_shapes(a.shape, b.shape)  # type: ignore[no-untyped-call]
    out = torch.zeros(shape, dtype=torch.promote_types(a.dtype, b.dtype))
    left, right = (_stretched(x, shape) for x in (a, b))
    mine, other = tuple(slice(0, v) for v in left), tuple(slice(0, v) for v in right)
    both = tuple(slice(0, min(x, y)) for x, y in zip(left, right, strict=False))
    x, y = a.expand(shape), b.expand(shape)
    out[other] = y[other].to(out.dtype)
    out[mine] = x[mine].to(out.dtype)
    functions = {"add": torch.add, "mul": torch.mul, "max": torch.maximum, "min": torch.minimum}
    apply: Any = functions[op.removeprefix("u")]
    if op[0] == "u":
        out[both] = _unsigned(apply(_unsigned(x[both]), _unsigned(y[both])))
    else:
        out[both] = apply(x[both], y[both])
    return _with_valid(out, left) if getattr(a, "_pypto_valid_shape", None) is not None else out


def _stretched(t: torch.Tensor, shape: Any) -> tuple[int, ...]:
    lead = len(shape) - t.dim()
    pairs = zip((1,) * lead + tuple(t.shape), (1,) * lead + _region(t), shape, strict=False)
    return tuple(v if s == d else d for s, v, d in pairs)
