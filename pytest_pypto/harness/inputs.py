"""Data for a signature: seeded, and made so that a mix-up of rows, columns, lanes or blocks changes the numbers.

* Floats are normal numbers; every row and column differs, both signs occur.
* Integers are uniform in a range that sums of products of them do not leave.
* Pure outputs start at -7 (or the nearest thing the type has), so that an element never written is seen.
* In-out tensors start with random values.
* Scalars: integers and booleans 1, floats 0.5; give others by name when the program needs them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pytest_pypto.harness.errors import CaseError
from pytest_pypto.harness.signature import Param, Signature, signature_of

if TYPE_CHECKING:
    import torch

SENTINEL = -7
INTEGER_RANGE = 50


class Inputs(Mapping[str, Any]):
    """Arguments of a program by parameter name, in parameter order; knows its signature and seed.

    The tensors are the caller's: every layer works on clones.
    """

    def __init__(self, values: Mapping[str, Any], signature: Signature, seed: int) -> None:
        self._values = {p.name: values[p.name] for p in signature.params}
        self.signature = signature
        self.seed = seed

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def clones(self) -> dict[str, Any]:
        """Fresh copies of the tensors, and the scalars."""
        return {name: clone(value) for name, value in self._values.items()}

    def __repr__(self) -> str:
        return f"Inputs({', '.join(p.describe() for p in self.signature.params)}; seed={self.seed})"


def clone(value: Any) -> Any:
    """A contiguous copy of a tensor with no history; anything else as it is."""
    if not hasattr(value, "detach"):
        return value
    copy = value.detach().clone()
    return copy if copy.is_contiguous() else copy.contiguous()


def make_inputs(compiled: Any, *, seed: int = 0, dims: Mapping[str, int] | None = None, **overrides: Any) -> Inputs:
    """Arguments for a compiled program.

    Args:
        compiled: a `CompiledProgram` or an `ir.Program`.
        seed: data depend on it, on the parameter's name, and on nothing else.
        dims: extents that the signature leaves open, by the program's name for them or as `<parameter>.<axis>`;
            those of given tensors are known.
        overrides: values for single parameters: a tensor, a number, or a function of (shape, dtype, generator).

    Raises:
        CaseError: unknown name, wrong shape or dtype, or an extent that is not given.
    """
    signature = signature_of(compiled)
    _known(overrides, signature)
    known = dict(dims or {})
    _check_dims(known, signature)
    _infer_dims(known, signature, overrides)
    values: dict[str, Any] = {}
    for param in signature.params:
        given = overrides.get(param.name)
        values[param.name] = _generated(param, known, seed, given) if given is None or callable(given) else given
    return checked_inputs(values, signature, seed)


def ready_inputs(compiled: Any, inputs: Mapping[str, Any]) -> Inputs:
    """The arguments of a program, checked unless they were made for it.

    Raises:
        CaseError: see `checked_inputs`.
    """
    known = signature_of(compiled)
    if isinstance(inputs, Inputs) and inputs.signature == known:
        return inputs
    return checked_inputs(inputs, known, getattr(inputs, "seed", 0))


def checked_inputs(values: Mapping[str, Any], signature: Signature, seed: int = 0) -> Inputs:
    """Check arguments against a signature.

    Raises:
        CaseError: a name is missing or unknown, or a value has the wrong kind, shape or dtype.
    """
    _known(values, signature)
    missing = [p.name for p in signature.params if p.name not in values]
    if missing:
        raise CaseError(f"inputs lack {_list(missing)}; the parameters are {_list(signature.names)}, outputs included")
    extents: dict[str, tuple[int, str]] = {}
    for param in signature.params:
        _check_value(param, values[param.name], extents)
    return Inputs({name: _dense(value) for name, value in values.items()}, signature, seed)


def _dense(value: Any) -> Any:
    """The tensor itself when it is contiguous, else a contiguous copy: a program takes dense memory."""
    return value.contiguous() if hasattr(value, "is_contiguous") and not value.is_contiguous() else value


def _known(values: Mapping[str, Any], signature: Signature) -> None:
    unknown = [name for name in values if name not in signature.names]
    if unknown:
        raise CaseError(f"no parameter is called {_list(unknown)}; the parameters are {_list(signature.names)}")


def _list(names: Any) -> str:
    return ", ".join(repr(n) for n in names)


def _check_dims(dims: Mapping[str, int], signature: Signature) -> None:
    known = {name for p in signature.params for axis in range(len(p.shape or ())) for name in _dim_keys(p, axis)}
    unknown = sorted(set(dims) - known)
    if unknown:
        accepted = _list(sorted(known)) or "none: every extent is fixed"
        raise CaseError(f"no open extent is called {_list(unknown)}; accepted: {accepted}")
    for name, extent in dims.items():
        if isinstance(extent, bool) or not isinstance(extent, int) or extent < 0:
            raise CaseError(f"dims={{{name!r}: {extent!r}}} is no extent: give a whole number >= 0")


def _infer_dims(dims: dict[str, int], signature: Signature, given: Mapping[str, Any]) -> None:
    """Enter the open extents that given tensors have.

    Raises:
        CaseError: `dims` and a tensor, or two tensors, do not agree.
    """
    origin = {name: f"by dims={{{name!r}: {extent}}}" for name, extent in dims.items()}
    for param in signature.params:
        shape = getattr(given.get(param.name), "shape", None)
        if shape is None or param.shape is None or len(shape) != len(param.shape):
            continue
        for axis, have in enumerate(map(int, shape)):
            for key in _dim_keys(param, axis):
                if dims.setdefault(key, have) != have:
                    raise CaseError(
                        f"extent {key!r} is {have} in input {param.name!r} but {dims[key]} {origin[key]}; "
                        "make them equal"
                    )
                origin.setdefault(key, f"in input {param.name!r}")


def _dim_keys(param: Param, axis: int) -> tuple[str, ...]:
    if param.shape is None or param.shape[axis] >= 0:
        return ()
    return tuple({param.dim_name(axis), f"{param.name}.{axis}"})


def _check_value(param: Param, value: Any, extents: dict[str, tuple[int, str]]) -> None:
    import torch

    if param.shape is None:
        if isinstance(value, torch.Tensor) or not isinstance(value, (int, float, bool)):
            raise CaseError(f"parameter {param.name!r} is a scalar ({param.dtype}); got {_kind(value)}: pass a number")
        return
    if not isinstance(value, torch.Tensor):
        raise CaseError(f"parameter {param.name!r} is a tensor; got {_kind(value)}: pass a torch.Tensor")
    if value.dtype != param.torch_dtype:
        raise CaseError(
            f"input {param.name!r} has dtype {value.dtype}, the program takes {param.torch_dtype} "
            f"({param.describe()}); convert it with .to({param.torch_dtype})"
        )
    if len(value.shape) != len(param.shape) or any(
        want not in (-1, have) for want, have in zip(param.shape, value.shape, strict=True)
    ):
        raise CaseError(f"input {param.name!r} has shape {tuple(value.shape)}, the program takes {param.describe()}")
    _check_open_extents(param, value, extents)


def _check_open_extents(param: Param, value: torch.Tensor, extents: dict[str, tuple[int, str]]) -> None:
    assert param.shape is not None
    for axis, want in enumerate(param.shape):
        name = param.dims[axis] if want < 0 and axis < len(param.dims) else ""
        have = int(value.shape[axis])
        if name and extents.setdefault(name, (have, param.name))[0] != have:
            other = extents[name]
            raise CaseError(
                f"extent {name!r} is {have} in input {param.name!r} but {other[0]} in input {other[1]!r}; "
                "make them equal"
            )


def _kind(value: Any) -> str:
    return type(value).__name__


def _generated(param: Param, dims: Mapping[str, int], seed: int, given: Any) -> Any:
    import torch

    if param.shape is None:
        return given(None, param.dtype, None) if given is not None else _scalar(param.dtype)
    shape = tuple(_extent(param, axis, dims) for axis in range(len(param.shape)))
    generator = torch.Generator().manual_seed(zlib.crc32(f"{param.name}:{seed}".encode()))
    if given is not None:
        return given(shape, param.torch_dtype, generator)
    return initial(shape, param.torch_dtype, generator, output_only=param.direction == "Out")


def _extent(param: Param, axis: int, dims: Mapping[str, int]) -> int:
    assert param.shape is not None
    if param.shape[axis] >= 0:
        return param.shape[axis]
    found = next((dims[key] for key in _dim_keys(param, axis) if key in dims), None)
    if found is None:
        name = param.dim_name(axis)
        raise CaseError(
            f"extent {axis} of {param.describe()} is known only at run time; give it with dims={{{name!r}: N}}, "
            f"or pass the tensor as {param.name}=..."
        )
    return found


def _scalar(dtype: str) -> int | float | bool:
    if dtype == "bool":
        return True
    return 0.5 if dtype.startswith(("fp", "bf")) else 1


def initial(
    shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator, *, output_only: bool = False
) -> torch.Tensor:
    """A tensor of random values, or of sentinels for an output.

    Args:
        shape: extents.
        dtype: any type torch can hold.
        generator: source of randomness; the global one is not touched.
        output_only: fill with the sentinel instead.
    """
    import torch

    if dtype == getattr(torch, "float4_e2m1fn_x2", None):
        bits = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
        return (torch.full_like(bits, 0xDD) if output_only else bits).view(dtype)  # 0xd is -3 in each half
    if output_only:
        return torch.full(shape, _sentinel(dtype), dtype=torch.float32 if dtype.is_floating_point else dtype).to(dtype)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator, dtype=torch.uint8).bool()
    if dtype.is_floating_point:
        values = torch.randn(shape, generator=generator, dtype=torch.float32)
        return (values.abs() if dtype == getattr(torch, "float8_e8m0fnu", None) else values).to(dtype)
    low = 0 if not dtype.is_signed else -INTEGER_RANGE
    return torch.randint(low, INTEGER_RANGE, shape, generator=generator, dtype=torch.int64).to(dtype)


def _sentinel(dtype: torch.dtype) -> float:
    import torch

    if dtype == torch.bool:
        return False
    if dtype == getattr(torch, "float8_e8m0fnu", None):
        return 128.0
    return SENTINEL if dtype.is_signed else -SENTINEL
