"""LowerPipelineLoops: F iterations of a pipeline loop become one body with F copies."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..ir import expr as e
from ..ir import scalar_ops as ops
from ..ir import stmt as s
from ..ir.dtypes import INDEX
from ..ir.program import Function, Program
from ..ir.types import ScalarType
from .base import FunctionPass
from .device_ir import body_like, is_device, kernel_error, nested_bodies, with_bodies
from .pipelining.loops import (
    DOUBLE_BUFFER,
    STAGES,
    Copy,
    Trips,
    bind_results,
    copy_body,
    fresh_results,
    is_pipeline,
    loop_const,
    marked,
    new_carries,
    shifted,
    stages_of,
    static_trips,
    with_yield,
)

_T6 = frozenset(
    {
        *("SSAForm", "SplitIncoreOrch", "IncoreTileOps", "TileOps2D"),
        *("NormalizedStmtStructure", "TileMemoryInferred"),
    }
)


@dataclass(frozen=True)
class LowerPipelineLoops(FunctionPass):
    """Unrolls pipeline loops by their stage count; what is left over follows the loop."""

    name = "LowerPipelineLoops"
    requires = _T6
    produces = _T6

    def apply_function(self, func: Function, program: Program) -> Function:
        """The kernel with unrolled pipelines (kind Pipeline, stage 1); other loops stay.

        Raises:
            ValueError: a step that is not a constant, or a negative one with run-time bounds.
        """
        if not is_device(func):
            return func
        body = _Lowering().body(func.body)
        return func if body is func.body else func.with_(body=body)


class _Lowering:
    """Lowers inner loops first; pipeline groups are numbered per function."""

    def __init__(self) -> None:
        self._groups = 0

    def body(self, body: s.Stmt) -> s.Stmt:
        made: list[s.Stmt] = []
        for stmt in s.stmts_of(body):
            inner = nested_bodies(stmt)
            done = with_bodies(stmt, [self.body(b) for b in inner]) if inner else stmt
            if isinstance(done, s.ForStmt) and is_pipeline(done) and stages_of(done) > 1:
                made.extend(self._loop(done, stages_of(done)))
            else:
                made.append(done)
        return body_like(body, made)

    def _loop(self, loop: s.ForStmt, stages: int) -> list[s.Stmt]:
        if e.const_value(loop.step) is None:
            raise kernel_error("a pipeline loop needs a constant step", loop.span)
        trips = static_trips(loop)
        return self._static(loop, stages, trips) if trips is not None else self._dynamic(loop, stages)

    def _group(self) -> int:
        self._groups += 1
        return self._groups - 1

    # --- constant bounds -------------------------------------------------------------------------------------------

    def _static(self, loop: s.ForStmt, stages: int, trips: Trips) -> list[s.Stmt]:
        full, rest = divmod(trips.count, stages)
        inits = tuple(a.initValue for a in loop.iter_args)
        if not rest and full:
            return [self._main(loop, stages, loop.start, loop_const(loop, trips.value(trips.count)), loop.return_vars)]
        made: list[s.Stmt] = []
        values = inits
        if full:
            results = fresh_results(loop.return_vars, "_main")
            end = loop_const(loop, trips.value(full * stages))
            made.append(self._main(loop, stages, loop.start, end, results))
            values = results
        if rest:
            at = [loop_const(loop, trips.value(full * stages + j)) for j in range(rest)]
            copies, values = self._copies(loop, list(at), values)
            made.extend(copies)
        return [*made, *bind_results(loop.return_vars, values, loop)]

    def _main(self, loop: s.ForStmt, stages: int, start: e.Expr, stop: e.Expr, results: tuple[e.Var, ...]) -> s.ForStmt:
        step = e.const_value(loop.step)
        assert step is not None
        var = e.Var(loop.loop_var.name_hint, loop.loop_var.type, loop.loop_var.span)
        args = new_carries(loop, tuple(a.initValue for a in loop.iter_args))
        at = [shifted(loop, var, j * step) for j in range(stages)]
        copies, values = self._copies(loop, at, args)
        made = replace(loop, loop_var=var, start=start, stop=stop, step=loop_const(loop, step * stages))
        attrs = loop.attrs | {STAGES: 1}
        return replace(made, iter_args=args, body=with_yield(copies, values, loop), return_vars=results, attrs=attrs)

    def _copies(
        self, loop: s.ForStmt, at: list[e.Expr], values: tuple[e.Expr, ...]
    ) -> tuple[list[s.Stmt], tuple[e.Expr, ...]]:
        """Copies of the body, each going on from the one before."""
        group, accumulators = self._group(), bool(loop.attrs.get(DOUBLE_BUFFER))
        made: list[s.Stmt] = []
        for stage, value in enumerate(at):
            copy: Copy = copy_body(loop, s.stmts_of(loop.body), value, values)
            made.extend(marked(copy.stmts, group, stage, accumulators))
            values = copy.values
        return made, values

    # --- run-time bounds -------------------------------------------------------------------------------------------

    def _dynamic(self, loop: s.ForStmt, stages: int) -> list[s.Stmt]:
        step = e.const_value(loop.step)
        assert step is not None
        if step <= 0:
            raise kernel_error("a pipeline loop with run-time bounds needs a positive step", loop.span)
        count: e.Expr = ops.sub(loop.stop, loop.start)
        if step != 1:
            count = ops.floordiv(ops.add(count, loop_const(loop, step - 1)), loop_const(loop, step))
        whole = ops.mul(ops.floordiv(count, e.index(stages)), e.index(stages * step))
        end = e.Var("unroll_main_end", ScalarType(INDEX), loop.span)
        rest = e.Var("unroll_rem", ScalarType(INDEX), loop.span)
        made: list[s.Stmt] = [
            s.AssignStmt(end, ops.add(loop.start, whole), loop.span),
            s.AssignStmt(rest, ops.mod(ops.max_(count, e.index(0)), e.index(stages)), loop.span),
        ]
        results = fresh_results(loop.return_vars, "_main")
        made.append(self._main(loop, stages, loop.start, end, results))
        made.append(self._remainder(loop, stages, 1, rest, end, results, loop.return_vars))
        return made

    def _remainder(
        self,
        loop: s.ForStmt,
        stages: int,
        n: int,
        rest: e.Var,
        end: e.Var,
        values: tuple[e.Var, ...],
        results: tuple[e.Var, ...],
    ) -> s.Stmt:
        """`if unroll_rem == n: n copies else: ...`, up to `stages - 1`."""
        step = e.const_value(loop.step)
        assert step is not None
        copies, last = self._copies(loop, [shifted(loop, end, j * step) for j in range(n)], values)
        then = with_yield(copies, last, loop)
        other: s.Stmt | None
        if n + 1 < stages:
            inner = fresh_results(results, "")
            chain = self._remainder(loop, stages, n + 1, rest, end, values, inner)
            other = with_yield([chain], inner, loop)
        else:
            other = with_yield([], values, loop) if values else None
        return s.IfStmt(ops.eq(rest, e.index(n)), then, other, results, loop.span)
