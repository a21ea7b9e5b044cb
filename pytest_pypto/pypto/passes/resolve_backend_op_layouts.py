"""ResolveBackendOpLayouts: operators that read rows get row-major operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..backend.handler import current_handler
from ..ir import expr as e
from ..ir import stmt as s
from ..ir.enums import MemorySpace, TileLayout, is_incore_type
from ..ir.op_table import create_op_call, find_op
from ..ir.program import Function, Program
from ..ir.types import TileType
from ..ir.visitor import IRMutator
from ._util import base_name
from .base import FunctionPass
from .properties import NORM, SPLIT_ORCH, SSA, TILE_OPS

_MASKS = ("tile.cmp", "tile.cmps")


@dataclass(frozen=True)
class ResolveBackendOpLayouts(FunctionPass):
    """Wraps operators that need row-major operands and get others.

    A column vector `[N, 1]` becomes `[1, N]` by a reshape (the same bytes), the operator works on the row, and the
    result is reshaped back; a value that a loop carries keeps its shape. Any other tile is moved to a row-major copy.
    A `[N, 1]` vector that a row_expand operator reads row by row is viewed as a column. Nothing happens when no
    architecture is selected.
    """

    name = "ResolveBackendOpLayouts"
    requires = frozenset({SSA, TILE_OPS, SPLIT_ORCH, "TileOps2D"})
    produces = frozenset({SSA, TILE_OPS, SPLIT_ORCH, "TileOps2D", NORM})

    def apply_function(self, func: Function, program: Program) -> Function:
        """The function with row-major operands where operators need them."""
        if current_handler() is None or not is_incore_type(func.func_type):
            return func
        body = _Resolver().visit_stmt(func.body)
        return func if body is func.body else func.with_(body=body)


class _Resolver(IRMutator):
    """`rows` maps masks of column vectors to the masks of their row forms."""

    def __init__(self) -> None:
        super().__init__()
        self.out: list[s.Stmt] = []
        self.counter = 0
        self.rows: dict[e.Var, e.Var] = {}

    def visit_seq_stmts(self, op: s.SeqStmts) -> s.Stmt:
        outer, self.out = self.out, []
        for stmt in op.stmts:
            self.out += s.stmts_of(self.visit_stmt(stmt))
        made, self.out = self.out, outer
        same = len(made) == len(op.stmts) and all(a is b for a, b in zip(made, op.stmts, strict=True))
        return op if same else s.SeqStmts(tuple(made), op.span)

    def visit_assign_stmt(self, op: s.AssignStmt) -> s.Stmt:
        made = super().visit_assign_stmt(op)
        assert isinstance(made, s.AssignStmt)
        call = made.value
        spec = find_op(call.op.name) if isinstance(call, e.Call) else None
        if spec is None or not isinstance(call, e.Call):
            return made
        if spec.row_major_only and any(_needs_rows(a) for a in call.args):
            return self.in_rows(made, call)
        if call.op.name.startswith("tile.row_expand") and len(call.args) > 1:
            return self.column_operand(made, call)
        return made

    # column vectors --------------------------------------------------------------------------------------------

    def in_rows(self, stmt: s.AssignStmt, call: e.Call) -> s.Stmt:
        """The operator on rows, or on row-major copies."""
        skip = {id(a) for a in _scratch(call)}
        tiles = [a for a in call.args if isinstance(a.type, TileType) and id(a) not in skip]
        if all(_is_column(a) or self.row_of(a) is not None for a in tiles):
            return self.as_row(stmt, call)
        return self.copied(stmt, call)

    def row_of(self, value: e.Expr) -> e.Var | None:
        return self.rows.get(value) if isinstance(value, e.Var) else None

    def as_row(self, stmt: s.AssignStmt, call: e.Call) -> s.Stmt:
        base = base_name(stmt.var.name_hint)
        args = [self.row_arg(a, k, base, call) for k, a in enumerate(call.args)]
        row = create_op_call(call.op.name, args, call.kwargs, span=call.span)
        var = e.Var(f"{base}__row_major_tmp_v{self.next()}", row.type, call.span)
        self.out.append(s.AssignStmt(var, row, stmt.span, leading_comments=stmt.leading_comments))
        if call.op.name in _MASKS:
            self.rows[stmt.var] = var
            self.var_map[stmt.var] = stmt.var
            return s.seq([])
        assert isinstance(stmt.var.type, TileType)
        back = self.reshape(var, stmt.var.type.shape, call)
        new = e.Var(stmt.var.name_hint, back.type, stmt.var.span)
        self.var_map[stmt.var] = new
        return s.AssignStmt(new, back, stmt.span)

    def row_arg(self, arg: e.Expr, k: int, base: str, call: e.Call) -> e.Expr:
        row = self.row_of(arg)
        if row is not None:
            return row
        if not _is_column(arg):
            return arg
        assert isinstance(arg.type, TileType)
        view = self.reshape(arg, (arg.type.shape[1], arg.type.shape[0]), call)
        var = e.Var(f"{base}__rm_a{k}_tmp_v{self.next()}", view.type, call.span)
        self.out.append(s.AssignStmt(var, view, call.span))
        return var

    def reshape(self, value: e.Expr, shape: Sequence[e.Expr], call: e.Call) -> e.Call:
        return create_op_call("tile.reshape", [value, e.MakeTuple(tuple(shape), call.span)], span=call.span)

    def column_operand(self, stmt: s.AssignStmt, call: e.Call) -> s.Stmt:
        """A row-major `[N, 1]` vector is read as one number per row only as a column."""
        vector = call.args[1]
        if not _is_column(vector) or _needs_rows(vector):
            return stmt
        assert isinstance(vector.type, TileType)
        view = self.reshape(vector, vector.type.shape, call)
        var = e.Var(f"{base_name(stmt.var.name_hint)}__col_a1_tmp_v{self.next()}", view.type, call.span)
        self.out.append(s.AssignStmt(var, view, call.span))
        args = (call.args[0], var, *call.args[2:])
        made = create_op_call(call.op.name, args, call.kwargs, span=call.span)
        return replace(stmt, value=e.Call(made.op, made.args, made.kwargs, call.attrs, call.type, call.span))

    # other layouts ---------------------------------------------------------------------------------------------

    def copied(self, stmt: s.AssignStmt, call: e.Call) -> s.Stmt:
        """Row-major copies of the operands, and the result in its own layout."""
        base = base_name(stmt.var.name_hint)
        args = [self.copy(a, f"{base}__rm_a{k}") if _needs_rows(a) else a for k, a in enumerate(call.args)]
        made = create_op_call(call.op.name, args, call.kwargs, span=call.span)
        if made.type == stmt.var.type:
            return replace(stmt, value=made)
        var = e.Var(f"{base}__row_major_tmp_v{self.next()}", made.type, call.span)
        self.out.append(s.AssignStmt(var, made, stmt.span))
        assert isinstance(stmt.var.type, TileType)
        view = stmt.var.type.get_effective_tile_view()
        kwargs = {"target_memory": stmt.var.type.space, "blayout": view.blayout, "slayout": view.slayout}
        return replace(stmt, value=create_op_call("tile.move", [var], kwargs, span=call.span))

    def copy(self, value: e.Expr, name: str) -> e.Var:
        assert isinstance(value.type, TileType)
        kwargs = {
            "target_memory": value.type.space or MemorySpace.Vec,
            "blayout": TileLayout.row_major,
            "slayout": TileLayout.none_box,
        }
        call = create_op_call("tile.move", [value], kwargs, span=value.span)
        var = e.Var(f"{name}_tmp_v{self.next()}", call.type, value.span)
        self.out.append(s.AssignStmt(var, call, value.span))
        return var

    def next(self) -> int:
        self.counter += 1
        return self.counter - 1


def _scratch(call: e.Call) -> tuple[e.Expr, ...]:
    """Operands whose contents do not matter."""
    spec = find_op(call.op.name)
    if spec is None or call.op.name not in ("tile.sel", "tile.sels"):
        return ()
    return tuple(call.args[k] for k in spec.scratch if k < len(call.args))


def _needs_rows(value: e.Expr) -> bool:
    """A tile in Vec that is not stored row by row."""
    if not isinstance(value.type, TileType) or value.type.space not in (MemorySpace.Vec, None):
        return False
    view = value.type.get_effective_tile_view()
    return view.blayout is not TileLayout.row_major or view.slayout is not TileLayout.none_box


def _is_column(value: e.Expr) -> bool:
    """A `[N, 1]` tile, N > 1, stored without boxes: its bytes are those of `[1, N]`."""
    if not isinstance(value.type, TileType) or len(value.type.shape) != 2:
        return False
    rows, columns = (e.const_value(d) for d in value.type.shape)
    plain = value.type.get_effective_tile_view().slayout is TileLayout.none_box
    return plain and columns == 1 and rows is not None and rows > 1
