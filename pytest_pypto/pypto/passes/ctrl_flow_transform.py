"""CtrlFlowTransform: rewrites `break` and `continue` in device code into branches and a flag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

from ..ir import expr as e
from ..ir import scalar_ops as ops
from ..ir import stmt as s
from ..ir.dtypes import BOOL
from ..ir.enums import is_incore_type
from ..ir.program import Function, Program
from ..ir.types import ScalarType
from ..ir.visitor import IRMutator, substitute_stmt, walk_stmts
from ._util import PassError
from .base import FunctionPass

Body = list[s.Stmt]


@dataclass(frozen=True)
class CtrlFlowTransform(FunctionPass):
    """Structured control flow for device functions and CORE_GROUP regions.

    `continue`: the statements after `if c: continue` move into its else branch; where both branches may go on, a flag
    guards them. `break`: a for becomes a while over an explicit iterator with a flag (`not flag`), a while gets the
    flag in its condition. Host code keeps its native jumps, except where a value that the loop carries was assigned
    before the jump: single assignment could not express it.

    Raises (PassError): a jump that would leave a CORE_GROUP region.
    """

    name = "CtrlFlowTransform"
    produces = frozenset({"StructuredCtrlFlow"})

    def apply_function(self, func: Function, program: Program) -> Function:
        """The function without jumps in its device code."""
        if not any(isinstance(x, (s.BreakStmt, s.ContinueStmt)) for x in walk_stmts(func.body)):
            return func
        body = _Lowering(is_incore_type(func.func_type), set(func.params)).visit_stmt(func.body)
        return func if body is func.body else func.with_(body=body)


class _Lowering(IRMutator):
    """Walks a function; `device` says whether the current statements run on a core."""

    def __init__(self, device: bool, known: set[e.Var]) -> None:
        super().__init__()
        self.device = device
        self.known = known
        self.numbers = count()

    def visit_in_core_scope_stmt(self, op: s.InCoreScopeStmt) -> s.Stmt:
        stray = next(iter(_jumps(s.stmts_of(op.body))), None)
        if stray is not None:
            word = "break" if isinstance(stray, s.BreakStmt) else "continue"
            raise PassError(
                f"'{word}' leaves the device region it stands in; decide in the host loop, or move the loop inside",
                stray,
                op,
            )
        before, self.device = self.device, True
        made = super().visit_in_core_scope_stmt(op)
        self.device = before
        return made

    def visit_assign_stmt(self, op: s.AssignStmt) -> s.Stmt:
        self.known.add(op.var)
        return super().visit_assign_stmt(op)

    def visit_for_stmt(self, op: s.ForStmt) -> s.Stmt:
        return self.loop(op)

    def visit_while_stmt(self, op: s.WhileStmt) -> s.Stmt:
        return self.loop(op)

    def loop(self, op: s.ForStmt | s.WhileStmt) -> s.Stmt:
        """Rewrite the inner loops, then this one when it must be."""
        outer = frozenset(self.known)
        made = super().visit_for_stmt(op) if isinstance(op, s.ForStmt) else super().visit_while_stmt(op)
        assert isinstance(made, (s.ForStmt, s.WhileStmt))
        jumps = _jumps(s.stmts_of(made.body))
        if not jumps or not (self.device or _carried_before_jump(made, outer)):
            return made
        before, plain, after = _imperative(made)
        k = next(self.numbers)
        if any(isinstance(j, s.BreakStmt) for j in jumps):
            lowered = _BreakLoop(plain, k).statements()
        else:
            body = _Jumps(None, k).body(list(s.stmts_of(plain.body)))
            lowered = [replace(plain, body=s.seq(body, plain.body.span))]
        return s.seq([*before, *lowered, *after], op.span)


def _jumps(body: Sequence[s.Stmt]) -> list[s.Stmt]:
    """break and continue of this loop level."""
    found: list[s.Stmt] = []
    for stmt in body:
        if isinstance(stmt, (s.BreakStmt, s.ContinueStmt)):
            found.append(stmt)
        elif isinstance(stmt, s.IfStmt):
            found += _jumps(s.stmts_of(stmt.then_body)) + _jumps(s.stmts_of(stmt.else_body))
        elif isinstance(stmt, (s.ScopeStmt, s.SeqStmts)):
            found += _jumps(s.stmts_of(stmt.body if isinstance(stmt, s.ScopeStmt) else stmt))
    return found


def _carried_before_jump(loop: s.ForStmt | s.WhileStmt, known: frozenset[e.Var]) -> bool:
    """A variable known before the loop is assigned in the body in front of one of its jumps."""
    dirty = False

    def scan(body: s.Stmt | None) -> bool:
        nonlocal dirty
        for stmt in s.stmts_of(body):
            if isinstance(stmt, (s.BreakStmt, s.ContinueStmt)) and dirty:
                return True
            if isinstance(stmt, s.AssignStmt):
                dirty |= stmt.var in known
            elif isinstance(stmt, (s.ForStmt, s.WhileStmt)):
                dirty |= any(isinstance(x, s.AssignStmt) and x.var in known for x in walk_stmts(stmt))
            elif isinstance(stmt, s.IfStmt):
                if scan(stmt.then_body) or scan(stmt.else_body):
                    return True
            elif isinstance(stmt, s.ScopeStmt) and scan(stmt.body):
                return True
        return False

    return scan(loop.body)


Loop = s.ForStmt | s.WhileStmt


def _imperative(loop: Loop) -> tuple[Body, Loop, Body]:
    """A loop with explicit carried values as: assignments, a loop that assigns them, and the results' assignments."""
    if not loop.iter_args:
        return [], loop, []
    cells = [e.Var(a.name_hint, a.type, a.span) for a in loop.iter_args]
    before: Body = [s.AssignStmt(v, a.initValue, a.span) for v, a in zip(cells, loop.iter_args, strict=True)]
    pairs: list[tuple[e.Var, e.Expr]] = list(zip(loop.iter_args, cells, strict=True))
    body = _YieldsToAssigns(cells).body(list(s.stmts_of(substitute_stmt(loop.body, pairs))))
    after: Body = [s.AssignStmt(r, v, loop.span) for r, v in zip(loop.return_vars, cells, strict=True)]
    changes: dict[str, object] = {"iter_args": (), "return_vars": (), "body": s.seq(body, loop.body.span)}
    if isinstance(loop, s.WhileStmt):
        mutator = IRMutator()
        mutator.var_map.update(pairs)
        changes["condition"] = mutator.visit_expr(loop.condition)
    plain: Loop = replace(loop, **changes)  # type: ignore[arg-type]
    return before, plain, after


