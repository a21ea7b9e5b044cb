"""Parameters of a compiled program: from `compiled_meta.json` of its artifact, otherwise from its IR.

Only what the documentation of PyPTO promises is read, so that this works on an installed PyPTO too.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_pypto.harness.errors import CaseError
from pytest_pypto.harness.stages import program_of

if TYPE_CHECKING:
    import torch

TORCH_NAMES: Mapping[str, str] = {
    "fp64": "float64",
    "fp32": "float32",
    "fp16": "float16",
    "bfloat16": "bfloat16",
    "fp8e4m3fn": "float8_e4m3fn",
    "fp8e5m2": "float8_e5m2",
    "fp8e8m0": "float8_e8m0fnu",
    "fp4": "float4_e2m1fn_x2",
    "index": "int64",
    "bool": "bool",
} | {f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
"""PyPTO's element types as torch spells them."""

_SSA = re.compile(r"__ssa_v\d+$")


@dataclass(frozen=True)
class Param:
    """One parameter of the entry function.

    Attributes:
        name: plain name, without the compiler's version suffix.
        direction: `In`, `Out` or `InOut`.
        shape: extents, -1 for one that is known only at run time; None for a scalar.
        dtype: PyPTO's name of the element type, e.g. "fp32".
        dims: names of the extents that are known only at run time, "" elsewhere.
    """

    name: str
    direction: str
    shape: tuple[int, ...] | None
    dtype: str
    dims: tuple[str, ...] = ()

    @property
    def torch_dtype(self) -> torch.dtype:
        """The torch type.

        Raises:
            CaseError: torch has none.
        """
        import torch

        found = getattr(torch, TORCH_NAMES.get(self.dtype, "?"), None)
        if not isinstance(found, torch.dtype):
            raise CaseError(f"parameter {self.name!r}: torch has no counterpart of dtype {self.dtype}")
        return found

    def describe(self) -> str:
        """`InOut o: fp32[32, 128]`."""
        shape = "" if self.shape is None else str([d if d >= 0 else self.dim_name(i) for i, d in enumerate(self.shape)])
        return f"{self.direction} {self.name}: {self.dtype}{shape}"

    def dim_name(self, axis: int) -> str:
        """Name of a run-time extent: the program's own, otherwise `<parameter>.<axis>`."""
        named = self.dims[axis] if axis < len(self.dims) else ""
        return named or f"{self.name}.{axis}"


@dataclass(frozen=True)
class Signature:
    """Parameters of the entry in order, and how many values it returns."""

    params: tuple[Param, ...]
    returns: int = 0
    entry: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Parameter names in order."""
        return tuple(p.name for p in self.params)

    def param(self, name: str) -> Param:
        """The parameter of that name."""
        return next(p for p in self.params if p.name == name)

    @property
    def outputs(self) -> tuple[Param, ...]:
        """Parameters the program may write: Out and InOut."""
        return tuple(p for p in self.params if p.direction != "In" and p.shape is not None)


def signature_of(compiled: Any) -> Signature:
    """The signature of a compiled program, or of a bare `ir.Program`.

    Raises:
        CaseError: neither a readable `compiled_meta.json` nor a program.
    """
    program = program_of(compiled)
    inside = from_program(program) if program is not None else None
    if hasattr(compiled, "functions"):
        assert inside is not None
        return inside
    written = from_meta(Path(os.fspath(compiled)) / "compiled_meta.json")
    if written is None and inside is None:
        raise CaseError(f"{compiled!r} has neither compiled_meta.json nor a program; compile it again with ir.compile")
    if written is None or inside is None:
        found = written or inside
        assert found is not None
        return found
    names = {p.name: p.dims for p in inside.params}
    params = tuple(Param(p.name, p.direction, p.shape, p.dtype, names.get(p.name, ())) for p in written.params)
    return Signature(params, written.returns, inside.entry)


def from_meta(path: Path) -> Signature | None:
    """Read `compiled_meta.json`; None when there is no such file.

    Raises:
        CaseError: the file is there and cannot be understood.
    """
    if not path.is_file():
        return None
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        params = tuple(
            Param(plain_name(p["name"]), p["direction"], None if p["shape"] is None else tuple(p["shape"]), p["dtype"])
            for p in data["params"]
        )
        return Signature(params, int(data.get("num_return_types", 0)))
    except (ValueError, KeyError, TypeError) as exc:
        raise CaseError(
            f"{path} cannot be understood ({type(exc).__name__}: {exc}); compile the program again"
        ) from exc


def from_program(program: Any) -> Signature:
    """The signature of an `ir.Program`: of its entry function.

    Raises:
        CaseError: no function, or several and none is an orchestration.
    """
    function = entry_of(program)
    params = tuple(
        _param(var, direction) for var, direction in zip(function.params, function.param_directions, strict=True)
    )
    return Signature(params, len(function.return_types), function.name)


def entry_of(program: Any) -> Any:
    """The function a caller calls: the orchestration, or the only function.

    Raises:
        CaseError: no function, or several and none is an orchestration.
    """
    functions = list(program.functions.values())
    hosts = [f for f in functions if f.func_type.name == "Orchestration"]
    if hosts:
        return hosts[0]
    called = _called(functions)
    if len(functions) > 1:
        functions = [f for f in functions if f.name not in called] or functions
    if len(functions) != 1:
        names = ", ".join(f.name for f in functions) or "none"
        raise CaseError(f"program {program.name!r} has no single entry function (candidates: {names})")
    return functions[0]


def _called(functions: list[Any]) -> set[str]:
    from pypto import ir

    names: set[str] = set()

    class Calls(ir.IRVisitor):  # type: ignore[misc]
        def visit_call(self, op: Any) -> None:
            if isinstance(op.op, ir.GlobalVar):
                names.add(op.op.name)
            super().visit_call(op)

    for function in functions:
        Calls().visit_function(function)
    return names


def _param(var: Any, direction: Any) -> Param:
    kind = var.type
    dims = getattr(kind, "shape", None)
    if dims is None:
        return Param(plain_name(var.name_hint), direction.name, None, str(getattr(kind, "dtype", "?")))
    extents = tuple(_extent(d) for d in dims)
    names = tuple(
        "" if extent >= 0 else plain_name(str(getattr(d, "name_hint", "")))
        for d, extent in zip(dims, extents, strict=True)
    )
    return Param(plain_name(var.name_hint), direction.name, extents, str(kind.dtype), names)


def _extent(dim: Any) -> int:
    value = getattr(dim, "value", dim)
    return value if isinstance(value, int) and value >= 0 else -1


def plain_name(name: str) -> str:
    """`x__ssa_v0` -> `x`."""
    return _SSA.sub("", name)
