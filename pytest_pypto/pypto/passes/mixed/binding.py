"""Names in one core's half of a kernel: what only the other core defines is replaced by what stands for it here."""

from __future__ import annotations

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.mutator import IRMutator
from ...ir.span import UNKNOWN
from ...ir.types import TensorType, Type
from ...ir.walk import walk_stmts
from ..device_ir import WRITE_TARGET, kernel_error, op_call
from .affinity import Side

Versions = dict[e.Var, e.Expr]


def tensor_versions(body: s.Stmt) -> Versions:
    """For each tensor name that stands for an earlier one after a write, loop or branch: that earlier name."""
    earlier: Versions = {}
    for stmt in walk_stmts(body):
        if isinstance(stmt, s.AssignStmt) and isinstance(stmt.var.type, TensorType):
            call = op_call(stmt)
            if isinstance(stmt.value, e.Var):
                earlier[stmt.var] = stmt.value
            elif call is not None and call.op.name in WRITE_TARGET:
                earlier[stmt.var] = call.args[WRITE_TARGET[call.op.name]]
        elif isinstance(stmt, (s.ForStmt, s.WhileStmt)):
            for arg, result in zip(stmt.iter_args, stmt.return_vars, strict=True):
                if isinstance(arg.type, TensorType):
                    earlier[arg] = arg.initValue
                    earlier[result] = arg.initValue
        elif isinstance(stmt, s.IfStmt):
            _branch_versions(stmt, earlier)
    return earlier


def _branch_versions(stmt: s.IfStmt, earlier: Versions) -> None:
    last = s.stmts_of(stmt.then_body)[-1] if s.stmts_of(stmt.then_body) else None
    if isinstance(last, s.YieldStmt):
        for result, value in zip(stmt.return_vars, last.value, strict=True):
            if isinstance(result.type, TensorType):
                earlier[result] = value


def bind_missing(body: s.Stmt, params: tuple[e.Var, ...], earlier: Versions, side: Side) -> s.Stmt:
    """Replace names that are not defined where they are used by the earlier name of the same tensor.

    Raises:
        ValueError: a scalar or tile that only the other core computes is needed here.
    """
    return _Binder(params, earlier, side).visit_stmt(body)


class _Binder(IRMutator):
    def __init__(self, params: tuple[e.Var, ...], earlier: Versions, side: Side) -> None:
        super().__init__()
        self._earlier = earlier
        self._side = side
        self._visible = set(params)
        self._order = list(params)
        self._span = UNKNOWN
        self._in_type = False

    def define(self, var: e.Var) -> e.Var:
        made = super().define(var)
        self._visible.add(made)
        self._order.append(made)
        return made

    def visit_type(self, type_: Type) -> Type:
        before, self._in_type = self._in_type, True
        made = super().visit_type(type_)
        self._in_type = before
        return made

    def visit_stmt(self, stmt: s.Stmt) -> s.Stmt:
        self._span = stmt.span
        if not isinstance(stmt, (s.ForStmt, s.WhileStmt, s.IfStmt)):
            return super().visit_stmt(stmt)
        mark = len(self._order)
        made = super().visit_stmt(stmt)
        self._forget(mark)
        assert isinstance(made, (s.ForStmt, s.WhileStmt, s.IfStmt))
        self._visible.update(made.return_vars)
        self._order.extend(made.return_vars)
        return made

    def visit_seq_stmts(self, op: s.SeqStmts) -> s.Stmt:
        mark = len(self._order)
        made = super().visit_seq_stmts(op)
        self._forget(mark)
        return made

    def _forget(self, mark: int) -> None:
        """End a scope: what was defined since `mark` is visible no more."""
        self._visible.difference_update(self._order[mark:])
        del self._order[mark:]

    def visit_var(self, op: e.Var) -> e.Expr:
        at: e.Expr | None = op
        while isinstance(at, e.Var):
            at = self.var_map.get(at, at)
            if self._in_type or at in self._visible or not isinstance(at, e.Var):
                return at
            at = self._earlier.get(at)
        if at is not None:
            return at
        here, there = ("cube", "vector") if self._side is Side.CUBE else ("vector", "cube")
        raise kernel_error(
            f"'{op.name_hint}' is computed by the {there} core only, but the {here} core needs it; numbers do not "
            "cross between the cores. Read it from a tensor instead, or compute it from values both cores know",
            self._span,
        )
