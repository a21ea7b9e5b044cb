"""Walks a body and halves what the vector core computes; the rules per operator are in `rules`."""

from __future__ import annotations

from dataclasses import replace

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.types import TileType
from ...ir.visitor import IRMutator, find_yield_stmt, replace_call
from ..device_ir import body_like, kernel_error, op_call
from ..mixed.affinity import Affinity, Side, is_boundary
from . import boundary
from .part import AXIS_NAMES, Lane, Part, lane_type
from .rules import RULES, elementwise
from .turned import turned_vectors


class LaneRewriter(IRMutator):
    """Rewrites one body for a lane.

    `parts` says which (new) variables hold a lane's part; everything else is whole, the same on both lanes. `turned`
    are variables (of the old body) that only an operator's taste gives more than one cell on the split axis.
    """

    def __init__(self, lane: Lane, affinity: Affinity) -> None:
        super().__init__()
        self.lane = lane
        self.affinity = affinity
        self.parts: dict[e.Var, Part] = {}
        self.turned: frozenset[e.Var] | None = None

    def part_of(self, expr: e.Expr) -> Part | None:
        """The part that a (rewritten) expression holds, or None when it is whole."""
        return self.parts.get(expr) if isinstance(expr, e.Var) else None

    def halved(self, var: e.Var, part: Part) -> e.Var:
        """A new variable for one lane's part of `var`."""
        assert isinstance(var.type, TileType)
        made = e.Var(var.name_hint, lane_type(self._whole_type(var), part, self.lane), var.span)
        self.parts[made] = part
        self.var_map[var] = made
        return made

    def _whole_type(self, var: e.Var) -> TileType:
        type_ = self.visit_type(var.type)
        assert isinstance(type_, TileType)
        return type_

    def body(self, body: s.Stmt) -> s.Stmt:
        """The rewritten statements of a body."""
        if self.turned is None:
            self.turned = turned_vectors(body, self.lane.axis)
        made: list[s.Stmt] = []
        for stmt in s.stmts_of(body):
            made.extend(self.stmts(stmt))
        return body_like(body, made)

    def stmts(self, stmt: s.Stmt) -> list[s.Stmt]:
        """What one statement becomes."""
        if isinstance(stmt, s.AssignStmt):
            return self._assign(stmt)
        if isinstance(stmt, s.EvalStmt):
            return [self._effect(stmt)]
        if isinstance(stmt, s.ForStmt):
            return [self._for(stmt)]
        if isinstance(stmt, s.WhileStmt):
            return [self._while(stmt)]
        if isinstance(stmt, s.IfStmt):
            return [self._if(stmt)]
        if isinstance(stmt, s.ScopeStmt):
            raise kernel_error(
                f"a {stmt.scope_kind.name} scope is left inside a kernel whose vector part is split between the lanes; "
                "take the split off the outer scope, or the inner scope away",
                stmt.span,
            )
        return [self.visit_stmt(stmt)]

    def _assign(self, stmt: s.AssignStmt) -> list[s.Stmt]:
        call = op_call(stmt)
        if call is None:
            return [self._alias(stmt)]
        if is_boundary(call):
            return boundary.cross(self, stmt, call)
        args = self.visit_exprs(call.args)
        made = call if args is call.args else replace_call(call, args=args)
        side = self.affinity.of(stmt)
        if side is Side.CUBE:
            self.keep_whole(args, call, stmt)
            return [self.visit_stmt(stmt)]
        rule = RULES.get(call.op.name, elementwise)
        return rule(self, stmt, made)

    def _alias(self, stmt: s.AssignStmt) -> s.Stmt:
        value = self.visit_expr(stmt.value)
        part = self.part_of(value)
        if part is None:
            return self.visit_stmt(stmt)
        return replace(stmt, var=self.halved(stmt.var, part), value=value)

    def _effect(self, stmt: s.EvalStmt) -> s.Stmt:
        call = op_call(stmt)
        if call is not None and call.op.name not in _TAKES_PARTS:
            self.keep_whole(self.visit_exprs(call.args), call, stmt)
        return self.visit_stmt(stmt)

    def keep_whole(self, args: tuple[e.Expr, ...], call: e.Call, stmt: s.Stmt) -> None:
        """Refuse operands of which each lane holds only a part."""
        for arg in args:
            part = self.part_of(arg)
            if part is not None:
                assert isinstance(arg, e.Var)
                raise kernel_error(
                    f"{call.op.name} needs the whole of '{arg.name_hint}', but each vector lane holds only half of its "
                    f"{AXIS_NAMES[part.axis]}; take the split off this scope",
                    stmt.span,
                )

    # --- control flow ----------------------------------------------------------------------------------------------

    def _carries(self, args: tuple[e.IterArg, ...]) -> tuple[e.IterArg, ...]:
        made = []
        for arg in args:
            init = self.visit_expr(arg.initValue)
            part = self.part_of(init)
            if part is None:
                fresh = self.define(arg)
                assert isinstance(fresh, e.IterArg)
            else:
                type_ = lane_type(self._whole_type(arg), part, self.lane)
                fresh = e.IterArg(arg.name_hint, type_, init, arg.span)
                self.parts[fresh] = part
                self.var_map[arg] = fresh
            made.append(fresh)
        return tuple(made)

    def _results(self, results: tuple[e.Var, ...], parts: list[Part | None]) -> tuple[e.Var, ...]:
        pairs = zip(results, parts, strict=True)
        return tuple(self.define(v) if part is None else self.halved(v, part) for v, part in pairs)

    def _check_yield(self, body: s.Stmt, parts: list[Part | None], stmt: s.Stmt) -> None:
        last = find_yield_stmt(body)
        if last is None:
            return
        for value, part in zip(last.value, parts, strict=True):
            if isinstance(value.type, TileType) and self.part_of(value) != part:
                name = value.name_hint if isinstance(value, e.Var) else "a value"
                raise kernel_error(
                    f"'{name}' is handed on as {_text(self.part_of(value))}, but started (or is in the other branch) "
                    f"as {_text(part)}; a tile keeps one division between the vector lanes through a loop or branch",
                    stmt.span,
                )

    def _for(self, stmt: s.ForStmt) -> s.Stmt:
        start, stop, step = self.visit_exprs((stmt.start, stmt.stop, stmt.step))
        args = self._carries(stmt.iter_args)
        var = self.define(stmt.loop_var)
        body = self.body(stmt.body)
        parts = [self.parts.get(a) for a in args]
        self._check_yield(body, parts, stmt)
        results = self._results(stmt.return_vars, parts)
        made = replace(stmt, loop_var=var, start=start, stop=stop, step=step, iter_args=args, body=body)
        return replace(made, return_vars=results)

    def _while(self, stmt: s.WhileStmt) -> s.Stmt:
        args = self._carries(stmt.iter_args)
        condition = self.visit_expr(stmt.condition)
        body = self.body(stmt.body)
        parts = [self.parts.get(a) for a in args]
        self._check_yield(body, parts, stmt)
        results = self._results(stmt.return_vars, parts)
        return replace(stmt, condition=condition, iter_args=args, body=body, return_vars=results)

    def _if(self, stmt: s.IfStmt) -> s.Stmt:
        condition = self.visit_expr(stmt.condition)
        then = self.body(stmt.then_body)
        other = None if stmt.else_body is None else self.body(stmt.else_body)
        last = find_yield_stmt(then)
        parts: list[Part | None] = [self.part_of(v) for v in last.value] if last is not None else []
        parts += [None] * (len(stmt.return_vars) - len(parts))
        if other is not None and stmt.return_vars:
            self._check_yield(other, parts, stmt)
        results = self._results(stmt.return_vars, parts)
        return replace(stmt, condition=condition, then_body=then, else_body=other, return_vars=results)


_TAKES_PARTS = frozenset({"tile.tpush_to_aic", "system.tfree_to_aic", "system.tfree_to_aiv"})


def _text(part: Part | None) -> str:
    return "a whole tile" if part is None else f"half of its {AXIS_NAMES[part.axis]}"
