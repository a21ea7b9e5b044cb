"""OutlineClusterScopes: clusters become Group functions, SPMD launches become Spmd functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.enums import FunctionType
from ..ir.program import Function, Program
from ..ir.visitor import IRMutator, calls_in, walk_stmts
from ._outline import FunctionNames, Outlined, Parent, Target, call_stmts, outline, submit_stmts, submit_type
from ._util import PassError
from .base import Pass
from .outline_incore_scopes import call_attrs, is_task_placeholder
from .properties import SSA


@dataclass(frozen=True)
class OutlineClusterScopes(Pass):
    """`with pl.cluster():` becomes Group `<f>_cluster_<n>`, `pl.spmd` becomes Spmd `<f>_spmd_<n>`.

    The launch data (`core_num`, `sync_start`) belong to the call of the Spmd function, or to the submit when the launch
    has a task id. A launch inside a cluster leaves its data on the call of the Group, which gets `spmd_unwrapped`.

    Raises (PassError): a launch that does not consist of exactly one kernel call.
    """

    name = "OutlineClusterScopes"
    requires = frozenset({SSA})
    produces = frozenset({SSA, "ClusterOutlined"})

    def apply(self, program: Program) -> Program:
        """The program with one function per cluster and launch."""
        names = FunctionNames(program)
        functions: list[Function] = []
        for func in program.functions.values():
            scopes = _scopes(func.body)
            if not scopes:
                functions.append(func)
                continue
            outliner = _Outliner(Parent(func, program), _names(func, scopes, names))
            functions.append(func.with_(body=outliner.visit_stmt(func.body)))
            functions += outliner.made
        return program.with_functions(functions)


_Scope = s.ClusterScopeStmt | s.SpmdScopeStmt


def _scopes(body: s.Stmt) -> list[_Scope]:
    """Clusters and launches, those inside a cluster left out."""
    found: list[_Scope] = []
    inner: set[s.Stmt] = set()
    for x in walk_stmts(body):
        if isinstance(x, (s.ClusterScopeStmt, s.SpmdScopeStmt)):
            if x not in inner:
                found.append(x)
            if isinstance(x, s.ClusterScopeStmt):
                inner.update(y for y in walk_stmts(x.body) if isinstance(y, s.SpmdScopeStmt))
    return found


def _names(func: Function, scopes: list[_Scope], names: FunctionNames) -> Iterator[str]:
    count = {"cluster": 0, "spmd": 0}
    hints = []
    for scope in scopes:
        kind = "cluster" if isinstance(scope, s.ClusterScopeStmt) else "spmd"
        hints.append(scope.name_hint or f"{func.name}_{kind}_{count[kind]}")
        count[kind] += 0 if scope.name_hint else 1
    return names.hints(func, hints)


@dataclass
class _Launch:
    """Launch data found on the way."""

    core_num: e.Expr | None = None
    sync_start: bool = False

    def call_attrs(self) -> dict[str, Any]:
        if self.core_num is None:
            return {}
        value = e.const_value(self.core_num)
        made: dict[str, Any] = {"core_num": self.core_num if value is None else value}
        return made | {"sync_start": True} if self.sync_start else made


class _Outliner(IRMutator):
    """Replaces the scopes of one function by calls."""

    def __init__(self, parent: Parent, names: Iterator[str]) -> None:
        super().__init__()
        self.parent = parent
        self.names = names
        self.made: list[Function] = []

    def visit_seq_stmts(self, op: s.SeqStmts) -> s.Stmt:
        made: list[s.Stmt] = []
        for i, stmt in enumerate(op.stmts):
            following = op.stmts[i + 1] if i + 1 < len(op.stmts) else None
            if not is_task_placeholder(stmt, following):
                made += s.stmts_of(self.visit_stmt(stmt))
        same = len(made) == len(op.stmts) and all(a is b for a, b in zip(made, op.stmts, strict=True))
        return op if same else s.SeqStmts(tuple(made), op.span)

    def visit_spmd_scope_stmt(self, op: s.SpmdScopeStmt) -> s.Stmt:
        kernels = [c for c in calls_in(op.body) if isinstance(c.op, e.GlobalVar)]
        if len(kernels) != 1:
            raise PassError(
                f"a pl.spmd launch starts exactly one kernel, this one calls {len(kernels)}; put the work of a block "
                "into one kernel",
                op,
            )
        out = outline(self.parent, op, op.body, Target(next(self.names), FunctionType.Spmd))
        self.made.append(out.func)
        return s.seq(self.launch(out, op, _Launch(op.core_num, op.sync_start)), op.span)

    def visit_cluster_scope_stmt(self, op: s.ClusterScopeStmt) -> s.Stmt:
        launch = _Launch()
        body = _Unwrap(launch).visit_stmt(op.body)
        attrs = {"spmd_unwrapped": True} if launch.core_num is not None else {}
        out = outline(self.parent, op, body, Target(next(self.names), FunctionType.Group, attrs=attrs))
        self.made.append(out.func)
        return s.seq(self.launch(out, op, launch), op.span)

    def launch(self, out: Outlined, scope: _Scope, launch: _Launch) -> list[s.Stmt]:
        """The call or submit with the launch data."""
        attrs = call_attrs(scope, out)
        deps = tuple(scope.attrs.get("manual_dep_edges") or ())
        predicate = scope.attrs.get("predicate")
        if "task_id_var" not in scope.attrs and not deps and predicate is None:
            early = {"allow_early_resolve": True} if scope.attrs.get("allow_early_resolve") else {}
            return call_stmts(out, attrs | launch.call_attrs() | early, scope)
        submit = e.Submit(
            e.GlobalVar(out.func.name),
            out.args,
            deps,
            attrs=attrs,
            type=submit_type(out.results),
            span=scope.span,
            core_num=launch.core_num,
            sync_start=launch.sync_start,
            allow_early_resolve=bool(scope.attrs.get("allow_early_resolve")),
            predicate=predicate,
        )
        return submit_stmts(out, submit, scope.attrs.get("task_id_var"), scope)


class _Unwrap(IRMutator):
    """Removes the launches inside a cluster and remembers their data."""

    def __init__(self, launch: _Launch) -> None:
        super().__init__()
        self.launch = launch

    def visit_spmd_scope_stmt(self, op: s.SpmdScopeStmt) -> s.Stmt:
        if self.launch.core_num is not None:
            raise PassError("a cluster holds one pl.spmd launch, this is the second; use two clusters", op)
        self.launch.core_num, self.launch.sync_start = op.core_num, op.sync_start
        return super().visit_stmt(op.body)
