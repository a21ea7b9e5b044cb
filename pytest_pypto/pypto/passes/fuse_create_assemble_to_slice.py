"""FuseCreateAssembleToSlice: a tensor that is only made to be copied into another one becomes a window of that one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.enums import FunctionType
from ..ir.program import Function, Program
from ..ir.types import TensorType
from ..ir.visitor import IRMutator, defs_of, uses_of, walk_stmts
from ._roots import WriteThrough
from ._util import all_uses, is_call, stmt_uses
from .base import Pass

_WINDOWS = ("tensor.slice", "tensor.view", "tensor.reshape", "tensor.transpose", "tensor.reinterpret_view")


@dataclass(frozen=True)
class FuseCreateAssembleToSlice(Pass):
    """In host functions `c = create(); ...; T2 = assemble(T, c, offset)` becomes `c = slice(T, shape, offset); ...`.

    Done when `c` (in any of its versions) is assembled once, in the statement list that creates it, is not used
    afterwards, and neither `T` nor anything in its storage is mentioned in between; `T2` then is `T`. Loop values that
    are only handed through afterwards disappear. Any other assemble stays: the host program carries it out as a copy.
    """

    name = "FuseCreateAssembleToSlice"
    requires = frozenset({"SplitIncoreOrch"})

    def apply(self, program: Program) -> Program:
        """The program with fewer copies."""
        return program.with_functions([_fused(f, program) for f in program.functions.values()])


def _fused(func: Function, program: Program) -> Function:
    if func.func_type not in (FunctionType.Orchestration, FunctionType.Opaque, FunctionType.Graph):
        return func
    if not any(is_call(getattr(x, "value", None), "tensor.assemble") for x in walk_stmts(func.body)):
        return func
    storage = _storage(func, program)
    fuser = _Fuser(storage)
    body = fuser.visit_stmt(func.body)
    if body is func.body:
        return func
    return func.with_(body=_Stripper().visit_stmt(body))


def _creates(body: s.Stmt) -> Iterator[e.Var]:
    for stmt in walk_stmts(body):
        if isinstance(stmt, s.AssignStmt) and is_call(stmt.value, "tensor.create"):
            yield stmt.var


class _Storage(WriteThrough):
    """Which tensor owns the storage of a variable; windows count as their base."""

    def of_call(self, call: e.Call) -> e.Var | None:
        if call.op.name in _WINDOWS and isinstance(call.type, TensorType):
            return self.of(call.args[0])
        return super().of_call(call)


def _storage(func: Function, program: Program) -> _Storage:
    storage = _Storage((*func.params, *_creates(func.body)), program)
    storage.scan(func.body)
    return storage


class _Fuser(IRMutator):
    """Fuses inside each statement list; `var_map` replaces results of dissolved assembles."""

    def __init__(self, storage: _Storage) -> None:
        super().__init__()
        self.storage = storage

    def visit_seq_stmts(self, op: s.SeqStmts) -> s.Stmt:
        stmts = list(op.stmts)
        after: set[e.Var] = set()
        plans: dict[int, e.Call] = {}
        dropped: set[int] = set()
        for i in reversed(range(len(stmts))):
            stmt = stmts[i]
            if isinstance(stmt, s.AssignStmt) and is_call(stmt.value, "tensor.assemble"):
                made = self.plan(stmts, i, after)
                if made is not None:
                    plans[made[0]] = made[1]
                    dropped.add(i)
            after |= {root for v in _mentions(stmt) if (root := self.storage.of(v)) is not None}
        if not dropped:
            return super().visit_seq_stmts(op)
        return super().visit_seq_stmts(replace(op, stmts=tuple(self.rebuilt(stmts, plans, dropped))))

    def plan(self, stmts: Sequence[s.Stmt], at: int, after: set[e.Var]) -> tuple[int, e.Call] | None:
        """Index of the create and the slice to put in its place, for the assemble at index `at`."""
        call = stmts[at].value  # type: ignore[attr-defined]
        target, source, offset = call.args[0], call.args[1], call.args[2]
        root = self.storage.of(source)
        if root is None or root in after or call.kwargs.get("atomic"):
            return None
        start = next((i for i in range(at) if self.is_create(stmts[i], root)), None)
        if start is None or not isinstance(target, e.Var) or not _whole(root, source):
            return None
        between = stmts[start + 1 : at]
        owner = self.storage.of(target)
        if owner is None or any(self.storage.of(v) is owner for stmt in between for v in _mentions(stmt)):
            return None
        late = {d for stmt in stmts[start:at] for inner in walk_stmts(stmt) for d in defs_of(inner)}
        if target in late or any(v in late for v in uses_of(offset)) or self.assembled(between, root):
            return None
        return start, _slice(target, root, offset, call)

    def is_create(self, stmt: s.Stmt, root: e.Var) -> bool:
        return isinstance(stmt, s.AssignStmt) and stmt.var is root and is_call(stmt.value, "tensor.create")

    def assembled(self, stmts: Sequence[s.Stmt], root: e.Var) -> bool:
        """True when one of `stmts` assembles the tensor as well."""
        inner = (x for stmt in stmts for x in walk_stmts(stmt) if isinstance(x, s.AssignStmt))
        calls = (x.value for x in inner if isinstance(x.value, e.Call) and x.value.op.name == "tensor.assemble")
        return any(self.storage.of(call.args[1]) is root for call in calls)

    def rebuilt(self, stmts: list[s.Stmt], plans: dict[int, e.Call], dropped: set[int]) -> Iterator[s.Stmt]:
        for i, stmt in enumerate(stmts):
            if i in dropped:
                self.var_map[stmt.var] = self.visit_expr(stmt.value.args[0])  # type: ignore[attr-defined]
            elif i in plans:
                yield replace(stmt, value=plans[i])  # type: ignore[type-var]
            else:
                yield stmt


def _mentions(stmt: s.Stmt) -> Iterator[e.Var]:
    """Variables that a statement or anything inside it mentions."""
    yield from stmt_uses(stmt)
    if not isinstance(stmt, (s.AssignStmt, s.EvalStmt)):
        yield from all_uses(stmt)


def _whole(root: e.Var, source: e.Expr) -> bool:
    """True when the assembled value has the shape and type of the created tensor (and is no window of it)."""
    a, b = root.type, source.type
    return isinstance(a, TensorType) and isinstance(b, TensorType) and a == b


def _slice(target: e.Var, root: e.Var, offset: e.Expr, call: e.Call) -> e.Call:
    """`tensor.slice(target, shape, offset)` with the type of the created tensor."""
    assert isinstance(root.type, TensorType)
    assert isinstance(target.type, TensorType)
    ones = len(target.type.shape) - len(root.type.shape)
    shape = e.make_tuple([*(1 for _ in range(ones)), *root.type.shape], call.span)
    drop = [e.make_tuple([], call.span), e.make_tuple(range(ones), call.span)] if ones else []
    return e.Call(e.Op("tensor.slice"), [target, shape, offset, *drop], {}, root.type, call.span)


class _Stripper(IRMutator):
    """Removes loop values whose yield is the value itself."""

    def visit_for_stmt(self, op: s.ForStmt) -> s.Stmt:
        return self.strip(super().visit_for_stmt(op))

    def visit_while_stmt(self, op: s.WhileStmt) -> s.Stmt:
        return self.strip(super().visit_while_stmt(op))

    def strip(self, loop: s.Stmt) -> s.Stmt:
        assert isinstance(loop, (s.ForStmt, s.WhileStmt))
        stmts = s.stmts_of(loop.body)
        last = stmts[-1] if stmts else None
        if not isinstance(last, s.YieldStmt):
            return loop
        gone = [v is a and isinstance(a.type, TensorType) for v, a in zip(last.value, loop.iter_args, strict=True)]
        if not any(gone):
            return loop
        for arg, result, out in zip(loop.iter_args, loop.return_vars, gone, strict=True):
            if out:
                self.var_map[arg] = self.var_map[result] = arg.initValue
        kept = tuple(v for v, out in zip(last.value, gone, strict=True) if not out)
        tail = (replace(last, value=kept),) if kept else ()
        made = replace(
            loop,
            iter_args=tuple(a for a, out in zip(loop.iter_args, gone, strict=True) if not out),
            return_vars=tuple(r for r, out in zip(loop.return_vars, gone, strict=True) if not out),
            body=s.SeqStmts((*stmts[:-1], *tail), loop.body.span),
        )
        again = IRMutator()
        again.var_map.update(self.var_map)
        return again.visit_stmt(made)