@dataclass
class _YieldsToAssigns:
    """Turns the yield that ends a loop body into assignments, all values first."""

    cells: list[e.Var]

    def body(self, stmts: Body) -> Body:
        last = stmts[-1] if stmts else None
        if not isinstance(last, s.YieldStmt):
            return stmts
        temps = [e.Var(f"{v.name_hint}_next", v.type, v.span) for v in self.cells]
        made: Body = [s.AssignStmt(t, x, last.span) for t, x in zip(temps, last.value, strict=True)]
        made += [s.AssignStmt(v, t, last.span) for v, t in zip(self.cells, temps, strict=True)]
        return [*stmts[:-1], *made]


class _BreakLoop:
    """A loop with `break` as a while loop with a flag."""

    def __init__(self, loop: Loop, number: int) -> None:
        self.loop = loop
        self.number = number
        self.flag = e.Var("break__tmp_v0", ScalarType(BOOL), loop.span)

    def statements(self) -> Body:
        loop, span = self.loop, self.loop.span
        start: Body = [s.AssignStmt(self.flag, e.ConstBool(False, span), span)]
        body = _Jumps(self.flag, self.number).body(list(s.stmts_of(loop.body)))
        if isinstance(loop, s.WhileStmt):
            condition = ops.and_(loop.condition, ops.not_(self.flag, span), span)
            return [*start, replace(loop, condition=condition, body=s.seq(body, span))]
        name = f"{loop.loop_var.name_hint}__idx_v1"
        at = e.Var(name, loop.loop_var.type, loop.loop_var.span)
        body = list(s.stmts_of(substitute_stmt(s.seq(body, span), [(loop.loop_var, at)])))
        step: Body = [s.AssignStmt(at, ops.add(at, loop.step, span), span)]
        body.append(s.IfStmt(ops.not_(self.flag, span), s.seq(step, span), None, (), span))
        condition = ops.and_(self.more(at), ops.not_(self.flag, span), span)
        first = s.AssignStmt(at, loop.start, span)
        comments = loop.leading_comments
        return [replace(first, leading_comments=comments), *start, s.WhileStmt(condition, (), s.seq(body), (), span)]

    def more(self, at: e.Var) -> e.Expr:
        """The iterator has not reached the end."""
        loop = self.loop
        assert isinstance(loop, s.ForStmt)
        step = e.const_value(loop.step)
        if step is None or step == 0:
            raise PassError(
                f"a loop with break needs a constant step that is not 0, got {loop.step}; write the number", loop
            )
        return ops.lt(at, loop.stop, loop.span) if step > 0 else ops.gt(at, loop.stop, loop.span)


