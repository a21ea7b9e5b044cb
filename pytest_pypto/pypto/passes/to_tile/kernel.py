"""Converting the statements of one kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.dtypes import DataType
from ...ir.enums import CAST_MODES, MemorySpace, ParamDirection
from ...ir.op_table import create_op_call
from ...ir.program import Function, Program
from ...ir.span import Span
from ...ir.types import TensorType, TileType, Type
from ...ir.visitor import IRMutator, collect_def_vars, replace_call
from .._util import NameSource, PassError, base_name, place_of
from .facts import Facts

BRIDGE = "__compiler_tensor_to_tile_mat_bridge"
"""Mark of a load that feeds the cube core; InferTileMemorySpace removes it."""


@dataclass(frozen=True)
class Window:
    """A piece of a tensor in global memory."""

    source: e.Var
    offset: e.MakeTuple
    shape: e.MakeTuple
    valid: e.MakeTuple
    clamp: bool = False


@dataclass(frozen=True)
class Output:
    """A parameter that was added for a returned value: its variable and the index of the value."""

    var: e.Var
    position: int


class Kernel(IRMutator):
    """Rewrites one kernel; `var_map` maps tensors of the kernel to the tiles (or tensors) they became."""

    def __init__(self, func: Function, program: Program) -> None:
        super().__init__()
        self.func = func
        self.facts = Facts(func, program)
        hints = {v.name_hint for v in (*func.params, *collect_def_vars(func.body))}
        self.names = NameSource(hints)
        self.out: list[s.Stmt] = []
        self.entry: dict[e.Var, e.Var] = {}
        self.windows: dict[e.Var, Window] = {}
        self.outputs: list[Output] = []
        self.place: s.Stmt | None = None
        self.comments: tuple[str, ...] = ()

    def convert(self) -> Function:
        """The kernel with tile operators; `outputs` lists the added parameters."""
        for root, position in self.facts.outputs.items():
            self.var_map[root] = self.output(position, root.type, root.span)
        self.load_parameters()
        for stmt in s.stmts_of(self.func.body):
            self.statement(stmt, ())
        if not self.out or not isinstance(self.out[-1], s.ReturnStmt):
            self.out.append(s.ReturnStmt((), self.func.span))
        params = [*self.func.pairs, *((o.var, ParamDirection.Out) for o in self.outputs)]
        body = s.SeqStmts(tuple(self.out), self.func.body.span)
        return self.func.with_(params=params, body=body)

    # making statements -----------------------------------------------------------------------------------------

    def emit(
        self,
        op: str,
        args: Sequence[e.Expr],
        kwargs: Mapping[str, Any] | None = None,
        *,
        name: str,
        span: Span,
        attrs: Mapping[str, Any] | None = None,
    ) -> e.Var:
        """`name = op(args)` at the end of the current body."""
        try:
            call = create_op_call(op, args, kwargs or {}, span=span)
        except (TypeError, ValueError) as error:
            raise PassError(str(error), span, self.place) from error
        if attrs:
            call = replace_call(call, attrs=attrs)
        return self.bind(call, name, span)

    def bind(self, call: e.Expr, name: str, span: Span) -> e.Var:
        """`name = call`; a later value of the same tensor keeps the name (printing tells them apart)."""
        var = e.Var(name, call.type, span)
        self.out.append(s.AssignStmt(var, call, span, leading_comments=self.comments))
        self.comments = ()
        return var

    def output(self, position: int, type_: Type, span: Span) -> e.Var:
        """A new Out parameter for a returned value."""
        plain = TensorType(getattr(type_, "shape", ()), getattr(type_, "dtype"))  # noqa: B009
        var = e.Var(self.names.take(f"ret{position}__out"), plain, span)
        self.outputs.append(Output(var, position))
        return var

    def fail(self, message: str, *places: Span | e.IRNode | None) -> PassError:
        """An error at the first known place."""
        return PassError(message, *places, self.place)

    # values ----------------------------------------------------------------------------------------------------

    def value(self, expr: e.Expr) -> e.Expr:
        """What an expression has become."""
        return self.visit_expr(expr)

    def tile(self, expr: e.Expr) -> e.Var:
        """A value as a tile: loaded to Vec when it is a tensor in global memory."""
        made = self.value(expr)
        if isinstance(made, e.Var) and isinstance(made.type, TileType):
            return made
        if isinstance(made, e.Var) and isinstance(made.type, TensorType):
            loaded = self.entry.get(made)
            return self.load_whole(made, MemorySpace.Vec) if loaded is None else loaded
        raise self.fail(f"expected a tensor or tile here, got {made.type}", expr)

    def tensor(self, expr: e.Expr) -> e.Var:
        """A value that must be a tensor in global memory."""
        made = self.value(expr)
        if isinstance(made, e.Var) and isinstance(made.type, TensorType):
            return made
        raise self.fail(f"'{_name(expr)}' is on the core, a tensor in global memory is needed here", expr)

    def is_tile(self, expr: e.Expr) -> bool:
        """True when the value is on the core."""
        return isinstance(self.value(expr).type, TileType)

    def cast(self, tile: e.Var, dtype: DataType, span: Span, mode: str = "round") -> e.Var:
        """The tile with another element type."""
        assert isinstance(tile.type, TileType)
        if tile.type.dtype is dtype:
            return tile
        kwargs = {"target_type": dtype, "mode": CAST_MODES.index(mode)}
        return self.emit("tile.cast", [tile], kwargs, name=f"{base_name(tile.name_hint)}__tile", span=span)

    # loads -----------------------------------------------------------------------------------------------------

    def load_parameters(self) -> None:
        """Load every parameter that a compute operator consumes, once, at the head of the kernel."""
        for param in self.func.params:
            whole = param in self.facts.consumed and not self.facts.only_windows(param)
            if whole and isinstance(param.type, TensorType):
                self.entry[param] = self.load_whole(param, MemorySpace.Vec)

    def load_whole(self, source: e.Var, space: MemorySpace, name: str = "") -> e.Var:
        """Load a tensor from its origin, as far as it is valid."""
        return self.load(self.whole_window(source), space, name or f"{base_name(source.name_hint)}__tile")

    def whole_window(self, source: e.Var) -> Window:
        """All of a tensor, as far as it is valid."""
        type_ = source.type
        assert isinstance(type_, TensorType)
        zeros = e.make_tuple([0] * len(type_.shape), source.span)
        shape, valid = e.MakeTuple(type_.shape, source.span), e.MakeTuple(type_.valid_shape, source.span)
        return Window(source, zeros, shape, valid)

    def load(self, window: Window, space: MemorySpace, name: str, span: Span | None = None) -> e.Var:
        """Load a window to Vec or Mat."""
        where = place_of(span, self.place, self.facts.consumed.get(window.source), window.source)
        if e.static_dims(window.shape.elements) is None:
            shape = ", ".join(str(x) for x in window.shape.elements)
            raise self.fail(
                f"a kernel cannot load '{window.source.name_hint}' as a tile of shape [{shape}]: a tile needs constant "
                "extents; cut it with pl.slice(x, [constant extents], offset, valid_shape=[...])",
                where,
            )
        kwargs: dict[str, Any] = {"target_memory": space}
        if window.clamp:
            kwargs["clamp"] = True
        attrs = {BRIDGE: True} if space is MemorySpace.Mat else None
        args = [window.source, window.offset, window.shape, window.valid]
        return self.emit("tile.load", args, kwargs, name=name, span=where, attrs=attrs)

    # statements ------------------------------------------------------------------------------------------------

    def block(self, body: s.Stmt | None, wants: Sequence[str | None]) -> s.SeqStmts:
        """A body of its own; `wants[i]` is what the i-th yielded value must be ("tile", "memory" or None)."""
        outer, self.out = self.out, []
        for stmt in s.stmts_of(body):
            self.statement(stmt, wants)
        made, self.out = self.out, outer
        return s.SeqStmts(tuple(made), body.span if body is not None else s.SeqStmts().span)

    def statement(self, stmt: s.Stmt, wants: Sequence[str | None]) -> None:
        self.place = stmt
        self.comments = stmt.leading_comments
        if isinstance(stmt, s.AssignStmt):
            self.assign(stmt)
        elif isinstance(stmt, s.EvalStmt):
            self.evaluate(stmt)
        elif isinstance(stmt, s.YieldStmt):
            values = tuple(self.wanted(v, w) for v, w in zip(stmt.value, wants, strict=False))
            self.out.append(replace(stmt, value=values if values else self.visit_exprs(stmt.value)))
        elif isinstance(stmt, s.ReturnStmt):
            self.return_(stmt)
        elif isinstance(stmt, s.IfStmt):
            self.branch(stmt)
        elif isinstance(stmt, s.ForStmt):
            self.for_(stmt)
        elif isinstance(stmt, s.WhileStmt):
            self.while_(stmt)
        elif isinstance(stmt, s.ScopeStmt):
            body = self.block(stmt.body, wants)
            self.out.append(replace(stmt, body=body, attrs=self.visit_attrs(stmt.attrs)))  # type: ignore[type-var]
        else:
            self.out.append(stmt)

    def assign(self, stmt: s.AssignStmt) -> None:
        from .table import find_handler

        handler = find_handler(stmt.value)
        if handler is not None and isinstance(stmt.value, e.Call):
            if stmt.var in self.facts.outputs:
                return
            made = handler(self, stmt.value, base_name(stmt.var.name_hint), stmt)
            if made is not None:
                self.var_map[stmt.var] = made
            return
        value = self.visit_expr(stmt.value)
        if type(value.type) is not type(stmt.var.type) and isinstance(value.type, (TensorType, TileType)):
            var = e.Var(stmt.var.name_hint, value.type, stmt.var.span)
            self.var_map[stmt.var] = var
        else:
            var = self.define(stmt.var)
        self.out.append(replace(stmt, var=var, value=value))

    def evaluate(self, stmt: s.EvalStmt) -> None:
        from .table import find_handler

        handler = find_handler(stmt.expr)
        if handler is not None and isinstance(stmt.expr, e.Call):
            handler(self, stmt.expr, "t", stmt)
        else:
            self.out.append(replace(stmt, expr=self.visit_expr(stmt.expr)))

    def wanted(self, value: e.Expr, want: str | None) -> e.Expr:
        """A yielded value in the form the loop or branch needs."""
        if want == "tile":
            return self.tile(value)
        return self.tensor(value) if want == "memory" else self.value(value)

    def want_of(self, result: e.Var) -> str | None:
        """What a loop or branch result becomes."""
        if not isinstance(result.type, TensorType):
            return None
        return "memory" if self.facts.in_memory(result) else "tile"

    def return_(self, stmt: s.ReturnStmt) -> None:
        values: list[e.Expr] = []
        for i, value in enumerate(stmt.value):
            made = self.value(value)
            if isinstance(made, e.Var) and isinstance(made.type, TileType):
                made = self.store_output(made, i, value.type, stmt)
            values.append(made)
        self.out.append(replace(stmt, value=tuple(values)))

    def store_output(self, tile: e.Var, position: int, type_: Type, stmt: s.ReturnStmt) -> e.Var:
        """Store a returned tile into a new Out parameter."""
        out = self.output(position, type_, stmt.span)
        assert isinstance(out.type, TensorType)
        zeros = e.make_tuple([0] * len(out.type.shape), stmt.span)
        return self.store(tile, zeros, out, f"ret{position}__store", stmt.span)

    def store(
        self,
        tile: e.Var,
        offset: e.Expr,
        target: e.Var,
        name: str,
        span: Span,
        kwargs: Mapping[str, Any] | None = None,
    ) -> e.Var:
        """Store a tile into global memory; a window shape is added when the ranks differ."""
        assert isinstance(tile.type, TileType)
        assert isinstance(target.type, TensorType)
        args: list[e.Expr] = [tile, offset, target]
        missing = len(target.type.shape) - len(tile.type.shape)
        if missing > 0:
            lead = [e.index(1, span)] * missing
            args.append(e.MakeTuple((*lead, *tile.type.shape), span))
        if tile.type.space is not MemorySpace.Acc:
            args[0] = self.cast(tile, target.type.dtype, span, "rint")
        return self.emit("tile.store", args, kwargs, name=name, span=span)

    # control flow ----------------------------------------------------------------------------------------------

    def carried(self, loop: s.ForStmt | s.WhileStmt) -> tuple[tuple[e.IterArg, ...], list[str | None]]:
        """New iter args, and what each carried value is."""
        wants = [self.want_of(r) for r in loop.return_vars]
        args: list[e.IterArg] = []
        for arg, want in zip(loop.iter_args, wants, strict=True):
            init = self.wanted(arg.initValue, want)
            type_ = init.type if want is not None else self.visit_type(arg.type)
            args.append(e.IterArg(arg.name_hint, type_, init, arg.span))
        for old, new in zip(loop.iter_args, args, strict=True):
            self.var_map[old] = new
        return tuple(args), wants

    def results(self, old: Sequence[e.Var], body: s.SeqStmts, wants: Sequence[str | None]) -> tuple[e.Var, ...]:
        """Result variables with the types of the values that the body yields."""
        last = body.stmts[-1] if body.stmts else None
        values = last.value if isinstance(last, s.YieldStmt) else ()
        made: list[e.Var] = []
        for i, (var, want) in enumerate(zip(old, wants, strict=True)):
            type_ = values[i].type if want is not None and i < len(values) else self.visit_type(var.type)
            new = var if type_ is var.type else e.Var(var.name_hint, type_, var.span)
            self.var_map[var] = new
            made.append(new)
        return tuple(made)

    def for_(self, op: s.ForStmt) -> None:
        bounds = self.visit_exprs((op.start, op.stop, op.step))
        args, wants = self.carried(op)
        body = self.block(op.body, wants)
        start, stop, step = bounds
        results = self.results(op.return_vars, body, wants)
        made = replace(op, start=start, stop=stop, step=step, iter_args=args, body=body, return_vars=results)
        self.out.append(made)

    def while_(self, op: s.WhileStmt) -> None:
        args, wants = self.carried(op)
        condition = self.visit_expr(op.condition)
        body = self.block(op.body, wants)
        results = self.results(op.return_vars, body, wants)
        self.out.append(replace(op, condition=condition, iter_args=args, body=body, return_vars=results))

    def branch(self, op: s.IfStmt) -> None:
        condition = self.visit_expr(op.condition)
        wants = [self.want_of(r) for r in op.return_vars]
        then = self.block(op.then_body, wants)
        other = None if op.else_body is None else self.block(op.else_body, wants)
        results = self.results(op.return_vars, then, wants)
        self.out.append(replace(op, condition=condition, then_body=then, else_body=other, return_vars=results))


def _name(expr: e.Expr) -> str:
    return expr.name_hint if isinstance(expr, e.Var) else str(expr)
