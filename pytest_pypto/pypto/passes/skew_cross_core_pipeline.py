"""SkewCrossCorePipeline: a pipeline that sends tiles to the other core and gets answers runs some sends ahead."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.program import Function, Program
from ..ir.visitor import defs_of, walk_stmts
from .base import FunctionPass
from .device_ir import all_uses, body_like, is_device, nested_bodies, op_call, op_name, with_bodies
from .lower_pipeline_loops import _T6
from .mixed.pipes import INITS
from .mixed.slot_order import POPS
from .pipelining.loops import (
    Trips,
    bind_results,
    copy_body,
    demoted,
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

_PUSHES = frozenset({"tile.tpush_to_aic", "tile.tpush_to_aiv"})
_FIRST_GROUP = 1 << 20
"""Pipeline groups of this pass; those of LowerPipelineLoops count from 0."""
_DEFAULT_SLOTS = {1: 8, 2: 8, 3: 4}
"""Slots per direction when the pipe set-up names no number, by `dir_mask`."""


@dataclass(frozen=True)
class SkewCrossCorePipeline(FunctionPass):
    """Makes pipelines with both a push and a pop sequential, with pushes ahead of the pops where that is safe."""

    name = "SkewCrossCorePipeline"
    requires = _T6
    produces = _T6

    def apply_function(self, func: Function, program: Program) -> Function:
        """The kernel whose handshaking pipelines are plain loops."""
        if not is_device(func):
            return func
        body = _Skew(_ahead_limit(func.body)).body(func.body)
        return func if body is func.body else func.with_(body=body)


def _ahead_limit(body: s.Stmt) -> int:
    """Most sends that may be outstanding without both cores waiting for each other: the slots of both rings and one."""
    for stmt in walk_stmts(body):
        call = op_call(stmt)
        if call is not None and call.op.name in INITS:
            slots = int(call.kwargs.get("slot_num") or _DEFAULT_SLOTS[int(call.kwargs["dir_mask"])])
            return 2 * slots + 1
    return 2 * _DEFAULT_SLOTS[3] + 1


class _Skew:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._groups = 0

    def body(self, body: s.Stmt) -> s.Stmt:
        made: list[s.Stmt] = []
        for stmt in s.stmts_of(body):
            inner = nested_bodies(stmt)
            done = with_bodies(stmt, [self.body(b) for b in inner]) if inner else stmt
            if isinstance(done, s.ForStmt) and is_pipeline(done) and _handshakes(done):
                made.extend(self._loop(done))
            else:
                made.append(done)
        return body_like(body, made)

    def _loop(self, loop: s.ForStmt) -> list[s.Stmt]:
        cut, trips = _producing(loop), static_trips(loop)
        depth = 0 if cut is None or trips is None else self._depth(stages_of(loop), trips)
        if not depth or cut is None or trips is None:
            return [demoted(loop)]
        group = _FIRST_GROUP + self._groups
        self._groups += 1
        return _Skewed(loop, trips, cut, depth, group).build()

    def _depth(self, stages: int, trips: Trips) -> int:
        """How many sends run ahead; 0 when none can."""
        for depth in range(max(2, stages - 1), 0, -1):
            if trips.count % depth == 0 and trips.count >= 2 * depth and 2 * depth <= self.limit:
                return depth
        return 0


def _handshakes(loop: s.ForStmt) -> bool:
    names = {op_name(x) for x in walk_stmts(loop.body)}
    return not names.isdisjoint(_PUSHES) and not names.isdisjoint(POPS)


def _producing(loop: s.ForStmt) -> int | None:
    """Number of leading statements that end in the only push, when nothing after them uses what they define."""
    stmts = s.stmts_of(loop.body)
    pushes = [i for i, x in enumerate(stmts) if op_name(x) in _PUSHES]
    pops = [i for i, x in enumerate(stmts) if op_name(x) in POPS]
    total = [op_name(x) for x in walk_stmts(loop.body)]
    if len(pushes) != 1 or len(pops) != 1 or pushes[0] > pops[0]:
        return None
    if sum(n in _PUSHES for n in total) != 1 or sum(n in POPS for n in total) != 1:
        return None
    cut = pushes[0] + 1
    made = {v for x in stmts[:cut] for inner in walk_stmts(x) for v in defs_of(inner)}
    read = {v for x in stmts[cut:] for v in all_uses(x)}
    ahead = {v for x in stmts[:cut] for v in all_uses(x)}
    if not made.isdisjoint(read) or any(a in ahead for a in loop.iter_args):
        return None
    return cut


class _Skewed:
    """Prologue of sends, a loop that sends for later and answers for earlier iterations, epilogue of answers."""

    def __init__(self, loop: s.ForStmt, trips: Trips, cut: int, depth: int, group: int) -> None:
        self.loop, self.trips, self.depth, self.group = loop, trips, depth, group
        stmts = s.stmts_of(loop.body)
        self.produce, self.consume = stmts[:cut], stmts[cut:]

    def _copy(
        self, stmts: tuple[s.Stmt, ...], at: e.Expr, values: tuple[e.Expr, ...], stage: int
    ) -> tuple[list[s.Stmt], tuple[e.Expr, ...]]:
        made = copy_body(self.loop, stmts, at, values)
        return list(marked(made.stmts, self.group, stage, True)), made.values

    def _const(self, k: int) -> e.Expr:
        return loop_const(self.loop, self.trips.value(k))

    def build(self) -> list[s.Stmt]:
        """The statements that take the loop's place."""
        loop, depth, count = self.loop, self.depth, self.trips.count
        inits = tuple(a.initValue for a in loop.iter_args)
        made: list[s.Stmt] = []
        for j in range(depth):
            made.extend(self._copy(self.produce, self._const(j), inits, j)[0])
        results = fresh_results(loop.return_vars, "_swp")
        made.append(self._steady(inits, results))
        values: tuple[e.Expr, ...] = results
        for j in range(depth):
            stmts, values = self._copy(self.consume, self._const(count - depth + j), values, j)
            made.extend(stmts)
        return [*made, *bind_results(loop.return_vars, values, loop)]

    def _steady(self, inits: tuple[e.Expr, ...], results: tuple[e.Var, ...]) -> s.ForStmt:
        loop, depth, step = self.loop, self.depth, self.trips.step
        var = e.Var(loop.loop_var.name_hint, loop.loop_var.type, loop.loop_var.span)
        args = new_carries(loop, inits)
        body: list[s.Stmt] = []
        for j in range(depth):
            body.extend(self._copy(self.produce, shifted(loop, var, j * step), args, j)[0])
        values: tuple[e.Expr, ...] = args
        for j in range(depth):
            stmts, values = self._copy(self.consume, shifted(loop, var, (j - depth) * step), values, j)
            body.extend(stmts)
        made = replace(demoted(loop), loop_var=var, start=self._const(depth), step=loop_const(loop, step * depth))
        stop = loop_const(loop, self.trips.value(self.trips.count))
        return replace(made, stop=stop, iter_args=args, body=with_yield(body, values, loop), return_vars=results)
