"""Programs and functions as bytes: the printed form, which reads back to structurally equal IR."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..ir.printer import python_print
from ..ir.program import Function, Program
from .parser.modules import parse_all

_PROGRAM = b"pypto-ir 1 program\n"
_FUNCTION = b"pypto-ir 1 function\n"


def serialize(node: Any) -> bytes:
    """A program or function as bytes.

    Raises:
        TypeError: the node is neither.
    """
    if isinstance(node, Program):
        return _PROGRAM + python_print(node, format=False).encode()
    if isinstance(node, Function):
        return _FUNCTION + python_print(Program([node], "Single"), format=False).encode()
    raise TypeError(f"serialize takes a Program or a Function, got {type(node).__name__}: put it into a function")


def deserialize(data: bytes) -> Program | Function:
    """What `serialize` wrote. The bytes are read, never executed.

    Raises:
        ValueError: not written by `serialize`, or damaged.
    """
    head = next((m for m in (_PROGRAM, _FUNCTION) if data.startswith(m)), None)
    if head is None:
        raise ValueError("these bytes were not written by ir.serialize()")
    try:
        code = data[len(head) :].decode()
    except UnicodeDecodeError as exc:
        raise ValueError(f"serialised IR is damaged at byte {len(head) + exc.start}") from None
    found = list(parse_all(code, "<serialized>", open_calls=True).values())
    if len(found) != 1 or not isinstance(found[0], Program):
        raise ValueError("serialised IR is damaged: it holds no program")
    return found[0] if head is _PROGRAM else next(iter(found[0].functions.values()))


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
