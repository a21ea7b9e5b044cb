"""`ir.compile`, loaded on the first call; see `pypto.runtime.compile`."""

from __future__ import annotations

import inspect
from typing import Any


class _Compile:
    """The function `ir.compile`. It stands for `compile_program` without importing passes and runtime."""

    __name__ = "compile"
    __qualname__ = "compile"

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Compile a program; see `pypto.runtime.compile.compile_program`. Options may be given by place, too."""
        from ..runtime.compile import compile_program

        bound = self.__signature__.bind(*args, **options).arguments
        return compile_program(bound.pop("program"), **bound)

    @property
    def __signature__(self) -> inspect.Signature:
        from ..runtime.compile import compile_program

        own = inspect.signature(compile_program)
        by_place = [p.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD) for p in own.parameters.values()]
        return own.replace(parameters=by_place)

    def __repr__(self) -> str:
        return "<function pypto.ir.compile>"


compile = _Compile()
"""Compile a program into an artifact: `ir.compile(program, platform="a2a3sim", ...)`."""
