"""An artifact directory as the machine sees it: kernels, host program, metadata. Read once per content."""

from __future__ import annotations

import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from stat import S_ISREG
from typing import Any

from .compile.builder import Kernel, Variant, build
from .findings import DeviceError
from .machine.memory import CoreMemory
from .platforms import Platform, platform_of
from .text.nodes import Func, Module
from .text.reader import read_file

_MAX_KEPT = 32
_kept: OrderedDict[Any, Any] = OrderedDict()
_lock = threading.Lock()


@dataclass(eq=False)
class Artifact:
    """Kernels by function name, the host program, and the compiled kernels that earlier runs left behind."""

    path: Path
    platform: Platform
    kernels: dict[str, tuple[Func, Module]]
    meta: dict[str, Any]
    host: Any = None
    memories: dict[tuple[int, str, int], CoreMemory] = field(default_factory=dict)
    built: dict[tuple[str, int, str, Variant, int], Kernel] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    cache: dict[Any, Any] = field(default_factory=dict)

    def kernel(self, name: str, cluster: int, core: str, variant: Variant, fill: int) -> Kernel:
        """The kernel `name` compiled for one core.

        Raises:
            DeviceError: there is no such kernel, or it cannot be compiled.
        """
        key = (name, cluster, core, variant, fill)
        found = self.built.get(key)
        if found is None:
            if name not in self.kernels:
                known = ", ".join(sorted(self.kernels)) or "none"
                raise DeviceError(
                    f"the host program launches kernel {name!r}, which no .pto file defines; defined are {known}",
                    file=str(self.path),
                )
            func, module = self.kernels[name]
            place = (cluster, core, fill)
            if place not in self.memories:
                self.memories[place] = CoreMemory(self.platform, core[:3], fill)
            found = self.built[key] = build(func, module, self.memories[place], variant)
        return found

    def begin(self) -> None:
        """Make every core and kernel forget the run before."""
        for memory in self.memories.values():
            memory.reset()
        for kernel in self.built.values():
            for fn in kernel.begin:
                fn()


def clear_cache() -> None:
    """Forget all artifacts that were read."""
    with _lock:
        _kept.clear()


def stamp(path: Path) -> tuple[Any, ...]:
    """What tells one content of the directory from another: names, sizes and times of the files that are executed."""
    rows: list[Any] = []
    for folder, pattern in (
        ("kernels", "**/*.pto"),
        ("ptoas", "*.pto"),
        ("orchestration", "*.py"),
        ("passes_dump", "*.py"),
    ):
        for file in sorted((path / folder).glob(pattern)):
            info = regular(file, path)
            rows.append((folder, file.name, info.st_size, info.st_mtime_ns))
    meta = path / "compiled_meta.json"
    if meta.exists():
        info = regular(meta, path)
        rows.append(("meta", info.st_size, info.st_mtime_ns))
    return tuple(rows)


def regular(file: Path, base: Path) -> os.stat_result:
    """What the system says of a file of the artifact in `base`.

    Raises:
        DeviceError: it cannot be looked at (a broken link), or is no file (a directory, a pipe: reading it may block).
    """
    shown = file.relative_to(base).as_posix()
    try:
        info = file.stat()
    except (OSError, RuntimeError) as exc:  # older Pythons raise RuntimeError for a link to itself
        reason = getattr(exc, "strerror", None) or exc
        raise DeviceError(f"cannot read the file: {reason}; compile again", file=shown) from None
    if not S_ISREG(info.st_mode):
        raise DeviceError("this is no regular file; compile into an empty directory", file=shown)
    return info


def load(path: Path, read_host: Callable[[Artifact], Any]) -> Artifact:
    """The artifact in directory `path`, read now or remembered.

    Raises:
        DeviceError: no directory, no kernels and no host program, or damaged files.
    """
    path = Path(path)
    if not path.is_dir():
        raise DeviceError("there is no artifact directory here; compile the program first", file=str(path))
    key = (str(path.resolve()), stamp(path))
    with _lock:
        found: Artifact | None = _kept.get(key)
        if found is not None:
            _kept.move_to_end(key)
            return found
    found = _read(path)
    found.host = read_host(found)
    with _lock:
        _kept[key] = found
        while len(_kept) > _MAX_KEPT:
            _kept.popitem(last=False)
    return found


def missing_files(path: Path) -> list[str]:
    """Kernels and host program that the metadata of an artifact list and the directory lacks.

    Artifacts of other compilers have no list; nothing is missing there. The contents are not compared: an edited
    kernel is executed as it is.

    Raises:
        DeviceError: damaged metadata.
    """
    listed = _meta(path).get("files", [])
    if not isinstance(listed, list) or not all(isinstance(f, str) and _inside(f) for f in listed):
        raise DeviceError("damaged metadata: files must be a list of relative paths", file="compiled_meta.json")
    return [f for f in listed if not (path / f).is_file()]


def _inside(name: str) -> bool:
    """True for a path of usual length that stays below the artifact."""
    parts = PurePosixPath(name).parts
    usual = len(name) < 1024 and all(len(p.encode("utf-8", "replace")) < 256 for p in parts) and "\0" not in name
    return usual and bool(parts) and not name.startswith("/") and ".." not in parts


def _read(path: Path) -> Artifact:
    missing = missing_files(path)
    if missing:
        raise DeviceError(
            f"the artifact is incomplete, missing: {', '.join(missing)}; recompile via ir.compile(), or put the "
            "files back",
            file=str(path),
        )
    files = sorted((path / "kernels").glob("**/*.pto")) or sorted((path / "ptoas").glob("*.pto"))
    kernels: dict[str, tuple[Func, Module]] = {}
    arch: dict[str, str] = {}
    for file in files:
        shown = file.relative_to(path).as_posix()
        module = read_file(file, shown)
        arch.setdefault(module.arch, shown)
        for func in module.funcs.values():
            if func.name in kernels:
                raise DeviceError(
                    f"function @{func.name} is defined in {kernels[func.name][1].file} too; the artifact holds the "
                    "kernels of several compilations, compile into an empty directory",
                    file=shown,
                    line=func.line,
                )
            kernels[func.name] = (func, module)
    if len(arch) > 1:
        (a, fa), (b, fb) = list(arch.items())[:2]
        raise DeviceError(f"{fa} is for {a}, {fb} for {b}; compile into an empty directory", file=str(path))
    meta = _meta(path)
    name = next(iter(arch), None) or str(meta.get("platform", "a2a3"))
    return Artifact(path, platform_of(name, next(iter(arch.values()), None)), kernels, meta)


def _meta(path: Path) -> dict[str, Any]:
    file = path / "compiled_meta.json"
    if not file.is_file():
        return {}
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except json.JSONDecodeError as exc:
        raise DeviceError(
            f"damaged metadata: {exc.msg} in column {exc.colno}", file="compiled_meta.json", line=exc.lineno
        ) from None
    except (OSError, ValueError, RecursionError) as exc:
        raise DeviceError(f"damaged metadata: {exc}", file="compiled_meta.json") from None
    if not isinstance(data, dict):
        raise DeviceError("damaged metadata: expected an object", file="compiled_meta.json")
    return data
