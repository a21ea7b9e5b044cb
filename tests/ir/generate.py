"""Random legal programs for property tests: every statement and expression kind, awkward names, awkward constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from pypto import DataType, ir

INDEX, INT32, INT64, FP32, FP16, BOOL = (
    DataType.INDEX,
    DataType.INT32,
    DataType.INT64,
    DataType.FP32,
    DataType.FP16,
    DataType.BOOL,
)
SPAN = ir.Span.unknown()
NAMES = ("a", "b", "x__ssa_v0", "tmp_0", "tmp_1", "a.b", "1x", "lambda", "pl", "self", "größe", "a_1")
TENSOR = ir.TensorType([8, 16], FP32)
TASK = ir.ScalarType(DataType.TASK_ID)
TASKED = ir.TupleType([TENSOR, TASK])
ATTR_KEYS = ("note", "mine", "arg_directions", "pipeline_membership")


class Generator:
    """Draws one program. `scope` holds the variables that may be used at a place, by type."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw = draw
        self.rows = ir.Var("ROWS", ir.ScalarType(INDEX), SPAN)

    def pick(self, *items: Any) -> Any:
        return self.draw(st.sampled_from(items))

    def name(self) -> str:
        return self.pick(*NAMES)  # type: ignore[no-any-return]

    def program(self) -> ir.Program:
        kernel = self.function("kern", ir.FunctionType.InCore, None)
        main = self.function("main", self.pick(ir.FunctionType.Opaque, ir.FunctionType.Orchestration), kernel)
        return ir.Program([main, kernel], self.pick("P", "Other"), SPAN)

    def function(self, name: str, kind: ir.FunctionType, callee: ir.Function | None) -> ir.Function:
        self.callee = callee
        params = [
            ir.Var(self.name(), TENSOR, SPAN),
            ir.Var(self.name(), ir.TensorType([self.rows, 16], FP32), SPAN),
            ir.Var(self.name(), ir.ScalarType(INDEX), SPAN),
            ir.Var(self.name(), ir.ScalarType(INT32), SPAN),
            ir.Var(self.name(), ir.ScalarType(FP32), SPAN),
        ]
        directions = [self.pick(*ir.ParamDirection), *[ir.ParamDirection.In] * 4]
        body = ir.SeqStmts([*self.block(params, 2), ir.ReturnStmt([params[0]], SPAN)], SPAN)
        attrs = {"note": self.pick(1, True, "text", 0.1, FP16)} if self.draw(st.booleans()) else {}
        pairs = list(zip(params, directions, strict=True))
        return ir.Function(name, pairs, [TENSOR], body, SPAN, kind, attrs=attrs)

    # expressions -----------------------------------------------------------------------------------------------

    def of_type(self, scope: list[ir.Var], dtype: DataType) -> list[ir.Var]:
        return [v for v in scope if isinstance(v.type, ir.ScalarType) and v.type.dtype is dtype]

    def constant(self, dtype: DataType) -> ir.Expr:
        if dtype is BOOL:
            return ir.ConstBool(self.draw(st.booleans()), SPAN)
        if dtype.is_float():
            return ir.ConstFloat(self.draw(st.floats(width=64)), dtype, SPAN)
        return ir.ConstInt(self.draw(st.integers(-(2**31), 2**31 - 1)), dtype, SPAN)

    def scalar(self, scope: list[ir.Var], dtype: DataType, depth: int = 2) -> ir.Expr:
        known = self.of_type(scope, dtype)
        choice = self.pick("const", "var", "op", "op")
        if choice == "var" and known:
            return self.pick(*known)  # type: ignore[no-any-return]
        if choice == "const" or depth == 0:
            return self.constant(dtype)
        if dtype is BOOL:
            return self.condition(scope, depth)
        names = ["add", "sub", "mul", "truediv", "min_", "max_"]
        names += ["floordiv", "mod", "bit_and", "bit_or", "bit_xor", "bit_shift_left"] if dtype.is_int() else []
        name = self.pick(*names, "neg", "cast", *(["bit_not"] if dtype.is_int() else []))
        left = self.scalar(scope, dtype, depth - 1)
        if name == "neg":
            return ir.Neg(left, dtype, SPAN)
        if name == "bit_not":
            return ir.bit_not(left, SPAN)
        if name == "cast":
            return ir.cast(self.scalar(scope, self.pick(INDEX, INT32, FP32), depth - 1), dtype, SPAN)
        return getattr(ir, name)(left, self.scalar(scope, dtype, depth - 1), SPAN)  # type: ignore[no-any-return]

    def condition(self, scope: list[ir.Var], depth: int) -> ir.Expr:
        kind = self.pick("compare", "compare", "and_", "or_", "not_", "xor")
        if kind == "compare":
            dtype = self.pick(INDEX, INT32, FP32)
            left, right = self.scalar(scope, dtype, depth - 1), self.scalar(scope, dtype, depth - 1)
            return getattr(ir, self.pick("eq", "ne", "lt", "le", "gt", "ge"))(left, right, SPAN)  # type: ignore[no-any-return]
        left = self.scalar(scope, BOOL, depth - 1)
        if kind == "not_":
            return ir.not_(left, SPAN)
        right = self.scalar(scope, BOOL, depth - 1)
        return ir.Xor(left, right, BOOL, SPAN) if kind == "xor" else getattr(ir, kind)(left, right, SPAN)

    def tensor(self, scope: list[ir.Var]) -> ir.Expr:
        known = [v for v in scope if v.type is TENSOR]
        first, second = self.pick(*known), self.pick(*known)
        made: ir.Call = self.pick(
            lambda: ir.create_op_call("tensor.exp", [first], SPAN),
            lambda: ir.create_op_call("tensor.add", [first, second], SPAN),
            lambda: ir.create_op_call("tensor.muls", [first, self.scalar(scope, FP32, 1)], SPAN),
            lambda: ir.create_op_call("tensor.full", [self.extents(), self.fill()], {"dtype": FP32}, SPAN),
        )()
        if self.draw(st.booleans()):
            made = ir.set_call_attrs(made, {self.pick(*ATTR_KEYS): self.attribute(scope)})
        return made

    def extents(self) -> ir.MakeTuple:
        return ir.MakeTuple([ir.ConstInt(8, INDEX, SPAN), ir.ConstInt(16, INDEX, SPAN)], SPAN)

    def fill(self) -> ir.Expr:
        return self.pick(ir.ConstInt(1, INDEX, SPAN), ir.ConstFloat(0.1, FP32, SPAN))  # type: ignore[no-any-return]

    def attribute(self, scope: list[ir.Var]) -> Any:
        return self.pick(
            3,
            -1,
            True,
            'it\'s "quoted" \\ and \n broken',
            0.1,
            FP16,
            ir.MemorySpace.Vec,
            ir.TileLayout.col_major,
            ir.PadValue.min,
            [ir.ArgDirection.NoDep, ir.ArgDirection.Scalar],
            [1, 2],
            list(scope[:2]),
            scope[0],
            None,
        )

    # statements ------------------------------------------------------------------------------------------------

    def block(self, scope: list[ir.Var], depth: int) -> list[ir.Stmt]:
        scope = list(scope)
        stmts: list[ir.Stmt] = []
        for _ in range(self.draw(st.integers(0, 4))):
            stmt, defined = self.statement(scope, depth)
            if self.draw(st.integers(0, 5)) == 0:
                stmt = ir.attach_leading_comments(stmt, [self.pick("a comment", "", "# twice", "größe")])
            stmts.append(stmt)
            scope += defined
        return stmts

    def statement(self, scope: list[ir.Var], depth: int) -> tuple[ir.Stmt, list[ir.Var]]:
        simple = [self.assign, self.assign_tensor, self.evaluate]
        simple += [self.allocate, self.assign_tile] if self.callee is None else [self.submit]
        nested = [self.loop, self.carrying_loop, self.branch, self.yielding_branch, self.while_loop, self.region]
        nested += [self.call] if self.callee is not None else []
        return self.pick(*simple, *(nested if depth else []))(scope, depth)  # type: ignore[no-any-return]

    def assign(self, scope: list[ir.Var], depth: int) -> tuple[ir.Stmt, list[ir.Var]]:
        dtype = self.pick(INDEX, INT32, INT64, FP32, FP16, BOOL)
        value = self.scalar(scope, dtype)
        var = ir.Var(self.name(), value.type, SPAN)
        return ir.AssignStmt(var, value, SPAN), [var]

    def assign_tensor(self, scope: list[ir.Var], depth: int) -> tuple[ir.Stmt, list[ir.Var]]:
        var = ir.Var(self.name(), TENSOR, SPAN)
        value = self.tensor(scope)
        value = ir.Call(value.op, value.args, value.kwargs, value.attrs, TENSOR, SPAN)
        return ir.AssignStmt(var, value, SPAN), [var]

    def evaluate(self, scope: list[ir.Var], depth: int) -> tuple[ir.Stmt, list[ir.Var]]:
        return ir.EvalStmt(ir.create_op_call("system.fence", [], SPAN), SPAN), []

    def call(self, scope: list[ir.Var], depth: int) -> tuple[ir.Stmt, list[ir.Var]]:
        assert self.callee is not None
        args = [self.pick(*[v for v in scope if v.type is TENSOR]), *scope[1:5]]
        made = ir.Call(ir.GlobalVar("kern"), args, {}, {"note": self.attribute(scope)}, TENSOR, SPAN)
        var = ir.Var(self.name(), TENSOR, SPAN)
        return ir.AssignStmt(var, made, SPAN), [var]

    def submit(self, scope: list[ir.Var], depth: int) -> tuple[ir.Stmt, list[ir.Var]]:
        args = [self.pick(*[v for v in scope if v.type is TENSOR]), *scope[1:5]]
        tasks = [v for v in scope if v.type is TASK]
        made = ir.Submit(
            ir.GlobalVar("kern"),
            args[: self.draw(st.integers(1, 5))],
            [self.pick(*tasks)] if tasks else [],
            attrs=self.pick({}, {"mine": 3}, {"dump_vars": [args[0]]}),
            type=TASKED,
            span=SPAN,
            core_num=self.pick(None, scope[2]),
            allow_early_resolve=self.draw(st.booleans()),
            predicate=self.pick(None, self.condition(scope, 1)),
        )
        whole = ir.Var(self.name(), TASKED, SPAN)
        task = ir.Var(self.name(), TASK, SPAN)
        item = ir.AssignStmt(task, ir.TupleGetItemExpr(whole, 1, SPAN), SPAN)
        return self.seq([ir.AssignStmt(whole, made, SPAN), item]), [task]

    def allocate(self, scope: list[ir.Var], depth: int) -> tuple[ir.Stmt, list[ir.Var]]:
        base = ir.Var(self.name(), ir.PtrType.get(), SPAN)
        size = [ir.ConstInt(ir.MemorySpace.Vec.value, INDEX, SPAN), ir.ConstInt(512, INDEX, SPAN)]
        made = ir.Call(ir.Op("tile.alloc"), size, self.pick({}, {"pinned": True}), {}, base.type, SPAN)
        return ir.AssignStmt(base, made, SPAN), [base]

    def assign_tile(self, scope: list[ir.Var], depth: int) -> tuple[ir.Stmt, list[ir.Var]]:
        bases = [v for v in scope if isinstance(v.type, ir.PtrType)]
        known = self.of_type(scope, INDEX)
        space = self.pick(ir.MemorySpace.Vec, ir.MemorySpace.Mat, ir.MemorySpace.Acc)
        rows = self.pick(ir.ConstInt(3, INDEX, SPAN), *known)
        offset = self.pick(ir.ConstInt(64, INT64, SPAN), ir.ConstInt(0, INDEX, SPAN), rows)
        memref = self.pick(
            None,
            ir.MemRef(self.pick("mem_vec_0", *bases), offset, 512, SPAN),
            ir.MemRef("ring", 0, 0, SPAN, True, 2)[rows if isinstance(rows, ir.Var) else 1],
            ir.MemRef(self.pick("mem_vec_1", *bases), offset, 512, SPAN, False, 2, ir.ConstInt(1, INDEX, SPAN)),
        )
        view = self.pick(
            None,
            ir.TileView(valid_shape=[rows, 16]),
            ir.TileView(blayout=ir.TileLayout.col_major, slayout=ir.TileLayout.row_major),
            ir.TileView(stride=[16, 1], start_offset=rows, pad=ir.PadValue.min, compact=ir.CompactMode.normal),
            ir.TileView([8, rows], fractal=32),
        )
        type_ = ir.TileType([8, 16], FP32, memref, view, space)
        tiles = [v for v in scope if isinstance(v.type, ir.TileType)]
        if tiles:
            made = ir.Call(ir.Op("tile.exp"), [self.pick(*tiles)], {}, {}, type_, SPAN)
        else:
            made = ir.Call(
                ir.Op("tile.create"), [self.extents()], {"dtype": FP32, "target_memory": space}, {}, type_, SPAN
            )
        var = ir.Var(self.name(), type_, SPAN)
        return ir.AssignStmt(var, made, SPAN), [var]

    def seq(self, stmts: list[ir.Stmt]) -> ir.SeqStmts:
        return ir.SeqStmts(stmts, SPAN)

    def loop_head(self, scope: list[ir.Var]) -> tuple[ir.Var, ir.Expr, ir.Expr, ir.Expr, ir.ForKind, dict[str, Any]]:
        kind = self.pick(*ir.ForKind)
        fixed = kind is ir.ForKind.Unroll
        start = ir.ConstInt(self.pick(0, 2), INDEX, SPAN)
        stop = ir.ConstInt(8, INDEX, SPAN) if fixed else self.scalar(scope, INDEX)
        step = ir.ConstInt(self.pick(1, 2, -1), INDEX, SPAN)
        attrs: dict[str, Any] = {"pipeline_stages": 2} if kind is ir.ForKind.Pipeline else {}
        if self.draw(st.booleans()):
            attrs["iter_arg_rebind_0"] = self.pick(False, 3, "text")
        return ir.Var(self.name(), ir.ScalarType(INDEX), SPAN), start, stop, step, kind, attrs

    def loop(self, scope: list[ir.Var], depth: int) -> tuple[ir.Stmt, list[ir.Var]]:
        var, start, stop, step, kind, attrs = self.loop_head(scope)
        body = self.seq(self.block([*scope, var], depth - 1))
        return ir.ForStmt(var, start, stop, step, [], body, [], SPAN, kind, attrs), []

    def carried(self, scope: list[ir.Var]) -> list[ir.IterArg]:
        tensors = [v for v in scope if v.type is TENSOR]
        inits = [self.pick(*tensors), self.scalar(scope, INDEX)][: self.draw(st.integers(1, 2))]
        return [ir.IterArg(self.name(), init.type, init, SPAN) for init in inits]

    def next_values(self, scope: list[ir.Var], args: list[ir.IterArg]) -> list[ir.Expr]:
        tensors = [v for v in scope if v.type is TENSOR]
        return [self.pick(*tensors) if a.type is TENSOR else self.scalar(scope, INDEX) for a in args]

    def carrying_loop(self, scope: list[ir.Var], depth: int) -> tuple[ir.Stmt, list[ir.Var]]:
        var, start, stop, step, kind, attrs = self.loop_head(scope)
        args = self.carried(scope)
        inner = [*scope, var, *args]
        body = [*self.block(inner, depth - 1), ir.YieldStmt(self.next_values(inner, args), SPAN)]
        results = [ir.Var(self.name(), a.type, SPAN) for a in args]
        return ir.ForStmt(var, start, stop, step, args, self.seq(body), results, SPAN, kind, attrs), results

    def while_loop(self, scope: list[ir.Var], depth: int) -> tuple[ir.Stmt, list[ir.Var]]:
        args = self.carried(scope)
        inner = [*scope, *args]
        body = [*self.block(inner, depth - 1), ir.YieldStmt(self.next_values(inner, args), SPAN)]
        results = [ir.Var(self.name(), a.type, SPAN) for a in args]
        return ir.WhileStmt(self.condition(inner, 2), args, self.seq(body), results, SPAN), results

    def branch(self, scope: list[ir.Var], depth: int) -> tuple[ir.Stmt, list[ir.Var]]:
        other = self.seq(self.block(scope, depth - 1)) if self.draw(st.booleans()) else None
        return ir.IfStmt(self.condition(scope, 2), self.seq(self.block(scope, depth - 1)), other, [], SPAN), []

    def yielding_branch(self, scope: list[ir.Var], depth: int) -> tuple[ir.Stmt, list[ir.Var]]:
        tensors = [v for v in scope if v.type is TENSOR]
        sides = [self.seq([*self.block(scope, depth - 1), ir.YieldStmt([self.pick(*tensors)], SPAN)]) for _ in range(2)]
        result = ir.Var(self.name(), TENSOR, SPAN)
        return ir.IfStmt(self.condition(scope, 2), sides[0], sides[1], [result], SPAN), [result]

    def region(self, scope: list[ir.Var], depth: int) -> tuple[ir.Stmt, list[ir.Var]]:
        body = self.seq(self.block(scope, 0))
        hint = self.pick("", "hint")
        make = self.pick(
            lambda: ir.ClusterScopeStmt(hint, body=body, span=SPAN),
            lambda: ir.HierarchyScopeStmt(ir.Level.CHIP, ir.Role.Orchestrator, hint, body=body, span=SPAN),
            lambda: ir.InCoreScopeStmt(
                self.pick(*ir.SplitMode), hint, body=body, span=SPAN, attrs=self.pick({}, {"slot_num": 4}, {"mine": 1})
            ),
        )
        return make(), []


@st.composite
def programs(draw: Callable[[Any], Any]) -> ir.Program:
    """Programs of two functions that use most of the language."""
    return Generator(draw).program()
