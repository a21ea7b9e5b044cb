"""The host program in its loadable form: host functions as they are, kernels as declarations."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.enums import ParamDirection
from ..ir.expr import Expr
from ..ir.printer import python_print
from ..ir.program import Function, Program
from ..ir.stmt import ReturnStmt, SeqStmts
from ..ir.types import TensorType
from ..ir.visitor import walk_stmts
from .pto.pipe_ops import GM_PIPE_BUFFER
from .units import is_kernel, reachable


def declaration(func: Function) -> Function:
    """A kernel without its body: the same signature and attributes, `...` for the statements.

    A return of parameters stays: which of several outputs a result is cannot be told from the signature.
    """
    pairs = [(p, d) for p, d in func.pairs if isinstance(p.type, TensorType) and p.name_hint != GM_PIPE_BUFFER]
    outs = [p for p, d in pairs if d is not ParamDirection.In]
    last = next((x for x in walk_stmts(func.body) if isinstance(x, ReturnStmt)), None)
    values = () if last is None else last.value
    if last is not None and values and not _same(values, outs) and all(any(v is p for p in outs) for v in values):
        return func.with_(body=SeqStmts((last,), func.span))
    return func.with_(body=SeqStmts((), func.span), requires_runtime_binding=True)


def _same(values: Sequence[Expr], params: Sequence[Expr]) -> bool:
    return len(values) == len(params) and all(v is p for v, p in zip(values, params, strict=True))


def host_program(program: Program, entry: Function) -> Program:
    """What runs on the host when `entry` is called, with the kernels it reaches declared."""
    kept = [declaration(f) if is_kernel(f) else f for f in reachable(program, entry)]
    return Program(kept, program.name, program.span)


def host_text(program: Program, entry: Function) -> str:
    """The printed host program; `pl.loads` reads it back."""
    return python_print(host_program(program, entry)) + "\n"
