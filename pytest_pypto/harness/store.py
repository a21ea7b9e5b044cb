"""Things worth making once: artifacts and goldens by content, shared by processes through file locks."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

COMPLETE = ".complete"
LIMIT_BYTES = 512 * 1024 * 1024


def digest(parts: Iterable[str | bytes]) -> str:
    """A key from the parts' content; the borders between parts count."""
    made = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        made.update(len(data).to_bytes(8, "little"))
        made.update(data)
    return made.hexdigest()


class Store:
    """Entries under one directory, `<kind>/<key>/`; an entry counts only when it was finished.

    Attributes:
        root: directory of the store, made on first use.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def entry(self, kind: str, key: str) -> Path:
        """Directory of an entry, there or not."""
        return self.root / kind / key

    def find(self, kind: str, key: str) -> Path | None:
        """Directory of a finished entry, None without one."""
        folder = self.entry(kind, key)
        if not (folder / COMPLETE).is_file():
            return None
        os.utime(folder / COMPLETE)
        return folder

    def build(self, kind: str, key: str, make: Callable[[Path], Any]) -> tuple[Path, Any]:
        """The entry, made by `make(directory)` when it is not there; whoever comes meanwhile waits.

        Returns:
            The directory, and what `make` returned (None when the entry was there).
        """
        __tracebackhide__ = True
        from filelock import FileLock

        folder = self.entry(kind, key)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(str(folder.with_suffix(".lock"))):
            found = self.find(kind, key)
            if found is not None:
                return found, None
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            result = make(folder)
            (folder / COMPLETE).touch()
        return folder, result

    def drop(self, kind: str, key: str) -> None:
        """Forget an entry, for instance a damaged one."""
        (self.entry(kind, key) / COMPLETE).unlink(missing_ok=True)

    def prune(self, limit: int = LIMIT_BYTES) -> int:
        """Remove the entries used longest ago until the rest fits; returns how many went."""
        entries = sorted(self.root.glob(f"*/*/{COMPLETE}"), key=lambda p: p.stat().st_mtime)
        sizes = {mark: _size(mark.parent) for mark in entries}
        total, gone = sum(sizes.values()), 0
        for mark in entries:
            if total <= limit:
                break
            mark.unlink(missing_ok=True)
            shutil.rmtree(mark.parent, ignore_errors=True)
            mark.parent.with_suffix(".lock").unlink(missing_ok=True)
            total, gone = total - sizes[mark], gone + 1
        return gone


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
