"""How visitors and mutators find the method of a node class."""

from __future__ import annotations

import re
from typing import Any, ClassVar

_SNAKE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def method_name(cls: type) -> str:
    """`visit_for_stmt` for `ForStmt`, and so on."""
    return "visit_" + _SNAKE.sub("_", cls.__name__).lower()


class Dispatch:
    """Finds the method of a node class, once per class."""

    _methods: ClassVar[dict[type, str]] = {}

    def _call(self, node: Any) -> Any:
        cls = type(node)
        name = Dispatch._methods.get(cls)
        if name is None:
            name = next((n for n in map(method_name, cls.__mro__) if hasattr(self, n)), None)
            if name is None:
                raise TypeError(f"cannot visit {cls.__name__}: not an IR node")
            Dispatch._methods[cls] = name
        return getattr(self, name)(node)


def per_operator(cls: type, group: str, classes: tuple[type, ...]) -> None:
    """Give `cls` one method per operator class (`visit_add`, ...) that calls the group hook."""

    def method(self: Any, op: Any) -> Any:
        return getattr(self, group)(op)

    for operator in classes:
        name = method_name(operator)
        if name not in vars(cls):
            setattr(cls, name, method)
