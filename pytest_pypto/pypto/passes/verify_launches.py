"""Check of launches: a hard barrier stands only in kernels that occupy every core the barrier waits for."""

from __future__ import annotations

from collections.abc import Iterator

from ..backend.handler import Handler, current_handler
from ..ir import expr as e
from ..ir.enums import FunctionType
from ..ir.program import Function, Program
from ..ir.visitor import calls_in
from ._util import is_call
from .diagnostic_types import Diagnostic
from .verify_flow import Rule, error

_WRAPPERS = frozenset({FunctionType.Group, FunctionType.Spmd})
"""Functions that are launched in place of the kernels they call."""


def hard_syncall_occupancy_valid(program: Program) -> Iterator[Diagnostic]:
    """A hard barrier of a chip's cores is in a kernel that is launched on all cores of one or of every die."""
    handler = current_handler()
    waiting = _waiting(program)
    if handler is None or not waiting:
        return
    for func in program.functions.values():
        if func.func_type in _WRAPPERS:
            continue
        for call in calls_in(func.body):
            kinds = waiting.get(call.op.name) if isinstance(call.op, e.GlobalVar) else None
            blocks = _blocks(call)
            if kinds is None or blocks is None:
                continue
            full = _full_launches(kinds, handler)
            if blocks not in full:
                text = (
                    f"'{call.op.name}' has a hard barrier over all cores and is launched on {blocks} block(s) of "
                    f"{' or '.join(map(str, full))}; launch it with pl.spmd on all cores, or use a soft barrier"
                )
                yield error("HardSyncallOccupancyValid", text, call.span)


def _waiting(program: Program) -> dict[str, set[FunctionType]]:
    """Functions in whose launch a core waits for all others, with the types of all kernels in that launch."""
    kernels = {f.name: {f.func_type} for f in program.functions.values() if f.func_type not in _WRAPPERS}
    found = {f.name: kernels[f.name] for f in program.functions.values() if f.name in kernels and _waits_for_all(f)}
    wrappers = {
        f.name: {c.op.name for c in calls_in(f.body)} for f in program.functions.values() if f.name not in kernels
    }
    grown = True
    while grown:
        before = len(found)
        for name, callees in wrappers.items():
            if callees & found.keys():
                parts = (found.get(c) or kernels.get(c, set()) for c in callees)
                found[name] = set[FunctionType]().union(*parts)
        grown = len(found) > before
    return found


def _waits_for_all(func: Function) -> bool:
    return any(is_call(c, "system.syncall") and c.kwargs.get("mode") != "soft" for c in calls_in(func.body))


def _blocks(call: e.Call | e.Submit) -> int | None:
    """Blocks of a launch; None when they are only known at run time."""
    count = call.core_num if isinstance(call, e.Submit) else call.attrs.get("core_num")
    if isinstance(count, int):
        return count
    return 1 if count is None else e.const_value(count)


def _full_launches(kinds: set[FunctionType], handler: Handler) -> tuple[int, ...]:
    """Blocks that occupy one die, two dies, ...; a block of vector code alone takes one of two cores of a cluster."""
    per_die = handler.clusters_per_die * (2 if kinds == {FunctionType.AIV} else 1)
    return tuple(per_die * dies for dies in range(1, handler.dies + 1))


LAUNCH_RULES: dict[str, Rule] = {"HardSyncallOccupancyValid": hard_syncall_occupancy_valid}
