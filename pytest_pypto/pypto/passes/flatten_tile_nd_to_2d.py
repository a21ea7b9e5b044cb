"""FlattenTileNdTo2D: tiles have two dimensions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..ir import expr as e
from ..ir import extents
from ..ir import stmt as s
from ..ir.enums import MemorySpace, is_incore_type
from ..ir.op_table import create_op_call, find_op
from ..ir.program import Function, Program
from ..ir.types import TensorType, TileType, Type
from ..ir.visitor import IRMutator, collect_def_vars, exprs_of, replace_call, walk_stmts
from ._util import NameSource, PassError, all_uses, base_name, is_call, place_of
from .base import FunctionPass
from .nd_tiles import Flat, flat_type, fold_index, page_indices, static_shape
from .properties import NORM, SSA, TILE_OPS


@dataclass(frozen=True)
class FlattenTileNdTo2D(FunctionPass):
    """`[d0, ..., dk, L]` becomes `[d0 * ... * dk, L]` in kernels; tiles of rank 1 and 2 stay.

    Loads to Vec keep their window in the rank of the tensor; loads to Mat read a two-dimensional view of it. Stores
    into tensors of rank > 2 say their window as a fourth operand. Batched products become one product per page, whose
    stores are unrolled. Transposes get their scratch tile. Windows, assembles and column reductions that are no run of
    rows are done page by page.

    Raises (PassError): extents that are not constant; repetitions across a batch axis; a transpose of a batch axis;
    valid regions that are no run of rows.
    """

    name = "FlattenTileNdTo2D"
    requires = frozenset({SSA, TILE_OPS, NORM})
    produces = frozenset({SSA, "TileOps2D", NORM})

    def apply_function(self, func: Function, program: Program) -> Function:
        """The function with two-dimensional tiles."""
        if not is_incore_type(func.func_type) or not _has_work(func):
            return func
        body = Flattener(func).visit_stmt(func.body)
        return func if body is func.body else func.with_(body=body)


def _has_work(func: Function) -> bool:
    for stmt in walk_stmts(func.body):
        for root in exprs_of(stmt):
            if is_call(root, "tile.transpose", "tile.batch_matmul", "tile.batch_matmul_acc"):
                return True
            if isinstance(root, e.Call) and root.op.name.startswith("tile."):
                if _is_nd(root.type) or any(_is_nd(a.type) for a in root.args):
                    return True
                if root.op.name == "tile.store" and _rank(root.args[2].type) > 2 and len(root.args) == 3:
                    return True
    return False


def _stored_once(body: s.Stmt) -> set[e.Var]:
    """Tiles whose only use is as the source of one store."""
    uses: Counter[e.Var] = Counter(all_uses(body))
    stored = {
        root.args[0]
        for stmt in walk_stmts(body)
        for root in exprs_of(stmt)
        if is_call(root, "tile.store") and isinstance(root, e.Call) and isinstance(root.args[0], e.Var)
    }
    return {v for v in stored if uses[v] == 1}


def _rank(type_: Type) -> int:
    return len(type_.shape) if isinstance(type_, (TensorType, TileType)) else 0


def _is_nd(type_: Type) -> bool:
    return isinstance(type_, TileType) and len(type_.shape) > 2


class Flattener(IRMutator):
    """`flat` describes what each tile of rank > 2 became; `var_map` maps it to its two-dimensional variable."""

    def __init__(self, func: Function) -> None:
        super().__init__()
        self.flat: dict[e.Var, Flat] = {}
        self.loads: dict[e.Var, e.Call] = {}
        self.out: list[s.Stmt] = []
        self.place: s.Stmt | None = None
        self.stored_once = _stored_once(func.body)
        self.names = NameSource({v.name_hint for v in (*func.params, *collect_def_vars(func.body))})

    # making statements -----------------------------------------------------------------------------------------

    def emit(
        self,
        name: str,
        op: str,
        args: Sequence[e.Expr],
        kwargs: dict[str, Any] | None = None,
        like: e.IRNode | None = None,
    ) -> e.Var:
        """`name = op(args)` in front of the current statement."""
        span = place_of(like, self.place)
        call = create_op_call(op, args, kwargs or {}, span=span)
        var = e.Var(self.names.take(name), call.type, span)
        self.out.append(s.AssignStmt(var, call, span))
        return var

    def fail(self, message: str, *places: e.IRNode) -> PassError:
        """An error at the first known place."""
        return PassError(message, *places, self.place)

    def dims(self, tile: e.Expr) -> tuple[int, ...]:
        """Extents as the program sees them."""
        assert isinstance(tile.type, TileType)
        return static_shape(tile.type, self.place)

    def pages(self, tile: e.Expr) -> list[e.Var]:
        """The [M, L] pages of a tile, in storage order."""
        assert isinstance(tile, e.Var)
        known = self.flat.get(tile)
        if known is not None and (known.pages or known.lazy):
            return list(known.made())
        source = self.visit_expr(tile)
        assert isinstance(source, e.Var)
        shape = self.dims(tile)
        if len(shape) == 2:
            return [source]
        m, length = shape[-2:]
        columns = known is not None and known.columns
        made = []
        for i in range(len(page_indices(shape))):
            at = (0, i * length) if columns else (i * m, 0)
            args = [source, e.make_tuple((m, length)), e.make_tuple(at)]
            made.append(self.emit(f"{base_name(tile.name_hint)}_p{i}", "tile.slice", args))
        return made

    def stacked(self, pages: Sequence[e.Var], name: str, space: MemorySpace = MemorySpace.Vec) -> e.Var:
        """Pages below each other in one tile."""
        first = pages[0].type
        assert isinstance(first, TileType)
        m, length = static_shape(first, self.place)
        kwargs = {"dtype": first.dtype, "target_memory": space}
        made = self.emit(name, "tile.create", [e.make_tuple((m * len(pages), length))], kwargs)
        for i, page in enumerate(pages):
            made = self.emit(name, "tile.assemble", [made, page, e.make_tuple((i * m, 0))])
        return made

    # statements ------------------------------------------------------------------------------------------------

    def visit_seq_stmts(self, op: s.SeqStmts) -> s.Stmt:
        outer, self.out = self.out, []
        for stmt in op.stmts:
            self.place = stmt
            self.out += s.stmts_of(self.visit_stmt(stmt))
        made, self.out = self.out, outer
        same = len(made) == len(op.stmts) and all(a is b for a, b in zip(made, op.stmts, strict=True))
        return op if same else s.SeqStmts(tuple(made), op.span)

    def visit_type(self, type_: Type) -> Type:
        made = super().visit_type(type_)
        return flat_type(made, self.place) if isinstance(made, TileType) and _is_nd(made) else made

    def visit_assign_stmt(self, op: s.AssignStmt) -> s.Stmt:
        from . import nd_ops

        handler = nd_ops.find(op.value)
        if handler is not None and isinstance(op.value, e.Call):
            made = handler(self, op, op.value)
            if made is None:
                return s.seq([])
            return self.bound(op, made)
        value = self.visit_expr(op.value)
        if value is op.value and not _is_nd(op.var.type):
            return super().visit_assign_stmt(op)
        return self.bound(op, value)

    def bound(self, op: s.AssignStmt, value: e.Expr) -> s.Stmt:
        """`var = value` with the two-dimensional type; nothing when the value has just got a name."""
        if isinstance(value, e.Var) and value in {x.var for x in self.out[-1:] if isinstance(x, s.AssignStmt)}:
            self.var_map[op.var] = value
            return s.seq([])
        if not isinstance(value.type, (TileType, TensorType)):
            return replace(op, var=self.define(op.var), value=value)
        var = e.Var(op.var.name_hint, self.kept_view(op.var.type, value.type), op.var.span)
        self.var_map[op.var] = var
        return replace(op, var=var, value=value)

    def kept_view(self, stated: Type, made: Type) -> Type:
        """The type of the value; layout and padding that the author stated stay."""
        if isinstance(stated, TileType) and isinstance(made, TileType) and stated.memref is not None:
            return TileType(made.shape, made.dtype, self.visit_memref(stated.memref), made.tile_view, made.space)
        return made

    def visit_for_stmt(self, op: s.ForStmt) -> s.Stmt:
        self.carried(op.iter_args)
        return super().visit_for_stmt(op)

    def visit_while_stmt(self, op: s.WhileStmt) -> s.Stmt:
        self.carried(op.iter_args)
        return super().visit_while_stmt(op)

    def carried(self, args: Sequence[e.IterArg]) -> None:
        """Values that are separate pages are stacked before a loop carries them."""
        for arg in args:
            known = self.flat.get(arg.initValue) if isinstance(arg.initValue, e.Var) else None
            if known is not None and (known.pages or known.lazy):
                raise self.fail(
                    f"'{arg.name_hint}' carries a batch of products through a loop, which is not supported; loop over "
                    "the batch outside and carry one product",
                    arg,
                )

    # expressions -----------------------------------------------------------------------------------------------

    def visit_var(self, op: e.Var) -> e.Expr:
        made = self.var_map.get(op)
        if made is not None:
            return made
        known = self.flat.get(op)
        if known is not None and (known.pages or known.lazy):
            stacked = self.stacked(known.made(), base_name(op.name_hint))
            self.var_map[op] = stacked
            return stacked
        return op

    def visit_call(self, op: e.Call) -> e.Expr:
        """Any operator without shapes of its own: the same on the two-dimensional tiles."""
        if isinstance(op.op, e.GlobalVar):
            return super().visit_call(op)
        args, attrs = self.visit_exprs(op.args), self.visit_attrs(op.attrs)
        if args is op.args and attrs is op.attrs and not _is_nd(op.type):
            return op
        self.check_repetition(op)
        spec = find_op(op.op.name)
        type_ = self.visit_type(op.type)
        if spec is not None and args is not op.args:
            type_ = create_op_call(op.op.name, args, op.kwargs, span=op.span).type
        return replace_call(op, args=args, attrs=attrs, type=type_)

    def check_repetition(self, call: e.Call) -> None:
        """Operands of rank > 2 have the result's batch axes, or are one row for all of them."""
        if not _is_nd(call.type) or not isinstance(call.type, TileType):
            return
        for arg in call.args:
            if not isinstance(arg.type, TileType):
                continue
            lead = arg.type.shape[:-1]
            one = all(e.const_value(d) == 1 for d in lead)
            if not one and not extents.all_equal(lead, call.type.shape[:-1]):
                raise self.fail(
                    f"{call.op.name} repeats a tile {extents.text(arg.type.shape)} over the batch axes of "
                    f"{extents.text(call.type.shape)}; loop over the pages, or expand it first",
                    call,
                )

    def position(self, tile: e.Expr, at: e.Expr) -> list[e.Expr]:
        """An index tuple as row and column."""
        assert isinstance(at, e.MakeTuple)
        return list(fold_index(self.dims(tile), self.visit_exprs(at.elements)))
