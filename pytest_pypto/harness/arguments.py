"""Arguments that stand in the wrong place: said before anything runs, with what is expected and what was given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_pypto.harness.errors import ArgumentError
from pytest_pypto.harness.golden import Golden

COMPILED = "a compiled program (what pypto_compile or ir.compile returns)"
PROGRAM = "a compiled program (what pypto_compile or ir.compile returns) or a @pl.program"
INPUTS = "the arguments by parameter name (what pypto_inputs returns, or a dict)"
GOLDEN = "a golden: a function on a dict of clones, what pypto_golden returns, or a dict of expected tensors"


def given(value: Any) -> str:
    """What a value is, in words an author recognises."""
    if value is None:
        return "None"
    if hasattr(value, "functions"):
        return f"the program {getattr(value, 'name', '?')!r}, which is not compiled"
    if isinstance(value, Golden):
        return f"the golden {value.name!r}"
    name = type(value).__name__
    if name == "Inputs":
        return "inputs (of pypto_inputs)"
    if name == "CompiledProgram":
        return "a compiled program"
    if callable(value):
        return f"the function {getattr(value, '__name__', name)!r}"
    return f"{name} {value!r}" if isinstance(value, (int, float, str, bool)) else f"a value of type {name}"


def wrong(what: str, place: str, expected: str, value: Any) -> ArgumentError:
    """The error about one argument."""
    return ArgumentError(f"{what}: the {place} argument is {expected}; got {given(value)}")


def need_compiled(what: str, value: Any, *, program_too: bool = False) -> None:
    """Check the first argument.

    Raises:
        ArgumentError: it is no compiled program.
    """
    __tracebackhide__ = True
    if hasattr(value, "functions") and program_too:
        return
    if not hasattr(value, "__fspath__") or hasattr(value, "functions"):
        hint = "; compile it first: pypto_compile(program)" if hasattr(value, "functions") else ""
        error = wrong(what, "first", PROGRAM if program_too else COMPILED, value)
        raise ArgumentError(f"{error}{hint}")


def need_inputs(what: str, value: Any, place: str = "second") -> None:
    """Check the arguments of a program.

    Raises:
        ArgumentError: no mapping.
    """
    __tracebackhide__ = True
    if not isinstance(value, Mapping):
        raise wrong(what, place, INPUTS, value)


def need_golden(what: str, value: Any, place: str = "third") -> None:
    """Check a golden.

    Raises:
        ArgumentError: neither a function, nor a golden, nor a dict.
    """
    __tracebackhide__ = True
    inputs = type(value).__name__ == "Inputs"  # a mapping, too, but surely the wrong argument
    if inputs or not (isinstance(value, (Golden, Mapping)) or (callable(value) and not hasattr(value, "__fspath__"))):
        raise wrong(what, place, GOLDEN, value)
