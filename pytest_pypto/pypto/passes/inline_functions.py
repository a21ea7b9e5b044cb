"""InlineFunctions: replaces calls of Inline functions by their bodies, then drops these functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.enums import FunctionType
from ..ir.program import Function, Program
from ..ir.visitor import IRMutator, exprs_of, walk_exprs, walk_stmts
from ._util import PassError
from .base import Pass


@dataclass(frozen=True)
class InlineFunctions(Pass):
    """Splices the body of every Inline function into its callers.

    Arguments replace parameters (a parameter that the body assigns gets a variable of its own); locals are renamed
    `<name>_inline<k>` with a fresh k per splice; the returned value becomes the value of the call statement.

    Raises (PassError): Inline functions that call each other in a cycle; a call inside another expression; a return
    that is not the last statement.
    """

    name = "InlineFunctions"
    produces = frozenset({"InlineFunctionsEliminated"})

    def apply(self, program: Program) -> Program:
        """The program without Inline functions."""
        inline = {f.name: f for f in program.functions.values() if f.func_type is FunctionType.Inline}
        if not inline:
            return program
        expander = _Expander(inline)
        kept = [f for f in program.functions.values() if f.func_type is not FunctionType.Inline]
        return program.with_functions([expander.function(f, count()) for f in kept])


class _Expander:
    """Expands functions; bodies of Inline functions are expanded once and then spliced."""

    def __init__(self, inline: dict[str, Function]) -> None:
        self.inline = inline
        self.ready: dict[str, Function] = {}
        self.open: list[str] = []

    def function(self, func: Function, numbers: count[int]) -> Function:
        body = _Splicer(self, numbers).visit_stmt(func.body)
        return func if body is func.body else func.with_(body=body)

    def expanded(self, name: str, call: e.Call) -> Function:
        """The Inline function `name` with everything inlined into it."""
        if name in self.open:
            cycle = " -> ".join([*self.open[self.open.index(name) :], name])
            raise PassError(f"Inline functions call each other in a cycle: {cycle}; break the cycle", call)
        if name not in self.ready:
            self.open.append(name)
            self.ready[name] = self.function(self.inline[name], count(1000))
            self.open.pop()
        return self.ready[name]


class _Splicer(IRMutator):
    """Rewrites the statements of one caller."""

    def __init__(self, expander: _Expander, numbers: count[int]) -> None:
        super().__init__()
        self.expander = expander
        self.numbers = numbers

    def callee(self, expr: e.Expr | None) -> Function | None:
        """The Inline function that `expr` calls as a whole."""
        if isinstance(expr, e.Call) and isinstance(expr.op, e.GlobalVar) and expr.op.name in self.expander.inline:
            return self.expander.expanded(expr.op.name, expr)
        return None

    def visit_stmt(self, stmt: s.Stmt) -> s.Stmt:
        for root in exprs_of(stmt):
            whole = isinstance(stmt, (s.AssignStmt, s.EvalStmt)) or (
                isinstance(stmt, s.ReturnStmt) and len(stmt.value) == 1
            )
            for x in walk_exprs(root):
                if not isinstance(x, (e.Call, e.Submit)) or x.op.name not in self.expander.inline:
                    continue
                if isinstance(x.op, e.GlobalVar) and not (whole and x is root and isinstance(x, e.Call)):
                    raise PassError(
                        f"Inline function '{x.op.name}' is called inside another expression or submitted; "
                        "assign the call to a name first and use the name",
                        x,
                        stmt,
                    )
        return super().visit_stmt(stmt)

    def splice(self, call: e.Call, func: Function) -> tuple[list[s.Stmt], tuple[e.Expr, ...]]:
        """Fresh statements of the body, and the returned values."""
        k = next(self.numbers)
        if len(call.args) != len(func.params):
            raise PassError(f"'{func.name}' takes {len(func.params)} arguments, got {len(call.args)}", call)
        cloner = _Renamer(f"_inline{k}")
        assigned = {st.var for st in _assigns(func.body)}
        stmts: list[s.Stmt] = []
        for param, arg in zip(func.params, call.args, strict=True):
            if param in assigned:
                local = e.Var(f"{param.name_hint}_inline{k}", param.type, param.span)
                stmts.append(s.AssignStmt(local, arg, call.span))
                cloner.var_map[param] = local
            else:
                cloner.var_map[param] = arg
        body = s.stmts_of(cloner.visit_stmt(func.body))
        values: tuple[e.Expr, ...] = ()
        if body and isinstance(body[-1], s.ReturnStmt):
            values = body[-1].value
            body = body[:-1]
        early = next((x for b in body for x in _returns(b)), None)
        if early is not None:
            raise PassError(f"Inline function '{func.name}' returns before its end; return once, at the end", early)
        return [*stmts, *body], values

    def visit_assign_stmt(self, op: s.AssignStmt) -> s.Stmt:
        func = self.callee(op.value)
        if func is None:
            return super().visit_assign_stmt(op)
        assert isinstance(op.value, e.Call)
        stmts, values = self.splice(op.value, func)
        if not values:
            raise PassError(f"Inline function '{func.name}' returns nothing, but its value is used", op)
        value = values[0] if len(values) == 1 else e.MakeTuple(values, op.span)
        return s.seq([*stmts, replace(op, value=value)], op.span)

    def visit_eval_stmt(self, op: s.EvalStmt) -> s.Stmt:
        func = self.callee(op.expr)
        if func is None:
            return super().visit_eval_stmt(op)
        assert isinstance(op.expr, e.Call)
        return s.seq(self.splice(op.expr, func)[0], op.span)

    def visit_return_stmt(self, op: s.ReturnStmt) -> s.Stmt:
        func = self.callee(op.value[0]) if len(op.value) == 1 else None
        if func is None:
            return super().visit_return_stmt(op)
        assert isinstance(op.value[0], e.Call)
        stmts, values = self.splice(op.value[0], func)
        return s.seq([*stmts, replace(op, value=values)], op.span)


class _Renamer(IRMutator):
    """Clones a body; every local definition gets a fresh variable with a suffix."""

    def __init__(self, suffix: str) -> None:
        super().__init__()
        self.suffix = suffix

    def define(self, var: e.Var) -> e.Var:
        mapped = self.var_map.get(var)
        if isinstance(mapped, e.Var):
            return mapped
        type_, name = self.visit_type(var.type), var.name_hint + self.suffix
        fresh: e.Var
        if isinstance(var, e.IterArg):
            fresh = e.IterArg(name, type_, self.visit_expr(var.initValue), var.span)
        else:
            fresh = e.Var(name, type_, var.span)
        self.var_map[var] = fresh
        return fresh


def _assigns(body: s.Stmt) -> list[s.AssignStmt]:
    return [x for x in walk_stmts(body) if isinstance(x, s.AssignStmt)]


def _returns(body: s.Stmt) -> list[s.ReturnStmt]:
    return [x for x in walk_stmts(body) if isinstance(x, s.ReturnStmt)]
