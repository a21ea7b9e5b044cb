"""Compiling and computing goldens through the store."""

from __future__ import annotations

import inspect
import os
import shutil
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_pypto import toolchain
from pytest_pypto.harness.errors import CaseError
from pytest_pypto.harness.fingerprint import golden_key
from pytest_pypto.harness.golden import Golden, compute_golden
from pytest_pypto.harness.golden import Source as GoldenSource
from pytest_pypto.harness.split import spans_of
from pytest_pypto.harness.stages import recording, remember
from pytest_pypto.harness.store import Store, digest

SLOW_SECONDS = 0.2
"""Goldens that take at least this long are kept."""

PLACE_KEYS = ("output_dir",)
"""Compile options that say where, not what."""


class CompileCache:
    """Compiles a program once per content: in memory within a process, on disk between processes.

    Attributes:
        store: where artifacts live.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._handles: dict[str, Any] = {}

    def compile(self, program: Any, options: Mapping[str, Any]) -> Any:
        """The compiled program.

        Args:
            program: an `ir.Program`.
            options: keyword arguments for `ir.compile`; with `output_dir` the artifact goes there and is not shared.

        Raises:
            Exception: whatever the compiler raises.
        """
        __tracebackhide__ = True
        if options.get("output_dir") is not None:
            return compile_recorded(program, options)
        key = compile_key(program, options)
        if key not in self._handles:
            self._handles[key] = self._through_store(program, options, key)
        return self._handles[key]

    def _through_store(self, program: Any, options: Mapping[str, Any], key: str) -> Any:
        __tracebackhide__ = True
        folder, made = self.store.build(
            "artifact", key, lambda out: compile_recorded(program, {**options, "output_dir": str(out)})
        )
        if made is not None:
            return made
        found = _handle(program, folder, options)
        if found is None:
            self.store.drop("artifact", key)
            return self._through_store(program, options, key)
        return found


def _handle(program: Any, folder: Path, options: Mapping[str, Any]) -> Any:
    """A handle for an artifact on disk, None when it cannot be used."""
    from pypto.ir import CompiledProgram
    from pypto.runtime import RunConfig

    platform = options.get("platform") or "a2a3sim"
    try:
        CompiledProgram.from_dir(str(folder))
        arch = RunConfig(platform=platform).backend_type
        made = CompiledProgram(program, str(folder), backend_type=arch, platform=platform)
    except (OSError, ValueError, TypeError):
        return None
    remember(made, program, options)
    return made


def compile_recorded(program: Any, options: Mapping[str, Any]) -> Any:
    """Compile and remember every stage of the way."""
    __tracebackhide__ = True
    from pypto import ir

    with recording(options, program) as (recorder, rest):
        made = ir.compile(program, **rest)
    remember(made, program, options, tuple(recorder.stages))
    return made


def compile_key(program: Any, options: Mapping[str, Any]) -> str:
    """Key of an artifact: program text, places in the source, options, and the compiler itself."""
    from pypto import ir

    known = toolchain.current()
    places = " ".join(str(span) for span in spans_of(program))
    chosen = sorted((k, repr(v)) for k, v in options.items() if k not in PLACE_KEYS and v is not None)
    return digest([ir.python_print(program), places, repr(chosen), compiler_id(known.location if known else "")])


@lru_cache(maxsize=4)
def compiler_id(location: str) -> str:
    """Changes whenever a source file of the compiler does."""
    root = Path(location)
    files = sorted(p for p in root.rglob("*") if p.suffix in (".py", ".so"))
    return digest(f"{p.relative_to(root)} {p.stat().st_size} {p.stat().st_mtime_ns}" for p in files)


def assembler_options() -> dict[str, Any]:
    """Stop at `.pto` text where there is no assembler to go further."""
    known = toolchain.current()
    embedded = known is None or known.kind == "embedded"
    missing = shutil.which("ptoas") is None and not os.environ.get("PTOAS_ROOT")
    return {"skip_ptoas": True} if embedded or missing else {}


def run_config_fields() -> tuple[str, ...]:
    """Keywords that `RunConfig` accepts."""
    from pypto.runtime import RunConfig

    return tuple(inspect.signature(RunConfig).parameters)


def changed_config(config: Any, fields: Mapping[str, Any]) -> Any:
    """A copy of a `RunConfig` with some fields replaced.

    Raises:
        CaseError: no such field.
    """
    import dataclasses

    if not fields:
        return config
    known = run_config_fields()
    unknown = [name for name in fields if name not in known]
    if unknown:
        raise CaseError(f"RunConfig has no field {unknown[0]!r}; its fields are {', '.join(known)}")
    return dataclasses.replace(config, **fields)


class GoldenCache:
    """Keeps the results of slow goldens by content of function and inputs.

    Attributes:
        store: where they live.
        slow: seconds from which on a golden is kept.
    """

    def __init__(self, store: Store, slow: float = SLOW_SECONDS) -> None:
        self.store, self.slow = store, slow

    def golden(self, function: GoldenSource, inputs: Mapping[str, Any]) -> Golden:
        """The golden's result; see `compute_golden` for arguments and errors."""
        __tracebackhide__ = True
        if isinstance(function, Mapping):
            return compute_golden(function, inputs)
        key = golden_key(function, inputs)
        if key is not None and (folder := self.store.find("golden", key)) is not None:
            found = _read(folder / "golden.pt")
            if found is not None:
                return found
            self.store.drop("golden", key)
        start = time.perf_counter()
        made = compute_golden(function, inputs)
        if key is not None and time.perf_counter() - start >= self.slow:
            self.store.build("golden", key, lambda out: _write(out / "golden.pt", made))
        return made


def _write(path: Path, golden: Golden) -> None:
    import torch

    torch.save({"expected": dict(golden.expected), "returned": golden.returned, "name": golden.name}, path)
    path.with_suffix(".sum").write_text(digest([path.read_bytes()]), encoding="utf-8")


def _read(path: Path) -> Golden | None:
    """A stored golden, None when the file is damaged."""
    import torch

    try:
        if path.with_suffix(".sum").read_text(encoding="utf-8") != digest([path.read_bytes()]):
            return None
        data = torch.load(path, weights_only=True)
        return Golden(data["expected"], data["returned"], data["name"], cached=True)
    except Exception:  # on damaged bytes torch raises anything, from IndexError to AttributeError
        return None
