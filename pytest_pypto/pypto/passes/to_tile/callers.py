"""Callers of kernels that got new Out parameters."""

from __future__ import annotations

from dataclasses import replace

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import FunctionType, ParamDirection, TensorLayout
from ...ir.op_table import create_op_call
from ...ir.program import Function, Program
from ...ir.visitor import IRMutator, calls_in, replace_call, replace_submit
from .kernel import Output

_WRAPPERS = (FunctionType.Group, FunctionType.Spmd)


def forward_outputs(program: Program, outputs: dict[str, list[Output]]) -> Program:
    """Wrappers get the same parameters and hand them on; host functions create the tensors before the call."""
    if not outputs:
        return program
    grown = dict(outputs)
    functions: dict[str, Function] = {f.name: f for f in program.functions.values()}
    todo = True
    while todo:
        todo = False
        for name, func in functions.items():
            if func.func_type in _WRAPPERS and name not in grown:
                called = [c.op.name for c in calls_in(func.body) if c.op.name in grown]
                if called:
                    functions[name], grown[name] = _wrapped(func, grown)
                    todo = True
    made = [f if f.func_type in _WRAPPERS else _adapted(f, grown) for f in functions.values()]
    return program.with_functions(made)


def _wrapped(func: Function, outputs: dict[str, list[Output]]) -> tuple[Function, list[Output]]:
    rewriter = _Passing(outputs)
    body = rewriter.visit_stmt(func.body)
    pairs = [*func.pairs, *((o.var, ParamDirection.Out) for o in rewriter.added)]
    return func.with_(params=pairs, body=body), rewriter.added


def _adapted(func: Function, outputs: dict[str, list[Output]]) -> Function:
    body = _Creating(outputs).visit_stmt(func.body)
    return func if body is func.body else func.with_(body=body)


class _Passing(IRMutator):
    """Adds parameters of the wrapper as arguments."""

    def __init__(self, outputs: dict[str, list[Output]]) -> None:
        super().__init__()
        self.outputs = outputs
        self.added: list[Output] = []

    def arguments(self, call: e.Call | e.Submit) -> list[e.Var]:
        """Variables for the new parameters of the callee."""
        found = self.outputs.get(call.op.name, []) if isinstance(call.op, e.GlobalVar) else []
        fresh = [Output(e.Var(o.var.name_hint, o.var.type, call.span), o.position) for o in found]
        self.added += fresh
        return [o.var for o in fresh]

    def visit_call(self, op: e.Call) -> e.Expr:
        new = self.arguments(op)
        made = super().visit_call(op)
        assert isinstance(made, e.Call)
        return replace_call(made, args=(*made.args, *new)) if new else made

    def visit_submit(self, op: e.Submit) -> e.Expr:
        new = self.arguments(op)
        made = super().visit_submit(op)
        assert isinstance(made, e.Submit)
        return replace_submit(made, args=(*made.args, *new)) if new else made


class _Creating(_Passing):
    """Creates the tensors in front of the statement that calls."""

    def visit_seq_stmts(self, op: s.SeqStmts) -> s.Stmt:
        made: list[s.Stmt] = []
        for stmt in op.stmts:
            before = len(self.added)
            new = self.visit_stmt(stmt)
            if isinstance(stmt, (s.AssignStmt, s.EvalStmt)):
                made += [_create(o.var, stmt) for o in self.added[before:]]
            made.append(new)
        same = len(made) == len(op.stmts) and all(a is b for a, b in zip(made, op.stmts, strict=True))
        return op if same else replace(op, stmts=tuple(made))


def _create(var: e.Var, stmt: s.Stmt) -> s.Stmt:
    shape = e.MakeTuple(getattr(var.type, "shape", ()), stmt.span)
    kwargs = {"dtype": getattr(var.type, "dtype"), "layout": TensorLayout.ND}  # noqa: B009
    call = create_op_call("tensor.create", [shape], kwargs, span=stmt.span)
    return s.AssignStmt(var, call, stmt.span)
