"""Checking and converting the arguments of a dispatch."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..ir.dtypes import DataType
from ..ir.param_info import ParamInfo, output_indices
from ..ir.types import DYNAMIC_DIM
from .device_tensor import DeviceTensor, StackedDeviceTensor
from .torch_bridge import torch_dtype

_D = DataType
_CTYPES: dict[DataType, Any] = {
    _D.FP16: ctypes.c_float,
    _D.BF16: ctypes.c_float,
    _D.FP32: ctypes.c_float,
    _D.INT8: ctypes.c_int8,
    _D.INT16: ctypes.c_int16,
    _D.INT32: ctypes.c_int32,
    _D.INT64: ctypes.c_int64,
    _D.UINT8: ctypes.c_uint8,
    _D.UINT16: ctypes.c_uint16,
    _D.UINT32: ctypes.c_uint32,
    _D.UINT64: ctypes.c_uint64,
    _D.BOOL: ctypes.c_bool,
    _D.INDEX: ctypes.c_int64,
}


def strict_arguments() -> bool:
    """Whether host tensors are checked against the signature; `PYTEST_PYPTO_STRICT_ARGS=0` switches it off."""
    return os.environ.get("PYTEST_PYPTO_STRICT_ARGS", "1").strip().lower() not in ("0", "false", "no", "off")


@dataclass(frozen=True, slots=True)
class BoundCall:
    """Arguments for every parameter, in order; `made` holds outputs that the call allocated, None when in place."""

    values: list[Any]
    made: list[torch.Tensor] | None


def bind(label: str, params: Sequence[ParamInfo], has_return: bool, args: Sequence[Any]) -> BoundCall:
    """Match positional arguments to parameters and check them.

    With one argument per parameter, results are written into the arguments. A program that declares return values
    also takes the arguments without its pure outputs; those are then allocated.

    Args:
        label: how messages call the program, such as "CompiledProgram".

    Raises:
        TypeError: wrong number, kind, rank, shape or dtype; the text says what is expected.
        ValueError: a tensor that is not contiguous or not on the CPU; an output that cannot be allocated.
    """
    outs = output_indices(params)
    if len(args) == len(params):
        return BoundCall([coerce(p, a, i) for i, (p, a) in enumerate(zip(params, args, strict=True))], None)
    if has_return and len(args) == len(params) - len(outs):
        made = [allocate_output(params[i]) for i in outs]
        given, fresh = iter(args), iter(made)
        values = [next(fresh) if i in outs else coerce(p, next(given), i) for i, p in enumerate(params)]
        return BoundCall(values, made)
    other = f" or {len(params) - len(outs)} (return)" if has_return else ""
    raise TypeError(
        f"{label} expects {len(params)} (in-place){other} arguments, got {len(args)}. "
        f"Parameters: {[p.name for p in params]}. Signature: {describe(params)}"
    )


def describe(params: Sequence[ParamInfo]) -> str:
    """`a: fp32[32, 64], k: int32 scalar, out: Out fp32[-1, 64]`."""
    return ", ".join(describe_param(p) for p in params)


def describe_param(param: ParamInfo) -> str:
    """One parameter in words."""
    direction = "" if param.direction.name == "In" else f"{param.direction.name} "
    if param.shape is None:
        return f"{param.name}: {direction}{param.dtype} scalar"
    return f"{param.name}: {direction}{param.dtype}{list(param.shape)}"


def allocate_output(param: ParamInfo) -> torch.Tensor:
    """Zeros for a pure output.

    Raises:
        ValueError: no shape, an extent that is not known, or a dtype torch does not have.
    """
    if param.shape is None:
        raise ValueError(f"output '{param.name}' has no shape; pass a tensor for it")
    if DYNAMIC_DIM in param.shape:
        raise ValueError(
            f"output '{param.name}' contains dynamic dimensions {list(param.shape)}; pass a tensor of the right size"
        )
    dtype = torch_dtype(param.dtype)
    if dtype is None:
        raise ValueError(f"Unsupported dtype {param.dtype} of output '{param.name}'; pass a tensor for it")
    return torch.zeros(param.shape, dtype=dtype)


def coerce(param: ParamInfo, value: Any, position: int) -> Any:
    """A checked argument: a tensor, a `DeviceTensor`, or a Python number.

    Raises:
        TypeError, ValueError: see `bind`.
    """
    return _scalar(param, value) if param.shape is None else _tensor(param, value, position)


def _scalar(param: ParamInfo, value: Any) -> int | float | bool:
    if isinstance(value, torch.Tensor):
        raise TypeError(f"Parameter '{param.name}' is a scalar ({param.dtype}); got torch.Tensor. Pass a number")
    kind = _CTYPES.get(param.dtype)
    if kind is None:
        known = ", ".join(str(d) for d in _CTYPES)
        raise TypeError(f"Unsupported scalar dtype {param.dtype} of parameter '{param.name}'; supported: {known}")
    if isinstance(value, ctypes._SimpleCData):
        if type(value) is not kind:
            raise TypeError(
                f"Parameter '{param.name}' expects {kind.__name__} for dtype {param.dtype}; got {type(value).__name__}"
            )
        held: int | float | bool = value.value
        return held
    number = _plain_number(param, value)
    try:
        made = kind(number)
    except (TypeError, ValueError, OverflowError) as problem:
        raise TypeError(f"Parameter '{param.name}' is a scalar ({param.dtype}); got {value!r}: {problem}") from None
    if not param.dtype.is_float() and isinstance(number, int) and int(made.value) != int(number):
        raise TypeError(f"Parameter '{param.name}' is a scalar ({param.dtype}); {value!r} is out of its range")
    result: int | float | bool = made.value
    return result


def _plain_number(param: ParamInfo, value: Any) -> Any:
    """numpy's numbers as Python's; other kinds are left to ctypes, which refuses all but numbers (except for bool)."""
    if isinstance(value, (np.generic, np.ndarray)) and np.ndim(value) == 0:
        value = value.item()
    if param.dtype is DataType.BOOL and not isinstance(value, int):
        raise TypeError(f"Parameter '{param.name}' is a scalar ({param.dtype}); got {value!r}: pass True or False")
    return value


def _tensor(param: ParamInfo, value: Any, position: int) -> Any:
    assert param.shape is not None
    if isinstance(value, (DeviceTensor, StackedDeviceTensor)):
        _check_metadata(param, value.shape, value.dtype, type(value).__name__)
        return value
    if not isinstance(value, torch.Tensor):
        raise TypeError(
            f"Parameter '{param.name}' is a tensor; got {type(value).__name__}. "
            f"Pass a torch.Tensor (host) or DeviceTensor ({describe_param(param)})"
        )
    if value.device.type != "cpu":
        raise ValueError(
            f"Tensor at position {position} ('{param.name}') is on {value.device}, expected CPU; call .cpu() first"
        )
    if value.is_neg() or value.is_conj():
        raise ValueError(
            f"Tensor at position {position} ('{param.name}') is a view whose values are computed when it is read; "
            "pass t.resolve_neg().resolve_conj()"
        )
    if strict_arguments():
        _check_metadata(param, tuple(value.shape), value.dtype, "torch.Tensor")
    if not value.is_contiguous():
        raise ValueError(f"Tensor at position {position} ('{param.name}') is not contiguous; pass t.contiguous()")
    return value


def _check_metadata(param: ParamInfo, shape: tuple[int, ...], dtype: torch.dtype, kind: str) -> None:
    assert param.shape is not None
    expected = list(param.shape)
    if len(shape) != len(expected):
        raise TypeError(
            f"Parameter '{param.name}' expects rank {len(expected)} (shape {expected}); "
            f"got {kind} of rank {len(shape)} (shape {list(shape)})"
        )
    if any(want not in (DYNAMIC_DIM, have) for want, have in zip(expected, shape, strict=True)):
        raise TypeError(f"Parameter '{param.name}' expects shape {expected}; got {kind} of shape {list(shape)}")
    want = torch_dtype(param.dtype)
    carrier = param.dtype is DataType.FP4 and dtype is torch.uint8
    if want is not None and dtype != want and not carrier:
        raise TypeError(f"Parameter '{param.name}' expects dtype {want} ({param.dtype}); got {kind} of dtype {dtype}")
