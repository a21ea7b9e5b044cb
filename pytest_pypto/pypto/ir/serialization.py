"""Programs and functions as bytes: the printed form, which reads back to structurally equal IR."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from .program import Function, Program

_MAGIC = b"pypto-ir 1\n"


def serialize(node: Any) -> bytes:
    """A program or function as bytes.

    Raises:
        TypeError: the node is neither.
    """
    if not isinstance(node, (Program, Function)):
        raise TypeError(f"serialize takes a Program or a Function, got {type(node).__name__}: put it into a function")
    from .printer import python_print

    return _MAGIC + python_print(node, format=False).encode()


def deserialize(data: bytes) -> Program | Function:
    """What `serialize` wrote. The bytes are read, never executed.

    Raises:
        ValueError: not written by `serialize`, or damaged.
    """
    if not data.startswith(_MAGIC):
        raise ValueError("these bytes were not written by ir.serialize()")
    try:
        code = data[len(_MAGIC) :].decode()
    except UnicodeDecodeError as exc:
        raise ValueError(f"serialised IR is damaged at byte {len(_MAGIC) + exc.start}") from None
    modules = importlib.import_module(f"{__name__.rpartition('.ir.')[0]}.language.parser.modules")
    found: Program | Function = modules.parse(code, "<serialized>")
    return found


def serialize_to_file(node: Any, path: str | Path) -> None:
    """`serialize` into a file."""
    Path(path).write_bytes(serialize(node))


def deserialize_from_file(path: str | Path) -> Program | Function:
    """`deserialize` a file.

    Raises:
        OSError: the file cannot be read.
        ValueError: not written by `serialize_to_file`, or damaged.
    """
    return deserialize(Path(path).read_bytes())
