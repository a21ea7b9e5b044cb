"""`pl.jit` and the functions it makes."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..ir.enums import Level
from ..ir.program import Program
from .source import FunctionSource, plain_function, read

if TYPE_CHECKING:
    from .cache import CacheInfo

_KINDS = ("orchestration", "incore", "inline", "opaque", "host", "extern")
_CALLABLE = ("incore", "inline", "opaque", "extern")
"""Kinds that every jit function may call; host functions may call entries as well."""


class JITFunction:
    """A function that is specialised by its arguments, compiled once per specialisation, and run.

    Call it with torch tensors and numbers: `kernel(a, b, out)`. Compile options travel in `config=RunConfig(...)`.
    Threads may call it at the same time.

    Specialisations are kept in memory. With the environment variable `PYPTO_JIT_CACHE_DIR=<directory>` they are kept on
    disk too, and other processes take them from there (see `jit/store.py`). `kernel.compile(...)` fills both without
    running anything: it needs no device, and no data either (tensors on the `meta` device, or complete annotations).
    """

    __name__: str
    __qualname__: str
    func_type: str

    def __init__(
        self,
        func: Any,
        func_type: str | None = None,
        level: Any = None,
        auto_scope: bool = True,
        external_core_type: str | None = None,
        external_aic_source: str | None = None,
        external_aiv_source: str | None = None,
        external_dual_aiv_dispatch: bool = False,
        external_include_dirs: tuple[str, ...] = (),
    ) -> None:
        if isinstance(func, JITFunction):
            raise TypeError(f"'{func.__name__}' is a jit function ({func.func_type}) already; decorate it once")
        self.func, self.func_type = plain_function(func), func_type or "orchestration"
        if self.func_type not in _KINDS:
            raise ValueError(f"func_type of a jit function is one of {', '.join(_KINDS)}, got {func_type!r}")
        functools.update_wrapper(self, self.func)
        self.level, self.auto_scope = level, auto_scope
        self.external_core_type = external_core_type
        self.external_aic_source, self.external_aiv_source = external_aic_source, external_aiv_source
        self.external_dual_aiv_dispatch = external_dual_aiv_dispatch
        self.external_include_dirs = tuple(external_include_dirs)
        from .cache import Cache

        self._cache = Cache()

    def __repr__(self) -> str:
        return f"JITFunction({self.__name__!r}, func_type={self.func_type!r})"

    def __reduce__(self) -> str:
        """Pickled and copied by name, like any function of a module."""
        name: str = self.__qualname__
        return name

    @cached_property
    def source(self) -> FunctionSource:
        """The source of the function.

        Raises:
            OSError: it cannot be read.
        """
        return read(self.func)

    def may_call(self, other: JITFunction) -> bool:
        """True when a call of `other` in the body becomes a call within the program."""
        return other.func_type in _CALLABLE or (self.func_type == "host" and other.func_type == "orchestration")

    def __call__(self, *args: Any, config: Any = None, **kwargs: Any) -> Any:
        """Compile for these arguments, then run: tensors are filled in place, what the function returns is returned.

        Args:
            args: torch tensors and numbers, one per parameter.
            config: a `RunConfig`; its compile settings and its dispatch settings are both used.

        Raises:
            TypeError: the arguments do not fit the parameters.
            ParserError: the source is outside the language.
        """
        self._refuse("incore", "inline", "opaque")
        bound, artifact = self._cache.compiled(self, args, kwargs, config, may_be_signature=False)
        several = getattr(artifact, "orchestration_names", ())  # an opaque helper is one more of them
        return (artifact[self.__name__] if several else artifact)(*bound.values, config=config)

    def compile(self, *args: Any, config: Any = None, **kwargs: Any) -> Any:
        """The `CompiledProgram` for these arguments, the one that a call with the same key uses.

        Without any tensor the annotations must be complete, and scalars are given by keyword (`pl.RUNTIME` leaves one
        a run-time value).
        """
        self._refuse("incore", "inline")
        return self._cache.compiled(self, args, kwargs, config, may_be_signature=True)[1]

    def lower(self, *args: Any, config: Any = None, **kwargs: Any) -> Program:
        """The program after all passes. Nothing is written, run or kept."""
        return self._cache.lowered(self, args, kwargs, config)

    def specialize(self, *args: Any, **kwargs: Any) -> Program:
        """The program before any pass, for these arguments."""
        return self._cache.specialized(self, args, kwargs, may_be_signature=True)[1].program

    def cache_clear(self) -> None:
        """Forget every compiled specialisation of this function in memory, and the counts; files stay."""
        self._cache.clear()

    def cache_info(self) -> CacheInfo:
        """How many compilations were found in memory, found on disk, or made; and how many are kept."""
        return self._cache.info()

    def _refuse(self, *kinds: str) -> None:
        if self.func_type in kinds:
            raise TypeError(
                f"@pl.jit.{self.func_type} function '{self.__name__}' is called by @pl.jit functions, not from Python; "
                "lower(...) shows its IR"
            )


class _Jit:
    """`pl.jit`: a decorator, with one decorator per kind of helper function as attributes."""

    def __call__(self, func: Any = None, *, auto_scope: bool = True) -> Any:
        """Make an entry: `@pl.jit` or `@pl.jit(auto_scope=False)`."""
        return _decorate(func, "orchestration", auto_scope=auto_scope)

    def incore(self, func: Any = None, **options: Any) -> Any:
        """A kernel. `level=pl.Level.AIC` or `AIV` fixes its core."""
        return _decorate(func, "incore", **_known("incore", options, ("level",)))

    def inline(self, func: Any = None, **options: Any) -> Any:
        """A helper whose body is put where it is called."""
        return _decorate(func, "inline", **_known("inline", options, ("auto_scope",)))

    def opaque(self, func: Any = None, **options: Any) -> Any:
        """A function that may hold device regions and calls."""
        return _decorate(func, "opaque", **_known("opaque", options, ()))

    def host(self, func: Any = None, **options: Any) -> Any:
        """The entry of a distributed program."""
        return _decorate(func, "host", **_known("host", options, ("auto_scope",)))

    def extern(self, func: Any = None, *, core_type: str | None = None, **options: Any) -> Any:
        """A kernel written in C++; the body is `...`."""
        known = ("source", "aic_source", "aiv_source", "dual_aiv_dispatch", "include_dirs")
        settings = _extern_settings(core_type, **_known("extern", options, known))
        return _decorate(func, "extern", **settings)

    def __getattr__(self, name: str) -> Any:
        kinds = ", ".join(f"pl.jit.{kind}" for kind in _KINDS[1:])
        raise AttributeError(f"there is no pl.jit.{name}; there are pl.jit itself (an entry), {kinds}")

    def __repr__(self) -> str:
        return "pl.jit"


def _known(kind: str, options: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    for name in options:
        if name not in names:
            takes = ", ".join(f"{n}=" for n in names) or "no options"
            raise TypeError(f"@pl.jit.{kind} does not accept a {name}= argument; it takes {takes}")
    return options


def _decorate(func: Any, kind: str, **options: Any) -> Any:
    scope, level = options.get("auto_scope", True), options.get("level")
    if not isinstance(scope, bool):
        raise TypeError(f"auto_scope= of a jit function is True or False, got {scope!r}")
    if level not in (None, Level.AIC, Level.AIV, Level.CORE_GROUP):
        raise ValueError(f"level= of @pl.jit.incore is pl.Level.AIC, AIV or CORE_GROUP, got {level!r}")
    if func is None:
        return lambda inner: JITFunction(inner, kind, **options)
    return JITFunction(func, kind, **options)


def _extern_settings(
    core_type: str | None,
    source: str | None = None,
    aic_source: str | None = None,
    aiv_source: str | None = None,
    dual_aiv_dispatch: bool = False,
    include_dirs: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Checked settings of an extern kernel.

    Raises:
        ValueError: unknown core type, or sources that are missing or do not exist.
        TypeError: include_dirs is no list of paths.
    """
    if core_type not in ("aiv", "aic", "mixed"):
        raise ValueError(f"@pl.jit.extern takes core_type 'aiv', 'aic' or 'mixed', got {core_type!r}")
    if core_type == "mixed":
        if aic_source is None or aiv_source is None:
            raise ValueError("@pl.jit.extern(core_type='mixed') needs aic_source= and aiv_source=")
    elif source is None:
        raise ValueError(f"@pl.jit.extern(core_type={core_type!r}) needs source=")
    if dual_aiv_dispatch and core_type != "mixed":
        raise ValueError("dual_aiv_dispatch= is for core_type='mixed' only")
    if isinstance(include_dirs, (str, bytes)) or not isinstance(include_dirs, (list, tuple, type(None))):
        raise TypeError(f"include_dirs must be a list of paths, got {include_dirs!r}")
    for path in (source, aic_source, aiv_source):
        if path is not None and not Path(path).is_file():
            raise ValueError(f"source of an extern kernel not found: {os.fspath(path)}")
    for path in include_dirs or ():
        if not Path(path).is_dir():
            raise ValueError(f"include directory of an extern kernel not found: {os.fspath(path)}")
    return {
        "external_core_type": core_type,
        "external_aic_source": aic_source if core_type == "mixed" else source if core_type == "aic" else None,
        "external_aiv_source": aiv_source if core_type == "mixed" else source if core_type == "aiv" else None,
        "external_dual_aiv_dispatch": dual_aiv_dispatch,
        "external_include_dirs": tuple(include_dirs or ()),
    }


jit = _Jit()
