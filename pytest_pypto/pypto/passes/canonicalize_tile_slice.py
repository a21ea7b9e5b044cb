"""CanonicalizeTileSlice: windows of tiles that no view can describe are copied; windows of Mat become L0 extracts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..ir import expr as e
from ..ir import extents
from ..ir import stmt as s
from ..ir.dtypes import INDEX
from ..ir.enums import MemorySpace, TileLayout, is_incore_type
from ..ir.op_table import create_op_call, find_op
from ..ir.program import Function, Program
from ..ir.types import TileType
from ..ir.visitor import IRMutator, exprs_of, replace_call, uses_of, walk_stmts
from ._util import PassError, is_call
from .base import FunctionPass
from .fold_scalars import fold_binary
from .integers import Analyzer
from .properties import TILES_2D

_M = MemorySpace
_ALIGN = 32
_FACTORS = {
    "tile.matmul": (0, 1),
    "tile.matmul_bias": (0, 1),
    "tile.matmul_acc": (1, 2),
    "tile.gemv": (0, 1),
    "tile.gemv_acc": (1, 2),
}


@dataclass(frozen=True)
class CanonicalizeTileSlice(FunctionPass):
    """`tile.slice` where a view will do, `tile.extract` where it will not.

    * a slice in front of an extract is folded into the extract's offsets;
    * a slice of a Mat tile that feeds a product becomes an extract to Left or Right;
    * a Vec slice that feeds a col_expand operator with a window that is not contiguous, or at an offset that is not
      constant, and a Vec slice whose first byte is not provably 32-byte aligned, is copied in front of its consumer;
    * a Vec slice of a tile that is written in place later is copied where it stands;
    * slices that nobody reads are removed, all others stay views.

    Raises (PassError): some rows of an accumulator tile that is more than one block wide.
    """

    name = "CanonicalizeTileSlice"
    requires = TILES_2D
    produces = TILES_2D

    def apply_function(self, func: Function, program: Program) -> Function:
        """The function with slices that are views."""
        if not is_incore_type(func.func_type):
            return func
        if not any(is_call(root, "tile.slice") for x in walk_stmts(func.body) for root in exprs_of(x)):
            return func
        body = _Canonicalizer(func).visit_stmt(func.body)
        body = _Sweep(body).visit_stmt(body)
        return func if body is func.body else func.with_(body=body)


@dataclass(frozen=True)
class _Slice:
    """One `tile.slice`: source, window and offset."""

    var: e.Var
    source: e.Var
    shape: e.MakeTuple
    row: e.Expr
    column: e.Expr
    stmt: s.AssignStmt

    @property
    def type(self) -> TileType:
        assert isinstance(self.var.type, TileType)
        return self.var.type

    @property
    def base(self) -> TileType:
        assert isinstance(self.source.type, TileType)
        return self.source.type


class _Canonicalizer(IRMutator):
    """Walks in program order; `slices` are the plain 2-D slices seen so far."""

    def __init__(self, func: Function) -> None:
        super().__init__()
        self.slices: dict[e.Var, _Slice] = {}
        self.out: list[s.Stmt] = []
        self.copies: dict[tuple[e.Var, MemorySpace], e.Var] = {}
        self.known = Analyzer()
        self.written = _written_in_place(func.body)

    def visit_seq_stmts(self, op: s.SeqStmts) -> s.Stmt:
        kept = (self.out, self.copies)
        self.out, self.copies = [], {}
        for stmt in op.stmts:
            self.out += s.stmts_of(self.visit_stmt(stmt))
        made = self.out
        self.out, self.copies = kept
        same = len(made) == len(op.stmts) and all(a is b for a, b in zip(made, op.stmts, strict=True))
        return op if same else s.SeqStmts(tuple(made), op.span)

    def visit_for_stmt(self, op: s.ForStmt) -> s.Stmt:
        with self.known.region():
            self.known.bind_loop(op.loop_var, op.start, op.stop, op.step)
            return super().visit_for_stmt(op)

    def visit_assign_stmt(self, op: s.AssignStmt) -> s.Stmt:
        if is_call(op.value, "tile.slice") and isinstance(op.value, e.Call):
            return self.slice(op, op.value)
        return super().visit_assign_stmt(op)

    def slice(self, op: s.AssignStmt, call: e.Call) -> s.Stmt:
        source = self.visit_expr(call.args[0])
        shape, offset = call.args[1], call.args[2]
        made = super().visit_assign_stmt(op)
        assert isinstance(made, s.AssignStmt)
        plain = isinstance(shape, e.MakeTuple) and isinstance(offset, e.MakeTuple) and isinstance(source, e.Var)
        if not plain or len(offset.elements) != 2 or len(shape.elements) != 2:  # type: ignore[attr-defined]
            return made
        assert isinstance(shape, e.MakeTuple)
        assert isinstance(offset, e.MakeTuple)
        assert isinstance(source, e.Var)
        row, column = self.visit_exprs(offset.elements)
        found = _Slice(made.var, source, shape, row, column, made)
        _check_accumulator(found)
        if self.overwritten(found):
            return self.copy_here(found)
        self.slices[made.var] = found
        return made

    def overwritten(self, found: _Slice) -> bool:
        """The source changes in place while the view may still be read."""
        return found.base.space is _M.Vec and found.source in self.written and found.var not in self.written

    def copy_here(self, found: _Slice) -> s.Stmt:
        call = _extract(found, _M.Vec)
        var = e.Var(found.var.name_hint, call.type, found.var.span)
        self.var_map[found.var] = var
        return self.with_valid(found, s.AssignStmt(var, call, found.stmt.span))

    def with_valid(self, found: _Slice, made: s.AssignStmt) -> s.Stmt:
        """The copy, narrowed to the valid shape that the slice states."""
        assert isinstance(made.var.type, TileType)
        want = found.type.valid_shape
        if extents.all_equal(made.var.type.valid_shape, want):
            return made
        call = create_op_call("tile.set_validshape", [made.var, *want], span=made.span)
        var = e.Var(made.var.name_hint, call.type, made.span)
        self.var_map[found.var] = var
        return s.seq([made, s.AssignStmt(var, call, made.span)])

    # consumers -------------------------------------------------------------------------------------------------

    def visit_call(self, op: e.Call) -> e.Expr:
        made = super().visit_call(op)
        assert isinstance(made, e.Call)
        if made.op.name == "tile.extract":
            return self.folded(made)
        if made.op.name == "tile.slice":
            return made
        spec = find_op(made.op.name)
        args = list(made.args)
        for k, arg in enumerate(args):
            found = self.slices.get(arg) if isinstance(arg, e.Var) else None
            if found is None or (spec is not None and spec.inplace == k):
                continue
            space = self.copy_space(found, made.op.name, k)
            if space is not None:
                args[k] = self.copy(found, space, made)
        same = all(a is b for a, b in zip(args, made.args, strict=True))
        return made if same else replace_call(made, args=args)

    def copy_space(self, found: _Slice, op: str, k: int) -> MemorySpace | None:
        """Where the window must be copied for operand k of an operator; None when the view will do."""
        if found.base.space is _M.Mat:
            factors: tuple[int, ...] = _FACTORS.get(op, ())
            return (_M.Left if k == factors[0] else _M.Right) if k in factors else None
        if found.base.space is not _M.Vec:
            return None
        if op.startswith("tile.col_expand") and not self.contiguous(found):
            return _M.Vec
        return None if self.aligned(found) else _M.Vec

    def contiguous(self, found: _Slice) -> bool:
        """One block of bytes at a constant place."""
        constant = e.static_dims((found.row, found.column)) is not None
        rows = e.const_value(found.shape.elements[0])
        whole = extents.equal(found.shape.elements[1], found.base.shape[1])
        return constant and (whole or rows == 1)

    def aligned(self, found: _Slice) -> bool:
        """The first byte is provably a multiple of 32."""
        view = found.base.get_effective_tile_view()
        if view.slayout is not TileLayout.none_box:
            return True
        rows, columns = found.base.shape
        if view.blayout is TileLayout.row_major:
            place: e.Expr = _index(e.Add, _index(e.Mul, found.row, columns), found.column)
        else:
            place = _index(e.Add, _index(e.Mul, found.column, rows), found.row)
        modulus, rest = self.known.multiple_of(place)
        size = found.base.dtype.get_byte()
        return rest * size % _ALIGN == 0 and modulus * size % _ALIGN == 0

    def copy(self, found: _Slice, space: MemorySpace, like: e.Call) -> e.Var:
        """The window copied in front of the current statement."""
        made = self.copies.get((found.var, space))
        if made is not None:
            return made
        call = _extract(found, space)
        suffix = "textract" if space is _M.Vec else space.name
        var = e.Var(f"{found.var.name_hint}_{suffix}", call.type, like.span)
        self.out.append(s.AssignStmt(var, call, like.span))
        assert isinstance(call.type, TileType)
        want = found.type.valid_shape
        if space is _M.Vec and not extents.all_equal(call.type.valid_shape, want):
            narrowed = create_op_call("tile.set_validshape", [var, *want], span=like.span)
            var = e.Var(f"{found.var.name_hint}_{suffix}", narrowed.type, like.span)
            self.out.append(s.AssignStmt(var, narrowed, like.span))
        self.copies[(found.var, space)] = var
        return var

    def folded(self, call: e.Call) -> e.Call:
        """`extract(slice(t, ...), r, c)` as an extract of t."""
        found = self.slices.get(call.args[0]) if isinstance(call.args[0], e.Var) else None
        if found is None:
            return call
        row = _index(e.Add, found.row, call.args[1])
        column = _index(e.Add, found.column, call.args[2])
        return replace_call(call, args=(found.source, row, column, *call.args[3:]))


def _index(kind: type[e.BinaryExpr], a: e.Expr, b: e.Expr) -> e.Expr:
    """INDEX arithmetic, folded."""
    return fold_binary(kind(a, b, INDEX, a.span), Analyzer())


def _extract(found: _Slice, space: MemorySpace) -> e.Call:
    args = [found.source, found.row, found.column, found.shape]
    return create_op_call("tile.extract", args, {"target_memory": space}, span=found.stmt.span)


def _check_accumulator(found: _Slice) -> None:
    """Rows of an accumulator are apart by whole blocks of columns."""
    if found.base.space is not _M.Acc:
        return
    rows, columns = found.base.shape
    width = e.const_value(columns)
    if not extents.equal(found.shape.elements[0], rows) and (width is None or width > 16):
        raise PassError(
            f"'{found.var.name_hint}' cuts rows out of accumulator '{found.source.name_hint}' of shape "
            f"{extents.text(found.base.shape)}; rows of an accumulator wider than 16 columns are not contiguous: cut "
            "columns, or compute the rows with a product of their own",
            found.stmt,
        )


def _written_in_place(body: s.Stmt) -> set[e.Var]:
    """Tiles that an operator writes without giving them a new buffer: the names before the write."""
    found: set[e.Var] = set()
    names = ("tile.write", "tile.assemble", "tile.fillpad_inplace", "tile.scatter", "tile.scatter_mask")
    for stmt in walk_stmts(body):
        for root in exprs_of(stmt):
            if is_call(root, *names) and isinstance(root, e.Call) and isinstance(root.args[0], e.Var):
                found.add(root.args[0])
    return found


class _Sweep(IRMutator):
    """Removes slices without readers, until none is left."""

    def __init__(self, body: s.Stmt) -> None:
        super().__init__()
        self.slices: dict[e.Var, Sequence[e.Var]] = {}
        uses: Counter[e.Var] = Counter()
        for stmt in walk_stmts(body):
            for root in exprs_of(stmt):
                uses.update(uses_of(root))
            if isinstance(stmt, s.AssignStmt) and is_call(stmt.value, "tile.slice"):
                self.slices[stmt.var] = list(uses_of(stmt.value))
        self.dead: set[e.Var] = set()
        todo = [v for v in self.slices if not uses[v]]
        while todo:
            var = todo.pop()
            self.dead.add(var)
            for used in self.slices[var]:
                uses[used] -= 1
                if used in self.slices and not uses[used]:
                    todo.append(used)

    def visit_assign_stmt(self, op: s.AssignStmt) -> s.Stmt:
        return s.seq([]) if op.var in self.dead else op

    def visit_for_stmt(self, op: s.ForStmt) -> s.Stmt:
        body = self.visit_stmt(op.body)
        return op if body is op.body else replace(op, body=body)

    def visit_while_stmt(self, op: s.WhileStmt) -> s.Stmt:
        body = self.visit_stmt(op.body)
        return op if body is op.body else replace(op, body=body)
