"""Kernels that copy a tensor into a window of another one."""

from __future__ import annotations

from ..backend.handler import current_handler
from ..ir import expr as e
from ..ir import extents
from ..ir import stmt as s
from ..ir.dtypes import INDEX
from ..ir.enums import FunctionType, MemorySpace, ParamDirection
from ..ir.op_table import create_op_call
from ..ir.program import Function, Program
from ..ir.span import Span
from ..ir.types import ScalarType, TensorType, TensorView
from ._util import PassError
from .nd_tiles import arith

_LIMIT = 96 * 1024
"""Bytes of a tile when no architecture is selected."""


class CopyKernels:
    """Makes copy kernels on demand; assembles of the same types and constant offsets share one."""

    def __init__(self, program: Program) -> None:
        self.taken = {f.name for f in program.functions.values()}
        self.made: list[Function] = []
        self.known: dict[str, Function] = {}

    def call(self, stmt: s.AssignStmt, assemble: e.Call) -> list[s.Stmt]:
        """`result = self.copy(source, target, offsets and valid extents that are not constant)`."""
        target, source, offset = assemble.args
        assert isinstance(offset, e.MakeTuple)
        assert isinstance(source.type, TensorType)
        scalars = [x for x in (*offset.elements, *source.type.valid_shape) if not isinstance(x, e.ConstInt)]
        before: list[s.Stmt] = []
        args: list[e.Expr] = [source, target]
        for x in scalars:
            if not isinstance(x, e.Var):
                var = e.Var("at", ScalarType(INDEX), stmt.span)
                before.append(s.AssignStmt(var, x, stmt.span))
                x = var
            args.append(x)
        kernel = self.kernel(assemble, stmt)
        made = e.Call(e.GlobalVar(kernel.name), args, type=stmt.var.type, span=stmt.span)
        return [*before, s.AssignStmt(stmt.var, made, stmt.span, leading_comments=stmt.leading_comments)]

    def kernel(self, assemble: e.Call, stmt: s.AssignStmt) -> Function:
        key = _key(assemble)
        if key not in self.known:
            n = len(self.made)
            while f"assemble_copy_{n}" in self.taken:
                n += 1
            self.taken.add(f"assemble_copy_{n}")
            made = _Copy(f"assemble_copy_{n}", assemble, stmt).function()
            self.known[key] = made
            self.made.append(made)
        return self.known[key]


def _key(assemble: e.Call) -> str:
    target, source, offset = assemble.args
    assert isinstance(offset, e.MakeTuple)
    places = [e.const_value(x) for x in offset.elements]
    return f"{source.type} -> {target.type} at {places} {sorted(assemble.kwargs.items())}"


