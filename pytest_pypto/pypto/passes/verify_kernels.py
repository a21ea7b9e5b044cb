"""Checks of what kernels promise: tile operators, memory spaces, addresses, one core per function, stores."""

from __future__ import annotations

from collections.abc import Iterator

from ..backend.handler import current_handler
from ..ir import expr as e
from ..ir import extents
from ..ir import stmt as s
from ..ir.enums import FunctionType, MemorySpace, is_incore_type
from ..ir.op_table import find_op
from ..ir.program import Function, Program
from ..ir.types import TensorType, TileType
from ..ir.visitor import defs_of, exprs_of, walk_exprs, walk_stmts
from ._roots import WriteThrough, last_values
from ._spaces import L0_OPERANDS, allowed_spaces, can_move
from .diagnostic_types import Diagnostic
from .mixed.affinity import Side, call_side
from .verify_flow import Rule, error, per_function

_TENSOR_OPS = frozenset({"tensor.read", "tensor.write", "tensor.dim"})
"""Operators on tensors that kernels keep."""
_VIEWS = frozenset({"tensor.reshape", "tensor.transpose", "tensor.view", "tensor.slice", "tensor.as_layout"})
"""Operators that only rename a tensor's elements."""


def _calls(func: Function) -> Iterator[tuple[e.Call, s.Stmt]]:
    """Operator calls of a function with their statements."""
    for stmt in walk_stmts(func.body):
        for root in exprs_of(stmt):
            for x in walk_exprs(root):
                if isinstance(x, e.Call) and not isinstance(x.op, e.GlobalVar):
                    yield x, stmt


def _tiles(func: Function) -> Iterator[tuple[e.Var, TileType, s.Stmt]]:
    for stmt in walk_stmts(func.body):
        for var in defs_of(stmt):
            if isinstance(var.type, TileType):
                yield var, var.type, stmt


def incore_tile_ops(func: Function) -> Iterator[Diagnostic]:
    """No tensor compute in kernels."""
    if is_incore_type(func.func_type):
        for call, stmt in _calls(func):
            name = call.op.name
            if name.startswith("tensor.") and name not in _TENSOR_OPS | _VIEWS:
                yield error("IncoreTileOps", f"operator {name} on tensors is left in a kernel", stmt.span)


def tile_ops_2d(func: Function) -> Iterator[Diagnostic]:
    """Tiles have at most two dimensions, and so have the offsets of tile.assemble."""
    if is_incore_type(func.func_type):
        for var, type_, stmt in _tiles(func):
            if len(type_.shape) > 2:
                text = f"tile '{var.name_hint}' has {len(type_.shape)} dimensions"
                yield error("TileOps2D", text, stmt.span)
        for call, stmt in _calls(func):
            if call.op.name == "tile.assemble":
                offset = call.args[2]
                if isinstance(offset, e.MakeTuple) and len(offset.elements) != 2:
                    text = f"tile.assemble has {len(offset.elements)} offsets"
                    yield error("TileOps2D", text, stmt.span)


def tile_memory_inferred(func: Function) -> Iterator[Diagnostic]:
    """Every tile has a memory space, operands are where their operators read, and moves go where copies lead."""
    if not is_incore_type(func.func_type):
        return
    for var, type_, stmt in _tiles(func):
        if type_.space is None:
            yield error("TileMemoryInferred", f"tile '{var.name_hint}' has no memory space", stmt.span)
    for call, stmt in _calls(func):
        yield from _misled(call, stmt)
        for k, arg in enumerate(call.args):
            if not isinstance(arg.type, TileType) or arg.type.space is None:
                continue
            allowed = allowed_spaces(call.op.name, k, call.args)
            if allowed is not None and arg.type.space not in allowed:
                names = ", ".join(sorted(m.name for m in allowed))
                text = f"operand {k} of {call.op.name} is in {arg.type.space.name}, it must be in {names}"
                yield error("TileMemoryInferred", text, stmt.span)


def _misled(call: e.Call, stmt: s.Stmt) -> Iterator[Diagnostic]:
    """A move between memories that no copy joins."""
    source, target = call.args[0].type if call.args else None, call.type
    if call.op.name != "tile.move" or not isinstance(source, TileType) or not isinstance(target, TileType):
        return
    here, there = source.space, target.space
    if here is None or there is None:
        return
    if not can_move(here, there) or (here is MemorySpace.Acc and there in L0_OPERANDS):
        yield error("TileMemoryInferred", f"tile.move from {here.name} to {there.name}: no copy does that", stmt.span)


