"""One kernel function, and one module per unit."""

from __future__ import annotations

from collections.abc import Sequence

from ...backend.handler import Handler
from ...ir.enums import FunctionType
from ...ir.expr import Call, Var, const_value
from ...ir.program import Function
from ...ir.stmt import AssignStmt
from ...ir.types import ArrayType, ScalarType, TensorType, TileType
from ...ir.visitor import calls_in, uses_of, walk_stmts
from ..errors import CodegenError
from ..options import CodegenOptions
from .emitter import Emitter
from .open_memory import declare_rings
from .pipe_ops import GM_PIPE_BUFFER, pipe_offsets
from .statements import check_returns, emit_body
from .tensors import declare_tensor, view_lines
from .types import element_text, pointer_text

_KIND = {FunctionType.AIC: "cube", FunctionType.AIV: "vector", FunctionType.InCore: "vector"}


def module_text(functions: Sequence[Function], handler: Handler, options: CodegenOptions) -> str:
    """The `.pto` text of one unit: a stand-alone kernel, or the members of a group, cube core first.

    Raises:
        CodegenError: a construct without `.pto` form; names function, place and next step.
    """
    calls = [c for f in functions for c in calls_in(f.body) if isinstance(c, Call)]
    starts = pipe_offsets([c for c in calls if c.op.name.endswith("_initialize_pipe")])
    lines = [f'module attributes {{pto.target_arch = "{handler.arch}"}} {{']
    for func in functions:
        em = Emitter(func, handler, options)
        em.pipe_offsets = starts
        lines += _function_lines(em)
    return "\n".join([*lines, "}", ""])


def _function_lines(em: Emitter) -> list[str]:
    func = em.func
    signature = _declare_parameters(em)
    _reserve_tiles(em)
    for param in func.params:
        if isinstance(param.type, TensorType):
            pointer = em.pointers[param]
            declare_tensor(em, param, pointer, gm_buffer=param.name_hint == GM_PIPE_BUFFER)
    check_returns(em, func.body)
    emit_body(em, func.body)
    views = view_lines(em)
    kind = f"attributes {{pto.kernel_kind = #pto.kernel_kind<{_KIND[func.func_type]}>}}"
    constants = [f"  {line}" for line in em.constants.lines]
    header = f"  func.func @{func.name}({', '.join(signature)}) {kind} {{"
    return [header, *constants, *views, *em.head, *em.body, "  return", "  }"]


def _declare_parameters(em: Emitter) -> list[str]:
    """Arguments: tensors, then scalars, then the dynamic extents, then the core indices that the body asks for."""
    params = em.func.params
    tensors = [p for p in params if isinstance(p.type, TensorType)]
    scalars = [p for p in params if isinstance(p.type, ScalarType)]
    odd = next((p for p in params if isinstance(p.type, (TileType, ArrayType))), None)
    if odd is not None:
        raise CodegenError(
            f"kernel '{em.func.name}': parameter '{odd.name_hint}' of type {odd.type} cannot be passed; "
            "kernels take tensors and scalars",
            odd.span,
        )
    extents = dynamic_extents(em.func)
    texts = []
    for number, param in enumerate([*tensors, *scalars, *extents]):
        name = em.names.reserve(f"arg{number}")
        if isinstance(param.type, TensorType):
            em.pointers[param] = name
            texts.append(f"{name}: {pointer_text(param.type.dtype)}")
            continue
        text = element_text(param.type.dtype) if isinstance(param.type, ScalarType) else "index"
        em.define_scalar(param, name, text)
        texts.append(f"{name}: {text}")
    em.nonnegative.update(extents)
    return texts + _core_indices(em)


def dynamic_extents(func: Function) -> list[Var]:
    """Symbols in the extents of tensor parameters that are no parameters themselves, in order of appearance."""
    given = set(func.params)
    found: list[Var] = []
    for param in func.params:
        if isinstance(param.type, TensorType):
            view = param.type.tensor_view
            sizes = param.type.shape if view is None else (*param.type.shape, *view.stride, *view.valid_shape)
            for symbol in (v for size in sizes for v in uses_of(size)):
                if symbol not in given:
                    given.add(symbol)
                    found.append(symbol)
    return found


def _core_indices(em: Emitter) -> list[str]:
    used = {c.op.name for c in calls_in(em.func.body)}
    wanted = []
    if used & {"tile.get_block_idx", "tile.get_block_num"}:
        wanted += ["block_idx", "block_num"]
    if "tile.get_subblock_idx" in used:
        wanted.append("subblock_idx")
    for what in wanted:
        em.spmd[what] = em.names.reserve(f"__pypto_spmd_{what}")
    return [f"{em.spmd[what]}: i32" for what in wanted]


def _reserve_tiles(em: Emitter) -> None:
    """Names of all tiles with storage, then their addresses: both come before anything else of the body."""
    found = []
    for stmt in walk_stmts(em.func.body):
        if isinstance(stmt, AssignStmt) and isinstance(stmt.var.type, TileType) and stmt.var.type.memref is not None:
            found.append(stmt.var)
    for var in found:
        em.reserved[var] = em.names.take(var.name_hint)
    if not em.options.baked_addresses:
        declare_rings(em, found)
        return
    for var in found:
        assert isinstance(var.type, TileType)
        assert var.type.memref is not None
        known = const_value(var.type.memref.byte_offset_)
        if known is not None:
            em.constants.integer(known, "i64")