class _Copy:
    """Builds one copy kernel: loops over pieces that fit a tile."""

    def __init__(self, name: str, assemble: e.Call, stmt: s.AssignStmt) -> None:
        self.name = name
        self.call = assemble
        self.stmt = stmt
        self.span: Span = stmt.span
        target, source, offset = assemble.args
        assert isinstance(source.type, TensorType)
        assert isinstance(target.type, TensorType)
        assert isinstance(offset, e.MakeTuple)
        self.scalars: list[e.Var] = []
        self.offset = [self.scalar(x, f"at{i}") for i, x in enumerate(offset.elements)]
        valid = [self.scalar(x, f"valid{i}") for i, x in enumerate(source.type.valid_shape)]
        self.valid = valid
        plain = source.type.valid_shape is source.type.shape
        view = None if plain else TensorView((), valid_shape=tuple(valid))
        self.source = e.Var("source", TensorType(source.type.shape, source.type.dtype, None, view), self.span)
        self.target = e.Var("target", TensorType(target.type.shape, target.type.dtype), self.span)
        self.kwargs = {k: v for k, v in assemble.kwargs.items() if k == "atomic"}

    def scalar(self, x: e.Expr, name: str) -> e.Expr:
        """A constant as it is, anything else as a parameter."""
        if isinstance(x, e.ConstInt):
            return x
        var = e.Var(name, ScalarType(INDEX), self.span)
        self.scalars.append(var)
        return var

    def function(self) -> Function:
        """The kernel."""
        body, _ = self.level([], self.target)
        read = ParamDirection.InOut if self.kwargs else ParamDirection.Out
        params = [
            (self.source, ParamDirection.In),
            (self.target, read),
            *((v, ParamDirection.In) for v in self.scalars),
        ]
        stmts = (*body, s.ReturnStmt((self.target,), self.span))
        body_seq = s.SeqStmts(stmts, self.span)
        return Function(self.name, params, [self.target.type], body_seq, self.span, FunctionType.InCore)

    def level(self, at: list[e.Expr], into: e.Var) -> tuple[list[s.Stmt], e.Var]:
        """Copy everything below position `at` on the leading axes."""
        assert isinstance(self.source.type, TensorType)
        shape = self.source.type.shape
        axis = len(at)
        rest = self.constant(shape[axis + 1 :])
        room = max(1, self.limit() // (rest * self.source.type.dtype.get_byte()))
        extent = e.const_value(shape[axis])
        if extent is not None and extent <= room:
            return self.piece([*at, e.index(0)], extent, into)
        last = axis == len(shape) - 1
        step = max(1, room // 32 * 32) if last else min(room, extent) if extent is not None else room
        if step > 1 or last:
            return self.loop(at, axis, step, into, True)
        return self.loop(at, axis, 1, into, False)

    def loop(self, at: list[e.Expr], axis: int, step: int, into: e.Var, whole: bool) -> tuple[list[s.Stmt], e.Var]:
        """`for i in range(0, extent, step)` around a piece, or around the next axis."""
        assert isinstance(self.source.type, TensorType)
        i = e.Var(f"i{axis}", ScalarType(INDEX), self.span)
        arg = e.IterArg(f"target_{axis}", into.type, into, self.span)
        body, value = self.piece([*at, i], step, arg) if whole else self.level([*at, i], arg)
        seq = s.SeqStmts((*body, s.YieldStmt((value,), self.span)), self.span)
        result = e.Var(f"target_rv{axis}", value.type, self.span)
        bounds = (e.index(0), self.source.type.shape[axis], e.index(step))
        return [s.ForStmt(i, *bounds, (arg,), seq, (result,), self.span)], result

    def piece(self, at: list[e.Expr], extent: int, into: e.Var) -> tuple[list[s.Stmt], e.Var]:
        """Load and store one window; the axis that is cut may end before the window does."""
        assert isinstance(self.source.type, TensorType)
        shape, axis = self.source.type.shape, len(at) - 1
        tail = shape[axis + 1 :]
        place = [*at, *[e.index(0)] * len(tail)]
        window: list[e.Expr] = [*[e.index(1)] * axis, e.index(extent), *tail]
        whole = e.const_value(shape[axis])
        cut = self.valid[axis]
        if whole is None or whole % extent or cut is not shape[axis]:
            cut = arith(e.Min, arith(e.Max, arith(e.Sub, self.valid[axis], at[axis]), e.index(0)), e.index(extent))
        else:
            cut = e.index(extent)
        valid = [*[e.index(1)] * axis, cut, *self.valid[axis + 1 :]]
        load = create_op_call(
            "tile.load",
            [self.source, *(e.MakeTuple(tuple(x), self.span) for x in (place, window, valid))],
            {"target_memory": MemorySpace.Vec},
            span=self.span,
        )
        tile = e.Var("piece", load.type, self.span)
        missing = len(self.offset) - len(place)
        lead = self.offset[:missing]
        there = [arith(e.Add, o, p) for o, p in zip(self.offset[missing:], place, strict=True)]
        args: list[e.Expr] = [tile, e.MakeTuple((*lead, *there), self.span), into]
        if missing:
            args.append(e.MakeTuple((*[e.index(1)] * missing, *window), self.span))
        store = create_op_call("tile.store", args, self.kwargs, span=self.span)
        made = e.Var("target_n", store.type, self.span)
        return [s.AssignStmt(tile, load, self.span), s.AssignStmt(made, store, self.span)], made

    def constant(self, dims: tuple[e.Expr, ...]) -> int:
        assert isinstance(self.source.type, TensorType)
        total = 1
        for dim in dims:
            value = e.const_value(dim)
            if value is None:
                raise PassError(
                    f"'{self.stmt.var.name_hint}' is assembled in the host program from a tensor of shape "
                    f"{extents.text(self.source.type.shape)}; only the first extent of a copy may be dynamic: "
                    "assemble in a kernel instead",
                    self.stmt,
                )
            total *= value
        return total

    def limit(self) -> int:
        handler = current_handler()
        room = None if handler is None else handler.limit(MemorySpace.Vec)
        return _LIMIT if room is None else room // 2
