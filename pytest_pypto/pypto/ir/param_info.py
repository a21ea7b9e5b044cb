"""Parameters of a compiled program, as its sidecar stores them. Imports nothing above the IR."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .dtypes import DataType
from .enums import ParamDirection
from .expr import const_value
from .program import Function
from .types import DYNAMIC_DIM, ScalarType, ShapedType, Type

_SSA_SUFFIX = re.compile(r"__ssa_v\d+$")


@dataclass(frozen=True, slots=True)
class ParamInfo:
    """One parameter: `shape` is None for scalars, -1 stands for an extent that is not constant."""

    name: str
    direction: ParamDirection
    shape: tuple[int, ...] | None
    dtype: DataType

    @property
    def is_scalar(self) -> bool:
        """True for numbers, False for tensors."""
        return self.shape is None


def plain_name(name: str) -> str:
    """The author's name of a variable, without the suffix the SSA pass gave it."""
    return _SSA_SUFFIX.sub("", name)


def param_infos(func: Function) -> list[ParamInfo]:
    """The parameters of a function.

    FP4 tensors are described by their carrier: two values per byte, so the last extent is halved.

    Raises:
        TypeError: a parameter that is neither tensor nor scalar.
    """
    return [
        ParamInfo(plain_name(var.name_hint), direction, *_shape_and_dtype(var.name_hint, var.type))
        for var, direction in func.pairs
    ]


def _shape_and_dtype(name: str, type_: Type) -> tuple[tuple[int, ...] | None, DataType]:
    if isinstance(type_, ScalarType):
        return None, type_.dtype
    if not isinstance(type_, ShapedType):
        raise TypeError(
            f"Unsupported parameter type {type(type_).__name__} of parameter '{name}'; "
            "entry functions take tensors and scalars"
        )
    extents = [const_value(d) for d in type_.shape]
    shape = [DYNAMIC_DIM if d is None else d for d in extents]
    if type_.dtype is DataType.FP4 and shape and shape[-1] > 0:
        shape[-1] //= 2
    return tuple(shape), type_.dtype


def output_indices(params: Sequence[ParamInfo]) -> list[int]:
    """Positions of the pure `Out` parameters."""
    return [i for i, p in enumerate(params) if p.direction is ParamDirection.Out]
