"""UnrollLoops: replaces `pl.unroll` loops by copies of their bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.enums import ForKind
from ..ir.program import Function, Program
from ..ir.visitor import IRMutator
from ._util import PassError
from .base import FunctionPass


@dataclass(frozen=True)
class UnrollLoops(FunctionPass):
    """One copy of the body per iteration, with the loop variable replaced by its constant.

    Runs before ConvertToSSA, so copies assign the same names again.

    Raises (PassError): bounds that are no integer constants, step 0, carried values given by `init_values`, more than
    1024 iterations.
    """

    name = "UnrollLoops"
    produces = frozenset({"UnrollResolved"})
    limit: ClassVar[int] = 1024

    def apply_function(self, func: Function, program: Program) -> Function:
        """The function without unroll loops."""
        body = _Unroller(self.limit).visit_stmt(func.body)
        return func if body is func.body else func.with_(body=body)


class _Unroller(IRMutator):
    """Unrolls from the inside out."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def visit_for_stmt(self, op: s.ForStmt) -> s.Stmt:
        made = super().visit_for_stmt(op)
        assert isinstance(made, s.ForStmt)
        if made.kind is not ForKind.Unroll:
            return made
        copies = [_Copy(made.loop_var, _like(v, made)).visit_stmt(made.body) for v in self.values(made)]
        return s.seq(copies, made.span)

    def values(self, loop: s.ForStmt) -> range:
        """What the loop variable runs over."""
        bounds = e.static_dims((loop.start, loop.stop, loop.step))
        if bounds is None:
            raise PassError(
                f"pl.unroll needs integer constants, got ({loop.start}, {loop.stop}, {loop.step}); use pl.range()", loop
            )
        start, stop, step = bounds
        if step == 0:
            raise PassError("pl.unroll has step 0; give a step that is not 0", loop)
        if loop.iter_args:
            raise PassError("pl.unroll takes no init_values; assign the carried names in the body instead", loop)
        values = range(start, stop, step)
        if len(values) > self.limit:
            raise PassError(
                f"Unroll loop trip count {len(values)} exceeds maximum allowed ({self.limit}); "
                "reduce the loop range or use pl.range() instead",
                loop,
            )
        return values


class _Copy(IRMutator):
    """A body for one value of the loop variable. Loops in it get variables of their own, assigned names stay."""

    def __init__(self, var: e.Var, value: e.ConstInt) -> None:
        super().__init__()
        self.var_map[var] = value

    def visit_for_stmt(self, op: s.ForStmt) -> s.Stmt:
        self.var_map[op.loop_var] = e.Var(op.loop_var.name_hint, op.loop_var.type, op.loop_var.span)
        self.carries(op.iter_args)
        return super().visit_for_stmt(op)

    def visit_while_stmt(self, op: s.WhileStmt) -> s.Stmt:
        self.carries(op.iter_args)
        return super().visit_while_stmt(op)

    def carries(self, args: Sequence[e.IterArg]) -> None:
        fresh = [e.IterArg(a.name_hint, self.visit_type(a.type), self.visit_expr(a.initValue), a.span) for a in args]
        self.var_map.update(zip(args, fresh, strict=True))


def _like(value: int, loop: s.ForStmt) -> e.ConstInt:
    dtype = getattr(loop.loop_var.type, "dtype", None)
    return e.index(value, loop.span) if dtype is None else e.ConstInt(value, dtype, loop.span)
