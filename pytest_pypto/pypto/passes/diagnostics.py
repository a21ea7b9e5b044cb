"""Warnings and performance hints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

from ..backend.handler import current_handler
from ..ir import expr as e
from ..ir import stmt as s
from ..ir.enums import MemorySpace, is_incore_type
from ..ir.program import Function, Program
from ..ir.types import TileType
from ..ir.visitor import exprs_of, uses_of, walk_stmts
from ..logs import child_log
from ._util import is_call
from .diagnostic_types import (
    Diagnostic,
    DiagnosticCheck,
    DiagnosticCheckSet,
    DiagnosticPhase,
    DiagnosticSeverity,
)
from .parallel_memory import parallel_loop_carries_memory

_log = child_log("passes")
Check = Callable[[Program], Iterator[Diagnostic]]


def _read_vars(func: Function) -> set[e.Var]:
    """Variables that are read, also by scope and call attributes."""
    used: set[e.Var] = set()
    for stmt in walk_stmts(func.body):
        for root in exprs_of(stmt):
            used.update(uses_of(root))
        if isinstance(stmt, s.ScopeStmt):
            for value in stmt.attrs.values():
                items = value if isinstance(value, (list, tuple)) else (value,)
                used.update(x for x in items if isinstance(x, e.Var))
    return used


def _warning(rule: str, message: str, stmt: s.Stmt) -> Diagnostic:
    return Diagnostic(DiagnosticSeverity.Warning, rule, message, stmt.span)


def unused_variable(program: Program) -> Iterator[Diagnostic]:
    """Assigned and never read.

    Exempt are names that begin with an underscore, and those that the syntax asks for: the variable of a loop over
    lanes or blocks, and the names of an unpacked tuple.
    """
    for func in program.functions.values():
        used = {v.name_hint for v in _read_vars(func)}
        given = {id(x) for x in walk_stmts(func.body) for x in _given(x)}
        for stmt in walk_stmts(func.body):
            if isinstance(stmt, s.AssignStmt) and id(stmt) not in given:
                name = stmt.var.name_hint
                if name not in used and not name.startswith("_"):
                    yield _warning("UnusedVariableCheck", f"variable '{name}' is assigned and never read", stmt)


def _given(stmt: s.Stmt) -> Iterator[s.Stmt]:
    """Assignments at this statement that its syntax makes."""
    if isinstance(stmt, (s.SplitAivScopeStmt, s.SpmdScopeStmt)):
        for first in s.stmts_of(stmt.body)[:1]:
            inner = s.stmts_of(first.body)[:1] if isinstance(first, s.InCoreScopeStmt) else (first,)
            yield from (x for x in inner if isinstance(x, s.AssignStmt) and is_call(x.value, *_INDICES))
    elif isinstance(stmt, s.AssignStmt) and isinstance(stmt.value, e.TupleGetItemExpr):
        yield stmt


_INDICES = ("tile.get_block_idx", "tile.get_subblock_idx")


def unused_control_flow_result(program: Program) -> Iterator[Diagnostic]:
    """Result of a loop or if that nobody reads."""
    for func in program.functions.values():
        used = _read_vars(func)
        for stmt in walk_stmts(func.body):
            if isinstance(stmt, (s.ForStmt, s.WhileStmt, s.IfStmt)):
                for var in stmt.return_vars:
                    if var not in used:
                        text = f"result '{var.name_hint}' is never read"
                        yield _warning("UnusedControlFlowResultCheck", text, stmt)


_WRITES = {"tile.store": 2, "tensor.assemble": 0}


def out_param_write_dropped(program: Program) -> Iterator[Diagnostic]:
    """A store into a tensor whose result nobody reads, followed by a use of the tensor as it was."""
    for func in program.functions.values():
        used = _read_vars(func)
        for stmt in walk_stmts(func.body):
            if isinstance(stmt, s.EvalStmt) and isinstance(stmt.expr, e.Call) and stmt.expr.op.name in _WRITES:
                target = stmt.expr.args[_WRITES[stmt.expr.op.name]]
                if isinstance(target, e.Var) and target in used and not is_incore_type(func.func_type):
                    text = f"the result of {stmt.expr.op.name} into '{target.name_hint}' is dropped; assign it"
                    yield _warning("OutParamWriteDroppedCheck", text, stmt)


def tile_innermost_dim(program: Program) -> Iterator[Diagnostic]:
    """PH001: a load or store whose innermost axis is shorter than the architecture likes, once per source place."""
    handler = current_handler()
    if handler is None:
        return
    first: dict[tuple[str, str], Diagnostic] = {}
    found: Counter[tuple[str, str]] = Counter()
    for func in program.functions.values():
        if is_incore_type(func.func_type):
            for stmt in walk_stmts(func.body):
                for root in exprs_of(stmt):
                    if isinstance(root, e.Call) and root.op.name in ("tile.load", "tile.store"):
                        for hint in _innermost(root, handler.perf_hint_bytes, handler.arch, stmt):
                            key = (hint.message, str(hint.span))
                            first.setdefault(key, hint)
                            found[key] += 1
    for key, hint in first.items():
        times = f" ({found[key]} occurrences at this source location)" if found[key] > 1 else ""
        yield replace(hint, message=hint.message + times)


def _innermost(call: e.Call, wanted: int, arch: str, stmt: s.Stmt) -> Iterator[Diagnostic]:
    type_ = call.type if call.op.name == "tile.load" else call.args[0].type
    extents = e.static_dims(type_.shape) if isinstance(type_, TileType) else None
    if not isinstance(type_, TileType) or not extents:
        return
    row = extents[-1] * type_.dtype.get_bit() // 8
    if row >= wanted:
        return
    rows = 1
    for extent in extents[:-1]:
        rows *= extent
    space = (type_.memory_space or MemorySpace.Vec).name
    text = (
        f"{call.op.name} moves {rows * row}B as {rows} rows of {row}B (tile {type_.dtype}[{extents[-1]}], "
        f"target_memory={space}); innermost dim below {wanted}B is slow on {arch}: widen the tile's last axis"
    )
    span = call.span if call.span.is_valid() else stmt.span
    yield Diagnostic(DiagnosticSeverity.PerfHint, "TileInnermostDimGranularity", text, span, 0, "PH001")


CHECKS: dict[DiagnosticCheck, Check] = {
    DiagnosticCheck.UnusedVariable: unused_variable,
    DiagnosticCheck.UnusedControlFlowResult: unused_control_flow_result,
    DiagnosticCheck.TileInnermostDimGranularity: tile_innermost_dim,
    DiagnosticCheck.OutParamWriteDropped: out_param_write_dropped,
    DiagnosticCheck.ParallelLoopCarriesMemory: parallel_loop_carries_memory,
}
HINTS = frozenset({DiagnosticCheck.TileInnermostDimGranularity})


class DiagnosticCheckRegistry:
    """The checks by name."""

    @staticmethod
    def run_checks(checks: DiagnosticCheckSet, phase: DiagnosticPhase, program: Program) -> list[Diagnostic]:
        """Findings of the checks; none at phase NONE."""
        return [] if phase is DiagnosticPhase.NONE else run_checks(checks, program)

    @staticmethod
    def get_all_checks() -> DiagnosticCheckSet:
        """Every check."""
        return DiagnosticCheckSet(CHECKS)

    @staticmethod
    def get_warning_checks() -> DiagnosticCheckSet:
        """Checks that give warnings."""
        return DiagnosticCheckSet(set(CHECKS) - HINTS)

    @staticmethod
    def get_perf_hint_checks() -> DiagnosticCheckSet:
        """Checks that give performance hints."""
        return DiagnosticCheckSet(HINTS)


def run_checks(checks: DiagnosticCheckSet, program: Program) -> list[Diagnostic]:
    """Findings of the checks."""
    return [d for check in checks for d in CHECKS[check](program)]


def checks_for(now: DiagnosticPhase, wanted: DiagnosticPhase) -> DiagnosticCheckSet:
    """What runs at phase `now` when the context asks for `wanted`.

    Warnings run at the phase asked for; performance hints look at the final program, once.
    """
    checks = DiagnosticCheckSet()
    if now is wanted:
        checks = DiagnosticCheckRegistry.get_warning_checks()
    if now is DiagnosticPhase.POST_PIPELINE:
        checks = checks.union_with(DiagnosticCheckRegistry.get_perf_hint_checks())
    return checks


def report(found: list[Diagnostic], phase: DiagnosticPhase) -> None:
    """Log warnings; hints are for the caller to write into `report/perf_hints.log`."""
    for d in found:
        if d.severity is DiagnosticSeverity.Warning:
            _log.warning("[%s] (%s) %s at %s", d.rule_name, phase.name.lower(), d.message, d.span)
