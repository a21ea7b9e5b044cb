"""Arguments of a jit call: bound like a Python call, then reduced to what specialisation needs."""

from __future__ import annotations

import inspect
import reprlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..ir.dtypes import INDEX, DataType
from ..ir.types import ScalarType, TensorType
from ..language.typing import RUNTIME
from .params import Param, extents

_TORCH: Mapping[str, DataType] = {
    "torch.bool": DataType.BOOL,
    "torch.int8": DataType.INT8,
    "torch.int16": DataType.INT16,
    "torch.int32": DataType.INT32,
    "torch.int64": DataType.INT64,
    "torch.uint8": DataType.UINT8,
    "torch.float16": DataType.FP16,
    "torch.bfloat16": DataType.BF16,
    "torch.float32": DataType.FP32,
    "torch.float8_e4m3fn": DataType.FP8E4M3FN,
    "torch.float8_e5m2": DataType.FP8E5M2,
    "torch.float8_e8m0fnu": DataType.FP8E8M0,
    "torch.float4_e2m1fn_x2": DataType.FP4,
}


_DEVICE_TENSORS = f"{__package__.rpartition('.')[0]}.runtime.device_tensor"


@dataclass(frozen=True)
class TensorInfo:
    """Extents (names for symbolic ones) and element type of a tensor argument; `sample` is the shape it came with."""

    shape: tuple[int | str, ...]
    dtype: DataType
    sample: tuple[int | str, ...] = ()

    def size(self, axis: int) -> int | None:
        """The extent that the sample has on an axis, None when there was no sample."""
        found = (self.sample or self.shape)[axis]
        return found if isinstance(found, int) else None


Info = TensorInfo | int | float | bool | Any
"""What is known of an argument: a tensor's extents, a scalar's value, or `pl.RUNTIME`."""


@dataclass(frozen=True)
class Bound:
    """Bound arguments: `values` in parameter order as the caller gave them, `infos` what they are specialised by."""

    values: tuple[Any, ...]
    infos: dict[str, Info]


