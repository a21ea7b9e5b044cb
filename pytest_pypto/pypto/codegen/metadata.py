"""`compiled_meta.json` and `kernel_config.py`: what an artifact says about itself, as data."""

from __future__ import annotations

import json
import pprint
from collections.abc import Sequence
from typing import Any

from ..ir.enums import FunctionType, ParamDirection
from ..ir.expr import GlobalVar
from ..ir.param_info import ParamInfo
from ..ir.program import Function, Program
from ..ir.types import ShapedType
from ..ir.visitor import calls_in
from .units import core_of, group_members, is_kernel, reachable

META_NAME = "compiled_meta.json"
CONFIG_NAME = "kernel_config.py"
SCHEMA = 1
ENTRY_SYMBOL = "aicpu_orchestration_entry"
_SIGNATURE = {ParamDirection.In: "IN", ParamDirection.Out: "OUT", ParamDirection.InOut: "INOUT"}


def meta_text(
    params: Sequence[ParamInfo], num_return_types: int, platform: str, backend_type: str, files: Sequence[str] = ()
) -> str:
    """The text of `compiled_meta.json`; `files` are the kernels and the host program, relative to its directory."""
    data = {
        "schema": SCHEMA,
        "params": [
            {
                "name": p.name,
                "direction": p.direction.name,
                "shape": None if p.shape is None else list(p.shape),
                "dtype": str(p.dtype),
            }
            for p in params
        ],
        "num_return_types": num_return_types,
        "platform": platform,
        "backend_type": backend_type,
        "files": sorted(files),
    }
    return json.dumps(data, indent=2) + "\n"


def kernel_ids(program: Program, entry: Function) -> dict[str, int]:
    """Kernel numbers in order of first use by the host; a group numbers its cube kernel, then its vector one."""
    order = [entry, *(f for f in reachable(program, entry) if f is not entry and not is_kernel(f))]
    found: dict[str, int] = {}

    def number(name: str) -> None:
        func = program.get_function(name)
        if func is None:
            return
        if func.func_type is FunctionType.Group:
            for member in group_members(func, program):
                found.setdefault(member.name, len(found))
        elif func.func_type is FunctionType.Spmd:
            for call in calls_in(func.body):
                if isinstance(call.op, GlobalVar):
                    number(call.op.name)
        elif is_kernel(func):
            found.setdefault(name, len(found))

    for func in order:
        for call in calls_in(func.body):
            if isinstance(call.op, GlobalVar):
                number(call.op.name)
    return found


def kernel_config(program: Program, entry: Function, sources: dict[str, str], runtime: str) -> dict[str, Any]:
    """The three tables of `kernel_config.py`; `sources` gives each kernel's file below the artifact directory."""
    orchestration = {
        "source": f"orchestration/{entry.name}.cpp",
        "function_name": ENTRY_SYMBOL,
        "signature": _directions(entry),
    }
    kernels = []
    for name, number in kernel_ids(program, entry).items():
        func = program.get_function(name)
        assert func is not None
        kernels.append(
            {
                "func_id": number,
                "name": name,
                "source": sources[name],
                "core_type": core_of(func),
                "signature": _directions(func),
            }
        )
    return {
        "RUNTIME_CONFIG": {"runtime": runtime, "aicpu_thread_num": 0},
        "ORCHESTRATION": orchestration,
        "KERNELS": kernels,
    }


def _directions(func: Function) -> list[str]:
    """`IN`, `OUT`, `INOUT` of the tensor parameters."""
    return [_SIGNATURE[d] for v, d in func.pairs if isinstance(v.type, ShapedType)]


def kernel_config_text(config: dict[str, Any]) -> str:
    """`kernel_config.py`: three assignments of literals. It is read as data, never executed."""
    lines = ["# Kernel table of this artifact. Literals only: tools parse this file, they do not run it."]
    for name, value in config.items():
        lines.append(f"{name} = {pprint.pformat(value, width=100, sort_dicts=False)}")
    return "\n".join(lines) + "\n"
