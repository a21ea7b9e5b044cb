"""`debug/run.py` of an artifact: a script that makes inputs, runs the artifact and lets the user compare."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ...codegen.artifact import write_text
from ...ir.dtypes import DataType
from ...ir.enums import ParamDirection
from ...ir.param_info import ParamInfo
from ...ir.types import DYNAMIC_DIM

SWITCH = "PYPTO_EMIT_DEBUG_RUNNER"
_TORCH = {
    DataType.FP32: "float32",
    DataType.FP16: "float16",
    DataType.BF16: "bfloat16",
    DataType.BOOL: "bool",
    DataType.INT8: "int8",
    DataType.INT16: "int16",
    DataType.INT32: "int32",
    DataType.INT64: "int64",
    DataType.UINT8: "uint8",
    DataType.UINT16: "uint16",
    DataType.UINT32: "uint32",
    DataType.UINT64: "uint64",
    DataType.FP8E4M3FN: "float8_e4m3fn",
    DataType.FP8E5M2: "float8_e5m2",
    DataType.FP4: "uint8",
    DataType.FP8E8M0: "float8_e8m0fnu",
    DataType.INDEX: "int64",
}

_TEMPLATE = '''\
"""Run this build again: python debug/run.py [options]; --help lists them.

Edit `_inline_inputs` to choose the inputs and `_user_compare` to check the results. A golden.py beside the artifact
replaces both.
"""

import sys
from pathlib import Path

import torch

try:
    import pypto.language  # noqa: F401
except ImportError:  # no PyPTO is installed: the embedded one takes the name
    from pytest_pypto import toolchain

    toolchain.activate("embedded")

from pypto.runtime.debug.replay import main

ARTIFACT = Path(__file__).resolve().parent.parent


def _inline_inputs():
    """Arguments in parameter order."""
    torch.manual_seed(0)
    return [
{inputs}
    ]


def _user_compare({names}):
    """Check the arguments after the run; raise to fail."""


if __name__ == "__main__":
    sys.exit(main(default_dir=ARTIFACT, default_platform={platform!r}, inputs=_inline_inputs, compare=_user_compare))
'''


def wanted() -> bool:
    """Whether builds get the script; `PYPTO_EMIT_DEBUG_RUNNER=0` switches it off."""
    return os.environ.get(SWITCH, "1").strip().lower() not in ("0", "false", "no")


def write_run_script(directory: Path, params: Sequence[ParamInfo], platform: str) -> None:
    """Write `debug/run.py` below an artifact directory."""
    if not wanted():
        return
    target = directory / "debug" / "run.py"
    target.parent.mkdir(parents=True, exist_ok=True)
    names = ", ".join(_identifier(p.name) for p in params)
    lines = "\n".join(f"        {line}" for param in params for line in _input_lines(param))
    write_text(target, _TEMPLATE.format(inputs=lines, names=names, platform=platform))


def _identifier(name: str) -> str:
    return name if name.isidentifier() else "".join(c if c.isalnum() else "_" for c in name)


def _input_lines(param: ParamInfo) -> list[str]:
    if param.shape is None:  # the mark in the script is for its user, who has to choose the number
        return [f"None,  # TODO {param.name}: a number of type {param.dtype}"]
    shape = [1 if d == DYNAMIC_DIM else d for d in param.shape]
    lines = []
    if DYNAMIC_DIM in param.shape:
        lines.append(f"# NOTE {param.name} has dynamic extents {list(param.shape)}; 1 stands for each")
    return [*lines, f"{_value(param, shape)},  # {param.name}: {param.direction.name} {param.dtype}{list(param.shape)}"]


def _value(param: ParamInfo, shape: list[int]) -> str:
    dtype = f"torch.{_TORCH.get(param.dtype, 'float32')}"
    if param.direction is ParamDirection.Out:
        return f"torch.zeros({shape}, dtype={dtype})"
    if param.dtype is DataType.BOOL:
        return f"torch.randint(0, 2, {shape}).to({dtype})"
    if param.dtype.is_float() and param.dtype is not DataType.FP4:
        return f"torch.randn({shape}).to({dtype})"
    return f"torch.randint(0, 8, {shape}).to({dtype})"
