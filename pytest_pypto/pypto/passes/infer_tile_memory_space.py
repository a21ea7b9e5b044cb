"""InferTileMemorySpace: every tile gets a memory space, and moves bring operands where operators read them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.enums import MemorySpace, TileLayout, is_incore_type
from ..ir.op_table import create_op_call, find_op, infer_type
from ..ir.program import Function, Program
from ..ir.types import TensorType, TileType, Type
from ..ir.visitor import IRMutator, collect_def_vars, replace_call
from ._spaces import L0_OPERANDS, SUMS, SpaceMap, allowed_spaces, can_move
from ._util import NameSource, PassError, author_name, place_of
from .base import FunctionPass
from .device_ir import KernelError, kernel_error
from .properties import NORM, SPLIT_ORCH, SSA, TILE_OPS, TILES_PLACED

_M = MemorySpace
_ORDER = (_M.Vec, _M.Mat, _M.Left, _M.Right, _M.Acc, _M.Bias, _M.LeftScale, _M.RightScale)
_CUBE = frozenset({_M.Acc, _M.Mat, _M.Left, _M.Right})


@dataclass(frozen=True)
class InferTileMemorySpace(FunctionPass):
    """Places tiles and inserts `tile.move` in front of operators that read another space.

    An explicit `target_memory` wins; views take the space of what they view; a load or create without one goes where
    its first consumer wants it (Vec or Mat), else to Vec. A carried value takes the space in which the loop produces
    it: an accumulator created in Vec becomes one in Acc. A move is made at most once per variable, space and statement
    list. Results of moved operands are inferred again, which resets their layouts. A sum of products that vector
    operators work on between the products is carried in Vec, each product added to it there.

    Raises (PassError): a tile parameter; an operand that must be where no copy leads.
    """

    name = "InferTileMemorySpace"
    requires = frozenset({SSA, TILE_OPS, SPLIT_ORCH, NORM})
    produces = TILES_PLACED - {SPLIT_ORCH, TILE_OPS, "TileOps2D"} | {"AivSplitValid", "AccToGmStoreValid"}
    invalidates = frozenset({"AivSplitValid"})

    def apply_function(self, func: Function, program: Program) -> Function:
        """The function with all tiles placed."""
        if not is_incore_type(func.func_type):
            return func
        for param in func.params:
            if isinstance(param.type, TileType):
                raise PassError(
                    f"parameter '{param.name_hint}' of kernel '{func.name}' is a tile; kernels take tensors and "
                    "scalars: pass the tensor and load it",
                    param,
                    func,
                )
        body = _Placer(func).visit_stmt(func.body)
        return func if body is func.body else func.with_(body=body)


class _Placer(IRMutator):
    """Rewrites statements in order; `moved` remembers the moves of the current statement list."""

    def __init__(self, func: Function) -> None:
        super().__init__()
        self.spaces = SpaceMap(func)
        self.names = NameSource({v.name_hint for v in (*func.params, *collect_def_vars(func.body))})
        self.out: list[s.Stmt] = []
        self.moved: dict[tuple[e.Var, MemorySpace], e.Var] = {}
        self.wants: Sequence[MemorySpace | None] = ()

    # statement lists -------------------------------------------------------------------------------------------

    def block(self, body: s.Stmt, wants: Sequence[MemorySpace | None] = ()) -> s.Stmt:
        """A statement list of its own; `wants` are the spaces that its yield must give."""
        kept = (self.out, self.moved, self.wants)
        self.out, self.moved, self.wants = [], {}, wants
        stmts = s.stmts_of(body)
        for stmt in stmts:
            self.out.append(self.visit_stmt(stmt))
        made = self.out
        self.out, self.moved, self.wants = kept
        same = len(made) == len(stmts) and all(a is b for a, b in zip(made, stmts, strict=True))
        return body if same else s.SeqStmts(tuple(made), body.span)

    def visit_seq_stmts(self, op: s.SeqStmts) -> s.Stmt:
        return self.block(op, self.wants)

    def _scope(self, op: s.ScopeStmt, **changes: object) -> s.Stmt:
        body = self.block(op.body, self.wants)
        made: s.Stmt = op if body is op.body else replace(op, body=body)  # type: ignore[type-var]
        return made

    # moves -----------------------------------------------------------------------------------------------------

    def move(self, tile: e.Var, space: MemorySpace, like: e.IRNode) -> e.Var:
        """The tile in another space, moved in front of the current statement; to L0 through L1."""
        found = self.moved.get((tile, space))
        if found is not None:
            return found
        assert isinstance(tile.type, TileType)
        tile = self.on_the_way(tile, space, like)
        assert isinstance(tile.type, TileType)
        kwargs: dict[str, object] = {"target_memory": space}
        if space is _M.Vec and tile.type.space in _CUBE:
            kwargs |= {"blayout": TileLayout.row_major, "slayout": TileLayout.none_box}
        call = create_op_call("tile.move", [tile], kwargs, span=like.span)
        base = re.sub(r"(__tile)_\d+$", r"\1", tile.name_hint)
        var = e.Var(self.names.take(f"{base}_{space.name}"), call.type, like.span)
        self.out.append(s.AssignStmt(var, call, like.span))
        self.moved[(tile, space)] = var
        return var

    def on_the_way(self, tile: e.Var, space: MemorySpace, like: e.IRNode) -> e.Var:
        """The tile where the last copy of the way to `space` starts."""
        here = tile.type.space if isinstance(tile.type, TileType) else None
        if not can_move(here, space):
            raise _no_way(tile, space, like)
        return self.move(tile, _M.Mat, like) if here is _M.Acc and space in L0_OPERANDS else tile

    def placed(self, value: e.Expr, allowed: frozenset[MemorySpace] | None, like: e.IRNode) -> e.Expr:
        """An operand in one of the allowed spaces."""
        if allowed is None or not isinstance(value, e.Var) or not isinstance(value.type, TileType):
            return value
        if value.type.space in allowed:
            return value
        return self.move(value, next(x for x in _ORDER if x in allowed), like)

    # expressions -----------------------------------------------------------------------------------------------

    def visit_call(self, op: e.Call) -> e.Expr:
        if isinstance(op.op, e.GlobalVar):
            return super().visit_call(op)
        args = list(self.visit_exprs(op.args))
        for k, arg in enumerate(args):
            args[k] = self.placed(arg, allowed_spaces(op.op.name, k, args), op)
        if op.op.name == "tile.move" and isinstance(args[0], e.Var):
            args[0] = self.on_the_way(args[0], MemorySpace(op.kwargs["target_memory"]), op)
        attrs = {k: v for k, v in op.attrs.items() if k != "__compiler_tensor_to_tile_mat_bridge"}
        if op.op.name in ("tile.write", "tile.fillpad_inplace") and isinstance(args[0], e.Var):
            self.moved = {k: v for k, v in self.moved.items() if k[0] is not args[0]}
        kwargs = op.kwargs
        target = self.spaces.target.get(op)
        if target is not None:
            kwargs = {**kwargs, "target_memory": target}
        if target is None and all(a is b for a, b in zip(args, op.args, strict=True)):
            type_ = self.settled(op.type, op)
            if len(attrs) == len(op.attrs) and type_ is op.type:
                return op
            return replace_call(op, attrs=attrs, type=type_)
        type_ = self.inferred(op, args, kwargs)
        return replace_call(op, args=args, kwargs=kwargs, attrs=attrs, type=type_)

    def inferred(self, op: e.Call, args: list[e.Expr], kwargs: dict[str, object]) -> Type:
        """The result type over the new operands; the stated one where the table has no rule for it."""
        if find_op(op.op.name) is None:
            return self.visit_type(op.type)
        made = infer_type(op.op.name, args, kwargs, op.span)
        return made if type(made) is type(op.type) else self.visit_type(op.type)

    def settled(self, type_: Type, op: e.Call) -> Type:
        """A tile type without a space gets the one of its operator."""
        type_ = self.visit_type(type_)
        if isinstance(type_, TileType) and type_.space is None:
            space = self.spaces.of_call(op) or _M.Vec
            return TileType(type_.shape, type_.dtype, type_.memref, type_.tile_view, space)
        return type_

    # statements ------------------------------------------------------------------------------------------------

    def vector_sum(self, op: s.AssignStmt, call: e.Call) -> e.Expr:
        """The sum of a tile in Vec and a product."""
        acc, *factors = self.visit_exprs(call.args)
        product = SUMS[call.op.name]
        factors = [self.placed(x, allowed_spaces(product, k, factors), call) for k, x in enumerate(factors)]
        made = create_op_call(product, factors, {}, span=call.span)
        var = e.Var(self.names.take(f"{op.var.name_hint}_part"), made.type, call.span)
        self.out.append(s.AssignStmt(var, made, call.span))
        return create_op_call("tile.add", [acc, self.move(var, _M.Vec, call)], {}, span=call.span)

    def visit_assign_stmt(self, op: s.AssignStmt) -> s.Stmt:
        call = op.value
        if isinstance(call, e.Call) and self.spaces.sums_in_vector(call):
            value = self.vector_sum(op, call)
        else:
            value = self.visit_expr(call)
        if value is op.value and not self.var_map:
            return op
        var = self.retyped(op.var, op.value, value)
        return op if value is op.value and var is op.var else replace(op, var=var, value=value)

    def retyped(self, var: e.Var, old: e.Expr, new: e.Expr) -> e.Var:
        """The variable with the type of its new value; a declared buffer stays."""
        if not isinstance(new.type, (TileType, TensorType)) or new.type is old.type:
            return self.define(var)
        type_: Type = new.type
        memref = getattr(var.type, "memref", None)
        if memref is not None and isinstance(type_, TileType):
            type_ = TileType(type_.shape, type_.dtype, self.visit_memref(memref), type_.tile_view, type_.space)
        made = e.Var(var.name_hint, type_, var.span)
        self.var_map[var] = made
        return made

    def visit_yield_stmt(self, op: s.YieldStmt) -> s.Stmt:
        values = list(self.visit_exprs(op.value))
        for i, want in enumerate(self.wants[: len(values)]):
            if want is not None:
                values[i] = self.placed(values[i], frozenset({want}), op)
        same = all(a is b for a, b in zip(values, op.value, strict=True))
        return op if same else replace(op, value=tuple(values))

    def visit_if_stmt(self, op: s.IfStmt) -> s.Stmt:
        condition = self.visit_expr(op.condition)
        wants = [self.spaces.of(v) for v in op.return_vars]
        then = self.block(op.then_body, wants)
        other = None if op.else_body is None else self.block(op.else_body, wants)
        results = self.results(op.return_vars, then)
        return replace(op, condition=condition, then_body=then, else_body=other, return_vars=results)

    def results(self, old: tuple[e.Var, ...], body: s.Stmt) -> tuple[e.Var, ...]:
        """Results with the types of the yielded values, where these are tiles."""
        last = s.stmts_of(body)[-1:]
        values = last[0].value if last and isinstance(last[0], s.YieldStmt) else ()
        made = []
        for i, var in enumerate(old):
            type_ = values[i].type if i < len(values) else var.type
            changed = (
                isinstance(var.type, TileType) and isinstance(type_, TileType) and not _same_place(var.type, type_)
            )
            new = self.define(var)
            if changed:
                new = e.Var(var.name_hint, type_, var.span)
                self.var_map[var] = new
            made.append(new)
        return tuple(made)

    def carried(self, loop: s.ForStmt | s.WhileStmt) -> tuple[tuple[e.IterArg, ...], list[MemorySpace | None]]:
        args, wants = [], []
        for arg in loop.iter_args:
            init = self.visit_expr(arg.initValue)
            want = self.spaces.of(arg) if isinstance(arg.type, TileType) else None
            if want is not None:
                init = self.placed(init, frozenset({want}), loop)
            type_ = init.type if isinstance(init.type, TileType) else self.visit_type(arg.type)
            new = (
                arg if init is arg.initValue and type_ is arg.type else e.IterArg(arg.name_hint, type_, init, arg.span)
            )
            args.append(new)
            wants.append(want)
        for old, new in zip(loop.iter_args, args, strict=True):
            self.var_map[old] = new
        return tuple(args), wants

    def visit_for_stmt(self, op: s.ForStmt) -> s.Stmt:
        start, stop, step = self.visit_exprs((op.start, op.stop, op.step))
        args, wants = self.carried(op)
        body = self.block(op.body, wants)
        results = self.results(op.return_vars, body)
        new = (start, stop, step, body, *args, *results)
        old = (op.start, op.stop, op.step, op.body, *op.iter_args, *op.return_vars)
        if all(a is b for a, b in zip(new, old, strict=True)):
            return op
        return replace(op, start=start, stop=stop, step=step, iter_args=args, body=body, return_vars=results)

    def visit_while_stmt(self, op: s.WhileStmt) -> s.Stmt:
        args, wants = self.carried(op)
        condition = self.visit_expr(op.condition)
        body = self.block(op.body, wants)
        results = self.results(op.return_vars, body)
        return replace(op, condition=condition, iter_args=args, body=body, return_vars=results)


def _no_way(tile: e.Var, space: MemorySpace, like: e.IRNode) -> KernelError:
    """What to say, and to write instead, where no copy leads."""
    here = tile.type.space.name if isinstance(tile.type, TileType) and tile.type.space is not None else "no memory"
    what = like.op.name if isinstance(like, e.Call) else "the loop or branch"
    text = (
        f"{what} needs '{author_name(tile.name_hint)}' in {space.name}, but it lies in {here}, from where no copy goes"
    )
    text += " to the accumulator: start the sum from pl.matmul" if space is _M.Acc else " there: use what it copies"
    return kernel_error(text, place_of(like, tile))


def _same_place(a: TileType, b: TileType) -> bool:
    return a.space is b.space and a == b
