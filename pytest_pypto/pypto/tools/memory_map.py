"""`python -m pypto.tools.memory_map`: which tile lies where in on-chip memory, and when, as one HTML page."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..backend import BackendType
from ..backend.handler import Handler, handler_for
from ..ir.program import Function, Program
from ..language.parser import loads
from .memory.boxes import cards
from .memory.data import as_data
from .memory.page import render

DEFAULT_PASS = "AllocateMemoryAddr"
_DUMP = re.compile(r"(\d+)_(?:after_)?(\w+)\.py$")
_ARCH = re.compile(r'pto\.target_arch\s*=\s*"(\w+)"')
_NAMES = {b.name.lower(): b for b in BackendType} | {handler_for(b).arch: b for b in BackendType}


class _Problem(Exception):
    """What the user has to put right."""


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page; the exit code is 0, or 1 with a line on stderr."""
    args = _arguments(argv)
    try:
        dump = find_dump(args.path, args.pass_name)
        data, source = read_map(dump, args.backend)
        out = args.output or dump.with_name(f"{dump.stem}.memory_map.html")
        out.write_text(render(data, source), encoding="utf-8")
    except (_Problem, OSError, SyntaxError, ValueError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    print(f"wrote {out}")
    return 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m pypto.tools.memory_map", description=__doc__)
    parser.add_argument("path", type=Path, help="a dump, a directory of dumps, or the directory of a build")
    parser.add_argument("-o", "--output", type=Path, help="default: <dump>.memory_map.html")
    parser.add_argument("-p", "--pass-name", default=DEFAULT_PASS, help=f"which dump (default: {DEFAULT_PASS})")
    parser.add_argument("-b", "--backend", help="Ascend910B or Ascend950 (default: found in the build)")
    return parser.parse_args(argv)


def find_dump(path: Path, pass_name: str) -> Path:
    """The dump that a path means; in a directory the last one of that pass.

    Raises:
        _Problem: there is none.
    """
    if path.is_file():
        return path
    if not path.is_dir():
        raise _Problem(f"{path} does not exist")
    folder = path / "passes_dump" if (path / "passes_dump").is_dir() else path
    dumps = [(int(m[1]), m[2], file) for file in folder.iterdir() if (m := _DUMP.search(file.name))]
    if not dumps:
        raise _Problem(f"{folder} has no dumps; compile with dump_passes=True")
    found = [(number, file) for number, name, file in dumps if name == pass_name]
    if not found:
        names = ", ".join(dict.fromkeys(name for _, name, _ in sorted(dumps)))
        hint = " (the planner PTOAS leaves addresses to the assembler)" if pass_name == DEFAULT_PASS else ""
        raise _Problem(f"{folder} has no dump of {pass_name}{hint}; it has {names}")
    return max(found)[1]


def read_map(dump: Path, backend: str | None = None) -> tuple[dict[str, Any], list[str]]:
    """The map of one dump as plain data, and the lines of the dump.

    Args:
        dump: the text of a program after AllocateMemoryAddr or later.
        backend: name of the architecture; None looks for it in the build.

    Raises:
        _Problem: an unknown backend, or no tiles.
        ValueError: the tiles have no addresses, or the text is none of ours.
    """
    handler = _handler(dump, backend)
    loaded = loads(dump)
    program = Program([loaded], loaded.name) if isinstance(loaded, Function) else loaded
    found = cards(program, handler)
    if not found:
        raise _Problem(f"{dump} has no tiles with buffers; give the dump of {DEFAULT_PASS} or a later one")
    name = _DUMP.search(dump.name)
    pass_name = name[2] if name else dump.stem
    data = as_data(str(dump), pass_name, handler, handler is not None and backend is None, found)
    return data, dump.read_text(encoding="utf-8-sig").splitlines()


def _handler(dump: Path, backend: str | None) -> Handler | None:
    if backend is not None:
        kind = _NAMES.get(backend.lower())
        if kind is None:
            raise _Problem(f"unknown backend {backend!r}; choose {' or '.join(b.name for b in BackendType)}")
        return handler_for(kind)
    for folder in list(dump.resolve().parents)[:3]:
        kind = _recorded(folder)
        if kind is not None:
            return handler_for(kind)
    return None


def _recorded(folder: Path) -> BackendType | None:
    """The architecture that a build directory was made for, from its metadata or its kernels."""
    meta = folder / "compiled_meta.json"
    if meta.is_file():
        try:
            name = json.loads(meta.read_text(encoding="utf-8")).get("backend_type")
        except (ValueError, AttributeError):
            name = None
        if str(name).lower() in _NAMES:
            return _NAMES[str(name).lower()]
    for file in sorted([*folder.glob("ptoas/*.pto"), *folder.glob("kernels/**/*.pto")]):
        arch = _ARCH.search(file.read_text(encoding="utf-8", errors="replace"))
        if arch and arch[1] in _NAMES:
            return _NAMES[arch[1]]
    return None


if __name__ == "__main__":
    sys.exit(main())
