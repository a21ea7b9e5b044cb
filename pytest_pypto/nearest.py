"""Which of several markers of one name counts for a test: the closest.

From close to far: `pytest.param(..., marks=...)`, the test itself, its class, the bases of the class in the order of
Python's look-up, the module, the package. pytest puts the marks of a `pytest.param` behind those of the function, and
those of a base class before those of the class; so its own `get_closest_marker` would answer with the wrong one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest


def param_marks(node: pytest.Item) -> list[pytest.Mark]:
    """Marks that a test got from its `pytest.param`s."""
    return list(getattr(getattr(node, "callspec", None), "marks", ()))


def levels(node: pytest.Item) -> Iterator[list[pytest.Mark]]:
    """The marks of a test, level by level, the closest first."""
    given = param_marks(node)
    yield given
    for each in reversed(node.listchain()):
        own = [m for m in each.own_markers if each is not node or not any(m is g for g in given)]
        yield from _of_class(each.obj, own) if isinstance(each, pytest.Class) and len(own) > 1 else [own]


def _of_class(cls: type, own: list[pytest.Mark]) -> Iterator[list[pytest.Mark]]:
    """The marks of a class and of its bases; what a plugin added to the node comes first."""
    written = [plain_marks(each.__dict__.get("pytestmark", ())) for each in cls.__mro__]
    yield [m for m in own if not any(m is w for level in written for w in level)]
    yield from written


def plain_marks(value: Any) -> list[pytest.Mark]:
    """Marks, from what stands in a `pytestmark` or a `pytest.param`: one or several, decorators or marks."""
    listed: Iterable[Any] = value if isinstance(value, (list, tuple)) else [value]
    return [getattr(mark, "mark", mark) for mark in listed]


def every(node: pytest.Item, name: str) -> Iterator[pytest.Mark]:
    """All markers of a name, the closest first."""
    return (mark for level in levels(node) for mark in level if mark.name == name)


def closest(node: pytest.Item, name: str) -> pytest.Mark | None:
    """The marker of a name that counts, None without one."""
    return next(every(node, name), None)


def ours(node: pytest.Item) -> Iterator[pytest.Mark]:
    """All markers that start like ours."""
    return (mark for mark in node.iter_markers() if mark.name.startswith("pypto_"))
