"""Compiled specialisations on disk, shared by processes.

Off unless the environment variable `PYPTO_JIT_CACHE_DIR` names a directory. An entry is a directory named by its key,
with the files of the artifact and a list of their digests. Entries never change: they are made beside the others and
renamed when complete; whoever needs one gets a copy of its own. An entry that is not exactly what its list says is
removed and built again. Files are data, nothing of an entry is executed. Removing the directory empties the cache.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

from filelock import FileLock

from ..codegen.metadata import META_NAME
from ..logs import child_log
from .keys import digest

VARIABLE = "PYPTO_JIT_CACHE_DIR"
INDEX_NAME = "entry.json"
FORMAT = 1
MAX_BYTES = 256 << 20
_ABANDONED_SECONDS = 3600
_OF_ONE_RUN = ("debug/", "dfx_outputs/", "passes_dump/", "report/pipeline_profile.")
"""Files that belong to one build or one run of an artifact, not to what was compiled."""
_log = child_log("jit")

Files = Mapping[str, bytes]
"""Content of files by path, with `/` between the parts."""


class Store:
    """Entries below one directory."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def of_environment(cls) -> Store | None:
        """The store that `PYPTO_JIT_CACHE_DIR` names; None when it names none, or one that cannot be used."""
        text = os.environ.get(VARIABLE, "").strip()
        if not text:
            return None
        root = Path(text).expanduser().resolve()
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            _log.warning("%s=%s cannot be used (%s); kernels are compiled without it", VARIABLE, text, problem)
            return None
        return cls(root)

    @contextmanager
    def locked(self, key: str) -> Iterator[None]:
        """Nobody else looks for or makes the entry meanwhile."""
        lock = FileLock(self.root / f"{key}.lock")
        try:
            lock.acquire()
        except OSError as problem:
            _log.warning("the jit cache %s cannot be locked (%s)", self.root, problem)
        try:
            yield
        finally:
            lock.release()

    def find(self, key: str) -> Files | None:
        """The files of an entry, None when there is none. A damaged one is removed."""
        folder = self.root / key
        if folder.is_symlink() or not folder.is_dir():
            with suppress(OSError):
                folder.unlink(missing_ok=True)
            return None
        try:
            return _checked(folder, key)
        except (OSError, ValueError, TypeError, RecursionError) as problem:
            _log.warning("entry %s of the jit cache is damaged (%s); it is built again", folder, problem)
            shutil.rmtree(folder, ignore_errors=True)
            return None

    def put(self, key: str, files: Files) -> None:
        """Make an entry. What goes wrong with the disk is logged, and there is no entry."""
        made = ""
        self._tidy()
        try:
            made = tempfile.mkdtemp(prefix=".new-", dir=self.root)
            _write(Path(made), files)
            index = {"format": FORMAT, "key": key, "files": {name: digest([data]) for name, data in files.items()}}
            (Path(made) / INDEX_NAME).write_text(json.dumps(index, indent=1), encoding="utf-8")
            os.replace(made, self.root / key)
        except OSError as problem:
            _log.warning("the jit cache %s cannot be written (%s)", self.root, problem)
            shutil.rmtree(made, ignore_errors=True)

    def _tidy(self) -> None:
        """Remove what processes that were killed left behind."""
        for old in self.root.glob(".new-*"):
            with suppress(OSError):
                if time.time() - old.stat().st_mtime > _ABANDONED_SECONDS:
                    shutil.rmtree(old, ignore_errors=True)


def _checked(folder: Path, key: str) -> Files:
    """The files that the index of an entry lists.

    Raises:
        ValueError, TypeError: the entry is not what the index says.
    """
    index: Any = json.loads((folder / INDEX_NAME).read_text(encoding="utf-8"))
    if not isinstance(index, dict) or index.get("format") != FORMAT or index.get("key") != key:
        raise ValueError("its index is of another entry or format")
    listed = index["files"] if isinstance(index.get("files"), dict) else {}
    found = _paths(folder, INDEX_NAME)
    if sorted(listed) != sorted(found):
        raise ValueError("its files are not those of the index")
    files = {name: path.read_bytes() for name, path in found.items()}
    wrong = [name for name, data in files.items() if digest([data]) != listed[name]]
    if wrong:
        raise ValueError(f"{wrong[0]} was changed")
    return files


def artifact_files(folder: Path, everything: bool = False) -> Files:
    """The files of an artifact that belong to what was compiled, or all of them."""
    from ..runtime.build_directory import LOCK_NAME

    found = _paths(folder, LOCK_NAME)
    return {n: p.read_bytes() for n, p in found.items() if everything or not n.startswith(_OF_ONE_RUN)}


def _paths(folder: Path, without: str) -> dict[str, Path]:
    """Plain files below a folder, by name.

    Raises:
        ValueError: something else is there, or far too much.
    """
    found, size = {}, 0
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise ValueError(f"{name} is no plain file")
        if path.is_file() and name != without:
            found[name] = path
            size += path.stat().st_size
    if size > MAX_BYTES:
        raise ValueError(f"it holds more than {MAX_BYTES} bytes")
    return found


def install(files: Files, target: Path) -> None:
    """Write the files of an artifact into a directory, in the place of an earlier build; metadata come last."""
    from ..runtime.build_directory import exclusive, forget_earlier_build

    target.mkdir(parents=True, exist_ok=True)
    with exclusive(target):
        forget_earlier_build(target)
        metas = {n: d for n, d in files.items() if PurePosixPath(n).name == META_NAME}
        _write(target, {n: d for n, d in files.items() if n not in metas})
        _write(target, metas)


def _write(folder: Path, files: Files) -> None:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
