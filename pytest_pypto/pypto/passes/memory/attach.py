"""Gives every tensor and tile a buffer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ...backend.handler import Handler
from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import MemorySpace
from ...ir.op_table import find_op
from ...ir.program import Function
from ...ir.span import Span
from ...ir.types import PtrType, TensorType, TileType, Type
from ...ir.visitor import IRMutator, find_yield_stmt, replace_call, replace_submit
from ..device_ir import WRITE_TARGET, kernel_error, op_call
from ..mixed.slot_order import POPS
from . import sizes
from .declared import Declared


@dataclass
class Allocation:
    """One on-chip buffer: its base, space and bytes."""

    base: e.Var
    space: MemorySpace
    size: int
    pinned: bool = False


def alloc_stmt(a: Allocation, span: Span) -> s.AssignStmt:
    """`base = tile.alloc(space, size)`."""
    args = (e.index(a.space.value), e.index(a.size))
    kwargs = {"pinned": True} if a.pinned else {}
    return s.AssignStmt(a.base, e.Call(e.Op("tile.alloc"), args, kwargs=kwargs, type=PtrType.get(), span=span), span)


@dataclass
class _Numbers:
    """One counter per function, shared by all spaces."""

    next: int = 0
    allocations: list[Allocation] = field(default_factory=list)

    def base(self, space: MemorySpace) -> e.Var:
        base = e.Var(f"mem_{space.name.lower()}_{self.next}", PtrType.get())
        self.next += 1
        return base


class AttachBuffers(IRMutator):
    """Rewrites one function; afterwards `allocations` lists its on-chip buffers in order of first mention."""

    def __init__(self, handler: Handler, declared: Declared) -> None:
        super().__init__()
        self.handler = handler
        self.declared = declared
        self._numbers = _Numbers()
        self._listed: set[e.Var] = set()
        self._sizes: dict[e.Var, int] = {}
        self.allocations: list[Allocation] = []

    # --- buffers ---------------------------------------------------------------------------------------------------

    def _fresh(self, type_: Type) -> e.MemRef | None:
        """A buffer of its own; a number is used up even where it is not kept."""
        if isinstance(type_, TileType):
            space = type_.space
            if space is None:
                return None
            size = sizes.tile_size(type_, self.handler)
        elif isinstance(type_, TensorType):
            space, size = MemorySpace.DDR, sizes.tensor_size(type_)
        else:
            return None
        base = self._numbers.base(space)
        self._sizes[base] = size
        return e.MemRef(base, 0, size)

    def _list(self, memref: e.MemRef, type_: TileType) -> None:
        """Note an on-chip buffer at its first mention."""
        base = memref.base_
        if base in self._listed or type_.space is None or type_.space is MemorySpace.DDR:
            return
        self._listed.add(base)
        size, pinned = self.declared.size_of(base), True
        if size is None:
            size, pinned = self._sizes[base], False
        self.allocations.append(Allocation(base, type_.space, size, pinned))

    def _place(self, var: e.Var, memref: e.MemRef | None) -> e.Var:
        """A new variable for `var` that lies in `memref`."""
        type_ = self._typed(self.visit_type(_bare(var.type)), memref)
        made = e.Var(var.name_hint, type_, var.span)
        self.var_map[var] = made
        return made

    def _typed(self, type_: Type, memref: e.MemRef | None) -> Type:
        if memref is None:
            return type_
        if isinstance(type_, TileType):
            self._list(memref, type_)
            return TileType(type_.shape, type_.dtype, memref, type_.tile_view, type_.space)
        assert isinstance(type_, TensorType)
        return replace(type_, memref=memref)

    # --- which buffer ----------------------------------------------------------------------------------------------

    def _buffer(self, stmt: s.AssignStmt, value: e.Expr) -> e.MemRef | None:
        type_ = stmt.var.type
        if not isinstance(type_, (TensorType, TileType)):
            return None
        declared = self.declared.memref_of(stmt.var)
        if declared is not None:
            return self.visit_memref(declared)
        if isinstance(value, e.Var) and isinstance(type_, TileType):
            return memref_of(value)
        call = op_call(stmt)
        if call is None or not isinstance(value, e.Call):
            return self._fresh(type_)
        if call.op.name in POPS:
            return None
        source = _storage_operand(value, type_)
        if source is None:
            return self._fresh(type_)
        return self._view(value, value.args[source])

    def _view(self, call: e.Call, source: e.Expr) -> e.MemRef | None:
        memref = memref_of(source)
        if memref is None or call.op.name not in ("tile.slice", "tensor.slice"):
            return memref
        return _window(memref, source, call)

    # --- definitions -----------------------------------------------------------------------------------------------

    def visit_function(self, func: Function) -> Function:
        pairs = []
        for param, direction in func.pairs:
            pairs.append((self._place(param, self._fresh(param.type)), direction))
        body = self.visit_stmt(func.body)
        return func.with_(params=pairs, body=body)

    def define(self, var: e.Var) -> e.Var:
        if isinstance(var, e.IterArg):
            init = self.visit_expr(var.initValue)
            memref = memref_of(init) if isinstance(var.type, (TensorType, TileType)) else None
            type_ = self._typed(self.visit_type(_bare(var.type)), memref)
            fresh = e.IterArg(var.name_hint, type_, init, var.span)
            self.var_map[var] = fresh
            return fresh
        return super().define(var)

    def visit_assign_stmt(self, op: s.AssignStmt) -> s.Stmt:
        value = self.visit_expr(op.value)
        memref = self._buffer(op, value)
        if not isinstance(op.var.type, (TensorType, TileType)):
            return replace(op, var=self.define(op.var), value=value)
        var = self._place(op.var, memref)
        if isinstance(value, e.Call):
            value = replace_call(value, type=var.type)
        elif isinstance(value, e.Submit):
            value = replace_submit(value, type=var.type)
        return replace(op, var=var, value=value)

    def visit_call(self, op: e.Call) -> e.Expr:
        args, attrs = self.visit_exprs(op.args), self.visit_attrs(op.attrs)
        return op if args is op.args and attrs is op.attrs else replace_call(op, args=args, attrs=attrs)

    def visit_for_stmt(self, op: s.ForStmt) -> s.Stmt:
        start, stop, step = self.visit_exprs((op.start, op.stop, op.step))
        args = self._carries(op.iter_args)
        loop_var = self.define(op.loop_var)
        body = self.visit_stmt(op.body)
        results = self._loop_results(op.return_vars, args)
        bounds = replace(op, loop_var=loop_var, start=start, stop=stop, step=step, attrs=self.visit_attrs(op.attrs))
        return replace(bounds, iter_args=args, body=body, return_vars=results)

    def visit_while_stmt(self, op: s.WhileStmt) -> s.Stmt:
        args = self._carries(op.iter_args)
        condition = self.visit_expr(op.condition)
        body = self.visit_stmt(op.body)
        results = self._loop_results(op.return_vars, args)
        return replace(op, iter_args=args, condition=condition, body=body, return_vars=results)

    def _carries(self, args: tuple[e.IterArg, ...]) -> tuple[e.IterArg, ...]:
        made = []
        for arg in args:
            fresh = self.define(arg)
            assert isinstance(fresh, e.IterArg)
            made.append(fresh)
        return tuple(made)

    def _loop_results(self, results: tuple[e.Var, ...], args: tuple[e.IterArg, ...]) -> tuple[e.Var, ...]:
        """A tile result lies in the buffer of its carry; a tensor result has a nominal one of its own."""
        made = []
        for result, arg in zip(results, args, strict=True):
            memref = self._fresh(result.type)
            if isinstance(result.type, TileType):
                memref = memref_of(arg)
            made.append(self._place(result, memref) if _shaped(result) else self.define(result))
        return tuple(made)

    def visit_if_stmt(self, op: s.IfStmt) -> s.Stmt:
        condition = self.visit_expr(op.condition)
        then = self.visit_stmt(op.then_body)
        other = None if op.else_body is None else self.visit_stmt(op.else_body)
        last = find_yield_stmt(then)
        results = []
        for i, result in enumerate(op.return_vars):
            memref = self._fresh(result.type)
            if isinstance(result.type, TileType):
                memref = memref_of(last.value[i]) if last is not None else None
            results.append(self._place(result, memref) if _shaped(result) else self.define(result))
        return replace(op, condition=condition, then_body=then, else_body=other, return_vars=tuple(results))


def _shaped(var: e.Var) -> bool:
    return isinstance(var.type, (TensorType, TileType))


def _bare(type_: Type) -> Type:
    """A type without its (declared) MemRef."""
    if isinstance(type_, TileType) and type_.memref is not None:
        return TileType(type_.shape, type_.dtype, None, type_.tile_view, type_.space)
    if isinstance(type_, TensorType) and type_.memref is not None:
        return replace(type_, memref=None)
    return type_


def memref_of(expr: e.Expr) -> e.MemRef | None:
    """The buffer an expression lies in, or None."""
    type_ = expr.type
    return type_.memref if isinstance(type_, (TensorType, TileType)) else None


def _storage_operand(call: e.Call, type_: Type) -> int | None:
    """Position of the operand whose buffer the result shares, or None."""
    name = call.op.name
    if isinstance(type_, TensorType):
        if name in WRITE_TARGET:
            return WRITE_TARGET[name]
        if name in ("tensor.slice", "tensor.view", "tensor.reshape", "tensor.transpose", "tensor.reinterpret_view"):
            return 0
    spec = find_op(name)
    if spec is None:
        return None
    at = spec.view_of if spec.view_of is not None else spec.inplace
    return at if at is not None and at < len(call.args) and isinstance(call.args[at].type, type(type_)) else None


def _window(memref: e.MemRef, source: e.Expr, call: e.Call) -> e.MemRef:
    """The part of `memref` that a slice covers: its first byte, and the bytes to its last element."""
    type_, shape, offsets = source.type, call.args[1], call.args[2]
    if not isinstance(type_, (TensorType, TileType)) or not isinstance(offsets, e.MakeTuple):
        raise kernel_error(f"{call.op.name} needs a written-out offset", call.span)
    if isinstance(type_, TileType) and sizes.is_boxed(type_):
        return memref  # boxes of a window are not contiguous: the view stays on the whole buffer
    at = sizes.window_offset(type_, offsets.elements)
    if isinstance(type_, TileType) and e.const_value(at) is None:
        return memref  # a window at a run-time place may lie anywhere in its source
    extents = shape.elements if isinstance(shape, e.MakeTuple) else ()
    size = sizes.window_size(type_, extents)
    whole = e.const_value(memref.byte_offset_)
    if e.const_value(at) == 0:
        return e.MemRef(memref.base_, memref.byte_offset_, size)
    return e.MemRef(memref.base_, at if whole == 0 else sizes.plus(memref.byte_offset_, at), size)