def is_tensor(value: Any) -> bool:
    """True for torch tensors. Never imports torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _refuse_device_tensor(where: str, param: Param, value: Any) -> None:
    """Refuse a tensor that lives on a worker: the reference cannot specialise by one.

    Raises:
        ValueError: it is one.
    """
    home = sys.modules.get(_DEVICE_TENSORS)
    if home is not None and isinstance(value, (home.DeviceTensor, home.StackedDeviceTensor)):
        raise ValueError(
            f"@pl.jit: missing inferred tensor metadata for parameter '{param.name}': {where} got a "
            f"{type(value).__name__}; compile with sample host tensors first, then call what compile() returns"
        )


def tensor_info(value: Any, where: str = "") -> TensorInfo:
    """Extents and element type of a torch tensor; FP4 carriers hold two values per element of their last axis.

    Raises:
        TypeError: an element type the language does not have.
    """
    dtype = _TORCH.get(str(value.dtype))
    if dtype is None:
        known = ", ".join(_TORCH)
        raise TypeError(f"Unsupported torch dtype {value.dtype}. Supported: {known}{where}")
    shape = [int(d) for d in value.shape]
    if dtype is DataType.FP4:
        if not shape or shape[-1] <= 0:
            raise TypeError(f"an FP4 tensor needs rank 1 or more and a last extent above 0, got shape {shape}")
        shape[-1] *= 2
    return TensorInfo(tuple(shape), dtype)


def bind(
    func: Callable[..., Any],
    params: Mapping[str, Param],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    may_be_signature: bool,
) -> Bound:
    """Arguments of one call. With `may_be_signature`, a call without any tensor is read off the annotations.

    Raises:
        TypeError: what Python says about the call, or an argument of the wrong kind.
    """
    name = func.__name__
    signature = inspect.signature(func)
    unknown = [k for k in kwargs if k not in signature.parameters]
    if unknown:
        raise TypeError(f"@pl.jit function '{name}': got an unexpected keyword argument '{unknown[0]}'")
    if may_be_signature and not args and not any(map(is_tensor, kwargs.values())):
        return _from_annotations(name, signature, params, kwargs)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"@pl.jit function '{name}': {error}") from None
    bound.apply_defaults()
    infos = {p: _sample(name, params[p], v) for p, v in bound.arguments.items()}
    _check_symbols(name, params, infos)
    return Bound(tuple(bound.arguments.values()), infos)


def _check_symbols(function: str, params: Mapping[str, Param], infos: Mapping[str, Info]) -> None:
    """Refuse samples that give one declared extent two values.

    Raises:
        ValueError: both places and extents.
    """
    seen: dict[str, tuple[str, int, int | None]] = {}
    for name, info in infos.items():
        if not isinstance(info, TensorInfo):
            continue
        for axis, symbol in params[name].dynamic.items():
            size = info.size(axis)
            first, at, known = seen.setdefault(symbol, (name, axis, size))
            if known != size:
                raise ValueError(
                    f"@pl.jit function '{function}': the extent {symbol} is {known} on axis {at} of '{first}' and "
                    f"{size} on axis {axis} of '{name}'; pass tensors that agree, or declare two symbols"
                )


def _where(function: str, param: Param) -> str:
    return f"@pl.jit function '{function}': parameter '{param.name}'"


def _sample(function: str, param: Param, value: Any) -> Info:
    """What a sample argument says."""
    where = _where(function, param)
    if param.kind == "value":
        raise TypeError(f"{where} is a {param.type or 'value'}; only tensors and scalars come from outside")
    if is_tensor(value):
        if param.kind == "scalar":
            raise TypeError(f"{where} is a scalar, but got a tensor of shape {list(value.shape)}; pass t.item()")
        return _declared_extents(param, tensor_info(value, f" (parameter '{param.name}' of '{function}')"), where)
    _refuse_device_tensor(where, param, value)
    if value is RUNTIME:
        raise TypeError(
            f"{where} received pl.RUNTIME, which is for compile() and lower() without tensors; pass a number here"
        )
    if param.kind == "tensor":
        raise TypeError(f"{where} must be a torch tensor, got {_shown(value)}")
    return scalar_value(where, param, value)


def _declared_extents(param: Param, info: TensorInfo, where: str) -> TensorInfo:
    """Extents with the declared symbols in place of the sample's numbers.

    Raises:
        TypeError: a symbol for an axis the tensor does not have.
    """
    shape: list[int | str] = list(info.shape)
    for axis, symbol in param.dynamic.items():
        if not -len(shape) <= axis < len(shape):
            raise TypeError(f"{where}: axis {axis} is declared dynamic, but the tensor has rank {len(shape)}")
        shape[axis] = symbol
    return TensorInfo(tuple(shape), info.dtype, info.shape)


def scalar_value(where: str, param: Param, value: Any) -> int | float | bool:
    """A scalar argument as a number of the parameter's kind.

    Raises:
        TypeError: no int, float or bool, or one the declared type cannot hold.
    """
    if not isinstance(value, (int, float)):
        hint = "; pass int(...) or float(...) of it" if hasattr(value, "item") else ""
        raise TypeError(f"{where} must be an int/float/bool, got {_shown(value)}{hint}")
    dtype = param.type.dtype if isinstance(param.type, ScalarType) else None
    if dtype is None:
        return value
    if dtype is DataType.BOOL:
        return bool(value)
    if dtype.is_float():
        return _float(where, value)
    if isinstance(value, float):
        raise TypeError(f"{where} is declared {dtype.name}, but got the float {value!r}")
    return _in_range(where, dtype, int(value))


def _float(where: str, value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise TypeError(f"{where} is a float; the int that was given is too large for one") from None


def _in_range(where: str, dtype: DataType, value: int) -> int:
    """The value, if the integer type holds it."""
    bits = 64 if dtype is INDEX else dtype.get_bit()
    low, high = (0, 2**bits - 1) if dtype.is_unsigned_int() else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if not low <= value <= high:
        raise TypeError(f"{where} is declared {dtype.name} ({low} .. {high}), but got {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    """A value for a message: short, with its type unless that is a plain one."""
    text = reprlib.repr(value)
    plain = value is None or type(value) in (int, float, bool, str, list, tuple, dict)
    module = "" if type(value).__module__ == "builtins" else f"{type(value).__module__}."
    return text if plain else f"the {module}{type(value).__name__} {text}"


def _from_annotations(
    function: str, signature: inspect.Signature, params: Mapping[str, Param], kwargs: Mapping[str, Any]
) -> Bound:
    infos: dict[str, Info] = {}
    values: list[Any] = []
    for name, python in signature.parameters.items():
        param, where = params[name], _where(function, params[name])
        given = kwargs.get(name, python.default)
        values.append(None if given is inspect.Parameter.empty else given)
        if param.kind == "tensor":
            if given is not inspect.Parameter.empty and given is not None:
                raise TypeError(f"{where} must be a torch tensor, got {_shown(given)}")
            infos[name] = _annotated_tensor(param, where)
        elif given is inspect.Parameter.empty:
            raise TypeError(f"{where}: scalar parameter '{name}' has no value; pass {name}=<number> or pl.RUNTIME")
        elif param.kind in ("any", "value"):
            raise TypeError(f"{where}: cannot infer parameter '{name}' without an annotation or a sample argument")
        else:
            infos[name] = given if given is RUNTIME else scalar_value(where, param, given)
    return Bound(tuple(values), infos)


def _annotated_tensor(param: Param, where: str) -> TensorInfo:
    if not isinstance(param.type, TensorType):
        raise TypeError(
            f"{where} has a bare 'pl.Tensor' annotation with no shape; write pl.Tensor[[...], dtype] "
            "or pass sample tensors"
        )
    return _declared_extents(param, TensorInfo(tuple(extents(param.type)), param.type.dtype), where)
