"""`pl.MemRef(...)` as Python calls it: a declared allocation, or placed memory."""

from __future__ import annotations

from typing import Any

from ..ir import expr as e
from ..ir.enums import MemorySpace


class _AnyMemRef(type):
    """`isinstance(x, pl.MemRef)` holds for every memory reference of the IR."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, e.MemRef)


class MemRef(metaclass=_AnyMemRef):
    """Makes an `ir.MemRef`.

    `MemRef("scratch")`, `MemRef("ring", slots=2)` and `MemRef()` declare an allocation whose address is chosen later
    (without a name it takes the name of the variable that holds it); `MemRef(base, offset, size)` is placed memory.

    Raises:
        TypeError, ValueError: other arguments.
    """

    def __new__(cls, *args: Any, slots: int = 1, name: str = "") -> Any:
        if type(slots) is not int or slots < 1:
            raise ValueError(f"slots= of pl.MemRef is a positive integer, got {slots!r}")
        if not args or (len(args) == 1 and isinstance(args[0], str)):
            given = args[0] if args else name
            if args and not given:
                raise ValueError("the name of a pl.MemRef must not be empty")
            return e.MemRef(given, 0, 0, is_pinned=True, slots=slots)
        if len(args) == 3 and isinstance(args[0], (str, e.Var)):
            return e.MemRef(args[0], args[1], args[2], slots=slots)
        return _legacy(args)


def _legacy(args: tuple[Any, ...]) -> e.MemRef:
    """`MemRef(addr, size, id)` and `MemRef(space, addr, size, id)`."""
    space = args[0] if len(args) == 4 else MemorySpace.DDR
    rest = args[-3:]
    if len(args) not in (3, 4) or not isinstance(space, MemorySpace) or not all(type(a) is int for a in rest):
        raise TypeError(
            f'unsupported pl.MemRef arguments {args!r}: write pl.MemRef("name") or pl.MemRef(base, offset, size)'
        )
    address, size, number = rest
    return e.MemRef(f"mem_{space.name.lower()}_{number}", address, size)
