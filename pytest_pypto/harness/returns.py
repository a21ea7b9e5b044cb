"""What a program returns, and which of it is a parameter that it filled.

A dispatch gives back nothing for a program that returns only parameters: the caller has these tensors already. For a
comparison they are returned values like any other, so they are taken from the parameters after the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_pypto.harness.errors import CannotRun, CaseError
from pytest_pypto.harness.signature import entry_of, from_program, plain_name
from pytest_pypto.harness.stages import program_of, stages_of

if TYPE_CHECKING:
    from pytest_pypto.harness.case import Case
    from pytest_pypto.harness.oracle import Run

TARGETS = {"assemble": 0, "store": 2, "write": 0}
"""Operators whose result is the tensor they write into, and which operand that is."""


def returned_names(program: Any) -> tuple[str, ...]:
    """For each value that the entry of a front-end program returns: the parameter it is, "" for a value of its own."""
    found = _trace(program, entry_of(program))
    known = {p.name for p in from_program(program).params}
    names = (plain_name(str(getattr(found.origin(value), "name_hint", ""))) for value in found.returned)
    return tuple(name if name in known else "" for name in names)


def _trace(program: Any, function: Any) -> Any:
    """Definitions and the last return of a function."""
    from pypto import ir

    class Trace(ir.IRVisitor):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.returned: tuple[Any, ...] = ()
            self.sources: dict[int, Any] = {}

        def visit_return_stmt(self, op: Any) -> None:
            self.returned = tuple(op.value)

        def visit_assign_stmt(self, op: Any) -> None:
            source = op.value if hasattr(op.value, "name_hint") else _target(program, op.value)
            if source is not None:
                self.sources[id(op.var)] = source

        def visit_for_stmt(self, op: Any) -> None:
            self._loop(op)
            super().visit_for_stmt(op)

        def visit_while_stmt(self, op: Any) -> None:
            self._loop(op)
            super().visit_while_stmt(op)

        def _loop(self, op: Any) -> None:
            for var, carried in zip(op.return_vars, op.iter_args, strict=False):
                self.sources[id(var)] = carried.initValue

        def origin(self, value: Any) -> Any:
            ends = {id(p) for p in function.params}
            while id(value) in self.sources and id(value) not in ends:
                ends.add(id(value))
                value = self.sources[id(value)]
            return value

    trace = Trace()
    trace.visit_function(function)
    return trace


def _target(program: Any, call: Any) -> Any:
    """The tensor that a call writes and gives back, None when there is none or several."""
    from pypto import ir

    op, args = getattr(call, "op", None), list(getattr(call, "args", ()))
    if isinstance(op, ir.GlobalVar):
        callee = next((f for f in program.functions.values() if f.name == op.name), None)
        directions = callee.param_directions if callee is not None else ()
        written = [arg for arg, way in zip(args, directions, strict=False) if way.name != "In"]
        return written[0] if len(written) == 1 else None
    path, _, short = str(getattr(op, "name", "")).rpartition(".")
    place = TARGETS.get(short, len(args)) if path else len(args)
    return args[place] if place < len(args) else None


def names_for(case: Case) -> tuple[str, ...] | None:
    """`returned_names` of the case's program, None when there is no program to look at."""
    program = program_of(case.compiled)
    if program is None:
        try:
            program = stages_of(case.compiled, case.platform)[0].program
        except CannotRun:
            return None
    return returned_names(program)


def returned_values(case: Case, run: Run, count: int) -> list[tuple[str, Any]]:
    """What a run returned, parameters included: the parameter's name ("" for none) and the value, in order.

    Args:
        case: the case.
        run: through the oracle or on the device.
        count: how many values the golden returns.

    Raises:
        CaseError: the program returns another number of values, or it is unknown which parameters it returns.
    """
    have, names = items(run.returned), names_for(case)
    names = ("",) * len(have) if names is None else names
    if len(names) != count:
        raise CaseError(_count(case, names, count))
    if len(have) == len(names):
        return list(zip(names, have, strict=True))
    own = iter(have)
    if len(have) != names.count(""):
        raise CaseError(
            f"the run gave back {len(have)} of the {len(names)} values that the program returns, and which parameters "
            f"the others are is not known; let golden {case.expectation().name!r} write into the output tensors instead"
        )
    return [(name, run.tensors[name] if name else next(own)) for name in names]


def items(value: Any) -> list[Any]:
    """Returned values as a list."""
    if value is None:
        return []
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _count(case: Case, names: tuple[str, ...], count: int) -> str:
    what = ", ".join(name or "a value of its own" for name in names)
    returns = f"{len(names)} value{'s'[: len(names) != 1]} ({what})" if names else "nothing"
    values = f"{count} value{'s'[: count != 1]}"
    outputs = ", ".join(f"{p.name!r}" for p in case.signature.outputs) or "none"
    return (
        f"golden {case.expectation().name!r} returns {values}, the program returns {returns}; return as many, or "
        f"write into the output tensors (or return a dict of them): {outputs}"
    )
