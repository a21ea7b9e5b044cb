"""FuseCreateAssembleToSlice: a tensor that is made to be put into a larger one is a window of it from the start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.enums import FunctionType
from ..ir.op_table import create_op_call
from ..ir.program import Function, Program
from ..ir.types import TensorType
from ..ir.visitor import IRMutator
from ._assemble_fusion import Fusion, assembles, fusions
from ._util import PassError
from .base import Pass
from .properties import SPLIT_ORCH


@dataclass(frozen=True)
class FuseCreateAssembleToSlice(Pass):
    """In host functions `c = create(...); fill c; T = assemble(T, c, at)` becomes `c = slice(T, shape, at); fill c`.

    Loop carries that only pass their value through afterwards are removed. OptimizeOrchTensors has replaced every
    other assemble by a copy kernel.

    Raises (PassError): an assemble that neither was copied nor can be fused.
    """

    name = "FuseCreateAssembleToSlice"
    requires = frozenset({SPLIT_ORCH})

    def apply(self, program: Program) -> Program:
        """The program without assembles in host functions."""
        return program.with_functions([_fused(f, program) for f in program.functions.values()])


def _fused(func: Function, program: Program) -> Function:
    if func.func_type is not FunctionType.Orchestration or not assembles(func):
        return func
    found = fusions(func, program)
    left = {x.var for x in assembles(func)} - {f.assemble.var for f in found}
    if left:
        stray = next(x for x in assembles(func) if x.var in left)
        raise PassError(
            f"'{stray.var.name_hint}' is assembled in the host program from a tensor that is used in other ways "
            "too, and no copy was made; run OptimizeOrchTensors before this pass",
            stray,
        )
    body = _Rewriter(found).visit_stmt(func.body)
    return func.with_(body=strip_passed_through(body))


class _Rewriter(IRMutator):
    """Makes windows of the creates and drops the assembles."""

    def __init__(self, found: list[Fusion]) -> None:
        super().__init__()
        self.creates = {f.create.var: f for f in found}
        self.assembles = {f.assemble.var: f for f in found}

    def visit_assign_stmt(self, op: s.AssignStmt) -> s.Stmt:
        if op.var in self.assembles:
            self.var_map[op.var] = self.visit_expr(self.assembles[op.var].call.args[0])
            return s.seq([])
        made = super().visit_assign_stmt(op)
        found = self.creates.get(op.var)
        if found is None:
            return made
        assert isinstance(made, s.AssignStmt)
        return replace(made, value=self.window(found))

    def window(self, found: Fusion) -> e.Expr:
        target, offset = self.visit_expr(found.target), self.visit_expr(found.call.args[2])
        assert isinstance(offset, e.MakeTuple)
        assert isinstance(target.type, TensorType)
        assert isinstance(found.create.var.type, TensorType)
        own = found.create.var.type.shape
        missing = len(target.type.shape) - len(own)
        span = found.assemble.span
        shape = e.MakeTuple((*[e.index(1, span)] * missing, *own), span)
        args: list[e.Expr] = [target, shape, offset]
        if missing > 0:
            args += [e.MakeTuple((), span), e.make_tuple(range(missing), span)]
        return create_op_call("tensor.slice", args, span=span)


def strip_passed_through(body: s.Stmt) -> s.Stmt:
    """The body without loop carries whose loop yields them unchanged."""
    return _Stripper().visit_stmt(body)


class _Stripper(IRMutator):
    """Works from the outside in, so that inner loops see the outer values."""

    def visit_for_stmt(self, op: s.ForStmt) -> s.Stmt:
        made = super().visit_for_stmt(op)
        assert isinstance(made, s.ForStmt)
        return self.stripped(made)

    def visit_while_stmt(self, op: s.WhileStmt) -> s.Stmt:
        made = super().visit_while_stmt(op)
        assert isinstance(made, s.WhileStmt)
        return self.stripped(made)

    def stripped(self, loop: s.ForStmt | s.WhileStmt) -> s.Stmt:
        stmts = list(s.stmts_of(loop.body))
        last = stmts[-1] if stmts else None
        if not isinstance(last, s.YieldStmt) or len(last.value) != len(loop.iter_args):
            return loop
        same = [v is a and isinstance(a.type, TensorType) for v, a in zip(last.value, loop.iter_args, strict=True)]
        if not any(same):
            return loop
        inner = IRMutator()
        for arg, result, gone in zip(loop.iter_args, loop.return_vars, same, strict=True):
            if gone:
                inner.var_map[arg] = arg.initValue
                self.var_map[result] = arg.initValue
        kept = _kept(last.value, same)
        tail = [replace(last, value=kept)] if kept else []
        body = inner.visit_stmt(s.SeqStmts((*stmts[:-1], *tail), loop.body.span))
        args, results = _kept(loop.iter_args, same), _kept(loop.return_vars, same)
        return replace(loop, body=body, iter_args=args, return_vars=results)


def _kept(values: Sequence[e.Expr], gone: list[bool]) -> tuple:  # type: ignore[type-arg]
    return tuple(v for v, g in zip(values, gone, strict=True) if not g)
