"""Checks of control flow and names: single assignment, definitions before uses, yields, breaks, nested calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.enums import ForKind, FunctionType
from ..ir.program import Function, Program
from ..ir.span import Span
from ..ir.visitor import defs_of, exprs_of, uses_of, walk_exprs, walk_stmts
from ._util import type_vars
from .diagnostic_types import Diagnostic, DiagnosticSeverity

Rule = Callable[[Program], Iterable[Diagnostic]]


def error(rule: str, message: str, span: Span, code: int = 0) -> Diagnostic:
    """An error diagnostic."""
    return Diagnostic(DiagnosticSeverity.Error, rule, message, span, code)


def per_function(check: Callable[[Function], Iterable[Diagnostic]]) -> Rule:
    """A rule on programs from a check on functions; messages name the function."""

    def rule(program: Program) -> Iterator[Diagnostic]:
        for func in program.functions.values():
            for d in check(func):
                text = f"Function '{func.name}': {d.message}"
                yield Diagnostic(
                    d.severity, d.rule_name, text, d.span if d.span.is_valid() else func.span, d.error_code
                )

    return rule


# single assignment ------------------------------------------------------------------------------------------------


def ssa_form(func: Function) -> Iterator[Diagnostic]:
    """One definition per variable, seen by all its uses; loops and ifs hand on as many values as they take."""
    seen: set[e.Var] = set(func.params)
    for stmt in walk_stmts(func.body):
        for var in defs_of(stmt):
            if var in seen:
                yield error("SSAForm", f"variable '{var.name_hint}' is assigned more than once", stmt.span, 1)
            seen.add(var)
        if isinstance(stmt, (s.ForStmt, s.WhileStmt)):
            yield from _loop_counts(stmt)
        elif isinstance(stmt, s.IfStmt):
            yield from _if_counts(stmt)
        elif isinstance(stmt, s.SeqStmts):
            yield from _yield_places(stmt)
    for var, span in _unseen(func):
        if var in seen:
            text = f"variable '{var.name_hint}' is used where its definition is not seen"
            yield error("SSAForm", text, span, 6)


def _loop_counts(loop: s.ForStmt | s.WhileStmt) -> Iterator[Diagnostic]:
    n = len(loop.iter_args)
    if len(loop.return_vars) != n:
        text = f"loop has {n} iteration arguments but {len(loop.return_vars)} return variables"
        yield error("SSAForm", text, loop.span, 4)
    yield from _body_yield(loop.body, n, "loop body", loop.span)


def _if_counts(branch: s.IfStmt) -> Iterator[Diagnostic]:
    n = len(branch.return_vars)
    if n and branch.else_body is None:
        yield error("SSAForm", f"if gives {n} values but has no else branch", branch.span, 3)
    yield from _body_yield(branch.then_body, n, "then branch", branch.span)
    if branch.else_body is not None:
        yield from _body_yield(branch.else_body, n, "else branch", branch.span)


def last_yield(body: s.Stmt | None) -> s.YieldStmt | None:
    """The yield that ends a body, inside runtime scopes too."""
    stmts = s.stmts_of(body)
    if not stmts:
        return None
    if isinstance(stmts[-1], s.RuntimeScopeStmt):
        return last_yield(stmts[-1].body)
    return stmts[-1] if isinstance(stmts[-1], s.YieldStmt) else None


def _body_yield(body: s.Stmt, n: int, what: str, span: Span) -> Iterator[Diagnostic]:
    found = last_yield(body)
    if found is None:
        if n:
            yield error("SSAForm", f"{what} must end in a yield of {n} values", span, 3)
    elif len(found.value) != n:
        yield error("SSAForm", f"{what} yields {len(found.value)} values, {n} are expected", found.span, 5)


def _yield_places(body: s.SeqStmts) -> Iterator[Diagnostic]:
    for stmt in s.stmts_of(body)[:-1]:
        if isinstance(stmt, s.YieldStmt):
            yield error("SSAForm", "a yield must be the last statement of its body", stmt.span, 7)


# definitions before uses ------------------------------------------------------------------------------------------


class _Uses:
    """Walks a function with the visible variables; names that only occur in types are symbols, not uses."""

    def __init__(self, known: set[e.Var]) -> None:
        self.known = known
        self.found: list[tuple[e.Var, Span]] = []
        self.added: list[e.Var] = []

    def uses(self, expr: e.Expr, span: Span) -> None:
        for var in uses_of(expr):
            if var not in self.known and not isinstance(var, (e.MemRef, e.WindowBuffer)):
                self.found.append((var, span))

    def define(self, variables: Iterable[e.Var]) -> None:
        for var in variables:
            if var not in self.known:
                self.known.add(var)
                self.added.append(var)

    def inner(self, body: s.Stmt | None, variables: Iterable[e.Var] = ()) -> set[e.Var]:
        """Check a body that sees `variables`; what it defines is forgotten afterwards, and returned."""
        mark = len(self.added)
        self.define(variables)
        self.body(body)
        gone = self.added[mark:]
        del self.added[mark:]
        self.known.difference_update(gone)
        return set(gone)

    def body(self, body: s.Stmt | None) -> None:
        for stmt in s.stmts_of(body):
            self.stmt(stmt)

    def stmt(self, stmt: s.Stmt) -> None:
        if isinstance(stmt, s.WhileStmt):
            self.loop(stmt)
        else:
            for root in exprs_of(stmt):
                self.uses(root, stmt.span)
        if isinstance(stmt, s.ForStmt):
            self.inner(stmt.body, (stmt.loop_var, *stmt.iter_args))
        elif isinstance(stmt, s.IfStmt):
            then, other = self.inner(stmt.then_body), self.inner(stmt.else_body)
            self.define(then & other)  # before ConvertToSSA a variable may be assigned in both branches
        elif isinstance(stmt, s.ScopeStmt):
            self.body(stmt.body)
        self.define(v for v in defs_of(stmt) if not isinstance(v, e.IterArg))

    def loop(self, stmt: s.WhileStmt) -> None:
        for arg in stmt.iter_args:
            self.uses(arg.initValue, stmt.span)
        mark = len(self.added)
        self.define(stmt.iter_args)
        self.uses(stmt.condition, stmt.span)
        self.inner(stmt.body)
        gone = self.added[mark:]
        del self.added[mark:]
        self.known.difference_update(gone)


def use_after_def(func: Function) -> Iterator[Diagnostic]:
    """Every variable is defined before it is read, in a scope that is still open."""
    for var, span in _unseen(func):
        yield error("UseAfterDef", f"variable '{var.name_hint}' is used before it is defined", span, 401)


def _unseen(func: Function) -> list[tuple[e.Var, Span]]:
    """Uses of variables that no definition before them in an open scope gives a value, with their places."""
    symbols = {v for t in (*(p.type for p in func.params), *func.return_types) for v in type_vars(t)}
    walker = _Uses(symbols | set(func.params))
    walker.body(func.body)
    return walker.found


# calls ------------------------------------------------------------------------------------------------------------


def _is_call(x: e.Expr) -> bool:
    return isinstance(x, (e.Call, e.Submit))


def no_nested_calls(func: Function) -> Iterator[Diagnostic]:
    """Calls stand alone on the right of an assignment or as a statement."""
    for stmt in walk_stmts(func.body):
        for root in exprs_of(stmt):
            yield from _nested(root, stmt)


def _nested(root: e.Expr, stmt: s.Stmt) -> Iterator[Diagnostic]:
    inner = [x for x in walk_exprs(root) if _is_call(x) and x is not root]
    places = {s.IfStmt: (202, "an if condition"), s.ForStmt: (203, "loop bounds"), s.WhileStmt: (202, "a condition")}
    if type(stmt) in places and (inner or _is_call(root)):
        code, where = places[type(stmt)]
        yield error("NoNestedCalls", f"call in {where}", stmt.span, code)
    elif isinstance(stmt, (s.ReturnStmt, s.YieldStmt)) and (inner or _is_call(root)):
        yield error("NoNestedCalls", "call in a return or yield", stmt.span, 201)
    elif inner:
        code = 201 if _is_call(root) else 205 if isinstance(root, e.UnaryExpr) else 204
        yield error("NoNestedCalls", "call inside another expression", stmt.span, code)


# shape of statements ----------------------------------------------------------------------------------------------


def break_continue_valid(func: Function) -> Iterator[Diagnostic]:
    """break and continue stand in a sequential for or a while."""

    def check(body: s.Stmt | None, loop: s.Stmt | None) -> Iterator[Diagnostic]:
        for stmt in s.stmts_of(body):
            if isinstance(stmt, (s.BreakStmt, s.ContinueStmt)):
                word = "break" if isinstance(stmt, s.BreakStmt) else "continue"
                if loop is None:
                    yield error("BreakContinueValid", f"{word} outside of a loop", stmt.span)
                elif isinstance(loop, s.ForStmt) and loop.kind is not ForKind.Sequential:
                    text = f"{word} in a {loop.kind.name.lower()} loop; use pl.range"
                    yield error("BreakContinueValid", text, stmt.span)
            elif isinstance(stmt, (s.ForStmt, s.WhileStmt)):
                yield from check(stmt.body, stmt)
            elif isinstance(stmt, s.IfStmt):
                yield from check(stmt.then_body, loop)
                yield from check(stmt.else_body, loop)
            elif isinstance(stmt, s.ScopeStmt):
                yield from check(stmt.body, loop)

    return check(func.body, None)


def no_redundant_blocks(func: Function) -> Iterator[Diagnostic]:
    """No sequence directly inside a sequence."""
    for stmt in walk_stmts(func.body):
        if isinstance(stmt, s.SeqStmts) and any(isinstance(x, s.SeqStmts) for x in stmt.stmts):
            yield error("NoRedundantBlocks", "a sequence of statements is nested in another", stmt.span)


def pipeline_loop_valid(func: Function) -> Iterator[Diagnostic]:
    """Pipeline loops, and only they, have a number of stages."""
    for stmt in walk_stmts(func.body):
        if isinstance(stmt, s.ForStmt) and (stmt.kind is ForKind.Pipeline) != ("pipeline_stages" in stmt.attrs):
            word = "lacks" if stmt.kind is ForKind.Pipeline else "has"
            yield error("PipelineLoopValid", f"{stmt.kind.name} loop {word} a number of pipeline stages", stmt.span)


def no_nested_incore(func: Function) -> Iterator[Diagnostic]:
    """No core-group region inside another."""
    for stmt in walk_stmts(func.body):
        if isinstance(stmt, s.InCoreScopeStmt):
            for inner in walk_stmts(stmt.body):
                if isinstance(inner, s.InCoreScopeStmt):
                    yield error("NoNestedInCore", "a CORE_GROUP region is nested in another", inner.span)


_DEVICE = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)


def structured_ctrl_flow(func: Function) -> Iterator[Diagnostic]:
    """No break or continue in device functions."""
    if func.func_type in _DEVICE:
        for stmt in walk_stmts(func.body):
            if isinstance(stmt, (s.BreakStmt, s.ContinueStmt)):
                yield error("StructuredCtrlFlow", "break or continue is left in device code", stmt.span)


def no_loops_of(kind: ForKind, rule: str) -> Callable[[Function], Iterator[Diagnostic]]:
    """No loop of a kind is left."""

    def check(func: Function) -> Iterator[Diagnostic]:
        for stmt in walk_stmts(func.body):
            if isinstance(stmt, s.ForStmt) and stmt.kind is kind:
                yield error(rule, f"a {kind.name.lower()} loop is left", stmt.span)

    return check


def inline_functions_eliminated(program: Program) -> Iterator[Diagnostic]:
    """No Inline function is left."""
    for func in program.functions.values():
        if func.func_type is FunctionType.Inline:
            yield error("InlineFunctionsEliminated", f"Inline function '{func.name}' is left", func.span)


FLOW_RULES: dict[str, Rule] = {
    "SSAForm": per_function(ssa_form),
    "UseAfterDef": per_function(use_after_def),
    "NoNestedCalls": per_function(no_nested_calls),
    "BreakContinueValid": per_function(break_continue_valid),
    "NoRedundantBlocks": per_function(no_redundant_blocks),
    "NormalizedStmtStructure": per_function(no_redundant_blocks),
    "PipelineLoopValid": per_function(pipeline_loop_valid),
    "NoNestedInCore": per_function(no_nested_incore),
    "StructuredCtrlFlow": per_function(structured_ctrl_flow),
    "UnrollResolved": per_function(no_loops_of(ForKind.Unroll, "UnrollResolved")),
    "PipelineResolved": per_function(no_loops_of(ForKind.Pipeline, "PipelineResolved")),
    "InlineFunctionsEliminated": inline_functions_eliminated,
}
