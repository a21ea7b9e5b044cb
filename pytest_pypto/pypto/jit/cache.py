"""Compiled specialisations of one jit function: in memory, and on disk when `PYPTO_JIT_CACHE_DIR` names a directory.

One thread of the process compiles at a time, because the architecture that is compiled for is a setting of the process.
"""

from __future__ import annotations

import os
import reprlib
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..codegen.metadata import META_NAME
from ..ir.program import Program
from .binding import Bound, bind
from .keys import Key, disk_key, memory_key
from .specializer import Specialization, Specializer, parameters
from .store import Store, artifact_files, install

if TYPE_CHECKING:
    from .decorator import JITFunction

_LOWER = (
    *("platform", "strategy", "diagnostic_phase", "disabled_diagnostics"),
    *("analyze_auto_scopes_for_deps", "memory_planner"),
)
_COMPILING = threading.RLock()
_CODE = ("kernels/**/*.pto", "orchestration/*.py")
"""Files of an artifact that are run."""


class CacheInfo(NamedTuple):
    """What happened to the calls so far: found in memory, found on disk, compiled; and how many entries there are."""

    hits: int
    disk_hits: int
    misses: int
    entries: int


@dataclass
class _Entry:
    """An artifact, and what its directory held when it was made."""

    artifact: Any
    seen: dict[str, tuple[int, ...]]

    @classmethod
    def of(cls, artifact: Any) -> _Entry:
        """An entry for an artifact as it is on disk now."""
        return cls(artifact, _state(Path(artifact.output_dir)))

    def is_there(self) -> bool:
        """False when the directory was removed, or another program was compiled into it."""
        here = _state(Path(self.artifact.output_dir))
        return all(here.get(name) == state for name, state in self.seen.items())


def _state(folder: Path) -> dict[str, tuple[int, ...]]:
    """Identity of the metadata of an artifact, and names of its code: the author may edit kernels to try things."""
    found: dict[str, tuple[int, ...]] = {str(p): () for pattern in _CODE for p in folder.glob(pattern)}
    for path in (folder / META_NAME, *folder.glob(f"next_levels/*/{META_NAME}")):
        if path.is_file():
            stat = os.stat(path)
            found[str(path)] = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
    return found


@dataclass
class Cache:
    """The compiled specialisations of one function, by key."""

    entries: dict[Key, _Entry] = field(default_factory=dict)
    hits: int = 0
    disk_hits: int = 0
    misses: int = 0

    def clear(self) -> None:
        """Forget every entry."""
        with _COMPILING:
            self.entries.clear()
            self.hits = self.disk_hits = self.misses = 0

    def info(self) -> CacheInfo:
        """Counts since the last `clear`."""
        return CacheInfo(self.hits, self.disk_hits, self.misses, len(self.entries))

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
        options = _options(jit, config)
        bound, made = self.specialized(jit, args, kwargs, may_be_signature)
        with _COMPILING, _users_words(made):
            key = memory_key(made.program, options)
            entry = self.entries.get(key)
            if entry is not None and entry.is_there():
                self.hits += 1
                _complete(entry, made.program, options)
            else:
                entry = self.entries[key] = self._made(made.program, options, key)
        return bound, entry.artifact

    def _made(self, program: Program, options: Mapping[str, Any], key: Key) -> _Entry:
        """A new entry: from the disk, or compiled and left there."""
        store = Store.of_environment()
        name = None if store is None else disk_key(key)
        if store is None or name is None:
            self.misses += 1
            return _Entry.of(_compile(program, options))
        with store.locked(name):
            files = store.find(name)
            if files is None:
                self.misses += 1
                entry = _Entry.of(_compile(program, options))
                store.put(name, artifact_files(Path(entry.artifact.output_dir)))
                return entry
        self.disk_hits += 1
        entry = _Entry.of(_installed(files, program, options))
        _complete(entry, program, options)
        return entry

    def lowered(self, jit: JITFunction, args: tuple[Any, ...], kwargs: Mapping[str, Any], config: Any) -> Program:
        """The program after all passes."""
        from ..runtime.compile import lower_program

        options = _options(jit, config)
        _, made = self.specialized(jit, args, kwargs, may_be_signature=True)
        with _COMPILING, _users_words(made):
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


@contextmanager
def _users_words(made: Specialization) -> Iterator[None]:
    """Errors of the compiler speak of the author's variables, not of the renamed ones."""
    try:
        yield
    except Exception as error:
        error.args = tuple(made.in_users_words(a) if isinstance(a, str) else a for a in error.args)
        raise


def _compile(program: Program, options: Mapping[str, Any]) -> Any:
    from ..runtime.compile import compile_program

    return compile_program(program, skip_ptoas=True, **options)


def _installed(files: Mapping[str, bytes], program: Program, options: Mapping[str, Any]) -> Any:
    """An artifact from the disk cache, in a directory of its own, as `ir.compile` would have made it."""
    from ..backend import set_backend_type
    from ..runtime.build_directory import make_directory
    from ..runtime.compile import handle
    from ..runtime.platforms import parse_platform

    arch = parse_platform(options["platform"])[0]
    set_backend_type(arch)
    directory = make_directory(program, options.get("output_dir"))
    install(files, directory)
    return handle(program, directory, arch, options["platform"])


def _complete(entry: _Entry, program: Program, options: Mapping[str, Any]) -> None:
    """Add what this call asks for to an artifact that is there already: dumps, reports, a copy elsewhere."""
    here = Path(entry.artifact.output_dir)
    wants_dumps = options.get("dump_passes") and not (here / "passes_dump").is_dir()
    wants_profile = options.get("profiling") and not (here / "report" / "pipeline_profile.json").is_file()
    if wants_dumps or wants_profile:
        _compile(program, {**options, "output_dir": str(here)})
        entry.seen = _state(here)
    target = options.get("output_dir")
    if target is not None and Path(target).resolve() != here.resolve():
        install(artifact_files(here, everything=True), Path(target).resolve())
