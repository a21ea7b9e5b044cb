"""Which assembles of a host function need no copy: the source can be a window of the target from the start."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.program import Function, Program
from ..ir.visitor import defs_of, walk_stmts
from ._roots import WriteThrough
from ._util import expr_vars, is_call, stmt_uses


@dataclass(frozen=True)
class Fusion:
    """`create` made by `tensor.create`, filled, and put into `target` (visible at the create) by `assemble`."""

    create: s.AssignStmt
    assemble: s.AssignStmt
    target: e.Var

    @property
    def call(self) -> e.Call:
        """The assemble call: target, source, offset."""
        assert isinstance(self.assemble.value, e.Call)
        return self.assemble.value


def assembles(func: Function) -> list[s.AssignStmt]:
    """Assembles of a host function, in order."""
    return [x for x in walk_stmts(func.body) if isinstance(x, s.AssignStmt) and is_call(x.value, "tensor.assemble")]


def fusions(func: Function, program: Program) -> list[Fusion]:
    """Every assemble whose source is created in the same statement list for this one purpose.

    The source may only be passed to kernels, cut and assembled between its creation and the assemble, and not be used
    afterwards; the target's buffer may not be touched in between; the offset must be known at the creation.
    """
    if not assembles(func):
        return []
    return _Finder(func, program).found


class _Finder:
    """Numbers the statements of a function and looks at every pair of create and assemble."""

    def __init__(self, func: Function, program: Program) -> None:
        creates = {
            x.var: x for x in walk_stmts(func.body) if isinstance(x, s.AssignStmt) and is_call(x.value, "tensor.create")
        }
        self.creates = creates
        self.roots = WriteThrough([*func.params, *creates], program).scan(func.body)
        self.windows = _windows(func.body, self.roots)
        self.order: dict[s.Stmt, int] = {}
        self.parent: dict[s.Stmt, s.SeqStmts] = {}
        self.defined: dict[e.Var, int] = dict.fromkeys(func.params, -1)
        self.uses: dict[e.Var, list[s.Stmt]] = {}
        for i, stmt in enumerate(walk_stmts(func.body)):
            self.order[stmt] = i
            if isinstance(stmt, s.SeqStmts):
                self.parent.update(dict.fromkeys(stmt.stmts, stmt))
            for var in defs_of(stmt):
                self.defined[var] = i
            for var in stmt_uses(stmt):
                root = self.base(var)
                if root is not None:
                    self.uses.setdefault(root, []).append(stmt)
        self.found = [f for f in (self.fusion(x) for x in assembles(func)) if f is not None]

    def base(self, var: e.Expr) -> e.Var | None:
        """The buffer behind a value, also behind a window of it."""
        root = self.roots.of(var)
        if root is None and isinstance(var, e.Var):
            return self.windows.get(var)
        return root

    def fusion(self, stmt: s.AssignStmt) -> Fusion | None:
        call = stmt.value
        assert isinstance(call, e.Call)
        target, source, offset = call.args
        made = self.roots.of(source)
        create = None if made is None else self.creates.get(made)
        if create is None or call.kwargs.get("atomic") or create.value is None:
            return None
        if self.parent.get(create) is not self.parent.get(stmt) or not self.only_for(create, stmt):
            return None
        begin, end = self.order[create], self.order[stmt]
        place = self.visible(target, create)
        if place is None or any(self.defined.get(v, begin) >= begin for v in expr_vars(offset)):
            return None
        buffer = self.base(target)
        touched = buffer is None or any(begin < self.order[x] < end for x in self.uses.get(buffer, ()))
        return None if touched else Fusion(create, stmt, place)

    def only_for(self, create: s.AssignStmt, assemble: s.AssignStmt) -> bool:
        """All uses lie between the two statements and hand the buffer to kernels, windows or assembles."""
        end = self.order[assemble]
        for stmt in self.uses.get(create.var, ()):
            if self.order[stmt] > end or not isinstance(stmt, (s.AssignStmt, s.EvalStmt)):
                return False
            if is_call(getattr(stmt, "value", None), "tensor.assemble") and stmt is not assemble:
                call = stmt.value  # type: ignore[union-attr]
                if isinstance(call, e.Call) and self.roots.of(call.args[1]) is create.var:
                    return False
        return True

    def visible(self, target: e.Expr, create: s.AssignStmt) -> e.Var | None:
        """A name of the target's buffer that is defined before the create."""
        if not isinstance(target, e.Var):
            return None
        begin = self.order[create]
        if self.defined.get(target, begin) < begin:
            return target
        root = self.roots.of(target)
        known = root is not None and root is not create.var and self.defined.get(root, begin) < begin
        return root if known and self.parent.get(create) is not None else None


def _windows(body: s.Stmt, roots: WriteThrough) -> dict[e.Var, e.Var]:
    """Slices and views -> the buffer they lie in."""
    found: dict[e.Var, e.Var] = {}
    for stmt in walk_stmts(body):
        if isinstance(stmt, s.AssignStmt) and is_call(stmt.value, "tensor.slice", "tensor.reshape", "tensor.view"):
            assert isinstance(stmt.value, e.Call)
            source = stmt.value.args[0]
            root = roots.of(source)
            if root is None and isinstance(source, e.Var):
                root = found.get(source)
            if root is not None:
                found[stmt.var] = root
    return found