class _Jumps:
    """Removes the jumps of one loop level from its body.

    `flag` is set by `break` (None when the loop has none); a second flag is made where `continue` needs one.
    """

    def __init__(self, flag: e.Var | None, number: int) -> None:
        self.flag = flag
        self.number = number
        self.skips = count()

    def body(self, stmts: Body) -> Body:
        """The statements without jumps."""
        return self.rewrite(stmts, None)

    def rewrite(self, stmts: Body, skip: e.Var | None) -> Body:
        """`skip` is the flag that a `continue` sets when later statements outside of this list depend on it."""
        for i, stmt in enumerate(stmts):
            if isinstance(stmt, s.BreakStmt):
                assert self.flag is not None
                return [*stmts[:i], self.set(self.flag, stmt), *self.set_skip(skip, stmt)]
            if isinstance(stmt, s.ContinueStmt):
                return [*stmts[:i], *self.set_skip(skip, stmt)]
            if _jumps([stmt]):
                return [*stmts[:i], *self.compound(stmt, stmts[i + 1 :], skip)]
        return stmts

    def set(self, flag: e.Var, stmt: s.Stmt) -> s.Stmt:
        return s.AssignStmt(flag, e.ConstBool(True, stmt.span), stmt.span, leading_comments=stmt.leading_comments)

    def set_skip(self, skip: e.Var | None, stmt: s.Stmt) -> Body:
        return [] if skip is None else [self.set(skip, stmt)]

    def compound(self, stmt: s.Stmt, rest: Body, skip: e.Var | None) -> Body:
        """A branch or scope that contains jumps, and what follows it."""
        if isinstance(stmt, s.IfStmt):
            return self.branch(stmt, rest, skip)
        assert isinstance(stmt, s.ScopeStmt)
        return self.guarded(stmt, rest, skip)

    def branch(self, stmt: s.IfStmt, rest: Body, skip: e.Var | None) -> Body:
        then, other = list(s.stmts_of(stmt.then_body)), list(s.stmts_of(stmt.else_body))
        if stmt.return_vars:
            raise PassError("break or continue in a branch that yields values; assign names instead", stmt)
        if _always_jumps(then):
            then, other = self.rewrite(then, skip), self.rewrite([*other, *rest], skip)
        elif _always_jumps(other):
            then, other = self.rewrite([*then, *rest], skip), self.rewrite(other, skip)
        else:
            return self.guarded(stmt, rest, skip)
        empty = not other
        made = replace(stmt, then_body=s.seq(then, stmt.span), else_body=None if empty else s.seq(other, stmt.span))
        return [made]

    def guarded(self, stmt: s.IfStmt | s.ScopeStmt, rest: Body, skip: e.Var | None) -> Body:
        """Both ways may go on: a flag says whether the rest still runs."""
        if not rest:
            return [self.inside(stmt, skip)]
        k = next(self.skips)
        flag = e.Var(f"continue_{self.number}_{k}__tmp_v0", ScalarType(BOOL), stmt.span)
        clear = s.AssignStmt(flag, e.ConstBool(False, stmt.span), stmt.span)
        tail = self.rewrite(rest, skip)
        after: Body = [s.IfStmt(ops.not_(flag, stmt.span), s.seq(tail, stmt.span), None, (), stmt.span)]
        if skip is not None:
            after.append(s.IfStmt(flag, s.seq([self.set(skip, stmt)]), None, (), stmt.span))
        return [clear, self.inside(stmt, flag), *after]

    def inside(self, stmt: s.IfStmt | s.ScopeStmt, skip: e.Var | None) -> s.Stmt:
        if isinstance(stmt, s.ScopeStmt):
            body = s.seq(self.rewrite(list(s.stmts_of(stmt.body)), skip), stmt.span)
            made: s.Stmt = replace(stmt, body=body)  # type: ignore[type-var]
            return made
        then = s.seq(self.rewrite(list(s.stmts_of(stmt.then_body)), skip), stmt.span)
        other = self.rewrite(list(s.stmts_of(stmt.else_body)), skip)
        return replace(stmt, then_body=then, else_body=s.seq(other, stmt.span) if other else None)


def _always_jumps(stmts: Body) -> bool:
    """Every way through the statements ends in a jump of this loop."""
    for stmt in stmts:
        if isinstance(stmt, (s.BreakStmt, s.ContinueStmt)):
            return True
        if isinstance(stmt, s.IfStmt) and stmt.else_body is not None:
            both = (list(s.stmts_of(stmt.then_body)), list(s.stmts_of(stmt.else_body)))
            if all(map(_always_jumps, both)):
                return True
        if isinstance(stmt, s.ScopeStmt) and _always_jumps(list(s.stmts_of(stmt.body))):
            return True
    return False
