"""Which functions of a finished program are kernels, which run on the host, and how kernels form units."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..ir.enums import FunctionType
from ..ir.expr import GlobalVar
from ..ir.program import Function, Program
from ..ir.visitor import calls_in
from .errors import CodegenError

KERNEL_TYPES = frozenset({FunctionType.AIC, FunctionType.AIV, FunctionType.InCore})


@dataclass(frozen=True, slots=True)
class Unit:
    """Kernels that become one `.pto` module: a stand-alone kernel, or the members of a group (cube core first).

    `path` is the file's place below `kernels/`.
    """

    name: str
    functions: tuple[Function, ...]
    is_group: bool

    @property
    def path(self) -> str:
        """`aiv/<func>.pto`, `aic/<func>.pto` or `<group>.pto`."""
        if self.is_group:
            return f"{self.name}.pto"
        return f"{core_of(self.functions[0])}/{self.name}.pto"


def core_of(func: Function) -> str:
    """`aic` or `aiv`: the core a kernel runs on."""
    return "aic" if func.func_type is FunctionType.AIC else "aiv"


def is_kernel(func: Function) -> bool:
    """True for functions that run on a core."""
    return func.func_type in KERNEL_TYPES


def callees(func: Function) -> list[str]:
    """Names of the functions that `func` calls or submits, in order of first appearance."""
    found: dict[str, None] = {}
    for call in calls_in(func.body):
        if isinstance(call.op, GlobalVar):
            found.setdefault(call.op.name)
    return list(found)


def group_members(group: Function, program: Program) -> tuple[Function, ...]:
    """The kernels of a group, cube core first.

    They are the kernels its body calls; without calls, the functions named `<group>_aic` and `<group>_aiv`.

    Raises:
        CodegenError: none, or several for one core.
    """
    names = callees(group) or [f"{group.name}_aic", f"{group.name}_aiv"]
    members = [f for f in map(program.get_function, names) if f is not None and is_kernel(f)]
    members.sort(key=core_of)
    cores = [core_of(f) for f in members]
    if not members or len(set(cores)) != len(cores):
        listed = ", ".join(f"{f.name} ({core_of(f)})" for f in members) or "none"
        raise CodegenError(
            f"group '{group.name}' needs at most one kernel per core and at least one, it has {listed}; "
            "call one cube and one vector kernel in the group's body",
            group.span,
        )
    return tuple(members)


def kernel_units(program: Program) -> list[Unit]:
    """All units: groups first, then the kernels in no group, each sorted by name."""
    units: list[Unit] = []
    grouped: set[str] = set()
    for func in program.functions.values():
        if func.func_type is FunctionType.Group:
            members = group_members(func, program)
            grouped.update(f.name for f in members)
            units.append(Unit(func.name, members, True))
    for func in program.functions.values():
        if is_kernel(func) and func.name not in grouped:
            units.append(Unit(func.name, (func,), False))
    return units


def orchestrations(program: Program) -> list[Function]:
    """Functions of type Orchestration, by name."""
    return [f for f in program.functions.values() if f.func_type is FunctionType.Orchestration]


def entry_function(program: Program) -> Function:
    """The function whose parameters are the call signature.

    It is the Orchestration function; without one, the sole function that no other function calls.

    Raises:
        CodegenError: there is no such function, or several.
    """
    found = orchestrations(program)
    if not found:
        called = {name for f in program.functions.values() for name in callees(f)}
        roots = [f for f in program.functions.values() if f.name not in called and not is_kernel(f)]
        found = roots or [f for f in program.functions.values() if f.name not in called]
    if len(found) != 1:
        listed = ", ".join(f.name for f in found) or "none"
        raise CodegenError(
            f"program '{program.name}' has no Orchestration function that could be the entry (candidates: {listed}); "
            "mark the entry with type=pl.FunctionType.Orchestration"
        )
    return found[0]


def reachable(program: Program, root: Function) -> Iterator[Function]:
    """`root` and everything it calls, each once, callers first."""
    seen, waiting = {root.name}, [root]
    while waiting:
        func = waiting.pop(0)
        yield func
        for name in callees(func):
            callee = program.get_function(name)
            if callee is not None and name not in seen:
                seen.add(name)
                waiting.append(callee)
