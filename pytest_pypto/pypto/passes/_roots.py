"""Through which parameter a tensor value was written: stores, assembles, calls, loops and branches followed back."""

from __future__ import annotations

from collections.abc import Iterable

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.enums import ParamDirection
from ..ir.op_table import find_op
from ..ir.program import Function, Program
from ..ir.types import TensorType
from ..ir.visitor import walk_stmts


class WriteThrough:
    """Maps tensor variables of a body to the root whose storage they are.

    A root is one of `roots` (parameters, captured variables). A variable without entry is storage of its own, or a
    window of something.
    """

    def __init__(self, roots: Iterable[e.Var], program: Program | None = None) -> None:
        self.root: dict[e.Var, e.Var] = {v: v for v in roots if isinstance(v.type, TensorType)}
        self.given = frozenset(self.root)
        self.parts: dict[e.Var, list[e.Var | None]] = {}
        self.program = program
        self._returned: dict[str, list[int | None]] = {}

    def scan(self, body: s.Stmt | None) -> WriteThrough:
        """Follow the statements of a body in order."""
        for stmt in s.stmts_of(body):
            self.stmt(stmt)
        return self

    def of(self, value: e.Expr) -> e.Var | None:
        """The root of a value."""
        if isinstance(value, e.Var):
            return self.root.get(value)
        if isinstance(value, e.Call):
            return self.of_call(value)
        if isinstance(value, e.TupleGetItemExpr) and isinstance(value.tuple, e.Var):
            parts = self.parts.get(value.tuple, [])
            return parts[value.index] if value.index < len(parts) else None
        return None

    def of_call(self, call: e.Call) -> e.Var | None:
        if isinstance(call.op, e.GlobalVar):
            parts = self.call_parts(call)
            return parts[0] if len(parts) == 1 else None
        spec = find_op(call.op.name)
        if spec is None or spec.inplace is None or not isinstance(call.type, TensorType):
            return None
        return self.of(call.args[spec.inplace])

    def call_parts(self, call: e.Call | e.Submit) -> list[e.Var | None]:
        """Roots of the values that a call of a function returns."""
        callee = None if self.program is None else self.program.get_function(call.op.name)
        if callee is None:
            return []
        found = self._returned.get(callee.name)
        if found is None:
            found = self._returned[callee.name] = returned_params(callee, self.program)
        args = call.args
        return [None if i is None or i >= len(args) else self.of(args[i]) for i in found]

    def stmt(self, stmt: s.Stmt) -> None:
        if isinstance(stmt, s.AssignStmt):
            if isinstance(stmt.value, (e.Call, e.Submit)) and isinstance(stmt.value.op, e.GlobalVar):
                self.parts[stmt.var] = self.call_parts(stmt.value)
            self.put(stmt.var, self.of(stmt.value))
        elif isinstance(stmt, (s.ForStmt, s.WhileStmt)):
            self.loop(stmt)
        elif isinstance(stmt, s.IfStmt):
            self.scan(stmt.then_body)
            self.scan(stmt.else_body)
            then, other = last_values(stmt.then_body), last_values(stmt.else_body)
            for var, a, b in zip(stmt.return_vars, then, other, strict=False):
                root = self.of(a)
                self.put(var, root if root is self.of(b) else None)
        elif isinstance(stmt, s.ScopeStmt):
            self.scan(stmt.body)
        elif isinstance(stmt, s.SeqStmts):
            self.scan(stmt)

    def loop(self, loop: s.ForStmt | s.WhileStmt) -> None:
        """A carried value has a root when its initial value and every yielded one have it."""
        for arg in loop.iter_args:
            self.put(arg, self.of(arg.initValue))
        while True:
            self.scan(loop.body)
            values = last_values(loop.body)
            pairs = zip(loop.iter_args, values, strict=False)
            wrong = [a for a, v in pairs if a in self.root and self.of(v) is not self.root[a]]
            if not wrong:
                break
            for arg in wrong:
                self.put(arg, None)
        for var, arg in zip(loop.return_vars, loop.iter_args, strict=False):
            self.put(var, self.root.get(arg))

    def put(self, var: e.Var, root: e.Var | None) -> None:
        if root is not None:
            self.root[var] = root
        elif var not in self.given:
            self.root.pop(var, None)


def last_values(body: s.Stmt | None) -> tuple[e.Expr, ...]:
    """The values of the yield that ends a body; nothing without one."""
    stmts = s.stmts_of(body)
    if not stmts:
        return ()
    last = stmts[-1]
    if isinstance(last, s.YieldStmt):
        return last.value
    return last_values(last.body) if isinstance(last, s.RuntimeScopeStmt) else ()


def returned_params(func: Function, program: Program | None = None) -> list[int | None]:
    """Per returned value the index of the parameter whose storage it is, or None.

    A declaration without a body returns its Out and InOut parameters in order.
    """
    index = {p: i for i, p in enumerate(func.params)}
    returns = [x for x in walk_stmts(func.body) if isinstance(x, s.ReturnStmt)]
    if not returns:
        if func.requires_runtime_binding or not s.stmts_of(func.body):
            outs = [i for i, d in enumerate(func.param_directions) if d is not ParamDirection.In]
            return list(outs[: len(func.return_types)])
        return [None for _ in func.return_types]
    known = WriteThrough(func.params, program).scan(func.body)
    rows = [[known.of(v) for v in r.value] for r in returns]
    merged = [column[0] if all(x is column[0] for x in column) else None for column in zip(*rows, strict=False)]
    return [None if root is None else index.get(root) for root in merged]
