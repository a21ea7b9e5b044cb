"""The host program in its loadable form: host functions as they are, kernels as declarations."""

from __future__ import annotations

from ..ir.printer import python_print
from ..ir.program import Function, Program
from ..ir.stmt import SeqStmts
from .units import is_kernel, reachable


def declaration(func: Function) -> Function:
    """A kernel without its body: the same signature and attributes, `...` for the statements."""
    return func.with_(body=SeqStmts((), func.span), requires_runtime_binding=True)


def host_program(program: Program, entry: Function) -> Program:
    """What runs on the host when `entry` is called, with the kernels it reaches declared."""
    kept = [declaration(f) if is_kernel(f) else f for f in reachable(program, entry)]
    return Program(kept, program.name, program.span)


def host_text(program: Program, entry: Function) -> str:
    """The printed host program; `pl.loads` reads it back."""
    return python_print(host_program(program, entry)) + "\n"
