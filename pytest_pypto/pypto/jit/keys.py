"""Keys of compiled specialisations: everything that changes what is compiled, and nothing else.

Whatever makes another program (arguments, constants of the closure, helper functions and theirs) is in the text of the
specialised program, so nothing can be forgotten. Settings for dumps, reports and directories are left out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..codegen.options import source_locations_wanted
from ..ir.printer import python_print
from ..ir.program import Program
from ..ir.span import Span
from ..ir.walk import exprs_of, walk_exprs, walk_stmts
from ..passes.context import PassContext

FOR_REPORTS = ("dump_passes", "dump_ptoas_passes", "profiling", "output_dir")
"""Compile settings that do not change what is compiled."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
Key = tuple[Any, ...]


def memory_key(program: Program, options: Mapping[str, Any]) -> Key:
    """The key of a specialisation within the process."""
    settings = [(k, _hashable(v)) for k, v in sorted(options.items()) if k not in FOR_REPORTS]
    return (python_print(program, format=False), _places(program), *settings, *_surroundings(options))


def disk_key(key: Key) -> str | None:
    """The same key as text that holds for other processes too; None when it names objects of this process only.

    The compiler itself is part of it, and so is how much the passes are checked: with stricter checks a program is
    compiled, not taken from the disk. Instruments of an active `PassContext` want to see the passes: no key.
    """
    context = PassContext.current() or PassContext()
    parts = [repr(part) for part in key]
    if context.get_instruments() or any(_ADDRESS.search(part) for part in parts[2:]):
        return None
    return digest([compiler_id(), context.get_verification_level().name, *parts])


def digest(parts: Iterable[str | bytes]) -> str:
    """A short text that stands for the parts; the borders between them count."""
    made = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        made.update(len(data).to_bytes(8, "little"))
        made.update(data)
    return made.hexdigest()[:40]


@cache
def compiler_id() -> str:
    """The content of the compiler's source files, its version among it."""
    root = Path(__file__).resolve().parent.parent
    files = sorted(root.rglob("*.py"))
    parts = [part for path in files for part in (str(path.relative_to(root)), path.read_bytes())]
    return digest(parts)


def _surroundings(options: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What the compiler takes from the active context and from the environment."""
    context = PassContext.current() or PassContext()
    yield "planner", options.get("memory_planner") or context.get_memory_planner()
    yield "double_buffer", context.get_enable_pypto_l0c_double_buffer()
    yield "runtime", options.get("runtime") or context.get_runtime()
    yield "source_locations", source_locations_wanted(None)


def _places(program: Program) -> str:
    """The source places that the artifact speaks of."""
    return digest(f"{s.filename}:{s.begin_line}:{s.begin_column}" for s in _spans(program))


def _spans(program: Program) -> Iterator[Span]:
    for function in program.functions.values():
        yield function.span
        for stmt in walk_stmts(function.body):
            yield stmt.span
            for whole in exprs_of(stmt):
                yield from (expr.span for expr in walk_exprs(whole))


def _hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value