def tile_type_coherence(func: Function) -> Iterator[Diagnostic]:
    """A tile has the shape, element type and memory space of the value it is given, also around a loop."""
    for stmt in walk_stmts(func.body):
        if isinstance(stmt, s.AssignStmt):
            yield from _coherent(stmt.var, stmt.value, stmt)
        elif isinstance(stmt, (s.ForStmt, s.WhileStmt)):
            pairs = zip(stmt.iter_args, stmt.return_vars, last_values(stmt.body), strict=False)
            for arg, result, value in pairs:
                for var, given in ((arg, arg.initValue), (arg, value), (result, value)):
                    yield from _coherent(var, given, stmt)
        elif isinstance(stmt, s.IfStmt):
            for body in (stmt.then_body, stmt.else_body):
                for var, given in zip(stmt.return_vars, last_values(body), strict=False):
                    yield from _coherent(var, given, stmt)


def _coherent(var: e.Var, value: e.Expr, stmt: s.Stmt) -> Iterator[Diagnostic]:
    have, got = var.type, value.type
    if not isinstance(have, TileType) or not isinstance(got, TileType):
        return
    same = have.dtype is got.dtype and extents.all_equal(have.shape, got.shape)
    if not same or (have.space is not got.space and have.space is not None and got.space is not None):
        text = f"'{var.name_hint}' has type {have}, its value has type {got}"
        yield error("TileTypeCoherence", text, stmt.span)


def allocated_memory_addr(func: Function) -> Iterator[Diagnostic]:
    """Tiles lie at addresses inside their memory."""
    handler = current_handler()
    if not is_incore_type(func.func_type):
        return
    for var, type_, stmt in _tiles(func):
        if type_.memref is None:  # a popped tile lies in its pipe
            continue
        offset = e.const_value(type_.memref.byte_offset_)
        if offset is None:
            continue
        limit = None if handler is None or type_.space is None else handler.limit(type_.space)
        end = offset + type_.memref.size_
        if offset < 0:
            text = f"tile '{var.name_hint}' has no address"
            yield error("AllocatedMemoryAddr", text, stmt.span)
        elif limit is not None and end > limit and type_.space is not None:
            text = f"tile '{var.name_hint}' ends at byte {end} of {type_.space.name}, which has {limit}"
            yield error("AllocatedMemoryAddr", text, stmt.span)


def mixed_kernel_expanded(func: Function) -> Iterator[Diagnostic]:
    """No kernel works on both cores; what comes through a pipe is where its core reads, and the pipe is set up."""
    if not is_incore_type(func.func_type):
        return
    yield from _pipes(func)
    first: dict[Side, e.Call] = {}
    for call, stmt in _calls(func):
        side = call_side(call)
        if side is Side.CUBE and func.func_type is FunctionType.AIV:
            yield error("MixedKernelExpanded", f"cube operator {call.op.name} in a vector kernel", stmt.span)
        elif side is Side.VECTOR and func.func_type is FunctionType.AIC:
            yield error("MixedKernelExpanded", f"vector operator {call.op.name} in a cube kernel", stmt.span)
        first.setdefault(side, call)
    if func.func_type is FunctionType.InCore and Side.CUBE in first and Side.VECTOR in first:
        text = f"{first[Side.CUBE].op.name} and {first[Side.VECTOR].op.name} are in one kernel"
        yield error("MixedKernelExpanded", text, first[Side.VECTOR].span)


_POPS = {"tile.tpop_from_aic": MemorySpace.Vec, "tile.tpop_from_aiv": MemorySpace.Mat}
_PUSHES = frozenset({"tile.tpush_to_aiv", "tile.tpush_to_aic"})


def _pipes(func: Function) -> Iterator[Diagnostic]:
    names = {call.op.name for call, _ in _calls(func)}
    for call, stmt in _calls(func):
        name, type_ = call.op.name, call.type
        if (name in _POPS or name in _PUSHES) and not any(n.endswith("_initialize_pipe") for n in names):
            yield error("MixedKernelExpanded", f"{name} in a kernel that sets up no pipe", stmt.span)
        if name in _POPS and isinstance(type_, TileType):
            if type_.space is not _POPS[name]:
                where = "no memory" if type_.space is None else type_.space.name
                text = f"{name} gives a tile in {where}, it must be in {_POPS[name].name}"
                yield error("MixedKernelExpanded", text, stmt.span)
            if e.static_dims(type_.shape) is None:
                yield error("MixedKernelExpanded", f"{name} gives a tile without constant extents", stmt.span)


