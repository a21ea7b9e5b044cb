"""Compiled specialisations of one jit function.

The key is the text of the specialised program together with every setting that changes what is compiled. Whatever makes
another program (arguments, constants of the closure, helper functions) is in the text, so nothing can be forgotten.
Settings for dumps, reports and directories are not in the key.
"""

from __future__ import annotations

import reprlib
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..ir.printer import python_print
from ..ir.program import Program
from .binding import Bound, bind
from .specializer import Specialization, Specializer, parameters

if TYPE_CHECKING:
    from .decorator import JITFunction

_FOR_REPORTS = ("dump_passes", "dump_ptoas_passes", "profiling", "output_dir")
"""Compile settings that do not change what is compiled."""
_LOWER = (
    *("platform", "strategy", "diagnostic_phase", "disabled_diagnostics"),
    *("analyze_auto_scopes_for_deps", "memory_planner"),
)


@dataclass
class Cache:
    """The compiled specialisations of one function, by key."""

    entries: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    def clear(self) -> None:
        """Forget every entry."""
        self.entries.clear()

    def specialized(
        self, jit: JITFunction, args: tuple[Any, ...], kwargs: Mapping[str, Any], may_be_signature: bool
    ) -> tuple[Bound, Specialization]:
        """Bound arguments and the program made for them."""
        if jit.func_type == "extern":
            raise TypeError(
                f"'{jit.__name__}' is a C++ kernel (@pl.jit.extern); the embedded toolchain cannot build it"
            )
        bound = bind(jit.func, parameters(jit), args, kwargs, may_be_signature)
        return bound, Specializer(jit, bound).run()

    def compiled(
        self, jit: JITFunction, args: tuple[Any, ...], kwargs: Mapping[str, Any], config: Any, may_be_signature: bool
    ) -> tuple[Bound, Any]:
        """Bound arguments and the artifact for them, compiled if it is not there yet."""
        from ..runtime.compile import compile_program

        bound, made = self.specialized(jit, args, kwargs, may_be_signature)
        options = _options(jit, config)
        key = _key(made.program, options)
        found = self.entries.get(key)
        if found is None:
            with _users_words(made):
                found = compile_program(made.program, skip_ptoas=True, **options)
            self.entries[key] = found
        else:
            with _users_words(made):
                _complete(found, made.program, options)
        return bound, found

    def lowered(self, jit: JITFunction, args: tuple[Any, ...], kwargs: Mapping[str, Any], config: Any) -> Program:
        """The program after all passes."""
        from ..runtime.compile import lower_program

        _, made = self.specialized(jit, args, kwargs, may_be_signature=True)
        options = _options(jit, config)
        with _users_words(made):
            return lower_program(made.program, **{k: v for k, v in options.items() if k in _LOWER})


def _options(jit: JITFunction, config: Any) -> dict[str, Any]:
    """Keywords for the compiler; no config means a default one.

    Raises:
        TypeError: something else than a RunConfig.
    """
    from ..runtime.config import RunConfig

    chosen = RunConfig() if config is None else config
    if not isinstance(chosen, RunConfig):
        raise TypeError(
            f"@pl.jit function '{jit.__name__}': config= takes a RunConfig, got {reprlib.repr(config)}; "
            "write config=RunConfig(platform=..., ...)"
        )
    return chosen.compile_kwargs()


def _key(program: Program, options: Mapping[str, Any]) -> tuple[Any, ...]:
    from ..passes.context import PassContext, active_planner

    context = PassContext.current()
    settings = [(k, _hashable(v)) for k, v in sorted(options.items()) if k not in _FOR_REPORTS]
    settings.append(("planner", options.get("memory_planner") or active_planner()))
    if context is not None:
        settings.append(("double_buffer", context.get_enable_pypto_l0c_double_buffer()))
        settings.append(("runtime", context.get_runtime()))
    return (python_print(program, format=False), *settings)


def _hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value


@contextmanager
def _users_words(made: Specialization) -> Iterator[None]:
    """Errors of the compiler speak of the author's variables, not of the renamed ones."""
    try:
        yield
    except Exception as error:
        error.args = tuple(made.in_users_words(a) if isinstance(a, str) else a for a in error.args)
        raise


def _complete(found: Any, program: Program, options: Mapping[str, Any]) -> None:
    """Add what this call asks for to an artifact that is compiled already: dumps, reports, a copy elsewhere."""
    here = Path(found.output_dir)
    wants_dumps = options.get("dump_passes") and not (here / "passes_dump").is_dir()
    wants_profile = options.get("profiling") and not (here / "report" / "pipeline_profile.json").is_file()
    if wants_dumps or wants_profile:
        _compile_again_into(here, program, options)
    target = options.get("output_dir")
    if target is not None and Path(target).resolve() != here.resolve():
        shutil.copytree(here, target, dirs_exist_ok=True)


def _compile_again_into(here: Path, program: Program, options: Mapping[str, Any]) -> None:
    """The same artifact again, with the dumps and reports of this call."""
    from ..runtime.compile import compile_program

    compile_program(program, skip_ptoas=True, **{**options, "output_dir": str(here)})
