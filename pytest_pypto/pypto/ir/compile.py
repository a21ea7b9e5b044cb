"""`ir.compile`, loaded on the first call; see `pypto.runtime.compile`."""

from __future__ import annotations

import inspect
from typing import Any


class _Compile:
    """The function `ir.compile`. It stands for `compile_program` without importing passes and runtime."""

    __name__ = "compile"
    __qualname__ = "compile"

    def __call__(self, program: Any, **options: Any) -> Any:
        """Compile a program; see `pypto.runtime.compile.compile_program`."""
        from ..runtime.compile import compile_program

        return compile_program(program, **options)

    @property
    def __signature__(self) -> inspect.Signature:
        from ..runtime.compile import compile_program

        return inspect.signature(compile_program)

    def __repr__(self) -> str:
        return "<function pypto.ir.compile>"


compile = _Compile()
"""Compile a program into an artifact: `ir.compile(program, platform="a2a3sim", ...)`."""