def aiv_split_valid(func: Function) -> Iterator[Diagnostic]:
    """Regions of the vector lanes are in core code, have two lanes and are not nested."""
    yield from _regions(func.body, is_incore_type(func.func_type), False)


def _regions(body: s.Stmt | None, core: bool, inside: bool) -> Iterator[Diagnostic]:
    for stmt in s.stmts_of(body):
        if isinstance(stmt, s.SplitAivScopeStmt):
            if inside:
                yield error("AivSplitValid", "a pl.split_aiv region is nested in another", stmt.span)
            if not core:
                yield error("AivSplitValid", "a pl.split_aiv region is not in core code", stmt.span)
            if stmt.count != 2:
                yield error("AivSplitValid", f"a pl.split_aiv region has {stmt.count} lanes, not 2", stmt.span)
            yield from _regions(stmt.body, core, True)
        elif isinstance(stmt, s.IfStmt):
            yield from _regions(stmt.then_body, core, inside)
            yield from _regions(stmt.else_body, core, inside)
        elif isinstance(stmt, (s.ForStmt, s.WhileStmt, s.ScopeStmt)):
            yield from _regions(stmt.body, core or isinstance(stmt, s.InCoreScopeStmt), inside)


_ACC_STORES = frozenset({"int32", "fp32", "fp16", "bf16"})


def acc_to_gm_store_valid(func: Function) -> Iterator[Diagnostic]:
    """The accumulator is stored as a type that the store can convert to."""
    for call, stmt in _calls(func):
        if call.op.name != "tile.store":
            continue
        tile, target = call.args[0].type, call.args[2].type
        if not isinstance(tile, TileType) or tile.space is not MemorySpace.Acc or not isinstance(target, TensorType):
            continue
        handler = current_handler()
        name = str(target.dtype)
        legal = name in _ACC_STORES if handler is None else target.dtype in handler.acc_store_dtypes
        if not legal:
            text = f"an accumulator cannot be stored as {name}; cast it in Vec before the store"
            yield error("AccToGmStoreValid", text, stmt.span)


def atomic_add_dtype_valid(func: Function) -> Iterator[Diagnostic]:
    """Atomic stores add element types that the memory can add."""
    for call, stmt in _calls(func):
        if not call.kwargs.get("atomic"):
            continue
        spec = find_op(call.op.name)
        k = None if spec is None else spec.inplace
        target = None if k is None else call.args[k].type
        handler = current_handler()
        if isinstance(target, TensorType) and handler is not None and target.dtype not in handler.atomic_add_dtypes:
            legal = ", ".join(sorted(str(d) for d in handler.atomic_add_dtypes))
            text = f"{call.op.name}: {handler.arch} cannot add {target.dtype} atomically, only {legal}"
            yield error("AtomicAddDtypeValid", text, stmt.span)


def return_params_explicit(program: Program) -> Iterator[Diagnostic]:
    """A returned tensor that was written through a parameter is that parameter."""
    for func in program.functions.values():
        if not is_incore_type(func.func_type):
            continue
        roots = WriteThrough(func.params, program).scan(func.body)
        for stmt in walk_stmts(func.body):
            for value in stmt.value if isinstance(stmt, s.ReturnStmt) else ():
                root = roots.of(value)
                if root is not None and root is not value:
                    text = f"Function '{func.name}': returns a version of '{root.name_hint}' instead of the parameter"
                    yield error("ReturnParamsExplicit", text, stmt.span)


def tensor_view_canonical(func: Function) -> Iterator[Diagnostic]:
    """Every explicit view of a tensor has strides."""
    for var in [*func.params, *(v for x in walk_stmts(func.body) for v in defs_of(x))]:
        view = var.type.tensor_view if isinstance(var.type, TensorType) else None
        if view is not None and not view.stride:
            yield error("TensorViewCanonical", f"the view of '{var.name_hint}' has no strides", var.span)


KERNEL_RULES: dict[str, Rule] = {
    "IncoreTileOps": per_function(incore_tile_ops),
    "TileOps2D": per_function(tile_ops_2d),
    "TileMemoryInferred": per_function(tile_memory_inferred),
    "TileTypeCoherence": per_function(tile_type_coherence),
    "AllocatedMemoryAddr": per_function(allocated_memory_addr),
    "MixedKernelExpanded": per_function(mixed_kernel_expanded),
    "AivSplitValid": per_function(aiv_split_valid),
    "AccToGmStoreValid": per_function(acc_to_gm_store_valid),
    "AtomicAddDtypeValid": per_function(atomic_add_dtype_valid),
    "ReturnParamsExplicit": return_params_explicit,
    "TensorViewCanonical": per_function(tensor_view_canonical),
}
