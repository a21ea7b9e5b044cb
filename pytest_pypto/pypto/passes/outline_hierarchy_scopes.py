"""OutlineHierarchyScopes: regions above the core group become host functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..ir import stmt as s
from ..ir.enums import FunctionType, Level, Role, level_to_linqu_level
from ..ir.program import Function, Program
from ..ir.visitor import IRMutator, walk_stmts
from ._outline import FunctionNames, Parent, Target, call_stmts, outline
from ._util import PassError
from .base import Pass
from .properties import SSA

_ROLES = {Role.Orchestrator: "orch", Role.SubWorker: "worker"}


@dataclass(frozen=True)
class OutlineHierarchyScopes(Pass):
    """`with pl.at(level=L, role=R)` of a level up to the chip becomes a function `<f>_<level>[_<role>]_<n>`.

    Its stores are not exported: the caller passes the buffer and gets the parameter back.

    Raises (PassError): a level above the chip, which needs several chips; a region nested in a device region.
    """

    name = "OutlineHierarchyScopes"
    requires = frozenset({SSA})
    produces = frozenset({SSA, "HierarchyOutlined", "OrchestrationReferencesResolved"})

    def apply(self, program: Program) -> Program:
        """The program with one function per region."""
        names = FunctionNames(program)
        todo, done = list(program.functions.values()), list[Function]()
        while todo:
            func = todo.pop(0)
            scopes = _outermost(func.body)
            if not scopes:
                done.append(func)
                continue
            outliner = _Outliner(Parent(func, program), _names(func, scopes, names))
            done.append(func.with_(body=outliner.visit_stmt(func.body)))
            todo = outliner.made + todo
        return program.with_functions(done)


def _outermost(body: s.Stmt) -> list[s.HierarchyScopeStmt]:
    """Hierarchy regions that are not inside another one."""
    found = [x for x in walk_stmts(body) if isinstance(x, s.HierarchyScopeStmt)]
    inner = {y for x in found for y in walk_stmts(x.body) if isinstance(y, s.HierarchyScopeStmt)}
    return [x for x in found if x not in inner]


def _names(func: Function, scopes: list[s.HierarchyScopeStmt], names: FunctionNames) -> Iterator[str]:
    hints = []
    for n, scope in enumerate(scopes):
        role = "" if scope.role is None else f"_{_ROLES[scope.role]}"
        hints.append(scope.name_hint or f"{func.name}_{scope.level.name.lower()}{role}_{n}")
    return names.hints(func, hints)


class _Outliner(IRMutator):
    """Replaces the regions of one function by calls."""

    def __init__(self, parent: Parent, names: Iterator[str]) -> None:
        super().__init__()
        self.parent = parent
        self.names = names
        self.made: list[Function] = []

    def visit_in_core_scope_stmt(self, op: s.InCoreScopeStmt) -> s.Stmt:
        inner = next((x for x in walk_stmts(op.body) if isinstance(x, s.HierarchyScopeStmt)), None)
        if inner is not None:
            raise PassError(
                f"a region of level {inner.level.name} stands inside a CORE_GROUP region; put it outside", inner, op
            )
        return op

    def visit_hierarchy_scope_stmt(self, op: s.HierarchyScopeStmt) -> s.Stmt:
        if level_to_linqu_level(op.level) > level_to_linqu_level(Level.CHIP):
            raise PassError(
                f"level {op.level.name} needs several chips, which this compiler does not drive; use pl.Level.CHIP or "
                "below",
                op,
            )
        target = Target(next(self.names), FunctionType.Opaque, op.level, op.role)
        out = outline(self.parent, op, op.body, target)
        self.made.append(out.func)
        return s.seq(call_stmts(out, {}, op), op.span)
