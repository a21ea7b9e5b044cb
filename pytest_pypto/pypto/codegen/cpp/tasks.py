"""Kernel launches in the C++ rendering: arguments, dependencies, the submission itself."""

from __future__ import annotations

from dataclasses import dataclass

from ...backend.handler import Handler
from ...ir import expr as e
from ...ir.enums import ArgDirection, FunctionType, ParamDirection
from ...ir.program import Function, Program
from ...ir.types import ArrayType, ScalarType
from ...ir.visitor import calls_in
from ..units import core_of, group_members, is_kernel
from .writer import Writer, scalar_dtype

_ADD = {
    ArgDirection.Input: "add_input",
    ArgDirection.Output: "add_output",
    ArgDirection.OutputExisting: "add_output",
    ArgDirection.InOut: "add_inout",
    ArgDirection.NoDep: "add_no_dep",
}
_BY_PARAM = {
    ParamDirection.In: ArgDirection.Input,
    ParamDirection.Out: ArgDirection.OutputExisting,
    ParamDirection.InOut: ArgDirection.InOut,
}


@dataclass(frozen=True, slots=True)
class Launch:
    """What a callee starts: its kernels, and whether they form one mixed task."""

    kernels: tuple[Function, ...]
    block_num: e.Expr | int | None = None


def launch_of(program: Program, callee: Function, block_num: e.Expr | int | None = None) -> Launch | None:
    """The kernels behind a callee; None when it is a plain host function."""
    if callee.func_type is FunctionType.Group:
        return Launch(group_members(callee, program), block_num)
    if is_kernel(callee):
        return Launch((callee,), block_num)
    if callee.func_type is FunctionType.Spmd:
        for call in calls_in(callee.body):
            inner = program.get_function(call.op.name)
            if inner is not None:
                own = callee.attrs.get("core_num")
                return launch_of(program, inner, block_num if block_num is not None else own)
    return None


def write_task(
    w: Writer, call: e.Call | e.Submit, callee: Function, launch: Launch, ids: dict[str, int], handler: Handler
) -> str:
    """Write one task; returns the name of its parameter block."""
    number = w.number("task")
    block = f"params_t{number}"
    w.line(f"// {callee.name}: {', '.join(f'{f.name} ({core_of(f)})' for f in launch.kernels)}")
    w.line(f"CoreTaskArgs {block};")
    _write_arguments(w, call, callee, block)
    blocks = launch.block_num
    if isinstance(call, e.Submit) and call.core_num is not None:
        blocks = call.core_num
    if "core_num" in call.attrs:
        blocks = call.attrs["core_num"]
    if blocks is not None:
        count = w.expr(blocks) if isinstance(blocks, e.Expr) else str(blocks)
        w.line(f"{block}.launch_spec.{handler.launch_setter}({count});")
    if isinstance(call, e.Submit) and call.deps:
        _write_dependencies(w, call, block)
    outs = f"task_{number}_outs"
    w.line(f"TaskOutputTensors {outs} = {_submission(w, launch, ids, block, handler)};")
    return outs


def _write_arguments(w: Writer, call: e.Call | e.Submit, callee: Function, block: str) -> None:
    directions = call.arg_directions or [
        ArgDirection.Scalar if isinstance(v.type, ScalarType) else _BY_PARAM[d] for v, d in callee.pairs
    ]
    for arg, direction in zip(call.args, directions, strict=False):
        if direction is not ArgDirection.Scalar:
            w.line(f"{block}.{_ADD[direction]}({w.expr(arg)});")
    for arg, direction in zip(call.args, directions, strict=False):
        if direction is ArgDirection.Scalar:
            text = w.expr(arg)
            w.line(f"{block}.add_scalar({f'to_u64({text})' if scalar_dtype(arg).is_float() else text});")


def _write_dependencies(w: Writer, call: e.Submit, block: str) -> None:
    w.line(f"TaskIdList {block}_deps;")
    for dep in call.deps:
        if isinstance(dep.type, ArrayType):
            w.line(f"for (PTO2TaskId id : {w.expr(dep)}) if (id.is_valid()) {block}_deps.push(id);")
        else:
            text = w.expr(dep)
            w.line(f"if ({text}.is_valid()) {block}_deps.push({text});")
    w.line(f"{block}.set_dependencies({block}_deps.data(), {block}_deps.size());")


def _submission(w: Writer, launch: Launch, ids: dict[str, int], block: str, handler: Handler) -> str:
    kernels = launch.kernels
    if len(kernels) == 1 and not kernels[0].attrs.get("dual_aiv_dispatch"):
        core = core_of(kernels[0])
        return f"rt_submit_{core}_task({ids.get(kernels[0].name, -1)}, {block})"
    by_core = {core_of(f): f for f in kernels}
    cube, vector = by_core.get("aic"), by_core.get("aiv")
    cube_id = str(ids.get(cube.name, -1)) if cube is not None else "INVALID_KERNEL_ID"
    vector_id = str(ids.get(vector.name, -1)) if vector is not None else "INVALID_KERNEL_ID"
    both = vector is not None and bool(vector.attrs.get("dual_aiv_dispatch"))
    mixed = f"mixed_{w.number('mixed')}"
    w.line(f"MixedKernels {mixed} = {{{cube_id}, {vector_id}, {vector_id if both else 'INVALID_KERNEL_ID'}}};")
    return f"rt_submit_task({mixed}, {block})"
