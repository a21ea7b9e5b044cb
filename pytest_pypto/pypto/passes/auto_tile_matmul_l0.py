"""AutoTileMatmulL0: products that do not fit the L0 buffers are computed piece by piece."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from ..backend.handler import Handler, current_handler
from ..ir import expr as e
from ..ir import extents
from ..ir import stmt as s
from ..ir.dtypes import DataType
from ..ir.enums import CAST_MODES, MemorySpace, is_incore_type
from ..ir.program import Function, Program
from ..ir.types import TensorType, TileType, Type
from ..ir.visitor import IRMutator, exprs_of, uses_of, walk_stmts
from ._util import PassError, is_call
from .base import Pass
from .context import MemoryPlanner, PassContext, active_planner
from .hints import hint
from .l0_loops import Block, Builder, Product, Target, k_loop, looped_grid, unrolled_grid
from .l0_marks import mark_double_buffers
from .l0_tile_chooser import BLOCK, Choice, Problem, choose, held_by
from .properties import TILES_2D

_M = MemorySpace
_PRODUCTS = ("tile.matmul", "tile.matmul_acc", "tile.matmul_bias")
_NARROW = (DataType.BF16, DataType.FP16)


@dataclass(frozen=True)
class AutoTileMatmulL0(Pass):
    """Tiles `tile.matmul`, `tile.matmul_acc` and `tile.matmul_bias` for L0A, L0B and L0C of the selected architecture.

    With the whole output in L0C only K is looped over (`pl.pipeline`, two stages). An output that does not fit, or
    is cheaper in pieces, is tiled when it goes straight to memory: each piece has its own store. A left operand in Vec
    is moved to Mat first. A product that is rounded to 16 bits only to be multiplied again stays on the cube core.
    Pipelines that authors wrote around a product get a double-buffered accumulator where it fits. Nothing happens when
    no architecture is selected.

    Raises (PassError): an operand that the author placed in L0 and that does not fit there.
    """

    name = "AutoTileMatmulL0"
    requires = TILES_2D
    produces = TILES_2D

    def apply(self, program: Program) -> Program:
        """The program with products that fit."""
        handler = current_handler()
        if handler is None:
            return program
        return program.with_functions([_tiled(f, handler) for f in program.functions.values()])


def _tiled(func: Function, handler: Handler) -> Function:
    calls = [root for x in walk_stmts(func.body) for root in exprs_of(x) if is_call(root, *_PRODUCTS)]
    if not is_incore_type(func.func_type) or not calls:
        return func
    body = mark_double_buffers(func.body, handler)
    body = _Tiler(func, body, handler).visit_stmt(body)
    return func if body is func.body else func.with_(body=body)


class _Tiler(IRMutator):
    """Replaces products statement list by statement list."""

    def __init__(self, func: Function, body: s.Stmt, handler: Handler) -> None:
        super().__init__()
        self.func = func
        self.handler = handler
        self.uses: Counter[e.Var] = Counter()
        self.factors: Counter[e.Var] = Counter()
        for stmt in walk_stmts(body):
            for root in exprs_of(stmt):
                self.uses.update(uses_of(root))
                if is_call(root, *_PRODUCTS) and isinstance(root, e.Call):
                    self.factors.update(a for a in _factors(root) if isinstance(a, e.Var))

    def visit_seq_stmts(self, op: s.SeqStmts) -> s.Stmt:
        made: list[s.Stmt] = []
        skip = False
        for i, stmt in enumerate(op.stmts):
            if skip:
                skip = False
                continue
            following = op.stmts[i + 1] if i + 1 < len(op.stmts) else None
            new, skip = self.statement(stmt, following)
            made += new
        same = len(made) == len(op.stmts) and all(a is b for a, b in zip(made, op.stmts, strict=True))
        return op if same else s.SeqStmts(tuple(made), op.span)

    def statement(self, stmt: s.Stmt, following: s.Stmt | None) -> tuple[list[s.Stmt], bool]:
        """The replacement, and whether it covers the following statement too."""
        made = self.visit_stmt(stmt)
        if not isinstance(made, s.AssignStmt) or not isinstance(made.value, e.Call):
            return [made], False
        if is_call(made.value, "tile.cast") and self.rounds_for_product(made, made.value):
            return self.scratch_in_mat(made, made.value), False
        if is_call(made.value, *_PRODUCTS):
            return self.product(made, made.value, following)
        return [made], False

    # chained products ------------------------------------------------------------------------------------------

    def rounds_for_product(self, stmt: s.AssignStmt, call: e.Call) -> bool:
        """A product, rounded to nearest even into 16 bits, that only products read."""
        source = call.args[0]
        rounded = call.kwargs["target_type"] in _NARROW and call.kwargs.get("mode") == CAST_MODES.index("rint")
        if not (self.handler.low_precision_mat_scratch and rounded and isinstance(source, e.Var)):
            return False
        type_ = source.type
        on_cube = isinstance(type_, TileType) and type_.space is _M.Acc and type_.dtype is DataType.FP32
        only = self.uses[stmt.var] > 0 and self.uses[stmt.var] == self.factors[stmt.var]
        return on_cube and self.uses[source] == 1 and only

    def scratch_in_mat(self, stmt: s.AssignStmt, call: e.Call) -> list[s.Stmt]:
        """The accumulator written into a 16-bit tile in Mat, which rounds on the way."""
        source = call.args[0]
        assert isinstance(source.type, TileType)
        b = Builder(stmt.span)
        kwargs = {"dtype": call.kwargs["target_type"], "target_memory": _M.Mat}
        room = b.emit(f"{stmt.var.name_hint}_mat", "tile.create", [e.MakeTuple(source.type.shape, stmt.span)], kwargs)
        made = b.emit(stmt.var.name_hint, "tile.assemble", [room, source, e.make_tuple((0, 0), stmt.span)])
        self.var_map[stmt.var] = made
        for counts in (self.uses, self.factors):
            counts[made] = counts[stmt.var]
        return b.out

    # one product -----------------------------------------------------------------------------------------------

    def product(self, stmt: s.AssignStmt, call: e.Call, following: s.Stmt | None) -> tuple[list[s.Stmt], bool]:
        left, right = _factors(call)
        self.check_resident(call, left, "left", _M.Left, "L0A")
        self.check_resident(call, right, "right", _M.Right, "L0B")
        problem = self.problem(call, left, right, stmt)
        if problem is None:
            return [stmt], False
        narrow = _valid_of(stmt.var.type)
        store = self.direct_store(stmt, following) if call.op.name == "tile.matmul" and narrow is None else None
        choice = self.choice(problem, store is not None, stmt)
        if choice is None or (choice.m, choice.n, choice.k) == (problem.m, problem.n, problem.k):
            return [stmt], False
        assert isinstance(left, e.Var)
        assert isinstance(right, e.Var)
        b = Builder(stmt.span)
        left = self.in_mat(b, left)
        p = self.description(stmt, call, left, right, problem)
        if (choice.m, choice.n) == (problem.m, problem.n):
            k_loop(b, p, Block(0, 0, problem.m, problem.n), choice.k, stmt.var)
            return b.out, False
        assert isinstance(following, s.AssignStmt)
        assert store is not None
        self.var_map[following.var] = self.grid(b, p, problem, choice, store)
        return b.out, True

    def description(self, stmt: s.AssignStmt, call: e.Call, left: e.Var, right: e.Var, problem: Problem) -> Product:
        acc = call.args[0] if call.op.name == "tile.matmul_acc" else None
        bias = call.args[2] if call.op.name == "tile.matmul_bias" else None
        assert acc is None or isinstance(acc, e.Var)
        assert bias is None or isinstance(bias, e.Var)
        return Product(stmt.var.name_hint, left, right, problem.k, acc, bias, _valid_of(stmt.var.type))

    def in_mat(self, b: Builder, left: e.Var) -> e.Var:
        assert isinstance(left.type, TileType)
        if left.type.space is _M.Mat:
            return left
        return b.emit(f"{left.name_hint}_mat", "tile.move", [left], {"target_memory": _M.Mat})

    def check_resident(self, call: e.Call, operand: e.Expr, side: str, space: MemorySpace, unit: str) -> None:
        """An operand that is already in L0 must fit there."""
        type_ = operand.type
        if not isinstance(type_, TileType) or type_.space is not space:
            return
        shape = e.static_dims(type_.shape)
        limit = self.handler.limit(space)
        if shape is None or limit is None:
            return
        size = type_.dtype.get_byte()
        for extent in shape:
            size *= extent
        if size > limit:
            name = operand.name_hint if isinstance(operand, e.Var) else str(operand)
            raise PassError(
                f"{call.op.name} {side} operand '{name}' is already in {space.name} ({unit}) with shape {list(shape)} "
                f"and dtype {type_.dtype}: {size} bytes, and {unit} of {self.handler.arch} has {limit} bytes; keep the "
                f"operand in Mat, so that the product is tiled, or extract a smaller {space.name} tile",
                call,
            )

    def problem(self, call: e.Call, left: e.Expr, right: e.Expr, stmt: s.AssignStmt) -> Problem | None:
        """The product as numbers; None when it is left alone."""
        a, c = left.type, right.type
        if not (isinstance(left, e.Var) and isinstance(right, e.Var)):
            return None
        if not isinstance(a, TileType) or not isinstance(c, TileType) or len(call.args) > 3:
            return None
        sa, sc = e.static_dims(a.shape), e.static_dims(c.shape)
        if sa is None or sc is None or c.space is not _M.Mat or a.space not in (_M.Mat, _M.Vec):
            return None
        if not self.whole_depth(call, a, c):
            return None
        if sa[1] % BLOCK:
            if sa[1] > BLOCK:
                text = f"{call.op.name}: K={sa[1]} is not a multiple of {BLOCK}; the product is left whole"
                hint("PH-AT-007", "AutoTileMatmulL0", text, call.span)
            return None
        assert isinstance(stmt.var.type, TileType)
        acc = stmt.var.type.dtype
        return Problem(
            *(sa[0], sc[1], sa[1]),
            *(a.dtype.get_byte(), c.dtype.get_byte(), acc.get_byte(), self.handler.acc_row_multiple(acc)),
            bias=call.op.name == "tile.matmul_bias",
        )

    def whole_depth(self, call: e.Call, left: TileType, right: TileType) -> bool:
        """All of K is valid; rows or columns may be invalid in a plain product only."""
        if left.valid_shape is left.shape and right.valid_shape is right.shape:
            return True
        depth = (left.valid_shape[1], left.shape[1]), (right.valid_shape[0], right.shape[0])
        return call.op.name == "tile.matmul" and all(extents.equal(have, want) for have, want in depth)

    def choice(self, problem: Problem, stored: bool, stmt: s.AssignStmt) -> Choice | None:
        """The tile to use."""
        kind = self.handler.backend_type
        if stored:
            double = active_planner() is not MemoryPlanner.PYPTO or _double_buffering_asked()
            return choose(replace(problem, stationary=True, double_buffer=double), kind)
        whole = choose(replace(problem, tile_output=False), kind)
        if whole is None:
            text = (
                f"a product of [{problem.m}, {problem.k}] and [{problem.k}, {problem.n}] does not fit L0 as one output "
                "and is not stored at once; it is left whole"
            )
            hint("PH-AT-006", "AutoTileMatmulL0", text, stmt.span)
        return whole

    # output tiles ----------------------------------------------------------------------------------------------

    def direct_store(self, stmt: s.AssignStmt, following: s.Stmt | None) -> Target | None:
        """The next statement, when it stores the product to memory and nothing else reads the product."""
        if not isinstance(following, s.AssignStmt) or not is_call(following.value, "tile.store"):
            return None
        call = self.visit_expr(following.value)
        assert isinstance(call, e.Call)
        target, offset = call.args[2], call.args[1]
        plain = call.args[0] is stmt.var and self.uses[stmt.var] == 1 and len(call.args) == 3
        if not plain or not isinstance(target, e.Var) or not isinstance(offset, e.MakeTuple):
            return None
        assert isinstance(target.type, TensorType)
        if len(offset.elements) != 2:
            return None
        return Target(target, offset.elements, dict(call.kwargs), following.var.type)

    def grid(self, b: Builder, p: Product, problem: Problem, choice: Choice, store: Target) -> e.Var:
        size = (problem.m, problem.n)
        if choice.k < problem.k:
            return unrolled_grid(b, p, size, (choice.m, choice.n, choice.k), store)
        held = held_by(problem, self.handler.backend_type, choice)
        tile = (choice.m, choice.n)
        return looped_grid(b, p, size, tile, store, held, choice.stationary, choice.double_buffer)


def _valid_of(type_: Type) -> tuple[e.Expr, ...] | None:
    """The valid extents of a tile that is not valid altogether."""
    assert isinstance(type_, TileType)
    return None if type_.valid_shape is type_.shape else tuple(type_.valid_shape)


def _factors(call: e.Call) -> tuple[e.Expr, e.Expr]:
    first = 1 if call.op.name == "tile.matmul_acc" else 0
    return call.args[first], call.args[first + 1]


def _double_buffering_asked() -> bool:
    context = PassContext.current()
    return context is not None and context.get_enable_pypto_l0c_double_buffer()
